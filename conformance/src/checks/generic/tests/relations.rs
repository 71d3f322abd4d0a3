//! Demands on two places of one conversation.

use serde_json::{Value, json};

use super::{action, counts};
use crate::transcript::testing::Script;

fn read(script: Script, path: &str, body: &Value) -> Script {
    script
        .get(path)
        .answers(200, "application/json")
        .chunk(&body.to_string())
        .ends()
}

/// A list that was read twice.
fn twice(before: &Value, after: &Value) -> crate::transcript::Transcript {
    let script = read(Script::new().label("before"), "/list", before);
    read(script.label("after"), "/list", after).transcript()
}

fn relate(holds: &Value) -> Value {
    let side = |label: &str| json!({"label": label, "path": ["/list"], "at": "/items/*/id"});
    json!({"relate": {"these": side("before"), "those": side("after"), "holds": holds}})
}

fn ids(ids: &[u32]) -> Value {
    let items: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    json!({ "items": items })
}

#[test]
fn two_lists_are_compared_as_the_rule_says() {
    let verdict = |holds: Value, before: &[u32], after: &[u32]| {
        counts(relate(&holds), &twice(&ids(before), &ids(after)))
    };
    for (holds, before, after, right) in [
        ("equal", vec![1, 2], vec![1, 2], true),
        ("equal", vec![1, 2], vec![2, 1], false),
        ("equal", vec![], vec![1], false),
        ("same_set", vec![1, 2], vec![2, 1], true),
        ("same_set", vec![1, 1], vec![1, 2], false),
        ("different", vec![1], vec![2], true),
        ("different", vec![1], vec![1], false),
        ("within", vec![2], vec![1, 2], true),
        ("within", vec![3], vec![], false),
        ("apart", vec![3], vec![1, 2], true),
        ("apart", vec![1], vec![1, 2], false),
        ("prefix", vec![1], vec![1, 2], true),
        ("prefix", vec![2], vec![1, 2], false),
        ("suffix", vec![2], vec![1, 2], true),
        ("suffix", vec![1, 2, 3], vec![2, 3], false),
        ("fewer", vec![1], vec![1, 2], true),
        ("fewer", vec![1], vec![1], false),
    ] {
        let expected = (1, usize::from(!right));
        assert_eq!(verdict(json!(holds), &before, &after), expected, "{holds}");
    }
    assert_eq!(verdict(json!({"grows_by": 2}), &[5], &[7]), (1, 0));
    assert_eq!(verdict(json!({"grows_by": 2}), &[5], &[5]), (1, 1));
    assert_eq!(verdict(json!("within"), &[], &[1]), (0, 0));
    assert_eq!(verdict(json!("equal"), &[], &[]), (0, 0));
}

#[test]
fn without_one_of_the_sides_nothing_is_judged() {
    let only_before = read(Script::new().label("before"), "/list", &ids(&[1])).transcript();
    assert_eq!(counts(relate(&json!("equal")), &only_before), (0, 0));
}

#[test]
fn values_are_chosen_counted_and_taken_from_frames() {
    let told = action()
        .data(&json!({"type": "narrative.completed", "payload": {"messageId": 2}}))
        .ends();
    let list = json!([{"id": 1, "role": "user"}, {"id": 2, "role": "assistant"}]);
    let transcript = read(told, "/messages", &list).transcript();
    let frame = json!({"type": ["narrative.completed"], "at": "/payload/messageId"});
    let by_role = |role: &str| json!({"path": ["/messages"], "at": "/*", "item": {"properties": {"role": {"const": role}}}, "value": "/id"});
    let rule =
        |those: Value| json!({"relate": {"these": frame, "those": those, "holds": "within"}});
    assert_eq!(counts(rule(by_role("assistant")), &transcript), (1, 0));
    assert_eq!(counts(rule(by_role("user")), &transcript), (1, 1));
    let counted = json!({"path": ["/messages"], "at": "/*", "count": true});
    let number = json!({"path": ["/messages"], "at": "/1/id", "only": "last"});
    let rule = json!({"relate": {"these": counted, "those": number, "holds": "equal"}});
    assert_eq!(counts(rule, &transcript), (1, 0));
}

fn run(kind: &str, run: u32) -> Value {
    json!({"type": kind, "payload": {"runId": run}})
}

fn pairs(each: &str, with: &str, count: &Value, side: &str) -> Value {
    let by = json!([["/payload/runId", "/payload/runId"]]);
    json!({"pairs": {"each": {"type": [each]}, "with": {"type": [with]}, "by": by, "count": count, "side": side}})
}

#[test]
fn frames_that_belong_together_are_counted_on_their_side() {
    let whole = action()
        .data(&run("runtime.started", 1))
        .data(&run("runtime.started", 2))
        .data(&run("runtime.completed", 1))
        .ends()
        .transcript();
    let after = pairs("runtime.started", "runtime.completed", &json!(1), "after");
    assert_eq!(counts(after, &whole), (2, 1));
    let before = pairs("runtime.completed", "runtime.started", &json!(1), "before");
    assert_eq!(counts(before, &whole), (1, 0));
    let wrong = pairs("runtime.started", "runtime.completed", &json!(1), "before");
    assert_eq!(counts(wrong, &whole), (2, 2));
    let next = pairs("runtime.started", "runtime.*", &json!(0), "next");
    assert_eq!(counts(next, &whole), (2, 0));
    let around = pairs("runtime.completed", "runtime.*", &json!(1), "around");
    assert_eq!(counts(around, &whole), (1, 0));
}

#[test]
fn what_may_still_come_is_not_missing() {
    let open = action()
        .data(&run("runtime.started", 1))
        .closes()
        .transcript();
    let after = pairs("runtime.started", "runtime.completed", &json!(1), "after");
    assert_eq!(counts(after, &open), (0, 0));
}

#[test]
fn a_copy_on_another_stream_is_looked_for_where_there_is_one() {
    let rule = json!({"pairs": {
        "each": {"stream": ["action"], "type": ["runtime.deferred"]},
        "with": {"stream": ["subscription"], "type": ["runtime.deferred"]},
        "by": [["/payload/runId", "/payload/runId"]],
        "count": 1,
        "side": "elsewhere",
    }});
    let here = |id: u32| action().data(&run("runtime.deferred", id)).ends();
    assert_eq!(counts(rule.clone(), &here(1).transcript()), (0, 0));
    let both = |id: u32| {
        here(1)
            .get("/api/events/stream?sessionId=s1")
            .answers(200, "text/event-stream")
            .event("runtime.deferred", &run("runtime.deferred", id))
            .closes()
            .transcript()
    };
    assert_eq!(counts(rule.clone(), &both(1)), (1, 0));
    assert_eq!(counts(rule, &both(2)), (1, 1));
}
