//! The tool calls of a tool loop, one after the other.

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::Instant;
use turnwire_spec::covel::vocabulary::ToolErrorCode;

use super::{AgentRun, CallEnd, Loop, Step, millis};
use crate::engine::cancel::CancelCause;
use crate::engine::events::steps;
use crate::engine::happening::{Happened, Happening, ToolName};
use crate::engine::jobs::NewJob;
use crate::engine::model::{Job, Object, ToolEnd, ToolOutcome, ToolRecord};
use crate::engine::proposals::{PendingProposal, Proposal};
use crate::engine::tools::{ToolCall, ToolError, ToolHost};
use crate::gateway::{ChatMessage, ModelReply, ToolRequest};

/// Why text is void: it stood beside tool calls, so the answer is still to come.
const DRAFT: &str = "draft";

impl Loop<'_> {
    pub(super) async fn call_tools(&mut self, open: &mut Step, reply: ModelReply) {
        if self.work.spec.streams && !reply.text.is_empty() {
            self.take_back(open.facts.step, DRAFT);
        }
        self.conversation.push(ChatMessage::Assistant {
            content: reply.text.into(),
            tool_calls: reply.tool_calls.clone(),
            continuation: reply.continuation,
        });
        let mut records = Vec::new();
        for call in &reply.tool_calls {
            records.push(self.request(call, open.facts.step).await);
        }
        for (call, record) in reply.tool_calls.iter().zip(records) {
            if let Some(cause) = self.work.cancel.cause() {
                self.skip_tool(call, record, cause).await;
                continue;
            }
            let result = self.call_tool(call, record).await;
            open.end
                .tool_calls
                .push((call.name.clone(), result.is_ok()));
            let content = match result {
                Ok(output) => output.to_string(),
                Err(error) => told_model(&error),
            };
            self.conversation.push(ChatMessage::Tool {
                tool_call_id: call.id.clone(),
                content: content.into(),
            });
        }
    }

    /// Records that a tool was asked for, and tells it once the record is stored.
    async fn request(&mut self, call: &ToolRequest, step: u32) -> ToolRecord {
        let record = ToolRecord {
            session_id: self.work.session.id.clone(),
            turn_id: self.work.run.turn_id.clone(),
            runtime_id: self.work.run.runtime_id.clone(),
            call_id: call.id.clone(),
            nth: self.calls,
            step: step.into(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            requested_at: self.work.emitter.now(),
            end: None,
        };
        self.calls += 1;
        if self.work.emitter.record(&record).await {
            let session = self.work.emitter.session();
            let asked = Happening::tool_requested(session, &record);
            self.work.emitter.tell_fact(asked);
        }
        record
    }

    /// Completes the record of a call, and tells the end once that is stored.
    async fn complete(
        &self,
        record: ToolRecord,
        result: Result<&Value, &ToolError>,
        duration_ms: u64,
    ) {
        let end = ToolEnd {
            outcome: result.map_or_else(|error| outcome(error.code), |_| ToolOutcome::Completed),
            result: result.map_or_else(told_model, Value::to_string),
            error: result.err().map(|error| error.code.name().to_owned()),
            duration_ms,
            ended_at: self.work.emitter.now(),
        };
        let record = ToolRecord {
            end: Some(end),
            ..record
        };
        if self.work.emitter.record(&record).await {
            let ended = Happening::tool_ended(self.work.emitter.session(), &record);
            ended
                .into_iter()
                .for_each(|ended| self.work.emitter.tell_fact(ended));
        }
    }

    /// Tells that a call will not run, because the turn was stopped before it.
    async fn skip_tool(&self, call: &ToolRequest, record: ToolRecord, cause: CancelCause) {
        let error = ToolError::new(ToolErrorCode::Cancelled, cause.message());
        let arguments = parse_arguments(&call.arguments).map_or(Value::Null, Value::Object);
        for event in steps::tool_skipped(self.work.run, call, &arguments, &error) {
            self.work.emitter.emit(event).await;
        }
        self.complete(record, Err(&error), 0).await;
    }

    async fn call_tool(
        &mut self,
        call: &ToolRequest,
        record: ToolRecord,
    ) -> Result<Value, ToolError> {
        let (run, emitter) = (self.work.run, self.work.emitter);
        let arguments = parse_arguments(&call.arguments);
        let shown = match &arguments {
            Ok(arguments) => Value::Object(arguments.clone()),
            Err(_) => Value::String(call.arguments.clone()),
        };
        emitter.emit(steps::tool_calling(run, call, &shown)).await;
        emitter.tell(Happened::ToolStarted(name_of(call)));
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
                self.complete(record, Ok(&output), duration).await;
                self.accept(call, proposals).await;
                Ok(output)
            }
            Err(error) => {
                emitter
                    .emit(steps::tool_failed(run, call, &error, duration))
                    .await;
                self.complete(record, Err(&error), duration).await;
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
            host: &Host {
                work: &self.work,
                call: name_of(call),
            },
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
}

/// What a tool can ask for while it works.
struct Host<'a> {
    work: &'a AgentRun<'a>,
    call: ToolName,
}

#[async_trait]
impl ToolHost for Host<'_> {
    fn progress(&self, payload: Object) {
        let call = self.call.clone();
        let progress = Happened::ToolProgress { call, payload };
        self.work.emitter.tell(progress);
    }

    async fn queue_job(&self, new: NewJob) -> Result<Job, ToolError> {
        let refused = |message: String| ToolError::new(ToolErrorCode::Refused, message);
        let engine = self
            .work
            .engine
            .ok_or_else(|| refused("there are no background jobs here".to_owned()))?;
        let new = NewJob {
            source_turn_id: Some(self.work.run.turn_id.clone()),
            ..new
        };
        let queued = engine.queue_job(self.work.session, new).await;
        queued.map_err(|error| refused(error.to_string()))
    }
}

fn name_of(call: &ToolRequest) -> ToolName {
    ToolName {
        call_id: call.id.clone(),
        name: call.name.clone(),
    }
}

/// What the model reads of a call that failed.
fn told_model(error: &ToolError) -> String {
    json!({ "error": error.message, "hint": error.hint }).to_string()
}

fn outcome(code: ToolErrorCode) -> ToolOutcome {
    match code {
        ToolErrorCode::Cancelled => ToolOutcome::Cancelled,
        ToolErrorCode::Timeout => ToolOutcome::TimedOut,
        ToolErrorCode::NotFound => ToolOutcome::Unavailable,
        ToolErrorCode::Refused => ToolOutcome::Rejected,
        _ => ToolOutcome::Failed,
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
