//! A reader is judged by what it did and tells, and by nothing that nobody saw.

use super::*;
use crate::transcript::text;

/// How often the check of this requirement judged this transcript, and how many faults it found.
fn counts(id: &str, transcript: &str) -> (usize, usize) {
    let transcript = text::parse(transcript).unwrap();
    let mut checks = CHECKS.iter().copied().flatten();
    let check = checks.find(|check| check.id == id).unwrap();
    let findings = (check.judge)(&transcript);
    (findings.judged, findings.faults.len())
}

/// A case in which the reader asks for a stream with one event, says these lines, and is not seen again.
fn once(label: &str, said: &str) -> String {
    format!(
        "twire 1
suite: sse
scenario: connect

label {label}
>1 GET /{label}
>1: host: a
@+1ms
<1 200
<1: content-type: text/event-stream
@+1ms
<1 data: a
<1
{said}
@+5ms
end 1 complete
"
    )
}

const SILENT: &str = "";
const OPENS: &str = "state {\"state\":\"open\"}\n";

#[test]
fn a_reader_that_reports_nothing_is_judged_by_its_requests_alone() {
    assert_eq!(counts("SSE-047", &once("request", SILENT)), (1, 0));
    for (id, label) in [
        ("SSE-001", "lf"),
        ("SSE-045", "at-blank-line"),
        ("SSE-046", "every-cut"),
        ("SSE-051", "states"),
        ("SSE-053", "ended"),
    ] {
        assert_eq!(counts(id, &once(label, SILENT)), (0, 0), "{id}");
    }
}

#[test]
fn a_reader_that_reports_and_leaves_an_event_out_is_at_fault() {
    assert_eq!(counts("SSE-001", &once("lf", OPENS)), (1, 1));
    let event = "state {\"event\":{\"type\":\"message\",\"data\":\"a\",\"lastEventId\":\"\"}}\n";
    assert_eq!(counts("SSE-001", &once("lf", event)), (1, 0));
    // It tells no states.
    assert_eq!(counts("SSE-053", &once("ended", event)), (0, 0));
    assert_eq!(counts("SSE-053", &once("ended", OPENS)), (1, 1));
}

#[test]
fn a_reader_that_does_not_come_back_shows_nothing_of_its_second_request() {
    assert_eq!(counts("SSE-052", &once("ended", OPENS)), (1, 1));
    for (id, label) in [
        ("SSE-055", "broken"),
        ("SSE-056", "last-event-id"),
        ("SSE-057", "last-event-id"),
        ("SSE-058", "last-event-id"),
        ("SSE-059", "last-event-id"),
        ("SSE-060", "dropped-id"),
        ("SSE-061", "retry"),
        ("SSE-062", "retry-dataless"),
        ("SSE-063", "retry-bad"),
        ("SSE-064", "retry-stays"),
        ("SSE-066", "no-content"),
        ("SSE-067", "no-content"),
        ("SSE-068", "not-found"),
        ("SSE-081", "no-answer"),
    ] {
        assert_eq!(counts(id, &once(label, OPENS)), (0, 0), "{id}");
    }
}

#[test]
fn a_request_for_another_place_shows_nothing() {
    let stray = "twire 1
suite: sse
scenario: connect

label request
>1 GET /elsewhere
>1: host: a
@+5ms
end 1 closed-by-harness
";
    for id in ["SSE-047", "SSE-048", "SSE-049", "SSE-050"] {
        assert_eq!(counts(id, stray), (0, 0), "{id}");
    }
}

/// The case of SSE-051, with what the reader says before its request, after the head, and after the event.
fn opening(said: [&str; 4]) -> String {
    let [first, asked, head, event] = said;
    format!(
        "twire 1
suite: sse
scenario: connect

label states
{first}@+1ms
>1 GET /states
>1: host: a
@+1ms
{asked}@+1ms
<1 200
<1: content-type: text/event-stream
@+1ms
{head}@+1ms
<1 data: a
<1
@+1ms
{event}@+1ms
end 1 complete
"
    )
}

#[test]
fn a_reader_is_open_neither_before_the_head_nor_with_the_event() {
    for (said, faults) in [
        ([OPENS, "", "", ""], 1),
        (["", OPENS, "", ""], 1),
        (["", "", OPENS, ""], 0),
        (["", "", "", OPENS], 1),
        ([OPENS, "", OPENS, ""], 1),
    ] {
        let found = counts("SSE-051", &opening(said));
        assert_eq!(found, (1, faults), "{said:?}");
    }
}

#[test]
fn an_empty_type_takes_back_the_one_before_it_in_the_same_event() {
    let stream = cases::EVENTS.iter().find(|case| case.name == "empty-type");
    let sent = String::from_utf8(stream.unwrap().bytes()).unwrap();
    let sent: Vec<_> = sent.lines().map(|line| format!("<1 {line}")).collect();
    let case = |last: &str| {
        let event = |kind: &str, data: &str| {
            format!(r#"state {{"event":{{"type":"{kind}","data":"{data}","lastEventId":""}}}}"#)
        };
        let read = ["a", "b"].map(|data| event("message", data)).join("\n");
        format!(
            "twire 1\nsuite: sse\nscenario: read-types-and-ids\n\nlabel empty-type\n\
             >1 GET /empty-type\n>1: host: a\n<1 200\n<1: content-type: text/event-stream\n\
             {}\n{read}\n{}\nend 1 complete\n",
            sent.join("\n"),
            event(last, "c"),
        )
    };
    assert_eq!(counts("SSE-031", &case("message")), (1, 0));
    assert_eq!(counts("SSE-031", &case("add")), (1, 1));
}
