//! One socket, and what was learned on it.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use crate::drivers::websocket::{Seen, WebSocket};

/// A turn as somebody knows it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Known {
    /// Its job.
    pub(super) job: Option<String>,
    /// The highest number that was seen.
    pub(super) seq: i64,
    /// Whether its end was seen.
    pub(super) over: bool,
    /// The highest number of the turn before it.
    pub(super) former: Option<i64>,
}

/// A socket.
pub(super) struct Line {
    pub(super) socket: WebSocket,
    /// Messages that were learned from.
    read: usize,
    /// The jobs that run, by session, as the socket was told.
    pub(super) running: BTreeMap<String, Option<String>>,
}

impl Line {
    pub(super) fn new(socket: WebSocket) -> Self {
        Self {
            socket,
            read: 0,
            running: BTreeMap::new(),
        }
    }

    /// Asks for a `pong` and waits for it; false when none comes.
    pub(super) async fn sync(&mut self, soon: Duration) -> bool {
        if self.socket.has_ended() || self.socket.send(&json!({ "type": "ping" })).await.is_err() {
            return false;
        }
        self.socket.wait_for_kind("pong", soon).await.is_some()
    }

    /// What has come since the last time.
    pub(super) fn fresh(&mut self) -> Vec<Seen> {
        let fresh = self.socket.since(self.read);
        self.read += fresh.len();
        for seen in &fresh {
            if seen.kind() != Some("chat:active") {
                continue;
            }
            let session = seen.text("/payload/sessionId").unwrap_or_default();
            if seen.pointer("/payload/running") == Some(&true.into()) {
                let job = seen.text("/payload/jobId").map(str::to_owned);
                self.running.insert(session.to_owned(), job);
            } else {
                self.running.remove(session);
            }
        }
        fresh
    }
}

/// The number of a numbered frame of a session, and its job.
pub(super) fn numbered<'s>(seen: &'s Seen, session: &str) -> Option<(i64, Option<&'s str>)> {
    let seq = seen.pointer("/payload/seq").and_then(Value::as_i64)?;
    let ours = seen.text("/payload/sessionId") == Some(session);
    ours.then(|| (seq, seen.text("/payload/jobId")))
}

/// Learns from frames how far the newest turn of a session is.
pub(super) fn follow(known: &mut Option<Known>, session: &str, fresh: &[Seen]) {
    for seen in fresh {
        let Some((seq, job)) = numbered(seen, session) else {
            continue;
        };
        let over = seen.kind() == Some("chat:complete");
        if let Some(turn) = known.as_mut().filter(|turn| turn.job.as_deref() == job) {
            turn.seq = turn.seq.max(seq);
            turn.over |= over;
            continue;
        }
        let former = known.as_ref().map(|turn| turn.seq);
        *known = Some(Known {
            job: job.map(str::to_owned),
            seq,
            over,
            former,
        });
    }
}
