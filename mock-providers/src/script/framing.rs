//! How events are written on the wire: everything that a reader of event streams must not stumble over.

use serde::{Deserialize, Serialize};

/// The form of an event stream. Nothing said means the form of the real service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Framing {
    /// How lines end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_end: Option<LineEnd>,
    /// Blanks behind `data:` and `event:`; 1 if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blanks: Option<u8>,
    /// A byte order mark at the start.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bom: bool,
    /// `event:` lines: left out where the wire has them, or `event: message` where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_lines: Option<bool>,
    /// An `id:` line with a number in each event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ids: bool,
    /// A `retry:` line of its own at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<u64>,
    /// JSON over several `data:` lines.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub multi_line: bool,
    /// A comment with this text between events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// A comment with this text in the middle of each event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment_inside: Option<String>,
    /// An event with empty data before each event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub empty_events: bool,
    /// `event: ping` without data before each event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub nameless_pings: bool,
    /// The empty line behind the last event is missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_last_blank: bool,
    /// The wire's own end marker: `[DONE]`, `message_stop`, the last `response.…` event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<Done>,
    /// How characters outside of ASCII are written.
    #[serde(skip_serializing_if = "Escape::is_utf8")]
    pub escape: Escape,
}

/// How lines end.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineEnd {
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
    /// `\r`
    Cr,
    /// `\n` behind fields, `\r\n` as the empty line.
    Mixed,
}

impl LineEnd {
    /// Behind a field, and as an empty line.
    pub const fn ends(self) -> (&'static str, &'static str) {
        match self {
            Self::Lf => ("\n", "\n"),
            Self::CrLf => ("\r\n", "\r\n"),
            Self::Cr => ("\r", "\r"),
            Self::Mixed => ("\n", "\r\n"),
        }
    }
}

/// The wire's end marker.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// Not sent.
    Absent,
    /// Sent twice.
    Twice,
    /// `[DONE]` behind everything, also on wires that have none.
    Extra,
    /// This line in its place, such as `data:  [DONE]`.
    Line(String),
}

/// How characters outside of ASCII are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Escape {
    /// As they are.
    #[default]
    Utf8,
    /// As `\uXXXX`.
    Ascii,
    /// As they are, but the two halves of a surrogate pair come in two events.
    SplitSurrogates,
}

impl Escape {
    fn is_utf8(&self) -> bool {
        *self == Self::Utf8
    }
}

impl Framing {
    /// Whether it is the form of the real service.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
