//! One line of a stream with all its bytes.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use memchr::memchr;

/// How a line ends.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Terminator {
    /// LF.
    Lf,
    /// CR and LF.
    CrLf,
    /// CR alone.
    Cr,
    /// The stream ended first.
    None,
}

impl Terminator {
    /// Its bytes on the wire.
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::Cr => b"\r",
            Self::None => b"",
        }
    }
}

/// What a line is, by its first colon.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LineKind {
    /// A field; both ranges index [`Line::raw`].
    Field {
        /// Everything before the first colon, or the whole line when there is none.
        name: Range<usize>,
        /// What follows the colon and at most one space; empty when there is no colon.
        value: Range<usize>,
    },
    /// It opens with a colon.
    Comment,
    /// Nothing: it ends the frame.
    Blank,
}

impl LineKind {
    /// Splits a line, given without its terminator.
    pub(super) fn of(raw: &[u8]) -> Self {
        match memchr(b':', raw) {
            _ if raw.is_empty() => Self::Blank,
            None => Self::Field {
                name: 0..raw.len(),
                value: raw.len()..raw.len(),
            },
            Some(0) => Self::Comment,
            Some(colon) => {
                let space = usize::from(raw.get(colon + 1) == Some(&b' '));
                Self::Field {
                    name: 0..colon,
                    value: colon + 1 + space..raw.len(),
                }
            }
        }
    }
}

/// One line, losslessly: `raw` and the bytes of `terminator` are what was sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Line {
    /// Where it starts, in bytes from the start of the stream.
    pub offset: usize,
    /// Its bytes without the terminator.
    pub raw: Bytes,
    /// How it ends.
    pub terminator: Terminator,
    /// What it is.
    pub kind: LineKind,
    /// Bytes of the line beyond the reader's limits, which were not kept; 0 for a whole line.
    pub omitted: usize,
    /// The decoded value, when `raw` holds no valid UTF-8 there.
    pub(super) replaced: Option<Box<str>>,
}

impl Line {
    pub(super) fn new(offset: usize, raw: Bytes, terminator: Terminator, omitted: usize) -> Self {
        let kind = LineKind::of(&raw);
        let mut line = Self {
            offset,
            raw,
            terminator,
            kind,
            omitted,
            replaced: None,
        };
        if let Cow::Owned(text) = String::from_utf8_lossy(line.value_bytes()) {
            line.replaced = Some(text.into_boxed_str());
        }
        line
    }

    /// The field name, for a field.
    pub fn name(&self) -> Option<&[u8]> {
        match &self.kind {
            LineKind::Field { name, .. } => self.raw.get(name.clone()),
            LineKind::Comment | LineKind::Blank => None,
        }
    }

    /// Whether it is a field of this name. Names are compared byte for byte, case included.
    pub fn is_field(&self, name: &str) -> bool {
        self.name() == Some(name.as_bytes())
    }

    /// The bytes of a field's value or of a comment's text (all that follows its colon).
    pub fn value_bytes(&self) -> &[u8] {
        let range = match &self.kind {
            LineKind::Field { value, .. } => value.clone(),
            LineKind::Comment => 1..self.raw.len(),
            LineKind::Blank => 0..0,
        };
        self.raw.get(range).unwrap_or_default()
    }

    /// [`Self::value_bytes`] as readers decode them: U+FFFD for what is no UTF-8.
    pub fn value(&self) -> &str {
        match &self.replaced {
            Some(text) => text,
            None => str::from_utf8(self.value_bytes()).unwrap_or_default(),
        }
    }

    /// The text of a comment, after its colon.
    pub fn comment(&self) -> Option<&str> {
        (self.kind == LineKind::Comment).then(|| self.value())
    }

    /// The whole line for a human: decoded, without its terminator.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.raw)
    }

    /// Where the line ends, terminator excluded, in bytes from the start of the stream.
    pub fn content_end(&self) -> usize {
        self.offset + self.raw.len() + self.omitted
    }

    /// Where the next line starts, in bytes from the start of the stream.
    pub fn end(&self) -> usize {
        self.content_end() + self.terminator.bytes().len()
    }
}
