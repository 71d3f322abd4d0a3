//! What golden files could be examples of, as far as tables say.

use std::collections::BTreeSet;

use turnwire_spec::{
    chat_ws::{self, NoticeKind, close::CLOSE_CODES},
    covel::{self, errors::ERROR_CODES, events::EVENTS, meta::ActionStream},
    llm,
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

/// What golden files of a suite could be examples of, as far as tables say; nothing where no table does.
pub fn known(suite: &str) -> BTreeSet<Example> {
    match suite {
        "covel-sse" => return known_covel(),
        "chat-ws" => return known_chat(),
        "session-update" => return known_update(),
        _ => {}
    }
    llm::events::of(suite)
        .map(|event| pair("event", &event.name()))
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
