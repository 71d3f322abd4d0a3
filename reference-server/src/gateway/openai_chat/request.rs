//! Writes requests.

use serde_json::{Map, Value, json};
use turnwire_spec::llm::gemini::SKIP_SIGNATURE;

use super::Dialect;
use crate::gateway::continuation::{Record, THINK};
use crate::gateway::history::{Ids, arguments, matching, record};
use crate::gateway::images;
use crate::gateway::message::{ChatMessage, Content, ContentPart, ToolChoice, ToolRequest};
use crate::gateway::models::signs_calls;
use crate::gateway::refusal::Fault;
use crate::gateway::schema::is_strict;
use crate::gateway::wires::Asking;

/// Characters of a call's id at most.
const LONGEST_ID: usize = 40;
/// The member for thinking that goes back where nothing else is known.
const GENERIC: &str = "reasoning_content";
/// The member of services that refuse the generic one.
const REASONING: &str = "reasoning";

/// The body of a request.
pub(super) fn body(asking: &Asking<'_>, dialect: Dialect) -> Result<Value, Fault> {
    let request = asking.request;
    let options = &request.options;
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            body.insert(name.to_owned(), value);
        }
    };
    set("model", json!(asking.model()));
    set("messages", messages(asking, dialect).into());
    if request.streaming {
        set("stream", json!(true));
        set("stream_options", json!({ "include_usage": true }));
    }
    set("max_completion_tokens", json!(options.max_tokens));
    set("temperature", json!(options.temperature));
    if !options.stop.is_empty() {
        set("stop", json!(options.stop));
    }
    if let Some(schema) = &options.response_schema {
        set("response_format", response_format(schema));
    }
    // Services refuse a choice among no tools.
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let mut function = json!({
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.json_schema,
            });
            if tool.strict && dialect == Dialect::Plain && is_strict(&tool.json_schema) {
                function["strict"] = json!(true);
            }
            json!({ "type": "function", "function": function })
        });
        set("tools", tools.collect());
        set("tool_choice", tool_choice(&request.tool_choice));
        if dialect == Dialect::Plain {
            set("parallel_tool_calls", json!(options.parallel_tool_calls));
        }
    }
    if let Some(thinking) = &options.thinking {
        let effort = thinking
            .effort
            .as_deref()
            .or(thinking.off.then_some("none"));
        match (dialect, thinking.budget_tokens) {
            (Dialect::Gemini, budget) if !thinking.off && effort.is_none() => {
                let mut config = json!({ "include_thoughts": true });
                if let Some(budget) = budget {
                    config["thinking_budget"] = json!(budget);
                }
                set(
                    "extra_body",
                    json!({ "google": { "thinking_config": config } }),
                );
            }
            _ => set("reasoning_effort", json!(effort)),
        }
    }
    Ok(Value::Object(body))
}

fn response_format(schema: &Value) -> Value {
    let mut named = json!({ "name": "answer", "schema": schema });
    if is_strict(schema) {
        named["strict"] = json!(true);
    }
    json!({ "type": "json_schema", "json_schema": named })
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::None => json!("none"),
        ToolChoice::Named { name } => json!({ "type": "function", "function": { "name": name } }),
    }
}

fn messages(asking: &Asking<'_>, dialect: Dialect) -> Vec<Value> {
    let field = thinking_field(asking);
    let signs = dialect == Dialect::Gemini && signs_calls(asking.model());
    let mut ids = Ids::new(LONGEST_ID);
    let write = |message: &ChatMessage| match message {
        ChatMessage::System { content } => {
            json!({ "role": "system", "content": content_of(content) })
        }
        ChatMessage::User { content } => json!({ "role": "user", "content": content_of(content) }),
        ChatMessage::Assistant {
            content,
            tool_calls,
            ..
        } => {
            let own = matching(message, asking.origin);
            let calls = tool_calls.iter().map(|call| {
                let id = ids.call(&call.id, own.is_some());
                call_of(call, id, own.as_ref())
            });
            let mut calls: Vec<Value> = calls.collect();
            if signs && let Some(first) = calls.first_mut() {
                sign(first);
            }
            let mut written = json!({ "role": "assistant", "content": spoken(content, &calls) });
            if !calls.is_empty() {
                written["tool_calls"] = calls.into();
            }
            if dialect == Dialect::Plain {
                send_thinking_back(&mut written, asking, message, field);
            }
            written
        }
        ChatMessage::Tool {
            tool_call_id,
            content,
        } => json!({
            "role": "tool",
            "tool_call_id": ids.result(tool_call_id),
            "content": content.text(),
        }),
    };
    asking.messages.iter().map(write).collect()
}

/// What an assistant message says: null beside calls when it says nothing.
fn spoken(content: &Content, calls: &[Value]) -> Value {
    let text = content.text();
    if text.is_empty() && !calls.is_empty() {
        Value::Null
    } else {
        text.into()
    }
}

/// The member in which thinking goes back: `reasoning` when a message of this conversation was answered
/// from here with it, else the generic one.
fn thinking_field(asking: &Asking<'_>) -> &'static str {
    let by_reasoning = asking.messages.iter().any(|message| {
        let record = matching(message, asking.origin);
        record.is_some_and(|record| record.source.as_deref() == Some(REASONING))
    });
    if by_reasoning { REASONING } else { GENERIC }
}

/// Thinking of this protocol goes back with every assistant message, unless it was written into the text.
/// Of another protocol's answers only the conversation is told.
fn send_thinking_back(
    written: &mut Value,
    asking: &Asking<'_>,
    message: &ChatMessage,
    field: &str,
) {
    let same_protocol = |record: &Record| record.protocol == asking.origin.protocol;
    let Some(record) = record(message).filter(same_protocol) else {
        return;
    };
    if record.source.as_deref() == Some(THINK) {
        return;
    }
    if let Some(reasoning) = &record.reasoning {
        written[field] = json!(reasoning);
    }
    if asking.origin.made(&record) && !record.entries.is_empty() {
        written["reasoning_details"] = record.entries.into();
    }
}

fn call_of(call: &ToolRequest, id: String, own: Option<&Record>) -> Value {
    let mut written = json!({
        "id": id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments(call) },
    });
    // Gemini signs calls, and wants the signature back on the same call.
    let entries = own.map_or(&[][..], |record| &record.entries);
    let entry = entries.iter().find(|entry| entry["id"] == call.id.as_str());
    if let Some(extra) = entry
        .map(|entry| &entry["extra_content"])
        .filter(|extra| !extra.is_null())
    {
        written["extra_content"] = extra.clone();
    }
    written
}

/// Gives a call the signature for history from elsewhere, when it has none of its own.
fn sign(call: &mut Value) {
    if call["extra_content"].is_null() {
        call["extra_content"] = json!({ "google": { "thought_signature": SKIP_SIGNATURE } });
    }
}

fn content_of(content: &Content) -> Value {
    match content {
        Content::Null => json!(""),
        Content::Text(text) => json!(text),
        Content::Parts(parts) => parts.iter().map(part_of).collect(),
    }
}

fn part_of(part: &ContentPart) -> Value {
    match part {
        ContentPart::Text { text } => json!({ "type": "text", "text": text }),
        ContentPart::Image { image, media_type } => {
            let url = images::read(image, media_type.as_deref()).url();
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
    }
}
