//! What a transcript is an example of.

use std::collections::BTreeSet;

use serde_json::Value;
use turnwire_spec::{catalogue::rule::StreamKind, covel, llm::Wire};

use super::Example;
use crate::transcript::{
    Fact, Side, Transcript, WsFrame,
    views::{
        http::{Exchange, exchanges},
        stream::streams,
    },
};

/// What a transcript is an example of.
pub fn of(transcript: &Transcript) -> BTreeSet<Example> {
    match transcript.header.suite.as_str() {
        "covel-sse" => of_covel(transcript),
        suite if suite.parse::<Wire>().is_ok() => of_wire(suite, transcript),
        _ => of_messages(transcript),
    }
}

fn of_covel(transcript: &Transcript) -> BTreeSet<Example> {
    let mut found = BTreeSet::new();
    for exchange in exchanges(transcript) {
        let (method, path) = (&exchange.request.method, exchange.path());
        match (exchange.status(), covel::endpoint(method, path)) {
            (Some(200..300), Some(endpoint)) => {
                found.insert((
                    "endpoint".to_owned(),
                    format!("{} {}", endpoint.method, endpoint.path),
                ));
            }
            (Some(status), _) => {
                if let Some(code) = code(&exchange) {
                    found.insert(("rejection".to_owned(), format!("{status} {code}")));
                }
            }
            (None, _) => {}
        }
    }
    for stream in streams(transcript) {
        let kind = match stream.kind {
            Some(StreamKind::Action) => "action frame",
            Some(StreamKind::Subscription) => "subscription frame",
            Some(StreamKind::Relay) => "relay frame",
            None => continue,
        };
        for frame in stream.events() {
            found.insert((kind.to_owned(), frame.event_type().to_owned()));
            if frame.event_type() == "system.reset"
                && let Some(reason) = frame.member("reason").and_then(Value::as_str)
            {
                found.insert(("reset".to_owned(), reason.to_owned()));
            }
        }
    }
    found
}

fn code(exchange: &Exchange<'_>) -> Option<String> {
    Some(exchange.json()?.get("code")?.as_str()?.to_owned())
}

fn of_wire(suite: &str, transcript: &Transcript) -> BTreeSet<Example> {
    let mut names = BTreeSet::new();
    for exchange in exchanges(transcript) {
        if exchange.status().is_some_and(|status| status >= 400) {
            names.insert("error".to_owned());
        }
    }
    for stream in streams(transcript) {
        for frame in stream.events() {
            if let Some(data) = frame.frame.data().filter(|data| data == "[DONE]") {
                names.insert(data.into_owned());
            }
            if let Some(json) = &frame.json {
                names.extend(wire_names(suite, json));
            }
        }
    }
    names
        .into_iter()
        .map(|name| ("event".to_owned(), name))
        .collect()
}

fn wire_names(suite: &str, json: &Value) -> Vec<String> {
    let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str);
    let has = |pointer: &str| json.pointer(pointer).is_some_and(|value| !value.is_null());
    let mut names = Vec::new();
    if has("/error") {
        names.push("error".to_owned());
    }
    match suite {
        "openai-chat" | "gemini-openai" => {
            let members = [
                "role",
                "content",
                "refusal",
                "tool_calls",
                "reasoning_content",
                "reasoning",
                "reasoning_details",
            ];
            let deltas = members
                .iter()
                .filter(|name| has(&format!("/choices/0/delta/{name}")));
            names.extend(deltas.map(|name| format!("delta {name}")));
            names.extend(
                text("/choices/0/finish_reason").map(|reason| format!("finish_reason {reason}")),
            );
            names.extend(has("/usage").then(|| "usage".to_owned()));
        }
        "gemini" => {
            let parts = json
                .pointer("/candidates/0/content/parts")
                .and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                let thought = part.get("thought") == Some(&Value::Bool(true));
                let kind = if thought {
                    "thought"
                } else if part.get("functionCall").is_some() {
                    "functionCall"
                } else {
                    "text"
                };
                names.push(format!("part {kind}"));
            }
            names.extend(
                text("/candidates/0/finishReason").map(|reason| format!("finishReason {reason}")),
            );
            let members = ["promptFeedback", "usageMetadata"];
            let there = members.iter().filter(|name| has(&format!("/{name}")));
            names.extend(there.map(|name| (*name).to_owned()));
        }
        _ => {
            let more = text("/content_block/type").or_else(|| text("/delta/type"));
            names.extend(text("/type").map(|kind| match more {
                Some(more) => format!("{kind} {more}"),
                None => kind.to_owned(),
            }));
        }
    }
    names
}

/// Messages of chats by their type, kinds of notices, and codes of closes; lines of session updates by method, event
/// and error.
fn of_messages(transcript: &Transcript) -> BTreeSet<Example> {
    let mut found = BTreeSet::new();
    for entry in &transcript.entries {
        match &entry.fact {
            Fact::WebSocket {
                frame: WsFrame::Text(text),
                ..
            } => {
                let json: Value = serde_json::from_str(text).unwrap_or_default();
                found.extend(named("message", json.pointer("/type")));
                found.extend(named("notice", json.pointer("/payload/notice/kind")));
            }
            Fact::WebSocket {
                from: Side::Server,
                frame: WsFrame::Close(Some((code, _))),
                ..
            } => {
                found.insert(("close".to_owned(), code.to_string()));
            }
            Fact::Line { bytes, .. } => {
                let json: Value = serde_json::from_slice(bytes).unwrap_or_default();
                if json.get("kind").and_then(Value::as_str) == Some("request") {
                    found.extend(named("method", json.pointer("/method")));
                }
                found.extend(named("event", json.pointer("/event/type")));
                found.extend(named("error", json.pointer("/error/type")));
            }
            _ => {}
        }
    }
    found
}

fn named(kind: &str, name: Option<&Value>) -> Option<Example> {
    Some((kind.to_owned(), name?.as_str()?.to_owned()))
}
