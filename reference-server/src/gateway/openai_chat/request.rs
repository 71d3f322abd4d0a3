//! Writes requests.

use serde_json::{Value, json};
use turnwire_spec::llm::openai_chat as wire;

use crate::gateway::{ChatMessage, ModelRequest, ToolChoice, ToolRequest, ToolSpec};

/// The body of a request.
pub(super) fn to_wire(request: &ModelRequest) -> wire::ChatRequest {
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
