//! Demands on single frames.

use serde_json::{Value, json};

use super::{action, counts, found, only_fault, subscription};
use crate::transcript::testing::Script;

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
