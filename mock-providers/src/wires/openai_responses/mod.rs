//! OpenAI Responses: requests read, answers written.
//!
//! The plain answer is the object that the last event of the stream carries, so both come from the
//! same `stream`.

mod stream;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::framing::House;
use super::out::{Frames, MarkKind, Rendered, What};
use super::route::Form;
use super::{Context, Response, content_type, framing, headers};
use crate::matching::{Speaker, Talk, ToolResult, Turn};
use crate::script::{Answer, Finish, Framing, LineEnd, Usage};

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
        system: body["instructions"]
            .as_str()
            .map(Cow::Borrowed)
            .into_iter()
            .collect(),
        tools: tools
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect(),
        turns: Vec::new(),
    };
    match &body["input"] {
        Value::String(text) => talk
            .turns
            .push(turn(Speaker::User, text.as_str().into(), 0)),
        Value::Array(items) => items
            .iter()
            .for_each(|item| read_item(item, items, &mut talk)),
        _ => {}
    }
    talk
}

fn turn(speaker: Speaker, text: Cow<'_, str>, images: usize) -> Turn<'_> {
    Turn {
        speaker,
        text,
        images,
        results: Vec::new(),
    }
}

fn read_item<'a>(item: &'a Value, items: &'a [Value], talk: &mut Talk<'a>) {
    match item["type"].as_str() {
        Some("function_call_output" | "custom_tool_call_output") => {
            let id = item["call_id"].as_str().unwrap_or_default();
            let (text, _) = content(&item["output"]);
            let call = items
                .iter()
                .find(|call| call["call_id"] == id && call["name"].is_string());
            let name = call
                .and_then(|call| call["name"].as_str())
                .unwrap_or_default();
            let mut turn = turn(Speaker::User, "".into(), 0);
            turn.results.push(ToolResult {
                id: id.into(),
                name: name.into(),
                text,
            });
            talk.turns.push(turn);
        }
        None | Some("message") => {
            let (text, images) = content(&item["content"]);
            match item["role"].as_str() {
                Some("system" | "developer") => talk.system.push(text),
                Some("assistant") => assistant(text, talk),
                _ => talk.turns.push(turn(Speaker::User, text, images)),
            }
        }
        // Thinking and calls belong to the turn that their message belongs to.
        Some(_) => assistant("".into(), talk),
    }
}

/// Items of the model that follow each other are one turn.
fn assistant<'a>(text: Cow<'a, str>, talk: &mut Talk<'a>) {
    match talk.turns.last_mut() {
        Some(last) if last.speaker == Speaker::Assistant => {
            if !text.is_empty() {
                last.text = if last.text.is_empty() {
                    text
                } else {
                    format!("{}\n{text}", last.text).into()
                };
            }
        }
        _ => talk.turns.push(turn(Speaker::Assistant, text, 0)),
    }
}

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
                .filter(|part| part["type"] == "input_image")
                .count();
            (texts.join("\n").into(), images)
        }
        _ => ("".into(), 0),
    }
}

/// A stored answer.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// The request's items.
    pub(crate) input: Vec<Value>,
    /// The answer.
    pub(crate) response: Value,
    /// The data of the stream's events; only of answers in the background.
    pub(crate) events: Vec<String>,
}

/// The request with the items of a stored answer before its own.
pub(crate) fn continued(body: &Value, stored: &Stored) -> Value {
    let mut items = stored.input.clone();
    items.extend(
        stored.response["output"]
            .as_array()
            .cloned()
            .unwrap_or_default(),
    );
    items.extend(input_items(body));
    let mut body = body.clone();
    body["input"] = items.into();
    body
}

/// The items of a request.
pub(crate) fn input_items(body: &Value) -> Vec<Value> {
    match &body["input"] {
        Value::String(text) => vec![json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": text}]})],
        Value::Array(items) => items.clone(),
        _ => Vec::new(),
    }
}

/// Writes an answer, plain or streamed, and keeps what the service stores of it.
pub fn answer(answer: &Answer, context: &mut Context<'_>) -> Response {
    let (frames, response) = stream::write(answer, context);
    context.made.thinking = thinking(&response);
    context.made.stored = (context.request["store"] != false).then(|| Stored {
        input: input_items(context.request),
        response: response.clone(),
        events: if context.request["background"] == true {
            datas(&frames)
        } else {
            Vec::new()
        },
    });
    let stream = context.form == Form::Events;
    let frames = if stream {
        frames
    } else {
        let mut plain = Frames::default();
        plain.event(None, &response.to_string(), MarkKind::Token);
        plain
    };
    let body = context.render(frames, answer, HOUSE);
    let headers = headers(content_type(context), 200, context);
    Response {
        status: 200,
        headers,
        stream,
        body,
    }
}

/// The items of an answer that come directly after thinking, with the ids of that thinking.
fn thinking(response: &Value) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    for item in response["output"].as_array().into_iter().flatten() {
        let Some(id) = item["id"].as_str() else {
            continue;
        };
        if item["type"] == "reasoning" {
            ids.push(id.to_owned());
        } else if !ids.is_empty() {
            found.push((id.to_owned(), std::mem::take(&mut ids)));
        }
    }
    found
}

fn datas(frames: &Frames) -> Vec<String> {
    frames
        .list
        .iter()
        .filter_map(|frame| match frame.what {
            What::Event { from, to, .. } => {
                Some(String::from_utf8_lossy(frames.data.get(from..to)?).into_owned())
            }
            _ => None,
        })
        .collect()
}

/// The stream of a stored answer, after the event with this number.
pub(crate) fn replay(stored: &Stored, after: Option<u64>) -> Rendered {
    let mut frames = Frames::default();
    for data in &stored.events {
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        let number = event["sequence_number"].as_u64();
        if after.is_none_or(|after| number.is_some_and(|number| number > after)) {
            frames.push(data);
            frames.end(None, MarkKind::Event);
            if let Some(What::Event { name, .. }) =
                frames.list.last_mut().map(|last| &mut last.what)
            {
                *name = event["type"].as_str().map(|kind| kind.to_owned().into());
            }
        }
    }
    framing::render(&frames, Form::Events, &Framing::default(), HOUSE)
}

/// Status, incomplete details and error of the finished response.
fn ending(answer: &Answer) -> (&str, Value, Value) {
    let incomplete = |reason: &str| ("incomplete", json!({"reason": reason}), Value::Null);
    match &answer.finish {
        Some(Finish::Length | Finish::Context) => incomplete("max_output_tokens"),
        Some(Finish::Filter | Finish::PromptBlocked(_)) => incomplete("content_filter"),
        Some(Finish::Word(word)) => match word.as_str() {
            "failed" => {
                let message = "The model failed to generate a response.";
                (
                    "failed",
                    Value::Null,
                    json!({"code": "server_error", "message": message}),
                )
            }
            "completed" | "cancelled" | "queued" | "in_progress" => {
                (word, Value::Null, Value::Null)
            }
            reason => incomplete(reason),
        },
        _ => ("completed", Value::Null, Value::Null),
    }
}

/// The response before there is any output: the request's options repeated, with their defaults.
fn opening(answer: &Answer, context: &mut Context<'_>) -> Map<String, Value> {
    let request = context.request;
    let id = answer
        .id
        .clone()
        .unwrap_or_else(|| context.ids.id("resp_", 48));
    let or = |name: &str, default: Value| match &request[name] {
        Value::Null => default,
        value => value.clone(),
    };
    let mut response = Map::new();
    let mut put = |name: &str, value: Value| response.insert(name.to_owned(), value);
    put("id", id.into());
    put("object", "response".into());
    put("created_at", context.created.into());
    put("status", "in_progress".into());
    put("background", or("background", false.into()));
    put("error", Value::Null);
    put("incomplete_details", Value::Null);
    put("instructions", or("instructions", Value::Null));
    put("max_output_tokens", or("max_output_tokens", Value::Null));
    put("model", context.model(answer).into());
    put("output", json!([]));
    put(
        "parallel_tool_calls",
        or("parallel_tool_calls", true.into()),
    );
    put(
        "previous_response_id",
        or("previous_response_id", Value::Null),
    );
    put(
        "reasoning",
        or("reasoning", json!({"effort": null, "summary": null})),
    );
    put("service_tier", or("service_tier", "default".into()));
    put("store", or("store", true.into()));
    put("temperature", or("temperature", json!(1.0)));
    put("text", or("text", json!({"format": {"type": "text"}})));
    put("tool_choice", or("tool_choice", "auto".into()));
    put("tools", or("tools", json!([])));
    put("top_p", or("top_p", json!(1.0)));
    put("truncation", or("truncation", "disabled".into()));
    put("usage", Value::Null);
    put("metadata", or("metadata", json!({})));
    response
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total.unwrap_or(usage.input + usage.output),
    })
}
