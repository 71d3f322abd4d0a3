//! Reads a stream for its meaning: the events that an `EventSource` would dispatch.
//!
//! [`Decoder`] takes chunks cut anywhere, even inside a character or between CR and LF, and lends
//! out [`Event`]s one after the other (`events` tells how). An event that lies whole in a chunk and
//! has one `data` line is lent out of the chunk itself; any other is put together in buffers that
//! are used again for the next one. So reading allocates nothing once these buffers have grown.
//!
//! An event ends at the terminator of its blank line, at a CR too: an LF that follows in the next
//! chunk is swallowed then.
//!
//! What the decoder ignores in silence, as the standard demands, is listed by the recorder. It does
//! not reconnect; it keeps what reconnecting needs, the last event id and the reconnection time.
//!
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>

use memchr::memchr;

use super::bom::BomState;
use super::events::Events;
use super::field::{Name, split};
use super::frame::parse_retry;
use super::text::{decode, decode_buffer, replace_invalid};
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
    pub(super) limits: Limits,
    pub(super) start: BomState,
    /// The last chunk ended in a CR: an LF at the start of the next one belongs to it.
    pub(super) after_cr: bool,
    /// Bytes of the stream up to the end of the last chunk.
    pub(super) offset: usize,
    pub(super) cut: CutLine,
    pub(super) block: Block,
    /// Readable form of what is no UTF-8.
    pub(super) replaced_event: String,
    pub(super) replaced_data: String,
    pub(super) last_event_id: String,
    reconnection_time: Option<u64>,
}

/// The start of a line whose end has not come yet.
#[derive(Debug, Default)]
pub(super) struct CutLine {
    /// Its bytes so far. Means nothing while no line is cut or an event is being dropped.
    bytes: Vec<u8>,
    /// How many bytes of it have come; 0 means that no line is cut.
    pub(super) len: usize,
    /// In bytes from the start of the stream.
    pub(super) offset: usize,
}

/// What earlier chunks told of the block under way. A buffer counts only while its flag is set.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Bytes of its lines so far.
    pub(super) used: usize,
    /// It exceeded a limit: nothing of it counts any more.
    pub(super) dropped: bool,
    pub(super) has_data: bool,
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

impl Default for Decoder {
    /// A decoder with the default [`Limits`].
    fn default() -> Self {
        Self::new(Limits::default())
    }
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
    #[inline]
    pub fn events<'d, 'c>(&'d mut self, chunk: &'c [u8]) -> Events<'d, 'c> {
        Events::open(self, chunk)
    }

    /// Ends the stream; tells whether it ended inside a block, which is dropped: its blank line
    /// never came.
    ///
    /// A client of a service that leaves the last blank line out feeds `\n\n` first, which
    /// dispatches what is pending.
    ///
    /// The decoder is then ready for the next stream of the same source, as after a reconnect: like
    /// a browser, it keeps the last event id and the reconnection time.
    pub fn finish(&mut self) -> bool {
        let held_back = self.start.finish();
        let block = self.block.used > 0 || self.block.dropped;
        let inside = block || self.cut.len > 0 || !held_back.is_empty();
        self.start = BomState::Open(0);
        self.after_cr = false;
        self.offset = 0;
        self.cut.len = 0;
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

    /// Takes a byte order mark off the start of the stream. What only looked like the start of one
    /// opens the first line.
    #[cold]
    pub(super) fn skip_bom<'c>(&mut self, chunk: &'c [u8]) -> &'c [u8] {
        let opening = self.start.feed(chunk);
        self.cut.begin(0);
        self.cut.len = opening.held_back.len();
        self.cut.bytes.extend_from_slice(opening.held_back);
        &chunk[opening.consumed..]
    }

    /// Holds more of the cut line.
    #[inline]
    pub(super) fn hold(&mut self, bytes: &[u8]) -> Result<(), Overflow> {
        self.cut.len = self.cut.len.saturating_add(bytes.len());
        if self.block.dropped {
            return Ok(());
        }
        self.admit(self.cut.offset, self.cut.len)?;
        self.cut.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Checks a line against the limits: `len` bytes of it, at `offset` of the stream. Drops its
    /// block when there are too many.
    #[inline]
    pub(super) fn admit(&mut self, offset: usize, len: usize) -> Result<(), Overflow> {
        let (room, limit) = self.limits.room(self.block.used);
        if len <= room {
            return Ok(());
        }
        self.block.drop_all();
        Err(Overflow {
            offset: offset.saturating_add(room),
            limit,
        })
    }

    /// Takes in the cut line, which is complete now.
    pub(super) fn take_cut_line(&mut self) {
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
        self.cut.len = 0;
    }

    /// Where the value of the cut line starts, when the line, complete now, is a `data` line and
    /// the only line of its block.
    #[inline]
    pub(super) fn cut_is_event(&self) -> Option<usize> {
        let alone = self.block.used == 0 && !self.block.dropped;
        match split(&self.cut.bytes) {
            (Name::Data, value) if alone => Some(value),
            _ => None,
        }
    }

    /// The event whose only line is the cut line. See [`Self::cut_is_event`].
    #[inline]
    pub(super) fn cut_event(&mut self, value: usize) -> Event<'_> {
        self.cut.len = 0;
        Event {
            event: "message",
            data: decode_buffer(&mut self.cut.bytes, value, &mut self.replaced_data),
            last_event_id: &self.last_event_id,
            retry: None,
        }
    }

    /// The event of a block that is nothing but this data.
    #[inline]
    pub(super) fn plain_event<'a>(&'a self, data: &'a str) -> Event<'a> {
        Event {
            event: "message",
            data,
            last_event_id: &self.last_event_id,
            retry: None,
        }
    }

    pub(super) fn set_retry(&mut self, retry: Option<u64>) {
        if retry.is_some() {
            self.block.retry = retry;
            self.reconnection_time = retry;
        }
    }

    /// Whether nothing of a block has come yet.
    #[inline]
    pub(super) fn is_between_blocks(&self) -> bool {
        self.cut.len == 0 && self.block.used == 0 && !self.block.dropped
    }

    /// A blank line came: the id that the block set becomes the stream's.
    fn commit_id(&mut self) {
        if self.block.has_id {
            replace_invalid(&self.block.id, &mut self.last_event_id);
        }
    }

    /// The blank line of a block without data came.
    pub(super) fn end_without_event(&mut self) {
        self.commit_id();
        self.block.reset();
    }

    /// The chunk is used up inside a block: keeps what the chunk told of it.
    pub(super) fn keep(&mut self, data: Option<&[u8]>, event: Option<&[u8]>) {
        if let Some(data) = data {
            self.block.start_data(data);
        }
        if let Some(event) = event {
            self.block.set_event(event);
        }
    }

    /// The event of the block under way, whose blank line came. What the current chunk told goes
    /// before what is kept of earlier ones.
    pub(super) fn dispatch<'a>(
        &'a mut self,
        data: Option<&'a [u8]>,
        event: Option<&'a [u8]>,
    ) -> Event<'a> {
        self.commit_id();
        let block = &mut self.block;
        let kept_event = block.has_event;
        let retry = block.retry;
        block.reset();

        let event = event
            .or(kept_event.then_some(&block.event))
            .unwrap_or_default();
        let replaced = &mut self.replaced_data;
        Event {
            event: match event {
                [] => "message",
                event => decode(event, &mut self.replaced_event),
            },
            data: match data {
                Some(data) => decode(data, replaced),
                None => decode_buffer(&mut block.data, block.data_start, replaced),
            },
            last_event_id: &self.last_event_id,
            retry,
        }
    }
}

impl CutLine {
    /// Begins an empty line at `offset` of the stream.
    #[inline]
    pub(super) fn begin(&mut self, offset: usize) {
        self.bytes.clear();
        self.offset = offset;
    }
}

impl Block {
    pub(super) fn reset(&mut self) {
        self.used = 0;
        self.dropped = false;
        self.has_data = false;
        self.has_event = false;
        self.has_id = false;
        self.retry = None;
    }

    /// Forgets what it holds, and all that will still come until its blank line.
    pub(super) fn drop_all(&mut self) {
        let used = self.used;
        self.reset();
        self.used = used;
        self.dropped = true;
    }

    pub(super) fn start_data(&mut self, value: &[u8]) {
        self.data.clear();
        self.data.extend_from_slice(value);
        self.data_start = 0;
        self.has_data = true;
    }

    pub(super) fn join_data(&mut self, value: &[u8]) {
        self.data.push(b'\n');
        self.data.extend_from_slice(value);
    }

    pub(super) fn set_event(&mut self, value: &[u8]) {
        self.event.clear();
        self.event.extend_from_slice(value);
        self.has_event = true;
    }

    pub(super) fn set_id(&mut self, value: &[u8]) {
        if memchr(0, value).is_none() {
            self.id.clear();
            self.id.extend_from_slice(value);
            self.has_id = true;
        }
    }
}
