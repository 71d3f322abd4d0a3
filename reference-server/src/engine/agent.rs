//! The tool loop of an agent runtime: ask the model, run its tools, ask again, until it has answered.
//!
//! ```text
//! step ──> model ──> tool calls? ──yes──> run them ──> steps left? ──yes──> step
//!                         │                                  └──no──> finalizer step ─┐
//!                         no                                                          │
//!                         └──> text? ──yes──> completed <──────── text? <─────────────┘
//!                                └──no──> repair step ──> text? or invalid-output
//! ```
//!
//! Text beside tool calls is a draft: what was streamed of it is taken back by a reset. Whatever
//! ends the loop maps to one stop reason. Nothing is written here; proposals are handed back.
//!
//! Source: seed 000, lines 186-208 and 1225-1242.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use turnwire_spec::covel::vocabulary::{StepNoteKind, StopReason, ToolErrorCode};

use super::cancel::{Cancel, CancelCause};
use super::emitter::Emitter;
use super::events::steps::{self, LlmCall, StepEnd, StepFacts};
use super::events::{Run, life};
use super::model::{Object, Session};
use super::outcome::{Failure, LoopStop};
use super::plugins::AgentSpec;
use super::ports::Ids;
use super::proposals::{PendingProposal, Proposal};
use super::tools::{Tool, ToolCall, ToolError};
use crate::gateway::{
    ChatMessage, Gateway, GatewayError, ModelEvent, ModelReply, ModelRequest, Target, ToolChoice,
    ToolRequest, ToolSpec,
};

/// What the model is told in the finalizer step.
const ANSWER_NOW: &str =
    "Give your final answer now, in the same form as before. Do not call tools.";
/// What the model is told in the repair step.
const ANSWER_WAS_EMPTY: &str = "Your answer was empty. Write the answer now. Do not call tools.";

/// How patient the loop is. Periods are real time, after scaling.
#[derive(Clone, Copy, Debug)]
pub struct LoopPolicy {
    /// How often a failed model call is tried again.
    pub retries: u32,
    /// The wait before the first of these, doubled each time.
    pub backoff: Duration,
    /// What must be left before the deadline for a finalizer step.
    pub finalizer_min: Duration,
    /// Repair steps at most.
    pub repairs: u32,
}

/// What a loop works with.
pub(super) struct AgentRun<'a> {
    pub(super) run: &'a Run,
    pub(super) kind: &'a str,
    pub(super) spec: &'a AgentSpec,
    pub(super) session: &'a Session,
    pub(super) emitter: &'a Emitter,
    pub(super) gateway: &'a dyn Gateway,
    pub(super) ids: &'a dyn Ids,
    pub(super) tools: &'a [Arc<dyn Tool>],
    pub(super) cancel: &'a Cancel,
    pub(super) policy: LoopPolicy,
    /// Asks for this model instead of the one that the gateway would choose.
    pub(super) model: Option<&'a str>,
}

/// How a loop ended.
#[derive(Debug)]
pub(super) struct AgentEnd {
    pub(super) stop: LoopStop,
    /// The final text, or why there is none.
    pub(super) answer: Result<String, Failure>,
    pub(super) proposals: Vec<PendingProposal>,
    /// How many pieces of narrative were sent.
    pub(super) deltas: u64,
}

/// Runs the loop over this conversation to its end.
pub(super) async fn run(work: AgentRun<'_>, conversation: Vec<ChatMessage>) -> AgentEnd {
    let deadline = work.spec.deadline.map(|within| Instant::now() + within);
    let state = Loop {
        target: target(&work),
        tool_specs: work
            .tools
            .iter()
            .map(|tool| tool_spec(tool.as_ref()))
            .collect(),
        work,
        conversation,
        deadline,
        proposals: Vec::new(),
        deltas: 0,
    };
    state.run().await
}

fn target(work: &AgentRun<'_>) -> Target {
    let resolved = work.gateway.target(&work.spec.slot);
    match work.model {
        Some(model) => Target {
            model: Some(model.to_owned()),
            ..resolved
        },
        None => resolved,
    }
}

fn tool_spec(tool: &dyn Tool) -> ToolSpec {
    ToolSpec {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        json_schema: tool.schema(),
    }
}

struct Loop<'a> {
    work: AgentRun<'a>,
    target: Target,
    tool_specs: Vec<ToolSpec>,
    conversation: Vec<ChatMessage>,
    deadline: Option<Instant>,
    proposals: Vec<PendingProposal>,
    deltas: u64,
}

/// What a step was for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StepKind {
    Ordinary,
    Finalizer,
    Repair,
}

/// Why a model call has no reply.
enum CallEnd {
    Cancelled(CancelCause),
    Deadline,
    Model(GatewayError),
}

/// One step, from the question to the tools.
struct Step {
    facts: StepFacts,
    started: Instant,
    end: StepEnd,
}

impl Loop<'_> {
    async fn run(mut self) -> AgentEnd {
        let mut step = 1;
        loop {
            let (mut open, reply) = self.ask(step, StepKind::Ordinary).await;
            let reply = match reply {
                Ok(reply) => reply,
                Err(end) => return self.fail(open, end).await,
            };
            if reply.tool_calls.is_empty() {
                return self.answer(open, reply.text).await;
            }
            self.call_tools(&mut open, reply).await;
            let last = step >= self.work.spec.max_steps;
            if let Some(cause) = self.work.cancel.cause() {
                return self.fail(open, CallEnd::Cancelled(cause)).await;
            }
            if last && !self.finalizer_fits() {
                return self
                    .end(
                        open,
                        LoopStop::plain(StopReason::MaxSteps),
                        Err(steps_ran_out()),
                    )
                    .await;
            }
            self.close(open, None).await;
            step += 1;
            if last {
                return self.finalize(step).await;
            }
        }
    }

    /// The answer of an ordinary step: final when it says something, else in need of repair.
    async fn answer(mut self, open: Step, text: String) -> AgentEnd {
        if !text.trim().is_empty() {
            return self
                .end(open, LoopStop::plain(StopReason::Completed), Ok(text))
                .await;
        }
        let mut step = open.facts.step;
        let mut open = open;
        for _ in 0..self.work.policy.repairs {
            self.close(open, None).await;
            step += 1;
            self.conversation.push(ChatMessage::User {
                content: ANSWER_WAS_EMPTY.to_owned(),
            });
            let (asked, reply) = self.ask(step, StepKind::Repair).await;
            open = asked;
            match reply {
                Ok(reply) if !reply.text.trim().is_empty() => {
                    let stop = LoopStop {
                        repaired: true,
                        ..LoopStop::plain(StopReason::Completed)
                    };
                    return self.end(open, stop, Ok(reply.text)).await;
                }
                Ok(_) => {}
                Err(end) => return self.fail(open, end).await,
            }
        }
        let failure = Failure::new("The model gave an empty answer");
        self.end(
            open,
            LoopStop::plain(StopReason::InvalidOutput),
            Err(failure),
        )
        .await
    }

    /// Asks for the answer once more, without tools. The reason to stop stays that the steps ran out.
    async fn finalize(mut self, step: u32) -> AgentEnd {
        self.conversation.push(ChatMessage::User {
            content: ANSWER_NOW.to_owned(),
        });
        let (open, reply) = self.ask(step, StepKind::Finalizer).await;
        match reply {
            Ok(reply) if !reply.text.trim().is_empty() => {
                let stop = LoopStop {
                    finalizer: true,
                    ..LoopStop::plain(StopReason::MaxSteps)
                };
                self.end(open, stop, Ok(reply.text)).await
            }
            Err(CallEnd::Cancelled(cause)) => self.fail(open, CallEnd::Cancelled(cause)).await,
            Ok(_) | Err(_) => {
                self.end(
                    open,
                    LoopStop::plain(StopReason::MaxSteps),
                    Err(steps_ran_out()),
                )
                .await
            }
        }
    }

    /// Whether enough time is left for a finalizer step (COV-STOP-069).
    fn finalizer_fits(&self) -> bool {
        self.deadline
            .is_none_or(|deadline| deadline >= Instant::now() + self.work.policy.finalizer_min)
    }

    async fn fail(self, open: Step, end: CallEnd) -> AgentEnd {
        let (stop, failure) = match end {
            CallEnd::Cancelled(cause) => {
                let cancelled_by = Some(cause.cancelled_by());
                let stop = LoopStop {
                    cancelled_by,
                    ..LoopStop::plain(StopReason::Cancelled)
                };
                (stop, Failure::new(cause.message()))
            }
            CallEnd::Deadline => (
                LoopStop::plain(StopReason::Deadline),
                Failure::new("The runtime's deadline passed"),
            ),
            CallEnd::Model(error) => {
                let failure = Failure {
                    kind: Some(error.kind),
                    target: Some(error.target.clone().into()),
                    error: error.message,
                };
                (LoopStop::plain(StopReason::ModelError), failure)
            }
        };
        self.end(open, stop, Err(failure)).await
    }

    async fn end(self, open: Step, stop: LoopStop, answer: Result<String, Failure>) -> AgentEnd {
        self.close(open, Some(stop.reason)).await;
        AgentEnd {
            stop,
            answer,
            proposals: self.proposals,
            deltas: self.deltas,
        }
    }

    async fn close(&self, mut step: Step, stop: Option<StopReason>) {
        step.end.duration_ms = millis(step.started.elapsed());
        step.end.stop = stop;
        self.work
            .emitter
            .emit(steps::step_completed(self.work.run, step.facts, &step.end))
            .await;
    }

    /// One step up to the model's reply, tried again when that can help.
    async fn ask(&mut self, step: u32, kind: StepKind) -> (Step, Result<ModelReply, CallEnd>) {
        let facts = StepFacts {
            step,
            finalizer: kind == StepKind::Finalizer,
            repair: kind == StepKind::Repair,
        };
        let tools = if kind == StepKind::Ordinary {
            self.tool_specs.clone()
        } else {
            Vec::new()
        };
        let event =
            steps::step_started(self.work.run, facts, self.work.spec.max_steps, tools.len());
        self.work.emitter.emit(event).await;
        let mut open = Step {
            facts,
            started: Instant::now(),
            end: StepEnd::default(),
        };
        if kind == StepKind::Repair {
            open.end.notes.push(StepNoteKind::OutputRepair);
        }
        let request = ModelRequest {
            target: self.target.clone(),
            messages: self.conversation.clone(),
            tool_choice: if tools.is_empty() {
                ToolChoice::None
            } else {
                ToolChoice::Auto
            },
            tools,
            streaming: self.work.spec.streams,
        };
        let reply = self
            .call_with_retries(&request, &mut open.end.retries)
            .await;
        if let Ok(reply) = &reply {
            open.end.reply = Some((reply.finish.name().to_owned(), reply.usage.clone()));
        }
        (open, reply)
    }

    async fn call_with_retries(
        &mut self,
        request: &ModelRequest,
        retries: &mut Vec<(u32, String)>,
    ) -> Result<ModelReply, CallEnd> {
        let mut attempt = 1;
        loop {
            let mut shown = false;
            let error = match self.call(request, attempt, &mut shown).await {
                Err(CallEnd::Model(error)) => error,
                other => return other,
            };
            if shown {
                self.take_back();
            }
            if attempt > self.work.policy.retries || !error.is_retryable() {
                return Err(CallEnd::Model(error));
            }
            retries.push((attempt, error.kind.name().to_owned()));
            let wait = self.work.policy.backoff * 2_u32.saturating_pow(attempt - 1);
            self.unless_stopped(tokio::time::sleep(
                wait.max(error.retry_after.unwrap_or_default()),
            ))
            .await?;
            attempt += 1;
        }
    }

    /// One call of the model. `shown` becomes true when text of it went to the player.
    async fn call(
        &mut self,
        request: &ModelRequest,
        attempt: u32,
        shown: &mut bool,
    ) -> Result<ModelReply, CallEnd> {
        let (run, emitter) = (self.work.run, self.work.emitter);
        let calling = LlmCall {
            slot: &self.work.spec.slot,
            target: &request.target,
            messages: &request.messages,
            tools: &request.tools,
            attempt,
            started_at: &turnwire_spec::time::format_ms(emitter.now().as_millisecond()),
            streaming: request.streaming,
        };
        emitter.emit(steps::llm_calling(run, calling)).await;
        let started = Instant::now();
        let reply = self.receive(request, shown).await;
        let duration = millis(started.elapsed());
        let responded = match &reply {
            Ok(reply) => steps::llm_responded(run, attempt, duration, reply),
            Err(CallEnd::Model(error)) => steps::llm_failed(run, attempt, duration, &error.message),
            Err(CallEnd::Cancelled(cause)) => {
                steps::llm_failed(run, attempt, duration, cause.message())
            }
            Err(CallEnd::Deadline) => steps::llm_failed(run, attempt, duration, "deadline"),
        };
        emitter.emit(responded).await;
        reply
    }

    async fn receive(
        &mut self,
        request: &ModelRequest,
        shown: &mut bool,
    ) -> Result<ModelReply, CallEnd> {
        let call = self.work.gateway.call(request.clone());
        let mut stream = self.unless_stopped(call).await?.map_err(CallEnd::Model)?;
        loop {
            match self.unless_stopped(stream.next()).await? {
                Some(Ok(ModelEvent::Text(delta)))
                    if self.work.spec.streams && !delta.is_empty() =>
                {
                    *shown = true;
                    self.deltas += 1;
                    let event = life::narrative_delta(self.work.run, self.work.kind, &delta);
                    self.work.emitter.emit_unsaved(event);
                }
                Some(Ok(ModelEvent::Text(_) | ModelEvent::Reasoning(_))) => {}
                Some(Ok(ModelEvent::Done(reply))) => return Ok(reply),
                Some(Err(error)) => return Err(CallEnd::Model(error)),
                None => return Err(CallEnd::Model(broke_off(&request.target))),
            }
        }
    }

    /// The text that was streamed so far was a draft.
    fn take_back(&mut self) {
        self.deltas += 1;
        self.work
            .emitter
            .emit_unsaved(life::narrative_reset(self.work.run, self.work.kind));
    }

    async fn call_tools(&mut self, open: &mut Step, reply: ModelReply) {
        if self.work.spec.streams && !reply.text.is_empty() {
            self.take_back();
        }
        self.conversation.push(ChatMessage::Assistant {
            content: reply.text,
            tool_calls: reply.tool_calls.clone(),
        });
        for call in &reply.tool_calls {
            if let Some(cause) = self.work.cancel.cause() {
                self.skip_tool(call, cause).await;
                continue;
            }
            let result = self.call_tool(call).await;
            open.end
                .tool_calls
                .push((call.name.clone(), result.is_ok()));
            let content = match result {
                Ok(output) => output.to_string(),
                Err(error) => {
                    serde_json::json!({ "error": error.message, "hint": error.hint }).to_string()
                }
            };
            self.conversation.push(ChatMessage::Tool {
                tool_call_id: call.id.clone(),
                content,
            });
        }
    }

    /// Tells that a call will not run, because the turn was stopped before it.
    async fn skip_tool(&self, call: &ToolRequest, cause: CancelCause) {
        let error = ToolError::new(ToolErrorCode::Cancelled, cause.message());
        let arguments = parse_arguments(&call.arguments).map_or(Value::Null, Value::Object);
        for event in steps::tool_skipped(self.work.run, call, &arguments, &error) {
            self.work.emitter.emit(event).await;
        }
    }

    async fn call_tool(&mut self, call: &ToolRequest) -> Result<Value, ToolError> {
        let (run, emitter) = (self.work.run, self.work.emitter);
        let arguments = parse_arguments(&call.arguments);
        let shown = match &arguments {
            Ok(arguments) => Value::Object(arguments.clone()),
            Err(_) => Value::String(call.arguments.clone()),
        };
        emitter.emit(steps::tool_calling(run, call, &shown)).await;
        let started = Instant::now();
        let result = match arguments {
            Ok(arguments) => self.execute(call, &arguments).await,
            Err(error) => Err(error),
        };
        let duration = millis(started.elapsed());
        match result {
            Ok((output, proposals)) => {
                emitter
                    .emit(steps::tool_completed(run, call, &output, duration))
                    .await;
                self.accept(call, proposals).await;
                Ok(output)
            }
            Err(error) => {
                emitter
                    .emit(steps::tool_failed(run, call, &error, duration))
                    .await;
                Err(error)
            }
        }
    }

    async fn execute(
        &self,
        call: &ToolRequest,
        arguments: &Object,
    ) -> Result<(Value, Vec<Proposal>), ToolError> {
        let Some(tool) = self.work.tools.iter().find(|tool| tool.name() == call.name) else {
            let message = format!("there is no tool {:?}", call.name);
            return Err(ToolError::new(ToolErrorCode::NotFound, message));
        };
        let about = ToolCall {
            session: self.work.session,
            plugin_id: &self.work.run.plugin_id,
            runtime_id: &self.work.run.runtime_id,
            arguments,
        };
        match self.unless_stopped(tool.call(about)).await {
            Ok(result) => result.map(|output| (output.output, output.proposals)),
            Err(CallEnd::Cancelled(cause)) => {
                Err(ToolError::new(ToolErrorCode::Cancelled, cause.message()))
            }
            Err(_) => Err(ToolError::new(
                ToolErrorCode::Timeout,
                "the runtime's deadline passed",
            )),
        }
    }

    /// Takes the commands out of a tool's result; events are previewed at once.
    async fn accept(&mut self, call: &ToolRequest, proposals: Vec<Proposal>) {
        for proposal in proposals {
            if let Proposal::Event { topic, data, .. } = &proposal {
                let preview = steps::domain_event_previewed(self.work.run, &call.id, topic, data);
                self.work.emitter.emit(preview).await;
            }
            self.proposals.push(PendingProposal {
                id: self.work.ids.id("proposal"),
                plugin_id: self.work.run.plugin_id.clone(),
                runtime_id: self.work.run.runtime_id.clone(),
                proposal,
            });
        }
    }

    /// Waits for `future`, unless the turn is stopped or the deadline passes first.
    async fn unless_stopped<T>(&self, future: impl Future<Output = T>) -> Result<T, CallEnd> {
        let deadline = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            cause = self.work.cancel.cancelled() => Err(CallEnd::Cancelled(cause)),
            () = deadline => Err(CallEnd::Deadline),
            value = future => Ok(value),
        }
    }
}

fn parse_arguments(text: &str) -> Result<Object, ToolError> {
    if text.trim().is_empty() {
        return Ok(Object::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(ToolError::invalid(
            "the arguments are no object",
            "give the arguments as one object",
        )),
        Err(error) => Err(ToolError::invalid(
            format!("the arguments are no JSON: {error}"),
            "give the arguments as one JSON object",
        )),
    }
}

fn steps_ran_out() -> Failure {
    Failure::new("The runtime ran out of steps")
}

fn broke_off(target: &Target) -> GatewayError {
    GatewayError {
        kind: crate::gateway::ErrorKind::BadAnswer,
        message: "The model's answer ended without an end".to_owned(),
        target: target.clone(),
        status: None,
        retry_after: None,
    }
}

/// Whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
