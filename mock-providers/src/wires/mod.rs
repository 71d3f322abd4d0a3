//! The wires: reading requests and writing answers, one file or folder a wire.
//!
//! - [`route`]: which path asks for what; `cors`: what pages of other origins may do.
//! - one module a wire: `read` (a request's conversation), `answer`, `error`, `models`.
//! - [`parts`](self): what writing an answer's parts has in common.
//! - [`out`], `edits`, `framing`: from events to bytes with marks.
//! - `signatures`: signed and encrypted thinking that the mock knows again.
//!
//! They are pure: values in, bytes and marks out. What is sent when is `faults`, what a request may
//! not say is `verify`.

pub mod anthropic_messages;
pub(crate) mod cors;
pub(crate) mod dates;
mod edits;
pub(crate) mod errors;
mod framing;
pub mod gemini;
pub mod openai_chat;
pub mod openai_responses;
pub mod out;
mod parts;
pub mod route;
pub mod signatures;

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use turnwire_spec::llm::Wire;

use crate::ids::Ids;
use crate::matching::Talk;
use crate::script::{Answer, Body, ErrorReply, Part, RawReply, Usage, UsagePlan};
use openai_responses::Stored;
use out::{Frames, MarkKind, Rendered};
use route::{Form, Target};
use signatures::Signer;

/// A response before anything went wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// Whether the body is a stream, without a length known beforehand.
    pub stream: bool,
    /// The body.
    pub body: Rendered,
}

/// What an answer needs to know besides the script.
#[derive(Debug)]
pub struct Context<'a> {
    /// The wire.
    pub wire: Wire,
    /// The request's conversation.
    pub talk: &'a Talk<'a>,
    /// The request's body.
    pub request: &'a Value,
    /// The form of the answer: never [`Form::AsBody`].
    pub form: Form,
    /// The time of the answer, Unix seconds; a constant, so that answers are the same in every run.
    pub created: u64,
    pub(crate) ids: Ids,
    /// The id of the request, once it was needed: a body and its headers say the same.
    request_id: Option<String>,
    pub(crate) signer: Signer,
    /// What writing the answer made that is to be kept.
    pub(crate) made: Made,
}

/// What an answer leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// The stored answer of the Responses wire.
    pub(crate) stored: Option<Stored>,
    /// Items, each with the thinking that came with it: signatures, or ids of reasoning items.
    pub(crate) thinking: Vec<(String, Vec<String>)>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(target: &Target, talk: &'a Talk<'a>, request: &'a Value, ids: Ids) -> Self {
        let form = match target.form {
            Form::AsBody if talk.stream => Form::Events,
            Form::AsBody => Form::Plain,
            form => form,
        };
        Self {
            wire: target.wire,
            talk,
            request,
            form,
            created: crate::mock::CREATED,
            ids,
            request_id: None,
            signer: Signer::default(),
            made: Made::default(),
        }
    }

    /// The id of the request, the same whenever it is asked for.
    fn request_id(&mut self) -> String {
        let ids = &mut self.ids;
        let id = self.request_id.get_or_insert_with(|| ids.id("req_", 24));
        id.clone()
    }

    /// The model that answers.
    fn model<'b>(&'b self, answer: &'b Answer) -> &'b str {
        answer.model.as_deref().unwrap_or(&self.talk.model)
    }

    /// What the answer cost; `None` when nothing is to be said.
    fn usage(&self, answer: &Answer) -> Option<Usage> {
        match answer.usage {
            UsagePlan::Absent => None,
            UsagePlan::Exact(usage) => Some(usage),
            UsagePlan::Counted => Some(counted(self.talk, answer)),
        }
    }

    /// Applies the script's edits and framing.
    fn render(&self, mut frames: Frames, answer: &Answer, house: framing::House) -> Rendered {
        if !answer.edits.is_empty() {
            edits::apply(&mut frames, &answer.edits);
        }
        framing::render(&frames, self.form, &answer.framing, house)
    }
}

/// Tokens as the mock counts them: one for every four characters, rounded up.
pub fn tokens_in(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// Tokens of an image, as the mock counts them.
const IMAGE_TOKENS: u64 = 256;

/// Tokens of a request's texts and images.
pub fn input_tokens(talk: &Talk<'_>) -> u64 {
    let turns: u64 = talk
        .turns
        .iter()
        .map(|turn| {
            let results: u64 = turn
                .results
                .iter()
                .map(|result| tokens_in(&result.text))
                .sum();
            tokens_in(&turn.text) + results + IMAGE_TOKENS * turn.images as u64
        })
        .sum();
    turns + talk.system.iter().map(|text| tokens_in(text)).sum::<u64>()
}

fn counted(talk: &Talk<'_>, answer: &Answer) -> Usage {
    let mut usage = Usage {
        input: input_tokens(talk),
        ..Usage::default()
    };
    for part in &answer.parts {
        usage.output += part.tokens();
        if let Part::Reasoning(_) = part {
            usage.reasoning += part.tokens();
        }
    }
    usage
}

/// Reads a request's conversation.
pub fn read<'a>(target: &'a Target, body: &'a Value) -> Talk<'a> {
    let mut talk = match target.wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => openai_chat::read(body),
        Wire::OpenaiResponses => openai_responses::read(body),
        Wire::AnthropicMessages => anthropic_messages::read(body),
        Wire::Gemini => gemini::read(body),
    };
    if let Some(model) = &target.model {
        talk.model = Cow::Borrowed(model);
    }
    match target.form {
        Form::AsBody => {}
        form => talk.stream = form != Form::Plain,
    }
    talk
}

/// Writes what a reply says. Bytes for the socket are no response: they give an empty one.
pub fn write(body: &Body, context: &mut Context<'_>) -> Response {
    match body {
        Body::Answer(answer) => write_answer(answer, context),
        Body::Error(error) => write_error(error, context),
        Body::Raw(raw) => write_raw(raw),
        Body::Socket(_) => write_raw(&RawReply::default()),
    }
}

fn write_answer(answer: &Answer, context: &mut Context<'_>) -> Response {
    if context.form == Form::Plain
        && let Some(error) = answer.error()
    {
        return write_error(error, context);
    }
    match context.wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => openai_chat::answer(answer, context),
        Wire::OpenaiResponses => openai_responses::answer(answer, context),
        Wire::AnthropicMessages => anthropic_messages::answer(answer, context),
        Wire::Gemini => gemini::answer(answer, context),
    }
}

/// Writes an error status in the wire's words.
pub fn write_error(error: &ErrorReply, context: &mut Context<'_>) -> Response {
    errors::status(error, context)
}

/// Writes the number of tokens of a request. Gemini refuses to count nothing.
pub fn count(context: &mut Context<'_>) -> Response {
    if context.wire == Wire::Gemini && gemini::contents(context.request).is_empty() {
        return write_error(&gemini::nothing_to_count(), context);
    }
    let count = input_tokens(context.talk);
    let body = match context.wire {
        Wire::AnthropicMessages => serde_json::json!({"input_tokens": count}),
        Wire::Gemini => gemini::token_count(count),
        Wire::OpenaiResponses | Wire::OpenaiChat | Wire::GeminiOpenai => {
            serde_json::json!({"object": "response.input_tokens", "input_tokens": count})
        }
    };
    json_response(200, &body, context)
}

/// Writes the list of models, or one of them; `None` when there is no such model. A page that cannot be is refused.
pub fn models(
    models: &[String],
    id: Option<&str>,
    query: Option<&str>,
    context: &mut Context<'_>,
) -> Option<Response> {
    let refusal = match context.wire {
        _ if id.is_some() => None,
        Wire::AnthropicMessages => anthropic_messages::page_refusal(query),
        Wire::Gemini => gemini::page_refusal(models, query),
        Wire::OpenaiChat | Wire::OpenaiResponses | Wire::GeminiOpenai => None,
    };
    if let Some(error) = refusal {
        return Some(write_error(&error, context));
    }
    let body = match context.wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => openai_chat::models(models, id, "", context),
        Wire::GeminiOpenai => openai_chat::models(models, id, "models/", context),
        Wire::AnthropicMessages => anthropic_messages::models(models, id, query, context),
        Wire::Gemini => gemini::models(models, id, query),
    }?;
    Some(json_response(200, &body, context))
}

/// A response with this JSON as its body and the wire's usual headers.
pub(crate) fn json_response(status: u16, body: &Value, context: &mut Context<'_>) -> Response {
    Response {
        status,
        headers: headers(JSON, status, context),
        stream: false,
        // A value always serializes, and faster so than by its `Display`.
        body: Rendered::whole(serde_json::to_vec(body).unwrap_or_default()),
    }
}

pub(crate) const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";
const PLAIN_EVENTS: &str = "text/event-stream";

/// The content type of an answer in this form.
fn content_type(context: &Context<'_>) -> &'static str {
    match context.form {
        Form::Events if matches!(context.wire, Wire::Gemini | Wire::GeminiOpenai) => PLAIN_EVENTS,
        Form::Events => EVENTS,
        Form::AsBody | Form::Plain | Form::Array => JSON,
    }
}

/// The usual headers of a wire.
fn headers(content_type: &'static str, status: u16, context: &mut Context<'_>) -> HeaderMap {
    let limited = status == 429;
    let mut headers = match context.wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => openai_chat::usual_headers(limited),
        _ => HeaderMap::with_capacity(12),
    };
    let request_id = context.request_id();
    if headers.is_empty() || content_type != JSON {
        put(&mut headers, "content-type", content_type);
    }
    if content_type.starts_with(PLAIN_EVENTS) {
        put(&mut headers, "cache-control", "no-cache");
    }
    match context.wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => {
            put_id(&mut headers, X_REQUEST_ID, request_id);
        }
        Wire::AnthropicMessages => {
            anthropic_messages::put_headers(&mut headers, limited, context.created);
            put_id(&mut headers, REQUEST_ID, request_id);
        }
        Wire::Gemini | Wire::GeminiOpenai => {
            put(&mut headers, "server", "scaffolding on HTTPServer2");
            put(&mut headers, "vary", "Origin, X-Origin, Referer");
        }
    }
    headers
}

/// Sets a header that is known beforehand.
pub(crate) fn put(headers: &mut HeaderMap, name: &'static str, value: &'static str) {
    headers.insert(
        HeaderName::from_static(name),
        HeaderValue::from_static(value),
    );
}

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Sets a header to an id; ids are letters and digits.
fn put_id(headers: &mut HeaderMap, name: HeaderName, id: String) {
    if let Ok(value) = HeaderValue::try_from(id) {
        headers.insert(name, value);
    }
}

/// Sets a header; a value that HTTP cannot carry is left out.
pub(crate) fn put_text(headers: &mut HeaderMap, name: &str, value: impl Into<String>) {
    if let (Ok(name), Ok(value)) = (
        HeaderName::try_from(name),
        HeaderValue::try_from(value.into()),
    ) {
        headers.insert(name, value);
    }
}

fn write_raw(raw: &RawReply) -> Response {
    let mut bytes = Vec::new();
    let mut marks = Vec::new();
    let tail = crate::script::transport::hex_bytes(&raw.hex);
    let pieces = raw.body.iter().map(|piece| piece.as_bytes());
    for piece in pieces.chain(Some(tail.as_slice()).filter(|tail| !tail.is_empty())) {
        bytes.extend_from_slice(piece);
        marks.push(out::Mark {
            end: bytes.len(),
            kind: MarkKind::Token,
        });
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &raw.headers {
        put_text(&mut headers, name, value.clone());
    }
    let events = headers
        .get(http::header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(PLAIN_EVENTS.as_bytes()));
    let stream = events || marks.len() > 1;
    Response {
        status: raw.status,
        headers,
        stream,
        body: Rendered {
            bytes: bytes.into(),
            marks,
        },
    }
}
