//! Writes requests.

use serde_json::{Map, Value, json};

use crate::gateway::continuation::Record;
use crate::gateway::history::{Ids, arguments, matching, same_calls};
use crate::gateway::images;
use crate::gateway::json::filled;
use crate::gateway::message::{ChatMessage, Content, ContentPart, ToolChoice, ToolRequest};
use crate::gateway::schema::is_strict;
use crate::gateway::wires::Asking;

/// Characters of a call's id at most.
const LONGEST_ID: usize = 64;

/// The body of a request.
///
/// Whoever asks for thinking gets it encrypted and sends it back with the conversation; the service then
/// stores nothing.
pub(super) fn body(asking: &Asking<'_>) -> Value {
    let (request, options) = (asking.request, &asking.request.options);
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            body.insert(name.to_owned(), value);
        }
    };
    set("model", json!(asking.model()));
    set("input", input(asking).into());
    // One history at a time: the service refuses a conversation beside a stored response.
    let openai = options.provider_options.get("openai");
    let own = |name: &str| openai.and_then(|openai| openai.get(name)).cloned();
    match own("previousResponseId") {
        Some(id) => set("previous_response_id", id),
        None => set("conversation", own("conversation").unwrap_or_default()),
    }
    if request.streaming {
        set("stream", json!(true));
    }
    set("max_output_tokens", json!(options.max_tokens));
    set("temperature", json!(options.temperature));
    if let Some(schema) = &options.response_schema {
        let strict = is_strict(schema).then_some(true);
        let mut format = json!({ "type": "json_schema", "name": "answer", "schema": schema });
        if let Some(strict) = strict {
            format["strict"] = json!(strict);
        }
        set("text", json!({ "format": format }));
    }
    if let Some(thinking) = &options.thinking {
        let effort = thinking
            .effort
            .as_deref()
            .or(thinking.off.then_some("none"));
        let mut reasoning = json!({ "summary": "auto" });
        if let Some(effort) = effort {
            reasoning["effort"] = json!(effort);
        }
        set("reasoning", reasoning);
    }
    if stateless(asking) {
        set("store", json!(false));
        set("include", json!(["reasoning.encrypted_content"]));
    }
    // Services refuse a choice among no tools.
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.json_schema,
                "strict": tool.strict && is_strict(&tool.json_schema),
            })
        });
        set("tools", tools.collect());
        set("tool_choice", tool_choice(&request.tool_choice));
        set("parallel_tool_calls", json!(options.parallel_tool_calls));
    }
    Value::Object(body)
}

fn stateless(asking: &Asking<'_>) -> bool {
    let thinking = asking.request.options.thinking.as_ref();
    thinking.is_some_and(|thinking| !thinking.off)
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::None => json!("none"),
        ToolChoice::Named { name } => json!({ "type": "function", "name": name }),
    }
}

fn input(asking: &Asking<'_>) -> Vec<Value> {
    let mut ids = Ids::new(LONGEST_ID);
    let mut items = Vec::new();
    for message in asking.messages {
        match message {
            ChatMessage::System { content } => {
                items.push(json!({ "role": "system", "content": content_of(content) }));
            }
            ChatMessage::User { content } => {
                items.push(json!({ "role": "user", "content": content_of(content) }));
            }
            ChatMessage::Assistant {
                content,
                tool_calls,
                ..
            } => {
                let native = matching(message, asking.origin)
                    .and_then(|record| native(record, tool_calls, stateless(asking), &mut ids));
                items.extend(native.unwrap_or_else(|| generic(content, tool_calls, &mut ids)));
            }
            ChatMessage::Tool {
                tool_call_id,
                content,
            } => items.push(json!({
                "type": "function_call_output",
                "call_id": ids.result(tool_call_id),
                "output": content.text(),
            })),
        }
    }
    items
}

/// The items as they came. What the service did not store and cannot decrypt is left out, and then what
/// follows it goes without its id, under which the service would look for it.
fn native(
    record: Record,
    calls: &[ToolRequest],
    stateless: bool,
    ids: &mut Ids,
) -> Option<Vec<Value>> {
    let own = record
        .entries
        .iter()
        .filter(|item| item["type"] == "function_call");
    if record.entries.is_empty() || !same_calls(own.map(|item| item["call_id"].as_str()), calls) {
        return None;
    }
    for call in calls {
        ids.call(&call.id, true);
    }
    let mut items = Vec::new();
    let mut lost = false;
    for mut item in record.entries {
        if item["type"] == "reasoning" {
            if stateless && filled(&item["encrypted_content"]).is_none() {
                lost = true;
                continue;
            }
        } else if std::mem::take(&mut lost)
            && let Some(members) = item.as_object_mut()
        {
            members.remove("id");
        }
        items.push(item);
    }
    // Thinking that led to nothing is refused.
    while items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
    Some(items)
}

fn generic(content: &Content, calls: &[ToolRequest], ids: &mut Ids) -> Vec<Value> {
    let text = content.text();
    let mut items = Vec::new();
    if !text.is_empty() || calls.is_empty() {
        items.push(json!({ "role": "assistant", "content": text }));
    }
    items.extend(calls.iter().map(|call| {
        json!({
            "type": "function_call",
            "call_id": ids.call(&call.id, false),
            "name": call.name,
            "arguments": arguments(call),
        })
    }));
    items
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
        ContentPart::Text { text } => json!({ "type": "input_text", "text": text }),
        ContentPart::Image { image, media_type } => {
            let url = images::read(image, media_type.as_deref()).url();
            json!({ "type": "input_image", "image_url": url })
        }
    }
}
