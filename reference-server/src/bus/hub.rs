//! The bus of one process: numbers each event, keeps it for replay, and hands it to whoever listens.
//!
//! All of that happens in one step under one lock, so a listener that joins is cut exactly between
//! two events: what came before is in its replay, what comes after is in its mailbox.
//!
//! A life of a session (its id and incarnation) has its own replay state, so a session that is made
//! again under the same id starts with another epoch and never replays the events of the former one.
//!
//! Source: seed 000, lines 701-774.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use turnwire_spec::covel::ResetReason;
use turnwire_spec::covel::envelope::TopicSelection;
use turnwire_spec::covel::limits::{self, TimeScale};
use turnwire_spec::cursor::{Cursor, CursorBuf};

use super::listener::{Ending, Listener, Mailbox};
use super::replay::{Position, ReplayLimits, ReplayTable, Resume, Retention};
use crate::engine::happening::Happening;
use crate::engine::ids::{SessionId, SessionKey};
use crate::engine::model::DomainEvent;
use crate::engine::ports::{Delivery, Ids, Invalidation, PublishError, Publisher, Tap, TapGuard};

/// An event with its id. It never changes again, so all who hear of it share one.
#[derive(Debug, PartialEq)]
pub struct Emitted {
    /// Where it stands among the events of its session.
    pub id: CursorBuf,
    /// What happened.
    pub event: DomainEvent,
}

/// The sizes of a [`Bus`].
#[derive(Clone, Copy, Debug)]
pub struct BusLimits {
    /// Replay states.
    pub replay: ReplayLimits,
    /// Events that wait for one listener; one more ends it.
    pub mailbox: usize,
}

impl BusLimits {
    /// The limits of the protocol at this scale.
    #[must_use]
    pub fn at(scale: TimeScale) -> Self {
        Self {
            replay: ReplayLimits {
                buffer: limits::REPLAY_EVENTS,
                tracked: limits::TRACKED_SESSIONS,
                idle_ttl: scale.scale(limits::REPLAY_IDLE),
            },
            // Any bound will do. As many live events as a whole replay may arrive beside it.
            mailbox: limits::REPLAY_EVENTS,
        }
    }
}

/// The bus. Clones are handles to the same bus.
#[derive(Clone)]
pub struct Bus {
    shared: Arc<Shared>,
}

struct Shared {
    limits: BusLimits,
    began: Instant,
    state: Mutex<State>,
}

struct State {
    replay: ReplayTable<SessionKey, Arc<Emitted>>,
    listeners: HashMap<SessionId, Vec<(u64, Arc<Mailbox>)>>,
    taps: HashMap<SessionKey, Vec<(u64, Tap)>>,
    watchers: HashMap<SessionKey, Vec<(u64, Watch)>>,
    /// Those who hear of all sessions.
    everywhere: Vec<Watch>,
    /// Number of the next listener or tap.
    next: u64,
    is_closed: bool,
}

/// Hears of each [`Happening`] of one session. Called under the bus's lock: it neither waits nor calls the bus.
pub type Watch = Arc<dyn Fn(&Arc<Happening>) + Send + Sync>;

/// How a subscription begins.
pub(super) struct Opening {
    pub(super) position: Position,
    pub(super) resume: Option<Resume<Arc<Emitted>>>,
}

impl Bus {
    /// A bus without listeners. `ids` makes the epochs.
    #[must_use]
    pub fn new(limits: BusLimits, ids: Arc<dyn Ids>) -> Self {
        let state = State {
            replay: ReplayTable::new(limits.replay, move || ids.id("epoch")),
            listeners: HashMap::new(),
            taps: HashMap::new(),
            watchers: HashMap::new(),
            everywhere: Vec::new(),
            next: 0,
            is_closed: false,
        };
        let shared = Shared {
            limits,
            began: Instant::now(),
            state: Mutex::new(state),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Starts to collect the events of whichever life of this session, within the bound.
    ///
    /// This touches no replay state, so it may stand before the session is read and its owner
    /// checked. [`Listener::attach`] makes a subscription of it.
    #[must_use]
    pub fn listen(&self, session: &SessionId) -> Listener {
        let mailbox = Arc::new(Mailbox::new(self.shared.limits.mailbox));
        let mut state = self.state();
        if state.is_closed {
            mailbox.end(Ending::Closed);
        }
        let number = state.number();
        state
            .listeners
            .entry(session.clone())
            .or_default()
            .push((number, Arc::clone(&mailbox)));
        drop(state);
        Listener::new(self.clone(), session.clone(), number, mailbox)
    }

    /// Calls `watch` with everything that happens in this life of the session, in order, until the guard is
    /// dropped. All watchers of one session hear the same things in the same order.
    #[must_use]
    pub fn watch(&self, session: &SessionKey, watch: Watch) -> Watching {
        let mut state = self.state();
        let number = state.number();
        state
            .watchers
            .entry(session.clone())
            .or_default()
            .push((number, watch));
        drop(state);
        Watching {
            bus: self.clone(),
            session: session.clone(),
            number,
        }
    }

    /// Calls `watch` with everything that happens in any session, as [`Bus::watch`] does for one, until the bus is
    /// closed.
    pub fn watch_all(&self, watch: Watch) {
        self.state().everywhere.push(watch);
    }

    /// Closes every subscription and ignores every later event. May be called again.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.watchers.clear();
        state.everywhere.clear();
        let listeners = std::mem::take(&mut state.listeners);
        for (_, mailbox) in listeners.into_values().flatten() {
            mailbox.end(Ending::Closed);
        }
    }

    /// Number of listeners, subscriptions included.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.state().listeners.values().map(Vec::len).sum()
    }

    /// Number of replay states.
    #[must_use]
    pub fn tracked(&self) -> usize {
        self.state().replay.tracked()
    }

    /// Whether this life of a session has a replay state.
    #[must_use]
    pub fn tracks(&self, session: &SessionKey) -> bool {
        self.state().replay.tracks(session)
    }

    /// Empties the replay state of a session, gives it a new epoch, and tells its subscribers to
    /// start over, with this reason. Events that they have not taken yet stay before that.
    pub fn reset(&self, session: &SessionKey, reason: ResetReason) {
        let now = self.now();
        let mut state = self.state();
        let position = state.replay.restart(session, now);
        for mailbox in state.mailboxes(&session.id) {
            mailbox.invalidate(session, reason, &position);
        }
    }

    /// Tells everybody who listens to this session that it is gone, and forgets its events.
    fn delete(&self, session: &SessionKey) {
        let mut state = self.state();
        state.replay.forget(session);
        for mailbox in state.mailboxes(&session.id) {
            mailbox.delete(session);
        }
    }

    /// Pins the replay state of `key` and cuts the mailbox at its present position.
    pub(super) fn attach(
        &self,
        mailbox: &Mailbox,
        key: &SessionKey,
        topics: &TopicSelection,
        cursor: Option<&str>,
    ) -> Result<Opening, Ending> {
        let now = self.now();
        let mut state = self.state();
        mailbox.still_open(key)?;
        state.replay.pin(key, now);
        let position = state.replay.position(key, now);
        let resume = cursor
            .map(|text| state.replay.resume(key, now, Cursor::parse(text).ok()))
            .map(|resume| select(resume, topics));
        mailbox.attach(key, topics, &position);
        Ok(Opening { position, resume })
    }

    pub(super) fn unpin(&self, key: &SessionKey) {
        let now = self.now();
        self.state().replay.unpin(key, now);
    }

    pub(super) fn leave(&self, session: &SessionId, number: u64) {
        let mut state = self.state();
        if let Some(listeners) = state.listeners.get_mut(session) {
            listeners.retain(|(other, _)| *other != number);
            if listeners.is_empty() {
                state.listeners.remove(session);
            }
        }
    }

    fn unwatch(&self, session: &SessionKey, number: u64) {
        let mut state = self.state();
        if let Some(watchers) = state.watchers.get_mut(session) {
            watchers.retain(|(other, _)| *other != number);
            if watchers.is_empty() {
                state.watchers.remove(session);
            }
        }
    }

    fn untap(&self, session: &SessionKey, number: u64) {
        let mut state = self.state();
        if let Some(taps) = state.taps.get_mut(session) {
            taps.retain(|(other, _)| *other != number);
            if taps.is_empty() {
                state.taps.remove(session);
            }
        }
    }

    fn now(&self) -> std::time::Duration {
        self.shared.began.elapsed()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn mailboxes(&self, session: &SessionId) -> impl Iterator<Item = &Arc<Mailbox>> {
        self.listeners
            .get(session)
            .into_iter()
            .flatten()
            .map(|(_, mailbox)| mailbox)
    }
}

/// Leaves out the events of other topics.
fn select(resume: Resume<Arc<Emitted>>, topics: &TopicSelection) -> Resume<Arc<Emitted>> {
    match resume {
        Resume::Replay(mut events) => {
            events.retain(|emitted| selects(topics, emitted));
            Resume::Replay(events)
        }
        reset @ Resume::Reset(_) => reset,
    }
}

/// Whether an event is of one of these topics.
pub(super) fn selects(topics: &TopicSelection, emitted: &Emitted) -> bool {
    match topics {
        TopicSelection::All(_) => true,
        TopicSelection::Some(topics) => topics.contains(&emitted.event.topic),
    }
}

impl Publisher for Bus {
    fn publish(&self, event: &DomainEvent, _: Delivery) -> Result<(), PublishError> {
        let retention = if event.topic.is_diagnostic() {
            Retention::LiveOnly
        } else {
            Retention::Replayable
        };
        let now = self.now();
        let mut state = self.state();
        if state.is_closed {
            return Ok(());
        }
        let emitted = state.replay.publish(&event.session, now, retention, |id| {
            Arc::new(Emitted {
                id,
                event: event.clone(),
            })
        });
        for mailbox in state.mailboxes(&event.session.id) {
            mailbox.deliver(&emitted);
        }
        for (_, tap) in state.taps.get(&event.session).into_iter().flatten() {
            tap(event);
        }
        Ok(())
    }

    fn invalidate(&self, session: &SessionKey, why: Invalidation) {
        match why {
            Invalidation::PublishFailed => self.reset(session, ResetReason::PublishFailed),
            Invalidation::Deleted => self.delete(session),
        }
    }

    fn happened(&self, happening: &Arc<Happening>) {
        let state = self.state();
        let watchers = state.watchers.get(&happening.session);
        for (_, watch) in watchers.into_iter().flatten() {
            watch(happening);
        }
        state.everywhere.iter().for_each(|watch| watch(happening));
    }

    fn is_watched(&self, session: &SessionKey) -> bool {
        let state = self.state();
        !state.everywhere.is_empty() || state.watchers.contains_key(session)
    }

    fn cursor(&self, session: &SessionKey) -> String {
        let now = self.now();
        self.state()
            .replay
            .position(session, now)
            .cursor()
            .to_string()
    }

    fn tap(&self, session: &SessionKey, tap: Tap) -> TapGuard {
        let mut state = self.state();
        let number = state.number();
        state
            .taps
            .entry(session.clone())
            .or_default()
            .push((number, tap));
        drop(state);
        Box::new(Tapped {
            bus: self.clone(),
            session: session.clone(),
            number,
        })
    }
}

/// A watcher's place on the bus; it leaves when this is dropped.
pub struct Watching {
    bus: Bus,
    session: SessionKey,
    number: u64,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.bus.unwatch(&self.session, self.number);
    }
}

struct Tapped {
    bus: Bus,
    session: SessionKey,
    number: u64,
}

impl Drop for Tapped {
    fn drop(&mut self) {
        self.bus.untap(&self.session, self.number);
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
