//! What all wires ask of the conversation so far.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::continuation::{Origin, Record};
use super::message::{ChatMessage, ToolRequest};

/// The ids of all calls of a conversation.
pub(super) fn call_ids(messages: &[ChatMessage]) -> BTreeSet<String> {
    let calls = messages.iter().flat_map(|message| match message {
        ChatMessage::Assistant { tool_calls, .. } => tool_calls.as_slice(),
        _ => &[],
    });
    calls.map(|call| call.id.clone()).collect()
}

/// The record of an assistant message, when it was made by the one who is asked.
pub(super) fn matching(message: &ChatMessage, origin: &Origin) -> Option<Record> {
    record(message).filter(|record| origin.made(record))
}

/// The record of an assistant message, whoever made it.
pub(super) fn record(message: &ChatMessage) -> Option<Record> {
    match message {
        ChatMessage::Assistant { continuation, .. } => Record::read(continuation.as_ref()),
        _ => None,
    }
}

/// Whether native entries hold exactly these calls, by their ids in order.
pub(super) fn same_calls<'a>(
    ids: impl IntoIterator<Item = Option<&'a str>>,
    calls: &[ToolRequest],
) -> bool {
    let mut own = calls.iter().map(|call| call.id.as_str());
    // An entry without an id is one whose id was made up here.
    ids.into_iter()
        .all(|id| own.next().is_some_and(|own| id.is_none_or(|id| id == own)))
        && own.next().is_none()
}

/// Arguments as an object; what the model wrote is kept as far as a service takes it.
pub(super) fn object(call: &ToolRequest) -> Value {
    call.parsed()
        .filter(Value::is_object)
        .unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

/// Arguments as JSON text. Services refuse history whose arguments are none, so such become `{}`.
pub(super) fn arguments(call: &ToolRequest) -> String {
    match call.parsed() {
        Some(_) => call.arguments.clone(),
        None => "{}".to_owned(),
    }
}

/// Ids as a service takes them: those that came from it as they are, others made to fit.
pub(super) struct Ids {
    longest: usize,
    sent: BTreeMap<String, String>,
}

impl Ids {
    pub(super) fn new(longest: usize) -> Self {
        Self {
            longest,
            sent: BTreeMap::new(),
        }
    }

    /// The id of a call; `own` when the service made it itself.
    pub(super) fn call(&mut self, id: &str, own: bool) -> String {
        let sent = if own { id.to_owned() } else { self.fitted(id) };
        self.sent.insert(id.to_owned(), sent.clone());
        sent
    }

    /// The id of a call's result: that of the call as it was sent.
    pub(super) fn result(&self, id: &str) -> String {
        self.sent
            .get(id)
            .cloned()
            .unwrap_or_else(|| self.fitted(id))
    }

    fn fitted(&self, id: &str) -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !id.is_empty() && id.len() <= self.longest && id.chars().all(allowed) {
            return id.to_owned();
        }
        let digest = Sha256::digest(id.as_bytes());
        let digits: String = digest
            .iter()
            .take(12)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("call_{digits}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_ids_are_made_to_fit_and_the_results_follow() {
        let mut ids = Ids::new(40);
        assert_eq!(ids.call("call_1", false), "call_1");
        assert_eq!(ids.call("functions.f:0", true), "functions.f:0");
        assert_eq!(ids.result("functions.f:0"), "functions.f:0");

        let fitted = ids.call("functions.g:1", false);
        assert!(
            fitted.starts_with("call_") && fitted.len() <= 40,
            "{fitted}"
        );
        assert_eq!(ids.result("functions.g:1"), fitted);
        assert_ne!(ids.call(&"x".repeat(80), false), fitted);
    }
}
