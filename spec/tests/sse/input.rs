//! Random input that reaches the corners of the format.

use proptest::prelude::*;
use turnwire_spec::sse::Limits;

/// Bytes of which most are meaningful to the format, so that random streams reach its corners.
pub(crate) fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => Just(&b"\n"[..]).prop_map(<[u8]>::to_vec),
        2 => Just(b"\r".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        1 => Just(b"\n\n".to_vec()),
        3 => Just(b"data: one".to_vec()),
        2 => Just(b"data:".to_vec()),
        2 => Just(b"data".to_vec()),
        2 => Just(b"event: tick".to_vec()),
        1 => Just(b"event".to_vec()),
        2 => Just(b"id: 7".to_vec()),
        1 => Just(b"id".to_vec()),
        1 => Just(b"retry: 250".to_vec()),
        1 => Just(b"retry:99999999999999999999".to_vec()),
        1 => Just(b": keep".to_vec()),
        1 => Just(b"\xEF\xBB\xBF".to_vec()),
        1 => Just("h\u{e9} \u{1f431}".as_bytes().to_vec()),
        2 => proptest::collection::vec(any::<u8>(), 0..4),
        2 => proptest::sample::select(b":\0 0a\xFF\xF0\xEF".to_vec()).prop_map(|byte| vec![byte]),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// A stream with long lines, many events and some bytes that are no UTF-8, so that the decoder's
/// windows, buffers and short cuts meet.
pub(crate) fn long_stream() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof![
        8 => (0usize..600).prop_map(|len| vec![b'x'; len]),
        1 => (0usize..20_000).prop_map(|len| vec![b'x'; len]),
        2 => (0usize..200).prop_map(|len| "\u{e9}\u{1f431}".repeat(len).into_bytes()),
        1 => (0usize..100).prop_map(|len| [vec![b'x'; len], vec![0xF0, 0x9F]].concat()),
    ];
    let line = prop_oneof![
        8 => Just("data: "),
        1 => Just("event: "),
        1 => Just("id: "),
        1 => Just(": "),
    ];
    let end =
        prop_oneof![6 => Just("\n\n"), 2 => Just("\n"), 1 => Just("\r\n\r\n"), 1 => Just("\r\r")];
    let piece = (line, value, end)
        .prop_map(|(line, value, end)| [line.as_bytes(), &value, end.as_bytes()].concat());
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

pub(crate) fn cuts() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0usize..12, 0..30)
}

pub(crate) fn limits() -> impl Strategy<Value = Limits> {
    (0usize..24, 0usize..40).prop_map(|(max_line, max_event)| Limits {
        max_line,
        max_event,
    })
}

/// A text with line breaks, NULs and spaces where they hurt.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n".to_owned()),
        Just("\r".to_owned()),
        Just("\0".to_owned()),
        Just(" ".to_owned()),
        Just(":".to_owned()),
        Just("\u{FEFF}".to_owned()),
        any::<String>(),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}
