//! OpenAI Chat Completions, and Gemini's endpoint that imitates it: requests read, answers written.
//!
//! - `plain`: the answer as one object.
//! - `stream`: the answer as chunks.

mod plain;
mod stream;

use std::borrow::Cow;
use std::sync::LazyLock;

use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use turnwire_spec::llm::Wire;

use super::framing::House;
use super::out::Members;
use super::route::Form;
use super::signatures::{Signer, call_text};
use super::{Context, JSON, Response, X_REQUEST_ID, content_type, headers, put};
use crate::matching::{Speaker, Talk, ToolResult, Turn};
use crate::script::{
    Answer, Call, Finish, LineEnd, Part, ReasoningField, ToolArgs, ToolIndex, Usage, Variation,
};
use crate::verify::shape::{items, member};

/// How the services frame their events.
const HOUSE: House = House {
    line_end: LineEnd::Lf,
    event_lines: false,
};

/// Reads a request's conversation.
pub fn read(body: &Value) -> Talk<'_> {
    let mut talk = Talk {
        model: member(body, "model").as_str().unwrap_or_default().into(),
        stream: member(body, "stream").as_bool().unwrap_or(false),
        tools: tool_names(body),
        ..Talk::default()
    };
    let messages = items(member(body, "messages"));
    for message in messages {
        let (text, images) = content(member(message, "content"));
        let mut turn = Turn {
            speaker: Speaker::User,
            text,
            images,
            results: Vec::new(),
        };
        match member(message, "role").as_str() {
            Some("system" | "developer") => {
                talk.system.push(turn.text);
                continue;
            }
            Some("assistant") => turn.speaker = Speaker::Assistant,
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                turn.results.push(ToolResult {
                    id: id.into(),
                    name: name_of_call(messages, id).into(),
                    text: std::mem::take(&mut turn.text),
                });
            }
            _ => {}
        }
        talk.turns.push(turn);
    }
    talk
}

fn tool_names(body: &Value) -> Vec<&str> {
    items(member(body, "tools"))
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
    let dialect = Dialect::of(answer, context);
    let stream = context.form != Form::Plain;
    let frames = if stream {
        stream::write(answer, context, &dialect)
    } else {
        plain::write(answer, context, &dialect)
    };
    let body = context.render(frames, answer, HOUSE);
    Response {
        status: 200,
        headers: headers(content_type(context), 200, context),
        stream,
        body,
    }
}

/// The headers of the OpenAI wires.
pub(super) fn usual_headers(limited: bool) -> HeaderMap {
    // Made once: naming and hashing each of them again costs more than the copy.
    static USUAL: [LazyLock<HeaderMap>; 2] = [
        LazyLock::new(|| made_headers(false)),
        LazyLock::new(|| made_headers(true)),
    ];
    let [usual, when_limited] = &USUAL;
    HeaderMap::clone(if limited { when_limited } else { usual })
}

fn made_headers(limited: bool) -> HeaderMap {
    let remaining = |usual| if limited { "0" } else { usual };
    let reset = |usual, when_limited| if limited { when_limited } else { usual };
    let list = [
        // First on the wire; an answer of another type says so.
        ("content-type", JSON),
        ("openai-organization", "org-turnwire"),
        ("openai-version", "2020-10-01"),
        ("openai-processing-ms", "5"),
        ("x-ratelimit-limit-requests", "10000"),
        ("x-ratelimit-limit-tokens", "2000000"),
        ("x-ratelimit-remaining-requests", remaining("9999")),
        ("x-ratelimit-remaining-tokens", remaining("1999000")),
        ("x-ratelimit-reset-requests", reset("6ms", "6m0s")),
        ("x-ratelimit-reset-tokens", reset("12ms", "1s")),
    ];
    let mut headers = HeaderMap::with_capacity(16);
    for (name, value) in list {
        put(&mut headers, name, value);
    }
    // A place for the one that every answer has of its own: a copy that grew would be copied again.
    headers.insert(X_REQUEST_ID, HeaderValue::from_static(""));
    headers
}

/// Writes the list of models, or one of them.
pub fn models(
    models: &[String],
    id: Option<&str>,
    prefix: &str,
    context: &Context<'_>,
) -> Option<Value> {
    let entry = |id: &str| {
        json!({"id": format!("{prefix}{id}"), "object": "model", "created": context.created,
               "owned_by": "turnwire"})
    };
    Some(match id {
        Some(id) => {
            let id = id.strip_prefix(prefix).unwrap_or(id);
            entry(models.iter().find(|model| *model == id)?)
        }
        None => {
            let data: Vec<Value> = models.iter().map(|id| entry(id)).collect();
            json!({"object": "list", "data": data})
        }
    })
}

/// What the plain and the streamed form of one answer share.
struct Dialect {
    id: String,
    call_ids: Vec<String>,
    variation: Variation,
    /// Gemini's endpoint.
    gemini: bool,
    signer: Signer,
}

impl Dialect {
    fn of(answer: &Answer, context: &mut Context<'_>) -> Self {
        let gemini = context.wire == Wire::GeminiOpenai;
        let prefix = if gemini { "" } else { "chatcmpl-" };
        let id = answer
            .id
            .clone()
            .unwrap_or_else(|| context.ids.id(prefix, 29));
        let mut variation = answer.variation.clone();
        if gemini && variation == Variation::default() {
            variation.tool_args = ToolArgs::Whole;
            variation.tool_index = ToolIndex::Zero;
            variation.reasoning_field = ReasoningField::ThoughtTags;
        }
        let long = variation.tool_id == crate::script::ToolId::Long;
        let calls = answer.parts.iter().filter_map(|part| match part {
            Part::Calls(calls) => Some(&calls.list),
            _ => None,
        });
        let mut call_ids = Vec::new();
        for call in calls.flatten() {
            call_ids.push(call.id.clone().unwrap_or_else(|| match (gemini, long) {
                (true, _) => context.ids.id("function-call-", 19),
                (_, true) => context.ids.id("chatcmpl-tool-", 64),
                _ => context.ids.id("call_", 24),
            }));
        }
        Self {
            id,
            call_ids,
            variation,
            gemini,
            signer: context.signer,
        }
    }

    /// Gemini's signature of the answer's first call, as `extra_content`.
    fn extra_content(&self, call: &Call, first: bool) -> Option<Value> {
        let signature = match &call.signature {
            Some(signature) => signature.clone(),
            None if self.gemini && first => sign_call(self.signer, call),
            None => return None,
        };
        Some(json!({"google": {"thought_signature": signature}}))
    }
}

/// Gemini's signature of a call.
pub(super) fn sign_call(signer: Signer, call: &Call) -> String {
    let arguments = serde_json::from_str(&call.text()).unwrap_or_default();
    signer.sign(GEMINI_CALL, &call_text(&call.name, &arguments))
}

/// What Gemini signs.
pub(crate) const GEMINI_CALL: &str = "gemini call";

/// The wire's word for why an answer ends; `None` for never said.
fn finish_word(answer: &Answer, gemini: bool) -> Option<&str> {
    Some(match &answer.finish {
        Some(Finish::Absent) => return None,
        Some(Finish::Word(word)) => word,
        Some(Finish::Length | Finish::Context) => "length",
        Some(Finish::Calls) => "tool_calls",
        Some(Finish::Filter | Finish::PromptBlocked(_)) => "content_filter",
        // Gemini's models do not say that they refuse; they are stopped.
        Some(Finish::Refusal) if gemini => "content_filter",
        None if gemini && answer.has_refusal() => "content_filter",
        Some(Finish::Stop | Finish::Refusal | Finish::StopSequence(_) | Finish::Pause) => "stop",
        None if answer.has_calls() => "tool_calls",
        None => "stop",
    })
}

/// Writes the usage object. Gemini's endpoint leaves thinking out of `completion_tokens`, and tells no details.
fn write_usage(mut all: Members<'_>, usage: &Usage, gemini: bool) {
    let thinking = if gemini { usage.reasoning } else { 0 };
    all.number("prompt_tokens", usage.input);
    all.number("completion_tokens", usage.output.saturating_sub(thinking));
    all.number(
        "total_tokens",
        usage.total.unwrap_or(usage.input + usage.output),
    );
    if !gemini {
        let mut prompt = all.object("prompt_tokens_details");
        prompt.number("cached_tokens", usage.cached);
        prompt.number("cache_write_tokens", usage.cache_write);
        prompt.json("audio_tokens", b"0");
        prompt.close();
        let mut completion = all.object("completion_tokens_details");
        completion.number("reasoning_tokens", usage.reasoning);
        let none =
            b"\"audio_tokens\":0,\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0";
        completion.written(none);
        completion.close();
    }
    all.close();
}

/// The usage object, as JSON.
fn usage(usage: &Usage, gemini: bool) -> Vec<u8> {
    let mut json = Vec::with_capacity(256);
    write_usage(Members::open(&mut json), usage, gemini);
    json
}

/// The `system_fingerprint` of every answer.
const FINGERPRINT: &str = "fp_7475726e77";

/// Members that nobody knows.
fn unknown_members() -> Value {
    json!({"note": "é", "list": [1, {"deep": null}], "rate": 0.5})
}

/// How many answers are asked for; at most eight.
fn choices(context: &Context<'_>) -> u64 {
    member(context.request, "n")
        .as_u64()
        .unwrap_or(1)
        .clamp(1, 8)
}
