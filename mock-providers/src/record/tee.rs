//! A response body that is passed on and kept.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, Incoming};
use tokio::time::{Instant, Sleep};

/// A chunk and when it came.
pub(super) type Chunk = (Instant, Bytes);

/// Is given all chunks when the body has ended, and whether it was complete.
type Done = Box<dyn FnOnce(Vec<Chunk>, bool) + Send>;

/// Keeps what passes.
pub(super) struct Sink {
    chunks: Vec<Chunk>,
    /// Bytes that may still be kept.
    left: usize,
    done: Option<Done>,
}

impl Sink {
    /// Keeps up to `limit` bytes.
    pub(super) fn new(limit: usize, done: impl FnOnce(Vec<Chunk>, bool) + Send + 'static) -> Self {
        Self {
            chunks: Vec::new(),
            left: limit,
            done: Some(Box::new(done)),
        }
    }

    fn keep(&mut self, bytes: &Bytes) {
        let kept = bytes.slice(..bytes.len().min(self.left));
        self.left -= kept.len();
        if !kept.is_empty() {
            self.chunks.push((Instant::now(), kept));
        }
    }

    fn end(&mut self, complete: bool) {
        if let Some(done) = self.done.take() {
            done(std::mem::take(&mut self.chunks), complete);
        }
    }
}

/// Why a body that is passed on ends early.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    /// The service broke off.
    #[error(transparent)]
    Service(#[from] hyper::Error),
    /// The service was silent for too long.
    #[error("the service was silent for {} s", .0.as_secs_f64())]
    Silent(Duration),
}

/// The service's body, passed on and kept.
pub(super) struct Passing {
    body: Incoming,
    sink: Sink,
    idle: Duration,
    /// Ends when the service was silent for too long.
    silence: Pin<Box<Sleep>>,
}

/// The body.
pub(super) enum Tee {
    /// The service's.
    Passing(Passing),
    /// The recorder's own.
    Message(Option<Bytes>),
}

impl Tee {
    pub(super) fn new(body: Incoming, sink: Sink, idle: Duration) -> Self {
        Self::Passing(Passing {
            body,
            sink,
            idle,
            silence: Box::pin(tokio::time::sleep(idle)),
        })
    }

    pub(super) fn message(status: StatusCode, text: &str) -> Response<Self> {
        let body = format!("turnwire mock record: {text}\n");
        let mut response = Response::new(Self::Message(Some(body.into())));
        *response.status_mut() = status;
        response
    }
}

impl Passing {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, PassError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            if self.silence.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.sink.end(false);
            return Poll::Ready(Some(Err(PassError::Silent(self.idle))));
        };
        self.silence.as_mut().reset(Instant::now() + self.idle);
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.sink.keep(data);
                }
            }
            Some(Err(_)) => self.sink.end(false),
            None => self.sink.end(true),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(PassError::from)))
    }
}

impl Body for Tee {
    type Data = Bytes;
    type Error = PassError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, PassError>>> {
        match self.get_mut() {
            Self::Message(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Passing(passing) => passing.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Passing(passing) => passing.body.is_end_stream(),
            Self::Message(text) => text.is_none(),
        }
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        if let Self::Passing(passing) = self {
            passing.sink.end(passing.body.is_end_stream());
        }
    }
}
