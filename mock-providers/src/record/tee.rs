//! A response body that is passed on and kept.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, Incoming};
use tokio::time::Instant;

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

/// The body.
pub(super) enum Tee {
    /// The service's, passed on and kept.
    Passing(Incoming, Sink),
    /// The recorder's own.
    Message(Option<Bytes>),
}

impl Tee {
    pub(super) fn new(body: Incoming, sink: Sink) -> Self {
        Self::Passing(body, sink)
    }

    pub(super) fn message(status: StatusCode, text: &str) -> Response<Self> {
        let body = format!("turnwire record: {text}\n");
        let mut response = Response::new(Self::Message(Some(body.into())));
        *response.status_mut() = status;
        response
    }
}

impl Body for Tee {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Message(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Passing(body, sink) => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                match &frame {
                    Some(Ok(frame)) => {
                        if let Some(data) = frame.data_ref() {
                            sink.keep(data);
                        }
                    }
                    Some(Err(_)) => sink.end(false),
                    None => sink.end(true),
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Passing(body, _) => body.is_end_stream(),
            Self::Message(text) => text.is_none(),
        }
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        if let Self::Passing(body, sink) = self {
            sink.end(body.is_end_stream());
        }
    }
}
