//! What a connection listens to: each session is rebuilt from its facts, then followed.
//!
//! ```text
//!   watch the bus ──> read the facts ──> send them ──> send what came meanwhile ──> follow
//!   (live events wait)                                 (without what was among the facts)
//! ```
//!
//! Facts have the same id whether they are told live or again, so that the seam loses nothing and repeats
//! nothing: a live fact that was among the rebuilt ones is dropped, whenever it comes. What passes before such a
//! fact is dropped with it, because the fact came after it.
//!
//! Lock order: the bus, then a feed, then the outbox. A [`Watching`] is never dropped under any of them.
//!
//! Source: seed 002, lines 13-14, 16 and 18.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnwire_spec::session_update::limits::{STAGED_EVENTS, SUBSCRIPTIONS};
use turnwire_spec::session_update::methods::Subscribed;

use super::SessionUpdate;
use super::errors::Refusal;
use super::outbox::Outbox;
use super::translate::{Update, task};
use crate::bus::Watching;
use crate::engine::happening::Happening;
use crate::engine::ids::{SessionId, SessionKey};

/// The subscriptions of one connection.
#[derive(Default)]
pub(super) struct Subscriptions {
    feeds: tokio::sync::Mutex<BTreeMap<SessionId, Subscription>>,
}

struct Subscription {
    session: SessionKey,
    _watching: Watching,
}

impl Subscriptions {
    /// Subscribes to a session that was just made: there is nothing to rebuild.
    ///
    /// # Errors
    ///
    /// When the connection has as many subscriptions as it may.
    pub(super) async fn follow(
        &self,
        face: &SessionUpdate,
        outbox: &Arc<Outbox>,
        session: &SessionKey,
    ) -> Result<(), Refusal> {
        let mut feeds = self.feeds.lock().await;
        room_for(&feeds, &session.id)?;
        let feed = Arc::new(Feed::new(outbox, false));
        feeds.insert(session.id.clone(), subscribe(face, session, feed));
        Ok(())
    }

    /// Rebuilds a session and follows it. A session that is followed already is not rebuilt again.
    ///
    /// # Errors
    ///
    /// When there is no such session, it cannot be read, or the connection has as many subscriptions as it may.
    pub(super) async fn rebuild(
        &self,
        face: &SessionUpdate,
        outbox: &Arc<Outbox>,
        id: &SessionId,
    ) -> Result<Subscribed, Refusal> {
        let session = face.engine.session(id).await?.key();
        let mut feeds = self.feeds.lock().await;
        room_for(&feeds, id)?;
        let known = feeds.get(id).is_some_and(|found| found.session == session);
        let (mut rebuilt, mut tasks) = (0, None);
        if !known {
            let feed = Arc::new(Feed::new(outbox, true));
            let subscription = subscribe(face, &session, Arc::clone(&feed));
            let facts = face.engine.facts(id).await?;
            for happening in facts.happenings() {
                if !outbox.room().await {
                    break;
                }
                rebuilt += u64::from(feed.tell_again(&happening));
            }
            feed.open();
            let open = facts.jobs.iter().filter(|job| !job.status.is_final());
            tasks = Some(open.map(task).collect());
            feeds.insert(id.clone(), subscription);
        }
        Ok(Subscribed {
            rebuilt: Some(rebuilt),
            tasks,
            ..listed(&feeds)
        })
    }

    /// Ends all of them.
    pub(super) async fn clear(&self) {
        self.feeds.lock().await.clear();
    }

    /// Ends a subscription. That there is none is no error.
    pub(super) async fn leave(&self, id: &SessionId) -> Subscribed {
        let mut feeds = self.feeds.lock().await;
        feeds.remove(id);
        listed(&feeds)
    }
}

fn room_for(feeds: &BTreeMap<SessionId, Subscription>, id: &SessionId) -> Result<(), Refusal> {
    if feeds.len() < SUBSCRIPTIONS || feeds.contains_key(id) {
        return Ok(());
    }
    let message = format!("a connection has {SUBSCRIPTIONS} subscriptions at most");
    Err(Refusal::invalid(message))
}

fn listed(feeds: &BTreeMap<SessionId, Subscription>) -> Subscribed {
    Subscribed {
        ok: true,
        subscribed: feeds.keys().map(ToString::to_string).collect(),
        rebuilt: None,
        tasks: None,
    }
}

fn subscribe(face: &SessionUpdate, session: &SessionKey, feed: Arc<Feed>) -> Subscription {
    let watch = move |happening: &Arc<Happening>| feed.hear(happening);
    Subscription {
        session: session.clone(),
        _watching: face.bus.watch(session, Arc::new(watch)),
    }
}

/// The way of one session's events to the outbox.
struct Feed {
    outbox: Arc<Outbox>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What came while the session is rebuilt; `None` once it is.
    staged: Option<Vec<Arc<Happening>>>,
    /// Facts that were rebuilt and have not come live.
    rebuilt: HashSet<String>,
}

impl Feed {
    fn new(outbox: &Arc<Outbox>, rebuilding: bool) -> Self {
        let state = State {
            staged: rebuilding.then(Vec::new),
            rebuilt: HashSet::new(),
        };
        Self {
            outbox: Arc::clone(outbox),
            state: Mutex::new(state),
        }
    }

    /// Something happened. Called under the bus's lock.
    fn hear(&self, happening: &Arc<Happening>) {
        let mut state = self.state();
        match &mut state.staged {
            Some(staged) if staged.len() >= STAGED_EVENTS => self.outbox.overflow(),
            Some(staged) => staged.push(Arc::clone(happening)),
            None => {
                if !state.rebuilt.remove(&happening.event_id) {
                    self.send(happening);
                }
            }
        }
    }

    /// Sends a fact that is told again. Whether the protocol has an event for it.
    fn tell_again(&self, happening: &Happening) -> bool {
        self.state().rebuilt.insert(happening.event_id.clone());
        self.send(happening)
    }

    /// The facts are told: sends what came meanwhile, and lets what comes pass from now on.
    fn open(&self) {
        let mut state = self.state();
        let staged = state.staged.take().unwrap_or_default();
        let told = |happening: &Arc<Happening>| state.rebuilt.contains(&happening.event_id);
        let last = staged.iter().rposition(told);
        for (place, happening) in staged.iter().enumerate() {
            let before = last.is_some_and(|last| place < last);
            let was_told = state.rebuilt.remove(&happening.event_id);
            if !was_told && (!before || happening.what.is_fact()) {
                self.send(happening);
            }
        }
    }

    fn send(&self, happening: &Happening) -> bool {
        let Some(update) = Update::of(happening) else {
            return false;
        };
        self.outbox.put_event(|sequence| update.line(sequence));
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
