//! What the golden files are examples of: event types, rejections, reset reasons, endpoints, frames of the wires.
//!
//! `golden/examples.txt` lists what there is, one line each: suite, kind, name, file. It is made with the golden
//! files and is part of the program, so that `coverage` can count what has no example yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwire_spec::{
    catalogue::rule::StreamKind,
    covel::{self, errors::ERROR_CODES, events::EVENTS, meta::ActionStream},
};

use super::layout::{Align, table};
use crate::transcript::{
    Fact, Transcript, WsFrame,
    views::{
        http::{Exchange, exchanges},
        stream::streams,
    },
};

/// The index as it was when the program was built.
const INDEX: &str = include_str!("../../../golden/examples.txt");

/// Something that a golden file can be an example of: its kind and its name.
pub type Example = (String, String);

/// Events of the wires' streams, by suite. Source: the types of `spec/src/llm`.
const WIRE_EVENTS: &[(&str, &[&str])] = &[
    (
        "openai-chat",
        &[
            "delta role",
            "delta content",
            "delta refusal",
            "delta tool_calls",
            "delta reasoning_content",
            "finish_reason stop",
            "finish_reason length",
            "finish_reason tool_calls",
            "finish_reason content_filter",
            "usage",
            "[DONE]",
            "error",
        ],
    ),
    (
        "openai-responses",
        &[
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.output_item.done",
            "response.content_part.added",
            "response.content_part.done",
            "response.output_text.delta",
            "response.output_text.done",
            "response.refusal.delta",
            "response.refusal.done",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_part.done",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.completed",
            "response.incomplete",
            "response.failed",
            "error",
        ],
    ),
    (
        "anthropic-messages",
        &[
            "message_start",
            "content_block_start text",
            "content_block_start thinking",
            "content_block_start tool_use",
            "content_block_delta text_delta",
            "content_block_delta thinking_delta",
            "content_block_delta signature_delta",
            "content_block_delta input_json_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
            "ping",
            "error",
        ],
    ),
    (
        "gemini",
        &[
            "part text",
            "part thought",
            "part functionCall",
            "finishReason STOP",
            "finishReason MAX_TOKENS",
            "finishReason SAFETY",
            "promptFeedback",
            "usageMetadata",
            "error",
        ],
    ),
];

/// What golden files of a suite could be examples of, as far as tables say.
pub fn known(suite: &str) -> BTreeSet<Example> {
    if suite == "covel-sse" {
        return known_covel();
    }
    let wire = WIRE_EVENTS.iter().filter(|(name, _)| *name == suite);
    wire.flat_map(|(_, events)| events.iter())
        .map(|event| ("event".to_owned(), (*event).to_owned()))
        .collect()
}

fn known_covel() -> BTreeSet<Example> {
    let pair = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
    let mut known = BTreeSet::new();
    for event in EVENTS {
        if event.action_stream != ActionStream::Never {
            known.insert(pair("action frame", event.name));
        }
        if event.on_subscription() {
            known.insert(pair("subscription frame", event.name));
        }
    }
    for name in ["system.connected", "system.heartbeat", "system.reset"] {
        known.insert(pair("subscription frame", name));
    }
    for code in ERROR_CODES {
        known.insert(pair("rejection", &format!("{} {}", code.status, code.code)));
    }
    for endpoint in covel::ENDPOINTS {
        known.insert(pair(
            "endpoint",
            &format!("{} {}", endpoint.method, endpoint.path),
        ));
    }
    for reason in covel::ResetReason::ALL {
        known.insert(pair("reset", reason.name()));
    }
    known
}

/// What a transcript is an example of.
pub fn of(transcript: &Transcript) -> BTreeSet<Example> {
    match transcript.header.suite.as_str() {
        "covel-sse" => of_covel(transcript),
        suite if WIRE_EVENTS.iter().any(|(name, _)| *name == suite) => of_wire(suite, transcript),
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
        "openai-chat" => {
            let members = [
                "role",
                "content",
                "refusal",
                "tool_calls",
                "reasoning_content",
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

/// Messages of other channels, by their type or method.
fn of_messages(transcript: &Transcript) -> BTreeSet<Example> {
    let name = |fact: &Fact| {
        let json: Value = match fact {
            Fact::WebSocket {
                frame: WsFrame::Text(text),
                ..
            } => serde_json::from_str(text).ok()?,
            Fact::Line { bytes, .. } => serde_json::from_slice(bytes).ok()?,
            _ => return None,
        };
        let update = json.pointer("/params/update/sessionUpdate");
        let name = update
            .or_else(|| json.get("method"))
            .or_else(|| json.get("type"))?;
        Some(("message".to_owned(), name.as_str()?.to_owned()))
    };
    transcript
        .entries
        .iter()
        .filter_map(|entry| name(&entry.fact))
        .collect()
}

/// The index of these files, by name: each example with the first file that shows it.
pub fn index(files: impl IntoIterator<Item = (String, Transcript)>) -> String {
    let mut first: BTreeMap<(String, Example), String> = BTreeMap::new();
    for (name, transcript) in files {
        for example in of(&transcript) {
            let key = (transcript.header.suite.clone(), example);
            first.entry(key).or_insert_with(|| name.clone());
        }
    }
    let mut out = String::new();
    for ((suite, (kind, name)), file) in first {
        let _ = writeln!(out, "{suite}\t{kind}\t{name}\t{file}");
    }
    out
}

/// How many of the things that there are have a golden example.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct ExampleCoverage {
    /// What golden files could be examples of: event types, rejections, reset reasons, endpoints, wire events.
    pub known: usize,
    /// Those that have an example.
    pub shown: usize,
    /// Those that have none, as `KIND NAME`.
    pub missing: Vec<String>,
}

/// Counts the examples of a suite; `None` where no table says what there is.
pub fn coverage(suite: &str) -> Option<ExampleCoverage> {
    let known = known(suite);
    if known.is_empty() {
        return None;
    }
    let shown: BTreeSet<Example> = INDEX
        .lines()
        .filter_map(|line| {
            let mut parts = line.split('\t');
            (parts.next()? == suite).then_some(())?;
            Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
        })
        .collect();
    let missing: Vec<String> = known
        .difference(&shown)
        .map(|(kind, name)| format!("{kind} {name}"))
        .collect();
    Some(ExampleCoverage {
        known: known.len(),
        shown: known.len() - missing.len(),
        missing,
    })
}

/// A table of the counts by suite.
pub fn render(rows: &BTreeMap<String, ExampleCoverage>) -> String {
    let heading = ["golden examples", "known", "shown", "missing"].map(str::to_owned);
    let mut lines = vec![heading.to_vec()];
    lines.extend(rows.iter().map(|(suite, counts)| {
        vec![
            suite.clone(),
            counts.known.to_string(),
            counts.shown.to_string(),
            counts.missing.len().to_string(),
        ]
    }));
    table(
        &[Align::Left, Align::Right, Align::Right, Align::Right],
        &lines,
    )
}
