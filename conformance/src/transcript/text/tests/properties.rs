//! What holds for every transcript and every text.

use std::time::Duration;

use bytes::Bytes;
use proptest::{collection::vec, option, prelude::*, sample::subsequence};
use serde_json::Value;

use crate::transcript::{
    End, Entry, ExchangeId, Fact, Header, Lost, Request, ResponseHead, Side, TargetFact,
    Transcript, WsFrame,
    text::{matches, parse, write},
};

/// Text with what the form treats specially.
fn text() -> impl Strategy<Value = String> {
    let special = prop_oneof![
        Just(" "),
        Just("\\"),
        Just("\\x41"),
        Just("{{a}}"),
        Just("{"),
        Just("}}"),
        Just(":"),
        Just("#"),
        Just("\n"),
        Just("\r"),
        Just("\u{2028}"),
        Just("é"),
        Just("\u{feff}"),
        Just("data: "),
        Just("x"),
        Just("41"),
    ];
    prop_oneof![3 => vec(special, 0..6).prop_map(|parts| parts.concat()), 1 => any::<String>()]
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        3 => text().prop_map(Bytes::from),
        1 => vec(any::<u8>(), 0..24).prop_map(Bytes::from),
        1 => (text(), vec(any::<u8>(), 0..3), text()).prop_map(|(a, b, c)| [a.as_bytes(), &b, c.as_bytes()].concat().into()),
    ]
}

fn headers() -> impl Strategy<Value = Vec<(String, String)>> {
    let media_type = prop_oneof![
        Just("text/event-stream"),
        Just("application/json"),
        Just("Text/Event-Stream; a=b")
    ];
    prop_oneof![
        Just(Vec::new()),
        media_type.prop_map(|value| vec![("content-type".to_owned(), value.to_owned())]),
        vec((text(), text()), 0..4),
    ]
}

fn exchange() -> impl Strategy<Value = ExchangeId> {
    prop_oneof![8 => 1..4u32, 1 => any::<u32>()].prop_map(ExchangeId)
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn frame() -> impl Strategy<Value = WsFrame> {
    prop_oneof![
        text().prop_map(WsFrame::Text),
        bytes().prop_map(WsFrame::Binary),
        bytes().prop_map(WsFrame::Ping),
        bytes().prop_map(WsFrame::Pong),
        option::of((any::<u16>(), text())).prop_map(WsFrame::Close),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Complete),
        Just(End::ClosedByHarness),
        Just(End::TimedOut),
        Just(End::TooLarge),
        text().prop_map(End::Broken),
        text().prop_map(End::NotConnected),
        text().prop_map(End::NotHttp),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no such number", |n| n.is_finite())
            .prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn request() -> impl Strategy<Value = Request> {
    let method = prop_oneof![
        Just("GET".to_owned()),
        text().prop_filter("no method", |text| !text.is_empty())
    ];
    (method, text(), headers(), bytes()).prop_map(|(method, target, headers, body)| Request {
        method,
        target,
        headers,
        body,
    })
}

fn fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        1 => text().prop_map(Fact::Label),
        1 => text().prop_map(|variant| Fact::Target(TargetFact::Started { variant })),
        1 => prop_oneof![Just(TargetFact::Stopped), Just(TargetFact::Killed)].prop_map(Fact::Target),
        4 => (exchange(), request()).prop_map(|(exchange, request)| Fact::Request { exchange, request }),
        4 => (exchange(), any::<u16>(), headers())
            .prop_map(|(exchange, status, headers)| Fact::Response { exchange, head: ResponseHead { status, headers } }),
        8 => (exchange(), bytes()).prop_map(|(exchange, bytes)| Fact::Chunk { exchange, bytes }),
        2 => (exchange(), side(), frame())
            .prop_map(|(exchange, from, frame)| Fact::WebSocket { exchange, from, frame }),
        2 => (exchange(), side(), bytes()).prop_map(|(exchange, from, bytes)| Fact::Line { exchange, from, bytes }),
        2 => (exchange(), end()).prop_map(|(exchange, how)| Fact::End { exchange, how }),
        1 => json().prop_map(Fact::State),
        1 => text().prop_map(Fact::Note),
    ]
}

fn header() -> impl Strategy<Value = Header> {
    let ids = vec(text().prop_filter("no id", |text| !text.is_empty()), 0..3);
    let scale = any::<f64>().prop_filter("no scale", |scale| scale.is_finite());
    let lost = subsequence(Lost::ALL.to_vec(), 0..=2);
    (
        text(),
        text(),
        ids,
        any::<i64>(),
        scale,
        lost,
        vec(text(), 0..3),
    )
        .prop_map(
            |(suite, scenario, requirements, started_ms, time_scale, lost, notes)| Header {
                suite,
                scenario,
                requirements,
                started_ms,
                time_scale,
                lost,
                notes,
            },
        )
}

fn transcript() -> impl Strategy<Value = Transcript> {
    let pause = prop_oneof![Just(0), 0..2_000u64, 0..60_000_000_000u64];
    (header(), vec((pause, fact()), 0..24)).prop_map(|(header, facts)| {
        let mut at = Duration::ZERO;
        let entries = facts.into_iter().map(|(pause, fact)| {
            at += Duration::from_nanos(pause);
            Entry { at, fact }
        });
        Transcript {
            header,
            entries: entries.collect(),
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back_as_the_same(transcript in transcript()) {
        let text = write(&transcript);
        prop_assert_eq!(parse(&text), Ok(transcript), "{}", text);
    }

    #[test]
    fn every_transcript_matches_itself(transcript in transcript()) {
        let text = write(&transcript);
        prop_assert!(matches(&text, &transcript).is_ok(), "{:?}\n{}", matches(&text, &transcript), text);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn no_text_of_known_words_makes_the_reader_panic(lines in vec(known_line(), 0..30)) {
        let text = lines.join("\n");
        if let Ok(transcript) = parse(&text) {
            let written = write(&transcript);
            prop_assert_eq!(parse(&written), Ok(transcript), "{}\n---\n{}", text, written);
        }
    }
}

/// A line such as a file could have, or nearly.
fn known_line() -> impl Strategy<Value = String> {
    let start = prop_oneof![
        Just("> "),
        Just("<"),
        Just("< "),
        Just(">1"),
        Just("<2 "),
        Just(">:"),
        Just("<: "),
        Just("<~ "),
        Just(">$ "),
        Just("<! "),
        Just("<| "),
        Just("@"),
        Just("@+"),
        Just("#"),
        Just("label "),
        Just("end "),
        Just("target "),
        Just("state "),
        Just("unordered {"),
        Just("}"),
        Just(""),
        Just("twire 1"),
        Just("suite:"),
        Just("scale: "),
    ];
    let rest = prop_oneof![
        Just("GET /".to_owned()),
        Just("200".to_owned()),
        Just("text a".to_owned()),
        Just("1ms".to_owned()),
        Just("complete".to_owned()),
        Just("a: b".to_owned()),
        Just("data: {{a}}".to_owned()),
        Just("1 broken x".to_owned()),
        Just("stopped".to_owned()),
        Just("\"{{n}}\"".to_owned()),
        Just(String::new()),
        text(),
    ];
    (start, rest).prop_map(|(start, rest)| format!("{start}{rest}"))
}
