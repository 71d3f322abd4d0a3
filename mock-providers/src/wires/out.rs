//! Bodies with marks: what a wire module writes, and what is sent.
//!
//! A wire writes [`Frames`]: events as data with a name. Then edits change single events, and
//! `framing` turns the frames into a [`Rendered`] body.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::script::{Escape, RawEvent, Text};

/// A body, whole, with the places where events end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// All bytes.
    pub bytes: Bytes,
    /// Where pieces end, in ascending order; the last one is the end.
    pub marks: Vec<Mark>,
}

/// The end of a piece of a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The offset behind the piece's last byte.
    pub end: usize,
    /// What the piece is.
    pub kind: MarkKind,
}

/// What a piece of a body is.
#[derive(Clone, Debug, PartialEq)]
pub enum MarkKind {
    /// An event without new content.
    Event,
    /// An event with new text, thinking or arguments.
    Token,
    /// An event that belongs to the end.
    Tail,
    /// No bytes: silence.
    Pause(Duration),
    /// No bytes: silence until a gate of this name is opened.
    Gate(Arc<str>),
}

impl MarkKind {
    /// Whether bytes belong to it.
    pub const fn is_event(&self) -> bool {
        matches!(self, Self::Event | Self::Token | Self::Tail)
    }
}

impl Rendered {
    /// A body in one piece.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let marks = vec![Mark {
            end: bytes.len(),
            kind: MarkKind::Token,
        }];
        Self { bytes, marks }
    }

    /// The body as text, with U+FFFD for what is no UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// The events of a body before they are framed.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The data of all events, one behind the other.
    pub(crate) data: Vec<u8>,
    pub(crate) list: Vec<Frame>,
    begun: usize,
}

/// One event, or something between events.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) what: What,
    pub(crate) kind: MarkKind,
    /// The wire's end marker.
    pub(crate) terminal: bool,
}

/// What a frame consists of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// An event: its name, and the place of its data.
    Event {
        name: Option<Cow<'static, str>>,
        from: usize,
        to: usize,
    },
    /// A comment line.
    Comment(String),
    /// Bytes of the author's own.
    Bytes(String),
    /// No bytes.
    Silence,
}

impl Frames {
    /// Ends the event whose data was just written to `data`.
    pub(crate) fn end(&mut self, name: Option<&'static str>, kind: MarkKind) {
        let (from, to) = (self.begun, self.data.len());
        let what = What::Event {
            name: name.map(Cow::Borrowed),
            from,
            to,
        };
        self.list.push(Frame {
            what,
            kind,
            terminal: false,
        });
        self.begun = to;
    }

    /// Ends the event whose data was just written; it is the wire's end marker.
    pub(crate) fn end_terminal(&mut self, name: Option<&'static str>) {
        self.end(name, MarkKind::Tail);
        if let Some(frame) = self.list.last_mut() {
            frame.terminal = true;
        }
    }

    /// Writes an event with this data.
    pub(crate) fn event(&mut self, name: Option<&'static str>, data: &str, kind: MarkKind) {
        self.push(data);
        self.end(name, kind);
    }

    /// Writes data as it is.
    pub(crate) fn push(&mut self, text: &str) {
        self.data.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn raw(&mut self, event: &RawEvent) {
        self.push(&event.text());
        self.end(None, MarkKind::Event);
        if let Some(Frame {
            what: What::Event { name, .. },
            ..
        }) = self.list.last_mut()
        {
            *name = event.event.clone().map(Cow::Owned);
        }
    }

    pub(crate) fn other(&mut self, what: What, kind: MarkKind) {
        self.list.push(Frame {
            what,
            kind,
            terminal: false,
        });
    }
}

/// Writes a text as a JSON string, quotes included.
pub(crate) fn json_string(into: &mut Vec<u8>, text: &str) {
    if needs_escape(text) {
        // Writing a `str` into a `Vec` cannot fail.
        let _ = serde_json::to_writer(into, text);
        return;
    }
    into.reserve(text.len() + 2);
    into.push(b'"');
    into.extend_from_slice(text.as_bytes());
    into.push(b'"');
}

/// Whether JSON writes any byte of a text otherwise than it is. Most texts need nothing, and are looked through many bytes
/// at once.
fn needs_escape(text: &str) -> bool {
    let escaped =
        |byte: u8| u8::from(byte < b' ') | u8::from(byte == b'"') | u8::from(byte == b'\\');
    let any = |bytes: &[u8]| bytes.iter().fold(0, |any, byte| any | escaped(*byte)) != 0;
    // Pieces of a length that is known are looked through many bytes at once.
    let (chunks, rest) = text.as_bytes().as_chunks::<64>();
    chunks.iter().any(|chunk| any(chunk)) || any(rest)
}

/// A JSON object on its way into a buffer, member by member.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    into: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Members<'a> {
    /// Opens an object.
    pub(crate) fn open(into: &'a mut Vec<u8>) -> Self {
        into.push(b'{');
        Self { into, first: true }
    }

    /// Writes the name of a member. Names are those of the wires: nothing in them is escaped.
    fn name(&mut self, name: &str) -> &mut Vec<u8> {
        self.into.reserve(name.len() + 4);
        if !std::mem::take(&mut self.first) {
            self.into.push(b',');
        }
        self.into.push(b'"');
        self.into.extend_from_slice(name.as_bytes());
        self.into.extend_from_slice(b"\":");
        self.into
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        json_string(self.name(name), text);
    }

    /// A number.
    pub(crate) fn number(&mut self, name: &str, number: u64) {
        let mut digits = [0; 20];
        let mut from = digits.len();
        let mut rest = number;
        loop {
            from -= 1;
            // A digit is less than 10.
            digits[from] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.name(name).extend_from_slice(&digits[from..]);
    }

    /// Anything else. What is written here are numbers, texts and lists of them, none of which JSON cannot say.
    pub(crate) fn value(&mut self, name: &str, value: &impl serde::Serialize) {
        let into = self.name(name);
        let before = into.len();
        if serde_json::to_writer(&mut *into, value).is_err() {
            into.truncate(before);
            into.extend_from_slice(b"null");
        }
    }

    /// An object in the object.
    pub(crate) fn object(&mut self, name: &str) -> Members<'_> {
        Members::open(self.name(name))
    }

    /// Members that are written already, one behind the other.
    pub(crate) fn written(&mut self, members: &[u8]) {
        if !std::mem::take(&mut self.first) {
            self.into.push(b',');
        }
        self.into.extend_from_slice(members);
    }

    /// JSON that is written already.
    pub(crate) fn json(&mut self, name: &str, json: &[u8]) {
        self.name(name).extend_from_slice(json);
    }

    /// Closes the object.
    pub(crate) fn close(self) {
        self.into.push(b'}');
    }
}

/// The events of a text, as JSON strings with their quotes.
pub(crate) fn json_pieces(
    text: &Text,
    chunk: crate::script::Chunking,
    escape: Escape,
) -> Vec<Vec<u8>> {
    let mut literals = Vec::new();
    for piece in text.pieces(chunk) {
        if escape == Escape::SplitSurrogates {
            split_surrogates(piece, &mut literals);
        } else {
            let mut literal = Vec::with_capacity(piece.len() + 2);
            json_string(&mut literal, piece);
            literals.push(literal);
        }
    }
    literals
}

/// One literal more than `text` has characters outside of the basic plane: each is cut in two.
fn split_surrogates(text: &str, literals: &mut Vec<Vec<u8>>) {
    let mut units = [0; 2];
    let mut literal = Vec::from(*b"\"");
    for character in text.chars() {
        if let [high, low] = character.encode_utf16(&mut units) {
            literal.extend_from_slice(format!("\\u{high:04x}\"").as_bytes());
            literals.push(std::mem::take(&mut literal));
            literal.extend_from_slice(format!("\"\\u{low:04x}").as_bytes());
        } else {
            let mut one = Vec::new();
            json_string(&mut one, character.encode_utf8(&mut [0; 4]));
            literal.extend_from_slice(&one[1..one.len() - 1]);
        }
    }
    literal.push(b'"');
    literals.push(literal);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Chunking;

    #[test]
    fn halves_of_surrogate_pairs_come_in_two_events() {
        let pieces = json_pieces(&"a\"🚀b".into(), Chunking::Whole, Escape::SplitSurrogates);
        let pieces: Vec<_> = pieces
            .into_iter()
            .map(|piece| String::from_utf8(piece).unwrap())
            .collect();
        assert_eq!(pieces, [r#""a\"\ud83d""#, r#""\ude80b""#]);
    }
}
