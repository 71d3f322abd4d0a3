//! One connection's outgoing frames: a bounded queue, one writer, and limits on every wait.
//!
//! Whoever has a frame [pushes](FrameQueue::push) it and goes on; one task writes the frames to a
//! [`Wire`], in queue order, one at a time.
//!
//! ```text
//!            push                          finish                     all written
//!   Open ----------> Open (at most 256) ------------> Draining ------------------> Closing
//!    |                                                   |                            |
//!    | overflow, write error or timeout,                 | drain limit, likewise      | close limit
//!    | peer gone, abort                                  |                            |
//!    +------------------------> Ended: aborted <---------+----------------------------+--> Ended
//! ```
//!
//! Once it has ended, nothing is accepted, what has not been begun is dropped, and the connection is
//! aborted; nothing is begun in its place. What a frame says, and over which socket it goes, is not
//! known here.
//!
//! Source: seed 000, lines 672-693.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};
use turnwire_spec::covel::limits::{self, TimeScale};

/// What frames are written to: one connection.
pub trait Wire: Send + 'static {
    /// Writes one frame; returns when the transport has taken all of it.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the connection is aborted then.
    fn write(&mut self, frame: Bytes) -> impl Future<Output = io::Result<()>> + Send;

    /// Ends the stream in good order.
    ///
    /// # Errors
    ///
    /// When that is not possible; the connection is aborted then.
    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Breaks the connection off at once. Called at most once, and nothing is called after it.
    fn abort(&mut self);

    /// Returns when the peer is known to be gone.
    fn gone(&mut self) -> impl Future<Output = ()> + Send;
}

/// The sizes and periods of one connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WriteLimits {
    /// Frames that wait or are being written; at least 1.
    pub frames: usize,
    /// Longest single write, after scaling.
    pub write: Duration,
    /// Longest time from the end of the stream until all frames are written, after scaling.
    pub drain: Duration,
    /// Longest close, after scaling.
    pub close: Duration,
}

impl WriteLimits {
    /// The limits of the protocol at this scale.
    #[must_use]
    pub fn at(scale: TimeScale) -> Self {
        Self {
            frames: limits::WRITE_QUEUE_FRAMES,
            write: scale.scale_io(limits::WRITE_WITHIN),
            drain: scale.scale_io(limits::DRAIN_WITHIN),
            close: scale.scale_io(limits::CLOSE_WITHIN),
        }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// Everything was written, and the stream was closed in good order.
    Finished,
    /// More frames were pushed than may wait.
    Overflow,
    /// A write failed.
    WriteError,
    /// A single write took too long.
    WriteTimeout,
    /// The frames that waited at the end were not written in time.
    DrainTimeout,
    /// Closing failed or took too long.
    CloseFailed,
    /// The peer went away.
    Gone,
    /// The server broke it off.
    Aborted,
    /// The stream was given up before it began; the connection serves something else.
    Abandoned,
}

/// The frame was not accepted: the connection has ended, or is about to.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the connection takes no more frames")]
pub struct Refused;

/// The queue of one connection. Clones are handles to the same queue.
#[derive(Clone)]
pub struct FrameQueue {
    shared: Arc<Shared>,
}

struct Shared {
    limits: WriteLimits,
    state: Mutex<State>,
    /// There is a frame to write, or the drain has begun.
    work: Notify,
    /// There is room, or the queue has ended.
    room: Notify,
    /// When the drain has to be over; `None` before it begins.
    drain_by: watch::Sender<Option<Instant>>,
    end: watch::Sender<Option<End>>,
}

struct State {
    waiting: VecDeque<Bytes>,
    is_writing: bool,
    is_open: bool,
}

enum Offer {
    Queued,
    Full(Bytes),
    Refused,
}

enum Job {
    Write(Bytes),
    Close,
}

impl FrameQueue {
    /// Starts the writer of this connection.
    pub fn start(wire: impl Wire, limits: WriteLimits) -> Self {
        let shared = Arc::new(Shared {
            limits,
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                is_writing: false,
                is_open: true,
            }),
            work: Notify::new(),
            room: Notify::new(),
            drain_by: watch::Sender::new(None),
            end: watch::Sender::new(None),
        });
        tokio::spawn(run(Arc::clone(&shared), wire));
        Self { shared }
    }

    /// Queues a frame and returns at once. One frame too many ends the connection.
    ///
    /// # Errors
    ///
    /// [`Refused`] when this frame is the one too many, or the connection takes none any more.
    pub fn push(&self, frame: Bytes) -> Result<(), Refused> {
        match self.offer(frame) {
            Offer::Queued => Ok(()),
            Offer::Refused => Err(Refused),
            Offer::Full(_) => {
                self.shared.end(End::Overflow);
                Err(Refused)
            }
        }
    }

    /// Queues a frame as soon as there is room, for a producer that can wait, such as a replay.
    ///
    /// # Errors
    ///
    /// [`Refused`] when the connection takes no frames any more.
    pub async fn push_when_room(&self, mut frame: Bytes) -> Result<(), Refused> {
        loop {
            let room = self.shared.room.notified();
            frame = match self.offer(frame) {
                Offer::Queued => return Ok(()),
                Offer::Refused => return Err(Refused),
                Offer::Full(frame) => frame,
            };
            room.await;
        }
    }

    /// Accepts no more frames, lets those that wait be written, and closes. Returns how that went.
    ///
    /// The writer goes on when the returned future is dropped.
    pub async fn finish(&self) -> End {
        {
            let mut state = self.shared.state();
            if state.is_open {
                state.is_open = false;
                let by = Instant::now() + self.shared.limits.drain;
                self.shared.drain_by.send_replace(Some(by));
            }
        }
        self.shared.work.notify_one();
        self.shared.room.notify_waiters();
        self.ended().await
    }

    /// Breaks the connection off, unless it has ended.
    pub fn abort(&self) {
        self.shared.end(End::Aborted);
    }

    /// Gives the stream up and lets the connection be, for a request that is answered otherwise.
    pub fn abandon(&self) {
        self.shared.end(End::Abandoned);
    }

    /// Returns when the connection has ended, and how.
    pub async fn ended(&self) -> End {
        let mut end = self.shared.end.subscribe();
        match end.wait_for(Option::is_some).await.map(|end| *end) {
            Ok(Some(end)) => end,
            // The sender lives in `shared`, which `self` holds.
            Ok(None) | Err(_) => pending().await,
        }
    }

    fn offer(&self, frame: Bytes) -> Offer {
        let mut state = self.shared.state();
        if !state.is_open {
            return Offer::Refused;
        }
        if state.held() >= self.shared.limits.frames {
            return Offer::Full(frame);
        }
        state.waiting.push_back(frame);
        self.shared.work.notify_one();
        Offer::Queued
    }

    /// Frames that wait or are being written.
    #[must_use]
    pub fn held(&self) -> usize {
        self.shared.state().held()
    }
}

impl State {
    fn held(&self) -> usize {
        self.waiting.len() + usize::from(self.is_writing)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how the connection ended, unless it is noted already, and drops what waits.
    fn end(&self, end: End) {
        {
            let mut state = self.state();
            state.is_open = false;
            state.waiting.clear();
        }
        self.end.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(end);
            is_first
        });
        self.room.notify_waiters();
    }

    /// The next thing to do; waits for it.
    async fn next(&self) -> Job {
        loop {
            {
                let mut state = self.state();
                if let Some(frame) = state.waiting.pop_front() {
                    state.is_writing = true;
                    return Job::Write(frame);
                }
                if !state.is_open {
                    return Job::Close;
                }
            }
            self.work.notified().await;
        }
    }

    fn written(&self) {
        self.state().is_writing = false;
        self.room.notify_waiters();
    }

    /// Returns when the drain has begun and its time is over.
    async fn drain_overdue(&self) {
        let mut drain_by = self.drain_by.subscribe();
        let by = drain_by
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|by| *by);
        match by {
            Some(by) => sleep_until(by).await,
            None => pending().await,
        }
    }

    async fn ended(&self) {
        let mut end = self.end.subscribe();
        if end.wait_for(Option::is_some).await.is_err() {
            pending().await
        }
    }
}

async fn run(shared: Arc<Shared>, mut wire: impl Wire) {
    let end = write_all(&shared, &mut wire).await;
    shared.end(end);
    let first_end = *shared.end.borrow();
    if !matches!(first_end, Some(End::Finished | End::Abandoned)) {
        wire.abort();
    }
}

/// Writes frames until the connection ends.
async fn write_all(shared: &Shared, wire: &mut impl Wire) -> End {
    loop {
        let job = tokio::select! {
            biased;
            () = shared.ended() => return End::Aborted,
            job = shared.next() => job,
            () = wire.gone() => return End::Gone,
        };
        let Job::Write(frame) = job else {
            return close(shared, wire).await;
        };
        let written = tokio::select! {
            biased;
            () = shared.ended() => return End::Aborted,
            () = shared.drain_overdue() => return End::DrainTimeout,
            written = timeout(shared.limits.write, wire.write(frame)) => written,
        };
        match written {
            Ok(Ok(())) => shared.written(),
            Ok(Err(_)) => return End::WriteError,
            Err(_) => return End::WriteTimeout,
        }
    }
}

async fn close(shared: &Shared, wire: &mut impl Wire) -> End {
    tokio::select! {
        biased;
        () = shared.ended() => End::Aborted,
        closed = timeout(shared.limits.close, wire.close()) => match closed {
            Ok(Ok(())) => End::Finished,
            Ok(Err(_)) | Err(_) => End::CloseFailed,
        },
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
