//! HAR files as browsers write them, and files that are none.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{HarError, parse};
use crate::transcript::{Lost, text};

fn entry(changes: &[(&str, Value)]) -> Value {
    let mut entry = json!({
        "startedDateTime": "2026-07-26T12:00:00.000Z",
        "time": 20.5,
        "request": {
            "method": "GET",
            "url": "http://127.0.0.1:8080/api/events/stream?sessionId=s1#top",
            "headers": [{ "name": ":authority", "value": "x" }, { "name": "Accept", "value": "text/event-stream" }],
        },
        "response": {
            "status": 200,
            "headers": [{ "name": "Content-Type", "value": "text/event-stream" }],
            "content": { "size": 40, "mimeType": "text/event-stream" },
        },
        "timings": { "blocked": -1, "dns": -1, "connect": 1.5, "ssl": -1, "send": 0, "wait": 2, "receive": 17 },
    });
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        entry.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    entry
}

fn har(entries: &[Value]) -> Vec<u8> {
    json!({ "log": { "version": "1.2", "creator": { "name": "WebInspector", "version": "537.36" }, "entries": entries } })
        .to_string()
        .into_bytes()
}

fn written(entries: &[Value]) -> String {
    text::write(&parse(&har(entries)).unwrap())
}

const BODY: &str = "event: system.connected\ndata: {}\n\nevent: x\ndata: {}\nid: e:1\n\n";

#[test]
fn a_stream_of_which_the_body_was_kept_is_one_piece_at_its_end() {
    let body = entry(&[("/response/content/text", json!(BODY))]);
    insta::assert_snapshot!(written(&[body]), @r"
    twire 1
    started: 2026-07-26T12:00:00.000Z
    lost: times
    # imported from a HAR file by WebInspector 537.36
    # lost: when each piece arrived in the event stream of exchange 1

    > GET /api/events/stream?sessionId=s1
    >: accept: text/event-stream
    @+3.5ms
    < 200
    @+17ms
    < event: system.connected
    < data: {}
    <
    < event: x
    < data: {}
    < id: e:1
    <
    ");
}

#[test]
fn the_events_of_an_event_source_are_put_together_again_with_their_times() {
    let events = json!([
        { "time": 1_785_067_200.004, "eventName": "system.connected", "eventId": "", "data": "{}" },
        { "time": 1_785_067_200.005, "eventName": "x", "eventId": "e:1", "data": "a\nb" },
        { "time": 1_785_067_200.006, "eventName": "message", "eventId": "e:1", "data": "c" },
    ]);
    let with_events = entry(&[("/_eventSourceMessages", events)]);
    insta::assert_snapshot!(written(&[with_events]), @r"
    twire 1
    started: 2026-07-26T12:00:00.000Z
    lost: bytes
    # imported from a HAR file by WebInspector 537.36
    # lost: the bytes of the event stream, put together again from its events, of exchange 1

    > GET /api/events/stream?sessionId=s1
    >: accept: text/event-stream
    @+3.5ms
    < 200
    @+0.5ms
    < event: system.connected
    < data: {}
    <
    @+1ms
    < event: x
    < data: a
    < data: b
    < id: e:1
    <
    @+1ms
    < data: c
    <
    ");
}

#[test]
fn a_body_and_its_events_together_lose_nothing() {
    let events = json!([
        { "time": 1_785_067_200.004, "eventName": "system.connected", "eventId": "", "data": "{}" },
        { "time": 1_785_067_200.009, "eventName": "x", "eventId": "e:1", "data": "{}" },
    ]);
    let both = entry(&[
        ("/response/content/text", json!(BODY)),
        ("/_eventSourceMessages", events),
    ]);
    let transcript = parse(&har(&[both])).unwrap();
    assert_eq!(transcript.header.lost, []);
    assert!(text::write(&transcript).contains("@+5ms\n< event: x\n"));
}

#[test]
fn a_body_in_base64_is_its_bytes_and_a_request_has_its_data() {
    let post = entry(&[
        ("/request/method", json!("POST")),
        ("/request/url", json!("https://example.test/api/actions")),
        (
            "/request/postData",
            json!({ "mimeType": "application/json", "text": "{\"a\":1}" }),
        ),
        ("/response/headers", json!([])),
        (
            "/response/content",
            json!({ "mimeType": "application/json", "text": "eyJiIjoyfQ==", "encoding": "base64" }),
        ),
    ]);
    insta::assert_snapshot!(written(&[post]), @r#"
    twire 1
    started: 2026-07-26T12:00:00.000Z
    # imported from a HAR file by WebInspector 537.36

    > POST /api/actions
    >: accept: text/event-stream
    > {"a":1}
    @+3.5ms
    < 200
    @+17ms
    < {"b":2}
    end complete
    "#);
}

#[test]
fn messages_of_a_web_socket_keep_their_times_and_sides() {
    let socket = entry(&[
        ("/request/url", json!("ws://127.0.0.1/chat")),
        ("/response/status", json!(101)),
        ("/response/headers", json!([])),
        (
            "/response/content",
            json!({ "size": 0, "mimeType": "x-unknown" }),
        ),
        (
            "/_webSocketMessages",
            json!([
                { "type": "send", "time": 1_785_067_200.01, "opcode": 1, "data": "{}" },
                { "type": "receive", "time": 1_785_067_200.011, "opcode": 2, "data": "AAE=" },
            ]),
        ),
    ]);
    insta::assert_snapshot!(written(&[socket]), @r"
    twire 1
    started: 2026-07-26T12:00:00.000Z
    # imported from a HAR file by WebInspector 537.36

    > GET /chat
    >: accept: text/event-stream
    @+3.5ms
    < 101
    @+6.5ms
    >~ text {}
    @+1ms
    <~ binary \x00\x01
    ");
}

#[test]
fn a_web_socket_that_broke_is_imported_with_the_words_of_the_browser() {
    let socket = entry(&[
        ("/request/url", json!("wss://127.0.0.1/chat")),
        ("/response/status", json!(101)),
        ("/response/headers", json!([])),
        (
            "/response/content",
            json!({ "size": 0, "mimeType": "x-unknown" }),
        ),
        (
            "/_webSocketMessages",
            json!([
                { "type": "receive", "time": 1_785_067_200.01, "opcode": 1, "data": "{}" },
                { "type": "error", "time": 1_785_067_200.02, "opcode": -1, "data": "Invalid frame header" },
            ]),
        ),
    ]);
    let text = written(&[socket]);
    assert!(text.contains("<~ text {}\n"), "{text}");
    assert!(
        text.ends_with("end broken Invalid frame header\n"),
        "{text}"
    );
}

#[test]
fn what_a_page_has_within_itself_is_left_out_and_the_others_keep_their_numbers() {
    let inner = |url: &str| entry(&[("/request/url", json!(url))]);
    let entries = [
        inner("data:text/plain,hello"),
        inner("about:blank"),
        inner("WSS://127.0.0.1/a"),
        inner("blob:http://127.0.0.1/1"),
    ];
    let text = written(&entries);
    let note = "# left out, since it never was on the wire: about:, blob:, data:\n";
    assert!(text.contains(note), "{text}");
    assert!(text.contains(">3 GET /a\n"), "{text}");
    let requests = text.matches(" GET /").count();
    assert_eq!(requests, 1, "{text}");
}

#[test]
fn entries_are_put_in_order_and_keep_their_numbers() {
    let late = entry(&[("/startedDateTime", json!("2026-07-26T14:00:01.000+02:00"))]);
    let failed = entry(&[
        ("/response/status", json!(0)),
        ("/_error", json!("net::ERR_CONNECTION_REFUSED")),
    ]);
    insta::assert_snapshot!(written(&[late, failed]), @r"
    twire 1
    started: 2026-07-26T12:00:00.000Z
    # imported from a HAR file by WebInspector 537.36
    # lost: the response body of exchange 1

    >2 GET /api/events/stream?sessionId=s1
    >2: accept: text/event-stream
    @+20.5ms
    end not-connected net::ERR_CONNECTION_REFUSED

    @+979.5ms
    >1 GET /api/events/stream?sessionId=s1
    >1: accept: text/event-stream
    @+3.5ms
    < 200
    <: content-type: text/event-stream
    ");
}

#[test]
fn what_is_no_har_file_is_told_with_its_place() {
    let error = |text: &[u8]| parse(text).unwrap_err().in_file("a.har");
    let with = |pointer: &str, value: Value| error(&har(&[entry(&[]), entry(&[(pointer, value)])]));
    let errors = [
        error(b"{\n  \"log\": }"),
        error(b"[]"),
        error(b"{\"logs\":{}}"),
        error(b"{\"log\":{\"entries\":{}}}"),
        with("/startedDateTime", json!("noon")),
        with("/request/url", json!("/api/health")),
        with("/request/method", json!(7)),
        with("/response/status", json!("ok")),
        with("/response/content/text", json!({})),
        with(
            "/response/content",
            json!({ "text": "%%", "encoding": "base64" }),
        ),
        with(
            "/response/content",
            json!({ "text": "", "encoding": "rot13" }),
        ),
        with("/request/headers", json!([{ "name": "a" }])),
        with(
            "/_webSocketMessages",
            json!([{ "type": "both", "time": 1, "opcode": 1, "data": "" }]),
        ),
        with(
            "/_webSocketMessages",
            json!([{ "type": "send", "time": 1, "opcode": 3, "data": "" }]),
        ),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    a.har:2:10: expected JSON, got expected value at line 2 column 10
    a.har: the file: expected an object, got a list of 0
    a.har: the file: expected a member "log", got members logs
    a.har: log.entries: expected a list, got an object
    a.har: log.entries[1].startedDateTime: expected a time such as 2026-07-26T12:00:00.000Z, got "noon"
    a.har: log.entries[1].request.url: expected an absolute URL, got "/api/health"
    a.har: log.entries[1].request.method: expected a string, got 7
    a.har: log.entries[1].response.status: expected a number, got "ok"
    a.har: log.entries[1].response.content.text: expected a string, got an object
    a.har: log.entries[1].response.content.text: expected base64, got "%%"
    a.har: log.entries[1].response.content.encoding: expected "base64", got "rot13"
    a.har: log.entries[1].request.headers[0]: expected a member "value", got members name
    a.har: log.entries[1]._webSocketMessages[0].type: expected "send" or "receive", got "both"
    a.har: log.entries[1]._webSocketMessages[0].opcode: expected 1, 2, 8, 9 or 10, got 3
    "#);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~é\n]{0,12}".prop_map(Value::from),
        Just(json!("2026-07-26T12:00:00.000Z")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,4}", inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

const PLACES: &[&str] = &[
    "/startedDateTime",
    "/time",
    "/timings",
    "/timings/wait",
    "/request",
    "/request/url",
    "/request/method",
    "/request/headers",
    "/request/postData",
    "/response",
    "/response/status",
    "/response/headers",
    "/response/content",
    "/response/content/text",
    "/_error",
    "/_eventSourceMessages",
    "/_webSocketMessages",
];

proptest! {
    #[test]
    fn whatever_stands_in_an_entry_is_imported_or_told_with_its_path(place in 0..PLACES.len(), value in json_value()) {
        let text = har(&[entry(&[(PLACES[place], value)])]);
        match parse(&text) {
            Ok(transcript) => {
                let again = text::parse(&text::write(&transcript)).unwrap();
                prop_assert_eq!(again.entries.len(), transcript.entries.len());
                prop_assert!(transcript.entries.windows(2).all(|pair| pair[0].at <= pair[1].at));
            }
            Err(HarError::Value { path, .. }) => prop_assert!(path.starts_with("log.entries[0]"), "{}", path),
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn no_bytes_make_the_import_panic(text in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = parse(&text);
    }
}

#[test]
fn only_what_is_lost_is_said_to_be_lost() {
    let plain = entry(&[
        (
            "/response/headers",
            json!([{ "name": "content-type", "value": "application/json" }]),
        ),
        ("/response/content/text", json!("{}")),
    ]);
    assert_eq!(parse(&har(&[plain])).unwrap().header.lost, []);
    let stream = entry(&[("/response/content/text", json!(BODY))]);
    assert_eq!(parse(&har(&[stream])).unwrap().header.lost, [Lost::Times]);
}

#[test]
fn an_entry_of_another_millennium_is_imported_as_something_that_can_be_written() {
    let entry = |started: &str| {
        json!({
            "startedDateTime": started, "time": 1,
            "request": { "method": "GET", "url": "http://localhost/", "headers": [] },
            "response": { "status": 200, "headers": [] },
        })
    };
    let entries = [entry("3930-07-26T12:00:02Z"), entry("2026-07-26T12:00:01Z")];
    let file = json!({ "log": { "entries": entries } }).to_string();
    assert_eq!(crate::fuzzing::har(file.as_bytes()), Ok(()));
}
