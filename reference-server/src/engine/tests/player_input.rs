//! The player's input: stored once, adopted by the turn that commits it, taken up again after a failure.

use std::sync::Arc;

use crate::engine::actions::{Action, ActionRequest, PlayerAction};
use crate::engine::ids::TurnId;
use crate::engine::model::{Object, Session};
use crate::engine::testing::{Bench, RecordingSink, Say, request};
use crate::engine::{EngineError, ports::TurnSink};
use crate::gateway::ErrorKind;

fn say_as(id: &str, text: &str) -> Action {
    Action::Submit {
        actions: vec![PlayerAction::Say(text.to_owned())],
        input_message_id: Some(id.into()),
    }
}

async fn recover(
    bench: &Bench,
    session: &Session,
    action: Action,
    from: Option<TurnId>,
) -> Arc<RecordingSink> {
    let sink = Arc::new(RecordingSink::default());
    let request = ActionRequest {
        recover_from: from,
        ..request(&session.id, action)
    };
    let handle = bench
        .engine
        .begin(request, sink.clone() as Arc<dyn TurnSink>)
        .await
        .unwrap();
    handle.finished().await;
    sink
}

#[tokio::test]
async fn an_input_is_stored_under_the_id_that_the_client_gave_it() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Text(&["Rain."])]);

    bench.play(&session, say_as("mine", "look")).await;

    let stored = bench.store.message(&"mine".into()).await.unwrap().unwrap();
    assert_eq!(stored.turn_id.unwrap().as_str(), "turn-1");
    assert_eq!(stored.actions.unwrap()[0]["type"], "say");
}

#[tokio::test]
async fn a_failed_turns_input_is_adopted_with_its_first_time_and_without_a_copy() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench
        .gateway
        .says([Say::Error(ErrorKind::BadRequest), Say::Text(&["Rain."])]);
    bench.play(&session, say_as("mine", "look")).await;
    let first = bench.store.message(&"mine".into()).await.unwrap().unwrap();
    let status = bench.engine.execution_status(&session.id).await.unwrap();

    let sink = recover(&bench, &session, say_as("mine", "look"), status.turn_id).await;

    assert_eq!(sink.payload("execution.completed")["committed"], true);
    assert_eq!(
        bench.messages(&session).await,
        ["User: look", "Assistant: Rain."]
    );
    let adopted = bench.store.message(&"mine".into()).await.unwrap().unwrap();
    assert_eq!(adopted.created_at, first.created_at);
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
async fn an_id_of_another_turn_content_or_session_is_refused() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    let other = bench.session(&[]).await;
    bench
        .gateway
        .says([Say::Text(&["Rain."]), Say::Error(ErrorKind::BadRequest)]);
    bench.play(&session, say_as("done", "look")).await;
    bench.play(&session, say_as("open", "look")).await;

    for (session, action) in [
        (&session, say_as("done", "look")),
        (&session, say_as("open", "listen")),
        (&other, say_as("open", "look")),
    ] {
        let sink = bench.play(session, action).await;
        assert_eq!(sink.kinds(), ["error.occurred"]);
    }
    assert_eq!(bench.messages(&other).await, [""; 0]);
    assert_eq!(bench.messages(&session).await.len(), 3);
}

#[tokio::test]
async fn two_inputs_with_the_same_text_are_two_inputs() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Text(&["a"]), Say::Text(&["b"])]);

    bench.say(&session, "look").await;
    bench.say(&session, "look").await;

    assert_eq!(bench.messages(&session).await.len(), 4);
    assert_eq!(
        bench
            .engine
            .session(&session.id)
            .await
            .unwrap()
            .completed_player_turns,
        2
    );
}

#[tokio::test]
async fn only_the_latest_unfinished_turn_is_taken_up_and_only_as_it_was() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench
        .gateway
        .says([Say::Error(ErrorKind::BadRequest), Say::Text(&["Rain."])]);
    bench.play(&session, say_as("mine", "look")).await;
    let failed = bench
        .engine
        .execution_status(&session.id)
        .await
        .unwrap()
        .turn_id;

    for (action, from) in [
        (say_as("mine", "listen"), failed.clone()),
        (Action::RetryTurn, failed.clone()),
        (say_as("mine", "look"), Some("another".into())),
    ] {
        let sink = recover(&bench, &session, action, from).await;
        assert_eq!(sink.kinds(), ["error.occurred"]);
    }
    recover(&bench, &session, say_as("mine", "look"), failed.clone()).await;
    let again = recover(&bench, &session, say_as("mine", "look"), failed).await;
    assert_eq!(
        again.kinds(),
        ["error.occurred"],
        "a second recovery finds nothing unfinished"
    );
}

#[tokio::test]
async fn an_answer_to_no_interaction_is_refused_and_stores_nothing() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    let action = Action::Submit {
        actions: vec![PlayerAction::Interaction(Object::new())],
        input_message_id: None,
    };

    let sink = bench.play(&session, action).await;

    assert_eq!(sink.kinds(), ["error.occurred"]);
    assert_eq!(
        sink.payload("error.occurred")["code"],
        "invalid_interaction_submission"
    );
    assert_eq!(bench.messages(&session).await, [""; 0]);
}

#[tokio::test]
async fn what_can_be_refused_before_the_stream_is() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    let empty = Action::Submit {
        actions: vec![],
        input_message_id: None,
    };
    let sink = || Arc::new(RecordingSink::default()) as Arc<dyn TurnSink>;

    let invalid = bench
        .engine
        .begin(request(&session.id, empty), sink())
        .await
        .unwrap_err();
    assert!(matches!(invalid, EngineError::Invalid(_)), "{invalid:?}");

    let unknown = bench
        .engine
        .begin(request(&"nobody".into(), Action::RetryTurn), sink())
        .await
        .unwrap_err();
    assert_eq!(unknown, EngineError::SessionNotFound("nobody".into()));

    let new = crate::engine::sessions::NewSession {
        plugins: Some(vec![]),
        ..Default::default()
    };
    let bare = bench.engine.create_session(new).await.unwrap().session;
    let open = Action::StartSession { lore: None };
    let no_plugins = bench
        .engine
        .begin(request(&bare.id, open), sink())
        .await
        .unwrap_err();
    assert_eq!(no_plugins, EngineError::NoActivePlugins(bare.id));

    bench
        .engine
        .set_status(&session.id, crate::engine::model::SessionStatus::Paused)
        .await
        .unwrap();
    let paused = bench
        .engine
        .begin(request(&session.id, Action::RetryTurn), sink())
        .await
        .unwrap_err();
    assert_eq!(paused, EngineError::SessionNotActive(session.id));
}
