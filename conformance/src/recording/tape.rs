//! What is kept of a recording, within a bound.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use crate::transcript::{
    ExchangeId, Fact, Header, Transcript, WsFrame,
    record::{MAX_BYTES, Recorder},
};

/// What one fact costs besides its bytes: its place in the list and small allocations.
const OVERHEAD: usize = 256;

/// The facts of a recording. Clones share them.
#[derive(Clone, Debug)]
pub struct Tape {
    recorder: Recorder,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    used: AtomicUsize,
    limit: usize,
    full: AtomicBool,
    dropped: AtomicU64,
}

impl Tape {
    /// An empty one that keeps about `limit` bytes; never more than [`MAX_BYTES`] of bodies.
    pub fn new(header: Header, limit: usize) -> Self {
        Self {
            recorder: Recorder::new(header),
            inner: Arc::new(Inner {
                used: AtomicUsize::new(0),
                limit: limit.min(MAX_BYTES),
                full: AtomicBool::new(false),
                dropped: AtomicU64::new(0),
            }),
        }
    }

    /// A number for the next exchange.
    pub fn next_exchange(&self) -> ExchangeId {
        self.recorder.next_exchange()
    }

    /// Adds a fact, stamped with the present time. When the tape is full, nothing is added any more, so that what
    /// is on it is whole up to one moment.
    pub fn tell(&self, fact: Fact) {
        let size = OVERHEAD + size(&fact);
        let used = self.inner.used.fetch_add(size, Ordering::Relaxed) + size;
        if used > self.inner.limit || self.inner.full.load(Ordering::Relaxed) {
            if !self.inner.full.swap(true, Ordering::Relaxed) {
                let note = "the recording is full; what came later is missing";
                self.recorder.tell(Fact::Note(note.to_owned()));
            }
            self.inner.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.recorder.tell(fact);
    }

    /// Facts that did not find room.
    pub fn dropped(&self) -> u64 {
        self.inner.dropped.load(Ordering::Relaxed)
    }

    /// What is on it.
    pub fn transcript(&self) -> Transcript {
        self.recorder.transcript()
    }
}

fn size(fact: &Fact) -> usize {
    let headers = |headers: &[(String, String)]| -> usize {
        headers
            .iter()
            .map(|(name, value)| name.len() + value.len() + 48)
            .sum()
    };
    match fact {
        Fact::Request { request, .. } => {
            request.body.len() + request.target.len() + headers(&request.headers)
        }
        Fact::Response { head, .. } => headers(&head.headers),
        Fact::Chunk { bytes, .. } | Fact::Line { bytes, .. } => bytes.len(),
        Fact::WebSocket { frame, .. } => match frame {
            WsFrame::Text(text) => text.len(),
            WsFrame::Binary(bytes) | WsFrame::Ping(bytes) | WsFrame::Pong(bytes) => bytes.len(),
            WsFrame::Close(_) => 0,
        },
        Fact::Note(text) | Fact::Label(text) => text.len(),
        Fact::Target(_) | Fact::State(_) | Fact::End { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_full_tape_says_so_once_and_takes_nothing_more() {
        let tape = Tape::new(Header::default(), 3000);
        let exchange = tape.next_exchange();
        for _ in 0..3 {
            let bytes = Bytes::from(vec![b'x'; 1000]);
            tape.tell(Fact::Chunk { exchange, bytes });
        }
        tape.tell(Fact::Label("late".to_owned()));
        let facts: Vec<Fact> = tape
            .transcript()
            .entries
            .into_iter()
            .map(|e| e.fact)
            .collect();
        assert_eq!(facts.len(), 3, "{facts:?}");
        assert!(matches!(&facts[2], Fact::Note(note) if note.contains("full")));
        assert_eq!(tape.dropped(), 2);
    }
}
