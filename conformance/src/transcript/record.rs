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
        // What was taken over from another recorder may have taken longer than the time since the start.
        let last = entries.last().map_or(Duration::ZERO, |entry| entry.at);
        entries.push(Entry {
            at: whole_micros(self.inner.start.elapsed()).max(last),
            fact,
        });
        total <= MAX_BYTES
    }

    /// A recorder with the same header, and nothing recorded.
    pub fn fresh(&self) -> Self {
        Self::new(self.inner.header.clone())
    }

    /// Takes over what another recorder has, as if it had happened after everything so far: its times and its
    /// exchanges count on from here.
    pub fn take_over(&self, other: &Self) {
        let part = other.transcript();
        let numbers = other.inner.next.load(Ordering::Relaxed).saturating_sub(1);
        let shift = self.inner.next.fetch_add(numbers, Ordering::Relaxed) - 1;
        let size: usize = part.entries.iter().map(|entry| size_of(&entry.fact)).sum();
        self.inner.bytes.fetch_add(size, Ordering::Relaxed);
        let mut entries = self
            .inner
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let from = entries.last().map_or(Duration::ZERO, |entry| entry.at);
        entries.extend(part.entries.into_iter().map(|entry| Entry {
            at: from + entry.at,
            fact: renumbered(entry.fact, shift),
        }));
    }

    /// How many facts there are.
    pub fn recorded(&self) -> usize {
        let entries = self.inner.entries.lock();
        entries.unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Forgets all but the first so many facts.
    pub fn keep_first(&self, facts: usize) {
        let entries = self.inner.entries.lock();
        entries
            .unwrap_or_else(PoisonError::into_inner)
            .truncate(facts);
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

/// The same fact, with its exchange numbered so much higher.
fn renumbered(mut fact: Fact, shift: u32) -> Fact {
    match &mut fact {
        Fact::Request { exchange, .. }
        | Fact::Response { exchange, .. }
        | Fact::Chunk { exchange, .. }
        | Fact::WebSocket { exchange, .. }
        | Fact::Line { exchange, .. }
        | Fact::End { exchange, .. } => exchange.0 += shift,
        Fact::Label(_) | Fact::Target(_) | Fact::State(_) | Fact::Note(_) => {}
    }
    fact
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Request;

    fn asked(recorder: &Recorder, label: &str) {
        recorder.tell(Fact::Label(label.to_owned()));
        let exchange = recorder.next_exchange();
        let request = Request::default();
        recorder.tell(Fact::Request { exchange, request });
    }

    #[test]
    fn what_is_taken_over_comes_after_what_was_there_with_numbers_and_times_of_its_own() {
        let whole = Recorder::new(Header::default());
        asked(&whole, "a");
        let parts = [whole.fresh(), whole.fresh()];
        for (part, label) in parts.iter().zip(["b", "c"]) {
            asked(part, label);
            whole.take_over(part);
        }
        asked(&whole, "d");
        let transcript = whole.transcript();
        let numbers: Vec<u32> = transcript
            .entries
            .iter()
            .filter_map(|entry| match &entry.fact {
                Fact::Request { exchange, .. } => Some(exchange.0),
                _ => None,
            })
            .collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert!(transcript.entries.is_sorted_by_key(|entry| entry.at));
    }
}
