//! A turn from the player's word to its commit.

use serde_json::json;

use crate::engine::actions::Action;
use crate::engine::model::ExecutionState;
use crate::engine::ports::Invalidation;
use crate::engine::testing::{Bench, Say, say};
use crate::gateway::ErrorKind;

#[tokio::test]
async fn a_turn_streams_its_text_and_ends_committed() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Text(&["Rain ", "falls."])]);

    let sink = bench.say(&session, "look up").await;

    assert_eq!(
        sink.kinds(),
        [
            "execution.started",
            "runtime.started",
            "step.started",
            "llm.calling",
            "narrative.delta",
            "narrative.delta",
            "llm.responded",
            "step.completed",
            "message.completed",
            "runtime.completed",
            "narrative.completed",
            "execution.completed",
        ]
    );
    assert_eq!(sink.shown(), "Rain falls.");
    let end = sink.payload("execution.completed");
    assert_eq!(end["committed"], true);
    assert_eq!(
        (&end["runtimeCount"], &end["resultCount"]),
        (&json!(1), &json!(1))
    );
    assert!(!end.contains_key("error") && !end.contains_key("resync"));
    assert_eq!(
        bench.messages(&session).await,
        ["User: look up", "Assistant: Rain falls."]
    );
}

#[tokio::test]
async fn the_completed_narrative_names_the_stored_message() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Text(&["Rain."])]);

    let sink = bench.say(&session, "look").await;

    let told = sink.payload("narrative.completed");
    let stored = bench
        .store
        .messages(&session.id)
        .await
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(told["messageId"], stored.id.as_str());
    assert_eq!(told["content"], stored.content);
    assert_eq!(told["kind"], "story");
}

#[tokio::test]
async fn nothing_is_announced_as_committed_before_the_commit() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Hangs(&["Rain "])]);

    let (sink, handle) = bench.begin(&session, say("look")).await;
    sink.until("narrative.delta").await;

    assert_eq!(bench.publisher.committed(), [""; 0]);
    assert_eq!(bench.messages(&session).await, ["(User: look)"]);
    assert_eq!(
        bench
            .engine
            .execution_status(&session.id)
            .await
            .unwrap()
            .state,
        ExecutionState::Running
    );
    bench.engine.abort(&session.id).await.unwrap();
    handle.finished().await;
}

#[tokio::test]
async fn a_model_error_fails_the_runtime_and_keeps_the_players_input() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Error(ErrorKind::Unauthorized)]);

    let sink = bench.say(&session, "look up").await;

    let failed = sink.payload("runtime.failed");
    assert_eq!(failed["error"], "model says unauthorized");
    assert_eq!(failed["errorKind"], "unauthorized");
    assert_eq!(
        failed["failureTarget"],
        json!({ "provider": "scripted", "model": "m-1" })
    );
    assert_eq!(failed["stopReason"], "model-error");
    let end = sink.payload("execution.completed");
    assert_eq!(end["committed"], false);
    assert_eq!(end["error"], "model says unauthorized");
    assert!(!end.contains_key("abortReason"));
    assert_eq!(bench.messages(&session).await, ["(User: look up)"]);
    assert_eq!(bench.publisher.committed(), [""; 0]);
}

#[tokio::test]
async fn the_next_turn_reads_committed_history_and_the_players_text_last() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([
        Say::Text(&["Rain."]),
        Say::Error(ErrorKind::BadRequest),
        Say::Text(&["Sun."]),
    ]);

    bench.say(&session, "first").await;
    bench.say(&session, "lost").await;
    bench.say(&session, "third").await;

    let requests = bench.gateway.requests.lock().unwrap();
    let texts: Vec<String> = requests[2]
        .messages
        .iter()
        .skip(1)
        .map(|m| format!("{m:?}"))
        .collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[0].contains("first") && texts[1].contains("Rain.") && texts[2].contains("third"));
}

#[tokio::test]
async fn a_failed_publish_is_traced_then_resets_and_undoes_nothing() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    let set = (
        "plugin_data_set",
        r#"{"namespace":"n","key":"k","value":1}"#,
    );
    bench
        .gateway
        .says([Say::Calls("", vec![set]), Say::Text(&["Rain."])]);
    bench.publisher.refuses.lock().unwrap().insert(1);

    let sink = bench.say(&session, "look").await;

    let end = sink.payload("execution.completed");
    assert_eq!(
        (&end["committed"], &end["resync"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(bench.messages(&session).await.len(), 2);
    assert_eq!(
        bench.publisher.committed(),
        ["plugin-data.changed"],
        "the rest is tried all the same"
    );
    assert_eq!(
        *bench.publisher.invalidations.lock().unwrap(),
        [Invalidation::PublishFailed]
    );
    let trace = bench.engine.traces(&session.id, None).await.unwrap().items;
    let failed = trace
        .iter()
        .find(|event| event.kind == "commit.fanout.failed")
        .unwrap();
    assert_eq!(failed.payload["failedCount"], 1);
    assert_eq!(failed.payload["totalCount"], 2);
    assert_eq!(failed.payload["errors"], json!(["publish 1 failed"]));
    assert!(!sink.kinds().contains(&"commit.fanout.failed"));
}

#[tokio::test]
async fn two_turns_of_one_session_never_overlap() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench
        .gateway
        .says([Say::Text(&["a", "b", "c"]), Say::Text(&["d"])]);

    let (first, one) = bench.begin(&session, say("one")).await;
    let (second, two) = bench.begin(&session, say("two")).await;
    one.finished().await;
    two.finished().await;

    let ended = first.payload_time("narrative.completed");
    assert!(second.payload_time("execution.started") > ended);
    let messages = bench.messages(&session).await;
    assert_eq!(
        messages,
        ["User: one", "Assistant: abc", "User: two", "Assistant: d"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_action_whose_session_is_not_free_in_time_is_refused_as_busy() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Hangs(&["Rain "])]);
    let (first, one) = bench.begin(&session, say("one")).await;
    first.until("narrative.delta").await;

    let second = bench.say(&session, "two").await;

    assert_eq!(second.kinds(), ["error.occurred"]);
    let refusal = second.payload("error.occurred");
    assert_eq!(refusal["code"], "session_busy");
    assert_eq!(refusal["message"], "Session is busy, please retry");
    assert_eq!(
        bench.messages(&session).await,
        ["(User: one)"],
        "the refused input is not stored"
    );
    bench.engine.abort(&session.id).await.unwrap();
    one.finished().await;
}

#[tokio::test]
async fn a_turn_goes_on_and_commits_when_nobody_listens() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Text(&["Rain."])]);

    let (sink, handle) = bench.begin(&session, say("look")).await;
    drop(sink);
    drop(handle);
    bench.engine.inner.tasks.close();
    bench.engine.inner.tasks.wait().await;

    assert_eq!(
        bench.messages(&session).await,
        ["User: look", "Assistant: Rain."]
    );
    let status = bench.engine.execution_status(&session.id).await.unwrap();
    assert_eq!(status.state, ExecutionState::Completed);
    assert_eq!(status.retry, None);
}

#[tokio::test]
async fn a_retried_turn_has_no_player_input_and_counts() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Text(&["Rain."])]);

    bench.play(&session, Action::RetryTurn).await;

    assert_eq!(bench.messages(&session).await, ["Assistant: Rain."]);
    assert!(bench.gateway.last_messages()[0].contains("Continue the story."));
    assert_eq!(
        bench
            .engine
            .session(&session.id)
            .await
            .unwrap()
            .completed_player_turns,
        1
    );
}

#[tokio::test]
async fn the_view_is_read_after_its_cursor() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Text(&["Rain."])]);
    bench.say(&session, "look").await;

    let view = bench.engine.view(&session.id).await.unwrap();

    assert_eq!(
        view.event_cursor,
        format!("e:{}", bench.publisher.kinds().len())
    );
    assert_eq!(view.messages.len(), 2);
    assert_eq!(view.messages_cursor, None);
    assert_eq!(view.execution.state, ExecutionState::Completed);
    let steps: Vec<_> = view.steps.iter().map(|step| step.kind.as_str()).collect();
    let lifecycle = [
        "execution.started",
        "runtime.started",
        "runtime.completed",
        "execution.completed",
    ];
    assert_eq!(steps, lifecycle);
    assert_eq!(view.steps[1].payload["stage"], "narrative");
}
