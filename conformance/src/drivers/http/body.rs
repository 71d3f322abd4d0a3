//! A response body that is being read: every piece is recorded as it arrives, within a bound.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::connect::Connection;
use crate::{
    drivers::causes,
    transcript::{End, ExchangeId, Fact, record::Recorder},
};

/// The body and the connection that it comes over. Dropping it before its end closes the connection, and
/// records that the harness did.
#[derive(Debug)]
pub(super) struct Body {
    exchange: ExchangeId,
    incoming: Incoming,
    connection: Option<Connection>,
    recorder: Recorder,
    /// Bytes that may still come.
    room: usize,
    ended: Option<End>,
}

/// What waiting for the next piece gave.
pub(super) enum Piece {
    /// It came.
    Bytes(Bytes),
    /// There is no more; see [`Body::ended`].
    Ended,
    /// Nothing came in time.
    Late,
}

impl Body {
    pub(super) fn new(
        exchange: ExchangeId,
        incoming: Incoming,
        connection: Connection,
        recorder: Recorder,
        room: usize,
    ) -> Self {
        Self {
            exchange,
            incoming,
            connection: Some(connection),
            recorder,
            room,
            ended: None,
        }
    }

    pub(super) fn exchange(&self) -> ExchangeId {
        self.exchange
    }

    /// How it ended, when it has.
    pub(super) fn ended(&self) -> Option<&End> {
        self.ended.as_ref()
    }

    /// Offset of now in the transcript.
    pub(super) fn now(&self) -> Duration {
        self.recorder.elapsed()
    }

    /// Waits for the next piece. Cancel safe: what has not been returned has not been read.
    pub(super) async fn next(&mut self, until: Instant) -> Piece {
        loop {
            if self.ended.is_some() {
                return Piece::Ended;
            }
            let frame = match timeout_at(until, self.incoming.frame()).await {
                Err(_) => return Piece::Late,
                Ok(frame) => frame,
            };
            match frame {
                None => self.end(End::Complete),
                Some(Err(error)) => self.end(End::Broken(causes(&error))),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data()
                        && !bytes.is_empty()
                    {
                        return Piece::Bytes(self.take(bytes));
                    }
                }
            }
        }
    }

    /// Reads to the end, at most until `until`, and waits at most `idle` for each piece.
    pub(super) async fn read_whole(&mut self, idle: Duration, until: Instant) -> Bytes {
        let mut whole = BytesMut::new();
        loop {
            match self.next(until.min(Instant::now() + idle)).await {
                Piece::Bytes(bytes) => whole.extend_from_slice(&bytes),
                Piece::Ended => return whole.freeze(),
                Piece::Late => self.end(End::TimedOut),
            }
        }
    }

    /// Records the end and, unless the body came to its end, closes the connection. Later ends do not count.
    pub(super) fn end(&mut self, how: End) {
        if self.ended.is_some() {
            return;
        }
        if how != End::Complete {
            self.connection = None;
        }
        self.recorder.tell(Fact::End {
            exchange: self.exchange,
            how: how.clone(),
        });
        self.ended = Some(how);
    }

    /// The connection, when the body came to its end and the connection may serve again.
    pub(super) fn release(&mut self) -> Option<Connection> {
        if self.ended == Some(End::Complete) {
            self.connection.take()
        } else {
            None
        }
    }

    fn take(&mut self, mut bytes: Bytes) -> Bytes {
        let fits = bytes.len() <= self.room;
        bytes.truncate(self.room);
        self.room -= bytes.len();
        let kept = self.recorder.tell(Fact::Chunk {
            exchange: self.exchange,
            bytes: bytes.clone(),
        });
        if !fits || !kept {
            self.end(End::TooLarge);
        }
        bytes
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.end(End::ClosedByHarness);
    }
}
