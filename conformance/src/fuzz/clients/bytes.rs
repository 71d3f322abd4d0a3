//! Frames and lines as bytes, written in every way that streams, sockets and lines allow, and in some that they do not.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use crate::{
    drivers::websocket::frames::frame_bytes,
    fuzz::{
        envelopes::{body, change::Change},
        random::Random,
    },
};

/// How a frame is written. Each protocol has some of them.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wrap {
    /// As usual.
    #[default]
    Plain,
    /// Lines end with CR.
    Cr,
    /// Lines end with CR LF.
    CrLf,
    /// No blank after the colon.
    NoBlank,
    /// Comments and unknown fields before each line.
    Comments,
    /// The data stands on two lines.
    TwoLines,
    /// The type stands in the data only.
    NoType,
    /// Another type than in the data.
    OtherType,
    /// No id.
    NoId,
    /// An id that is no cursor.
    OddId,
    /// A long id.
    LongId,
    /// The fields in another order.
    Order,
    /// No blank line, or no line end: the next frame becomes part of it.
    Open,
    /// Blank lines before and after it.
    BlankLines,
    /// White space before and after it.
    Spaces,
    /// A WebSocket message in three frames, with a ping between them.
    Fragments,
    /// A binary message.
    Binary,
    /// Masked, as only clients do.
    Masked,
    /// A reserved bit is set.
    Reserved,
    /// An opcode that nobody knows.
    Opcode,
    /// A message begins within another one.
    Within,
    /// The frame says that it is longer than any memory.
    Huge,
    /// A close frame of one byte in place of it.
    OddClose,
}

impl Wrap {
    /// Those of event streams.
    pub const STREAM: &[Self] = &[
        Self::Plain,
        Self::Cr,
        Self::CrLf,
        Self::NoBlank,
        Self::Comments,
        Self::TwoLines,
        Self::NoType,
        Self::OtherType,
        Self::NoId,
        Self::OddId,
        Self::LongId,
        Self::Order,
        Self::Open,
    ];
    /// Those of WebSockets.
    pub const SOCKET: &[Self] = &[
        Self::Plain,
        Self::Spaces,
        Self::Fragments,
        Self::Binary,
        Self::Masked,
        Self::Reserved,
        Self::Opcode,
        Self::Within,
        Self::Huge,
        Self::OddClose,
    ];
    /// Those of lines.
    pub const LINE: &[Self] = &[
        Self::Plain,
        Self::CrLf,
        Self::BlankLines,
        Self::Spaces,
        Self::Open,
    ];

    /// One of these, plain as often as not.
    pub fn random(wraps: &[Self], random: &mut Random) -> Self {
        let plain = random.percent(50);
        let count = u32::try_from(wraps.len()).unwrap_or(1);
        let other = wraps.get(random.below(count) as usize).copied();
        other.filter(|_| !plain).unwrap_or_default()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Cr => "cr",
            Self::CrLf => "cr-lf",
            Self::NoBlank => "no-blank",
            Self::Comments => "comments",
            Self::TwoLines => "two-lines",
            Self::NoType => "no-type",
            Self::OtherType => "other-type",
            Self::NoId => "no-id",
            Self::OddId => "odd-id",
            Self::LongId => "long-id",
            Self::Order => "order",
            Self::Open => "open",
            Self::BlankLines => "blank-lines",
            Self::Spaces => "spaces",
            Self::Fragments => "fragments",
            Self::Binary => "binary",
            Self::Masked => "masked",
            Self::Reserved => "reserved",
            Self::Opcode => "opcode",
            Self::Within => "within",
            Self::Huge => "huge",
            Self::OddClose => "odd-close",
        }
    }
}

/// A frame of an event stream: its JSON after the changes, in lines. `kind` and `id` are its other fields, when it has them.
pub fn frame(
    value: Value,
    changes: &[Change],
    wrap: Wrap,
    kind: Option<&str>,
    id: Option<&str>,
) -> Vec<u8> {
    let data = body::changed(value, changes);
    let field = |name: &str, value: &[u8]| [name.as_bytes(), b": ", value].concat();
    let kind = match wrap {
        Wrap::NoType => None,
        Wrap::OtherType => Some("system.heartbeat"),
        _ => kind,
    };
    let long = "9".repeat(4_000);
    let id = match wrap {
        Wrap::NoId => None,
        Wrap::OddId => Some("\u{e9} not a cursor"),
        Wrap::LongId => Some(long.as_str()),
        _ => id,
    };
    let mut lines: Vec<Vec<u8>> = Vec::new();
    lines.extend(kind.map(|kind| field("event", kind.as_bytes())));
    if wrap == Wrap::TwoLines {
        let (first, second) = data.split_at(data.len() / 2);
        lines.extend([field("data", first), field("data", second)]);
    } else {
        lines.push(field("data", &data));
    }
    lines.extend(id.map(|id| field("id", id.as_bytes())));
    if wrap == Wrap::Order {
        lines.reverse();
    }
    if wrap == Wrap::NoBlank {
        for line in &mut lines {
            if let Some(colon) = line.iter().position(|byte| *byte == b':') {
                line.remove(colon + 1);
            }
        }
    }
    if wrap == Wrap::Comments {
        lines = lines
            .into_iter()
            .flat_map(|line| [b": comment".to_vec(), b"nobody: knows".to_vec(), line])
            .collect();
    }
    if wrap != Wrap::Open {
        lines.push(Vec::new());
    }
    let end: &[u8] = match wrap {
        Wrap::Cr => b"\r",
        Wrap::CrLf => b"\r\n",
        _ => b"\n",
    };
    lines.iter().flat_map(|line| [line, end].concat()).collect()
}

/// A text as the bytes of a WebSocket message.
pub fn message(text: &[u8], wrap: Wrap) -> Vec<u8> {
    let part = |last: bool, opcode: Data, bytes: &[u8]| {
        let payload = Bytes::copy_from_slice(bytes);
        frame_bytes(last, OpCode::Data(opcode), payload, false)
    };
    let whole = part(true, Data::Text, text);
    let first_byte = |byte: u8| {
        let mut bytes = whole.clone();
        bytes[0] = byte;
        bytes
    };
    match wrap {
        Wrap::Spaces => part(true, Data::Text, &[b" \n\t", text, b"\r\n "].concat()),
        Wrap::Fragments => {
            let (head, tail) = text.split_at(text.len() / 2);
            let ping = frame_bytes(true, OpCode::Control(Control::Ping), Bytes::new(), false);
            let first = part(false, Data::Text, head);
            let second = part(false, Data::Continue, tail);
            let last = part(true, Data::Continue, b"");
            [first, ping, second, last].concat()
        }
        Wrap::Binary => part(true, Data::Binary, text),
        Wrap::Masked => {
            let payload = Bytes::copy_from_slice(text);
            frame_bytes(true, OpCode::Data(Data::Text), payload, true)
        }
        Wrap::Reserved => first_byte(0xc1),
        Wrap::Opcode => first_byte(0x83),
        Wrap::Within => [part(false, Data::Text, b"{"), whole].concat(),
        Wrap::Huge => [&[0x81, 127][..], &(u64::MAX >> 1).to_be_bytes(), text].concat(),
        Wrap::OddClose => vec![0x88, 1, 3],
        _ => whole,
    }
}

/// A text as a line.
pub fn line(text: &[u8], wrap: Wrap) -> Vec<u8> {
    match wrap {
        Wrap::CrLf => [text, b"\r\n"].concat(),
        Wrap::BlankLines => [b"\n\n", text, b"\n\n"].concat(),
        Wrap::Spaces => [b" \t", text, b" \n"].concat(),
        Wrap::Open => text.to_vec(),
        _ => [text, b"\n"].concat(),
    }
}

/// Pieces of bytes at most, since each goes by itself.
const PIECES: usize = 48;

/// Bytes in pieces of so many each, or a few more where they would be too many; 0 is whole.
pub fn pieces(bytes: &[u8], length: u8) -> Vec<&[u8]> {
    if length == 0 || bytes.is_empty() {
        return vec![bytes];
    }
    let length = usize::from(length).max(bytes.len().div_ceil(PIECES));
    bytes.chunks(length).collect()
}

/// Lines of event streams. A reconnection time is short, so that nobody waits for long; types are those of the suite's
/// scenarios, since some readers have to be told which ones to listen to.
pub const LINES: &[&[u8]] = &[
    b"data: a",
    b"data:b",
    b"data:  c ",
    b"data",
    b"data:",
    b"data: {\"a\":\"\xc3\xa9\"}",
    b"data: \xff\xfe\x80",
    b"data: \xf0\x9f\xa6",
    b"data: \xf0\x9f\xa6\xa9",
    b"data: \xef\xbb\xbfmark",
    b"data: a\0b",
    b"data: \xe2\x80\xa8",
    b"event: add",
    b"event:",
    b"event: one",
    b"event: message",
    b"id: 1",
    b"id: \xc3\xa9",
    b"id",
    b"id: a\0b",
    b"retry: 30",
    b"retry: -1",
    b"retry: 3x",
    b": comment",
    b":",
    b"",
    b"",
    b"",
    b"",
    b"DATA: d",
    b" data: e",
    b"datax: f",
    b"nobody: knows",
    b"\xef\xbb\xbfdata: g",
    b"data: \x0b\x0c\x85",
    b"data: gggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg",
];

/// Ends of lines.
pub const ENDS: &[&[u8]] = &[b"\n", b"\n", b"\r", b"\r\n"];
