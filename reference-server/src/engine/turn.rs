//! One execution of one turn: what its runtimes work out, before anything of it counts.
//!
//! [`execute_turn`] runs the runtimes and gives an [`Execution`]: the result, which may be told to
//! clients, and the commit plan, which stays in the host's hands. It writes nothing to the domain;
//! that is what [`commit_execution`](super::commit::commit_execution) is for.
//!
//! Runtimes run one after the other, by stage. When a required one fails, those after it are
//! skipped; when the turn is stopped, they are not scheduled at all.
//!
//! Source: seed 000, lines 32-62 and 220-232.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use turnwire_spec::covel::vocabulary::{RuntimeStatus, SKIPPED_UPSTREAM_FAILED};

use super::Engine;
use super::actions::PlayerAction;
use super::agent::{self, AgentRun, LoopPolicy, millis};
use super::cancel::{Cancel, CancelCause};
use super::command::{compacted, since_compaction};
use super::emitter::Emitter;
use super::events::{Run, changes, life};
use super::hooks::{self, HookCall, HookEvent, HookScope, Piped};
use super::ids::{LogicalTurnId, MessageId, RunId, SessionKey, TurnId};
use super::model::{Message, Role, Session};
use super::outcome::{Failure, LoopStop};
use super::plugins::{
    AgentSpec, Answered, Function, FunctionCall, FunctionOutput, RuntimeBody, RuntimeSpec, Suspends,
};
use super::ports::Ids;
use super::proposals::PendingProposal;
use super::steering::Steering;
use super::story::STORY;
use super::suspensions::{Resumption, Suspension, SuspensionState};
use super::tools::Tool;
use crate::gateway::{ChatMessage, Gateway};
use crate::store::Store;

/// Messages of the history that a model reads, at most.
const HISTORY_MESSAGES: usize = 80;

/// What the model reads as the user's message when the session opens.
pub const OPENING_PROMPT: &str = "Begin the story.";

/// What the model reads as the user's message when a turn is played again without input.
pub const CONTINUE_PROMPT: &str = "Continue the story.";

/// What one execution is about.
#[derive(Clone, Debug)]
pub struct TurnInput {
    /// The session as of the start of the turn.
    pub session: Session,
    /// This execution.
    pub turn_id: TurnId,
    /// The turn as the player counts it. Given by the host, never derived.
    pub logical_turn_id: LogicalTurnId,
    /// Whether the commit counts a player turn.
    pub counts_turn: bool,
    /// What the player said, when the turn has player input.
    pub player: Option<PlayerInput>,
    /// What the model reads in place of the player's text when there is none.
    pub prompt: &'static str,
    /// Added to the model's instructions.
    pub lore: Option<String>,
    /// Asks for this model instead of the one that the gateway would choose.
    pub model: Option<String>,
    /// The answer to a suspension with which its one runtime goes on.
    pub resumed: Option<Resumption>,
}

/// The player's part of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayerInput {
    /// The message under which it is stored.
    pub message_id: MessageId,
    /// The text.
    pub text: String,
}

/// What an execution works with.
pub struct ExecutionDeps<'a> {
    /// For the history; nothing is written.
    pub store: &'a dyn Store,
    /// Reaches models.
    pub gateway: &'a dyn Gateway,
    /// Tells what happens.
    pub emitter: &'a Emitter,
    /// Makes ids.
    pub ids: &'a dyn Ids,
    /// The tools of agent runtimes.
    pub tools: &'a [Arc<dyn Tool>],
    /// The hooks, with their settings as of now.
    pub hooks: HookScope,
    /// The stop signal.
    pub cancel: &'a Cancel,
    /// What the player interjects while it runs; without it nothing.
    pub steering: Option<&'a Steering>,
    /// How patient tool loops are.
    pub policy: LoopPolicy,
    /// Queues the jobs that tools ask for; without it they cannot.
    pub engine: Option<&'a Engine>,
}

/// What an execution gave: the answer for the client, and the plan for the host.
#[derive(Clone, Debug)]
pub struct Execution {
    /// What happened; may be told to clients.
    pub result: ExecutionResult,
    /// What a commit writes; never leaves the host.
    pub commit: CommitPlan,
}

/// What happened in an execution. Holds no commands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionResult {
    /// The execution.
    pub turn_id: TurnId,
    /// How long it took.
    pub duration_ms: u64,
    /// How many runtimes were to run.
    pub runtime_count: usize,
    /// What each runtime gave, in the order in which they ran.
    pub runtimes: Vec<RuntimeResult>,
}

/// What one runtime gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeResult {
    /// Which run.
    #[serde(flatten)]
    pub run: Run,
    /// How it ended.
    pub status: RuntimeStatus,
    /// How long it took.
    pub duration_ms: u64,
    /// Its output; null when it failed.
    pub output: Value,
    /// How its tool loop ended; only agent runtimes have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<LoopStop>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Everything that a commit needs, recorded during the execution.
///
/// A commit works from this alone: it loads no plugins and reads no settings again.
#[derive(Clone, Debug)]
pub struct CommitPlan {
    /// The life of the session that the execution was decided for.
    pub session: SessionKey,
    /// The execution.
    pub turn_id: TurnId,
    /// The turn as the player counts it.
    pub logical_turn_id: LogicalTurnId,
    /// Whether this commit counts the player turn.
    pub counts_turn: bool,
    /// The stored player message that becomes part of the turn.
    pub input: Option<MessageId>,
    /// What the player interjected, which follows that message.
    pub interjections: Vec<Message>,
    /// What each successful run wants to be written, in the order in which they ran.
    pub runs: Vec<PlannedRun>,
    /// The runs that wait for the player, with what they want to be written then.
    pub suspensions: Vec<Suspension>,
    /// The suspension that this execution answers.
    pub resumes: Option<String>,
    /// The hooks that run at the commit, and their settings.
    pub hooks: HookScope,
    /// Why nothing may be written, when that is so.
    pub refusal: Option<Refusal>,
}

/// What one successful run wants to be written.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// Which run.
    pub run: Run,
    /// The output kind of its runtime.
    pub kind: String,
    /// Whether the commit fails with its writes.
    pub required: bool,
    /// How long it took.
    pub duration_ms: u64,
    /// How its tool loop ended.
    pub stop: Option<LoopStop>,
    /// What it adds to the conversation.
    pub journal: Vec<Message>,
    /// Its commands.
    pub proposals: Vec<PendingProposal>,
    /// Commands beside the story, in groups that can be dropped.
    pub operations: Vec<Vec<PendingProposal>>,
}

/// Why an execution must not be committed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// A `TurnStart` hook vetoed the turn, for this reason.
    Veto(String),
    /// It was stopped while it ran.
    Cancelled(CancelCause),
    /// A required runtime failed, with this error.
    Failed(String),
}

impl Refusal {
    /// The text for people.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Veto(reason) | Self::Failed(reason) => reason.clone(),
            Self::Cancelled(cause) => cause.message().to_owned(),
        }
    }

    /// The `abortReason`, for a turn that somebody stopped.
    #[must_use]
    pub fn abort_reason(&self) -> Option<String> {
        match self {
            Self::Veto(reason) => Some(reason.clone()),
            Self::Cancelled(cause) => Some(cause.abort_reason().to_owned()),
            Self::Failed(_) => None,
        }
    }
}

/// Runs these runtimes, in this order.
///
/// Whatever goes wrong is part of the execution: a failed runtime in its result, and what forbids a
/// commit in its plan.
pub async fn execute_turn(
    input: TurnInput,
    runtimes: &[Arc<RuntimeSpec>],
    deps: ExecutionDeps<'_>,
) -> Execution {
    let started = Instant::now();
    let goes_on = input.resumed.is_some();
    if !goes_on {
        deps.emitter
            .emit(life::execution_started(runtimes.len()))
            .await;
    }
    let mut turn = Turn::new(input, &deps);
    if goes_on || turn.begin().await {
        for spec in runtimes {
            turn.take(spec).await;
        }
    }
    turn.finish(runtimes.len(), millis(started.elapsed()))
}

struct Turn<'a, 'd> {
    input: TurnInput,
    deps: &'a ExecutionDeps<'d>,
    /// What hooks tell the model besides its instructions.
    context: Value,
    /// What the hooks left of the player's text.
    text: Option<String>,
    results: Vec<RuntimeResult>,
    runs: Vec<PlannedRun>,
    suspensions: Vec<Suspension>,
    interjections: Vec<Message>,
    refusal: Option<Refusal>,
}

/// What one run gave, agent or function.
struct RunEnd {
    stop: Option<LoopStop>,
    output: Result<Value, Failure>,
    journal: Vec<Message>,
    proposals: Vec<PendingProposal>,
    operations: Vec<Vec<PendingProposal>>,
    suspends: Option<Suspends>,
    /// What the player interjected while it ran.
    steered: Vec<String>,
}

impl RunEnd {
    fn status(&self) -> RuntimeStatus {
        match (&self.output, &self.suspends) {
            (Err(_), _) => RuntimeStatus::Failed,
            (Ok(_), Some(_)) => RuntimeStatus::Suspended,
            (Ok(_), None) => RuntimeStatus::Success,
        }
    }

    fn failed(failure: Failure) -> Self {
        Self {
            stop: None,
            output: Err(failure),
            journal: Vec::new(),
            proposals: Vec::new(),
            operations: Vec::new(),
            suspends: None,
            steered: Vec::new(),
        }
    }
}

impl<'a, 'd> Turn<'a, 'd> {
    fn new(input: TurnInput, deps: &'a ExecutionDeps<'d>) -> Self {
        let said = input.player.as_ref().map(|player| &player.text);
        let answered = input.resumed.as_ref();
        let text = said.or(answered.map(|answer| &answer.suspension.input));
        let text = text.cloned();
        Self {
            input,
            deps,
            context: Value::Null,
            text,
            results: Vec::new(),
            runs: Vec::new(),
            suspensions: Vec::new(),
            interjections: Vec::new(),
            refusal: None,
        }
    }

    /// Lets the `TurnStart` hooks look at the turn. False when they veto it.
    async fn begin(&mut self) -> bool {
        let target = json!({ "input": self.text, "context": {} });
        let piped = self.pipe(HookEvent::TurnStart, None, &target).await;
        self.refusal = piped.aborted.map(Refusal::Veto);
        if let Some(Value::String(text)) = piped.target.get("input") {
            self.text = Some(text.clone());
        }
        self.context = piped.target.get("context").cloned().unwrap_or_default();
        self.refusal.is_none()
    }

    /// Runs one runtime, unless the turn has ended before it.
    async fn take(&mut self, spec: &Arc<RuntimeSpec>) {
        if let Some(cause) = self.deps.cancel.cause() {
            self.refusal = Some(Refusal::Cancelled(cause));
        }
        match self.refusal {
            None => self.run(spec).await,
            Some(Refusal::Failed(_)) => {
                self.deps
                    .emitter
                    .emit(life::runtime_skipped(spec, SKIPPED_UPSTREAM_FAILED))
                    .await;
            }
            Some(_) => {}
        }
    }

    async fn run(&mut self, spec: &Arc<RuntimeSpec>) {
        let run = Run {
            runtime_id: spec.id.clone(),
            plugin_id: spec.plugin_id.clone(),
            turn_id: self.input.turn_id.clone(),
            run_id: RunId::from(self.deps.ids.id("run")),
            concealed: spec.concealed,
        };
        let started = Instant::now();
        self.deps
            .emitter
            .emit(life::runtime_started(
                &run,
                spec,
                self.input.resumed.is_some(),
            ))
            .await;
        let mut end = self.hooked_run(&run, spec).await;
        if let (Ok(_), Some(cause)) = (&end.output, self.deps.cancel.cause()) {
            end.output = Err(Failure::new(cause.message()));
        }
        let duration_ms = millis(started.elapsed());
        let stop = end.stop.map(|stop| stop.reason);
        let event = match &end.output {
            Ok(_) => life::runtime_completed(&run, end.status(), duration_ms, stop),
            Err(failure) => life::runtime_failed(&run, duration_ms, failure, stop),
        };
        self.deps.emitter.emit(event).await;
        self.settle(run, spec, duration_ms, end);
    }

    /// Files what a run gave: its result always, its writes when it succeeded.
    fn settle(&mut self, run: Run, spec: &RuntimeSpec, duration_ms: u64, end: RunEnd) {
        let status = end.status();
        let (output, failure) = match end.output {
            Ok(output) => (output, None),
            Err(failure) => (Value::Null, Some(failure)),
        };
        if let Some(cause) = self.deps.cancel.cause() {
            self.refusal = Some(Refusal::Cancelled(cause));
        } else if let (Some(failure), true) = (&failure, spec.required) {
            self.refusal = Some(Refusal::Failed(failure.error.clone()));
        }
        if let (RuntimeStatus::Suspended, Some(suspends)) = (status, end.suspends) {
            let waiting = self.suspension(&run, suspends, end.proposals, end.operations);
            self.suspensions.push(waiting);
        } else if status == RuntimeStatus::Success {
            let steered = end.steered.iter();
            let interjections = steered.map(|text| self.interjection(text));
            self.interjections = interjections.collect();
            self.runs.push(PlannedRun {
                run: run.clone(),
                kind: spec.kind.clone(),
                required: spec.required,
                duration_ms,
                stop: end.stop,
                journal: end.journal,
                proposals: end.proposals,
                operations: end.operations,
            });
        }
        self.results.push(RuntimeResult {
            run,
            status,
            duration_ms,
            output,
            stop: end.stop,
            failure,
        });
    }

    /// What is kept of a run that waits for the player.
    fn suspension(
        &self,
        run: &Run,
        suspends: Suspends,
        proposals: Vec<PendingProposal>,
        operations: Vec<Vec<PendingProposal>>,
    ) -> Suspension {
        let registry = self.deps.engine.map(Engine::registry);
        let plugin = registry.and_then(|registry| registry.plugin(&run.plugin_id));
        Suspension {
            id: self.deps.ids.id("suspension"),
            state: SuspensionState::Open,
            session_id: self.input.session.id.clone(),
            turn_id: run.turn_id.clone(),
            logical_turn_id: self.input.logical_turn_id.clone(),
            counts_turn: self.input.counts_turn,
            plugin_id: run.plugin_id.clone(),
            plugin_version: plugin
                .map(|plugin| plugin.manifest().version.clone())
                .unwrap_or_default(),
            runtime_id: run.runtime_id.clone(),
            reason: suspends.reason,
            resume_schema: suspends.resume_schema,
            suspended_at: self.deps.emitter.now(),
            keeps: suspends.keeps,
            input: self.text.clone().unwrap_or_default(),
            proposals,
            operations,
            player_turns: self.input.session.completed_player_turns,
        }
    }

    /// One run between its hooks. `PreRuntime` does not run again when it goes on, and `PostRuntime` not while
    /// it waits.
    async fn hooked_run(&self, run: &Run, spec: &RuntimeSpec) -> RunEnd {
        if self.input.resumed.is_some() {
            let end = self.run_body(run, spec, &Value::Null).await;
            return self.hooked_end(run, end).await;
        }
        let target = json!({ "context": self.context });
        let before = self.pipe(HookEvent::PreRuntime, Some(run), &target).await;
        if let Some(reason) = before.aborted {
            return RunEnd::failed(Failure::new(reason));
        }
        let context = before.target.get("context").cloned().unwrap_or_default();
        let end = self.run_body(run, spec, &context).await;
        self.hooked_end(run, end).await
    }

    async fn run_body(&self, run: &Run, spec: &RuntimeSpec, context: &Value) -> RunEnd {
        match &spec.body {
            RuntimeBody::Agent(agent) => self.run_agent(run, spec, agent, context).await,
            RuntimeBody::Function(function) => self.run_function(run, function.as_ref()).await,
        }
    }

    async fn hooked_end(&self, run: &Run, mut end: RunEnd) -> RunEnd {
        if let (Ok(output), None) = (&end.output, &end.suspends) {
            let after = self
                .pipe(
                    HookEvent::PostRuntime,
                    Some(run),
                    &json!({ "output": output }),
                )
                .await;
            if let Some(reason) = after.aborted {
                end.output = Err(Failure::new(reason));
            }
        }
        end
    }

    async fn run_agent(
        &self,
        run: &Run,
        spec: &RuntimeSpec,
        agent: &AgentSpec,
        context: &Value,
    ) -> RunEnd {
        let conversation = match self.conversation(agent, context).await {
            Ok(conversation) => conversation,
            Err(error) => return RunEnd::failed(Failure::new(error)),
        };
        let work = AgentRun {
            run,
            kind: &spec.kind,
            spec: agent,
            session: &self.input.session,
            emitter: self.deps.emitter,
            gateway: self.deps.gateway,
            ids: self.deps.ids,
            tools: self.deps.tools,
            cancel: self.deps.cancel,
            policy: self.deps.policy,
            model: self.input.model.as_deref(),
            engine: self.deps.engine,
            steering: self.deps.steering.filter(|_| spec.kind == STORY),
        };
        let end = agent::run(work, conversation).await;
        let answer = match end.answer {
            Ok(answer) => answer,
            Err(failure) => {
                return RunEnd {
                    stop: Some(end.stop),
                    ..RunEnd::failed(failure)
                };
            }
        };
        let (answer, segments) = if agent.segmented {
            let (text, segments) = agent::segments::read(&answer);
            (text, Some(Value::Array(segments)))
        } else {
            (answer, None)
        };
        self.deps
            .emitter
            .emit(life::message_completed(run, &answer, end.deltas))
            .await;
        let message = Message {
            segments,
            ..self.message(run, &spec.kind, &answer)
        };
        RunEnd {
            stop: Some(end.stop),
            journal: vec![message],
            output: Ok(json!({ "text": answer })),
            proposals: end.proposals,
            operations: Vec::new(),
            suspends: None,
            steered: end.steered,
        }
    }

    async fn run_function(&self, run: &Run, function: &dyn Function) -> RunEnd {
        let resumed = self.input.resumed.as_ref();
        let call = FunctionCall {
            session: &self.input.session,
            input: self.text.as_deref().unwrap_or_default(),
            resumed: resumed.map(|answer| Answered {
                kept: &answer.suspension.keeps,
                data: &answer.data,
            }),
        };
        let started = Instant::now();
        let emitter = self.deps.emitter;
        emitter.emit(life::function_executing(run)).await;
        let output = tokio::select! {
            biased;
            cause = self.deps.cancel.cancelled() => Err(cause.message().to_owned()),
            output = function.run(call) => output,
        };
        let status = match &output {
            Ok(output) if output.suspends.is_some() => RuntimeStatus::Suspended,
            Ok(_) => RuntimeStatus::Success,
            Err(_) => RuntimeStatus::Failed,
        };
        let duration_ms = millis(started.elapsed());
        emitter
            .emit(life::function_completed(run, duration_ms, status))
            .await;
        match output {
            Err(error) => RunEnd::failed(Failure::new(error)),
            Ok(output) => self.function_end(run, output),
        }
    }

    /// What a function gave, with what it had wanted before it suspended.
    fn function_end(&self, run: &Run, output: FunctionOutput) -> RunEnd {
        let pending = |proposal| PendingProposal {
            id: self.deps.ids.id("proposal"),
            plugin_id: run.plugin_id.clone(),
            runtime_id: run.runtime_id.clone(),
            proposal,
        };
        let former = self.input.resumed.as_ref().map(|answer| &answer.suspension);
        let mut proposals = former
            .map(|held| held.proposals.clone())
            .unwrap_or_default();
        let mut operations = former
            .map(|held| held.operations.clone())
            .unwrap_or_default();
        proposals.extend(output.proposals.into_iter().map(pending));
        let groups = output.operations.into_iter();
        operations.extend(groups.map(|group| group.into_iter().map(pending).collect()));
        RunEnd {
            stop: None,
            output: Ok(output.output),
            journal: Vec::new(),
            proposals,
            operations,
            suspends: output.suspends,
            steered: Vec::new(),
        }
    }

    fn message(&self, run: &Run, kind: &str, content: &str) -> Message {
        Message {
            id: MessageId::from(self.deps.ids.id("msg")),
            session_id: self.input.session.id.clone(),
            role: Role::Assistant,
            content: content.to_owned(),
            turn_id: Some(self.input.turn_id.clone()),
            runtime_id: Some(run.runtime_id.clone()),
            kind: Some(kind.to_owned()),
            block: None,
            actions: None,
            segments: None,
            created_at: self.deps.emitter.now(),
        }
    }

    fn interjection(&self, text: &str) -> Message {
        let said = PlayerAction::Say(text.to_owned());
        Message {
            id: MessageId::from(self.deps.ids.id("msg")),
            session_id: self.input.session.id.clone(),
            role: Role::User,
            content: text.to_owned(),
            turn_id: Some(self.input.turn_id.clone()),
            runtime_id: None,
            kind: None,
            block: None,
            actions: Some(json!([said.to_json()])),
            segments: None,
            created_at: self.deps.emitter.now(),
        }
    }

    /// What the model reads: instructions, committed history, and the player's text last.
    async fn conversation(
        &self,
        agent: &AgentSpec,
        context: &Value,
    ) -> Result<Vec<ChatMessage>, String> {
        let history = self
            .deps
            .store
            .messages_before(&self.input.session.id, None, HISTORY_MESSAGES)
            .await;
        let history = history.map_err(|error| error.to_string())?;
        let text = self.text.as_deref().unwrap_or(self.input.prompt);
        let system = instructions(agent, self.input.lore.as_deref(), context);
        Ok(conversation(system, &history.rows, text))
    }

    async fn pipe(&self, event: HookEvent, run: Option<&Run>, target: &Value) -> Piped {
        let runtime_id = run.map(|run| &run.runtime_id);
        let about = HookCall {
            session_id: &self.input.session.id,
            turn_id: &self.input.turn_id,
            runtime_id,
            target,
            settings: &Value::Null,
        };
        let piped = hooks::run(&self.deps.hooks, event, about).await;
        for report in &piped.reports {
            for emission in changes::hook(event, runtime_id, None, report) {
                self.deps.emitter.emit(emission).await;
            }
        }
        piped
    }

    fn finish(self, runtime_count: usize, duration_ms: u64) -> Execution {
        let cancelled = self.deps.cancel.cause().map(Refusal::Cancelled);
        let result = ExecutionResult {
            turn_id: self.input.turn_id.clone(),
            duration_ms,
            runtime_count,
            runtimes: self.results,
        };
        let commit = CommitPlan {
            session: self.input.session.key(),
            turn_id: self.input.turn_id,
            logical_turn_id: self.input.logical_turn_id,
            counts_turn: self.input.counts_turn,
            input: self.input.player.map(|player| player.message_id),
            interjections: self.interjections,
            runs: self.runs,
            suspensions: self.suspensions,
            resumes: self.input.resumed.map(|answer| answer.suspension.id),
            hooks: self.deps.hooks.clone(),
            refusal: self.refusal.or(cancelled),
        };
        Execution { result, commit }
    }
}

/// What the model is told first.
fn instructions(agent: &AgentSpec, lore: Option<&str>, context: &Value) -> String {
    let mut system = agent.instructions.clone();
    if let Some(lore) = lore {
        system.push_str("\n\n");
        system.push_str(lore);
    }
    if context
        .as_object()
        .is_some_and(|members| !members.is_empty())
    {
        system.push_str("\n\nContext: ");
        system.push_str(&context.to_string());
    }
    system
}

/// Builds the conversation. Player input whose turn never committed is left out of the history.
fn conversation(system: String, history: &[Message], text: &str) -> Vec<ChatMessage> {
    let mut system = system;
    if let Some(compacted) = compacted(history) {
        system.push_str("\n\nWhat was said before, in short:\n");
        system.push_str(compacted);
    }
    let past = since_compaction(history)
        .filter(|message| message.turn_id.is_some() && message.block.is_none());
    let past = past.filter_map(|message| match message.role {
        Role::User => Some(ChatMessage::User {
            content: message.content.as_str().into(),
        }),
        Role::Assistant => Some(ChatMessage::Assistant {
            content: message.content.as_str().into(),
            tool_calls: Vec::new(),
            continuation: None,
        }),
        Role::System | Role::Tool => None,
    });
    let first = std::iter::once(ChatMessage::System {
        content: system.into(),
    });
    let last = std::iter::once(ChatMessage::User {
        content: text.into(),
    });
    first.chain(past).chain(last).collect()
}
