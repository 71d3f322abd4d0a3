//! One action from its admission to its last event.
//!
//! ```text
//! admitted ──> waits for the session ──> turn ──> [setup done: handoff turn] ──> released ──> end
//!     │               │                                                                      ▲
//!     └── stopped ────┴── busy, refused ─────────────────────────────────────────────────────┘
//! ```
//!
//! The last event is `execution.completed`, or `error.occurred` when the action was refused before
//! a turn began. Neither the loss of the client nor a slow one is noticed here.
//!
//! Source: seed 000, lines 168-187, 214-238, 691-693 and 935-960.

mod cast;
mod input;

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;
use turnwire_spec::covel::payloads::execution::{TurnCompleted, TurnStarted};
use turnwire_spec::covel::shape::Ms;
use turnwire_spec::covel::vocabulary::RejectionCode;
use turnwire_spec::covel::{ActionStream, event};

use super::actions::{Action, ActionRequest};
use super::agent::millis;
use super::cancel::CancelCause;
use super::commit::{CommitExecution, CommitOutcome, Completion, commit_execution};
use super::emitter::Emitter;
use super::events::{Emission, life};
use super::happening::{Happened, Happening};
use super::ids::{LogicalTurnId, SessionKey, TraceId, TurnId};
use super::locks::{Control, Enlisted};
use super::model::{
    DomainEvent, ExecutionEnd, ExecutionRow, Message, Object, Origin, Phase, RetryAction, Role,
    Session, SessionStatus, SetupState,
};
use super::outcome::Terminal;
use super::ports::{TapGuard, TurnEvent, TurnSink};
use super::queue::Queued;
use super::turn::{
    CONTINUE_PROMPT, Execution, ExecutionDeps, OPENING_PROMPT, PlayerInput, TurnInput, execute_turn,
};
use super::{Engine, EngineError};
use crate::store::{Batch, Purpose, SessionPatch, StoreError, Write};

/// What a client reads when the session was not free in time.
const BUSY: &str = "Session is busy, please retry";
/// What a client reads in production when the cause is none of its business.
const INTERNAL: &str = "Internal server error";

/// Why an action that was to take what is queued has nothing to do.
const NOTHING_QUEUED: &str = "nothing is queued";

/// Messages that one turn writes at most, one for each of its runtimes.
const MESSAGES_OF_A_TURN: usize = 64;

/// One action while it runs.
pub(super) struct Conduct {
    engine: Engine,
    request: ActionRequest,
    session: SessionKey,
    control: Arc<Control>,
    sink: Arc<dyn TurnSink>,
    trace_id: TraceId,
    started: Instant,
}

/// Why an action ends without a turn.
#[derive(Debug, Eq, PartialEq)]
struct Refused {
    message: String,
    code: Option<RejectionCode>,
}

impl Refused {
    fn because(message: impl std::fmt::Display) -> Self {
        Self {
            message: message.to_string(),
            code: None,
        }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::because(error)
    }
}

/// One turn before it runs.
struct TurnPlan {
    turn_id: TurnId,
    origin: Origin,
    setup: bool,
    retry: RetryAction,
    player: Option<PlayerInput>,
    /// The player's message, when this turn has to store it.
    new_message: Option<Message>,
    prompt: &'static str,
    /// The text that this turn takes out of the queue.
    queued: Option<Queued>,
}

impl Conduct {
    pub(super) fn new(
        engine: Engine,
        request: ActionRequest,
        session: SessionKey,
        control: Arc<Control>,
        sink: Arc<dyn TurnSink>,
        trace_id: TraceId,
    ) -> Self {
        Self {
            engine,
            request,
            session,
            control,
            sink,
            trace_id,
            started: Instant::now(),
        }
    }

    /// Whether what is queued is to be taken next. Not after an action that was to take it and could not: trying again
    /// would not help. One that found nothing may have been passed by a text that came a moment later, and counted on it.
    pub(super) async fn run(self, enlisted: Enlisted) -> bool {
        let end = self.conduct().await;
        // From here on the session is free, and the status is that of the stored row.
        drop(enlisted);
        let found_nothing = end
            .as_ref()
            .is_err_and(|refused| refused.message == NOTHING_QUEUED);
        let goes_on = end.is_ok() || found_nothing || self.request.action != Action::Drain;
        let last = match end {
            Ok(terminal) => life::execution_completed(&terminal),
            Err(refused) => self.refusal(&refused),
        };
        self.emitter(self.control.turn_id()).emit(last).await;
        goes_on
    }

    fn refusal(&self, refused: &Refused) -> Emission {
        let internal = refused.code.is_none() && self.engine.inner.config.production;
        let message = if internal { INTERNAL } else { &refused.message };
        if internal {
            tracing::warn!(session = %self.session.id, error = refused.message, "an action was refused");
        }
        life::error_occurred(message, refused.code.map(RejectionCode::name))
    }

    async fn conduct(&self) -> Result<Terminal, Refused> {
        let inner = &self.engine.inner;
        let guard = tokio::select! {
            biased;
            cause = self.control.cancel.cancelled() => return Ok(self.stopped(cause)),
            guard = inner.locks.lock(&self.session.id, inner.config.lock_within) => guard,
        };
        let busy = || Refused {
            message: BUSY.to_owned(),
            code: Some(RejectionCode::SessionBusy),
        };
        let _guard = guard.ok_or_else(busy)?;
        let session = self.recheck().await?;
        let plan = self.plan(&session).await?;
        let _tap = self.forward();
        self.turns(session, plan).await
    }

    /// The session as it is now that it is ours.
    async fn recheck(&self) -> Result<Session, Refused> {
        let session = self.engine.inner.store.session(&self.session.id).await?;
        match session {
            None => Err(Refused::because(EngineError::SessionNotFound(
                self.session.id.clone(),
            ))),
            Some(session) if session.incarnation != self.session.incarnation => Err(
                Refused::because(EngineError::IncarnationChanged(session.id)),
            ),
            Some(session) if session.status != SessionStatus::Active => {
                Err(Refused::because(EngineError::SessionNotActive(session.id)))
            }
            Some(session) => Ok(session),
        }
    }

    /// The first turn of the action.
    async fn plan(&self, session: &Session) -> Result<TurnPlan, Refused> {
        self.refuse_interactions()?;
        let origin = self
            .recovered_origin()
            .await?
            .unwrap_or(self.request.action.origin());
        let queued = self.queued().await?;
        let (player, new_message) = match &queued {
            Some(queued) => self.queued_input(session, queued),
            None => self.player_input(session).await?,
        };
        Ok(TurnPlan {
            queued,
            turn_id: self.control.turn_id(),
            origin,
            setup: session.phase == Phase::Setup,
            retry: self
                .request
                .action
                .description(player.as_ref().map(|player| &player.message_id)),
            player,
            new_message,
            prompt: match self.request.action {
                Action::RetryTurn => CONTINUE_PROMPT,
                Action::StartSession { .. } | Action::Submit { .. } | Action::Drain => {
                    OPENING_PROMPT
                }
            },
        })
    }

    /// Forwards flagged events of the session to the action stream while the session is ours.
    fn forward(&self) -> TapGuard {
        let (sink, control) = (Arc::clone(&self.sink), Arc::clone(&self.control));
        let trace_id = self.trace_id.clone();
        let tap = move |happened: &DomainEvent| {
            let row = event(happened.kind);
            if row.is_some_and(|meta| meta.action_stream == ActionStream::Forwarded) {
                sink.event(TurnEvent {
                    kind: happened.kind,
                    turn_id: happened
                        .turn_id
                        .clone()
                        .unwrap_or_else(|| control.turn_id()),
                    trace_id: trace_id.clone(),
                    payload: happened.payload.clone(),
                    timestamp: happened.timestamp,
                    forwarded: true,
                });
            }
        };
        self.engine
            .inner
            .publisher
            .tap(&self.session, Arc::new(tap))
    }

    /// The turn, and the handoff turn when the first one completed the setup.
    async fn turns(&self, session: Session, plan: TurnPlan) -> Result<Terminal, Refused> {
        let was_setup = plan.setup;
        let first = self.turn(&session, plan).await?;
        if !was_setup || !first.committed {
            return Ok(first);
        }
        let session = match self.recheck().await {
            Ok(session) if session.phase == Phase::Playing => session,
            // Some setup is still pending, or there is no session any more to hand over to.
            _ => return Ok(first),
        };
        let turn_id = TurnId::from(self.engine.inner.ids.id("turn"));
        self.control.enter(turn_id.clone());
        if let Some(cause) = self.control.cancel.cause() {
            return Ok(Terminal {
                resync: first.resync,
                ..self.stopped(cause)
            });
        }
        let handoff = TurnPlan {
            turn_id,
            origin: Origin::Continuation,
            setup: false,
            retry: RetryAction {
                kind: Action::RetryTurn.name().to_owned(),
                payload: Object::new(),
            },
            player: None,
            new_message: None,
            prompt: OPENING_PROMPT,
            queued: None,
        };
        let second = self.turn(&session, handoff).await;
        // The stream has begun to tell of a turn, so it ends with the one terminal event.
        let second = second.unwrap_or_else(|refused| Terminal {
            duration_ms: millis(self.started.elapsed()),
            error: Some(refused.message),
            ..Terminal::default()
        });
        Ok(Terminal {
            resync: first.resync || second.resync,
            ..second
        })
    }

    async fn turn(&self, session: &Session, plan: TurnPlan) -> Result<Terminal, Refused> {
        self.control.enter(plan.turn_id.clone());
        let runtimes = self.runtimes(session, plan.setup);
        let row = self.start(session, &plan, runtimes.len()).await?;
        let emitter = self.emitter(plan.turn_id.clone());
        let said = plan.player.as_ref().map(|player| player.text.as_str());
        emitter.tell_fact(Happening::turn_started(emitter.session(), &row, said));
        let input = TurnInput {
            session: session.clone(),
            turn_id: plan.turn_id.clone(),
            logical_turn_id: row.logical_turn_id.clone(),
            counts_turn: plan.origin == Origin::Player && !plan.setup,
            player: plan.player,
            prompt: plan.prompt,
            lore: match &self.request.action {
                Action::StartSession { lore } => lore.clone().filter(|lore| !lore.is_empty()),
                Action::Submit { .. } | Action::RetryTurn | Action::Drain => None,
            },
            model: self.request.model.clone(),
            resumed: None,
        };
        let inner = &self.engine.inner;
        let deps = ExecutionDeps {
            store: inner.store.as_ref(),
            gateway: inner.gateway.as_ref(),
            emitter: &emitter,
            ids: inner.ids.as_ref(),
            tools: &self.engine.tools_of(session),
            hooks: self.engine.hooks_of(session),
            cancel: &self.control.cancel,
            steering: Some(&self.control.steering),
            policy: inner.config.policy,
            engine: Some(&self.engine),
        };
        let execution = execute_turn(input, &runtimes, deps).await;
        let extra_in_tx = if plan.setup {
            setup_progress(session, &execution, inner.clock.now())
        } else {
            Vec::new()
        };
        Ok(self
            .settle(session, execution, extra_in_tx, row, &emitter)
            .await)
    }

    /// Stores the start of the execution with the player's input, before anything runs.
    async fn start(
        &self,
        session: &Session,
        plan: &TurnPlan,
        runtimes: usize,
    ) -> Result<ExecutionRow, Refused> {
        let row = ExecutionRow {
            session_id: session.id.clone(),
            turn_id: plan.turn_id.clone(),
            logical_turn_id: LogicalTurnId::from(plan.turn_id.as_str()),
            request_id: self.request.request_id.clone(),
            trace_id: self.trace_id.clone(),
            origin: plan.origin,
            retry: Some(plan.retry.clone()),
            input_message_id: plan.player.as_ref().map(|player| player.message_id.clone()),
            started_at: self.engine.inner.clock.now(),
            end: None,
        };
        let mut writes = vec![Write::Execution(row.clone())];
        writes.extend(plan.new_message.clone().map(Write::InsertMessage));
        let taken = plan.queued.as_ref();
        writes.extend(
            taken
                .into_iter()
                .flat_map(|queued| self.engine.take(queued)),
        );
        let batch = Batch {
            session: session.key(),
            purpose: Purpose::Start,
            writes,
        };
        self.engine.inner.store.commit(batch).await?;
        if let Some(queued) = taken {
            let text = Some(queued.text.clone());
            self.emitter(plan.turn_id.clone())
                .tell(Happened::QueueTaken { text });
        }
        let started = TurnStarted {
            runtime_count: Some(runtimes as u64),
            request_id: Some(self.request.request_id.to_string()),
            origin: Some(plan.origin.name().to_owned()),
            recovery_action: Some(plan.retry.to_object()),
        };
        self.emitter(plan.turn_id.clone()).trace_row(&started).await;
        Ok(row)
    }

    /// Commits the execution, or stores that it failed.
    async fn settle(
        &self,
        session: &Session,
        execution: Execution,
        extra_in_tx: Vec<Write>,
        row: ExecutionRow,
        emitter: &Emitter,
    ) -> Terminal {
        let inner = &self.engine.inner;
        let (runtime_count, result_count) = (
            execution.result.runtime_count,
            execution.result.runtimes.len(),
        );
        for run in &execution.result.runtimes {
            if let Some(failure) = &run.failure {
                emitter.tell(Happened::RuntimeFailed {
                    error: failure.error.clone(),
                    kind: failure.kind,
                    stop: run.stop.as_ref().map(|stop| stop.reason),
                });
            }
        }
        let completion = Completion::Turn {
            turn_id: execution.result.turn_id.clone(),
            duration_ms: execution.result.duration_ms,
        };
        let outcome = commit_execution(CommitExecution {
            store: inner.store.as_ref(),
            execution,
            completion,
            emitter,
            cancel: &self.control.cancel,
            row: row.clone(),
            extra_in_tx,
            active_plugin_ids: None,
        })
        .await;
        if outcome.is_committed() {
            self.engine.capture_commit(session, emitter).await;
        }
        let terminal = Terminal {
            runtime_count,
            result_count,
            ..self.terminal(outcome)
        };
        if !terminal.committed {
            self.store_failure(row.clone(), &terminal).await;
        }
        self.tell_end(row, &terminal, emitter).await;
        let completed = TurnCompleted {
            duration_ms: Some(Ms(terminal.duration_ms)),
            result_count: Some(terminal.result_count as u64),
            committed: Some(terminal.committed),
            abort_reason: terminal.abort_reason.clone(),
        };
        emitter.trace_row(&completed).await;
        terminal
    }

    fn terminal(&self, outcome: CommitOutcome) -> Terminal {
        let duration_ms = millis(self.started.elapsed());
        match outcome {
            CommitOutcome::Committed { fan_out } => Terminal {
                duration_ms,
                committed: true,
                resync: fan_out.needs_resync(),
                ..Terminal::default()
            },
            CommitOutcome::Failed {
                error,
                abort_reason,
            } => Terminal {
                duration_ms,
                error: Some(error),
                abort_reason,
                ..Terminal::default()
            },
        }
    }

    /// Tells what the turn wrote and how it ended, from what is stored.
    async fn tell_end(&self, row: ExecutionRow, terminal: &Terminal, emitter: &Emitter) {
        self.control.tell_end();
        let inner = &self.engine.inner;
        if !inner.publisher.is_watched(&self.session) {
            return;
        }
        let (store, id) = (&inner.store, &self.session.id);
        if terminal.committed {
            let last = store.messages_before(id, None, MESSAGES_OF_A_TURN).await;
            let ours = |message: &&Message| {
                message.role == Role::Assistant
                    && message.block.is_none()
                    && message.turn_id.as_ref() == Some(&row.turn_id)
            };
            for message in last.unwrap_or_default().rows.iter().filter(ours) {
                let told = Happening::message_completed(&self.session, message);
                told.into_iter().for_each(|told| emitter.tell_fact(told));
            }
        }
        let stored = store.execution(id, &row.turn_id).await.ok().flatten();
        let stored = stored.filter(|row| row.end.is_some());
        let row = stored.unwrap_or_else(|| ExecutionRow {
            end: Some(self.end_of(terminal)),
            ..row
        });
        let ended = Happening::turn_ended(&self.session, &row);
        ended.into_iter().for_each(|ended| emitter.tell_fact(ended));
    }

    fn end_of(&self, terminal: &Terminal) -> ExecutionEnd {
        ExecutionEnd {
            committed: terminal.committed,
            error: terminal.error.clone(),
            abort_reason: terminal.abort_reason.clone(),
            ended_at: self.engine.inner.clock.now(),
        }
    }

    async fn store_failure(&self, row: ExecutionRow, terminal: &Terminal) {
        let writes = vec![Write::Execution(ExecutionRow {
            end: Some(self.end_of(terminal)),
            ..row
        })];
        let batch = Batch {
            session: self.session.clone(),
            purpose: Purpose::Failure,
            writes,
        };
        if let Err(error) = self.engine.inner.store.commit(batch).await {
            tracing::warn!(session = %self.session.id, %error, "the end of an execution could not be stored");
        }
    }

    /// The end of an action that was stopped before its turn began.
    fn stopped(&self, cause: CancelCause) -> Terminal {
        Terminal {
            duration_ms: millis(self.started.elapsed()),
            error: Some(cause.message().to_owned()),
            abort_reason: Some(cause.abort_reason().to_owned()),
            ..Terminal::default()
        }
    }

    fn emitter(&self, turn_id: TurnId) -> Emitter {
        let sink = Some(Arc::clone(&self.sink));
        Emitter::of_turn(
            self.engine.outlets(),
            self.session.clone(),
            self.trace_id.clone(),
            turn_id,
            sink,
        )
    }
}

/// The setup runtimes that this execution completes, as writes for its commit.
fn setup_progress(session: &Session, execution: &Execution, now: Timestamp) -> Vec<Write> {
    let mut setups = session.setup_runtimes.clone();
    for run in &execution.commit.runs {
        if let Some(setup) = setups.get_mut(&run.run.runtime_id) {
            setup.state = SetupState::Done;
            setup.attempts += 1;
        }
    }
    let all_done = setups.values().all(|setup| setup.state == SetupState::Done);
    vec![Write::PatchSession(SessionPatch {
        phase: all_done.then_some(Phase::Playing),
        setup_runtimes: Some(setups),
        ..SessionPatch::at(now)
    })]
}
