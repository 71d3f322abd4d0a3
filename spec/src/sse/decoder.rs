//! Reads a stream for its meaning: the events that an `EventSource` would dispatch.
//!
//! [`Decoder`] takes chunks cut anywhere, even inside a character or between CR and LF, and lends
//! out [`Event`]s one after the other. An event that lies whole in a chunk and has one `data` line
//! is lent out of the chunk itself; any other is put together in buffers that are used again for
//! the next one. So reading allocates nothing once these buffers have grown.
//!
//! An event ends at the terminator of its blank line, at a CR too: an LF that follows in the next
//! chunk is swallowed then.
//!
//! What the decoder ignores in silence, as the standard demands, is listed by the recorder. It does
//! not reconnect; it keeps what reconnecting needs, the last event id and the reconnection time.
//!
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>

use std::ops::Range;

use memchr::{memchr, memchr2, memrchr2};

use super::bom::BomState;
use super::frame::parse_retry;
use super::{Limit, Limits};

/// One event, as readers dispatch it. Text that was no UTF-8 reads U+FFFD.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Event<'a> {
    /// The type: the last `event` line's value, or `message` when that is empty or missing.
    pub event: &'a str,
    /// The values of the `data` lines, joined with LF. May be empty.
    pub data: &'a str,
    /// The last event id of the stream at this event, which an earlier event may have set. Empty
    /// when none is set.
    pub last_event_id: &'a str,
    /// The reconnection time in milliseconds, when this event's block sets it.
    pub retry: Option<u64>,
}

/// An event was larger than the decoder's [`Limits`]. It is dropped; what follows it is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("event too large: byte {offset} of the stream exceeds the {limit} limit")]
pub struct Overflow {
    /// The first byte too many, from the start of the stream.
    pub offset: usize,
    /// The limit that it exceeds.
    pub limit: Limit,
}

/// An incremental reader of one stream.
///
/// ```
/// use turnwire_spec::sse::{Decoder, Limits};
///
/// let mut decoder = Decoder::new(Limits::default());
/// let mut seen = Vec::new();
/// for chunk in ["event: gree", "ting\ndata: hel", "lo\n\ndata: bye"] {
///     decoder.feed(chunk.as_bytes(), |event| seen.push(format!("{}: {}", event.event, event.data)))?;
/// }
/// assert_eq!(seen, ["greeting: hello"]);
/// assert!(decoder.finish(), "the last event has no blank line, so it is dropped");
/// # Ok::<(), turnwire_spec::sse::Overflow>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    start: BomState,
    /// The last chunk ended in a CR: an LF at the start of the next one belongs to it.
    after_cr: bool,
    /// Bytes of the stream up to the end of the last chunk.
    offset: usize,
    cut: CutLine,
    block: Block,
    /// Readable form of what is no UTF-8.
    replaced_event: String,
    replaced_data: String,
    last_event_id: String,
    reconnection_time: Option<u64>,
}

/// The start of a line whose end has not come yet.
#[derive(Debug, Default)]
struct CutLine {
    /// Its bytes so far; stays empty while an event is being dropped.
    bytes: Vec<u8>,
    /// How many bytes of it have come; 0 means that no line is cut.
    len: usize,
    /// In bytes from the start of the stream.
    offset: usize,
}

/// What earlier chunks told of the block under way. A buffer counts only while its flag is set.
#[derive(Debug, Default)]
struct Block {
    /// Bytes of its lines so far.
    used: usize,
    /// It exceeded a limit: nothing of it counts any more.
    dropped: bool,
    has_data: bool,
    /// The data lines' values, joined with LF, from `data_start` on.
    data: Vec<u8>,
    /// `0 <= data_start <= data.len()`
    data_start: usize,
    has_event: bool,
    event: Vec<u8>,
    has_id: bool,
    id: Vec<u8>,
    retry: Option<u64>,
}

/// What the current chunk told of the block under way: ranges of the chunk.
#[derive(Default)]
struct Borrowed {
    data: Option<Range<usize>>,
    event: Option<Range<usize>>,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            start: BomState::Open(0),
            after_cr: false,
            offset: 0,
            cut: CutLine::default(),
            block: Block::default(),
            replaced_event: String::new(),
            replaced_data: String::new(),
            last_event_id: String::new(),
            reconnection_time: None,
        }
    }

    /// Takes the next chunk and hands each event that it completes to `sink`.
    ///
    /// # Errors
    ///
    /// [`Overflow`] for the first event of the chunk that exceeded the limits. The others have been
    /// handed out nevertheless, and the next chunk can be fed.
    pub fn feed(&mut self, chunk: &[u8], mut sink: impl FnMut(Event<'_>)) -> Result<(), Overflow> {
        let mut first = Ok(());
        let mut events = self.events(chunk);
        while let Some(event) = events.next() {
            match event {
                Ok(event) => sink(event),
                Err(overflow) => first = first.and(Err(overflow)),
            }
        }
        first
    }

    /// Takes the next chunk and lends out the events that it completes, one at a time.
    ///
    /// Dropping the [`Events`] early skips the chunk's other events.
    pub fn events<'d, 'c>(&'d mut self, chunk: &'c [u8]) -> Events<'d, 'c> {
        let base = self.offset;
        self.offset += chunk.len();
        let mut events = Events {
            decoder: self,
            chunk,
            base,
            at: 0,
            text: "",
            text_at: 0,
            lines_end: None,
            early: None,
        };
        events.open();
        events
    }

    /// Ends the stream; tells whether it ended inside a block, which is dropped: its blank line
    /// never came.
    ///
    /// The decoder is then ready for the next stream of the same source, such as a reconnect: it
    /// keeps the last event id, the reconnection time and its buffers.
    pub fn finish(&mut self) -> bool {
        let held_back = self.start.finish();
        let block = self.block.used > 0 || self.block.dropped;
        let inside = block || self.cut.len > 0 || !held_back.is_empty();
        self.start = BomState::Open(0);
        self.after_cr = false;
        self.offset = 0;
        self.cut.reset();
        self.block.reset();
        inside
    }

    /// The last event id, which a client sends as `Last-Event-ID` when it reconnects. Empty when
    /// none is set.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// The reconnection time in milliseconds that the stream last set.
    pub fn reconnection_time(&self) -> Option<u64> {
        self.reconnection_time
    }

    /// Holds more of the cut line.
    fn hold(&mut self, bytes: &[u8]) -> Result<(), Overflow> {
        let len = self.cut.len.saturating_add(bytes.len());
        self.cut.len = len;
        if self.block.dropped {
            return Ok(());
        }
        self.admit(self.cut.offset, len)?;
        self.cut.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Checks a line of `len` bytes that starts at `offset` of the stream against the limits.
    fn admit(&mut self, offset: usize, len: usize) -> Result<(), Overflow> {
        let (room, limit) = self.limits.room(self.block.used);
        if len <= room {
            return Ok(());
        }
        self.block.drop_all();
        self.cut.bytes.clear();
        Err(Overflow {
            offset: offset.saturating_add(room),
            limit,
        })
    }

    /// Takes in the cut line, which is complete now.
    fn take_cut_line(&mut self) {
        let (name, value) = split(&self.cut.bytes);
        let block = &mut self.block;
        block.used = block.used.saturating_add(self.cut.len);
        match name {
            _ if block.dropped => {}
            Name::Data if block.has_data => block.join_data(&self.cut.bytes[value..]),
            Name::Data => {
                // The buffers change places, so that the bytes stay where they are.
                std::mem::swap(&mut block.data, &mut self.cut.bytes);
                block.data_start = value;
                block.has_data = true;
            }
            Name::Event => block.set_event(&self.cut.bytes[value..]),
            Name::Id => block.set_id(&self.cut.bytes[value..]),
            Name::Retry => {
                let retry = parse_retry(&self.cut.bytes[value..]);
                self.set_retry(retry);
            }
            Name::Other => {}
        }
        self.cut.reset();
    }

    fn set_retry(&mut self, retry: Option<u64>) {
        if retry.is_some() {
            self.block.retry = retry;
            self.reconnection_time = retry;
        }
    }

    /// A blank line came: the id that the block set becomes the stream's.
    fn commit_id(&mut self) {
        if self.block.has_id {
            self.block.has_id = false;
            replace_invalid(&self.block.id, &mut self.last_event_id);
        }
    }
}

impl CutLine {
    fn reset(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }
}

impl Block {
    fn reset(&mut self) {
        self.used = 0;
        self.dropped = false;
        self.has_data = false;
        self.has_event = false;
        self.has_id = false;
        self.retry = None;
    }

    /// Forgets what it holds, and all that will still come until its blank line.
    fn drop_all(&mut self) {
        let used = self.used;
        self.reset();
        self.used = used;
        self.dropped = true;
    }

    fn start_data(&mut self, value: &[u8]) {
        self.data.clear();
        self.data.extend_from_slice(value);
        self.data_start = 0;
        self.has_data = true;
    }

    fn join_data(&mut self, value: &[u8]) {
        self.data.push(b'\n');
        self.data.extend_from_slice(value);
    }

    fn set_event(&mut self, value: &[u8]) {
        self.event.clear();
        self.event.extend_from_slice(value);
        self.has_event = true;
    }

    fn set_id(&mut self, value: &[u8]) {
        if memchr(0, value).is_none() {
            self.id.clear();
            self.id.extend_from_slice(value);
            self.has_id = true;
        }
    }
}

/// The events that one chunk completes. See [`Decoder::events`].
///
/// It lends each event until the next call, so it cannot be an [`Iterator`]:
/// `while let Some(event) = events.next() { ... }`.
#[derive(Debug)]
pub struct Events<'d, 'c> {
    decoder: &'d mut Decoder,
    chunk: &'c [u8],
    /// Where the chunk starts, in bytes from the start of the stream.
    base: usize,
    /// Bytes of the chunk that are done. Except before the first call, a line starts there.
    at: usize,
    /// A part of the chunk that is known to be UTF-8, and where in the chunk it starts.
    text: &'c str,
    text_at: usize,
    /// Where the chunk's last whole line ends, once it was looked up.
    lines_end: Option<usize>,
    /// A limit was exceeded before the first call.
    early: Option<Overflow>,
}

impl Events<'_, '_> {
    /// The next event; `None` when the chunk is used up.
    ///
    /// # Errors
    ///
    /// [`Overflow`] instead of an event that exceeds the limits; the next call goes on behind it.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend")]
    pub fn next(&mut self) -> Option<Result<Event<'_>, Overflow>> {
        if let Some(overflow) = self.early.take() {
            return Some(Err(overflow));
        }
        if self.decoder.cut.len > 0
            && let Err(overflow) = self.resume_cut_line()
        {
            return Some(Err(overflow));
        }
        let from = self.at;
        let mut borrowed = Borrowed::default();
        loop {
            let start = self.at;
            let Some(end) = self.line_end() else { break };
            self.pass_terminator(end);
            if start == end {
                self.decoder.commit_id();
                if borrowed.data.is_some() || self.decoder.block.has_data {
                    return Some(Ok(self.dispatch(from, borrowed)));
                }
                self.decoder.block.reset();
                borrowed = Borrowed::default();
            } else if let Err(overflow) = self.take_line(start..end, &mut borrowed) {
                return Some(Err(overflow));
            }
        }
        self.keep(borrowed);
        let (rest, offset) = (&self.chunk[self.at..], self.base + self.at);
        if rest.is_empty() {
            return None;
        }
        self.at = self.chunk.len();
        self.decoder.cut.offset = offset;
        self.decoder.hold(rest).err().map(Err)
    }

    /// Takes off what belongs to earlier chunks: a byte order mark, the LF of a CR LF.
    fn open(&mut self) {
        if let BomState::Open(_) = self.decoder.start {
            let opening = self.decoder.start.feed(self.chunk);
            self.at = opening.consumed;
            if !opening.held_back.is_empty() {
                self.decoder.cut.offset = 0;
                self.early = self.decoder.hold(opening.held_back).err();
            }
        }
        if self.decoder.after_cr && !self.chunk.is_empty() {
            self.decoder.after_cr = false;
            self.at += usize::from(self.chunk[0] == b'\n');
        }
    }

    /// Adds to the line that an earlier chunk began, and takes it in when its end is here.
    fn resume_cut_line(&mut self) -> Result<(), Overflow> {
        let start = self.at;
        let end = self.line_end();
        self.at = end.unwrap_or(self.chunk.len());
        let held = self.decoder.hold(&self.chunk[start..self.at]);
        if let Some(end) = end {
            self.pass_terminator(end);
            self.decoder.take_cut_line();
        }
        held
    }

    /// Where the line that starts at `at` ends, when it does so in this chunk.
    #[inline]
    fn line_end(&self) -> Option<usize> {
        let rest = &self.chunk[self.at..];
        match rest.first()? {
            b'\n' | b'\r' => Some(self.at),
            _ => Some(self.at + memchr2(b'\n', b'\r', rest)?),
        }
    }

    #[inline]
    fn pass_terminator(&mut self, end: usize) {
        self.at = end + 1;
        if self.chunk[end] == b'\r' {
            match self.chunk.get(self.at) {
                Some(b'\n') => self.at += 1,
                Some(_) => {}
                None => self.decoder.after_cr = true,
            }
        }
    }

    /// Takes in a line that lies whole in the chunk.
    #[inline]
    fn take_line(&mut self, line: Range<usize>, borrowed: &mut Borrowed) -> Result<(), Overflow> {
        if self.decoder.block.dropped {
            return Ok(());
        }
        self.decoder.admit(self.base + line.start, line.len())?;
        let bytes = &self.chunk[line.clone()];
        let (name, value) = split(bytes);
        let block = &mut self.decoder.block;
        block.used = block.used.saturating_add(bytes.len());
        match name {
            Name::Data if block.has_data => block.join_data(&bytes[value..]),
            Name::Data => match borrowed.data.take() {
                None => borrowed.data = Some(line.start + value..line.end),
                Some(first) => {
                    block.start_data(&self.chunk[first]);
                    block.join_data(&bytes[value..]);
                }
            },
            Name::Event => borrowed.event = Some(line.start + value..line.end),
            Name::Id => block.set_id(&bytes[value..]),
            Name::Retry => self.decoder.set_retry(parse_retry(&bytes[value..])),
            Name::Other => {}
        }
        Ok(())
    }

    /// The chunk is used up inside a block: keeps what the chunk told of it.
    fn keep(&mut self, borrowed: Borrowed) {
        let block = &mut self.decoder.block;
        if let Some(data) = borrowed.data {
            block.start_data(&self.chunk[data]);
        }
        if let Some(event) = borrowed.event {
            block.set_event(&self.chunk[event]);
        }
    }

    /// Builds the event of a block that began at `from` of the chunk, or before the chunk.
    #[inline]
    fn dispatch(&mut self, from: usize, borrowed: Borrowed) -> Event<'_> {
        let event_text = borrowed
            .event
            .clone()
            .and_then(|range| self.text(range, from));
        let data_text = borrowed
            .data
            .clone()
            .and_then(|range| self.text(range, from));
        let decoder = &mut *self.decoder;
        let block = &mut decoder.block;
        let retry = block.retry;
        let has_event = block.has_event;
        block.reset();

        let event = match (event_text, borrowed.event) {
            (Some(text), _) => text,
            (None, Some(range)) => decode(&self.chunk[range], &mut decoder.replaced_event),
            (None, None) if has_event => decode(&block.event, &mut decoder.replaced_event),
            (None, None) => "",
        };
        let data = match (data_text, borrowed.data) {
            (Some(text), _) => text,
            (None, Some(range)) => decode(&self.chunk[range], &mut decoder.replaced_data),
            (None, None) => decode(&block.data[block.data_start..], &mut decoder.replaced_data),
        };
        Event {
            event: if event.is_empty() { "message" } else { event },
            data,
            last_event_id: &decoder.last_event_id,
            retry,
        }
    }
}

impl<'c> Events<'_, 'c> {
    /// A range of the chunk as text, when it is UTF-8 and everything from `from` up to it is.
    ///
    /// Checks all lines of the chunk at once, which costs far less than line by line.
    #[inline]
    fn text(&mut self, range: Range<usize>, from: usize) -> Option<&'c str> {
        if range.end > self.text_at + self.text.len() {
            let end = *self.lines_end.get_or_insert_with(|| {
                memrchr2(b'\n', b'\r', self.chunk).unwrap_or(self.chunk.len())
            });
            self.text = valid_prefix(&self.chunk[from..end]);
            self.text_at = from;
        }
        self.text
            .get(range.start.checked_sub(self.text_at)?..range.end - self.text_at)
    }
}

impl Drop for Events<'_, '_> {
    /// Skips the events that were not taken, so that the decoder is at the end of the chunk.
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

/// The field names that have a meaning.
#[derive(Clone, Copy)]
enum Name {
    Data,
    Event,
    Id,
    Retry,
    /// Unknown, or a comment.
    Other,
}

/// The name of a line, and where its value starts: behind the colon and at most one space.
#[inline]
fn split(line: &[u8]) -> (Name, usize) {
    let (name, len) = match line {
        [b'd', b'a', b't', b'a', ..] => (Name::Data, 4),
        [b'e', b'v', b'e', b'n', b't', ..] => (Name::Event, 5),
        [b'i', b'd', ..] => (Name::Id, 2),
        [b'r', b'e', b't', b'r', b'y', ..] => (Name::Retry, 5),
        _ => return (Name::Other, 0),
    };
    match line[len..] {
        [] => (name, len),
        [b':', b' ', ..] => (name, len + 2),
        [b':', ..] => (name, len + 1),
        _ => (Name::Other, 0),
    }
}

fn valid_prefix(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// The bytes as text: themselves, or a copy with replacement characters in `replaced`.
fn decode<'a>(bytes: &'a [u8], replaced: &'a mut String) -> &'a str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => {
            replace_invalid(bytes, replaced);
            replaced
        }
    }
}

/// Sets `text` to the bytes, with U+FFFD for each maximal part that is no UTF-8.
fn replace_invalid(bytes: &[u8], text: &mut String) {
    text.clear();
    for part in bytes.utf8_chunks() {
        text.push_str(part.valid());
        if !part.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}
