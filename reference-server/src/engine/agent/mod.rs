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

mod model_calls;
mod partial;
pub(super) mod segments;
mod tool_calls;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use turnwire_spec::covel::vocabulary::{StepNoteKind, StopReason};

use super::Engine;
use super::cancel::{Cancel, CancelCause};
use super::emitter::Emitter;
use super::events::Run;
use super::events::steps::{self, StepEnd, StepFacts};
use super::model::Session;
use super::outcome::{Failure, LoopStop};
use super::plugins::AgentSpec;
use super::ports::Ids;
use super::proposals::PendingProposal;
use super::steering::Steering;
use super::tools::Tool;
use crate::gateway::{
    CallOptions, ChatMessage, Gateway, GatewayError, ModelReply, ModelRequest, Target, ToolChoice,
    ToolSpec,
};

/// What the model is told in the finalizer step.
const ANSWER_NOW: &str =
    "Give your final answer now, in the same form as before. Do not call tools.";
/// What the model is told in the repair step.
const ANSWER_WAS_EMPTY: &str = "Your answer was empty. Write the answer now. Do not call tools.";

/// What stands between an answer and the one that follows it because the player interjected.
const BETWEEN_ANSWERS: &str = "\n\n";

/// How patient the loop is. Periods are real time, after scaling.
#[derive(Clone, Copy, Debug)]
pub struct LoopPolicy {
    /// How often a failed model call is tried again.
    pub retries: u32,
    /// The wait before the first of these, doubled each time.
    pub backoff: Duration,
    /// The longest wait that a provider may ask for; a call that would have to wait longer fails.
    pub max_wait: Duration,
    /// What must be left before the deadline for a finalizer step.
    pub finalizer_min: Duration,
    /// Repair steps at most.
    pub repairs: u32,
}

impl LoopPolicy {
    /// How long to wait before the call is tried again after this failed `attempt`, counted from 1;
    /// `None` when it is not.
    fn wait_after(&self, attempt: u32, error: &GatewayError) -> Option<Duration> {
        if attempt > self.retries || !error.is_retryable() {
            return None;
        }
        let asked = error.retry_after.unwrap_or_default();
        let backoff = self
            .backoff
            .saturating_mul(2_u32.saturating_pow(attempt - 1));
        (asked <= self.max_wait).then(|| backoff.min(self.max_wait).max(asked))
    }
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
    /// Queues the jobs that tools ask for; without it they cannot.
    pub(super) engine: Option<&'a Engine>,
    /// What the player interjects; only the story reads it.
    pub(super) steering: Option<&'a Steering>,
}

/// How a loop ended.
#[derive(Debug)]
pub(super) struct AgentEnd {
    pub(super) stop: LoopStop,
    /// The final text as the model wrote it, or why there is none.
    pub(super) answer: Result<String, Failure>,
    pub(super) proposals: Vec<PendingProposal>,
    /// How many pieces of narrative were sent.
    pub(super) deltas: u64,
    /// What the player interjected, oldest first.
    pub(super) steered: Vec<String>,
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
        calls: 0,
        steered: Vec::new(),
        prose: String::new(),
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
        strict: false,
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
    /// Tool calls so far.
    calls: u64,
    /// What the player interjected so far.
    steered: Vec<String>,
    /// Answers that were final before the player interjected; the last answer follows them.
    prose: String,
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
            self.merge_steering();
            let (mut open, reply) = self.ask(step, StepKind::Ordinary).await;
            let reply = match reply {
                Ok(reply) => reply,
                Err(end) => return self.fail(open, end).await,
            };
            if reply.tool_calls.is_empty() && self.is_steered_late(step, &reply.text) {
                open.end.notes.push(StepNoteKind::LateSteering);
                self.close(open, None).await;
                self.keep_prose(&reply.text);
                step += 1;
                continue;
            }
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

    /// Puts what the player interjected into the conversation.
    fn merge_steering(&mut self) {
        let waiting = self.work.steering.map(Steering::take).unwrap_or_default();
        for text in waiting {
            self.conversation.push(ChatMessage::User {
                content: text.as_str().into(),
            });
            self.steered.push(text);
        }
    }

    /// Whether the player interjected while this answer was written, and there is a step left to say more.
    fn is_steered_late(&self, step: u32, answer: &str) -> bool {
        let waits = self.work.steering.is_some_and(Steering::waits);
        waits && !answer.trim().is_empty() && step < self.work.spec.max_steps
    }

    /// The story goes on behind this answer, which stays a part of it.
    fn keep_prose(&mut self, answer: &str) {
        self.conversation.push(ChatMessage::Assistant {
            content: answer.into(),
            tool_calls: Vec::new(),
            continuation: None,
        });
        self.prose.push_str(answer);
        self.prose.push_str(BETWEEN_ANSWERS);
        self.show(BETWEEN_ANSWERS, None);
    }

    /// The answer of an ordinary step: final when it says something, else in need of repair.
    async fn answer(mut self, open: Step, text: String) -> AgentEnd {
        if self.says(&text) {
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
                content: ANSWER_WAS_EMPTY.into(),
            });
            let (asked, reply) = self.ask(step, StepKind::Repair).await;
            open = asked;
            match reply {
                Ok(reply) if self.says(&reply.text) => {
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
            content: ANSWER_NOW.into(),
        });
        let (open, reply) = self.ask(step, StepKind::Finalizer).await;
        match reply {
            Ok(reply) if self.says(&reply.text) => {
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

    /// Whether an answer has anything to read.
    fn says(&self, text: &str) -> bool {
        if self.work.spec.segmented {
            !segments::read(text).0.is_empty()
        } else {
            !text.trim().is_empty()
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

    async fn end(
        mut self,
        open: Step,
        stop: LoopStop,
        answer: Result<String, Failure>,
    ) -> AgentEnd {
        let late = self.work.steering.map(Steering::close);
        self.steered.extend(late.unwrap_or_default());
        self.close(open, Some(stop.reason)).await;
        AgentEnd {
            stop,
            answer: answer.map(|text| self.prose + &text),
            proposals: self.proposals,
            deltas: self.deltas,
            steered: self.steered,
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
            options: CallOptions::default(),
        };
        let reply = self
            .call_with_retries(&request, &mut open.end.retries)
            .await;
        if let Ok(reply) = &reply {
            open.end.reply = Some((reply.finish.name().to_owned(), reply.usage.counted()));
        }
        (open, reply)
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

fn steps_ran_out() -> Failure {
    Failure::new("The runtime ran out of steps")
}

/// Whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::ErrorKind;

    #[test]
    fn a_call_is_tried_again_after_a_wait_that_grows_and_has_an_end() {
        let policy = LoopPolicy {
            retries: 3,
            backoff: Duration::from_millis(500),
            max_wait: Duration::from_secs(60),
            finalizer_min: Duration::ZERO,
            repairs: 0,
        };
        let error = |kind, asked: Option<u64>| GatewayError {
            retry_after: asked.map(Duration::from_secs),
            ..GatewayError::new(kind, "m", Target::default())
        };
        let busy = |asked| error(ErrorKind::RateLimited, asked);
        let ms = |millis| Some(Duration::from_millis(millis));

        assert_eq!(policy.wait_after(1, &busy(None)), ms(500));
        assert_eq!(policy.wait_after(3, &busy(None)), ms(2000));
        assert_eq!(
            policy.wait_after(4, &busy(None)),
            None,
            "the retries ran out"
        );
        assert_eq!(policy.wait_after(1, &busy(Some(7))), ms(7000));
        assert_eq!(
            policy.wait_after(1, &busy(Some(3600))),
            None,
            "nobody waits that long"
        );
        assert_eq!(
            policy.wait_after(1, &error(ErrorKind::BadRequest, None)),
            None
        );
    }
}
