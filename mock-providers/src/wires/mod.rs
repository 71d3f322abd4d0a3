//! The wires: reading requests and writing answers, one file a wire.
//!
//! Each wire module has `read` (a request's conversation), `answer` (an answer of the model, plain or
//! streamed) and `error` (an error status in the service's words). They are pure: bytes in, bytes and
//! marks out. Which path belongs to which wire is [`route`]; what is sent when is `faults`.

pub mod openai_chat;
pub mod out;

use std::borrow::Cow;

use serde_json::Value;
use turnwire_spec::llm::Wire;

use crate::ids::Ids;
use crate::matching::Talk;
use crate::script::errors::RetryAfterForm;
use crate::script::{Answer, Body, ErrorReply, RawReply, RetryAfter, Usage, UsagePlan};
use out::{MarkKind, Out, Rendered};

/// What a path asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Route {
    /// An answer of a model.
    Generate(Wire),
    /// The list of models, or one of them.
    Models(Wire, Option<String>),
    /// Nothing that this server has.
    Unknown,
}

/// Finds what a method and a path ask for; with or without a version in front, with or without a
/// slash at the end.
pub fn route(method: &str, path: &str) -> Route {
    let path = path.trim_end_matches('/');
    let gemini = path.starts_with("/v1beta/openai");
    let chat = if gemini {
        Wire::GeminiOpenai
    } else {
        Wire::OpenaiChat
    };
    if method == "POST" && path.ends_with("/chat/completions") {
        return Route::Generate(chat);
    }
    if method == "GET" && path.ends_with("/models") {
        return Route::Models(chat, None);
    }
    if method == "GET"
        && let Some((_, id)) = path.split_once("/models/")
    {
        return Route::Models(chat, Some(id.to_owned()));
    }
    Route::Unknown
}

/// A response before anything went wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(Cow<'static, str>, String)>,
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
    /// The time of the answer, Unix seconds; a constant, so that answers are the same in every run.
    pub created: u64,
    pub(crate) ids: Ids,
}

impl<'a> Context<'a> {
    /// A context whose ids derive from `seed`.
    pub fn new(wire: Wire, talk: &'a Talk<'a>, request: &'a Value, seed: u64) -> Self {
        Self {
            wire,
            talk,
            request,
            created: crate::mock::CREATED,
            ids: Ids::new(seed, "", 0),
        }
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
}

/// Tokens as the mock counts them: one for every four characters, rounded up.
pub fn tokens_in(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// Tokens of a request's texts.
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
            tokens_in(&turn.text) + results + 256 * turn.images as u64
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
        if let crate::script::Part::Reasoning(_) = part {
            usage.reasoning += part.tokens();
        }
    }
    usage
}

/// Reads a request's conversation.
pub fn read<'a>(wire: Wire, body: &'a Value) -> Talk<'a> {
    match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => openai_chat::read(body),
        Wire::OpenaiResponses | Wire::AnthropicMessages | Wire::Gemini => Talk::default(),
    }
}

/// Writes what a reply says.
pub fn write(body: &Body, context: &mut Context<'_>) -> Response {
    match body {
        Body::Answer(answer) => write_answer(answer, context),
        Body::Error(error) => write_error(error, context),
        Body::Raw(raw) => write_raw(raw),
    }
}

fn write_answer(answer: &Answer, context: &mut Context<'_>) -> Response {
    if !context.talk.stream
        && let Some(error) = answer.error()
    {
        return write_error(error, context);
    }
    openai_chat::answer(answer, context)
}

/// Writes an error status in the wire's words.
pub fn write_error(error: &ErrorReply, context: &mut Context<'_>) -> Response {
    let mut response = openai_chat::error(error, context);
    if let Some(body) = &error.body {
        let text = match body {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        if text.trim_start().starts_with('<') {
            set_header(&mut response.headers, "content-type", "text/html");
        }
        response.body = Rendered::whole(text.into_bytes());
    }
    add_retry_after(&mut response, error.retry_after.as_ref());
    response
}

fn write_raw(raw: &RawReply) -> Response {
    let mut out = Out::default();
    for piece in &raw.body {
        out.bytes.extend_from_slice(piece.as_bytes());
        out.mark(MarkKind::Token);
    }
    let tail = crate::script::transport::hex_bytes(&raw.hex);
    if !tail.is_empty() {
        out.bytes.extend_from_slice(&tail);
        out.mark(MarkKind::Token);
    }
    let headers: Vec<_> = raw
        .headers
        .iter()
        .map(|(name, value)| (Cow::Owned(name.to_ascii_lowercase()), value.clone()))
        .collect();
    let stream = !headers.iter().any(|(name, _)| name == "content-length") && raw.body.len() != 1
        || headers
            .iter()
            .any(|(_, value)| value.starts_with("text/event-stream"));
    Response {
        status: raw.status,
        headers,
        stream,
        body: out.finish(),
    }
}

fn add_retry_after(response: &mut Response, retry_after: Option<&RetryAfter>) {
    let (name, value) = match retry_after {
        None => return,
        Some(RetryAfter::Seconds(seconds)) => ("retry-after", seconds.to_string()),
        Some(RetryAfter::Other(RetryAfterForm::Millis(millis))) => {
            ("retry-after-ms", millis.to_string())
        }
        Some(RetryAfter::Other(RetryAfterForm::Literal(text))) => ("retry-after", text.clone()),
        Some(RetryAfter::Other(RetryAfterForm::DateIn(seconds))) => {
            ("retry-after", out::http_date_in(u64::from(*seconds)))
        }
    };
    set_header(&mut response.headers, name, value);
}

/// Sets a header, replacing one of the same name.
pub(crate) fn set_header(
    headers: &mut Vec<(Cow<'static, str>, String)>,
    name: &str,
    value: impl Into<String>,
) {
    headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
    headers.push((Cow::Owned(name.to_ascii_lowercase()), value.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_with_and_without_version_and_slash() {
        for path in [
            "/v1/chat/completions",
            "/chat/completions",
            "/v1/chat/completions/",
        ] {
            assert_eq!(
                route("POST", path),
                Route::Generate(Wire::OpenaiChat),
                "{path}"
            );
        }
        assert_eq!(
            route("POST", "/v1beta/openai/chat/completions"),
            Route::Generate(Wire::GeminiOpenai)
        );
        assert_eq!(
            route("GET", "/v1/models"),
            Route::Models(Wire::OpenaiChat, None)
        );
        assert_eq!(
            route("GET", "/v1/models/org/m"),
            Route::Models(Wire::OpenaiChat, Some("org/m".into()))
        );
        assert_eq!(route("GET", "/v1/chat/completions"), Route::Unknown);
    }
}
