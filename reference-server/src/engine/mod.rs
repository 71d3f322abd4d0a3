//! The engine: sessions, turns and the commit boundary. It decides; it knows no wire and no face.
//!
//! In reading order:
//!
//! - [`ids`], [`model`]: what it is about; [`ports`]: what it needs from others;
//! - [`sessions`], [`data`], [`view`], [`pages`]: sessions, plugin data, and how they are read;
//! - [`actions`]: an action from its admission to `execution.completed`, with the session lock, the
//!   opening and its handoff;
//! - [`turn`] works out one execution, `agent` is the tool loop in it, [`commit`] makes it count;
//! - [`queue`]: what is said next; [`command`]: slash commands; [`nudge`]: killed tasks;
//! - [`steering`]: what the player interjects;
//! - [`suspensions`]: runs that wait for the player; [`snapshots`]: copies of a session; [`alone`]: one runtime on its own;
//! - [`plugins`], [`hooks`], [`tools`], [`proposals`]: what plugins take part in; `plugin_commands`: their slash commands;
//! - [`story`]: the built-in plugin that tells the story;
//! - [`jobs`]: background jobs; [`recovery`]: what became of an execution;
//! - `events`, `emitter`: what is told, and where to; [`happening`], [`history`]: the same for faces that tell a
//!   turn as it goes, and told again from what is stored;
//! - [`outcome`], [`error`]: how things end.
//!
//! Invariants: nothing is published as committed before its transaction returned. Two executions of
//! one session never overlap. Work inside the session lock never waits for a client.

pub mod actions;
mod agent;
pub mod alone;
pub mod cancel;
pub mod command;
pub mod commit;
mod conduct;
pub mod data;
mod emitter;
pub mod error;
mod events;
pub mod happening;
pub mod history;
pub mod hooks;
pub mod ids;
pub mod jobs;
mod locks;
pub mod model;
pub mod nudge;
pub mod outcome;
pub mod pages;
mod plugin_commands;
pub mod plugins;
pub mod ports;
pub mod proposals;
pub mod queue;
pub mod recovery;
pub mod sessions;
pub mod snapshots;
pub mod steering;
pub mod story;
pub mod suspensions;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod tools;
pub mod turn;
pub mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwire_spec::covel::limits::{self, TimeScale};

pub use self::agent::LoopPolicy;
pub use self::emitter::FanOut;
pub use self::error::EngineError;
pub use self::events::Run;
pub use self::plugin_commands::Given;

use self::cancel::CancelCause;
use self::emitter::{Emitter, Outlets};
use self::ids::SessionKey;
use self::locks::{Active, SessionLocks};
use self::plugins::Registry;
use self::ports::{Clock, Ids, Publisher};
use crate::gateway::Gateway;
use crate::store::Store;

/// What an engine is made of.
pub struct Parts {
    /// Keeps sessions.
    pub store: Arc<dyn Store>,
    /// Reaches subscribers.
    pub publisher: Arc<dyn Publisher>,
    /// Reaches models.
    pub gateway: Arc<dyn Gateway>,
    /// The plugins that sessions may use.
    pub registry: Registry,
    /// Makes ids and secrets.
    pub ids: Arc<dyn Ids>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Periods and switches.
    pub config: EngineConfig,
}

/// The periods and switches of an engine. Periods are real time, after scaling.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// How long an action waits for the session before it is refused as busy.
    pub lock_within: Duration,
    /// How patient tool loops are.
    pub policy: LoopPolicy,
    /// Whether unexpected failures are told to clients in fixed words only.
    pub production: bool,
    /// The locale of a session that asks for none.
    pub locale: String,
    /// Whether it is told that a background task was killed, and whether a session is then driven again.
    pub surface_killed_tasks: bool,
}

impl EngineConfig {
    /// The periods of the protocol under this scale.
    #[must_use]
    pub fn scaled(scale: TimeScale) -> Self {
        Self {
            lock_within: scale.scale_io(limits::SESSION_LOCK_WITHIN),
            policy: LoopPolicy {
                retries: 2,
                backoff: scale.scale(Duration::from_millis(500)),
                max_wait: scale.scale(Duration::from_secs(60)),
                finalizer_min: scale.scale(limits::FINALIZER_MIN_TIME),
                repairs: 1,
            },
            production: false,
            locale: "en".to_owned(),
            surface_killed_tasks: true,
        }
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self::scaled(TimeScale::REAL)
    }
}

/// The engine. Clones share everything.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    publisher: Arc<dyn Publisher>,
    gateway: Arc<dyn Gateway>,
    registry: Registry,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    config: EngineConfig,
    locks: SessionLocks,
    active: Active,
    /// Actions and job workers that are under way.
    tasks: TaskTracker,
    workers: Semaphore,
    closing: AtomicBool,
    /// Orderly: jobs go back to the queue.
    stopping: CancellationToken,
    /// Abrupt: tasks are dropped where they stand.
    killed: CancellationToken,
}

impl Engine {
    /// An engine of these parts. Takes up nothing yet; see [`Engine::resume`].
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let inner = Inner {
            store: parts.store,
            publisher: parts.publisher,
            gateway: parts.gateway,
            registry: parts.registry,
            ids: parts.ids,
            clock: parts.clock,
            config: parts.config,
            locks: SessionLocks::default(),
            active: Active::default(),
            tasks: TaskTracker::new(),
            workers: Semaphore::new(limits::JOB_CONCURRENCY),
            closing: AtomicBool::new(false),
            stopping: CancellationToken::new(),
            killed: CancellationToken::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Takes up what a former process left: queued jobs run, jobs whose worker died are orphaned.
    ///
    /// # Errors
    ///
    /// [`EngineError::Store`] when the store fails.
    pub async fn resume(&self) -> Result<(), EngineError> {
        self.recover_jobs().await
    }

    /// Stops in order: takes no new work, stops running actions (which is no player stop), puts
    /// running jobs back into the queue, and returns when all of that has ended.
    pub async fn shutdown(&self) {
        self.inner.closing.store(true, Ordering::SeqCst);
        self.inner.stopping.cancel();
        self.inner.active.cancel_all(CancelCause::Shutdown);
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// Stops as if the process had died: every task is dropped where it stands, nothing is written.
    pub async fn kill(&self) {
        self.inner.closing.store(true, Ordering::SeqCst);
        self.inner.killed.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// Whether new work is refused.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.inner.closing.load(Ordering::SeqCst)
    }

    /// The store, for faces that read more than the engine offers.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// The bus.
    #[must_use]
    pub fn publisher(&self) -> &Arc<dyn Publisher> {
        &self.inner.publisher
    }

    /// Makes ids.
    #[must_use]
    pub fn ids(&self) -> &Arc<dyn Ids> {
        &self.inner.ids
    }

    /// Tells the time.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// The model that tells the story when nobody asks for another.
    #[must_use]
    pub fn default_model(&self) -> Option<String> {
        self.inner.gateway.target(story::STORY).model
    }

    /// The plugins that sessions may use.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// Runs a task that ends by itself, or is dropped when the engine is killed.
    fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> tokio::task::JoinHandle<()> {
        let killed = self.inner.killed.clone();
        self.inner.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = killed.cancelled() => {}
                () = task => {}
            }
        })
    }

    fn outlets(&self) -> Outlets {
        Outlets {
            store: Arc::clone(&self.inner.store),
            publisher: Arc::clone(&self.inner.publisher),
            ids: Arc::clone(&self.inner.ids),
            clock: Arc::clone(&self.inner.clock),
        }
    }

    fn emitter_outside(&self, session: &SessionKey) -> Emitter {
        Emitter::outside(self.outlets(), session.clone())
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("registry", &self.inner.registry)
            .finish_non_exhaustive()
    }
}
