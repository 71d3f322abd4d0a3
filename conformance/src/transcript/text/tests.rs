//! What the text form promises, sentence by sentence.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::{Hider, Mismatch, matches, parse, redact, write, write_template};
use crate::transcript::{
    End, Entry, ExchangeId, Fact, Header, Request, ResponseHead, Side, TargetFact, Transcript,
    WsFrame,
};

mod errors;
mod properties;

const EXAMPLE: &str = r#"
> GET /api/events/stream?lastEventId=gone:7
< 200
< event: system.reset
< id: e2:41
< data: {"reason":"epoch-change","cursor":"e2:41"}
<
"#;

fn facts(text: &str) -> Vec<Fact> {
    parse(text)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .entries
        .into_iter()
        .map(|entry| entry.fact)
        .collect()
}

fn body(text: &str) -> String {
    let chunk = |fact: &Fact| match fact {
        Fact::Chunk { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    };
    facts(text).iter().filter_map(chunk).collect()
}

fn transcript(facts: Vec<Fact>) -> Transcript {
    let entries = facts
        .into_iter()
        .map(|fact| Entry {
            at: Duration::ZERO,
            fact,
        })
        .collect();
    Transcript {
        entries,
        ..Transcript::default()
    }
}

fn request(target: &str, headers: &[(&str, &str)], body: &str) -> Fact {
    Fact::Request {
        exchange: ExchangeId(1),
        request: Request {
            method: "POST".to_owned(),
            target: target.to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        },
    }
}

fn head(status: u16, media_type: &str) -> Fact {
    let headers = vec![("content-type".to_owned(), media_type.to_owned())];
    Fact::Response {
        exchange: ExchangeId(1),
        head: ResponseHead { status, headers },
    }
}

fn chunk(bytes: &'static [u8]) -> Fact {
    Fact::Chunk {
        exchange: ExchangeId(1),
        bytes: Bytes::from_static(bytes),
    }
}

#[test]
fn the_shortest_form_is_a_conversation_as_one_would_tell_it() {
    let transcript = parse(EXAMPLE).unwrap();
    let streams = crate::transcript::views::stream::streams(&transcript);
    assert_eq!(
        streams.len(),
        1,
        "the body shows that it is an event stream"
    );
    let frame = &streams[0].frames[0];
    assert_eq!(frame.event_type(), "system.reset");
    assert!(frame.frame.terminated);
    assert_eq!(frame.member("reason"), Some(&json!("epoch-change")));
}

#[test]
fn a_canonical_file_is_written_as_it_was_read() {
    let text = r#"twire 1
suite: covel-sse
scenario: resume-foreign-epoch
requirements: COV-SUB-102 COV-SUB-103
scale: 0.01
started: 2026-07-26T12:00:00.000Z
# A cursor of an epoch that the server never had.

label foreign-epoch
target started default

@+1.25ms
>1 GET /api/events/stream?lastEventId=gone:7
>1: accept: text/event-stream
@+3ms
<1 200

@+0.0005ms
>2 POST /api/actions
>2: content-type: application/json
>2: idempotency-key: 7
>2 {"type":"submit_actions",
>2  "text":"a\nb"}
# The frame comes in two chunks.
<1 event: system.reset
<1 data: {"reason":"epo\

<1 ch-change"}
<1
<2 204
end 2 complete
end 1 broken connection reset

> GET /chat
< 101
>~ text {"type":"hello"}
<~ binary \x00\x01\xff
<~ close 1000 bye
<$ {"jsonrpc":"2.0"}
end closed-by-harness
state {"messages":[]}
target killed
"#;
    let transcript = parse(text).unwrap();
    assert_eq!(write(&transcript), text);
}

#[test]
fn an_event_stream_line_stands_for_its_line_feed_too() {
    assert_eq!(body("> GET /\n< 200\n< data: 1\n<\n"), "data: 1\n\n");
    assert_eq!(body("> GET /\n< 200\n< data: 1\\\n"), "data: 1");
    assert_eq!(
        body("> GET /\n< 200\n< data: 1\\x0d\\x0d\\\n"),
        "data: 1\r\r"
    );
}

#[test]
fn in_any_other_body_line_feeds_stand_between_lines() {
    assert_eq!(body("> GET /\n< 200\n< {\"a\":\n< 1}\n"), "{\"a\":\n1}");
    assert_eq!(body("> GET /\n< 200\n< {}\n<\n"), "{}\n");
    assert_eq!(
        body("> GET /\n< 200\n< {\"a\":\\\n< 1}\n"),
        "{\"a\":1}",
        "a line may be wrapped"
    );
}

#[test]
fn json_needs_no_escapes() {
    assert_eq!(
        body("> GET /\n< 200\n< {\"a\":\"\\n\\\\\\u00e9\\\"\"}\n"),
        r#"{"a":"\n\\\u00e9\""}"#
    );
}

#[test]
fn a_file_with_carriage_returns_and_a_byte_order_mark_reads_the_same() {
    let windows = format!("\u{feff}{}", EXAMPLE.replace('\n', "\r\n"));
    assert_eq!(parse(&windows), parse(EXAMPLE));
}

#[test]
fn a_request_below_a_request_is_its_body_and_below_an_empty_line_a_new_one() {
    let requests = |text| facts(text).len();
    assert_eq!(requests("> GET /a\n> GET /b\n"), 1);
    assert_eq!(requests("> GET /a\n\n> GET /b\n"), 2);
    assert_eq!(requests("> GET /a\n@+1ms\n> GET /b\n"), 2);
}

#[test]
fn what_no_shape_foresees_is_marked_and_kept() {
    let odd = transcript(vec![
        chunk(b"body without a head"),
        request("/", &[], ""),
        request("/again", &[], ""),
        head(100, "text/plain"),
        head(200, "text/plain"),
        chunk(b""),
        chunk(b"data: no stream\n"),
        Fact::End {
            exchange: ExchangeId(1),
            how: End::Complete,
        },
        chunk(b"after the end \\"),
    ]);
    let text = write(&odd);
    assert_eq!(parse(&text), Ok(odd), "{text}");
    insta::assert_snapshot!(text, @r"
    twire 1

    <1| body without a head

    >1 POST /

    >1! POST /again
    < 100
    <: content-type: text/plain
    <! 200
    <: content-type: text/plain
    <

    < data: no stream
    <
    end complete
    < after the end \x5c
    ");
}

#[test]
fn secrets_become_the_same_placeholder_wherever_they_stand() {
    let told = transcript(vec![
        request(
            "/api/sessions?session_token=tok-12345678&topics=a",
            &[
                ("Authorization", "Bearer sk-live-0123456789"),
                ("X-Session-Token", "tok-12345678"),
                ("Cookie", "sid=abc; theme=dark"),
            ],
            r#"{"apiKey":"k1","name":"sk-live-0123456789"}"#,
        ),
        head(201, "application/json"),
        chunk(br#"{"ownerToken":"own"#),
        chunk(br#"er-0"#),
        chunk(br#"01","id":"s1"}"#),
        Fact::WebSocket {
            exchange: ExchangeId(1),
            from: Side::Server,
            frame: WsFrame::Text("owner-001 and k1".to_owned()),
        },
    ]);
    let text = write(&told);
    insta::assert_snapshot!(text, @r#"
    twire 1

    > POST /api/sessions?session_token={{secret-2}}&topics=a
    >: Authorization: Bearer {{secret-1}}
    >: X-Session-Token: {{secret-2}}
    >: Cookie: sid={{secret-3}}; theme={{secret-4}}
    > {"apiKey":"{{secret-5}}","name":"{{secret-1}}"}
    < 201
    < {"ownerToken":"{{secret-6}}

    <

    < ","id":"s1"}
    <~ text {{secret-6}} and k1
    "#);
    let again = write(&parse(&text).unwrap());
    assert_eq!(again, text, "what is redacted stays as it is");
}

#[test]
fn no_fact_is_a_hiding_place_for_a_secret() {
    const KEY: &str = "sk-live-0123456789abc";
    let frame = |frame| Fact::WebSocket {
        exchange: ExchangeId(1),
        from: Side::Client,
        frame,
    };
    let mut told = transcript(vec![
        request(
            &format!("/a/{KEY}"),
            &[("referer", &format!("http://x/{KEY}"))],
            "",
        ),
        frame(WsFrame::Ping(Bytes::from(KEY))),
        frame(WsFrame::Pong(Bytes::from(KEY))),
        frame(WsFrame::Binary(Bytes::from(KEY))),
        frame(WsFrame::Close(Some((1000, KEY.to_owned())))),
        Fact::Label(KEY.to_owned()),
        Fact::Note(format!("password={KEY}")),
        Fact::Target(TargetFact::Started {
            variant: KEY.to_owned(),
        }),
        Fact::End {
            exchange: ExchangeId(1),
            how: End::Broken(KEY.to_owned()),
        },
    ]);
    told.header.notes.push(format!("recorded with {KEY}"));
    let every = told.entries.clone();
    assert!(!write(&told).contains(KEY), "{}", write(&told));
    // Each by itself as well: none may lean on what another fact has taught.
    for entry in every {
        let alone = transcript(vec![entry.fact]);
        assert!(!write(&alone).contains(KEY), "{}", write(&alone));
    }
    let header = Header {
        notes: vec![format!("recorded with {KEY}")],
        ..Header::default()
    };
    let alone = Transcript {
        header,
        ..Transcript::default()
    };
    assert!(!write(&alone).contains(KEY), "{}", write(&alone));
}

#[test]
fn a_secret_is_replaced_however_it_is_spelled() {
    let told = transcript(vec![
        request(
            "/a?session_token=a%2Fb%2Bsecret",
            &[("content-type", "application/json")],
            r#"{"x":"a\/b+secret"}"#,
        ),
        head(200, "text/plain"),
        chunk(b"a/b+secret a%2fb%2bsecret"),
    ]);
    insta::assert_snapshot!(write(&told), @r#"
    twire 1

    > POST /a?session_token={{secret-1}}
    > {"x":"{{secret-1}}"}
    < 200
    <: content-type: text/plain
    < {{secret-1}} {{secret-1}}
    "#);
}

#[test]
fn what_is_shown_of_a_transcript_has_none_of_its_secrets_not_even_one_that_was_cut_off() {
    let told = transcript(vec![request("/a", &[("x-api-key", "of-the-header-1")], "")]);
    let hider = Hider::of(&[told]);
    assert_eq!(
        hider.hide(r#"got of-the-header-1 and {"password":"of-the-mes…"#),
        r#"got {{secret-1}} and {"password":"{{secret}}"#
    );
    assert_eq!(hider.hide("nothing to hide"), "nothing to hide");
}

#[test]
fn a_text_by_itself_is_redacted_by_its_places() {
    assert_eq!(
        redact("GET /api/events/stream?sessionId=s&session_token=abc&topics=a"),
        "GET /api/events/stream?sessionId=s&session_token={{secret-1}}&topics=a"
    );
    assert_eq!(
        redact(r#"{"ownerToken": "abc", "id": 1}"#),
        r#"{"ownerToken": "{{secret-1}}", "id": 1}"#
    );
    assert_eq!(redact("event: system.reset"), "event: system.reset");
}

#[test]
fn what_looks_like_a_placeholder_on_the_wire_is_no_placeholder() {
    let told = transcript(vec![request("/{{a}}", &[], "{{{b}} {{}} {{1}} {{_}}")]);
    let text = write(&told);
    assert!(text.contains(r"/\x7b{a}}"), "{text}");
    assert!(text.contains(r"{\x7b{b}} {{}} {{1}} \x7b{_}}"), "{text}");
    assert_eq!(parse(&text), Ok(told));
}

const TURN: &str = r#"
label turn
> POST /api/sessions
< 201
<: content-type: application/json
< {"id":"{{session}}","at":{{_}}}

> GET /api/events/stream?sessionId={{session}}
< 200
<: content-type: text/event-stream
< event: system.connected
< data: {"cursor":"{{epoch}}:0"}
<
unordered {
< event: plugin-data.changed
< id: {{epoch}}:{{one}}
<
< event: job-status.updated
< id: {{epoch}}:{{two}}
<
}
< event: system.heartbeat
<
end complete
"#;

fn live(turn: &str) -> Transcript {
    parse(turn).unwrap()
}

fn actual(frames: &str) -> Transcript {
    live(&format!(
        r#"
label turn
target started default
@+1ms
> POST /api/sessions
>: accept: */*
< 201
<: date: today
<: content-type: application/json
< {{"id":"s-1",\

< "at":17}}
end complete
@+1ms
> GET /api/events/stream?sessionId=s-1
@+1ms
< 200
<: content-type: text/event-stream
< event: system.connected
< data: {{"cursor":"e1:0"}}
<
{frames}< event: system.heartbeat
<
end complete
"#
    ))
}

const DATA: &str = "< event: plugin-data.changed\n< id: e1:1\n<\n";
const JOB: &str = "< event: job-status.updated\n< id: e1:2\n<\n";

#[test]
fn a_placeholder_binds_at_first_sight_and_members_of_a_group_come_in_any_order() {
    for frames in [format!("{DATA}{JOB}"), format!("{JOB}{DATA}")] {
        let bound = matches(TURN, &actual(&frames)).unwrap();
        let bound: Vec<(&str, String)> = bound.iter().collect();
        let expected = [
            ("epoch", "e1"),
            ("one", "1"),
            ("session", "s-1"),
            ("two", "2"),
        ];
        assert_eq!(
            bound,
            expected.map(|(name, value)| (name, value.to_owned()))
        );
    }
}

#[test]
fn a_mismatch_names_the_line_of_the_template() {
    let mismatch = |frames: String| {
        matches(TURN, &actual(&frames))
            .map_err(|error| error.to_string())
            .unwrap_err()
    };
    insta::assert_snapshot!(mismatch(format!("{DATA}{}", JOB.replace("e1:", "e2:"))), @r"line 18: frame: expected event: job-status.updated⏎id: e1:{{two}}⏎⏎, got event: job-status.updated⏎id: e2:2⏎⏎");
    insta::assert_snapshot!(mismatch(DATA.to_owned()), @r"line 18: frame: expected event: job-status.updated⏎id: e1:{{two}}⏎⏎, got event: system.heartbeat⏎⏎");
    insta::assert_snapshot!(mismatch(format!("{DATA}{JOB}{JOB}")), @r"line 22: frame: expected event: system.heartbeat⏎⏎, got event: job-status.updated⏎id: e1:2⏎⏎");
}

#[test]
fn a_template_asks_for_the_headers_that_it_lists() {
    let actual = live("> GET /\n< 200\n<: a: 1\n<: b: 2\n");
    let matches = |text: &str| {
        matches(text, &actual)
            .map(|_| ())
            .map_err(|error| error.got)
    };
    assert_eq!(matches("> GET /\n< 200\n"), Ok(()));
    assert_eq!(matches("> GET /\n< 200\n<: B: 2\n"), Ok(()));
    assert_eq!(matches("> GET /\n< 200\n<: b: 3\n"), Err("2".to_owned()));
    assert_eq!(
        matches("> GET /\n< 200\n<: c: 3\n"),
        Err("no such header".to_owned())
    );
    assert_eq!(matches("> GET /\n< 404\n"), Err("200".to_owned()));
}

#[test]
fn openings_within_a_group_come_in_any_order() {
    let template = "unordered {\n> GET /a\n< 200\n\n> GET /b\n< 404\n}\n\n> GET /c\n";
    let swapped = live("> GET /b\n< 404\n\n> GET /a\n< 200\n\n> GET /c\n");
    assert!(matches(template, &swapped).is_ok());
    let wrong = live("> GET /b\n< 200\n\n> GET /a\n< 200\n\n> GET /c\n");
    assert!(matches(template, &wrong).is_err());
}

#[test]
fn a_transcript_with_more_than_the_template_does_not_match() {
    let error = matches("> GET /a\n", &live("> GET /a\n\n> GET /b\n")).unwrap_err();
    assert_eq!(
        (error.expected.as_str(), error.got.as_str()),
        ("nothing more", "GET /b")
    );
}

#[test]
fn a_live_run_is_written_as_a_template_that_it_matches() {
    let run = actual(DATA);
    let names = [("s-1", "session"), ("e1", "epoch")]
        .map(|(value, name)| (value.to_owned(), name.to_owned()));
    let template = write_template(&run, &names);
    assert!(
        template.contains("sessionId={{session}}") && template.contains("id: {{epoch}}:1"),
        "{template}"
    );
    assert_eq!(matches(&template, &run).map(|_| ()), Ok::<(), Mismatch>(()));
}

#[test]
fn hostile_templates_run_out_of_attempts_and_not_of_time() {
    let holes: String = (0..60).map(|n| format!("{{{{h{n}}}}}")).collect();
    let template = format!("> GET /{holes}x\n");
    let actual = live(&format!("> GET /{}\n", "a".repeat(200)));
    assert!(matches(&template, &actual).is_err());
}
