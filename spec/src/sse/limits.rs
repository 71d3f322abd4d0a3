//! How much of one line and of one event is ever held in memory.

use std::fmt;

/// Bytes of one line, and of one event, that a reader keeps when nobody says otherwise: above the largest base64 image
/// that LLM services put into one event. Ours; the standard names no limit.
pub const KEPT_BYTES: usize = 16 << 20;

/// Upper bounds on what a reader keeps of a stream that it does not trust.
///
/// Both count bytes as they stand on the wire, without line terminators and without a leading byte
/// order mark. What lies beyond is never buffered, and is reported once per event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Bytes of one line.
    pub max_line: usize,
    /// Bytes of one event: the sum of its lines, comments and unknown fields included.
    pub max_event: usize,
}

impl Limits {
    /// No limit: for bytes that are in memory already.
    pub const NONE: Self = Self {
        max_line: usize::MAX,
        max_event: usize::MAX,
    };

    /// The same limit for a line and for an event, in bytes.
    pub const fn bytes(max: usize) -> Self {
        Self {
            max_line: max,
            max_event: max,
        }
    }

    /// Whether an event of so many bytes is within both limits, however its lines are long.
    #[inline]
    pub(super) fn allow(self, event: usize) -> bool {
        event <= self.max_line && event <= self.max_event
    }

    /// How far the next line may go, and which limit stops it there, after `used` bytes of its event.
    ///
    /// When both limits lie at the same byte, the line's is named.
    #[inline]
    pub(super) fn room(self, used: usize) -> (usize, Limit) {
        let left = self.max_event.saturating_sub(used);
        if self.max_line <= left {
            (self.max_line, Limit::Line)
        } else {
            (left, Limit::Event)
        }
    }
}

impl Default for Limits {
    /// [`KEPT_BYTES`] for both.
    fn default() -> Self {
        Self::bytes(KEPT_BYTES)
    }
}

/// Which of the [`Limits`] was exceeded.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Limit {
    /// [`Limits::max_line`].
    Line,
    /// [`Limits::max_event`].
    Event,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Line => "line",
            Self::Event => "event",
        })
    }
}
