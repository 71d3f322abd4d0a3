//! Writes requests.

use serde_json::{Map, Value, json};

use crate::gateway::continuation::Record;
use crate::gateway::history::{Ids, matching, object, same_calls};
use crate::gateway::images::{self, Picture};
use crate::gateway::json::filled;
use crate::gateway::message::{ChatMessage, Content, ContentPart, ToolChoice, ToolRequest};
use crate::gateway::request::Thinking;
use crate::gateway::wires::Asking;

/// Output tokens when nobody says how many; the wire wants a number.
const MAX_TOKENS: u64 = 4_096;
/// The smallest budget of thinking.
const MIN_BUDGET: u64 = 1_024;
/// Characters of a call's id at most.
const LONGEST_ID: usize = 64;

/// The body of a request. There is no place for a temperature in the newest version of the wire.
pub(super) fn body(asking: &Asking<'_>) -> Value {
    let (request, options) = (asking.request, &asking.request.options);
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            body.insert(name.to_owned(), value);
        }
    };
    let mut max_tokens = options.max_tokens.unwrap_or(MAX_TOKENS);
    let mut output = Map::new();
    if let Some(thinking) = &options.thinking {
        let (value, needed) = thinking_of(thinking, max_tokens);
        max_tokens = needed;
        set("thinking", value);
        if let Some(effort) = &thinking.effort {
            output.insert("effort".to_owned(), json!(effort));
        }
    }
    if let Some(schema) = &options.response_schema {
        let format = json!({ "type": "json_schema", "schema": schema });
        output.insert("format".to_owned(), format);
    }
    set("model", json!(asking.model()));
    set("max_tokens", json!(max_tokens));
    set("system", system(asking.messages));
    set("messages", messages(asking));
    if request.streaming {
        set("stream", json!(true));
    }
    if !output.is_empty() {
        set("output_config", Value::Object(output));
    }
    if !options.stop.is_empty() {
        set("stop_sequences", json!(options.stop));
    }
    if !request.tools.is_empty() {
        set("tools", tools(asking));
        set("tool_choice", tool_choice(asking));
    }
    Value::Object(body)
}

/// The setting, and the tokens that an answer needs with it.
fn thinking_of(thinking: &Thinking, max_tokens: u64) -> (Value, u64) {
    match thinking.budget_tokens {
        _ if thinking.off => (json!({ "type": "disabled" }), max_tokens),
        None => (
            json!({ "type": "adaptive", "display": "summarized" }),
            max_tokens,
        ),
        Some(budget) => {
            let budget = budget.max(MIN_BUDGET);
            let needed = if budget < max_tokens {
                max_tokens
            } else {
                budget.saturating_add(max_tokens)
            };
            (
                json!({ "type": "enabled", "budget_tokens": budget }),
                needed,
            )
        }
    }
}

fn tools(asking: &Asking<'_>) -> Value {
    let tools = asking.request.tools.iter().map(|tool| {
        let schema = match &tool.json_schema {
            schema if schema["type"] == "object" => schema.clone(),
            _ => json!({ "type": "object" }),
        };
        json!({ "name": tool.name, "description": tool.description, "input_schema": schema })
    });
    tools.collect()
}

/// Whoever thinks may not be made to call.
fn tool_choice(asking: &Asking<'_>) -> Value {
    let options = &asking.request.options;
    let thinks = options
        .thinking
        .as_ref()
        .is_some_and(|thinking| !thinking.off);
    let mut choice = match &asking.request.tool_choice {
        ToolChoice::None => return json!({ "type": "none" }),
        ToolChoice::Required if !thinks => json!({ "type": "any" }),
        ToolChoice::Named { name } if !thinks => json!({ "type": "tool", "name": name }),
        _ => json!({ "type": "auto" }),
    };
    if options.parallel_tool_calls == Some(false) {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    choice
}

fn system(messages: &[ChatMessage]) -> Value {
    let texts = messages.iter().filter_map(|message| match message {
        ChatMessage::System { content } => Some(content.text()).filter(|text| !text.is_empty()),
        _ => None,
    });
    match texts.collect::<Vec<_>>() {
        texts if texts.is_empty() => Value::Null,
        texts => json!(texts.join("\n\n")),
    }
}

/// The conversation; messages of one role that follow each other are one, with results first.
fn messages(asking: &Asking<'_>) -> Value {
    let mut ids = Ids::new(LONGEST_ID);
    let mut list: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in asking.messages {
        let (role, blocks) = match message {
            ChatMessage::System { .. } => continue,
            ChatMessage::User { content } => ("user", content_of(content)),
            ChatMessage::Assistant {
                content,
                tool_calls,
                ..
            } => {
                let native = matching(message, asking.origin)
                    .and_then(|record| native(&record, tool_calls, &mut ids));
                let blocks = native.unwrap_or_else(|| generic(content, tool_calls, &mut ids));
                ("assistant", blocks)
            }
            ChatMessage::Tool {
                tool_call_id,
                content,
            } => {
                let mut result =
                    json!({ "type": "tool_result", "tool_use_id": ids.result(tool_call_id) });
                let blocks = content_of(content);
                if !blocks.is_empty() {
                    result["content"] = blocks.into();
                }
                ("user", vec![result])
            }
        };
        match list.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => list.push((role, blocks)),
        }
    }
    let written = list.into_iter().map(|(role, mut blocks)| {
        blocks.sort_by_key(|block| block["type"] != "tool_result");
        match blocks.as_slice() {
            // What is nothing but one text is said as one.
            [block] if role == "user" && block["type"] == "text" => {
                json!({ "role": role, "content": block["text"] })
            }
            _ => json!({ "role": role, "content": blocks }),
        }
    });
    written.collect()
}

/// The blocks as they came, without what the service refuses to read back.
fn native(record: &Record, calls: &[ToolRequest], ids: &mut Ids) -> Option<Vec<Value>> {
    let uses = record
        .entries
        .iter()
        .filter(|block| block["type"] == "tool_use");
    if record.entries.is_empty() || !same_calls(uses.map(|block| block["id"].as_str()), calls) {
        return None;
    }
    for call in calls {
        ids.call(&call.id, true);
    }
    let sendable = |block: &&Value| match block["type"].as_str() {
        Some("text") => filled(&block["text"]).is_some(),
        Some("thinking") => filled(&block["signature"]).is_some(),
        _ => true,
    };
    Some(record.entries.iter().filter(sendable).cloned().collect())
}

fn generic(content: &Content, calls: &[ToolRequest], ids: &mut Ids) -> Vec<Value> {
    let mut blocks = content_of(content);
    blocks.extend(calls.iter().map(|call| {
        json!({
            "type": "tool_use",
            "id": ids.call(&call.id, false),
            "name": call.name,
            "input": object(call),
        })
    }));
    blocks
}

fn content_of(content: &Content) -> Vec<Value> {
    let text = |text: &str| (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
    match content {
        Content::Null => Vec::new(),
        Content::Text(said) => text(said).into_iter().collect(),
        Content::Parts(parts) => {
            let blocks = parts.iter().filter_map(|part| match part {
                ContentPart::Text { text: said } => text(said),
                ContentPart::Image { image, media_type } => {
                    Some(json!({ "type": "image", "source": source(image, media_type.as_deref()) }))
                }
            });
            blocks.collect()
        }
    }
}

fn source(image: &str, media_type: Option<&str>) -> Value {
    match images::read(image, media_type) {
        Picture::Inline { mime, data } => {
            json!({ "type": "base64", "media_type": mime, "data": data })
        }
        Picture::Url(url) => json!({ "type": "url", "url": url }),
    }
}
