//! What golden files could be examples of, as far as tables say.

use std::collections::BTreeSet;

use turnwire_spec::{
    chat_ws::{self, NoticeKind, close::CLOSE_CODES},
    covel::{self, errors::ERROR_CODES, events::EVENTS, meta::ActionStream},
    session_update::{self, ErrorType},
};

use super::Example;

/// The kinds of examples.
pub(super) const KINDS: &[&str] = &[
    "action frame",
    "subscription frame",
    "relay frame",
    "rejection",
    "endpoint",
    "reset",
    "message",
    "notice",
    "close",
    "method",
    "event",
    "error",
];

/// Events of the wires' streams, by suite. Source: the types of `spec/src/llm`.
pub(super) const WIRE_EVENTS: &[(&str, &[&str])] = &[
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

/// What golden files of a suite could be examples of, as far as tables say; nothing where no table does.
pub fn known(suite: &str) -> BTreeSet<Example> {
    match suite {
        "covel-sse" => return known_covel(),
        "chat-ws" => return known_chat(),
        "session-update" => return known_update(),
        _ => {}
    }
    let wire = WIRE_EVENTS.iter().filter(|(name, _)| *name == suite);
    wire.flat_map(|(_, events)| events.iter())
        .map(|event| ("event".to_owned(), (*event).to_owned()))
        .collect()
}

fn pair(kind: &str, name: &str) -> Example {
    (kind.to_owned(), name.to_owned())
}

/// Frames, kinds of notices, and the codes with which a server closes.
fn known_chat() -> BTreeSet<Example> {
    let messages = chat_ws::KINDS.iter().map(|kind| pair("message", kind.name));
    let notices = NoticeKind::ALL
        .iter()
        .map(|kind| pair("notice", kind.name()));
    let codes = CLOSE_CODES
        .iter()
        .map(|code| pair("close", &code.code.to_string()));
    messages.chain(notices).chain(codes).collect()
}

/// Methods, the events that our own server sends, and errors.
fn known_update() -> BTreeSet<Example> {
    let methods = session_update::METHODS.iter();
    let methods = methods.map(|method| pair("method", method.name));
    let own = session_update::EVENTS
        .iter()
        .filter(|event| event.members.is_some());
    let events = own.map(|event| pair("event", event.name));
    let errors = ErrorType::ALL
        .iter()
        .map(|error| pair("error", error.name()));
    methods.chain(events).chain(errors).collect()
}

fn known_covel() -> BTreeSet<Example> {
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
