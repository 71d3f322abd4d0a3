//! OpenAI Chat Completions: requests read, answers and errors written.
//!
//! Answers are made of a fixed frame and a `delta` for each piece, so that a stream's chunks differ
//! in what they must differ in and in nothing else.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::out::{MarkKind, Out, Rendered, json_string};
use super::{Context, Response, tokens_in};
use crate::matching::{Speaker, Talk, ToolResult, Turn};
use crate::script::reply::Keepalive;
use crate::script::{Answer, Call, Calls, ErrorReply, Finish, Part, Reasoning, Usage};

/// Reads a request's conversation.
pub fn read(body: &Value) -> Talk<'_> {
    let mut talk = Talk {
        model: body["model"].as_str().unwrap_or_default().into(),
        stream: body["stream"].as_bool().unwrap_or(false),
        tools: tool_names(body),
        ..Talk::default()
    };
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    for message in messages {
        let (text, images) = content(&message["content"]);
        match message["role"].as_str() {
            Some("system" | "developer") => talk.system.push(text),
            Some("assistant") => {
                let results = Vec::new();
                talk.turns.push(Turn {
                    speaker: Speaker::Assistant,
                    text,
                    images,
                    results,
                });
            }
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let result = ToolResult {
                    id: id.into(),
                    name: name_of_call(messages, id).into(),
                    text,
                };
                talk.turns.push(Turn {
                    speaker: Speaker::User,
                    text: "".into(),
                    images: 0,
                    results: vec![result],
                });
            }
            _ => {
                let results = Vec::new();
                talk.turns.push(Turn {
                    speaker: Speaker::User,
                    text,
                    images,
                    results,
                });
            }
        }
    }
    talk
}

fn tool_names(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    tools
        .iter()
        .filter_map(|tool| {
            tool["function"]["name"]
                .as_str()
                .or_else(|| tool["custom"]["name"].as_str())
        })
        .collect()
}

/// The text of a content, and how many images it has.
fn content(content: &Value) -> (Cow<'_, str>, usize) {
    match content {
        Value::String(text) => (text.as_str().into(), 0),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect();
            let images = parts
                .iter()
                .filter(|part| part["type"] == "image_url")
                .count();
            (texts.join("\n").into(), images)
        }
        _ => ("".into(), 0),
    }
}

fn name_of_call<'a>(messages: &'a [Value], id: &str) -> &'a str {
    messages
        .iter()
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten()
        .find(|call| call["id"] == id)
        .and_then(|call| {
            call["function"]["name"]
                .as_str()
                .or(call["custom"]["name"].as_str())
        })
        .unwrap_or_default()
}

/// Writes an answer, plain or streamed.
pub fn answer(answer: &Answer, context: &mut Context<'_>) -> Response {
    let id = answer
        .id
        .clone()
        .unwrap_or_else(|| context.ids.id("chatcmpl-", 29));
    let request_id = context.ids.id("req_", 32);
    let calls = call_ids(answer, context);
    let stream = context.talk.stream;
    let body = if stream {
        Stream::new(id, answer, context, calls).write(answer)
    } else {
        plain(&id, answer, context, &calls)
    };
    let content_type = if stream {
        "text/event-stream; charset=utf-8"
    } else {
        "application/json"
    };
    let mut headers = common_headers(content_type, request_id);
    if stream {
        headers.push(("cache-control".into(), "no-cache".into()));
    }
    Response {
        status: 200,
        headers,
        stream,
        body,
    }
}

fn common_headers(content_type: &str, request_id: String) -> Vec<(Cow<'static, str>, String)> {
    vec![
        ("content-type".into(), content_type.to_owned()),
        ("x-request-id".into(), request_id),
        ("openai-version".into(), "2020-10-01".into()),
        ("openai-processing-ms".into(), "5".into()),
    ]
}

/// The ids of all calls of an answer, in order.
fn call_ids(answer: &Answer, context: &mut Context<'_>) -> Vec<String> {
    answer
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Calls(calls) => Some(&calls.list),
            _ => None,
        })
        .flatten()
        .map(|call| {
            call.id
                .clone()
                .unwrap_or_else(|| context.ids.id("call_", 24))
        })
        .collect()
}

/// The wire's word for why an answer ends; `None` for never said.
fn finish_word(answer: &Answer) -> Option<&str> {
    Some(match &answer.finish {
        Some(Finish::Absent) => return None,
        Some(Finish::Word(word)) => word,
        Some(Finish::Length | Finish::Context) => "length",
        Some(Finish::Calls) => "tool_calls",
        Some(Finish::Filter) => "content_filter",
        Some(Finish::Stop | Finish::Refusal | Finish::StopSequence(_) | Finish::Pause) => "stop",
        None if answer.has_calls() => "tool_calls",
        None => "stop",
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total.unwrap_or(usage.input + usage.output),
        "prompt_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_write,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

fn plain(id: &str, answer: &Answer, context: &Context<'_>, ids: &[String]) -> Rendered {
    let mut text = String::new();
    let mut refusal = String::new();
    let mut calls = Vec::new();
    for part in &answer.parts {
        match part {
            Part::Text(piece) => text.push_str(&piece.whole()),
            Part::Refusal(piece) => refusal.push_str(&piece.whole()),
            Part::Calls(more) => calls.extend(more.list.iter()),
            _ => {}
        }
    }
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    let no_text = text.is_empty() && (!calls.is_empty() || !refusal.is_empty());
    message.insert(
        "content".into(),
        if no_text { Value::Null } else { text.into() },
    );
    message.insert(
        "refusal".into(),
        if refusal.is_empty() {
            Value::Null
        } else {
            refusal.into()
        },
    );
    message.insert("annotations".into(), json!([]));
    if !calls.is_empty() {
        let calls: Vec<Value> = calls
            .iter()
            .zip(ids)
            .map(|(call, id)| whole_call(call, id))
            .collect();
        message.insert("tool_calls".into(), calls.into());
    }
    let mut body = json!({
        "id": id,
        "object": "chat.completion",
        "created": context.created,
        "model": context.model(answer),
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_word(answer),
        }],
    });
    if let Some(cost) = context.usage(answer) {
        body["usage"] = usage(&cost);
    }
    body["service_tier"] = "default".into();
    body["system_fingerprint"] = FINGERPRINT.into();
    Rendered::whole(body.to_string().into_bytes())
}

/// The `system_fingerprint` of every answer.
const FINGERPRINT: &str = "fp_7475726e77";

fn whole_call(call: &Call, id: &str) -> Value {
    if call.custom {
        json!({"id": id, "type": "custom", "custom": {"name": call.name, "input": call.text()}})
    } else {
        json!({"id": id, "type": "function",
               "function": {"name": call.name, "arguments": call.text()}})
    }
}

/// A stream that is being written.
struct Stream {
    out: Out,
    /// Everything before the delta.
    before: Vec<u8>,
    /// Everything between `finish_reason` and the end of the chunk.
    after: &'static str,
    ids: std::vec::IntoIter<String>,
    calls: usize,
    chunk: crate::script::Chunking,
    include_usage: bool,
    usage: Option<Usage>,
    ended: bool,
}

impl Stream {
    fn new(id: String, answer: &Answer, context: &Context<'_>, ids: Vec<String>) -> Self {
        let include_usage = context.request["stream_options"]["include_usage"] == true;
        let mut before = Vec::with_capacity(256);
        before.extend_from_slice(b"data: {\"id\":");
        json_string(&mut before, &id);
        before.extend_from_slice(
            format!(
                ",\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":",
                context.created
            )
            .as_bytes(),
        );
        json_string(&mut before, context.model(answer));
        before.extend_from_slice(
            format!(",\"service_tier\":\"default\",\"system_fingerprint\":\"{FINGERPRINT}\",\"choices\":[")
                .as_bytes(),
        );
        Self {
            out: Out::default(),
            before,
            after: if include_usage {
                "],\"usage\":null}\n\n"
            } else {
                "]}\n\n"
            },
            ids: ids.into_iter(),
            calls: 0,
            chunk: answer.chunk,
            include_usage,
            usage: context.usage(answer),
            ended: false,
        }
    }

    fn write(mut self, answer: &Answer) -> Rendered {
        self.head(answer);
        for part in &answer.parts {
            self.part(part);
            if self.ended {
                return self.out.finish();
            }
        }
        self.tail(answer);
        self.out.finish()
    }

    fn head(&mut self, answer: &Answer) {
        let content = if answer.begins_with_calls() {
            Value::Null
        } else {
            "".into()
        };
        let delta = json!({"role": "assistant", "content": content, "refusal": null});
        self.delta(&delta, MarkKind::Event);
    }

    fn tail(&mut self, answer: &Answer) {
        if let Some(word) = finish_word(answer) {
            self.chunk("{}", Some(word), MarkKind::Tail);
        }
        if self.include_usage
            && let Some(cost) = self.usage
        {
            self.out.bytes.extend_from_slice(&self.before);
            self.out.push("],\"usage\":");
            self.out.push(&usage(&cost).to_string());
            self.out.push("}\n\n");
            self.out.mark(MarkKind::Tail);
        }
        self.out.push("data: [DONE]\n\n");
        self.out.mark(MarkKind::Tail);
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Text(text) => self.texts("content", &text.pieces(self.chunk)),
            Part::Refusal(text) => self.texts("refusal", &text.pieces(self.chunk)),
            Part::Reasoning(reasoning) => self.reasoning(reasoning),
            Part::Calls(calls) => self.calls(calls),
            Part::Error(error) => {
                let body = error_body(error);
                self.out.push(&format!("data: {body}\n\n"));
                self.out.mark(MarkKind::Event);
                self.ended = true;
            }
            Part::Keepalive(Keepalive::Ping) => self.comment("keep-alive"),
            Part::Keepalive(Keepalive::Comment(text)) => self.comment(text),
            Part::Pause(time) => self.out.mark(MarkKind::Pause(*time)),
            Part::Gate(name) => self.out.mark(MarkKind::Gate(name.as_str().into())),
            Part::Bytes(bytes) => {
                self.out.push(bytes);
                self.out.mark(MarkKind::Event);
            }
        }
    }

    fn comment(&mut self, text: &str) {
        self.out.push(&format!(": {text}\n\n"));
        self.out.mark(MarkKind::Event);
    }

    /// The real service shows no thinking on this wire.
    fn reasoning(&mut self, _reasoning: &Reasoning) {}

    fn texts(&mut self, member: &str, pieces: &[&str]) {
        let mut delta = Vec::with_capacity(64);
        for piece in pieces {
            delta.clear();
            delta.push(b'{');
            json_string(&mut delta, member);
            delta.push(b':');
            json_string(&mut delta, piece);
            delta.push(b'}');
            self.raw_chunk(&delta, None, MarkKind::Token);
        }
    }

    fn calls(&mut self, calls: &Calls) {
        let mut open = Vec::new();
        for call in &calls.list {
            let index = self.calls;
            self.calls += 1;
            let id = self.ids.next().unwrap_or_default();
            self.open_call(index, &id, call);
            let pieces = argument_pieces(call, self.chunk);
            if calls.interleave {
                open.push((index, call.custom, pieces));
            } else {
                for piece in pieces {
                    self.call_piece(index, call.custom, &piece);
                }
            }
        }
        let rounds = open
            .iter()
            .map(|(.., pieces)| pieces.len())
            .max()
            .unwrap_or(0);
        for round in 0..rounds {
            for (index, custom, pieces) in &open {
                if let Some(piece) = pieces.get(round) {
                    self.call_piece(*index, *custom, piece);
                }
            }
        }
    }

    fn open_call(&mut self, index: usize, id: &str, call: &Call) {
        let entry = if call.custom {
            json!({"index": index, "id": id, "type": "custom",
                   "custom": {"name": call.name, "input": ""}})
        } else {
            json!({"index": index, "id": id, "type": "function",
                   "function": {"name": call.name, "arguments": ""}})
        };
        self.delta(&json!({"tool_calls": [entry]}), MarkKind::Token);
    }

    fn call_piece(&mut self, index: usize, custom: bool, piece: &str) {
        let entry = if custom {
            json!({"index": index, "custom": {"input": piece}})
        } else {
            json!({"index": index, "function": {"arguments": piece}})
        };
        self.delta(&json!({"tool_calls": [entry]}), MarkKind::Token);
    }

    fn delta(&mut self, delta: &Value, kind: MarkKind) {
        self.chunk(&delta.to_string(), None, kind);
    }

    fn chunk(&mut self, delta: &str, finish: Option<&str>, kind: MarkKind) {
        self.raw_chunk(delta.as_bytes(), finish, kind);
    }

    fn raw_chunk(&mut self, delta: &[u8], finish: Option<&str>, kind: MarkKind) {
        self.out.bytes.extend_from_slice(&self.before);
        self.out.push("{\"index\":0,\"delta\":");
        self.out.bytes.extend_from_slice(delta);
        self.out.push(",\"logprobs\":null,\"finish_reason\":");
        match finish {
            None => self.out.push("null"),
            Some(word) => json_string(&mut self.out.bytes, word),
        }
        self.out.push("}");
        self.out.push(self.after);
        self.out.mark(kind);
    }
}

/// The pieces in which a call's arguments are streamed.
pub(super) fn argument_pieces(call: &Call, chunk: crate::script::Chunking) -> Vec<String> {
    if call.pieces.is_empty() {
        chunk
            .cut(&call.text())
            .into_iter()
            .map(str::to_owned)
            .collect()
    } else {
        call.pieces.clone()
    }
}

/// Writes the list of models, or one of them; `None` when there is no such model.
pub fn models(models: &[String], id: Option<&str>, created: u64) -> Option<Response> {
    let entry =
        |id: &str| json!({"id": id, "object": "model", "created": created, "owned_by": "turnwire"});
    let body = match id {
        Some(id) => entry(models.iter().find(|model| *model == id)?),
        None => {
            let data: Vec<Value> = models.iter().map(|id| entry(id)).collect();
            json!({"object": "list", "data": data})
        }
    };
    Some(Response {
        status: 200,
        headers: common_headers("application/json", "req_models".to_owned()),
        stream: false,
        body: Rendered::whole(body.to_string().into_bytes()),
    })
}

/// Writes an error status.
pub fn error(error: &ErrorReply, context: &mut Context<'_>) -> Response {
    Response {
        status: error.status,
        headers: common_headers("application/json", context.ids.id("req_", 32)),
        stream: false,
        body: Rendered::whole(error_body(error).to_string().into_bytes()),
    }
}

/// The body of an error, in the service's usual words for its status.
fn error_body(error: &ErrorReply) -> Value {
    let (kind, code, message) = usual(error.status);
    let code = error.code.as_deref().or(code);
    json!({"error": {
        "message": error.message.as_deref().unwrap_or(message),
        "type": error.kind.as_deref().unwrap_or(kind),
        "param": error.param,
        "code": code,
    }})
}

/// Type, code and message of a status, from the service's table of error codes.
const fn usual(status: u16) -> (&'static str, Option<&'static str>, &'static str) {
    match status {
        401 => (
            "invalid_request_error",
            Some("invalid_api_key"),
            "Incorrect API key provided.",
        ),
        403 => (
            "permission_error",
            None,
            "You do not have access to this resource.",
        ),
        404 => (
            "invalid_request_error",
            Some("model_not_found"),
            "The model does not exist.",
        ),
        413 => ("invalid_request_error", None, "The request is too large."),
        429 => (
            "rate_limit_error",
            Some("rate_limit_exceeded"),
            "Rate limit reached.",
        ),
        503 => (
            "service_unavailable_error",
            Some("slow_down"),
            "The server is overloaded.",
        ),
        500.. => (
            "server_error",
            None,
            "The server had an error while processing your request.",
        ),
        _ => ("invalid_request_error", None, "The request is invalid."),
    }
}

impl Part {
    /// Tokens of the part, as the mock counts them.
    pub(crate) fn tokens(&self) -> u64 {
        match self {
            Self::Text(text) | Self::Refusal(text) => tokens_in(&text.whole()),
            Self::Reasoning(reasoning) => reasoning
                .text
                .iter()
                .map(|text| tokens_in(&text.whole()))
                .sum(),
            Self::Calls(calls) => calls
                .list
                .iter()
                .map(|call| tokens_in(&call.name) + tokens_in(&call.text()))
                .sum(),
            _ => 0,
        }
    }
}

impl Answer {
    /// Whether the model calls something.
    pub(crate) fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Calls(_)))
    }

    /// Whether a call comes before any text.
    pub(crate) fn begins_with_calls(&self) -> bool {
        let first = self
            .parts
            .iter()
            .find(|part| matches!(part, Part::Text(_) | Part::Refusal(_) | Part::Calls(_)));
        matches!(first, Some(Part::Calls(_)))
    }

    /// The error in the middle of it.
    pub(crate) fn error(&self) -> Option<&ErrorReply> {
        self.parts.iter().find_map(|part| match part {
            Part::Error(error) => Some(error),
            _ => None,
        })
    }
}
