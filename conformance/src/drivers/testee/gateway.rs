//! The adapters of our own gateway as a testee, in process but over real sockets like any other.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use turnwire_reference::gateway::{
    ChatMessage, ErrorKind, Gateway, GatewayError, GatewayTimeouts, ModelEvent, ModelReply,
    ModelRequest, Target, ToolChoice, ToolRequest, ToolSpec, openai_chat::OpenAiChat,
};

use super::{About, LaunchTestee, Said, Testee};
use crate::drivers::{DriveError, target::Pending};

/// Starts testees of our own gateway.
#[derive(Clone, Copy, Debug)]
pub struct GatewayTestee;

/// Name of our own gateway, in reports and profiles.
pub const NAME: &str = "turnwire-gateway";

impl LaunchTestee for GatewayTestee {
    fn start(&self) -> Pending<'_, Result<Testee, DriveError>> {
        Box::pin(async {
            let said = json!({
                "ready": true,
                "name": NAME,
                "version": env!("CARGO_PKG_VERSION"),
                "wires": ["openai-chat", "gemini-openai"],
            });
            let about = About::read(&said).unwrap_or_default();
            Ok(Testee::in_process(about, serve))
        })
    }

    fn in_process(&self) -> bool {
        true
    }
}

async fn serve(mut lines: mpsc::Receiver<Bytes>, say: mpsc::Sender<Said>) {
    while let Some(line) = lines.recv().await {
        let case: Value = serde_json::from_slice(&line).unwrap_or_default();
        let mut report = play(&case).await;
        report["case"] = case["case"].clone();
        if say
            .send(Said::Line(report.to_string().into()))
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Plays a case; the report lacks only its id.
async fn play(case: &Value) -> Value {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let wire = text("wire");
    if !matches!(wire, "openai-chat" | "gemini-openai") {
        return json!({ "unsupported": format!("no adapter for {wire}") });
    }
    let service = OpenAiChat::new(
        "mock",
        text("baseUrl"),
        Some(text("apiKey").to_owned()),
        text("model"),
        timeouts(&case["options"]),
    );
    let service = match service {
        Ok(service) => service,
        Err(error) => {
            return json!({ "error": { "class": "config", "message": error.to_string() } });
        }
    };
    match ask(&service, case).await {
        Ok(outcome) => json!({ "outcome": outcome }),
        Err(error) => json!({ "error": error_report(&error) }),
    }
}

fn timeouts(options: &Value) -> GatewayTimeouts {
    let defaults = GatewayTimeouts::default();
    match options["timeoutMs"].as_u64().map(Duration::from_millis) {
        Some(time) => GatewayTimeouts {
            first: time,
            idle: time,
            ..defaults
        },
        None => defaults,
    }
}

async fn ask(service: &OpenAiChat, case: &Value) -> Result<Value, GatewayError> {
    let mut stream = service.call(request(service, case)).await?;
    let mut deltas = Vec::new();
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::Text(text) => deltas.push(json!({ "kind": "text", "text": text })),
            ModelEvent::Reasoning(text) => {
                deltas.push(json!({ "kind": "reasoning", "text": text }));
            }
            ModelEvent::ToolInput { delta, .. } => {
                deltas.push(json!({ "kind": "tool-call", "text": delta }));
            }
            ModelEvent::Done(reply) => return Ok(outcome(&reply, deltas)),
        }
    }
    Err(GatewayError {
        kind: ErrorKind::BadAnswer,
        message: "the stream said neither that it is done nor why it is not".to_owned(),
        target: service.target("default"),
        status: None,
        retry_after: None,
    })
}

fn request(service: &OpenAiChat, case: &Value) -> ModelRequest {
    let list = |key: &str| case[key].as_array().cloned().unwrap_or_default();
    let target: Target = service.target("default");
    ModelRequest {
        target,
        messages: list("messages").iter().map(message).collect(),
        tools: list("tools").iter().map(tool).collect(),
        tool_choice: match case["toolChoice"].as_str() {
            Some("required") => ToolChoice::Required,
            Some("none") => ToolChoice::None,
            _ => ToolChoice::Auto,
        },
        streaming: case["stream"] == true,
    }
}

fn message(message: &Value) -> ChatMessage {
    let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let content = text("content");
    match message["role"].as_str() {
        Some("system") => ChatMessage::System { content },
        Some("assistant") => ChatMessage::Assistant {
            content,
            tool_calls: message["toolCalls"]
                .as_array()
                .into_iter()
                .flatten()
                .map(call)
                .collect(),
        },
        Some("tool") => ChatMessage::Tool {
            tool_call_id: text("toolCallId"),
            content,
        },
        _ => ChatMessage::User { content },
    }
}

fn call(call: &Value) -> ToolRequest {
    let text = |key: &str| call[key].as_str().unwrap_or_default().to_owned();
    ToolRequest {
        id: text("id"),
        name: text("name"),
        arguments: match &call["arguments"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        },
    }
}

fn tool(tool: &Value) -> ToolSpec {
    let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
    ToolSpec {
        name: text("name"),
        description: text("description"),
        json_schema: tool["parameters"].clone(),
    }
}

fn outcome(reply: &ModelReply, deltas: Vec<Value>) -> Value {
    let calls = reply
        .tool_calls
        .iter()
        .map(|call| json!({ "id": call.id, "name": call.name, "arguments": call.arguments }));
    json!({
        "text": reply.text,
        "reasoning": reply.reasoning,
        "toolCalls": calls.collect::<Vec<_>>(),
        "finishReason": reply.finish.name(),
        "usage": usage(reply),
        "deltas": deltas,
    })
}

fn usage(reply: &ModelReply) -> Value {
    serde_json::to_value(&reply.usage).unwrap_or_default()
}

fn error_report(error: &GatewayError) -> Value {
    let class = match error.kind {
        ErrorKind::MissingKey => "config",
        ErrorKind::Unauthorized => "auth",
        ErrorKind::RateLimited => "rate-limit",
        ErrorKind::BadRequest => "invalid-request",
        ErrorKind::NotFound => "not-found",
        ErrorKind::Unavailable => "server",
        ErrorKind::Network => "network",
        ErrorKind::Timeout => "timeout",
        ErrorKind::BadAnswer => "protocol",
        ErrorKind::Unknown => "unknown",
    };
    json!({
        "class": class,
        "message": error.message,
        "status": error.status,
        "retryable": error.is_retryable(),
        "target": { "provider": error.target.provider, "model": error.target.model },
    })
}
