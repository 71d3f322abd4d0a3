//! The tool calls of a tool loop, one after the other.

use serde_json::Value;
use tokio::time::Instant;
use turnwire_spec::covel::vocabulary::ToolErrorCode;

use super::{CallEnd, Loop, Step, millis};
use crate::engine::cancel::CancelCause;
use crate::engine::events::steps;
use crate::engine::model::Object;
use crate::engine::proposals::{PendingProposal, Proposal};
use crate::engine::tools::{ToolCall, ToolError};
use crate::gateway::{ChatMessage, ModelReply, ToolRequest};

impl Loop<'_> {
    pub(super) async fn call_tools(&mut self, open: &mut Step, reply: ModelReply) {
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
