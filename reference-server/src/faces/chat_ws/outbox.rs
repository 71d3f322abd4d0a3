//! What waits to be written to one socket.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_util::sync::CancellationToken;

/// The sending end of a socket. Putting something in never waits: a reader that lets too much pile up is cut, and
/// gets what it missed by a replay.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: mpsc::UnboundedSender<Utf8Bytes>,
    waiting: AtomicUsize,
    most: usize,
    cut: CancellationToken,
}

impl Outbox {
    /// An outbox for so many bytes, and its other end. `cut` is called off when more wait.
    pub(super) fn new(
        most: usize,
        cut: CancellationToken,
    ) -> (Self, mpsc::UnboundedReceiver<Utf8Bytes>) {
        let (queue, receiver) = mpsc::unbounded_channel();
        let outbox = Self {
            queue,
            waiting: AtomicUsize::new(0),
            most,
            cut,
        };
        (outbox, receiver)
    }

    /// Puts a text in.
    pub(super) fn put(&self, text: &Utf8Bytes) {
        let size = text.len();
        if self.waiting.fetch_add(size, Ordering::Relaxed) + size > self.most {
            self.cut.cancel();
            return;
        }
        // A socket that has ended takes nothing.
        let _ = self.queue.send(text.clone());
    }

    /// So many bytes were written.
    pub(super) fn written(&self, size: usize) {
        self.waiting.fetch_sub(size, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_lets_too_much_pile_up_is_cut() {
        let cut = CancellationToken::new();
        let (outbox, mut queue) = Outbox::new(10, cut.clone());
        outbox.put(&"12345".into());
        outbox.put(&"12345".into());
        assert!(!cut.is_cancelled());
        assert_eq!(queue.try_recv().unwrap().as_str(), "12345");
        outbox.written(5);
        outbox.put(&"12345".into());
        assert!(!cut.is_cancelled());
        outbox.put(&"1".into());
        assert!(cut.is_cancelled());
    }
}
