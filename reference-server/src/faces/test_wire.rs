//! A wire that takes its time, for tests of what is written to one.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use super::writer::{FrameQueue, Wire, WriteLimits};

pub(crate) const LIMITS: WriteLimits = WriteLimits {
    frames: 256,
    write: Duration::from_secs(2),
    drain: Duration::from_secs(2),
    close: Duration::from_secs(2),
};

pub(crate) const NEVER: Duration = Duration::from_secs(1_000_000);

/// What a wire saw.
#[derive(Default)]
pub(crate) struct Seen {
    begun: Mutex<Vec<Bytes>>,
    written: Mutex<Vec<Bytes>>,
    in_progress: AtomicUsize,
    pub(crate) most_in_progress: AtomicUsize,
    is_closed: AtomicBool,
    is_aborted: AtomicBool,
    pub(crate) peer_gone: Notify,
}

impl Seen {
    pub(crate) fn begun(&self) -> Vec<Bytes> {
        self.begun.lock().unwrap().clone()
    }

    pub(crate) fn written(&self) -> Vec<Bytes> {
        self.written.lock().unwrap().clone()
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::SeqCst)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }
}

/// A wire that takes its time, and fails at a given frame.
struct SlowWire {
    seen: Arc<Seen>,
    write_takes: Box<dyn FnMut(usize) -> Duration + Send>,
    fails_at: Option<usize>,
    close_takes: Duration,
}

impl Wire for SlowWire {
    async fn write(&mut self, frame: Bytes) -> io::Result<()> {
        let number = {
            let mut begun = self.seen.begun.lock().unwrap();
            begun.push(frame.clone());
            begun.len()
        };
        let now = self.seen.in_progress.fetch_add(1, Ordering::SeqCst) + 1;
        self.seen.most_in_progress.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep((self.write_takes)(number)).await;
        self.seen.in_progress.fetch_sub(1, Ordering::SeqCst);
        if self.fails_at == Some(number) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.seen.written.lock().unwrap().push(frame);
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        tokio::time::sleep(self.close_takes).await;
        self.seen.is_closed.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn abort(&mut self) {
        self.seen.is_aborted.store(true, Ordering::SeqCst);
    }

    async fn gone(&mut self) {
        self.seen.peer_gone.notified().await;
    }
}

pub(crate) fn start(
    write_takes: impl FnMut(usize) -> Duration + Send + 'static,
    fails_at: Option<usize>,
    close_takes: Duration,
) -> (FrameQueue, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let wire = SlowWire {
        seen: Arc::clone(&seen),
        write_takes: Box::new(write_takes),
        fails_at,
        close_takes,
    };
    (FrameQueue::start(wire, LIMITS), seen)
}

pub(crate) fn stuck() -> (FrameQueue, Arc<Seen>) {
    start(|_| NEVER, None, Duration::ZERO)
}
