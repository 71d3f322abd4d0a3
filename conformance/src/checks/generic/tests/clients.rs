//! What a client asks for, and what it shows.

use serde_json::json;

use super::*;

fn reports(states: &[(&str, Value)]) -> Transcript {
    let states = states.iter();
    let script = states.fold(Script::new(), |script, (label, state)| {
        script.label(label).reports(json!({ "state": state }))
    });
    script.transcript()
}

#[test]
fn the_same_is_shown_under_labels_when_it_is() {
    let rule = json!({"states": {"label": ["a", "b"], "same": ["/n"]}});
    let alike = reports(&[("a", json!({"n": 1})), ("b", json!({"n": 1}))]);
    assert_eq!(counts(rule.clone(), &alike), (1, 0));
    let unlike = reports(&[("a", json!({"n": 1})), ("b", json!({"n": 2}))]);
    assert_eq!(counts(rule.clone(), &unlike), (1, 1));
    let untold = reports(&[("a", json!({"n": 1})), ("b", json!({}))]);
    assert_eq!(counts(rule, &untold), (0, 0));
}

fn asked(ids: &[&str]) -> Transcript {
    let ids = ids.iter();
    let script = ids.fold(Script::new(), |script, id| {
        let body = json!({ "requestId": id });
        script
            .label("act/again")
            .post("/api/actions", &body)
            .answers(200, "text/event-stream")
            .ends()
    });
    script.transcript()
}

#[test]
fn texts_that_are_to_be_distinct_are_there_and_differ() {
    let rule = json!({"asked": {"label": ["act*"], "distinct": "/body/requestId"}});
    assert_eq!(counts(rule.clone(), &asked(&["a"])), (0, 0));
    assert_eq!(counts(rule.clone(), &asked(&["a", "b"])), (1, 0));
    assert_eq!(counts(rule.clone(), &asked(&["a", "a"])), (1, 1));
    assert_eq!(counts(rule, &asked(&["", "b"])), (2, 1));
}

#[test]
fn a_number_of_requests_may_have_an_upper_bound() {
    let rule = json!({"asked": {"label": ["act*"], "count": "<=1"}});
    assert_eq!(counts(rule.clone(), &asked(&["a"])), (1, 0));
    let two = Script::new()
        .label("act")
        .post("/x", &json!({}))
        .answers(200, "")
        .ends()
        .post("/x", &json!({}))
        .answers(200, "")
        .ends()
        .transcript();
    assert_eq!(counts(rule, &two), (1, 1));
}

#[test]
fn what_is_to_be_constant_is_one_in_all_requests_of_an_act() {
    let rule = json!({"asked": {"label": ["act*"], "constant": ["/body/requestId"]}});
    assert_eq!(counts(rule.clone(), &asked(&["a"])), (0, 0));
    assert_eq!(counts(rule.clone(), &asked(&["a", "a"])), (1, 0));
    assert_eq!(counts(rule, &asked(&["a", "b", "a"])), (2, 1));
}

#[test]
fn a_client_that_is_to_stay_does_not_leave() {
    let rule = |left: bool| json!({"asked": {"label": ["act*"], "left": left}});
    let stayed = asked(&["a"]);
    assert_eq!(counts(rule(false), &stayed), (1, 0));
    assert_eq!(counts(rule(true), &stayed), (1, 1));
    let left = Script::new()
        .label("act")
        .post("/x", &json!({}))
        .answers(200, "text/event-stream")
        .breaks()
        .transcript();
    assert_eq!(counts(rule(false), &left), (1, 1));
    assert_eq!(counts(rule(true), &left), (1, 0));
}
