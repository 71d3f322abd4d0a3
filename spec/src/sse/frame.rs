//! Frames: the blocks of lines between blank lines, with every byte and every fault.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use super::bom::BOM;
use super::{Line, LineKind, Violation};

/// One block of a stream: its lines up to and including the blank line that ends it.
///
/// A frame need not be an event: it may hold comments only, or a blank line only (as after a
/// blank line). [`Frame::dispatches`] tells.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Frame {
    /// Its first byte, from the start of the stream.
    pub start: usize,
    /// The byte after its last one, blank line included, from the start of the stream.
    pub end: usize,
    /// Its lines in order, the blank one included. Lines wholly beyond the reader's limits are not
    /// kept.
    pub lines: Vec<Line>,
    /// Whether a blank line ends it. Only the last frame of a stream can lack one.
    pub terminated: bool,
    /// Bytes between `start` and `end` that were not kept, because of the reader's limits. 0 means
    /// that the frame is lossless.
    pub omitted: usize,
    /// Its faults, by offset.
    pub violations: Vec<Violation>,
}

impl Frame {
    /// Where it stands in the stream, in bytes.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// The fields of this name, in order.
    pub fn fields<'a>(&'a self, name: &str) -> impl DoubleEndedIterator<Item = &'a Line> {
        self.lines.iter().filter(move |line| line.is_field(name))
    }

    /// The last field of this name: the one that counts for `event`.
    pub fn field(&self, name: &str) -> Option<&Line> {
        self.fields(name).next_back()
    }

    /// The value of the last `event` line. Empty when the line has no value, which means `message`.
    pub fn event(&self) -> Option<&str> {
        self.field("event").map(Line::value)
    }

    /// The type under which readers dispatch the event: [`Frame::event`], or else `message`.
    pub fn event_type(&self) -> &str {
        self.event()
            .filter(|name| !name.is_empty())
            .unwrap_or("message")
    }

    /// The values of the `data` lines, joined with LF; `None` when there is no such line.
    pub fn data(&self) -> Option<Cow<'_, str>> {
        let mut values = self.fields("data").map(Line::value);
        let first = values.next()?;
        let mut data = Cow::Borrowed(first);
        for value in values {
            let joined = data.to_mut();
            joined.push('\n');
            joined.push_str(value);
        }
        Some(data)
    }

    /// The value of the last `id` line that readers do not ignore (it has no NUL). Empty when the
    /// line has no value, which resets the last event id.
    pub fn id(&self) -> Option<&str> {
        self.fields("id")
            .rev()
            .map(Line::value)
            .find(|id| !id.contains('\0'))
    }

    /// The reconnection time in milliseconds, from the last `retry` line that readers do not
    /// ignore (digits only). A number above `u64::MAX` is read as `u64::MAX`.
    pub fn retry(&self) -> Option<u64> {
        self.fields("retry")
            .rev()
            .find_map(|line| parse_retry(line.value_bytes()))
    }

    /// The comments' texts, in order, each with everything after its colon.
    pub fn comments(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(Line::comment)
    }

    /// Whether it holds comments and no field.
    pub fn is_comment_only(&self) -> bool {
        self.comments().next().is_some() && !self.has_field()
    }

    /// Whether it is a blank line and nothing else.
    pub fn is_blank(&self) -> bool {
        self.omitted == 0 && self.lines.iter().all(|line| line.kind == LineKind::Blank)
    }

    /// Whether readers dispatch an event for it: it has a `data` line, its blank line came, and
    /// the limits did not cut it.
    pub fn dispatches(&self) -> bool {
        self.terminated && self.omitted == 0 && self.field("data").is_some()
    }

    /// Its bytes, as sent. Exact when `omitted` is 0.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.end - self.start - self.omitted);
        self.write_to(&mut bytes);
        bytes
    }

    fn write_to(&self, bytes: &mut Vec<u8>) {
        for line in &self.lines {
            bytes.extend_from_slice(&line.raw);
            bytes.extend_from_slice(line.terminator.bytes());
        }
    }

    fn has_field(&self) -> bool {
        self.lines
            .iter()
            .any(|line| matches!(line.kind, LineKind::Field { .. }))
    }
}

/// A whole stream. Derefs to the slice of its frames.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Frames {
    /// Whether it opens with a byte order mark, which the format allows. The mark is in no frame.
    pub bom: bool,
    /// Its frames, in order and without gaps.
    pub frames: Vec<Frame>,
}

impl Frames {
    /// The faults of all frames, by offset.
    pub fn violations(&self) -> impl Iterator<Item = &Violation> {
        self.frames.iter().flat_map(|frame| &frame.violations)
    }

    /// The frames for which readers dispatch an event.
    pub fn events(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter(|frame| frame.dispatches())
    }

    /// The frame that holds this byte of the stream.
    pub fn at(&self, offset: usize) -> Option<&Frame> {
        let next = self.frames.partition_point(|frame| frame.end <= offset);
        self.frames
            .get(next)
            .filter(|frame| frame.range().contains(&offset))
    }

    /// The bytes of the stream, as sent. Exact when no frame has `omitted` bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = if self.bom { BOM.to_vec() } else { Vec::new() };
        self.frames
            .iter()
            .for_each(|frame| frame.write_to(&mut bytes));
        bytes
    }
}

impl Deref for Frames {
    type Target = [Frame];

    fn deref(&self) -> &[Frame] {
        &self.frames
    }
}

impl<'a> IntoIterator for &'a Frames {
    type Item = &'a Frame;
    type IntoIter = std::slice::Iter<'a, Frame>;

    fn into_iter(self) -> Self::IntoIter {
        self.frames.iter()
    }
}

impl IntoIterator for Frames {
    type Item = Frame;
    type IntoIter = std::vec::IntoIter<Frame>;

    fn into_iter(self) -> Self::IntoIter {
        self.frames.into_iter()
    }
}

/// Reads the value of a `retry` field: one or more ASCII digits, at most `u64::MAX`.
pub(super) fn parse_retry(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    })
}
