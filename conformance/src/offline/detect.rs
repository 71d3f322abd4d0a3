//! Which protocol a transcript's traffic belongs to, and what of a browser's traffic does not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use turnwire_spec::{catalogue::Suite, covel};

use crate::transcript::{
    ExchangeId, Fact, Transcript, WsFrame,
    views::http::{Exchange, exchanges},
};

/// The suite that a transcript names, or else the one that most of its exchanges belong to; `None` when no
/// exchange belongs to any.
pub fn detect(transcript: &Transcript) -> Option<Suite> {
    let named = Suite::ALL
        .iter()
        .find(|suite| suite.name() == transcript.header.suite);
    if let Some(suite) = named {
        return Some(*suite);
    }
    let mut counts: BTreeMap<Suite, usize> = BTreeMap::new();
    let http = exchanges(transcript);
    let found = http.iter().filter_map(of_exchange);
    for suite in found.chain(of_messages(transcript)) {
        *counts.entry(suite).or_default() += 1;
    }
    // Of equals the first in the order of suites, so that the answer does not depend on luck.
    let best = counts.iter().max_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(a.0)));
    best.map(|(suite, _)| *suite)
}

/// Leaves out the exchanges that do not belong to the suite, such as the pages and pictures between which a
/// browser spoke the protocol. Gives back how many.
pub fn keep_only(suite: Suite, transcript: &mut Transcript) -> usize {
    let other: BTreeSet<ExchangeId> = exchanges(transcript)
        .iter()
        .filter(|exchange| exchange.status() != Some(101) && of_exchange(exchange) != Some(suite))
        .map(|exchange| exchange.id)
        .collect();
    transcript
        .entries
        .retain(|entry| entry.fact.exchange().is_none_or(|id| !other.contains(&id)));
    other.len()
}

fn of_exchange(exchange: &Exchange<'_>) -> Option<Suite> {
    let (method, path) = (exchange.request.method.as_str(), exchange.path());
    if covel::endpoint(method, path).is_some() {
        return Some(Suite::CovelSse);
    }
    let gemini = [":generateContent", ":streamGenerateContent"];
    match method {
        "POST" if path.ends_with("/openai/chat/completions") => Some(Suite::GeminiOpenai),
        "POST" if path.ends_with("/chat/completions") => Some(Suite::OpenaiChat),
        "POST" if path.ends_with("/v1/responses") => Some(Suite::OpenaiResponses),
        "POST" if path.ends_with("/v1/messages") => Some(Suite::AnthropicMessages),
        "POST" if gemini.iter().any(|end| path.ends_with(end)) => Some(Suite::Gemini),
        _ => None,
    }
}

/// The suites of messages on WebSockets and lines: JSON-RPC is `session-update`, other JSON `chat-ws`.
fn of_messages(transcript: &Transcript) -> Vec<Suite> {
    let suite = |fact: &Fact| {
        let (json, socket): (Value, bool) = match fact {
            Fact::WebSocket {
                frame: WsFrame::Text(text),
                ..
            } => (serde_json::from_str(text).ok()?, true),
            Fact::Line { bytes, .. } => (serde_json::from_slice(bytes).ok()?, false),
            _ => return None,
        };
        // The form of our own server, and that of one that speaks JSON-RPC.
        let kind = json.get("kind").and_then(Value::as_str);
        let is_line = matches!(kind, Some("request" | "response" | "event"));
        if json.get("jsonrpc").is_some() || (is_line && !socket) {
            Some(Suite::SessionUpdate)
        } else {
            (socket && json.get("type").is_some()).then_some(Suite::ChatWs)
        }
    };
    transcript
        .entries
        .iter()
        .filter_map(|entry| suite(&entry.fact))
        .collect()
}
