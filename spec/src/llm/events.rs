//! What the streams of the wires tell, in one table.
//!
//! A row is something that a reader has to deal with in its own way: a type of event, and where one type carries
//! several forms (the kinds of content blocks, the members of a delta, the reasons for an end) a row for each form. The
//! wires without types of events have forms alone.
//!
//! Source: the types of this module, which follow the providers' public references.

use super::Wire;

/// Something that a stream of a wire tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WireEvent {
    /// The wire.
    pub wire: Wire,
    /// The type of the event; empty on a wire that has no types.
    pub kind: &'static str,
    /// What the event carries, where one type carries several things, or there are no types; else empty.
    pub form: &'static str,
}

impl WireEvent {
    /// Type and form, as far as there are any: `content_block_start text`, `finish_reason stop`, `ping`.
    pub fn name(&self) -> String {
        [self.kind, self.form]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// The types of events, each once, in the order of the table.
pub fn types() -> Vec<&'static str> {
    let mut types = Vec::new();
    for event in EVENTS {
        if !event.kind.is_empty() && !types.contains(&event.kind) {
            types.push(event.kind);
        }
    }
    types
}

/// What there is on a wire.
pub fn of(wire: &str) -> impl Iterator<Item = &'static WireEvent> {
    EVENTS
        .iter()
        .filter(move |event| event.wire.as_str() == wire)
}

const fn chat(form: &'static str) -> WireEvent {
    row(Wire::OpenaiChat, "", form)
}

const fn compatible(form: &'static str) -> WireEvent {
    row(Wire::GeminiOpenai, "", form)
}

const fn gemini(form: &'static str) -> WireEvent {
    row(Wire::Gemini, "", form)
}

const fn responses(kind: &'static str) -> WireEvent {
    row(Wire::OpenaiResponses, kind, "")
}

const fn anthropic(kind: &'static str, form: &'static str) -> WireEvent {
    row(Wire::AnthropicMessages, kind, form)
}

const fn row(wire: Wire, kind: &'static str, form: &'static str) -> WireEvent {
    WireEvent { wire, kind, form }
}

/// Every row, wire by wire.
pub const EVENTS: &[WireEvent] = &[
    responses("response.created"),
    responses("response.queued"),
    responses("response.in_progress"),
    responses("response.completed"),
    responses("response.incomplete"),
    responses("response.failed"),
    responses("response.output_item.added"),
    responses("response.output_item.done"),
    responses("response.content_part.added"),
    responses("response.content_part.done"),
    responses("response.output_text.delta"),
    responses("response.output_text.done"),
    responses("response.refusal.delta"),
    responses("response.refusal.done"),
    responses("response.function_call_arguments.delta"),
    responses("response.function_call_arguments.done"),
    responses("response.reasoning_summary_part.added"),
    responses("response.reasoning_summary_part.done"),
    responses("response.reasoning_summary_text.delta"),
    responses("response.reasoning_summary_text.done"),
    responses("response.reasoning_text.delta"),
    responses("response.reasoning_text.done"),
    responses("error"),
    anthropic("message_start", ""),
    anthropic("content_block_start", "text"),
    anthropic("content_block_start", "thinking"),
    anthropic("content_block_start", "redacted_thinking"),
    anthropic("content_block_start", "tool_use"),
    anthropic("content_block_delta", "text_delta"),
    anthropic("content_block_delta", "thinking_delta"),
    anthropic("content_block_delta", "signature_delta"),
    anthropic("content_block_delta", "input_json_delta"),
    anthropic("content_block_stop", ""),
    anthropic("message_delta", ""),
    anthropic("message_stop", ""),
    anthropic("ping", ""),
    anthropic("error", ""),
    chat("delta role"),
    chat("delta content"),
    chat("delta refusal"),
    chat("delta tool_calls"),
    chat("delta reasoning_content"),
    chat("delta reasoning"),
    chat("delta reasoning_details"),
    chat("finish_reason stop"),
    chat("finish_reason length"),
    chat("finish_reason tool_calls"),
    chat("finish_reason content_filter"),
    chat("usage"),
    chat("[DONE]"),
    chat("error"),
    gemini("part text"),
    gemini("part thought"),
    gemini("part functionCall"),
    gemini("finishReason STOP"),
    gemini("finishReason MAX_TOKENS"),
    gemini("finishReason SAFETY"),
    gemini("finishReason MALFORMED_FUNCTION_CALL"),
    gemini("promptFeedback"),
    gemini("usageMetadata"),
    gemini("error"),
    compatible("delta role"),
    compatible("delta content"),
    compatible("delta tool_calls"),
    compatible("finish_reason stop"),
    compatible("finish_reason length"),
    compatible("finish_reason tool_calls"),
    compatible("finish_reason content_filter"),
    compatible("usage"),
    compatible("[DONE]"),
    compatible("error"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_row_is_there_twice_and_every_row_has_a_name() {
        let mut seen = BTreeSet::new();
        for event in EVENTS {
            assert!(!event.name().is_empty());
            assert!(seen.insert((event.wire.as_str(), event.name())));
        }
    }

    #[test]
    fn every_wire_has_rows_and_a_type_is_told_once() {
        for wire in Wire::ALL {
            assert!(of(wire.as_str()).next().is_some(), "{wire}");
        }
        let types = types();
        assert_eq!(types.iter().collect::<BTreeSet<_>>().len(), types.len());
        assert_eq!(types.first(), Some(&"response.created"));
    }
}
