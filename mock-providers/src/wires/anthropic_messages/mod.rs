//! Anthropic Messages: requests read, answers written.
//!
//! The plain answer is what the events of the stream add up to, so both come from the same `stream`.

mod stream;

use std::borrow::Cow;

use http::HeaderMap;
use serde_json::{Value, json};

use super::dates::rfc3339;
use super::framing::House;
use super::out::{Frames, MarkKind};
use super::route::Form;
use super::{Context, Response, content_type, headers, put, put_text};
use crate::matching::{Speaker, Talk, ToolResult, Turn};
use crate::script::{Answer, ErrorReply, Finish, LineEnd, Usage};

/// How the service frames its events.
const HOUSE: House = House {
    line_end: LineEnd::Lf,
    event_lines: true,
};

/// Reads a request's conversation.
pub fn read(body: &Value) -> Talk<'_> {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let mut talk = Talk {
        model: body["model"].as_str().unwrap_or_default().into(),
        stream: body["stream"].as_bool().unwrap_or(false),
        tools: tools
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect(),
        ..Talk::default()
    };
    if !body["system"].is_null() {
        talk.system.push(text_of(&body["system"]));
    }
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    for message in messages {
        let content = &message["content"];
        let speaker = match message["role"].as_str() {
            Some("system") => {
                talk.system.push(text_of(content));
                continue;
            }
            Some("assistant") => Speaker::Assistant,
            _ => Speaker::User,
        };
        let results = blocks(content)
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .map(|block| result(block, messages))
            .collect();
        let images = blocks(content)
            .iter()
            .filter(|block| block["type"] == "image")
            .count();
        push(
            Turn {
                speaker,
                text: text_of(content),
                images,
                results,
            },
            &mut talk,
        );
    }
    talk
}

/// Adds a message; messages of the model that follow each other are one turn.
fn push<'a>(turn: Turn<'a>, talk: &mut Talk<'a>) {
    match talk.turns.last_mut() {
        Some(last) if last.speaker == Speaker::Assistant && turn.speaker == Speaker::Assistant => {
            last.text = format!("{}\n{}", last.text, turn.text).into();
        }
        _ => talk.turns.push(turn),
    }
}

fn blocks(content: &Value) -> &[Value] {
    content.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a content: the text blocks, joined by newlines.
fn text_of(content: &Value) -> Cow<'_, str> {
    match content {
        Value::String(text) => text.as_str().into(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block["text"].as_str())
                .collect();
            texts.join("\n").into()
        }
        _ => "".into(),
    }
}

fn result<'a>(block: &'a Value, messages: &'a [Value]) -> ToolResult<'a> {
    let id = block["tool_use_id"].as_str().unwrap_or_default();
    let name = messages
        .iter()
        .flat_map(|message| blocks(&message["content"]))
        .find(|block| block["type"] == "tool_use" && block["id"] == id)
        .and_then(|block| block["name"].as_str())
        .unwrap_or_default();
    ToolResult {
        id: id.into(),
        name: name.into(),
        text: text_of(&block["content"]),
    }
}

/// Writes an answer, plain or streamed.
pub fn answer(answer: &Answer, context: &mut Context<'_>) -> Response {
    let (mut frames, message) = stream::write(answer, context);
    context.made.thinking = thinking(&message);
    let stream = context.form != Form::Plain;
    if !stream {
        frames = Frames::default();
        frames.event(None, &message.to_string(), MarkKind::Token);
    }
    let body = context.render(frames, answer, HOUSE);
    Response {
        status: 200,
        headers: headers(content_type(context), 200, context),
        stream,
        body,
    }
}

/// The calls of an answer, with the signatures of its thinking.
fn thinking(message: &Value) -> Vec<(String, Vec<String>)> {
    let signature = |block: &Value| match block["type"].as_str() {
        Some("thinking") => block["signature"].as_str().map(str::to_owned),
        Some("redacted_thinking") => block["data"].as_str().map(str::to_owned),
        _ => None,
    };
    let blocks = blocks(&message["content"]);
    let signatures: Vec<String> = blocks.iter().filter_map(signature).collect();
    let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
    let ids = calls.filter_map(|call| call["id"].as_str());
    let found = ids.map(|id| (id.to_owned(), signatures.clone()));
    found
        .filter(|(_, signatures)| !signatures.is_empty())
        .collect()
}

/// The headers of the wire.
pub(super) fn put_headers(headers: &mut HeaderMap, limited: bool, now: u64) {
    put(
        headers,
        "anthropic-organization-id",
        "00000000-0000-4000-8000-000000000000",
    );
    put(headers, "anthropic-ratelimit-requests-limit", "4000");
    put(
        headers,
        "anthropic-ratelimit-requests-remaining",
        if limited { "0" } else { "3999" },
    );
    put(headers, "anthropic-ratelimit-tokens-limit", "2400000");
    put(
        headers,
        "anthropic-ratelimit-tokens-remaining",
        if limited { "0" } else { "2399000" },
    );
    let reset = rfc3339(now + 60);
    put_text(headers, "anthropic-ratelimit-requests-reset", reset.clone());
    put_text(headers, "anthropic-ratelimit-tokens-reset", reset);
}

/// Items on a page, if the request does not say.
const PAGE: usize = 20;

/// Why there is no such page: it has 1 to 1000 models.
///
/// Source: PyPI anthropic 2.14.0, types/model_list_params; the words are those of the service's other numbers.
pub(super) fn page_refusal(query: Option<&str>) -> Option<ErrorReply> {
    let limit = super::gemini::query_value(query, "limit")?;
    let why = match limit.parse::<i64>() {
        Err(_) => "Input should be a valid integer, unable to parse string as an integer",
        Ok(..1) => "Input should be greater than or equal to 1",
        Ok(1001..) => "Input should be less than or equal to 1000",
        Ok(1..=1000) => return None,
    };
    Some(ErrorReply::new(400).message(format!("limit: {why}")))
}

/// Writes the list of models, or one of them.
pub fn models(
    models: &[String],
    id: Option<&str>,
    query: Option<&str>,
    context: &Context<'_>,
) -> Option<Value> {
    let created = rfc3339(context.created);
    let entry = |id: &String| {
        json!({"type": "model", "id": id, "display_name": id, "created_at": created,
               "lifecycle": "active", "max_input_tokens": 1_000_000, "max_tokens": 128_000})
    };
    if let Some(id) = id {
        return models.iter().find(|model| *model == id).map(entry);
    }
    let wanted = |name: &str| super::gemini::query_value(query, name);
    let limit = wanted("limit")
        .and_then(|limit| limit.parse().ok())
        .unwrap_or(PAGE);
    let place = |id: &str| models.iter().position(|model| model == id);
    let (from, to) = match (wanted("after_id"), wanted("before_id")) {
        (Some(id), _) => {
            let from = place(id).map_or(0, |at| at + 1);
            (from, models.len().min(from + limit))
        }
        (None, Some(id)) => {
            let to = place(id).unwrap_or(models.len());
            (to.saturating_sub(limit), to)
        }
        (None, None) => (0, models.len().min(limit)),
    };
    let page = models.get(from..to).unwrap_or_default();
    Some(json!({"data": page.iter().map(entry).collect::<Vec<_>>(),
        "has_more": if wanted("before_id").is_some() { from > 0 } else { to < models.len() },
        "first_id": page.first(), "last_id": page.last()}))
}

/// Stop reason, stop sequence and details; `None` for never said.
fn ending(answer: &Answer) -> Option<(&str, Value, Value)> {
    let plain = |reason| Some((reason, Value::Null, Value::Null));
    match &answer.finish {
        Some(Finish::Absent) => None,
        Some(Finish::Stop) => plain("end_turn"),
        Some(Finish::Length) => plain("max_tokens"),
        Some(Finish::Calls) => plain("tool_use"),
        Some(Finish::Pause) => plain("pause_turn"),
        Some(Finish::Context) => plain("model_context_window_exceeded"),
        Some(Finish::Word(word)) => plain(word),
        Some(Finish::StopSequence(text)) => {
            Some(("stop_sequence", text.as_str().into(), Value::Null))
        }
        Some(Finish::Filter | Finish::Refusal | Finish::PromptBlocked(_)) => refusal(),
        None if answer.has_refusal() => refusal(),
        None if answer.has_calls() => plain("tool_use"),
        None => plain("end_turn"),
    }
}

fn refusal() -> Option<(&'static str, Value, Value)> {
    let details = json!({"type": "refusal", "category": "general_harms",
        "explanation": "This request was declined."});
    Some(("refusal", Value::Null, details))
}

/// The usage object: the whole input is the sum of three counts. `output` is the output so far.
fn usage(usage: &Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached + usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output,
        "service_tier": "standard",
    })
}
