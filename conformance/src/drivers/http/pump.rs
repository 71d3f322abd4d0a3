//! Where an event stream gets its bytes from: read at once when they arrive, or only when asked for.
//!
//! A stream is pumped, so that its pieces carry the time of their arrival even while the scenario looks
//! elsewhere. A slow reader is not: what it does not ask for stays in the kernel, and the target notices.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::AbortHandle,
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::body::{Account, Body, Piece};
use crate::transcript::End;

/// The bytes of a stream.
#[derive(Debug)]
pub(super) enum Source {
    /// Read when asked for.
    ByHand(Body),
    /// Read by a task of its own. What waits here is bounded by the body's own bound.
    Pumped {
        pieces: UnboundedReceiver<(Duration, Bytes)>,
        account: Arc<Account>,
        task: Pump,
    },
}

/// The task that reads. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Pump(AbortHandle);

impl Drop for Pump {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Source {
    /// Reads in a task that ends with the stream, with this source, or when the client is finished.
    pub(super) fn pumped(
        mut body: Body,
        readers: &TaskTracker,
        finished: CancellationToken,
    ) -> Self {
        let account = Arc::clone(body.account());
        let (queue, pieces) = unbounded_channel();
        let task = readers.spawn(async move {
            loop {
                let far_away = Instant::now() + Duration::from_secs(3600);
                let piece = tokio::select! {
                    biased;
                    () = finished.cancelled() => break,
                    piece = body.next(far_away) => piece,
                };
                match piece {
                    Piece::Bytes(bytes) => {
                        if queue.send((body.account().now(), bytes)).is_err() {
                            break;
                        }
                    }
                    Piece::Ended => break,
                    Piece::Late => {}
                }
            }
        });
        Self::Pumped {
            pieces,
            account,
            task: Pump(task.abort_handle()),
        }
    }

    /// What is recorded of it.
    pub(super) fn account(&self) -> &Account {
        match self {
            Self::ByHand(body) => body.account(),
            Self::Pumped { account, .. } => account,
        }
    }

    /// The next piece and when it arrived; `Err` with whether the stream has ended.
    pub(super) async fn next(&mut self, until: Instant) -> Result<(Duration, Bytes), Ended> {
        match self {
            Self::ByHand(body) => match body.next(until).await {
                Piece::Bytes(bytes) => Ok((body.account().now(), bytes)),
                Piece::Ended => Err(Ended(true)),
                Piece::Late => Err(Ended(false)),
            },
            Self::Pumped { pieces, .. } => match timeout_at(until, pieces.recv()).await {
                Ok(Some(piece)) => Ok(piece),
                Ok(None) => Err(Ended(true)),
                Err(_) => Err(Ended(false)),
            },
        }
    }

    /// Records the end, unless it has ended, and closes the connection.
    pub(super) fn close(&mut self, how: End) {
        self.account().end(how);
        match self {
            Self::ByHand(body) => body.disconnect(),
            Self::Pumped { task, .. } => task.0.abort(),
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // Before the task is told, so that the end is recorded now.
        self.account().end(End::ClosedByHarness);
    }
}

/// Whether the stream has ended; else nothing came in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended(pub(super) bool);
