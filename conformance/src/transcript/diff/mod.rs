//! What differs between two transcripts in what they mean.
//!
//! - [`volatile`]: the parts of a text that differ from run to run: ids, times, durations, ports, placeholders;
//! - [`alike`]: whether two texts are the same but for those, and the same ids stand for the same ids;
//! - [`align`]: which exchange, and which frame, of one transcript belongs to which of the other;
//! - [`changes`]: where two texts differ, by JSON pointer; [`kind()`]: what kind of message a JSON value is.
//!
//! Exchanges are compared in the order in which they were opened, each with its request, head, body or frames,
//! and end; messages of other channels likewise. JSON is compared as values: the order of members does not
//! matter. An id of the first transcript stands for one id of the second, everywhere, and the other way round;
//! times and durations may differ. A placeholder stands for any text without a quote, the same one everywhere;
//! frames of an `unordered` group come in any order.
//!
//! On a channel of both sides each side's messages have an order of their own, since two that cross on their way do
//! so by chance.
//!
//! Not compared: times of arrival, chunk boundaries, comments, heartbeats, pings and pongs, headers of one connection
//! ([`IGNORED_HEADERS`]), headers that only one side lists, what one side has of a stream that the client of the
//! other left before, and labels, target facts and states where one side has none at all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Transcript,
    text::{Hider, Template},
};

pub mod alike;
pub mod volatile;

mod align;
mod changes;
mod kind;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use changes::canonical;
pub use kind::kind;

/// Headers that say something about one connection or one moment and nothing about the protocol.
pub const IGNORED_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "connection",
    "content-length",
    "cookie",
    "date",
    "host",
    "keep-alive",
    "origin",
    "priority",
    "referer",
    "sec-websocket-accept",
    "sec-websocket-key",
    "server",
    "set-cookie",
    "transfer-encoding",
    "user-agent",
];

/// What differs between two transcripts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// Whether they say the same.
    pub same: bool,
    /// Exchanges that were compared with each other.
    pub exchanges: usize,
    /// Frames, bodies, heads, messages and ends that are alike.
    pub alike: usize,
    /// Ids of the first transcript and what they are in the second, by kind and in order of appearance.
    pub ids: Vec<IdPair>,
    /// What is not the same, in the order of the first transcript.
    pub differences: Vec<Difference>,
}

/// An id, or a placeholder, and what stands in its place.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct IdPair {
    /// In the first transcript.
    pub a: String,
    /// In the second.
    pub b: String,
}

/// One thing that is not the same.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// In which way.
    pub kind: DifferenceKind,
    /// What it is: `exchange`, `request`, `head`, `frame`, `body`, `end`, `label`...
    pub what: String,
    /// Request line of the exchange, when it belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Where in the first transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<Piece>,
    /// Where in the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<Piece>,
    /// What changed, where that can be told more exactly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// In which way something differs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// The second transcript does not have it.
    Missing,
    /// Only the second transcript has it.
    Extra,
    /// Both have it, and it says something else.
    Changed,
    /// Both have it, at another place in the order.
    Moved,
}

/// A piece of a transcript.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Piece {
    /// Number of the exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u32>,
    /// Line of the file, from 1; absent for what was read from no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Place among its like in the exchange, from 0: the number of the frame.
    pub index: usize,
    /// What it says, on one line, cut to a readable length.
    pub text: String,
}

/// One value that changed.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Change {
    /// Where: a field of an event stream and a JSON pointer (`data /payload/text`), or a header's name.
    pub at: String,
    /// In the first transcript; absent when it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<String>,
    /// In the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
}

/// What changed between two bodies, where `ids` stand for each other; nothing when that cannot be told more exactly.
pub(crate) fn body_changes(a: &str, b: &str, ids: &alike::Ids) -> Vec<Change> {
    changes::between("body", a, b, ids)
}

/// Compares two transcripts.
pub fn transcripts(a: &Transcript, b: &Transcript) -> Diff {
    templates(&Template::of(a), &Template::of(b))
}

/// Compares two transcripts in which there may be placeholders and groups.
///
/// What is shown of them is shown without secrets.
pub fn templates(a: &Template, b: &Template) -> Diff {
    let mut diff = walk::compare(a, b);
    // One that is no transcript has been compared as far as it goes; it has no bodies that could tell a secret.
    let read: Vec<Transcript> = [a, b]
        .into_iter()
        .filter_map(|one| one.lower().ok())
        .collect();
    let hider = Hider::of(&read);
    let hide = |text: &mut String| *text = hider.hide(text);
    for pair in &mut diff.ids {
        hide(&mut pair.a);
        hide(&mut pair.b);
    }
    for difference in &mut diff.differences {
        let Difference {
            request,
            a,
            b,
            changes,
            ..
        } = difference;
        request.iter_mut().for_each(hide);
        for piece in [a, b].into_iter().flatten() {
            hide(&mut piece.text);
        }
        for change in changes {
            change.a.iter_mut().chain(&mut change.b).for_each(hide);
        }
    }
    diff
}
