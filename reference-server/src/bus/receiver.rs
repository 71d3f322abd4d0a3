//! The receiving side of the transport between processes: brings frames back into order, and finds
//! out when some are really missing.
//!
//! A [`Receiver`] holds one state for each pair of origin and session, that of the origin's current
//! stream. Frames of a stream are numbered from 1. A frame that comes too early is parked until the
//! ones before it come; when they do not, the hole is given up: a [`Output::Reset`] stands exactly
//! between the events before the hole and those after it, so that the replay buffer never joins the
//! two.
//!
//! ```text
//!   frame is next            -> deliver it, and what is parked right behind it
//!   frame is older           -> ignore it, it was delivered
//!   frame is further on      -> park it; the hole is given up after the wait, or when too many wait
//!   frame of another stream  -> give up all holes of the old stream, then begin the new one at 1
//!   no room for a new state  -> the longest idle state without parked frames goes silently, else
//!                               the longest idle one goes after all its holes are given up
//! ```
//!
//! It does no I/O and reads no clock: the caller brings frames and times, and does what the outputs
//! say, in their order.
//!
//! Source: seed 000, lines 706, 715-716 and 766-773.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

/// The sizes of a [`Receiver`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReceiverLimits {
    /// States, each of one origin and session; at least 1.
    pub states: usize,
    /// Frames of one stream that wait for an earlier one.
    pub parked: usize,
    /// How long a hole may stay before it is given up, after scaling.
    pub wait: Duration,
}

/// One frame, as it came from another process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Incoming<K, E> {
    /// The sending process.
    pub origin: String,
    /// The generation of the sender, never empty.
    pub stream: String,
    /// The session that the event belongs to.
    pub session: K,
    /// Number of the frame in its stream, from 1.
    pub seq: u64,
    /// What it brings.
    pub event: E,
}

/// What the process has to do, in this order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output<K, E> {
    /// Give this event to the session's replay state and subscribers.
    Deliver {
        /// The session.
        session: K,
        /// The event.
        event: E,
    },
    /// Events of this session are lost: empty its replay state, give it a new epoch, and reset its
    /// subscribers with the reason `transport-gap`.
    Reset {
        /// The session.
        session: K,
    },
}

type Outputs<K, E> = Vec<Output<K, E>>;

/// The states of all streams that were heard of lately.
pub struct Receiver<K, E> {
    limits: ReceiverLimits,
    states: HashMap<(String, K), State<E>>,
    /// States without parked frames, by the tick of their last frame.
    calm: BTreeMap<u64, (String, K)>,
    /// States with parked frames, by the tick of their last frame.
    waiting: BTreeMap<u64, (String, K)>,
    tick: u64,
}

struct State<E> {
    stream: String,
    /// Number of the frame that is to be delivered next, from 1.
    next: u64,
    /// Frames beyond `next`, by number.
    parked: BTreeMap<u64, E>,
    /// When the hole before the first parked frame was found.
    hole_since: Duration,
    heard_tick: u64,
}

impl<E> State<E> {
    fn new(stream: String) -> Self {
        Self {
            stream,
            next: 1,
            parked: BTreeMap::new(),
            hole_since: Duration::ZERO,
            heard_tick: 0,
        }
    }

    /// Takes a frame in; it may have been there before.
    fn park(&mut self, seq: u64, event: E, now: Duration) {
        if seq < self.next {
            return;
        }
        if self.parked.is_empty() {
            self.hole_since = now;
        }
        self.parked.entry(seq).or_insert(event);
    }

    /// Delivers the parked frames that stand without a hole after the last delivered one.
    fn deliver<K: Clone>(&mut self, session: &K, now: Duration, out: &mut Outputs<K, E>) {
        let before = self.next;
        while let Some(event) = self.parked.remove(&self.next) {
            self.next += 1;
            out.push(Output::Deliver {
                session: session.clone(),
                event,
            });
        }
        if self.next != before {
            self.hole_since = now;
        }
    }

    /// Gives up the hole before the first parked frame, and delivers up to the next one.
    fn give_up_one<K: Clone>(&mut self, session: &K, now: Duration, out: &mut Outputs<K, E>) {
        if let Some((first, _)) = self.parked.first_key_value() {
            self.next = *first;
            out.push(Output::Reset {
                session: session.clone(),
            });
            self.deliver(session, now, out);
        }
    }

    /// Gives up every hole, so that nothing is parked any more.
    fn give_up_all<K: Clone>(&mut self, session: &K, now: Duration, out: &mut Outputs<K, E>) {
        while !self.parked.is_empty() {
            self.give_up_one(session, now, out);
        }
    }
}

impl<K: Clone + Eq + Hash, E> Receiver<K, E> {
    /// A receiver that has heard nothing yet.
    #[must_use]
    pub fn new(limits: ReceiverLimits) -> Self {
        Self {
            limits,
            states: HashMap::new(),
            calm: BTreeMap::new(),
            waiting: BTreeMap::new(),
            tick: 0,
        }
    }

    /// Takes one frame in.
    pub fn receive(&mut self, frame: Incoming<K, E>, now: Duration) -> Outputs<K, E> {
        let mut out = Vec::new();
        let Incoming {
            origin,
            stream,
            session,
            seq,
            event,
        } = frame;
        let key = (origin, session);
        let mut state = match self.remove(&key) {
            Some(state) if state.stream == stream => state,
            Some(mut old) => {
                old.give_up_all(&key.1, now, &mut out);
                State::new(stream)
            }
            None => {
                self.make_room(now, &mut out);
                State::new(stream)
            }
        };
        state.park(seq, event, now);
        state.deliver(&key.1, now, &mut out);
        if state.parked.len() > self.limits.parked {
            state.give_up_one(&key.1, now, &mut out);
        }
        self.tick += 1;
        state.heard_tick = self.tick;
        self.insert(key, state);
        out
    }

    /// Gives up the holes whose wait is over at `now`.
    pub fn expire(&mut self, now: Duration) -> Outputs<K, E> {
        let mut out = Vec::new();
        let due: Vec<_> = self
            .waiting
            .values()
            .filter(|key| self.deadline(key).is_some_and(|deadline| deadline <= now))
            .cloned()
            .collect();
        for key in due {
            if let Some(mut state) = self.remove(&key) {
                state.give_up_one(&key.1, now, &mut out);
                self.insert(key, state);
            }
        }
        out
    }

    /// When [`expire`](Self::expire) has something to do next, if nothing comes before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        self.waiting
            .values()
            .filter_map(|key| self.deadline(key))
            .min()
    }

    /// Number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there is no state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The stream that counts as current for this origin and session.
    #[must_use]
    pub fn current_stream(&self, origin: &str, session: &K) -> Option<&str> {
        let state = self.states.get(&(origin.to_owned(), session.clone()))?;
        Some(&state.stream)
    }

    fn deadline(&self, key: &(String, K)) -> Option<Duration> {
        self.states
            .get(key)
            .map(|state| state.hole_since + self.limits.wait)
    }

    /// Evicts one state when there is no room for one more.
    fn make_room(&mut self, now: Duration, out: &mut Outputs<K, E>) {
        if self.states.len() < self.limits.states {
            return;
        }
        let longest_idle = self
            .calm
            .first_key_value()
            .or(self.waiting.first_key_value());
        let Some(key) = longest_idle.map(|(_, key)| key.clone()) else {
            return;
        };
        if let Some(mut state) = self.remove(&key) {
            state.give_up_all(&key.1, now, out);
        }
    }

    fn remove(&mut self, key: &(String, K)) -> Option<State<E>> {
        let state = self.states.remove(key)?;
        self.calm.remove(&state.heard_tick);
        self.waiting.remove(&state.heard_tick);
        Some(state)
    }

    fn insert(&mut self, key: (String, K), state: State<E>) {
        let order = if state.parked.is_empty() {
            &mut self.calm
        } else {
            &mut self.waiting
        };
        order.insert(state.heard_tick, key.clone());
        self.states.insert(key, state);
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
