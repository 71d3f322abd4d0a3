//! Each demand of each rule, on transcripts that meet it, break it, and do not show it.

use proptest::prelude::*;
use serde_json::{Value, json};
use turnwire_spec::catalogue::rule::Rule;

use super::judge;
use crate::{
    transcript::{End, ResponseHead, TargetFact, Transcript, testing::Script},
    verdict::Findings,
};

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
fn line_counts_judge_lines_and_comments() {
    let transcript = subscription()
        .chunk("event: a\nevent: a\ndata: 1\n: x\n\n")
        .closes()
        .transcript();
    let lines = |lines: Value| json!({"frames": {"lines": lines}});
    assert_eq!(
        counts(
            lines(json!({"event": 2, "id": 0, "data": ">=1", ":": 1})),
            &transcript
        ),
        (1, 0)
    );
    let (expected, got) = only_fault(lines(json!({"event": 1})), &transcript);
    assert_eq!(expected, "1 \"event\" line(s)");
    assert_eq!(got, "event: a\nevent: a\ndata: 1\n: x\n\n");
    assert_eq!(
        counts(lines(json!({":": 0, "id": ">=1"})), &transcript),
        (1, 2)
    );
}

#[test]
fn line_patterns_judge_each_line_that_is_there() {
    let transcript = subscription()
        .chunk("event: a\nid: e1:7\ndata: 1\n\nevent: b\ndata: 1\n\n")
        .closes()
        .transcript();
    let pattern = |pattern: &str| json!({"frames": {"line_pattern": {"id": pattern}}});
    assert_eq!(counts(pattern("^.+:[0-9]+$"), &transcript), (1, 0));
    assert_eq!(
        only_fault(pattern("^[0-9]+$"), &transcript).0,
        "id lines that match ^[0-9]+$"
    );
}

#[test]
fn only_lines_refuses_every_other_field_and_comments_too() {
    let only = || json!({"frames": {"only_lines": ["data"]}});
    let transcript = |frame: &str| action().chunk(frame).ends().transcript();
    assert_eq!(counts(only(), &transcript("data: 1\ndata: 2\n\n")), (1, 0));
    let (expected, got) = only_fault(only(), &transcript("retry: 5\ndata: 1\n\n"));
    assert_eq!(expected, "only data lines");
    assert!(got.starts_with("retry: 5\n"), "{got}");
    assert_eq!(counts(only(), &transcript(": hello\ndata: 1\n\n")), (1, 1));
    assert_eq!(
        counts(
            json!({"frames": {"only_lines": ["data", ":"]}}),
            &transcript(": hi\ndata: 1\n\n")
        ),
        (1, 0)
    );
}

#[test]
fn data_is_judged_by_schema_and_evidence_names_path_and_bytes() {
    let wanted = || json!({"frames": {"data": {"properties": {"payload": {"properties": {"delta": {"type": "string"}}}}}}});
    let good = action()
        .data(&json!({"type": "a", "payload": {"delta": ""}}))
        .ends()
        .transcript();
    assert_eq!(counts(wanted(), &good), (1, 0));
    let bad = action()
        .data(&json!({"type": "a", "payload": {"delta": 5}}))
        .ends()
        .transcript();
    let findings = found(wanted(), &bad);
    let fault = &findings.faults[0];
    assert!(
        fault
            .got
            .starts_with("/payload/delta: 5 is not of type \"string\"\ndata: {"),
        "{}",
        fault.got
    );
    assert_eq!(
        (fault.frame, fault.request.as_deref()),
        (Some(0), Some("POST /api/actions"))
    );
    let text = action().chunk("data: no json\n\n").ends().transcript();
    assert!(
        only_fault(json!({"frames": {"data": {}}}), &text)
            .1
            .starts_with("no JSON")
    );
}

#[test]
fn a_frame_without_its_blank_line_is_not_judged() {
    let transcript = action()
        .data(&json!({}))
        .chunk("data: {\"half")
        .closes()
        .transcript();
    assert_eq!(
        counts(json!({"frames": {"data": {"type": "object"}}}), &transcript),
        (1, 0)
    );
}

#[test]
fn comments_are_no_frames() {
    let transcript = subscription()
        .chunk(": ping\n\nid: 5\n\nevent: a\n\n")
        .closes()
        .transcript();
    assert_eq!(
        counts(json!({"frames": {"lines": {"event": 1}}}), &transcript),
        (1, 0)
    );
}

#[test]
fn equal_compares_data_lines_requests_and_texts() {
    let transcript = subscription()
        .chunk("event: a\nid: e1:7\ndata: {\"type\":\"a\",\"id\":\"e1:7\",\"sessionId\":\"s1\",\"e\":\"e1\",\"n\":7}\n\n")
        .closes()
        .transcript();
    let equal = |left: &str, right: &str| json!({"frames": {"equal": [[left, right]]}});
    for (left, right) in [
        ("line:event", "/type"),
        ("line:id", "/id"),
        ("request:sessionId", "/sessionId"),
        ("=a", "/type"),
        ("/id", "={/e}:{/n}"),
        ("=7", "/n"),
    ] {
        assert_eq!(
            counts(equal(left, right), &transcript),
            (1, 0),
            "{left} {right}"
        );
    }
    let (expected, got) = only_fault(equal("line:id", "/sessionId"), &transcript);
    assert_eq!(expected, "line:id equal to /sessionId");
    assert!(
        got.starts_with("line:id is \"e1:7\", /sessionId is \"s1\""),
        "{got}"
    );
    for (left, right) in [
        ("line:retry", "/type"),
        ("/id", "request:topics"),
        ("={/nothing}", "/id"),
        ("nonsense", "/id"),
    ] {
        assert_eq!(
            counts(equal(left, right), &transcript),
            (0, 0),
            "{left} {right}"
        );
    }
}

#[test]
fn equal_reads_the_json_of_the_request() {
    let transcript = action()
        .data(&json!({"requestId": "r1"}))
        .data(&json!({"requestId": "r2"}))
        .ends()
        .transcript();
    assert_eq!(
        counts(
            json!({"frames": {"equal": [["/requestId", "request:requestId"]]}}),
            &transcript
        ),
        (2, 1)
    );
    assert_eq!(
        counts(
            json!({"frames": {"equal": [["/requestId", "request:/requestId"]]}}),
            &transcript
        ),
        (2, 1)
    );
}

#[test]
fn clock_judges_form_and_distance() {
    let clock = || json!({"frames": {"clock": "/timestamp"}});
    let at = |time: Value| {
        subscription()
            .wait_ms(5000)
            .event("a", &json!({"timestamp": time}))
            .closes()
            .transcript()
    };
    assert_eq!(
        counts(clock(), &at(json!("2030-05-01T10:00:04.500Z"))),
        (1, 0)
    );
    assert_eq!(
        counts(clock(), &at(json!("2030-05-01T09:58:04.500Z"))),
        (1, 1)
    );
    assert_eq!(
        counts(clock(), &at(json!("2030-05-01T12:00:04.500+02:00"))),
        (1, 1)
    );
    assert_eq!(counts(clock(), &at(json!(1_903_860_004_500_u64))), (1, 1));
    let mut unknown = at(json!("1999-01-01T00:00:00Z"));
    unknown.header.started_ms = 0;
    assert_eq!(counts(clock(), &unknown), (1, 0));
}

#[test]
fn known_types_depend_on_the_stream() {
    let known = || json!({"frames": {"known_type": true}});
    let connected = |script: Script| {
        script
            .event("system.connected", &json!({}))
            .closes()
            .transcript()
    };
    assert_eq!(counts(known(), &connected(subscription())), (1, 0));
    assert_eq!(counts(known(), &connected(action())), (1, 1));
    let ping = action()
        .data(&json!({"type": "ping"}))
        .data(&json!({"type": "execution.started"}))
        .ends();
    assert_eq!(
        only_fault(known(), &ping.transcript()).0,
        "a type that the protocol knows"
    );
}

#[test]
fn constant_and_rising_compare_frames_of_one_stream() {
    let frame = |seq: Value, trace: &str| json!({"type": "a", "seq": seq, "traceId": trace});
    let two = |a: Value, b: Value| action().data(&a).data(&b).ends().transcript();
    let constant = || json!({"frames": {"constant": ["/traceId"]}});
    assert_eq!(
        counts(constant(), &two(frame(json!(0), "t"), frame(json!(1), "t"))),
        (1, 0)
    );
    let (_, got) = only_fault(constant(), &two(frame(json!(0), "t"), frame(json!(1), "u")));
    assert!(
        got.starts_with("/traceId is \"u\", in frame 0 it was \"t\""),
        "{got}"
    );
    let rising = || json!({"frames": {"rising": "/seq"}});
    assert_eq!(
        counts(rising(), &two(frame(json!(0), "t"), frame(json!(5), "t"))),
        (1, 0)
    );
    assert_eq!(
        counts(rising(), &two(frame(json!(5), "t"), frame(json!(5), "t"))),
        (1, 1)
    );
    assert_eq!(
        counts(rising(), &two(frame(json!(5), "t"), frame(json!("6"), "t"))),
        (1, 1)
    );
    let alone = action().data(&frame(json!(0), "t")).ends().transcript();
    assert_eq!(counts(rising(), &alone), (0, 0));
    assert_eq!(counts(constant(), &alone), (0, 0));
}

#[test]
fn forbidden_frames_are_faults_and_streams_are_judged() {
    let forbidden =
        || json!({"frames": {"stream": ["subscription"], "type": ["llm.*"], "forbidden": true}});
    assert_eq!(
        counts(forbidden(), &subscription().closes().transcript()),
        (0, 0)
    );
    let quiet = subscription()
        .event("system.connected", &json!({}))
        .closes()
        .transcript();
    assert_eq!(counts(forbidden(), &quiet), (1, 0));
    let loud = subscription()
        .event("llm.calling", &json!({}))
        .event("llm.responded", &json!({}))
        .closes();
    assert_eq!(counts(forbidden(), &loud.transcript()), (1, 2));
}

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
