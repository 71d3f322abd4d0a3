//! A response body that does the steps of a plan.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

use crate::faults::{Plan, Step};
use crate::journal::Outcome;
use crate::mock::Ticket;
use crate::tap::Watched;

use super::socket::Handle;

/// The connection is to be closed or reset, as the script says.
#[derive(Debug, thiserror::Error)]
#[error("the script breaks the connection here")]
pub(crate) struct Broken;

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The body of one reply.
pub(crate) struct MockBody {
    bytes: Bytes,
    steps: std::vec::IntoIter<Step>,
    waiting: Option<Waiting>,
    ticket: Ticket,
    socket: Arc<Handle>,
    close_after: bool,
    watched: Option<Watched>,
}

impl MockBody {
    pub(super) fn new(
        plan: Plan,
        ticket: Ticket,
        socket: Arc<Handle>,
        close_after: bool,
        watched: Option<Watched>,
    ) -> Self {
        Self {
            bytes: plan.bytes,
            steps: plan.steps.into_iter(),
            waiting: None,
            ticket,
            socket,
            close_after,
            watched,
        }
    }

    fn complete(&mut self) {
        if self.close_after {
            self.socket.close_after();
        }
        self.ticket.end(Outcome::Complete);
        self.tell_end(Outcome::Complete);
    }

    fn tell_end(&mut self, outcome: Outcome) {
        if let Some(watched) = &mut self.watched {
            watched.end(outcome);
        }
    }

    fn broken(&mut self) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.ticket.end(Outcome::Broken);
        self.tell_end(Outcome::Broken);
        Poll::Ready(Some(Err(Broken)))
    }
}

impl Drop for MockBody {
    /// Hyper drops a body without asking for its end when it knows that there is nothing left.
    fn drop(&mut self) {
        if self.is_end_stream() {
            self.complete();
        }
    }
}

impl Body for MockBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        loop {
            if let Some(waiting) = &mut this.waiting {
                if waiting.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                this.waiting = None;
            }
            match this.steps.next() {
                None => {
                    this.complete();
                    return Poll::Ready(None);
                }
                Some(Step::Send { from, to }) => {
                    this.ticket.sent(to - from);
                    let bytes = this.bytes.slice(from..to);
                    if let Some(watched) = &this.watched {
                        watched.chunk(&bytes);
                    }
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(Step::Flush) => {
                    // Hyper writes out what it has whenever a body is not ready.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Wait(time)) => this.waiting = Some(Box::pin(tokio::time::sleep(time))),
                Some(Step::Gate(name)) => this.waiting = Some(Box::pin(this.ticket.gate(name))),
                Some(Step::Never) => this.waiting = Some(Box::pin(std::future::pending())),
                Some(Step::Close) => return this.broken(),
                Some(Step::Reset) => {
                    this.socket.reset();
                    return this.broken();
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.steps.as_slice().is_empty()
    }
}
