//! Writes a stream: events, comments, reconnection times.
//!
//! [`event`], [`comment`] and [`retry`] write one whole frame each. [`Encoder`] writes a frame line
//! by line, for an order of lines that is one's own. All of them end lines with LF and put one
//! space after the colon, so that a value may itself begin with a space.
//!
//! What would end a line inside a value never gets onto the wire: data and comments are split into
//! several lines there, names and ids are refused. Streams that break the format on purpose are
//! written by hand.

use bytes::BufMut;
use memchr::memchr2;

/// Why a text cannot be the value of a field.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// This event type holds CR, LF or NUL.
    #[error("event type {0:?} holds a line break or NUL")]
    EventType(String),
    /// This id holds CR or LF, or a NUL, for which readers would ignore it.
    #[error("event id {0:?} holds a line break or NUL")]
    Id(String),
}

/// Writes one event with its lines in the order event, data, id.
///
/// `data` is split at LF, CR LF and CR; readers join the parts with LF. Empty `data` is one empty
/// line, which readers dispatch as an event with empty data.
///
/// # Errors
///
/// [`EncodeError`] when the type or the id holds CR, LF or NUL; nothing is written then.
pub fn event(
    out: &mut impl BufMut,
    event: Option<&str>,
    data: &str,
    id: Option<&str>,
) -> Result<(), EncodeError> {
    check(event.unwrap_or_default(), EncodeError::EventType)?;
    check(id.unwrap_or_default(), EncodeError::Id)?;
    if let Some(event) = event {
        field(out, "event", event);
    }
    lines(out, "data", data);
    if let Some(id) = id {
        field(out, "id", id);
    }
    out.put_u8(b'\n');
    Ok(())
}

/// Writes a frame that is a comment only, as a server sends to keep a connection open.
///
/// Each line of `text` becomes a comment line of its own.
pub fn comment(out: &mut impl BufMut, text: &str) {
    Encoder::new(out).comment(text).end();
}

/// Writes a frame that sets the reconnection time, in milliseconds, and nothing else.
pub fn retry(out: &mut impl BufMut, milliseconds: u64) {
    Encoder::new(out).retry(milliseconds).end();
}

/// Writes one frame, line by line in the order of the calls.
///
/// What was written stays in the buffer when a later call is refused, and a frame without
/// [`Encoder::end`] is no event.
///
/// ```
/// use turnwire_spec::sse::Encoder;
///
/// let mut out = Vec::new();
/// Encoder::new(&mut out).id("7")?.data("a\nb").end();
/// assert_eq!(out, b"id: 7\ndata: a\ndata: b\n\n");
/// # Ok::<(), turnwire_spec::sse::EncodeError>(())
/// ```
#[derive(Debug)]
#[must_use = "a frame without its blank line is no event"]
pub struct Encoder<'b, B> {
    out: &'b mut B,
}

impl<'b, B: BufMut> Encoder<'b, B> {
    /// Begins a frame at the end of `out`.
    pub fn new(out: &'b mut B) -> Self {
        Self { out }
    }

    /// Writes the event type.
    ///
    /// # Errors
    ///
    /// [`EncodeError::EventType`] when it holds CR, LF or NUL.
    pub fn event(self, event: &str) -> Result<Self, EncodeError> {
        check(event, EncodeError::EventType)?;
        field(self.out, "event", event);
        Ok(self)
    }

    /// Writes the id. An empty one resets the reader's last event id.
    ///
    /// # Errors
    ///
    /// [`EncodeError::Id`] when it holds CR, LF or NUL.
    pub fn id(self, id: &str) -> Result<Self, EncodeError> {
        check(id, EncodeError::Id)?;
        field(self.out, "id", id);
        Ok(self)
    }

    /// Writes data, one line for each line of the text.
    pub fn data(self, data: &str) -> Self {
        lines(self.out, "data", data);
        self
    }

    /// Writes a comment, one line for each line of the text.
    pub fn comment(self, text: &str) -> Self {
        lines(self.out, "", text);
        self
    }

    /// Writes the reconnection time in milliseconds.
    pub fn retry(self, milliseconds: u64) -> Self {
        field(self.out, "retry", &milliseconds.to_string());
        self
    }

    /// Writes the blank line.
    pub fn end(self) {
        self.out.put_u8(b'\n');
    }
}

fn check(value: &str, refuse: fn(String) -> EncodeError) -> Result<(), EncodeError> {
    if value.contains(['\r', '\n', '\0']) {
        Err(refuse(value.to_owned()))
    } else {
        Ok(())
    }
}

/// Writes one line for each line of `text`, at least one.
fn lines(out: &mut impl BufMut, name: &str, mut text: &str) {
    while let Some(end) = memchr2(b'\r', b'\n', text.as_bytes()) {
        field(out, name, &text[..end]);
        text = &text[end..];
        text = text.strip_prefix("\r\n").unwrap_or_else(|| &text[1..]);
    }
    field(out, name, text);
}

fn field(out: &mut impl BufMut, name: &str, value: &str) {
    out.put_slice(name.as_bytes());
    out.put_slice(b": ");
    out.put_slice(value.as_bytes());
    out.put_u8(b'\n');
}
