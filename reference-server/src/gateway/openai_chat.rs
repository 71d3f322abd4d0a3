//! The wire of OpenAI Chat Completions, and of the many services that imitate it.
//!
//! [`Assembler`] puts an answer together, chunk by chunk, without I/O; [`to_wire`] writes a request.
//! What compatible services do otherwise is accepted: missing indexes and ids of tool calls, arguments
//! as objects, thinking under `reasoning_content` or `reasoning`, an error inside the stream.
//!
//! A stream is complete when it gave a reason to finish; `[DONE]` alone says nothing.
//!
//! Source: [`turnwire_spec::llm::openai_chat`].

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use serde_json::{Value, json};
use turnwire_spec::llm::openai_chat as wire;
use turnwire_spec::sse::{Decoder, Limits};

use super::http::{Answer, BadBaseUrl, Endpoint, HttpError, post};
use super::{
    ChatMessage, ErrorKind, FinishReason, Gateway, GatewayError, GatewayTimeouts, ModelEvent,
    ModelReply, ModelRequest, ModelStream, Target, ToolChoice, ToolRequest, ToolSpec, Usage,
};

/// Bytes of an error body that are read.
const ERROR_BYTES: usize = 64 << 10;
/// Bytes of a plain answer, and of all text of a streamed one.
const ANSWER_BYTES: usize = 16 << 20;
/// Tool calls of one answer.
const TOOL_CALLS: usize = 128;

/// One service that speaks this wire.
#[derive(Clone)]
pub struct OpenAiChat {
    endpoint: Endpoint,
    key: Option<String>,
    provider: String,
    model: String,
    timeouts: GatewayTimeouts,
}

impl OpenAiChat {
    /// A service at this base URL, `https://api.openai.com/v1` for instance.
    ///
    /// # Errors
    ///
    /// [`BadBaseUrl`] when it is no absolute http or https URL.
    pub fn new(
        provider: &str,
        base_url: &str,
        key: Option<String>,
        model: &str,
        timeouts: GatewayTimeouts,
    ) -> Result<Self, BadBaseUrl> {
        let endpoint = Endpoint::parse(base_url)?;
        let key = key.filter(|key| !key.is_empty());
        Ok(Self {
            endpoint,
            key,
            provider: provider.to_owned(),
            model: model.to_owned(),
            timeouts,
        })
    }

    fn error(&self, kind: ErrorKind, message: &str, target: &Target) -> GatewayError {
        let message = match &self.key {
            Some(key) => message.replace(key.as_str(), "[key]"),
            None => message.to_owned(),
        };
        GatewayError {
            kind,
            message,
            target: target.clone(),
            status: None,
            retry_after: None,
        }
    }

    fn http_error(&self, error: &HttpError, target: &Target) -> GatewayError {
        let kind = match error {
            HttpError::Silent(_) => ErrorKind::Timeout,
            HttpError::Connect(_) | HttpError::Broken(_) => ErrorKind::Network,
            HttpError::TooLarge(_) => ErrorKind::BadAnswer,
        };
        self.error(kind, &error.to_string(), target)
    }

    /// What an answer of an error status says.
    async fn refusal(&self, mut answer: Answer, target: &Target) -> GatewayError {
        let status = answer.response.status();
        let retry_after = answer
            .response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| {
                let seconds: f64 = value.to_str().ok()?.trim().parse().ok()?;
                Duration::try_from_secs_f64(seconds).ok()
            });
        let body = answer.whole(ERROR_BYTES).await.unwrap_or_default();
        let (message, code) = error_of(&body);
        let message = message.unwrap_or_else(|| format!("the provider answered {status}"));
        let kind = kind_of(status, code.as_deref());
        let status = Some(status.as_u16());
        GatewayError {
            status,
            retry_after,
            ..self.error(kind, &message, target)
        }
    }
}

impl std::fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiChat")
            .field("endpoint", &self.endpoint)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Gateway for OpenAiChat {
    fn target(&self, _slot: &str) -> Target {
        Target {
            provider: self.provider.clone(),
            model: Some(self.model.clone()),
        }
    }

    async fn call(&self, request: ModelRequest) -> Result<Box<dyn ModelStream>, GatewayError> {
        let target = request.target.clone();
        if self.endpoint.secure && self.key.is_none() {
            let message = format!("there is no key for {}", self.provider);
            return Err(self.error(ErrorKind::MissingKey, &message, &target));
        }
        let body = serde_json::to_vec(&to_wire(&request))
            .map_err(|error| self.error(ErrorKind::Unknown, &error.to_string(), &target))?;
        let key = self.key.as_deref();
        let sent = post(
            &self.endpoint,
            "/chat/completions",
            key,
            Bytes::from(body),
            self.timeouts,
        )
        .await;
        let answer = sent.map_err(|error| self.http_error(&error, &target))?;
        if !answer.response.status().is_success() {
            return Err(self.refusal(answer, &target).await);
        }
        let content_type = answer.response.headers().get(CONTENT_TYPE);
        let streams = content_type
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| {
                value
                    .trim_start()
                    .to_ascii_lowercase()
                    .starts_with("text/event-stream")
            });
        Ok(Box::new(Reading {
            service: self.clone(),
            target,
            answer,
            streams,
            decoder: Decoder::new(Limits::bytes(ANSWER_BYTES)),
            assembler: Assembler::default(),
            ready: VecDeque::new(),
            over: false,
        }))
    }
}

/// An answer while it is read.
struct Reading {
    service: OpenAiChat,
    target: Target,
    answer: Answer,
    streams: bool,
    decoder: Decoder,
    assembler: Assembler,
    ready: VecDeque<Result<ModelEvent, Fault>>,
    /// Nothing more is read.
    over: bool,
}

#[async_trait]
impl ModelStream for Reading {
    async fn next(&mut self) -> Option<Result<ModelEvent, GatewayError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event.map_err(|fault| {
                    self.over = true;
                    self.ready.clear();
                    self.service.error(fault.kind, &fault.message, &self.target)
                }));
            }
            if self.over {
                return None;
            }
            let read = if self.streams {
                self.read_chunk().await
            } else {
                self.read_whole().await
            };
            if let Err(error) = read {
                self.over = true;
                return Some(Err(self.service.http_error(&error, &self.target)));
            }
        }
    }
}

impl Reading {
    async fn read_chunk(&mut self) -> Result<(), HttpError> {
        let Some(bytes) = self.answer.chunk().await? else {
            self.over = true;
            self.ready
                .push_back(self.assembler.finish().map(ModelEvent::Done));
            return Ok(());
        };
        let (assembler, ready, over) = (&mut self.assembler, &mut self.ready, &mut self.over);
        let fed = self.decoder.feed(&bytes, |event| {
            if *over || event.data.is_empty() {
                return;
            }
            if event.data.trim() == wire::DONE {
                *over = true;
                ready.push_back(assembler.finish().map(ModelEvent::Done));
                return;
            }
            match assembler.push(event.data) {
                Ok(events) => ready.extend(events.into_iter().map(Ok)),
                Err(fault) => {
                    *over = true;
                    ready.push_back(Err(fault));
                }
            }
        });
        fed.map_err(|_| HttpError::TooLarge(ANSWER_BYTES))
    }

    async fn read_whole(&mut self) -> Result<(), HttpError> {
        self.over = true;
        let body = self.answer.whole(ANSWER_BYTES).await?;
        match plain_reply(&body) {
            Err(fault) => self.ready.push_back(Err(fault)),
            Ok(reply) => {
                if !reply.text.is_empty() {
                    self.ready
                        .push_back(Ok(ModelEvent::Text(reply.text.clone())));
                }
                self.ready.push_back(Ok(ModelEvent::Done(reply)));
            }
        }
        Ok(())
    }
}

/// What is wrong with an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Fault {
    kind: ErrorKind,
    message: String,
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
struct Assembler {
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
    fn push(&mut self, data: &str) -> Result<Vec<ModelEvent>, Fault> {
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
            self.tool_call(call)?;
        }
        Ok(())
    }

    fn tool_call(&mut self, delta: wire::ToolCallDelta) -> Result<(), Fault> {
        let index = delta
            .index
            .unwrap_or_else(|| self.index_of(delta.id.as_deref()));
        if !self.calls.contains_key(&index) && self.calls.len() >= TOOL_CALLS {
            return Err(Fault::bad("the answer has too many tool calls"));
        }
        let call = self.calls.entry(index).or_default();
        if let Some(id) = delta.id.filter(|id| !id.is_empty()) {
            call.id.get_or_insert(id);
        }
        let Some(function) = delta.function else {
            return Ok(());
        };
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
        Ok(())
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
    fn finish(&mut self) -> Result<ModelReply, Fault> {
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
fn plain_reply(body: &[u8]) -> Result<ModelReply, Fault> {
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

/// Message and code of an error body; some services wrap it in an array, some send bare text.
fn error_of(body: &[u8]) -> (Option<String>, Option<String>) {
    let Ok(parsed) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(body);
        let line = text.trim().lines().next().unwrap_or_default();
        let plain = !line.is_empty() && !line.starts_with('<');
        return (plain.then(|| line.chars().take(500).collect()), None);
    };
    let outer = parsed.get(0).unwrap_or(&parsed);
    let error = outer.get("error").unwrap_or(outer);
    let message = error
        .get("message")
        .and_then(Value::as_str)
        .or_else(|| error.as_str());
    let code = error.get("code").and_then(Value::as_str);
    (
        message
            .filter(|message| !message.is_empty())
            .map(str::to_owned),
        code.map(str::to_owned),
    )
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

fn kind_of(status: StatusCode, code: Option<&str>) -> ErrorKind {
    match status.as_u16() {
        // Waiting does not bring money: another 429 than too many requests.
        429 if code == Some("insufficient_quota") => ErrorKind::Unauthorized,
        429 => ErrorKind::RateLimited,
        401 | 403 => ErrorKind::Unauthorized,
        404 => ErrorKind::NotFound,
        408 => ErrorKind::Timeout,
        400..=499 => ErrorKind::BadRequest,
        500..=599 => ErrorKind::Unavailable,
        _ => ErrorKind::Unknown,
    }
}

/// The body of a request.
fn to_wire(request: &ModelRequest) -> wire::ChatRequest {
    let tools = request.tools.iter().map(tool_to_wire).collect::<Vec<_>>();
    let offers = !tools.is_empty();
    wire::ChatRequest {
        model: request.target.model.clone().unwrap_or_default(),
        messages: request.messages.iter().map(message_to_wire).collect(),
        stream: request.streaming.then_some(true),
        stream_options: request.streaming.then(|| wire::StreamOptions {
            include_usage: Some(true),
            ..wire::StreamOptions::default()
        }),
        tools: offers.then_some(tools),
        // Services refuse a choice among no tools.
        tool_choice: match request.tool_choice {
            _ if !offers => None,
            ToolChoice::Auto => Some(json!("auto")),
            ToolChoice::Required => Some(json!("required")),
            ToolChoice::None => Some(json!("none")),
        },
        ..wire::ChatRequest::default()
    }
}

fn tool_to_wire(tool: &ToolSpec) -> wire::Tool {
    wire::Tool::Function {
        function: wire::Function {
            name: tool.name.clone(),
            description: Some(tool.description.clone()),
            parameters: Some(tool.json_schema.clone()),
            strict: None,
        },
    }
}

fn message_to_wire(message: &ChatMessage) -> wire::Message {
    let plain = |content: &str| wire::PlainMessage {
        content: content.into(),
        ..wire::PlainMessage::default()
    };
    match message {
        ChatMessage::System { content } => wire::Message::System(plain(content)),
        ChatMessage::User { content } => wire::Message::User(plain(content)),
        ChatMessage::Assistant {
            content,
            tool_calls,
        } => {
            let calls = tool_calls.iter().map(call_to_wire).collect::<Vec<_>>();
            let beside_calls = content.is_empty() && !calls.is_empty();
            wire::Message::Assistant(wire::AssistantMessage {
                content: (!beside_calls).then(|| content.as_str().into()),
                tool_calls: (!calls.is_empty()).then_some(calls),
                ..wire::AssistantMessage::default()
            })
        }
        ChatMessage::Tool {
            tool_call_id,
            content,
        } => wire::Message::Tool(wire::ToolMessage {
            tool_call_id: tool_call_id.clone(),
            content: content.as_str().into(),
            ..wire::ToolMessage::default()
        }),
    }
}

/// A call sent back as history. Services refuse arguments that are no JSON, so such become `{}`.
fn call_to_wire(call: &ToolRequest) -> wire::ToolCall {
    let readable = serde_json::from_str::<Value>(&call.arguments).is_ok();
    let arguments = if readable {
        call.arguments.clone()
    } else {
        "{}".to_owned()
    };
    wire::ToolCall {
        id: Some(call.id.clone()),
        kind: Some("function".to_owned()),
        function: Some(wire::FunctionCall {
            name: Some(call.name.clone()),
            arguments: Some(arguments.into()),
        }),
        ..wire::ToolCall::default()
    }
}

#[cfg(test)]
mod tests;
