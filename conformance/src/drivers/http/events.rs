//! An event stream while it is open: read frame by frame, or in the background while the scenario goes on.
//!
//! A stream is read as its bytes arrive, whoever waits for its frames and when, so that they are recorded with the
//! time of their arrival; only a slow reader's is not. Reading never fails: a stream that breaks off, ends or goes silent is a fact in the transcript, and the
//! reader gets no frame. A stream that is dropped is closed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use turnwire_spec::sse::{self, Frame, Limits};

use super::{
    body::Body,
    pump::{Ended, Source},
};
use crate::transcript::{self, End, ExchangeId, ResponseHead, views::stream::StreamFrame};

/// A response whose body is read as an event stream, whatever its status and media type are.
#[derive(Debug)]
pub struct EventStream {
    /// Method and target of the request.
    pub request: String,
    /// Status code.
    pub status: u16,
    /// Headers as received; names in lower case.
    pub headers: Vec<(String, String)>,
    source: Source,
    decoder: Option<sse::Recorder>,
    ready: VecDeque<StreamFrame>,
    next_index: usize,
    readers: TaskTracker,
    finished: CancellationToken,
}

impl EventStream {
    pub(super) fn new(
        request: String,
        head: ResponseHead,
        body: Body,
        by_hand: bool,
        readers: TaskTracker,
        finished: CancellationToken,
    ) -> Self {
        let source = if by_hand {
            Source::ByHand(body)
        } else {
            Source::pumped(body, &readers, finished.clone())
        };
        Self {
            request,
            status: head.status,
            headers: head.headers,
            source,
            decoder: Some(sse::Recorder::new(Limits::NONE)),
            ready: VecDeque::new(),
            next_index: 0,
            readers,
            finished,
        }
    }

    /// Its number in the transcript.
    pub fn exchange(&self) -> ExchangeId {
        self.source.account().exchange
    }

    /// Value of a response header.
    pub fn header(&self, name: &str) -> Option<&str> {
        transcript::header(&self.headers, name)
    }

    /// How it ended, when it has and everything before that was read.
    pub fn ended(&self) -> Option<End> {
        let all_read = self.ready.is_empty() && self.decoder.is_none();
        self.source.account().ended().filter(|_| all_read)
    }

    /// The next frame, comments included; `None` when none was complete in time or the stream has ended.
    pub async fn next_frame(&mut self, within: Duration) -> Option<StreamFrame> {
        self.next_until(Instant::now() + within).await
    }

    /// Reads up to the first frame of this type and gives it; `None` when none came in time.
    pub async fn read_until(&mut self, event_type: &str, within: Duration) -> Option<StreamFrame> {
        self.read_until_any(&[event_type], within).await
    }

    /// Reads up to the first frame of one of these types and gives it; `None` when none came in time.
    pub async fn read_until_any(
        &mut self,
        event_types: &[&str],
        within: Duration,
    ) -> Option<StreamFrame> {
        let until = Instant::now() + within;
        while let Some(frame) = self.next_until(until).await {
            if is_event(&frame) && event_types.contains(&frame.event_type()) {
                return Some(frame);
            }
        }
        None
    }

    /// Reads up to the first frame that `is_last` takes, and gives all that came, that one included. It stops at
    /// the end of the stream, and after `within` as a whole, however many frames still come.
    pub async fn read_up_to(
        &mut self,
        within: Duration,
        mut is_last: impl FnMut(&StreamFrame) -> bool,
    ) -> Vec<StreamFrame> {
        let until = Instant::now() + within;
        let mut frames = Vec::new();
        while let Some(frame) = self.next_until(until).await {
            let last = is_last(&frame);
            frames.push(frame);
            if last {
                break;
            }
        }
        frames
    }

    /// Reads for this long, or to the end, and gives what came.
    pub async fn read_for(&mut self, time: Duration) -> Vec<StreamFrame> {
        self.read_up_to(time, |_| false).await
    }

    /// Reads to the end and gives what came. A stream that has not ended in time is closed, and recorded as
    /// timed out.
    pub async fn read_to_end(&mut self, within: Duration) -> Vec<StreamFrame> {
        let frames = self.read_for(within).await;
        self.source.close(End::TimedOut);
        frames
    }

    /// Reads nothing for this long: a slow reader, as the target sees it. The stream must have been opened with a
    /// small [`receive_buffer`](super::Call::receive_buffer); any other is read all the time.
    pub async fn stall(&mut self, time: Duration) {
        sleep(time).await;
    }

    /// Closes the connection.
    pub fn close(mut self) {
        self.source.close(End::ClosedByHarness);
    }

    /// Keeps the frames that come while the scenario does other things, to be asked for later and more than
    /// once. Dropping the handle closes the stream.
    pub fn keep_reading(mut self) -> Reading {
        let seen = Arc::new(Seen::default());
        let (stop, stopped) = (CancellationToken::new(), self.finished.clone());
        let (shared, stopping) = (Arc::clone(&seen), stop.clone());
        let (request, status, exchange) = (self.request.clone(), self.status, self.exchange());
        let readers = self.readers.clone();
        let task = readers.spawn(async move {
            loop {
                let frame = tokio::select! {
                    biased;
                    () = stopped.cancelled() => break,
                    () = stopping.cancelled() => break,
                    frame = self.next_until(far_away()) => frame,
                };
                match frame {
                    Some(frame) => shared.add(frame),
                    None if self.ended().is_some() => break,
                    None => {}
                }
            }
            shared.end(self.ended());
            self
        });
        Reading {
            request,
            status,
            exchange,
            seen,
            stop,
            task: Some(task),
        }
    }

    async fn next_until(&mut self, until: Instant) -> Option<StreamFrame> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            match self.source.next(until).await {
                Ok((at, bytes)) => {
                    let frames = self.decoder.as_mut().map(|decoder| decoder.feed(&bytes));
                    self.queue(at, frames.unwrap_or_default());
                }
                Err(Ended(false)) => return None,
                Err(Ended(true)) => {
                    let rest = self.decoder.take()?.finish();
                    self.queue(self.source.account().now(), rest);
                }
            }
        }
    }

    fn queue(&mut self, at: Duration, frames: impl IntoIterator<Item = Frame>) {
        for frame in frames.into_iter().filter(|frame| !frame.is_blank()) {
            let json = frame
                .data()
                .and_then(|data| serde_json::from_str(&data).ok());
            self.ready.push_back(StreamFrame {
                index: self.next_index,
                at,
                frame,
                json,
            });
            self.next_index += 1;
        }
    }
}

/// Further away than any run is long.
fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(24 * 3600)
}

fn is_event(frame: &StreamFrame) -> bool {
    frame.frame.terminated && !frame.frame.is_comment_only()
}

/// A stream that is being read in the background.
#[derive(Debug)]
pub struct Reading {
    /// Method and target of the request.
    pub request: String,
    /// Status code.
    pub status: u16,
    /// Its number in the transcript.
    pub exchange: ExchangeId,
    seen: Arc<Seen>,
    stop: CancellationToken,
    task: Option<JoinHandle<EventStream>>,
}

/// What a background reader has seen.
#[derive(Debug)]
struct Seen {
    frames: Mutex<Vec<StreamFrame>>,
    /// `Some` when the reader has ended: with the end of the stream, if that is why.
    ended: Mutex<Option<Option<End>>>,
    changed: watch::Sender<()>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            frames: Mutex::default(),
            ended: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }
}

impl Seen {
    fn frames(&self) -> MutexGuard<'_, Vec<StreamFrame>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> MutexGuard<'_, Option<Option<End>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, frame: StreamFrame) {
        self.frames().push(frame);
        self.changed.send_replace(());
    }

    fn end(&self, how: Option<End>) {
        *self.ended() = Some(how);
        self.changed.send_replace(());
    }
}

impl Reading {
    /// All frames so far, in order.
    pub fn frames(&self) -> Vec<StreamFrame> {
        self.seen.frames().clone()
    }

    /// How many frames there are so far: a mark for [`Reading::wait_after`].
    pub fn mark(&self) -> usize {
        self.seen.frames().len()
    }

    /// The first frame of this type, of those so far or to come; `None` when there is none in time.
    pub async fn wait_for(&self, event_type: &str, within: Duration) -> Option<StreamFrame> {
        self.wait_after(0, event_type, within).await
    }

    /// The first frame of this type from frame number `mark` on; `None` when there is none in time.
    pub async fn wait_after(
        &self,
        mark: usize,
        event_type: &str,
        within: Duration,
    ) -> Option<StreamFrame> {
        self.wait_until(within, |frames| {
            frames
                .iter()
                .skip(mark)
                .find(|frame| is_event(frame) && frame.event_type() == event_type)
                .cloned()
        })
        .await
    }

    /// Waits until there are `count` frames of this type; whether there are.
    pub async fn wait_count(&self, event_type: &str, count: usize, within: Duration) -> bool {
        self.wait_until(within, |frames| {
            let found = frames
                .iter()
                .filter(|frame| is_event(frame) && frame.event_type() == event_type);
            (found.count() >= count).then_some(())
        })
        .await
        .is_some()
    }

    /// Waits until `find` finds something in the frames so far; `None` when it does not in time.
    pub async fn wait_until<T>(
        &self,
        within: Duration,
        find: impl Fn(&[StreamFrame]) -> Option<T>,
    ) -> Option<T> {
        self.wait(within, |seen| {
            // The end first: no frame comes after it.
            let over = seen.ended().is_some();
            find(&seen.frames()).map(Some).or(over.then_some(None))
        })
        .await
        .flatten()
    }

    /// Waits for the end of the stream; `None` when it has not ended in time.
    pub async fn wait_end(&self, within: Duration) -> Option<End> {
        self.wait(within, |seen| seen.ended().clone())
            .await
            .flatten()
    }

    /// How the stream ended, when it has.
    pub fn ended(&self) -> Option<End> {
        self.seen.ended().clone().flatten()
    }

    /// Stops reading in the background and gives the stream back, to be read by hand; `None` only when the
    /// scenario is over. Frames that were seen here do not come again.
    pub async fn stop(mut self) -> Option<EventStream> {
        self.stop.cancel();
        self.task.take()?.await.ok()
    }

    /// Closes the connection.
    pub async fn close(self) {
        if let Some(stream) = self.stop().await {
            stream.close();
        }
    }

    async fn wait<T>(&self, within: Duration, look: impl Fn(&Seen) -> Option<T>) -> Option<T> {
        let mut changes = self.seen.changed.subscribe();
        let found = timeout(within, async {
            loop {
                changes.mark_unchanged();
                if let Some(found) = look(&self.seen) {
                    return Some(found);
                }
                if changes.changed().await.is_err() {
                    return None;
                }
            }
        });
        found.await.ok().flatten()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
