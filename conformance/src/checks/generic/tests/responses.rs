//! Demands on HTTP responses.

use serde_json::{Value, json};

use super::{counts, only_fault};
use crate::transcript::{End, ResponseHead, TargetFact, testing::Script};

#[test]
fn labels_select_exchanges_by_name_or_prefix() {
    let transcript = Script::new()
        .label("resume-old")
        .get("/api/health")
        .answers_json(200, &json!({}))
        .label("other")
        .get("/api/health")
        .answers_json(500, &json!({}))
        .transcript();
    let status = |label: &str| json!({"responses": {"label": label, "status": [200]}});
    assert_eq!(counts(status("resume-old"), &transcript), (1, 0));
    assert_eq!(counts(status("resume-*"), &transcript), (1, 0));
    assert_eq!(counts(status("*"), &transcript), (2, 1));
    assert_eq!(counts(status("resume"), &transcript), (0, 0));
}

#[test]
fn statuses_are_numbers_or_classes() {
    let transcript = Script::new()
        .get("/x")
        .answers_json(404, &json!({"code": "no"}))
        .transcript();
    let status = |wanted: Value| json!({"responses": {"status": wanted}});
    assert_eq!(counts(status(json!([404])), &transcript), (1, 0));
    assert_eq!(counts(status(json!(["4xx"])), &transcript), (1, 0));
    let (expected, got) = only_fault(status(json!([200, "5xx"])), &transcript);
    assert_eq!(
        (expected.as_str(), got.as_str()),
        ("status 200 or 5xx", "status 404: {\"code\":\"no\"}")
    );
}

#[test]
fn responses_are_judged_by_type_header_body_and_lines() {
    let head = ResponseHead {
        status: 200,
        headers: vec![
            (
                "Content-Type".into(),
                "Application/JSON; charset=utf-8".into(),
            ),
            ("X-Id".into(), "a7".into()),
        ],
    };
    let transcript = Script::new()
        .get("/api/sessions/s%201/view?n=7")
        .head(head)
        .chunk("{\"id\":\"s 1\",\n\"n\":7}")
        .ends()
        .transcript();
    let judge = |demand: Value| {
        let mut responses = json!({"path": ["/api/sessions/:id/view"]});
        responses
            .as_object_mut()
            .unwrap()
            .extend(demand.as_object().unwrap().clone());
        counts(json!({"responses": responses}), &transcript)
    };
    for good in [
        json!({"content_type": ["application/json"]}),
        json!({"has_header": ["x-id"]}),
        json!({"header": {"x-id": "^a[0-9]$"}}),
        json!({"body": {"required": ["id"]}}),
        json!({"equal": [["/id", "path:id"], ["/n", "request:n"]]}),
        json!({"no_line": ["event:"]}),
        json!({"complete": true}),
    ] {
        assert_eq!(judge(good.clone()), (1, 0), "{good}");
    }
    for bad in [
        json!({"content_type": ["text/event-stream"]}),
        json!({"has_header": ["etag"]}),
        json!({"header": {"x-id": "^b"}}),
        json!({"body": {"type": "array"}}),
        json!({"equal": [["/n", "path:id"]]}),
        json!({"no_line": ["\"n\""]}),
    ] {
        assert_eq!(judge(bad.clone()), (1, 1), "{bad}");
    }
    assert_eq!(judge(json!({"header": {"etag": "^b"}})), (0, 0));
}

#[test]
fn a_body_that_the_harness_cut_is_not_judged_and_one_that_the_target_cut_is() {
    let cut = |how: End| {
        Script::new()
            .get("/x")
            .answers(200, "application/json")
            .chunk("{\"a\"")
            .end(how)
            .transcript()
    };
    let body = || json!({"responses": {"body": {"type": "object"}}});
    assert_eq!(counts(body(), &cut(End::ClosedByHarness)), (0, 0));
    assert_eq!(counts(body(), &cut(End::TooLarge)), (0, 0));
    assert_eq!(counts(body(), &cut(End::Broken("reset".into()))), (1, 1));
    let complete = || json!({"responses": {"complete": true}});
    assert_eq!(counts(complete(), &cut(End::TimedOut)), (1, 1));
    assert_eq!(counts(complete(), &cut(End::ClosedByHarness)), (0, 0));
}

#[test]
fn a_request_without_response_is_a_fault_of_the_target_unless_it_was_stopped() {
    let status = || json!({"responses": {"status": [200]}});
    let broken = Script::new().get("/x").breaks().transcript();
    assert_eq!(only_fault(status(), &broken).0, "a response");
    let killed = Script::new()
        .get("/x")
        .target(TargetFact::Killed)
        .breaks()
        .transcript();
    assert_eq!(counts(status(), &killed), (0, 0));
    assert_eq!(
        counts(status(), &Script::new().get("/x").closes().transcript()),
        (0, 0)
    );
    assert_eq!(
        counts(status(), &Script::new().get("/x").transcript()),
        (0, 0)
    );
    let narrowed = json!({"responses": {"when_status": [200], "has_header": ["etag"]}});
    assert_eq!(counts(narrowed, &broken), (0, 0));
}
