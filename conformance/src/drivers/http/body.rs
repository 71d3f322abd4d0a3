//! A response body that is being read: every piece is recorded as it arrives, within a bound.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::connect::Connection;
use crate::{
    drivers::causes,
    transcript::{
        End, ExchangeId, Fact,
        cut::{self, CutAt, Cutter},
        record::Recorder,
    },
};

/// What is recorded of one body. Whoever reads it and whoever closes it share this, so that nothing is recorded
/// after its end, and its end once.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) exchange: ExchangeId,
    recorder: Recorder,
    state: Mutex<State>,
}

/// Bytes of a bound for which a body may come in one piece more, beside [`ANYHOW`]: each has a place of its own in the
/// transcript, and a body that comes byte by byte would take a hundred times its length.
const PIECE: usize = 64;

/// Pieces of a body that are taken whatever its bound.
const ANYHOW: usize = 256;

#[derive(Debug)]
struct State {
    /// Bytes that may still come.
    room: usize,
    /// Pieces in which they may come.
    pieces: usize,
    cutter: Option<Cutter>,
    ended: Option<End>,
}

impl Account {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, when it has.
    pub(super) fn ended(&self) -> Option<End> {
        self.state().ended.clone()
    }

    /// Offset of now in the transcript.
    pub(super) fn now(&self) -> Duration {
        self.recorder.elapsed()
    }

    /// Records the end. Later ends do not count.
    pub(super) fn end(&self, how: End) {
        self.end_in(&mut self.state(), how);
    }

    fn end_in(&self, state: &mut State, how: End) {
        if state.ended.is_none() {
            state.ended = Some(how.clone());
            self.recorder.tell(Fact::End {
                exchange: self.exchange,
                how,
            });
        }
    }

    /// Records a piece, as far as there is room for it; `None` when the body has ended.
    fn piece(&self, mut bytes: Bytes) -> Option<Bytes> {
        let mut state = self.state();
        if state.ended.is_some() {
            return None;
        }
        let cut_at = state
            .cutter
            .as_mut()
            .and_then(|cutter| cutter.within(&bytes));
        bytes.truncate(cut_at.unwrap_or(bytes.len()));
        let fits = bytes.len() <= state.room && state.pieces > 0;
        bytes.truncate(state.room);
        state.room -= bytes.len();
        state.pieces = state.pieces.saturating_sub(1);
        let chunk = Fact::Chunk {
            exchange: self.exchange,
            bytes: bytes.clone(),
        };
        let kept = bytes.is_empty() || self.recorder.tell(chunk);
        if cut_at.is_some() {
            self.recorder.tell(cut::note(self.exchange));
            self.end_in(&mut state, End::ClosedByHarness);
        } else if !kept || !fits {
            self.end_in(&mut state, End::TooLarge);
        }
        Some(bytes)
    }
}

/// The body and the connection that it comes over. Dropping it before its end closes the connection, and
/// records that the harness did.
#[derive(Debug)]
pub(super) struct Body {
    account: Arc<Account>,
    incoming: Incoming,
    connection: Option<Connection>,
    /// Pieces that were looked at and are still to be read.
    peeked: VecDeque<Bytes>,
}

/// What waiting for the next piece gave.
pub(super) enum Piece {
    /// It came.
    Bytes(Bytes),
    /// There is no more; see [`Account::ended`].
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
        cut: Option<CutAt>,
    ) -> Self {
        let state = Mutex::new(State {
            room,
            pieces: room / PIECE + ANYHOW,
            cutter: cut.map(Cutter::new),
            ended: None,
        });
        let account = Arc::new(Account {
            exchange,
            recorder,
            state,
        });
        Self {
            account,
            incoming,
            connection: Some(connection),
            peeked: VecDeque::new(),
        }
    }

    /// What is recorded of it.
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Waits for the next piece. Cancel safe: what has not been returned has not been read.
    pub(super) async fn next(&mut self, until: Instant) -> Piece {
        if let Some(bytes) = self.peeked.pop_front() {
            return Piece::Bytes(bytes);
        }
        loop {
            if self.account.ended().is_some() {
                self.connection = self.connection.take().filter(|_| self.complete());
                return Piece::Ended;
            }
            let frame = match timeout_at(until, self.incoming.frame()).await {
                Err(_) => return Piece::Late,
                Ok(frame) => frame,
            };
            match frame {
                None => self.account.end(End::Complete),
                Some(Err(error)) => self.account.end(End::Broken(causes(&error))),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data()
                        && !bytes.is_empty()
                        && let Some(bytes) = self.account.piece(bytes)
                    {
                        return Piece::Bytes(bytes);
                    }
                }
            }
        }
    }

    /// Reads to the end like [`Body::read_whole`], and leaves everything to be read.
    pub(super) async fn peek(&mut self, idle: Duration, until: Instant) -> Bytes {
        let whole = self.read_whole(idle, until).await;
        if !whole.is_empty() {
            self.peeked.push_back(whole.clone());
        }
        whole
    }

    /// Reads to the end, at most until `until`, and waits at most `idle` for each piece.
    pub(super) async fn read_whole(&mut self, idle: Duration, until: Instant) -> Bytes {
        let mut whole = BytesMut::new();
        loop {
            match self.next(until.min(Instant::now() + idle)).await {
                Piece::Bytes(bytes) => whole.extend_from_slice(&bytes),
                Piece::Ended => return whole.freeze(),
                Piece::Late => self.account.end(End::TimedOut),
            }
        }
    }

    /// The connection, when the body came to its end and the connection may serve again.
    pub(super) fn release(&mut self) -> Option<Connection> {
        self.connection.take().filter(|_| self.complete())
    }

    /// Closes the connection.
    pub(super) fn disconnect(&mut self) {
        self.connection = None;
    }

    fn complete(&self) -> bool {
        self.account.ended() == Some(End::Complete)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.account.end(End::ClosedByHarness);
    }
}
