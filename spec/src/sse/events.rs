//! The events of one chunk, lent out one after the other.
//!
//! Three ways lead to an event, the first two being what nearly all events of LLM services take:
//! one `data` line whole in the chunk ([`Events::data_event`]); one `data` line that an earlier
//! chunk began ([`Events::resume_cut_line`]); and any other block, line by line
//! ([`Events::block`]). All three give the same events, and only the last knows all rules.

use memchr::{memchr2, memrchr2};

use super::bom::BomState;
use super::decoder::{Decoder, Event, Overflow};
use super::field::{Name, split};
use super::frame::parse_retry;
use super::text::valid_prefix;

/// The events that one chunk completes. See [`Decoder::events`].
///
/// It lends each event until the next call, so it cannot be an [`Iterator`]:
/// `while let Some(event) = events.next() { ... }`.
#[derive(Debug)]
pub struct Events<'d, 'c> {
    decoder: &'d mut Decoder,
    /// What is left of the chunk. Between calls a line starts there, or a cut one goes on.
    rest: &'c [u8],
    /// A prefix of `rest` that is known to be UTF-8; may be empty.
    text: &'c str,
}

/// Bytes behind a line that are checked for UTF-8 together with it: little enough to be still in
/// the processor's nearest cache when they are read again.
const WINDOW: usize = 8 << 10;

/// What became of the line that earlier chunks began.
enum Resumed {
    /// Nothing to report; it may still be without its end.
    Line,
    /// It is a `data` line and the only line of an event that is complete now.
    Event {
        /// Where in the line its value starts.
        value: usize,
    },
    Overflow(Overflow),
}

/// What the chunk itself told of the block under way.
#[derive(Default)]
struct Borrowed<'c> {
    data: Option<&'c [u8]>,
    event: Option<&'c [u8]>,
}

impl<'d, 'c> Events<'d, 'c> {
    /// Takes off what belongs to earlier chunks: a byte order mark, the LF of a CR LF.
    #[inline]
    pub(super) fn open(decoder: &'d mut Decoder, chunk: &'c [u8]) -> Self {
        decoder.offset += chunk.len();
        let mut rest = chunk;
        if let BomState::Open(_) = decoder.start {
            rest = decoder.skip_bom(chunk);
        }
        if decoder.after_cr && !rest.is_empty() {
            decoder.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        Self {
            decoder,
            rest,
            text: "",
        }
    }

    /// The next event; `None` when the chunk is used up.
    ///
    /// # Errors
    ///
    /// [`Overflow`] instead of an event that exceeds the limits; the next call goes on behind it.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend")]
    #[inline]
    pub fn next(&mut self) -> Option<Result<Event<'_>, Overflow>> {
        if self.rest.is_empty() {
            return None;
        }
        if self.decoder.cut.len > 0 {
            match self.resume_cut_line() {
                Resumed::Line if self.rest.is_empty() => return None,
                Resumed::Line => {}
                Resumed::Event { value } => return Some(Ok(self.decoder.cut_event(value))),
                Resumed::Overflow(overflow) => return Some(Err(overflow)),
            }
        }
        if self.rest.starts_with(b"data: ") && self.decoder.is_between_blocks() {
            if self.text.is_empty() && !self.check_text() {
                return self.cut_line().err().map(Err);
            }
            if let Some(data) = self.data_event() {
                return Some(Ok(self.decoder.plain_event(data)));
            }
        }
        self.block()
    }

    /// Looks up how much of the rest is UTF-8, for many lines at once, which costs far less than
    /// line by line. False when no line ends in the rest.
    fn check_text(&mut self) -> bool {
        let Some(first) = memchr2(b'\n', b'\r', self.rest) else {
            return false;
        };
        let window = &self.rest[..self.rest.len().min(first + WINDOW)];
        let lines = memrchr2(b'\n', b'\r', window).map_or(0, |last| last + 1);
        self.text = valid_prefix(&window[..lines]);
        true
    }

    /// The data of the event at the start of the text, when that is one `data` line ended by LF.
    #[inline]
    fn data_event(&mut self) -> Option<&'c str> {
        let value = self.text.strip_prefix("data: ")?;
        let end = memchr2(b'\n', b'\r', value.as_bytes())?;
        let (data, after) = value.split_at_checked(end)?;
        let after = after.strip_prefix("\n\n")?;
        let len = self.text.len() - after.len();
        if !self.decoder.limits.allow(len) {
            return None;
        }
        self.text = after;
        self.rest = &self.rest[len..];
        Some(data)
    }

    /// Adds to the line that an earlier chunk began, and takes it in when its end is here.
    fn resume_cut_line(&mut self) -> Resumed {
        let end = memchr2(b'\n', b'\r', self.rest);
        let (more, tail) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let held = self.decoder.hold(more);
        if let (Ok(()), [b'\n', b'\n', after @ ..]) = (&held, tail)
            && let Some(value) = self.decoder.cut_is_event()
        {
            self.rest = after;
            return Resumed::Event { value };
        }
        self.rest = tail;
        if end.is_some() {
            self.pass_terminator();
            self.decoder.take_cut_line();
        }
        match held {
            Ok(()) => Resumed::Line,
            Err(overflow) => Resumed::Overflow(overflow),
        }
    }

    /// Goes on with the block under way, line by line, to the next event or the chunk's end.
    fn block(&mut self) -> Option<Result<Event<'_>, Overflow>> {
        let mut borrowed = Borrowed::default();
        loop {
            let left = self.rest.len();
            let Some(line) = self.line() else { break };
            if line.is_empty() {
                if borrowed.data.is_some() || self.decoder.block.has_data {
                    return Some(Ok(self.decoder.dispatch(borrowed.data, borrowed.event)));
                }
                self.decoder.end_without_event();
                borrowed = Borrowed::default();
            } else if let Err(overflow) = self.take_line(line, left, &mut borrowed) {
                return Some(Err(overflow));
            }
        }
        self.decoder.keep(borrowed.data, borrowed.event);
        self.cut_line().err().map(Err)
    }

    /// Takes the next whole line off the chunk, without its terminator.
    #[inline]
    fn line(&mut self) -> Option<&'c [u8]> {
        let left = self.rest.len();
        let end = match self.rest.first()? {
            b'\n' | b'\r' => 0,
            _ => memchr2(b'\n', b'\r', self.rest)?,
        };
        let (line, tail) = self.rest.split_at(end);
        self.rest = tail;
        self.pass_terminator();
        self.text = self.text.get(left - self.rest.len()..).unwrap_or_default();
        Some(line)
    }

    /// Takes the terminator off that the rest begins with.
    #[inline]
    fn pass_terminator(&mut self) {
        self.decoder.after_cr = self.rest == b"\r";
        self.rest = match self.rest {
            [b'\r', b'\n', after @ ..] | [_, after @ ..] => after,
            [] => &[],
        };
    }

    /// Takes in a line that lies whole in the chunk, where `left` bytes were left before it.
    #[inline]
    fn take_line(
        &mut self,
        line: &'c [u8],
        left: usize,
        borrowed: &mut Borrowed<'c>,
    ) -> Result<(), Overflow> {
        let decoder = &mut *self.decoder;
        if decoder.block.dropped {
            return Ok(());
        }
        decoder.admit(decoder.offset - left, line.len())?;
        let block = &mut decoder.block;
        block.used += line.len();
        let (name, value) = split(line);
        let value = &line[value..];
        match name {
            Name::Data if block.has_data => block.join_data(value),
            Name::Data => match borrowed.data.take() {
                None => borrowed.data = Some(value),
                Some(first) => {
                    block.start_data(first);
                    block.join_data(value);
                }
            },
            Name::Event => borrowed.event = Some(value),
            Name::Id => block.set_id(value),
            Name::Retry => decoder.set_retry(parse_retry(value)),
            Name::Other => {}
        }
        Ok(())
    }

    /// Keeps the start of a line whose end is not in this chunk.
    fn cut_line(&mut self) -> Result<(), Overflow> {
        let start = std::mem::take(&mut self.rest);
        if start.is_empty() {
            return Ok(());
        }
        self.decoder.cut.begin(self.decoder.offset - start.len());
        self.decoder.hold(start)
    }

    #[cold]
    fn skip(&mut self) {
        while self.next().is_some() {}
    }
}

impl Drop for Events<'_, '_> {
    /// Skips the events that were not taken, so that the decoder is at the end of the chunk.
    #[inline]
    fn drop(&mut self) {
        if !self.rest.is_empty() {
            self.skip();
        }
    }
}
