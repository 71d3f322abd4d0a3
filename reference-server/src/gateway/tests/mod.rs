//! The client against the scripted mock, over real sockets, on every wire.

mod continuation;
mod faults;
mod images;
mod patience;
mod splits;
mod wires;

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_mock::{MockConfig, MockServer, Reply, Rule, Script, Wire};

use super::*;

/// A model of each wire that the mock's rules know.
pub(super) fn model_of(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => "gpt-5.2",
        Wire::AnthropicMessages => "claude-opus-4-6",
        Wire::Gemini | Wire::GeminiOpenai => "gemini-3-pro",
    }
}

/// A mock that gives these replies, one a request.
pub(super) async fn mock<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> MockServer {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    let rule = replies
        .into_iter()
        .fold(Rule::new("all"), |rule, reply| rule.reply(reply.into()));
    mock.load(Script::new("test").rule(rule));
    mock
}

pub(super) fn target(mock: &MockServer, wire: Wire) -> TargetConfig {
    TargetConfig::new(wire, &mock.base_url_of(wire), model_of(wire)).key("sk-test")
}

/// Patient, and quick to try again.
pub(super) fn config(target: TargetConfig) -> ClientConfig {
    ClientConfig {
        retry: RetryPolicy {
            backoff: Duration::from_millis(1),
            ..RetryPolicy::default()
        },
        ..ClientConfig::new(target)
    }
}

pub(super) fn client(mock: &MockServer, wire: Wire) -> Client {
    Client::new(config(target(mock, wire))).unwrap()
}

pub(super) fn user(text: &str) -> ChatMessage {
    ChatMessage::User {
        content: text.into(),
    }
}

/// What the model gets a tool for.
pub(super) fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "Looks.".to_owned(),
        json_schema: json!({ "type": "object", "properties": { "a": { "type": "integer" } } }),
        strict: false,
    }
}

/// A streamed request with instructions, one message and two tools.
pub(super) fn request() -> ModelRequest {
    ModelRequest {
        messages: vec![
            ChatMessage::System {
                content: "You tell a story.".into(),
            },
            user("hello there"),
        ],
        tools: vec![tool("look"), tool("take")],
        streaming: true,
        ..ModelRequest::default()
    }
}

/// The request that goes on after the calls of an answer.
pub(super) fn after(request: &ModelRequest, reply: &ModelReply) -> ModelRequest {
    let mut request = request.clone();
    request.messages.push(ChatMessage::Assistant {
        content: reply.text.clone().into(),
        tool_calls: reply.tool_calls.clone(),
        continuation: reply.continuation.clone(),
    });
    let results = reply.tool_calls.iter().map(|call| ChatMessage::Tool {
        tool_call_id: call.id.clone(),
        content: format!("{} is done", call.name).into(),
    });
    request.messages.extend(results);
    request
}

/// The bodies that a mock got. Fails when one of them broke a rule of its service.
pub(super) fn bodies(mock: &MockServer) -> Vec<Value> {
    let entries = mock.journal();
    for entry in &entries {
        assert!(
            entry.violations.is_empty(),
            "{:?} in {}",
            entry.violations,
            entry.body
        );
    }
    entries.into_iter().map(|entry| entry.body).collect()
}

/// The pieces of one kind.
pub(super) fn texts(outcome: &Outcome) -> (String, String) {
    let (mut text, mut thinking) = (String::new(), String::new());
    for event in &outcome.events {
        match event {
            ModelEvent::Text(piece) => text.push_str(piece),
            ModelEvent::Reasoning(piece) => thinking.push_str(piece),
            _ => {}
        }
    }
    (text, thinking)
}

pub(super) fn kind_of(outcome: &Outcome) -> Option<ErrorKind> {
    outcome.result.as_ref().err().map(|error| error.kind)
}
