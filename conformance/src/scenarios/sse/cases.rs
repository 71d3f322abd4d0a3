//! The streams that readers are given: bytes, cut into chunks, and what a reader makes of them.
//!
//! What is expected stands here for readers of this file; checks compute it with the codec of `turnwire_spec`
//! from the bytes that were sent, and a test holds the two together.

/// A stream and its events.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name, which is the label in transcripts.
    pub name: &'static str,
    /// The chunks in which the stream is sent.
    pub chunks: &'static [&'static [u8]],
    /// Type, data and last event id of each event.
    pub events: &'static [(&'static str, &'static str, &'static str)],
    /// Whether it means the same inside a longer stream, so that it can be sent cut at every byte.
    pub movable: bool,
}

const fn case(
    name: &'static str,
    chunks: &'static [&'static [u8]],
    events: &'static [(&'static str, &'static str, &'static str)],
) -> Case {
    Case {
        name,
        chunks,
        events,
        movable: true,
    }
}

/// A case that is about the start or the end of a stream.
const fn fixed(
    name: &'static str,
    chunks: &'static [&'static [u8]],
    events: &'static [(&'static str, &'static str, &'static str)],
) -> Case {
    Case {
        name,
        chunks,
        events,
        movable: false,
    }
}

const fn m(data: &'static str) -> (&'static str, &'static str, &'static str) {
    ("message", data, "")
}

/// Lines and their ends.
pub const LINES: &[Case] = &[
    case("lf", &[b"data: a\n\ndata: b\n\n"], &[m("a"), m("b")]),
    case("cr", &[b"data: a\r\rdata: b\r\r"], &[m("a"), m("b")]),
    case(
        "crlf",
        &[b"data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n"],
        &[m("a\nb"), m("c")],
    ),
    case(
        "mixed",
        &[b"data: a\ndata: b\r\ndata: c\rdata: d\n\r\n"],
        &[m("a\nb\nc\nd")],
    ),
    case(
        "crlf-cut",
        &[b"data: a\r", b"\ndata: b\r", b"\n\r", b"\ndata: c\r\n\r\n"],
        &[m("a\nb"), m("c")],
    ),
    case(
        "separators",
        &["data: a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\n\n".as_bytes()],
        &[m("a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f")],
    ),
    case(
        "blank-lines",
        &[b"\n\n\ndata: a\n\n\n\ndata: b\n\n\n"],
        &[m("a"), m("b")],
    ),
    fixed("unfinished-line", &[b"data: a\n\ndata: lost"], &[m("a")]),
    fixed("unfinished-event", &[b"data: a\n\ndata: lost\n"], &[m("a")]),
];

/// Bytes and characters.
pub const TEXT: &[Case] = &[
    case(
        "utf8",
        &["data: gr\u{fc}n \u{65e5}\u{672c} \u{1f680}\n\n".as_bytes()],
        &[m("gr\u{fc}n \u{65e5}\u{672c} \u{1f680}")],
    ),
    case(
        "utf8-cut",
        &[b"data: \xf0", b"\x9f", b"\x9a", b"\x80!\n\n"],
        &[m("\u{1f680}!")],
    ),
    case(
        "invalid-utf8",
        &[b"data: a\xffb\xc3(\n\n"],
        &[m("a\u{fffd}b\u{fffd}(")],
    ),
    fixed("bom", &[b"\xef\xbb\xbfdata: a\n\n"], &[m("a")]),
    fixed(
        "bom-twice",
        &[b"\xef\xbb\xbf\xef\xbb\xbfdata: lost\n\ndata: a\n\n"],
        &[m("a")],
    ),
    case(
        "bom-inside",
        &[b"data: a\n\n\xef\xbb\xbfdata: lost\n\ndata: \xef\xbb\xbfb\n\n"],
        &[m("a"), m("\u{feff}b")],
    ),
];

/// Lines as fields.
pub const FIELDS: &[Case] = &[
    case(
        "comment",
        &[b": data: x\n\ndata: a\n\n:\n\n:y\n\n"],
        &[m("a")],
    ),
    case(
        "comment-inside",
        &[b"data: a\n: x\ndata: b\n:\ndata: c\n\n"],
        &[m("a\nb\nc")],
    ),
    case("first-colon", &[b"data: a:b: c\n\n"], &[m("a:b: c")]),
    case("one-space", &[b"data:a\n\ndata: a\n\n"], &[m("a"), m("a")]),
    case(
        "only-one-space",
        &[b"data:  a\n\ndata:   b\n\n"],
        &[m(" a"), m("  b")],
    ),
    case(
        "white-space",
        &[b"data: a \t\n\ndata:\tb\n\n"],
        &[m("a \t"), m("\tb")],
    ),
    case("no-colon", &[b"data\n\ndata\ndata\n\n"], &[m(""), m("\n")]),
    case("name-case", &[b"Data: x\nDATA: y\ndata: a\n\n"], &[m("a")]),
    case(
        "name-space",
        &[b" data: x\ndata : y\ndata: a\n\n"],
        &[m("a")],
    ),
    case(
        "unknown-field",
        &[b"foo: x\ndata: a\nbar\ndata: b\nconstructor: x\n\n"],
        &[m("a\nb")],
    ),
    case(
        "data-lines",
        &[b"data: a\ndata: b\ndata:\ndata: c\n\n"],
        &[m("a\nb\n\nc")],
    ),
    case("last-line-feed", &[b"data: a\ndata:\n\n"], &[m("a\n")]),
];

/// Types, ids and what is dispatched.
pub const EVENTS: &[Case] = &[
    case("type", &[b"event: add\ndata: a\n\n"], &[("add", "a", "")]),
    case("default-type", &[b"data: a\n\n"], &[m("a")]),
    case(
        "last-type",
        &[b"event: one\nevent: two\ndata: a\n\n"],
        &[("two", "a", "")],
    ),
    case(
        "empty-type",
        &[b"event:\ndata: a\n\nevent\ndata: b\n\nevent: add\nevent:\ndata: c\n\n"],
        &[m("a"), m("b"), m("c")],
    ),
    case(
        "type-passes",
        &[b"event: add\ndata: a\n\ndata: b\n\n"],
        &[("add", "a", ""), m("b")],
    ),
    case(
        "dataless",
        &[b"event: lost\n\nevent: add\ndata: a\n\n"],
        &[("add", "a", "")],
    ),
    case("dataless-type", &[b"event: lost\n\ndata: a\n\n"], &[m("a")]),
    case("id", &[b"id: 1\ndata: a\n\n"], &[("message", "a", "1")]),
    case(
        "id-stays",
        &[b"id: 1\ndata: a\n\ndata: b\n\n"],
        &[("message", "a", "1"), ("message", "b", "1")],
    ),
    case(
        "id-nul",
        &[b"id: 1\ndata: a\n\nid: 2\x003\ndata: b\n\n"],
        &[("message", "a", "1"), ("message", "b", "1")],
    ),
    case(
        "id-empty",
        &[b"id: 1\ndata: a\n\nid:\ndata: b\n\n"],
        &[("message", "a", "1"), m("b")],
    ),
    case(
        "id-dataless",
        &[b"id: 7\n\ndata: a\n\n"],
        &[("message", "a", "7")],
    ),
    case(
        "id-verbatim",
        &["id:  x~1:\u{e9} \ndata: a\n\n".as_bytes()],
        &[("message", "a", " x~1:\u{e9} ")],
    ),
    case("nul", &[b"data: a\x00b\n\n"], &[m("a\0b")]),
];

/// The cases of all groups that can be sent inside a longer stream.
pub fn movable() -> impl Iterator<Item = &'static Case> {
    let groups = [LINES, TEXT, FIELDS, EVENTS];
    let all = groups.into_iter().flatten();
    all.filter(|case| case.movable)
}

impl Case {
    /// The whole stream.
    pub fn bytes(&self) -> Vec<u8> {
        self.chunks.concat()
    }
}

#[cfg(test)]
mod tests {
    use turnwire_spec::sse::{Decoder, Limits};

    use super::*;

    #[test]
    fn the_codec_gives_what_the_cases_expect() {
        for case in [LINES, TEXT, FIELDS, EVENTS].into_iter().flatten() {
            let mut decoder = Decoder::new(Limits::NONE);
            let mut seen = Vec::new();
            for chunk in case.chunks {
                let event = decoder.feed(chunk, |event| {
                    let owned = |text: &str| text.to_owned();
                    seen.push((
                        owned(event.event),
                        owned(event.data),
                        owned(event.last_event_id),
                    ));
                });
                event.unwrap();
            }
            let seen: Vec<_> = seen
                .iter()
                .map(|(kind, data, id)| (kind.as_str(), data.as_str(), id.as_str()))
                .collect();
            assert_eq!(seen, case.events, "{}", case.name);
        }
    }
}
