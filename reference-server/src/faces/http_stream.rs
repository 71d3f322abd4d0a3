//! An event stream as the body of an HTTP response, written frame by frame.
//!
//! [`open`] gives the response and the [`FrameQueue`] whose frames it carries. The two ends meet in a
//! slot for one frame: the writer puts a frame in and waits until the connection has flushed it, and
//! only then the next one goes in. So every frame leaves on its own, and the library's buffer never
//! holds more than the frame that is being written.
//!
//! Source: seed 000, lines 672-685.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, header};
use http_body::Frame;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::writer::{FrameQueue, Wire, WriteLimits};

/// Opens an event stream on this connection. The response has to be returned to be written.
pub fn open(connection: &Connection, limits: WriteLimits) -> (FrameQueue, Response) {
    let meeting = Arc::new(Meeting {
        connection: connection.clone(),
        slot: Mutex::new(Slot::default()),
        body_gone: CancellationToken::new(),
    });
    let queue = FrameQueue::start(
        HttpWire {
            meeting: Arc::clone(&meeting),
        },
        limits,
    );
    let mut response = Response::new(Body::new(StreamBody { meeting }));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    (queue, response)
}

struct Meeting {
    connection: Connection,
    slot: Mutex<Slot>,
    body_gone: CancellationToken,
}

#[derive(Default)]
struct Slot {
    next: Option<Step>,
    /// The count of flushes at the moment when the library took the last step.
    taken_at: Option<u64>,
    waker: Option<Waker>,
}

enum Step {
    Frame(Bytes),
    End,
}

impl Meeting {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a step to the library and waits until the connection has flushed it.
    async fn hand_over(&self, step: Step) -> io::Result<()> {
        let waker = {
            let mut slot = self.slot();
            slot.next = Some(step);
            slot.taken_at = None;
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        let mut flushes = self.connection.follow_flushes();
        loop {
            let now = *flushes.borrow_and_update();
            if self.slot().taken_at.is_some_and(|taken_at| now > taken_at) {
                return Ok(());
            }
            tokio::select! {
                flushed = flushes.changed() => flushed.map_err(|_| broken())?,
                () = self.lost() => return Err(broken()),
            }
        }
    }

    /// Returns when a step that is not flushed yet never will be.
    async fn lost(&self) {
        self.body_gone.cancelled().await;
        // The library lets go of a body that has ended before it flushes the end.
        if self.slot().taken_at.is_some() {
            self.connection.closed().await;
        }
    }
}

fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

struct HttpWire {
    meeting: Arc<Meeting>,
}

impl Wire for HttpWire {
    async fn write(&mut self, frame: Bytes) -> io::Result<()> {
        self.meeting.hand_over(Step::Frame(frame)).await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.meeting.hand_over(Step::End).await
    }

    fn abort(&mut self) {
        self.meeting.connection.abort();
    }

    async fn gone(&mut self) {
        self.meeting.body_gone.cancelled().await;
    }
}

struct StreamBody {
    meeting: Arc<Meeting>,
}

impl http_body::Body for StreamBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let flushes = self.meeting.connection.flushes();
        let mut slot = self.meeting.slot();
        match slot.next.take() {
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(step) => {
                slot.taken_at = Some(flushes);
                Poll::Ready(match step {
                    Step::Frame(frame) => Some(Ok(Frame::data(frame))),
                    Step::End => None,
                })
            }
        }
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        self.meeting.body_gone.cancel();
    }
}
