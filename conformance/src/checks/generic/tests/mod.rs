//! Each demand of each rule, on transcripts that meet it, break it, and do not show it.

use proptest::prelude::*;
use serde_json::{Value, json};
use turnwire_spec::catalogue::rule::Rule;

use super::judge;
use crate::{
    transcript::{Transcript, testing::Script},
    verdict::Findings,
};

mod answers;
mod clients;
mod frames;
mod relations;
mod responses;
mod streams;

fn rule(json: Value) -> Rule {
    serde_json::from_value(json).unwrap()
}

fn found(rule_json: Value, transcript: &Transcript) -> Findings {
    judge(&rule(rule_json), transcript)
}

/// `judged` and the number of faults.
fn counts(rule_json: Value, transcript: &Transcript) -> (usize, usize) {
    let findings = found(rule_json, transcript);
    (findings.judged, findings.faults.len())
}

/// What was wrong, when exactly one thing was.
fn only_fault(rule_json: Value, transcript: &Transcript) -> (String, String) {
    let mut findings = found(rule_json, transcript);
    assert_eq!(findings.faults.len(), 1, "{findings:#?}");
    let fault = findings.faults.remove(0);
    (fault.expected, fault.got)
}

fn subscription() -> Script {
    Script::new()
        .get("/api/events/stream?sessionId=s1")
        .answers(200, "text/event-stream; charset=utf-8")
}

fn action() -> Script {
    Script::new()
        .post(
            "/api/actions",
            &json!({"requestId": "r1", "sessionId": "s1"}),
        )
        .answers(200, "text/event-stream")
}

#[test]
fn a_rule_that_selects_nothing_judges_nothing() {
    let transcript = action().data(&json!({"type": "a"})).ends().transcript();
    for rule in [
        json!({"frames": {"stream": ["subscription"], "data": {}}}),
        json!({"frames": {"type": ["b"], "data": {}}}),
        json!({"frames": {"label": "elsewhere", "data": {}}}),
        json!({"frames": {"where": {"required": ["payload"]}, "data": {}}}),
        json!({"frames": {"not_type": ["*"], "data": {}}}),
        json!({"responses": {"path": ["/api/health"], "status": [200]}}),
        json!({"responses": {"method": ["GET"], "status": [200]}}),
        json!({"responses": {"when_status": [404], "status": [404]}}),
        json!({"responses": {"when_query": ["topics"], "status": [200]}}),
        json!({"responses": {"where_request": {"required": ["type"]}, "status": [200]}}),
        json!({"streams": {"stream": ["relay"], "ends": true}}),
        json!({"all": []}),
    ] {
        assert_eq!(counts(rule.clone(), &transcript), (0, 0), "{rule}");
    }
}

#[test]
fn all_adds_up_its_parts() {
    let transcript = action().data(&json!({"type": "a"})).ends().transcript();
    let rule = json!({"all": [{"streams": {"ends": true}}, {"frames": {"lines": {"event": 1}}}]});
    assert_eq!(counts(rule, &transcript), (2, 1));
}

fn every_demand() -> Rule {
    rule(json!({"all": [
        {"frames": {"lines": {"event": 1, ":": 0}, "line_pattern": {"id": "^a$"}, "only_lines": ["data"],
            "data": {"type": "object", "properties": {"a": {"format": "date-time"}}},
            "equal": [["/a", "line:id"], ["/a", "={/a}"]], "clock": "/a", "known_type": true,
            "constant": ["/a"], "rising": "/a"}},
        {"frames": {"where": {"required": ["a"]}, "forbidden": true}},
        {"responses": {"status": [200], "content_type": ["a/b"], "body": {}, "equal": [["/a", "request:a"]],
            "has_header": ["x"], "header": {"content-type": "^x"}, "no_line": ["data"], "complete": true}},
        {"streams": {"first": ["a"], "last": ["b"], "count": {"a": 1}, "only": ["c"], "order": [["a", "b"]],
            "period": {"a": {"every_ms": 5}}, "ends": true}},
    ]}))
}

proptest! {
    #[test]
    fn no_bytes_make_a_check_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8), target in "\\PC{0,30}") {
        let mut transcript = Script::new().get(&target).answers(200, "text/event-stream").ends().transcript();
        for bytes in chunks {
            let fact = crate::transcript::Fact::Chunk { exchange: crate::transcript::ExchangeId(1), bytes: bytes.into() };
            let at = std::time::Duration::ZERO;
            transcript.entries.insert(2, crate::transcript::Entry { at, fact });
        }
        judge(&every_demand(), &transcript);
    }

    #[test]
    fn no_lines_make_a_check_panic(lines in prop::collection::vec("(event|data|id|retry|)(: ?)(\\{\"a\":(7|null|\"x\")\\}|\\PC{0,5})", 0..20)) {
        let text = lines.join("\n") + "\n\n";
        let transcript = subscription().chunk(&text).chunk(&text).ends().transcript();
        judge(&every_demand(), &transcript);
    }
}
