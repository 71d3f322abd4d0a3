//! One runtime on its own, without an action: a manual call, or a run that goes on after a suspension.
//!
//! It has the session for itself and the same commit boundary as a turn; only its caller hears of it
//! directly, subscribers as ever.
//!
//! Source: seed 000, lines 37-63, 83-86 and 599; covel.md of the fact collection, section 2.6.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;
use turnwire_spec::covel::vocabulary::RuntimeStatus;

use super::agent::millis;
use super::commit::{CommitExecution, CommitOutcome, Completion, commit_execution};
use super::emitter::Emitter;
use super::events::life;
use super::ids::{LogicalTurnId, PluginId, RequestId, RuntimeId, SessionId, TraceId, TurnId};
use super::locks::Control;
use super::model::{ExecutionEnd, ExecutionRow, Origin, Session};
use super::outcome::Terminal;
use super::plugins::RuntimeSpec;
use super::ports::{TurnEvent, TurnSink};
use super::turn::{ExecutionDeps, TurnInput, execute_turn};
use super::{Engine, EngineError};
use crate::store::{Batch, Purpose, Write};

/// Events that are kept of one run, at most.
const EVENTS_KEPT: usize = 1000;

/// The direct events of a run, in the order in which they came. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Events(Arc<Mutex<Vec<TurnEvent>>>);

impl Events {
    /// What has come so far.
    #[must_use]
    pub fn all(&self) -> Vec<TurnEvent> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl TurnSink for Events {
    fn event(&self, event: TurnEvent) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() < EVENTS_KEPT {
            events.push(event);
        }
    }
}

/// One runtime that is to run.
pub(super) struct Alone<'a> {
    pub(super) input: TurnInput,
    pub(super) spec: &'a Arc<RuntimeSpec>,
    /// The row of the execution that it belongs to.
    pub(super) row: ExecutionRow,
}

/// How a run on its own ended.
pub(super) struct AloneEnd {
    /// What it gave, when it is committed; else why not.
    pub(super) result: Result<Value, String>,
    /// Whether it waits for the player now.
    pub(super) suspended: bool,
    /// How long it took.
    pub(super) duration_ms: u64,
}

impl Engine {
    /// Calls a manual runtime of an active plugin, and waits for its commit. Goes on when the caller
    /// does not wait for it.
    ///
    /// # Errors
    ///
    /// [`EngineError::RuntimeNotActive`]; [`EngineError::RuntimeFailed`] when nothing is written;
    /// [`EngineError::SessionNotFound`], [`EngineError::SessionNotActive`], [`EngineError::Busy`],
    /// [`EngineError::ShuttingDown`] or [`EngineError::Store`].
    pub async fn call_runtime(
        &self,
        id: &SessionId,
        plugin: &PluginId,
        runtime: &RuntimeId,
    ) -> Result<Value, EngineError> {
        let (engine, id) = (self.clone(), id.clone());
        let (plugin, runtime) = (plugin.clone(), runtime.clone());
        self.detached(async move { engine.manual(&id, &plugin, &runtime).await })
            .await
    }

    async fn manual(
        &self,
        id: &SessionId,
        plugin: &PluginId,
        runtime: &RuntimeId,
    ) -> Result<Value, EngineError> {
        let spec = self.manual_runtime(&self.active_session(id).await?, plugin, runtime)?;
        let _guard = self.hold(id).await?;
        let session = self.active_session(id).await?;
        let ids = &self.inner.ids;
        let (turn_id, trace_id) = (TurnId::from(ids.id("turn")), TraceId::from(ids.id("tr")));
        let row = ExecutionRow {
            session_id: session.id.clone(),
            turn_id: turn_id.clone(),
            logical_turn_id: LogicalTurnId::from(turn_id.as_str()),
            request_id: RequestId::from(ids.id("call")),
            trace_id: trace_id.clone(),
            origin: Origin::Continuation,
            retry: None,
            input_message_id: None,
            started_at: self.inner.clock.now(),
            end: None,
        };
        let key = session.key();
        let batch = Batch {
            session: key.clone(),
            purpose: Purpose::Start,
            writes: vec![Write::Execution(row.clone())],
        };
        self.inner.store.commit(batch).await?;
        let input = TurnInput {
            session,
            turn_id: turn_id.clone(),
            logical_turn_id: row.logical_turn_id.clone(),
            counts_turn: false,
            player: None,
            prompt: "",
            lore: None,
            model: None,
            resumed: None,
        };
        let emitter = Emitter::of_turn(self.outlets(), key, trace_id, turn_id, None);
        let alone = Alone {
            input,
            spec: &spec,
            row: row.clone(),
        };
        let end = self.run_alone(alone, &emitter).await;
        if let Err(error) = &end.result {
            self.store_failed_call(&emitter, row, error).await;
        }
        let terminal = Terminal {
            runtime_count: 1,
            result_count: 1,
            duration_ms: end.duration_ms,
            committed: end.result.is_ok(),
            error: end.result.as_ref().err().cloned(),
            ..Terminal::default()
        };
        emitter.emit(life::execution_completed(&terminal)).await;
        end.result.map_err(EngineError::RuntimeFailed)
    }

    fn manual_runtime(
        &self,
        session: &Session,
        plugin: &PluginId,
        runtime: &RuntimeId,
    ) -> Result<Arc<RuntimeSpec>, EngineError> {
        let mut plugins = self.inner.registry.active(&session.active_plugins);
        let manual = |spec: &&Arc<RuntimeSpec>| spec.id == *runtime && spec.stage.is_none();
        let plugin = plugins.find(|found| found.manifest().id == *plugin);
        let found = plugin.and_then(|found| found.manifest().runtimes.iter().find(manual));
        let not_active = || EngineError::RuntimeNotActive(runtime.clone());
        found.cloned().ok_or_else(not_active)
    }

    async fn store_failed_call(&self, emitter: &Emitter, row: ExecutionRow, error: &str) {
        let end = ExecutionEnd {
            committed: false,
            error: Some(error.to_owned()),
            abort_reason: None,
            ended_at: self.inner.clock.now(),
        };
        let batch = Batch {
            session: emitter.session().clone(),
            purpose: Purpose::Failure,
            writes: vec![Write::Execution(ExecutionRow {
                end: Some(end),
                ..row
            })],
        };
        if let Err(error) = self.inner.store.commit(batch).await {
            tracing::warn!(%error, "the end of a manual call could not be stored");
        }
    }

    /// Runs one runtime and commits what it gives. The caller holds the session.
    pub(super) async fn run_alone(&self, alone: Alone<'_>, emitter: &Emitter) -> AloneEnd {
        let Alone { input, spec, row } = alone;
        let inner = &self.inner;
        let control = Control::new(
            input.session.id.clone(),
            row.request_id.clone(),
            row.origin,
            input.turn_id.clone(),
            inner.clock.now(),
        );
        let control = Arc::new(control.on_its_own());
        control.enter(input.turn_id.clone());
        let _enlisted = inner.active.enlist(&control);
        let started = tokio::time::Instant::now();
        let tools = self.tools_of(&input.session);
        let deps = ExecutionDeps {
            store: inner.store.as_ref(),
            gateway: inner.gateway.as_ref(),
            emitter,
            ids: inner.ids.as_ref(),
            tools: &tools,
            hooks: self.hooks_of(&input.session),
            cancel: &control.cancel,
            steering: None,
            policy: inner.config.policy,
            engine: Some(self),
        };
        let execution = execute_turn(input, std::slice::from_ref(spec), deps).await;
        let run = execution.result.runtimes.first();
        let (suspended, output, failure) = match run {
            None => (false, Value::Null, None),
            Some(run) => (
                run.status == RuntimeStatus::Suspended,
                run.output.clone(),
                run.failure.clone(),
            ),
        };
        let completion = Completion::Turn {
            turn_id: execution.result.turn_id.clone(),
            duration_ms: execution.result.duration_ms,
        };
        let result = match failure {
            Some(failure) => Err(failure.error),
            None => {
                let commit = CommitExecution {
                    store: inner.store.as_ref(),
                    execution,
                    completion,
                    emitter,
                    cancel: &control.cancel,
                    row,
                    extra_in_tx: Vec::new(),
                    active_plugin_ids: None,
                };
                match commit_execution(commit).await {
                    CommitOutcome::Committed { .. } => Ok(output),
                    CommitOutcome::Failed { error, .. } => Err(error),
                }
            }
        };
        AloneEnd {
            result,
            suspended,
            duration_ms: millis(started.elapsed()),
        }
    }

    /// Runs work to its end whether or not the caller waits for it.
    pub(super) async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, EngineError>> + Send + 'static,
    ) -> Result<T, EngineError> {
        if self.is_closing() {
            return Err(EngineError::ShuttingDown);
        }
        let (told, waits) = oneshot::channel();
        self.spawn(async move {
            // Nobody waits any more when this fails.
            let _ = told.send(work.await);
        });
        waits.await.unwrap_or(Err(EngineError::ShuttingDown))
    }
}
