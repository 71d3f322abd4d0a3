//! What the engine needs from others, as traits: who publishes, who hears a turn, what time it is.
//!
//! The bus implements [`Publisher`], a face implements [`TurnSink`]; the engine knows neither. None
//! of these calls may wait: work inside the session lock only hands events over (seed 000, line 691).
//! The store is a port too; it has its own module, [`crate::store`].

use std::sync::Arc;

use jiff::Timestamp;

use super::happening::Happening;
use super::ids::{SessionKey, TraceId, TurnId};
use super::model::{DomainEvent, Object};

/// How a publish came about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// At once: a diagnostic or lifecycle event. Nothing depends on its success.
    Live,
    /// Held back until the commit that it belongs to had succeeded.
    AfterCommit {
        /// Its place among the publishes of that commit, from 1.
        nth: usize,
        /// How many publishes that commit has.
        of: usize,
    },
}

/// A publish that did not happen. The data that it announces stay saved.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct PublishError(
    /// What went wrong, for `commit.fanout.failed`.
    pub String,
);

/// Why the subscribers of a session must not go on as if nothing had happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Invalidation {
    /// Data were saved, but an event about them could not be published: the replay state gets a new
    /// epoch and every subscriber a `system.reset` with reason `publish-failed`.
    PublishFailed,
    /// The session was deleted: its subscriptions close at once.
    Deleted,
}

/// Takes a copy of each event of one session while it lives; see [`Publisher::tap`].
pub type Tap = Arc<dyn Fn(&DomainEvent) + Send + Sync>;

/// Ends a [`Tap`] when dropped.
pub type TapGuard = Box<dyn Send + Sync>;

/// Brings events to the subscribers of a session. Implemented by the bus.
pub trait Publisher: Send + Sync + 'static {
    /// Publishes one event. Subscribers and taps have it when this returns.
    ///
    /// # Errors
    ///
    /// When the event reached nobody. After a close, publishing is ignored and is no error.
    fn publish(&self, event: &DomainEvent, delivery: Delivery) -> Result<(), PublishError>;

    /// Tells all subscribers of this life of a session that they missed something.
    fn invalidate(&self, session: &SessionKey, why: Invalidation);

    /// The id of the newest event of the session, `<epoch>:<seq>`, with seq 0 before the first.
    fn cursor(&self, session: &SessionKey) -> String;

    /// Calls `tap` within each later `publish` of this session that succeeds, from whichever
    /// request or process, until the guard is dropped. `tap` neither waits nor publishes.
    ///
    /// The engine taps the session of an action while it holds the session lock, to forward
    /// flagged events to the action stream.
    fn tap(&self, session: &SessionKey, tap: Tap) -> TapGuard;

    /// Tells everybody who watches the session, in order. Nothing depends on it, so that it cannot fail; by
    /// default nobody watches.
    fn happened(&self, happening: &Arc<Happening>) {
        let _ = happening;
    }

    /// Whether anybody watches this life of the session now.
    fn is_watched(&self, session: &SessionKey) -> bool {
        let _ = session;
        false
    }
}

/// One event of a running action, in the order in which the action stream shows them.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEvent {
    /// What happened: the name of a row of [`turnwire_spec::covel::EVENTS`].
    pub kind: &'static str,
    /// The turn that is being written.
    pub turn_id: TurnId,
    /// Constant over all events of one action.
    pub trace_id: TraceId,
    /// What there is to know.
    pub payload: Object,
    /// When it happened.
    pub timestamp: Timestamp,
    /// Whether it came over the bus instead of from the turn itself.
    pub forwarded: bool,
}

/// Hears the events of one action. Implemented by the action stream of a face.
///
/// The engine drops its last reference when the action is over and the session lock is released;
/// the last event is then `execution.completed`, or `error.occurred` for an action that was refused.
pub trait TurnSink: Send + Sync + 'static {
    /// Queues one event. Never waits; a sink that lost its client ignores the event.
    fn event(&self, event: TurnEvent);
}

/// Makes ids and secrets.
pub trait Ids: Send + Sync + 'static {
    /// A new id that nobody had before. `what` names the thing: `turn`, `msg`, `job`, ...
    fn id(&self, what: &'static str) -> String;

    /// 32 bytes that nobody can guess.
    fn secret(&self) -> [u8; 32];
}

/// Tells the time of day. Durations are measured by tokio's clock, which tests can pause.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Random ids (UUID version 4) and secrets of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn id(&self, what: &'static str) -> String {
        format!("{what}-{}", uuid::Uuid::new_v4().simple())
    }

    fn secret(&self) -> [u8; 32] {
        let mut secret = [0; 32];
        for half in secret.chunks_mut(16) {
            half.copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        }
        secret
    }
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
