//! What waits to be written to one connection, in order, within a bound.
//!
//! Putting never waits: the bus puts events here under its lock. A connection whose reader is too slow loses its
//! place and not its events: it ends, and its client rebuilds from the facts.
//!
//! The sequence is counted here, in the order of sending, so that an event that is not sent takes no number.
//!
//! Source: seed 002, lines 16 and 23.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use turnwire_spec::session_update::limits::{WAITING_BYTES, WAITING_MESSAGES};

/// Bytes that are written at a time.
const BATCH_BYTES: usize = 64 * 1024;

/// The waiting lines of one connection.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    /// There is something to write, or the end.
    filled: Notify,
    /// There is room, or the end.
    drained: Notify,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<String>,
    bytes: usize,
    /// The number of the last event.
    sequence: u64,
    end: Option<End>,
}

/// Why nothing more is put.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    /// What waits is still written.
    Closed,
    /// The reader did not keep up: what waits is dropped.
    Overflow,
}

impl Outbox {
    /// Puts a line that is no event.
    pub(super) fn put(&self, line: String) {
        self.add(|_| line);
    }

    /// Puts an event: `line` makes it from its number.
    pub(super) fn put_event(&self, line: impl FnOnce(u64) -> String) {
        self.add(|sequence| {
            *sequence += 1;
            line(*sequence)
        });
    }

    fn add(&self, line: impl FnOnce(&mut u64) -> String) {
        let mut state = self.state();
        if state.end.is_some() {
            return;
        }
        let line = line(&mut state.sequence);
        state.bytes += line.len() + 1;
        state.lines.push_back(line);
        if state.lines.len() > WAITING_MESSAGES || state.bytes > WAITING_BYTES {
            state.lines.clear();
            state.end = Some(End::Overflow);
            self.drained.notify_waiters();
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Waits until half of the bound is free. False when the connection has ended.
    pub(super) async fn room(&self) -> bool {
        loop {
            let drained = self.drained.notified();
            let mut drained = std::pin::pin!(drained);
            // Counts as waiting from here on, so that no drain is missed.
            drained.as_mut().enable();
            {
                let state = self.state();
                if state.end.is_some() {
                    return false;
                }
                if state.lines.len() <= WAITING_MESSAGES / 2 && state.bytes <= WAITING_BYTES / 2 {
                    return true;
                }
            }
            drained.await;
        }
    }

    /// Takes nothing more; what waits is still written.
    pub(super) fn close(&self) {
        self.end(End::Closed);
    }

    /// Ends the connection as one whose reader did not keep up.
    pub(super) fn overflow(&self) {
        self.end(End::Overflow);
    }

    fn end(&self, end: End) {
        let mut state = self.state();
        if state.end.is_none() {
            state.end = Some(end);
        }
        drop(state);
        self.filled.notify_one();
        self.drained.notify_waiters();
    }

    /// The next bytes to write, whole lines; `Err` at the end.
    pub(super) async fn batch(&self) -> Result<Vec<u8>, End> {
        loop {
            if let Some(batch) = self.take()? {
                return Ok(batch);
            }
            self.filled.notified().await;
        }
    }

    fn take(&self) -> Result<Option<Vec<u8>>, End> {
        let mut state = self.state();
        if state.end == Some(End::Overflow) {
            return Err(End::Overflow);
        }
        let mut batch = Vec::new();
        while batch.len() < BATCH_BYTES
            && let Some(line) = state.lines.pop_front()
        {
            batch.extend_from_slice(line.as_bytes());
            batch.push(b'\n');
        }
        state.bytes -= batch.len();
        let end = state.end;
        drop(state);
        self.drained.notify_waiters();
        match (batch.is_empty(), end) {
            (true, Some(end)) => Err(end),
            (true, None) => Ok(None),
            (false, _) => Ok(Some(batch)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_are_numbered_from_one_in_the_order_of_sending_and_other_lines_are_not() {
        let outbox = Outbox::default();
        outbox.put_event(|n| format!("event {n}"));
        outbox.put("answer".into());
        outbox.put_event(|n| format!("event {n}"));
        outbox.close();
        outbox.put("late".into());

        assert_eq!(
            outbox.batch().await,
            Ok(b"event 1\nanswer\nevent 2\n".to_vec())
        );
        assert_eq!(outbox.batch().await, Err(End::Closed));
    }

    #[tokio::test]
    async fn a_reader_that_does_not_keep_up_ends_the_connection() {
        let outbox = Outbox::default();
        for _ in 0..=WAITING_MESSAGES {
            outbox.put("x".into());
        }

        assert_eq!(outbox.batch().await, Err(End::Overflow));
        assert!(!outbox.room().await);
    }

    #[tokio::test]
    async fn whoever_waits_for_room_goes_on_when_half_of_it_is_free() {
        let outbox = std::sync::Arc::new(Outbox::default());
        let line = "x".repeat(WAITING_BYTES * 3 / 4);
        outbox.put(line);
        let waiting = tokio::spawn({
            let outbox = std::sync::Arc::clone(&outbox);
            async move { outbox.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());

        outbox.batch().await.unwrap();

        assert!(waiting.await.unwrap());
    }
}
