//! How a reply is cut, stalled and broken on its way. Positions count in the reply as it would be
//! sent whole, after its headers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{duration, sound};

/// What goes wrong with the bytes of one reply. Nothing, if not said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Sends pieces of at most so many bytes, each in a write of its own.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "sound::size"
    )]
    pub write_size: Option<usize>,
    /// Ends a write at each of these byte offsets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub split_at: Vec<usize>,
    /// Sends everything between two waits in one write, not one write an event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub join: bool,
    /// Waits so long between two writes.
    #[serde(with = "duration", skip_serializing_if = "duration::is_zero")]
    pub gap: Duration,
    /// Bytes that do not belong there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub insert: Vec<Insert>,
    /// Pauses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Stall>,
    /// An early end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// Keeps the body open for so long after the last byte.
    #[serde(with = "duration", skip_serializing_if = "duration::is_zero")]
    pub hold_open: Duration,
    /// Compresses the body with gzip, event by event, and says so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gzip: bool,
    /// Closes the connection after the reply without having announced it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub close_after: bool,
    /// Announces this `content-length` in place of chunked framing, whatever the body's length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_length: Option<u64>,
}

/// A place in a reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// After so many bytes.
    Bytes(usize),
    /// After so many events (of a plain answer: 1 is the end).
    Events(usize),
    /// After so many tokens: events with new text, thinking or arguments.
    Tokens(usize),
    /// So many bytes before the end.
    BytesFromEnd(usize),
}

/// An early end.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Where.
    pub after: Position,
    /// How.
    #[serde(default)]
    pub how: CutHow,
}

/// How a connection ends early.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutHow {
    /// The body ends as if it were complete (the last chunk is sent).
    #[default]
    End,
    /// The connection is closed; the body's framing is not complete.
    Close,
    /// The connection is reset (RST) once what came before was delivered.
    Reset,
}

/// A pause. In files: `{after: {events: 2}, for: 5s}`, or `gate: NAME`, or `never: true`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StallFile", into = "StallFile")]
pub struct Stall {
    /// Where.
    pub after: Position,
    /// How long.
    pub until: Until,
}

/// What ends a pause.
#[derive(Clone, Debug, PartialEq)]
pub enum Until {
    /// Time.
    For(Duration),
    /// A gate of this name is opened by [`Mock::open`](crate::Mock::open) or the control API.
    Gate(String),
    /// Nothing: the client has to give up.
    Never,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StallFile {
    after: Position,
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    time: Option<Span>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gate: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    never: bool,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
struct Span(#[serde(with = "duration")] Duration);

impl TryFrom<StallFile> for Stall {
    type Error = &'static str;

    fn try_from(file: StallFile) -> Result<Self, Self::Error> {
        let until = match (file.gate, file.never, file.time) {
            (Some(gate), false, None) => Until::Gate(gate),
            (None, true, None) => Until::Never,
            (None, false, Some(Span(time))) => Until::For(time),
            _ => return Err("a stall has one of: `for: 5s`, `gate: NAME`, `never: true`"),
        };
        Ok(Self {
            after: file.after,
            until,
        })
    }
}

impl From<Stall> for StallFile {
    fn from(stall: Stall) -> Self {
        let mut file = Self {
            after: stall.after,
            time: None,
            gate: None,
            never: false,
        };
        match stall.until {
            Until::For(time) => file.time = Some(Span(time)),
            Until::Gate(gate) => file.gate = Some(gate),
            Until::Never => file.never = true,
        }
        file
    }
}

/// Bytes that do not belong there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Insert {
    /// Where, in the reply without any insertion.
    pub after: Position,
    /// A text; or bytes that are no UTF-8, as `hex`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Bytes as hexadecimal digits, sent after `text`.
    #[serde(
        default,
        skip_serializing_if = "String::is_empty",
        deserialize_with = "sound::hex"
    )]
    pub hex: String,
}

impl Insert {
    /// The bytes to insert; digits that are no hexadecimal pair are left out.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.text.clone().into_bytes();
        bytes.extend(hex_bytes(&self.hex));
        bytes
    }
}

/// Reads pairs of hexadecimal digits, up to the first thing that is no pair; blanks may separate them.
pub(crate) fn hex_bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex
        .chars()
        .filter(|c| !c.is_whitespace())
        .map_while(|c| c.to_digit(16))
        .collect();
    digits
        .chunks_exact(2)
        .filter_map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok())
        .collect()
}

impl Faults {
    /// Whether the reply is sent as it is.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
