//! Puts answers together, chunk by chunk or whole, without I/O.

use std::collections::BTreeMap;

use serde_json::Value;
use turnwire_spec::llm::openai_chat as wire;

use super::ANSWER_BYTES;
use crate::gateway::{ErrorKind, FinishReason, ModelEvent, ModelReply, ToolRequest, Usage};

/// Tool calls of one answer.
const TOOL_CALLS: usize = 128;

impl PartialCall {
    /// Whether its id and name have come.
    fn is_known(&self) -> bool {
        self.id.is_some() && !self.name.is_empty()
    }
}

/// What is wrong with an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Fault {
    pub(super) kind: ErrorKind,
    pub(super) message: String,
}

impl Fault {
    fn bad(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::BadAnswer,
            message: message.into(),
        }
    }
}

/// Puts a streamed answer together.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    text: String,
    reasoning: String,
    calls: BTreeMap<i64, PartialCall>,
    usage: Option<wire::Usage>,
    finish: Option<String>,
}

/// A tool call of which more may come.
#[derive(Debug, Default)]
struct PartialCall {
    id: Option<String>,
    name: String,
    arguments: String,
}

impl Assembler {
    /// Takes the data of one event; gives what a reader can have at once.
    pub(super) fn push(&mut self, data: &str) -> Result<Vec<ModelEvent>, Fault> {
        let chunk: wire::Chunk = serde_json::from_str(data)
            .map_err(|error| Fault::bad(format!("a chunk is no JSON: {error}")))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(stream_fault(&error));
        }
        if chunk.usage.is_some() {
            self.usage = chunk.usage;
        }
        let mut events = Vec::new();
        for choice in chunk
            .choices
            .into_iter()
            .flatten()
            .filter(|choice| choice.index.unwrap_or(0) == 0)
        {
            if let Some(delta) = choice.delta {
                self.delta(delta, &mut events)?;
            }
            if choice.finish_reason.is_some() {
                self.finish = choice.finish_reason;
            }
        }
        if self.text.len() + self.reasoning.len() > ANSWER_BYTES {
            return Err(Fault::bad("the answer is too long"));
        }
        Ok(events)
    }

    fn delta(&mut self, delta: wire::Delta, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let thinking = ["reasoning_content", "reasoning"];
        let thought = thinking
            .iter()
            .find_map(|name| delta.extra.get(*name)?.as_str());
        if let Some(thought) = thought.filter(|thought| !thought.is_empty()) {
            self.reasoning.push_str(thought);
            events.push(ModelEvent::Reasoning(thought.to_owned()));
        }
        if let Some(text) = delta
            .content
            .as_ref()
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
        {
            self.text.push_str(text);
            events.push(ModelEvent::Text(text.to_owned()));
        }
        for call in delta.tool_calls.into_iter().flatten() {
            events.extend(self.tool_call(call)?);
        }
        Ok(())
    }

    fn tool_call(&mut self, delta: wire::ToolCallDelta) -> Result<Option<ModelEvent>, Fault> {
        let index = delta
            .index
            .unwrap_or_else(|| self.index_of(delta.id.as_deref()));
        if !self.calls.contains_key(&index) && self.calls.len() >= TOOL_CALLS {
            return Err(Fault::bad("the answer has too many tool calls"));
        }
        let call = self.calls.entry(index).or_default();
        let was_known = call.is_known();
        let before = call.arguments.len();
        if let Some(id) = delta.id.filter(|id| !id.is_empty()) {
            call.id.get_or_insert(id);
        }
        let function = delta.function.unwrap_or_default();
        if let Some(name) = function.name.filter(|_| call.name.is_empty()) {
            call.name = name;
        }
        match function.arguments {
            None | Some(Value::Null) => {}
            Some(Value::String(piece)) => call.arguments.push_str(&piece),
            Some(whole) => call.arguments = whole.to_string(),
        }
        if call.arguments.len() > ANSWER_BYTES {
            return Err(Fault::bad("the arguments of a tool call are too long"));
        }
        // What came before the call had an id and a name is told with them.
        let told = if was_known { before } else { 0 };
        let delta = call.arguments.get(told..).unwrap_or_default();
        let news = call.is_known() && (!was_known || !delta.is_empty());
        Ok(news.then(|| ModelEvent::ToolInput {
            id: call.id.clone().unwrap_or_default(),
            name: call.name.clone(),
            delta: delta.to_owned(),
        }))
    }

    /// The call that a delta without an index belongs to: that of its id, a new one for a new id,
    /// the last one for no id.
    fn index_of(&self, id: Option<&str>) -> i64 {
        let last = self.calls.keys().next_back().copied();
        match id.filter(|id| !id.is_empty()) {
            None => last.unwrap_or(0),
            Some(id) => {
                let known = self
                    .calls
                    .iter()
                    .find(|(_, call)| call.id.as_deref() == Some(id));
                known.map_or_else(|| last.map_or(0, |last| last + 1), |(index, _)| *index)
            }
        }
    }

    /// The whole answer.
    pub(super) fn finish(&mut self) -> Result<ModelReply, Fault> {
        let this = std::mem::take(self);
        let Some(finish) = this.finish else {
            return Err(Fault {
                kind: ErrorKind::Network,
                message: "the provider's answer broke off before its end".to_owned(),
            });
        };
        let calls = this.calls.into_iter().map(|(index, call)| ToolRequest {
            id: call.id.unwrap_or_else(|| format!("call_{index}")),
            name: call.name,
            arguments: call.arguments,
        });
        Ok(ModelReply {
            text: this.text,
            reasoning: this.reasoning,
            tool_calls: calls.collect(),
            usage: this.usage.as_ref().map(usage_of).unwrap_or_default(),
            finish: finish_of(&finish),
        })
    }
}

fn usage_of(usage: &wire::Usage) -> Usage {
    let details = usage.prompt_tokens_details.as_ref();
    Usage {
        input_tokens: usage.prompt_tokens.unwrap_or_default(),
        output_tokens: usage.completion_tokens.unwrap_or_default(),
        cached_input_tokens: details.and_then(|details| details.cached_tokens),
        cache_write_input_tokens: details.and_then(|details| details.cache_write_tokens),
    }
}

fn finish_of(reason: &str) -> FinishReason {
    match reason {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// A plain answer, for a request that was not streamed or a service that does not stream.
pub(super) fn plain_reply(body: &[u8]) -> Result<ModelReply, Fault> {
    let response: wire::ChatResponse = serde_json::from_slice(body)
        .map_err(|error| Fault::bad(format!("the answer is no chat completion: {error}")))?;
    let choice = response
        .choices
        .into_iter()
        .next()
        .ok_or_else(|| Fault::bad("the answer has no choice"))?;
    let calls = choice
        .message
        .tool_calls
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(index, call)| {
            let function = call.function.unwrap_or_default();
            ToolRequest {
                id: call.id.unwrap_or_else(|| format!("call_{index}")),
                name: function.name.unwrap_or_default(),
                arguments: match function.arguments {
                    None | Some(Value::Null) => String::new(),
                    Some(Value::String(text)) => text,
                    Some(whole) => whole.to_string(),
                },
            }
        });
    Ok(ModelReply {
        tool_calls: calls.take(TOOL_CALLS).collect(),
        text: choice
            .message
            .content
            .as_ref()
            .map(text_of)
            .unwrap_or_default(),
        reasoning: String::new(),
        usage: response.usage.as_ref().map(usage_of).unwrap_or_default(),
        finish: choice
            .finish_reason
            .as_deref()
            .map(finish_of)
            .unwrap_or_default(),
    })
}

fn text_of(content: &wire::Content) -> String {
    match content {
        wire::Content::Text(text) => text.clone(),
        wire::Content::Parts(parts) => {
            let texts = parts.iter().filter_map(|part| match part {
                wire::Part::Text { text, .. } => Some(text.as_str()),
                _ => None,
            });
            texts.collect()
        }
    }
}

fn stream_fault(error: &Value) -> Fault {
    let message = error
        .get("message")
        .and_then(Value::as_str)
        .or_else(|| error.as_str());
    Fault {
        kind: ErrorKind::Unavailable,
        message: message
            .unwrap_or("the provider reported an error")
            .to_owned(),
    }
}
