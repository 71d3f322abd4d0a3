//! One listener of the bus: a bounded mailbox, and the subscription that it becomes.
//!
//! ```text
//!   listen --> Listener --attach--> Subscription: replay or reset, then next() until the end
//!                 |                     |
//!                 |                     +-- Next::Recheck    a frame of another life was dropped
//!                 |                     +-- Next::Reset      events were lost: reset, then close
//!                 |                     +-- Next::End        deleted, overflow or closed
//!                 +-- an Ending: it never becomes one
//! ```
//!
//! Dropping either takes the listener off the bus; dropping a subscription releases its pin too.
//! Reading the session, checking its owner, and writing frames are the face's business.
//!
//! Source: seed 000, lines 717-719.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use turnwire_spec::covel::ResetReason;
use turnwire_spec::covel::envelope::TopicSelection;

use super::hub::{Bus, Emitted, Opening, selects};
use super::replay::{Position, Resume};
use crate::engine::ids::{SessionId, SessionKey};

/// Why a listener hears nothing more.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Ending {
    /// Its session was deleted.
    #[error("the session was deleted")]
    Deleted,
    /// Events were lost while the subscription was not live yet.
    #[error("events of the session were lost")]
    Invalidated,
    /// More events waited for it than may.
    #[error("the listener did not keep up")]
    Overflow,
    /// The bus was closed.
    #[error("the bus was closed")]
    Closed,
}

/// What a live subscription has to do next.
#[derive(Debug)]
pub enum Next {
    /// Send this event.
    Event(Arc<Emitted>),
    /// An event of another life of the session came and was dropped: read the session again, and
    /// close unless it is still the same.
    Recheck,
    /// Events were lost: read the session again; when it is still the same, send `system.reset` with
    /// this; close in any case.
    Reset(ResetReason, Position),
    /// Close.
    End(Ending),
}

pub(super) struct Mailbox {
    capacity: usize,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    /// Which events are meant for it; `None` while the session has not been read.
    audience: Option<(SessionKey, TopicSelection)>,
    events: VecDeque<Arc<Emitted>>,
    has_stray: bool,
    /// What happened to lives of the session before it was known which one is meant.
    voided: Vec<(SessionKey, Ending)>,
    lost: Option<(ResetReason, Position)>,
    end: Option<Ending>,
}

impl Mailbox {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            state: Mutex::new(State {
                audience: None,
                events: VecDeque::new(),
                has_stray: false,
                voided: Vec::new(),
                lost: None,
                end: None,
            }),
            changed: Notify::new(),
        }
    }

    pub(super) fn deliver(&self, emitted: &Arc<Emitted>) {
        let mut state = self.state();
        if state.end.is_some() || state.lost.is_some() {
            return;
        }
        match &state.audience {
            Some((key, _)) if *key != emitted.event.session => state.has_stray = true,
            Some((_, topics)) if !selects(topics, emitted) => return,
            _ if state.events.len() >= self.capacity => {
                state.events.clear();
                state.end = Some(Ending::Overflow);
            }
            _ => state.events.push_back(Arc::clone(emitted)),
        }
        drop(state);
        self.changed.notify_one();
    }

    pub(super) fn invalidate(&self, key: &SessionKey, reason: ResetReason, at: &Position) {
        let mut state = self.state();
        match &state.audience {
            Some((own, _)) if own == key => {
                state.lost.get_or_insert_with(|| (reason, at.clone()));
            }
            Some(_) => return,
            None => self.void(&mut state, key, Ending::Invalidated),
        }
        drop(state);
        self.changed.notify_one();
    }

    pub(super) fn delete(&self, key: &SessionKey) {
        let mut state = self.state();
        match &state.audience {
            Some((own, _)) if own == key => {
                state.events.clear();
                state.end.get_or_insert(Ending::Deleted);
            }
            Some(_) => return,
            None => self.void(&mut state, key, Ending::Deleted),
        }
        drop(state);
        self.changed.notify_one();
    }

    fn void(&self, state: &mut State, key: &SessionKey, why: Ending) {
        if state.voided.len() >= self.capacity {
            state.end.get_or_insert(Ending::Overflow);
        } else {
            state.voided.push((key.clone(), why));
        }
    }

    pub(super) fn end(&self, end: Ending) {
        self.state().end.get_or_insert(end);
        self.changed.notify_one();
    }

    /// Whether the handshake for this life of the session may go on.
    pub(super) fn still_open(&self, key: &SessionKey) -> Result<(), Ending> {
        let state = self.state();
        let voided = state
            .voided
            .iter()
            .find(|(lost, _)| lost == key)
            .map(|(_, why)| *why);
        state.end.or(voided).map_or(Ok(()), Err)
    }

    /// From now on only events of this audience count. Those that came before `position` are in the
    /// cursor of the handshake or in its replay already.
    pub(super) fn attach(&self, key: &SessionKey, topics: &TopicSelection, position: &Position) {
        let mut state = self.state();
        state.events.retain(|emitted| {
            emitted.event.session == *key
                && selects(topics, emitted)
                && (emitted.id.epoch != position.epoch || emitted.id.seq > position.latest_seq)
        });
        state.voided = Vec::new();
        state.audience = Some((key.clone(), topics.clone()));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place on the bus.
struct Seat {
    bus: Bus,
    session: SessionId,
    number: u64,
    mailbox: Arc<Mailbox>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.bus.leave(&self.session, self.number);
    }
}

/// Collects the events of a session until it is known which of them are meant.
pub struct Listener {
    seat: Seat,
}

impl Listener {
    pub(super) fn new(bus: Bus, session: SessionId, number: u64, mailbox: Arc<Mailbox>) -> Self {
        Self {
            seat: Seat {
                bus,
                session,
                number,
                mailbox,
            },
        }
    }

    /// Subscribes to this life of the session, now that its owner is known.
    ///
    /// # Errors
    ///
    /// The [`Ending`] that came meanwhile: the connection closes, so that the client validates again.
    pub fn attach(
        self,
        key: SessionKey,
        topics: &TopicSelection,
        cursor: Option<&str>,
    ) -> Result<Subscription, Ending> {
        let Self { seat } = self;
        let Opening { position, resume } = seat.bus.attach(&seat.mailbox, &key, topics, cursor)?;
        Ok(Subscription {
            key,
            position,
            resume,
            seat,
        })
    }
}

/// A subscription of one life of one session. Its replay state is pinned as long as this lives.
pub struct Subscription {
    key: SessionKey,
    position: Position,
    resume: Option<Resume<Arc<Emitted>>>,
    seat: Seat,
}

impl Subscription {
    /// The life of the session that it belongs to.
    #[must_use]
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Where the session stood when this began: `system.connected` carries its cursor, and
    /// `system.reset` its numbers.
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// What the cursor of the client gives; `None` when it sent none, or when it was taken before.
    pub fn take_resume(&mut self) -> Option<Resume<Arc<Emitted>>> {
        self.resume.take()
    }

    /// Waits for what has to be done next.
    ///
    /// An end comes before everything that waits, a recheck before waiting events, and a reset after
    /// them. Nothing is lost when the returned future is dropped.
    pub async fn next(&mut self) -> Next {
        let mailbox = Arc::clone(&self.seat.mailbox);
        loop {
            if let Some(next) = next_of(&mailbox) {
                return next;
            }
            mailbox.changed.notified().await;
        }
    }

    /// Returns when the subscription cannot go on as it is, for a replay or a recheck that would
    /// otherwise run on: deleted, overflown, closed, or invalidated.
    pub async fn interrupted(&self) -> Ending {
        let mailbox = Arc::clone(&self.seat.mailbox);
        loop {
            {
                let state = mailbox.state();
                if let Some(end) = state.end {
                    return end;
                }
                if state.lost.is_some() {
                    return Ending::Invalidated;
                }
            }
            mailbox.changed.notified().await;
        }
    }

    /// Returns when the subscription has ended: deleted, overflown or closed.
    pub async fn ended(&self) -> Ending {
        loop {
            let end = self.interrupted().await;
            if end != Ending::Invalidated {
                return end;
            }
            self.seat.mailbox.changed.notified().await;
        }
    }
}

fn next_of(mailbox: &Mailbox) -> Option<Next> {
    let mut state = mailbox.state();
    if let Some(end) = state.end {
        return Some(Next::End(end));
    }
    if std::mem::take(&mut state.has_stray) {
        return Some(Next::Recheck);
    }
    if let Some(emitted) = state.events.pop_front() {
        return Some(Next::Event(emitted));
    }
    state
        .lost
        .take()
        .map(|(reason, position)| Next::Reset(reason, position))
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.seat.bus.unpin(&self.key);
    }
}
