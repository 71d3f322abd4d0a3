//! Watching what goes over the wire, byte by byte, while it happens.
//!
//! The journal tells what was asked and how it ended; a [`Tap`] is told of every byte at the moment when it is
//! handed to the connection, so that a harness has the exchange with its times. A mock has at most one.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, request::Parts};

use crate::journal::Outcome;

/// Is told what a mock gets and sends. Called from many connections at once; it must not wait.
pub trait Tap: std::fmt::Debug + Send + Sync {
    /// A request was read whole. The number that is returned names the exchange in the other calls.
    fn request(&self, parts: &Parts, body: &Bytes) -> u64;

    /// The head of the answer is about to be sent.
    fn response(&self, exchange: u64, status: u16, headers: &HeaderMap);

    /// A piece of the body is handed to the connection; or bytes that take the place of a response.
    fn chunk(&self, exchange: u64, bytes: &Bytes);

    /// The exchange is over. Told once.
    fn end(&self, exchange: u64, outcome: Outcome);
}

/// One exchange that is watched. Dropped before its end, it says that the client went away.
#[derive(Debug)]
pub(crate) struct Watched {
    tap: Arc<dyn Tap>,
    exchange: u64,
    over: bool,
}

impl Watched {
    pub(crate) fn request(tap: &Arc<dyn Tap>, parts: &Parts, body: &Bytes) -> Self {
        Self {
            exchange: tap.request(parts, body),
            tap: tap.clone(),
            over: false,
        }
    }

    pub(crate) fn response(&self, status: u16, headers: &HeaderMap) {
        self.tap.response(self.exchange, status, headers);
    }

    pub(crate) fn chunk(&self, bytes: &Bytes) {
        self.tap.chunk(self.exchange, bytes);
    }

    pub(crate) fn end(&mut self, outcome: Outcome) {
        if !self.over {
            self.over = true;
            self.tap.end(self.exchange, outcome);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.end(Outcome::ClientClosed);
    }
}
