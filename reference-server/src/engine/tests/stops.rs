//! Turns that somebody stops: the player, the end of the server, the end of the session.

use std::sync::Arc;

use crate::engine::EngineError;
use crate::engine::model::ExecutionState;
use crate::engine::testing::{Bench, Say, say};
use crate::store::memory::MemoryStore;

#[tokio::test]
async fn a_player_stop_cuts_the_model_off_and_commits_nothing() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Hangs(&["Rain "])]);
    let (sink, handle) = bench.begin(&session, say("look")).await;
    sink.until("narrative.delta").await;

    let turn = bench.engine.abort(&session.id).await.unwrap();
    handle.finished().await;

    let end = sink.payload("execution.completed");
    assert_eq!(end["abortReason"], "aborted-by-player");
    assert_eq!(end["committed"], false);
    assert!(end.contains_key("error"));
    let failed = sink.payload("runtime.failed");
    assert_eq!(
        (&failed["stopReason"], &failed["turnId"]),
        (&"cancelled".into(), &turn.as_str().into())
    );
    assert_eq!(bench.messages(&session).await, ["(User: look)"]);
    let status = bench.engine.execution_status(&session.id).await.unwrap();
    assert_eq!(status.state, ExecutionState::Failed);
    assert_eq!(status.abort_reason.as_deref(), Some("aborted-by-player"));
    assert_eq!(status.retry.unwrap().kind, "submit_actions");
    let none = bench.engine.abort(&session.id).await;
    assert_eq!(none, Err(EngineError::NoRunningTurn(session.id.clone())));
}

#[tokio::test]
async fn an_action_that_is_stopped_while_it_waits_holds_one_event_and_stores_nothing() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    let guard = bench
        .engine
        .inner
        .locks
        .lock(&session.id, std::time::Duration::from_secs(1))
        .await;
    let (sink, handle) = bench.begin(&session, say("look")).await;

    bench.engine.abort(&session.id).await.unwrap();
    handle.finished().await;
    drop(guard);

    assert_eq!(sink.kinds(), ["execution.completed"]);
    let end = sink.payload("execution.completed");
    assert_eq!(end["abortReason"], "aborted-by-player");
    assert_eq!(end["runtimeCount"], 0);
    assert_eq!(bench.messages(&session).await, [""; 0]);
}

#[tokio::test]
async fn a_shutdown_stops_turns_but_not_in_the_players_name() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Hangs(&["Rain "])]);
    let (sink, handle) = bench.begin(&session, say("look")).await;
    sink.until("narrative.delta").await;

    bench.engine.shutdown().await;
    handle.finished().await;

    let end = sink.payload("execution.completed");
    assert_eq!(end["committed"], false);
    assert_eq!(end["abortReason"], "server-shutdown");
    let refused = bench.engine.queue_job(&session, new_job()).await;
    assert_eq!(refused, Err(EngineError::ShuttingDown));
}

fn new_job() -> crate::engine::jobs::NewJob {
    crate::engine::jobs::NewJob {
        plugin_id: "story".into(),
        runtime_id: "story".into(),
        payload: serde_json::Value::Null,
        source_turn_id: None,
    }
}

#[tokio::test]
async fn an_execution_that_died_with_its_process_is_interrupted() {
    let store = Arc::new(MemoryStore::new());
    let first = Bench::on(store.clone(), []);
    let session = first.session(&[]).await;
    first.gateway.says([Say::Hangs(&["Rain "])]);
    let (sink, _handle) = first.begin(&session, say("look")).await;
    sink.until("narrative.delta").await;

    first.engine.kill().await;
    let second = Bench::on(store, []);
    second.engine.resume().await.unwrap();

    assert!(!sink.kinds().contains(&"execution.completed"));
    let status = second.engine.execution_status(&session.id).await.unwrap();
    assert_eq!(status.state, ExecutionState::Interrupted);
    let retry = status.retry.unwrap();
    assert_eq!(retry.kind, "submit_actions");
    assert_eq!(retry.payload["inputMessageId"], "msg-1");
    assert_eq!(second.messages(&session).await, ["(User: look)"]);
}

#[tokio::test]
async fn a_deleted_session_stops_its_turn_and_keeps_nothing_of_it() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Hangs(&["Rain "])]);
    let (sink, handle) = bench.begin(&session, say("look")).await;
    sink.until("narrative.delta").await;

    bench.engine.delete_session(&session.id).await.unwrap();
    handle.finished().await;

    assert_eq!(sink.payload("execution.completed")["committed"], false);
    let gone = bench.engine.execution_status(&session.id).await;
    assert_eq!(gone, Err(EngineError::SessionNotFound(session.id.clone())));
}
