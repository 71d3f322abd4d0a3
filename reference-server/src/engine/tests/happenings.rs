//! What is told of a turn while it runs, and told again from what is stored.

use crate::engine::happening::{Happened, Happening};
use crate::engine::history::INTERRUPTED;
use crate::engine::model::{Session, ToolOutcome};
use crate::engine::testing::{Bench, Say, say};
use crate::gateway::ErrorKind;

const BELL: (&str, &str) = ("emit-event", r#"{"topic":"bell","data":{"rings":3}}"#);
const NONSENSE: (&str, &str) = ("no-such-tool", "{}");

/// A word for each thing that happened.
fn words(happenings: &[Happening]) -> Vec<String> {
    let word = |happening: &Happening| match &happening.what {
        Happened::TurnStarted { input_chars, .. } => format!("started({input_chars})"),
        Happened::Text { delta } => format!("text({delta})"),
        Happened::TextVoided { reason, .. } => format!("voided({reason})"),
        Happened::ToolRequested(record) => format!("requested({})", record.name),
        Happened::ToolStarted(call) => format!("working({})", call.name),
        Happened::ToolEnded(record) => {
            let end = record.end.as_ref().unwrap();
            format!("ended({}, {:?})", record.name, end.outcome)
        }
        Happened::Usage(_) => "usage".to_owned(),
        Happened::MessageCompleted(message) => format!("message({})", message.content),
        Happened::RuntimeFailed { .. } => "failed".to_owned(),
        Happened::TurnEnded(row) => format!("over({})", row.end.as_ref().unwrap().committed),
        other => format!("{other:?}"),
    };
    happenings.iter().map(word).collect()
}

fn told(bench: &Bench) -> Vec<Happening> {
    let happenings = bench.publisher.happenings.lock().unwrap();
    happenings.iter().map(|told| (**told).clone()).collect()
}

fn facts(told: Vec<Happening>) -> Vec<Happening> {
    let is_fact = |told: &Happening| told.what.is_fact();
    told.into_iter().filter(is_fact).collect()
}

async fn history(bench: &Bench, session: &Session) -> Vec<Happening> {
    bench.engine.history(&session.id).await.unwrap()
}

#[tokio::test]
async fn a_turn_with_tools_is_told_step_by_step_and_its_facts_once_more() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([
        Say::Calls("hm", vec![BELL, NONSENSE]),
        Say::Text(&["A ", "bell."]),
    ]);

    bench.say(&session, "listen").await;

    assert_eq!(
        words(&told(&bench)),
        [
            "started(6)",
            "text(hm)",
            "usage",
            "voided(draft)",
            "requested(emit-event)",
            "requested(no-such-tool)",
            "working(emit-event)",
            "ended(emit-event, Completed)",
            "working(no-such-tool)",
            "ended(no-such-tool, Unavailable)",
            "text(A )",
            "text(bell.)",
            "usage",
            "message(A bell.)",
            "over(true)",
        ]
    );
    assert_eq!(history(&bench, &session).await, facts(told(&bench)));
}

#[tokio::test]
async fn a_turn_that_failed_is_told_without_a_message() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Error(ErrorKind::BadRequest)]);

    bench.say(&session, "hello").await;

    assert_eq!(
        words(&told(&bench)),
        ["started(5)", "failed", "over(false)"]
    );
    assert_eq!(history(&bench, &session).await, facts(told(&bench)));
}

#[tokio::test]
async fn a_stopped_turn_ends_the_call_that_was_asked_for() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Hangs(&["It "])]);
    let (sink, handle) = bench.begin(&session, say("go")).await;
    sink.until("narrative.delta").await;

    bench.engine.abort(&session.id).await.unwrap();
    handle.finished().await;

    assert_eq!(
        words(&told(&bench)),
        ["started(2)", "text(It )", "failed", "over(false)"]
    );
    assert_eq!(history(&bench, &session).await, facts(told(&bench)));
}

#[tokio::test]
async fn a_turn_that_nobody_runs_any_more_was_interrupted() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Hangs(&["It "])]);
    let (sink, _handle) = bench.begin(&session, say("go")).await;
    sink.until("narrative.delta").await;
    let running = words(&history(&bench, &session).await);

    bench.engine.kill().await;
    let after = history(&bench, &session).await;

    assert_eq!(running, ["started(2)"]);
    assert_eq!(words(&after), ["started(2)", "over(false)"]);
    let Happened::TurnEnded(row) = &after[1].what else {
        panic!("no end")
    };
    let end = row.end.as_ref().unwrap();
    assert_eq!(end.abort_reason.as_deref(), Some(INTERRUPTED));
}

#[tokio::test]
async fn the_outcome_of_a_call_names_what_went_wrong() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([
        Say::Calls("", vec![("emit-event", "{")]),
        Say::Text(&["Never mind."]),
    ]);

    bench.say(&session, "listen").await;

    let facts = bench.engine.facts(&session.id).await.unwrap();
    let end = facts.tools[0].end.as_ref().unwrap();
    assert_eq!(end.outcome, ToolOutcome::Failed);
    assert_eq!(end.error.as_deref(), Some("invalid-input"));
    assert_eq!(facts.tools[0].arguments, "{");
}
