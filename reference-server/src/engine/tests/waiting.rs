//! Runs that wait for the player, operations beside the story, snapshots, forks and interjections.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::engine::EngineError;
use crate::engine::model::Session;
use crate::engine::testing::{Bench, Say, say};
use crate::fixtures::cast;

const STORY: Say = Say::Text(&["Once."]);

fn bench() -> Bench {
    let (cast, opening) = cast::plugins();
    Bench::with([Arc::new(cast), Arc::new(opening)])
}

async fn order(bench: &Bench, session: &Session, runtime: &str, does: Value) {
    let payload = json!({ "runtime": runtime, "does": does });
    bench
        .engine
        .plugin_action(&session.id, &cast::PLUGIN.into(), "order", payload)
        .await
        .unwrap();
}

fn waits(then: &Value) -> Value {
    let schema = json!({ "type": "object", "required": ["name"] });
    json!({ "suspend": { "reason": "Who?", "resumeSchema": schema, "then": then } })
}

/// A turn in which these runtimes suspend, and then do this.
async fn suspend(bench: &Bench, session: &Session, runtimes: &[&str], then: &Value) {
    for runtime in runtimes {
        order(bench, session, runtime, waits(then)).await;
    }
    bench.gateway.says([STORY]);
    bench.say(session, "Go on.").await;
}

async fn open(bench: &Bench, session: &Session) -> Vec<String> {
    let open = bench.engine.suspensions(&session.id).await.unwrap();
    open.into_iter().map(|item| item.id).collect()
}

async fn answer(bench: &Bench, session: &Session, item: &str) -> Result<Value, EngineError> {
    let data = json!({ "name": "Ada" });
    let resumed = bench.engine.resume_suspension(&session.id, item, data);
    resumed.await.map(|resumed| resumed.result)
}

async fn turns(bench: &Bench, session: &Session) -> u64 {
    let session = bench.engine.session(&session.id).await.unwrap();
    session.completed_player_turns
}

async fn keys(bench: &Bench, session: &Session) -> Vec<String> {
    let data = bench
        .engine
        .plugin_data(&session.id, &cast::PLUGIN.into(), "n")
        .await
        .unwrap();
    data.into_iter().map(|datum| datum.key).collect()
}

#[tokio::test]
async fn a_turn_counts_once_when_the_last_of_its_waiting_runs_has_ended() {
    let bench = bench();
    let session = bench.session(&[cast::PLUGIN]).await;
    suspend(&bench, &session, &["first", "second"], &json!({})).await;
    let items = open(&bench, &session).await;
    assert_eq!((items.len(), turns(&bench, &session).await), (2, 0));

    answer(&bench, &session, &items[1]).await.unwrap();
    assert_eq!(turns(&bench, &session).await, 0);
    answer(&bench, &session, &items[0]).await.unwrap();
    assert_eq!(turns(&bench, &session).await, 1);

    let again = answer(&bench, &session, &items[0]).await.unwrap_err();
    assert!(matches!(again, EngineError::SuspensionOver(_)), "{again}");
    assert_eq!(turns(&bench, &session).await, 1);
}

#[tokio::test]
async fn what_a_run_wanted_before_it_suspended_is_written_with_its_end_and_not_before() {
    let bench = bench();
    let session = bench.session(&[cast::PLUGIN]).await;
    let row = |key: &str| json!([{ "namespace": "n", "key": key, "value": 1 }]);
    let mut does = waits(&json!({ "write": row("after") }));
    does["write"] = row("before");
    order(&bench, &session, "first", does).await;
    bench.gateway.says([STORY]);
    bench.say(&session, "Go on.").await;
    assert_eq!(keys(&bench, &session).await, Vec::<String>::new());

    let item = open(&bench, &session).await.remove(0);
    answer(&bench, &session, &item).await.unwrap();

    assert_eq!(keys(&bench, &session).await, ["after", "before"]);
}

#[tokio::test]
async fn a_failed_answer_writes_nothing_and_can_be_given_again() {
    let bench = bench();
    let session = bench.session(&[cast::PLUGIN]).await;
    suspend(&bench, &session, &["first"], &json!({ "fail": "no" })).await;
    let item = open(&bench, &session).await.remove(0);

    let failed = answer(&bench, &session, &item).await.unwrap_err();
    assert_eq!(failed, EngineError::ResumeFailed("no".into()));
    let unfit = bench
        .engine
        .resume_suspension(&session.id, &item, json!({}))
        .await;
    assert!(matches!(unfit, Err(EngineError::Invalid(_))));

    assert_eq!(open(&bench, &session).await, [item]);
    assert_eq!(turns(&bench, &session).await, 0);
}

#[tokio::test]
async fn an_item_is_voided_by_a_newer_one_of_its_runtime_and_by_a_turn_that_counts() {
    let bench = bench();
    let session = bench.session(&[cast::PLUGIN]).await;
    suspend(&bench, &session, &["first", "second"], &json!({})).await;
    let older = open(&bench, &session).await;
    suspend(&bench, &session, &["first"], &json!({})).await;
    let now = open(&bench, &session).await;
    assert_eq!(now.len(), 2);
    assert!(now.contains(&older[1]) && !now.contains(&older[0]));

    bench.gateway.says([STORY]);
    bench.say(&session, "I do not wait.").await;
    assert_eq!(turns(&bench, &session).await, 1);
    let stale = answer(&bench, &session, &older[1]).await.unwrap_err();
    assert!(matches!(stale, EngineError::SuspensionOver(_)), "{stale}");
    assert!(!open(&bench, &session).await.contains(&older[1]));
}

#[tokio::test]
async fn an_answer_that_is_followed_by_another_question_opens_a_new_item_of_the_same_turn() {
    let bench = bench();
    let session = bench.session(&[cast::PLUGIN]).await;
    suspend(&bench, &session, &["first"], &waits(&json!({}))).await;
    let first = bench.engine.suspensions(&session.id).await.unwrap();
    answer(&bench, &session, &first[0].id).await.unwrap();

    let second = bench.engine.suspensions(&session.id).await.unwrap();
    assert_eq!(second.len(), 1);
    assert_ne!(second[0].id, first[0].id);
    assert_eq!(second[0].turn_id, first[0].turn_id);
    assert_eq!(turns(&bench, &session).await, 0);

    answer(&bench, &session, &second[0].id).await.unwrap();
    assert_eq!(turns(&bench, &session).await, 1);
}

#[tokio::test]
async fn a_dropped_item_is_gone_and_cannot_be_dropped_again() {
    let bench = bench();
    let session = bench.session(&[cast::PLUGIN]).await;
    suspend(&bench, &session, &["first"], &json!({})).await;
    let item = open(&bench, &session).await.remove(0);

    bench
        .engine
        .drop_suspension(&session.id, &item)
        .await
        .unwrap();

    assert_eq!(open(&bench, &session).await, Vec::<String>::new());
    let again = bench.engine.drop_suspension(&session.id, &item).await;
    assert!(matches!(again, Err(EngineError::NotFound(_))));
}

#[tokio::test]
async fn an_operation_is_written_as_a_whole_or_not_at_all_and_the_turn_goes_on() {
    let bench = bench();
    let session = bench.session(&[cast::PLUGIN]).await;
    let row =
        |namespace: &str, key: &str| json!({ "namespace": namespace, "key": key, "value": 1 });
    let does = json!({ "operations": [
        [row("n", "lost"), row("_reserved", "k")],
        [row("n", "kept")],
        [row("_reserved", "k")],
    ] });
    order(&bench, &session, "first", does).await;
    bench.gateway.says([STORY]);

    let sink = bench.say(&session, "Go on.").await;

    assert_eq!(keys(&bench, &session).await, ["kept"]);
    assert_eq!(sink.payload("operation.failed")["count"], json!(2));
    assert_eq!(
        sink.payload("execution.completed")["committed"],
        json!(true)
    );
}

#[tokio::test]
async fn a_fork_begins_with_what_its_snapshot_shows_and_not_with_what_came_later() {
    let bench = bench();
    let session = bench.session(&[cast::PLUGIN]).await;
    bench.gateway.says([STORY, STORY]);
    bench.say(&session, "One.").await;
    let taken = bench.engine.take_snapshot(&session.id).await.unwrap();
    bench.say(&session, "Two.").await;

    let forked = bench.engine.fork(&session.id, &taken.id).await.unwrap();

    let child = forked.child.session;
    assert_eq!(child.completed_player_turns, 1);
    assert_eq!(
        bench.messages(&child).await,
        ["User: One.", "Assistant: Once."]
    );
    let kinds: Vec<_> = bench.engine.snapshots(&session.id).await.unwrap();
    let kinds: Vec<_> = kinds.iter().map(|snapshot| snapshot.kind.name()).collect();
    assert_eq!(kinds, ["auto", "manual", "auto", "fork"]);
    let unknown = bench.engine.fork(&session.id, "none").await;
    assert!(matches!(unknown, Err(EngineError::NotFound(_))));
}

#[tokio::test]
async fn a_snapshot_is_taken_after_a_commit_only_where_a_plugin_asks_for_it() {
    let bench = bench();
    let session = bench.session(&[]).await;
    bench.gateway.says([STORY]);
    bench.say(&session, "One.").await;

    assert_eq!(bench.engine.snapshots(&session.id).await.unwrap(), []);
}

#[tokio::test]
async fn an_interjection_is_refused_when_nobody_reads_it_and_goes_with_a_stopped_turn() {
    let bench = bench();
    let session = bench.session(&[]).await;
    let idle = bench.engine.steer(&session.id, "too soon").await;
    assert!(matches!(idle, Err(EngineError::NoRunningTurn(_))));
    bench.gateway.says([Say::Hangs(&["On"])]);
    let (sink, handle) = bench.begin(&session, say("Go on.")).await;
    sink.until("narrative.delta").await;

    bench.engine.steer(&session.id, "Wait!").await.unwrap();
    bench.engine.abort(&session.id).await.unwrap();
    let stopped = bench.engine.steer(&session.id, "too late").await;
    assert!(matches!(stopped, Err(EngineError::SteerTooLate(_))));
    handle.finished().await;
    assert_eq!(bench.messages(&session).await, ["(User: Go on.)"]);
}
