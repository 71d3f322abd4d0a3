//! What a stream does that the format does not allow, or that a reader drops without a word.

use std::fmt;

use super::Limit;

/// One fault of a stream. A report, never an error: reading goes on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Violation {
    /// Where it is, in bytes from the start of the stream.
    pub offset: usize,
    /// What it is.
    pub kind: ViolationKind,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.kind)
    }
}

/// The kinds of [`Violation`]. `offset` says which byte each points at.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ViolationKind {
    /// A line opens with a byte order mark, and it is not the stream's first three bytes, so that
    /// the mark is part of a field name. Offset: the mark.
    BomInside,
    /// Bytes that are no UTF-8; readers see U+FFFD there. Offset: the first such byte of the line.
    InvalidUtf8,
    /// The value of an `id` field holds a NUL, so readers ignore the line. Offset: the NUL.
    NulInId,
    /// The value of a `retry` field is not one or more ASCII digits, so readers ignore the line.
    /// Offset: the value.
    BadRetry,
    /// A field that is none of `data`, `event`, `id`, `retry`, so readers ignore the line.
    /// Offset: the line.
    UnknownField,
    /// The stream ends inside this frame, so readers drop it. Offset: the end of the stream.
    UnterminatedTail,
    /// A line ends in another way than the first line of the stream: allowed, but hardly meant.
    /// Reported once per frame. Offset: the terminator.
    MixedLineEndings,
    /// More bytes than the [`Limits`](super::Limits) allow. Offset: the first byte too many.
    LimitExceeded(Limit),
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BomInside => "byte order mark inside the stream",
            Self::InvalidUtf8 => "invalid UTF-8",
            Self::NulInId => "NUL in an id",
            Self::BadRetry => "retry is not a number",
            Self::UnknownField => "unknown field",
            Self::UnterminatedTail => "stream ends inside an event",
            Self::MixedLineEndings => "line ending differs from the first one",
            Self::LimitExceeded(Limit::Line) => "line longer than the limit",
            Self::LimitExceeded(Limit::Event) => "event longer than the limit",
        })
    }
}
