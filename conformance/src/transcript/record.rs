//! Collecting facts while a scenario runs.
//!
//! A [`Recorder`] is cheap to clone and shared by all drivers of one scenario. It stamps each fact with the
//! time at which it is told; drivers tell it at once. Its memory is bounded by [`MAX_BYTES`].

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::{Entry, ExchangeId, Fact, Header, Transcript, WsFrame};

/// Bytes of bodies and messages that one transcript keeps at most, over all exchanges.
pub const MAX_BYTES: usize = 256 << 20;

/// The facts of one scenario, while it runs.
#[derive(Clone, Debug)]
pub struct Recorder {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    start: Instant,
    header: Header,
    next: AtomicU32,
    bytes: AtomicUsize,
    entries: Mutex<Vec<Entry>>,
}

impl Recorder {
    /// Starts the clock of a new transcript; `header.started_ms` is set to now.
    pub fn new(mut header: Header) -> Self {
        let since_epoch = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        header.started_ms = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
        Self {
            inner: Arc::new(Inner {
                start: Instant::now(),
                header,
                next: AtomicU32::new(1),
                bytes: AtomicUsize::new(0),
                entries: Mutex::new(Vec::new()),
            }),
        }
    }

    /// A number for the next exchange.
    pub fn next_exchange(&self) -> ExchangeId {
        ExchangeId(self.inner.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Adds a fact, stamped with the present time. Returns false when the transcript is full: the fact is
    /// kept all the same, and the caller ends the exchange as too large.
    pub fn tell(&self, fact: Fact) -> bool {
        let size = size_of(&fact);
        let total = self.inner.bytes.fetch_add(size, Ordering::Relaxed) + size;
        let mut entries = self
            .inner
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        entries.push(Entry {
            at: whole_micros(self.inner.start.elapsed()),
            fact,
        });
        total <= MAX_BYTES
    }

    /// Offset of now from the start of the transcript.
    pub fn elapsed(&self) -> Duration {
        self.inner.start.elapsed()
    }

    /// The transcript so far.
    pub fn transcript(&self) -> Transcript {
        let entries = self
            .inner
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Transcript {
            header: self.inner.header.clone(),
            entries: entries.clone(),
        }
    }
}

/// The bytes of a fact that count.
fn size_of(fact: &Fact) -> usize {
    match fact {
        Fact::Chunk { bytes, .. } | Fact::Line { bytes, .. } => bytes.len(),
        Fact::WebSocket { frame, .. } => match frame {
            WsFrame::Text(text) => text.len(),
            WsFrame::Binary(bytes) | WsFrame::Ping(bytes) | WsFrame::Pong(bytes) => bytes.len(),
            WsFrame::Close(_) => 0,
        },
        _ => 0,
    }
}

/// A duration in the resolution of a transcript.
fn whole_micros(duration: Duration) -> Duration {
    Duration::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
