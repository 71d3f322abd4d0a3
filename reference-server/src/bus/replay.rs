//! What a reconnecting subscriber can still be given: the replay state of every session, and the
//! decision between replay and reset.
//!
//! A [`ReplayTable`] holds one state for each key: a ring of the newest replayable events, an
//! opaque epoch, and the last sequence number of that epoch. It does no I/O, reads no clock (the
//! caller brings the time) and draws no randomness (the caller brings the epochs).
//!
//! ```text
//!            publish / pin / position              idle for the TTL, or least recently used
//!   absent ---------------------------> tracked -------------------------------------------> absent
//!             (new epoch, seq 0)        |  ^  |     above the target; only while unpinned
//!                                       |  |  |
//!                                  pin  v  |  |  restart: new epoch, empty ring, seq 0
//!                                     pinned  +---> tracked or pinned, as before
//! ```
//!
//! Diagnostics are events of the session like all others, so they take a sequence number, but no
//! room in the ring: a subscriber that was away does not get them, and their numbers are holes in
//! what it does get. Who may subscribe, and what goes over which socket, is not decided here.
//!
//! Source: seed 000, lines 645, 720-770 and 1408-1413.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use turnwire_spec::covel::ResetReason;
use turnwire_spec::cursor::{Cursor, CursorBuf};

/// The sizes of a [`ReplayTable`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReplayLimits {
    /// Events in the ring of one state; at least 1.
    pub buffer: usize,
    /// States that the cleanup leaves, unless more than that are pinned.
    pub tracked: usize,
    /// How long an unpinned state lives without being used, after scaling.
    pub idle_ttl: Duration,
}

/// Where a session stands at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Position {
    /// Current epoch: opaque, never empty.
    pub epoch: String,
    /// Sequence number of the oldest event in the ring; 0 when the ring is empty.
    pub oldest_seq: u64,
    /// Sequence number of the newest event of this epoch; 0 when there was none.
    pub latest_seq: u64,
    /// Whether an event has left the ring in this epoch. As long as none has, every cursor of the
    /// epoch can be continued, whatever lies before the oldest event.
    pub has_moved_on: bool,
}

impl Position {
    /// The cursor of a subscriber that has everything up to now.
    #[must_use]
    pub fn cursor(&self) -> CursorBuf {
        CursorBuf::new(self.epoch.clone(), self.latest_seq)
    }

    /// Whether a subscriber with this cursor (`None`: a text that is no cursor) can be continued.
    ///
    /// A cursor one before the oldest event of the ring can: nothing lies between the two.
    ///
    /// # Errors
    ///
    /// [`ResetReason::EpochChange`] for a text that is no cursor and for another epoch, whatever
    /// the sequence number; [`ResetReason::Gap`] when the ring has moved past the cursor, or the
    /// cursor names an event that does not exist yet.
    ///
    /// Source: seed 000, lines 731 and 760-763.
    pub fn bridges(&self, cursor: Option<Cursor<'_>>) -> Result<(), ResetReason> {
        match cursor {
            Some(cursor) if cursor.epoch == self.epoch => {
                let is_from_the_future = cursor.seq > self.latest_seq;
                let was_overtaken = self.has_moved_on && cursor.seq + 1 < self.oldest_seq;
                if is_from_the_future || was_overtaken {
                    Err(ResetReason::Gap)
                } else {
                    Ok(())
                }
            }
            _ => Err(ResetReason::EpochChange),
        }
    }
}

/// What a reconnecting subscriber gets before live events.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Resume<E> {
    /// These events, in ascending order of their sequence numbers; possibly none.
    Replay(Vec<E>),
    /// `system.reset` with this reason, and no event.
    Reset(ResetReason),
}

/// Whether an event may be sent again to a subscriber that was away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retention {
    /// It takes room in the ring.
    Replayable,
    /// It is sent to those who listen now, and is gone then: diagnostics.
    LiveOnly,
}

/// The replay states of all sessions that were used lately.
pub struct ReplayTable<K, E> {
    limits: ReplayLimits,
    epochs: Box<dyn FnMut() -> String + Send>,
    states: HashMap<K, State<E>>,
    /// The unpinned states by the tick of their last use, so the first is the least recently used.
    idle: BTreeMap<u64, K>,
    tick: u64,
}

struct State<E> {
    epoch: String,
    latest_seq: u64,
    ring: VecDeque<(u64, E)>,
    has_moved_on: bool,
    pins: usize,
    used_tick: u64,
    used_at: Duration,
}

impl<E> State<E> {
    fn position(&self) -> Position {
        Position {
            epoch: self.epoch.clone(),
            oldest_seq: self.ring.front().map_or(0, |(seq, _)| *seq),
            latest_seq: self.latest_seq,
            has_moved_on: self.has_moved_on,
        }
    }
}

impl<K: Clone + Eq + Hash, E: Clone> ReplayTable<K, E> {
    /// An empty table; `epochs` gives a text that it never gave before, at each call.
    #[must_use]
    pub fn new(limits: ReplayLimits, epochs: impl FnMut() -> String + Send + 'static) -> Self {
        Self {
            limits,
            epochs: Box::new(epochs),
            states: HashMap::new(),
            idle: BTreeMap::new(),
            tick: 0,
        }
    }

    /// Gives the next sequence number of `key` to the event that `event` makes from it.
    pub fn publish(
        &mut self,
        key: &K,
        now: Duration,
        retention: Retention,
        event: impl FnOnce(CursorBuf) -> E,
    ) -> E {
        let buffer = self.limits.buffer;
        let state = self.touch(key, now);
        state.latest_seq += 1;
        let event = event(CursorBuf::new(state.epoch.clone(), state.latest_seq));
        if retention == Retention::Replayable {
            if state.ring.len() >= buffer {
                state.ring.pop_front();
                state.has_moved_on = true;
            }
            state.ring.push_back((state.latest_seq, event.clone()));
        }
        self.clean_up(key, now);
        event
    }

    /// Where `key` stands now.
    pub fn position(&mut self, key: &K, now: Duration) -> Position {
        let position = self.touch(key, now).position();
        self.clean_up(key, now);
        position
    }

    /// Keeps the state of `key`, and with it its epoch, until as many [`unpin`](Self::unpin)s.
    ///
    /// The pin stands before the cleanup that it may cause, so that this cleanup cannot hit it.
    pub fn pin(&mut self, key: &K, now: Duration) {
        self.touch(key, now).pins += 1;
        if let Some(state) = self.states.get(key) {
            self.idle.remove(&state.used_tick);
        }
        self.clean_up(key, now);
    }

    /// Takes back one [`pin`](Self::pin). Clears nothing by itself: a later use does.
    ///
    /// Nothing happens when the state was [forgotten](Self::forget) meanwhile.
    pub fn unpin(&mut self, key: &K, now: Duration) {
        self.tick += 1;
        let Some(state) = self.states.get_mut(key) else {
            return;
        };
        self.idle.remove(&state.used_tick);
        state.pins = state.pins.saturating_sub(1);
        state.used_tick = self.tick;
        state.used_at = now;
        if state.pins == 0 {
            self.idle.insert(state.used_tick, key.clone());
        }
    }

    /// What a subscriber of `key` with this cursor gets; `None` is a text that is no cursor.
    pub fn resume(&mut self, key: &K, now: Duration, cursor: Option<Cursor<'_>>) -> Resume<E> {
        let state = self.touch(key, now);
        let resume = match state.position().bridges(cursor) {
            Err(reason) => Resume::Reset(reason),
            Ok(()) => {
                let after = cursor.map_or(0, |cursor| cursor.seq);
                let first = state.ring.partition_point(|(seq, _)| *seq <= after);
                Resume::Replay(
                    state
                        .ring
                        .range(first..)
                        .map(|(_, event)| event.clone())
                        .collect(),
                )
            }
        };
        self.clean_up(key, now);
        resume
    }

    /// Empties the state of `key` and gives it a new epoch, because events of it were lost. Pins
    /// stay. Returns where it stands then.
    pub fn restart(&mut self, key: &K, now: Duration) -> Position {
        let epoch = (self.epochs)();
        let state = self.touch(key, now);
        state.epoch = epoch;
        state.latest_seq = 0;
        state.ring.clear();
        state.has_moved_on = false;
        let position = state.position();
        self.clean_up(key, now);
        position
    }

    /// Drops the state of `key`, pinned or not, because its session is gone.
    pub fn forget(&mut self, key: &K) {
        if let Some(state) = self.states.remove(key) {
            self.idle.remove(&state.used_tick);
        }
    }

    /// Number of states, pinned ones included.
    #[must_use]
    pub fn tracked(&self) -> usize {
        self.states.len()
    }

    /// Whether `key` has a state, without using it.
    #[must_use]
    pub fn tracks(&self, key: &K) -> bool {
        self.states.contains_key(key)
    }

    /// The living state of `key`, or a new one, marked as just used.
    fn touch(&mut self, key: &K, now: Duration) -> &mut State<E> {
        self.tick += 1;
        let tick = self.tick;
        let has_expired = |state: &State<E>| {
            state.pins == 0 && now.saturating_sub(state.used_at) > self.limits.idle_ttl
        };
        if self.states.get(key).is_some_and(has_expired) {
            self.forget(key);
        }
        let Self {
            states,
            idle,
            epochs,
            ..
        } = self;
        let state = states.entry(key.clone()).or_insert_with(|| State {
            epoch: epochs(),
            latest_seq: 0,
            ring: VecDeque::new(),
            has_moved_on: false,
            pins: 0,
            used_tick: tick,
            used_at: now,
        });
        idle.remove(&state.used_tick);
        state.used_tick = tick;
        state.used_at = now;
        if state.pins == 0 {
            idle.insert(tick, key.clone());
        }
        state
    }

    /// Clears what has been idle too long, then the least recently used above the target.
    ///
    /// `current` is in use at this moment and stays.
    fn clean_up(&mut self, current: &K, now: Duration) {
        while let Some((_, key)) = self.idle.first_key_value() {
            let is_over = self.states.len() > self.limits.tracked;
            let is_old = self
                .states
                .get(key)
                .is_none_or(|state| now.saturating_sub(state.used_at) > self.limits.idle_ttl);
            if key == current || !(is_over || is_old) {
                break;
            }
            let key = key.clone();
            self.forget(&key);
        }
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
