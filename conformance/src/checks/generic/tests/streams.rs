//! Demands on whole streams.

use serde_json::{Value, json};

use super::{action, counts, only_fault, subscription};
use crate::transcript::{End, TargetFact};

#[test]
fn first_and_last_frames_are_judged_where_they_show() {
    let first = || json!({"streams": {"first": ["system.connected"]}});
    let last = || json!({"streams": {"last": ["execution.completed"]}});
    let connected = subscription()
        .chunk(": hi\n\n")
        .event("system.connected", &json!({}))
        .closes()
        .transcript();
    assert_eq!(counts(first(), &connected), (1, 0));
    assert_eq!(counts(last(), &connected), (0, 0));
    let heartbeat = subscription()
        .event("system.heartbeat", &json!({}))
        .closes()
        .transcript();
    assert_eq!(counts(first(), &heartbeat), (1, 1));
    assert_eq!(
        counts(first(), &subscription().closes().transcript()),
        (0, 0)
    );
    assert_eq!(
        counts(first(), &subscription().wait_ms(1500).closes().transcript()),
        (1, 1)
    );
    assert_eq!(counts(first(), &subscription().ends().transcript()), (1, 1));
    let done = action()
        .data(&json!({"type": "a"}))
        .data(&json!({"type": "execution.completed"}));
    assert_eq!(counts(last(), &done.ends().transcript()), (1, 0));
    let early = action()
        .data(&json!({"type": "execution.completed"}))
        .data(&json!({"type": "a"}));
    assert_eq!(counts(last(), &early.ends().transcript()), (1, 1));
    assert_eq!(counts(last(), &action().ends().transcript()), (1, 1));
}

#[test]
fn counts_accuse_absence_only_where_it_shows() {
    let count = |wanted: Value| json!({"streams": {"count": {"execution.*": wanted}}});
    let frames = |n: usize| {
        (0..n).fold(action(), |script, _| {
            script.data(&json!({"type": "execution.completed"}))
        })
    };
    assert_eq!(
        counts(count(json!(1)), &frames(1).ends().transcript()),
        (1, 0)
    );
    assert_eq!(
        counts(count(json!(1)), &frames(0).ends().transcript()),
        (1, 1)
    );
    assert_eq!(
        counts(count(json!(1)), &frames(0).closes().transcript()),
        (0, 0)
    );
    assert_eq!(
        counts(count(json!(1)), &frames(2).closes().transcript()),
        (1, 1)
    );
    assert_eq!(
        counts(count(json!(">=2")), &frames(3).closes().transcript()),
        (1, 0)
    );
    let quiet = subscription()
        .event("system.connected", &json!({}))
        .closes()
        .transcript();
    let heartbeats = json!({"streams": {"count": {"system.heartbeat": ">=1"}}});
    assert_eq!(
        only_fault(heartbeats, &quiet).0,
        ">=1 frame(s) of type system.heartbeat, not 0"
    );
}

#[test]
fn only_and_order_judge_the_types_of_a_stream() {
    let transcript = action()
        .data(&json!({"type": "a"}))
        .data(&json!({"type": "b"}))
        .data(&json!({"type": "a"}))
        .ends()
        .transcript();
    let streams = |demand: Value| json!({"streams": demand});
    assert_eq!(
        counts(streams(json!({"only": ["a", "b"]})), &transcript),
        (1, 0)
    );
    assert_eq!(counts(streams(json!({"only": ["a"]})), &transcript), (1, 1));
    assert_eq!(
        counts(streams(json!({"order": [["a", "b"]]})), &transcript),
        (1, 1)
    );
    assert_eq!(
        counts(streams(json!({"order": [["a", "c"]]})), &transcript),
        (0, 0)
    );
    let ordered = action()
        .data(&json!({"type": "a"}))
        .data(&json!({"type": "b"}))
        .ends()
        .transcript();
    assert_eq!(
        counts(streams(json!({"order": [["a", "b"]]})), &ordered),
        (1, 0)
    );
}

#[test]
fn periods_are_judged_by_their_mean_and_by_silence() {
    let period = || json!({"streams": {"period": {"system.heartbeat": {"every_ms": 30_000, "within_ms": 2000}}}});
    let beats = |gaps: &[u64]| {
        gaps.iter()
            .fold(subscription().scaled(0.01), |script, gap| {
                script.wait_ms(*gap).event("system.heartbeat", &json!({}))
            })
    };
    assert_eq!(
        counts(period(), &beats(&[300, 310, 330]).closes().transcript()),
        (1, 0)
    );
    assert_eq!(
        counts(period(), &beats(&[450, 450, 450]).closes().transcript()),
        (1, 1)
    );
    assert_eq!(
        counts(period(), &beats(&[100, 100, 100]).closes().transcript()),
        (1, 1)
    );
    assert_eq!(
        counts(period(), &beats(&[300, 300]).closes().transcript()),
        (0, 0)
    );
    assert_eq!(
        counts(period(), &beats(&[300]).wait_ms(1500).closes().transcript()),
        (1, 1)
    );
    let comments = json!({"streams": {"period": {":": {"every_ms": 100}}}});
    let pings = (0..4).fold(subscription(), |script, _| {
        script.wait_ms(100).chunk(": ping\n\n")
    });
    assert_eq!(counts(comments, &pings.closes().transcript()), (1, 0));
}

#[test]
fn ends_judges_what_the_target_did() {
    let ends = || json!({"streams": {"ends": true}});
    assert_eq!(counts(ends(), &action().ends().transcript()), (1, 0));
    assert_eq!(
        counts(ends(), &action().end(End::TimedOut).transcript()),
        (1, 1)
    );
    assert_eq!(counts(ends(), &action().breaks().transcript()), (1, 1));
    assert_eq!(counts(ends(), &action().closes().transcript()), (0, 0));
    assert_eq!(
        counts(
            ends(),
            &action().target(TargetFact::Killed).breaks().transcript()
        ),
        (0, 0)
    );
}
