//! Anthropic Messages: the message, the events of a stream, the error, token counts, models.

use serde_json::{Value, json};

use super::{count_of, id, is, list, object, one_of_or_null, or_null, tagged, text};

const STOP: &[&str] = &[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
];

pub(super) fn message() -> Value {
    object(
        &[
            ("id", id()),
            ("type", is("message")),
            ("role", is("assistant")),
            ("model", id()),
            ("content", list(block())),
            ("stop_reason", one_of_or_null(STOP)),
            ("stop_sequence", json!({ "type": ["string", "null"] })),
            ("usage", usage()),
        ],
        &[],
    )
}

fn usage() -> Value {
    object(
        &[("input_tokens", count_of()), ("output_tokens", count_of())],
        &cached(),
    )
}

fn cached() -> [(&'static str, Value); 2] {
    [
        ("cache_creation_input_tokens", or_null(&count_of())),
        ("cache_read_input_tokens", or_null(&count_of())),
    ]
}

fn block() -> Value {
    tagged(
        "type",
        &[
            ("text", object(&[("text", text())], &[])),
            (
                "thinking",
                object(&[("thinking", text()), ("signature", text())], &[]),
            ),
            ("redacted_thinking", object(&[("data", text())], &[])),
            (
                "tool_use",
                object(
                    &[
                        ("id", id()),
                        ("name", id()),
                        ("input", json!({ "type": "object" })),
                    ],
                    &[],
                ),
            ),
        ],
    )
}

pub(super) fn event() -> Value {
    let index = || ("index", count_of());
    let delta = tagged(
        "type",
        &[
            ("text_delta", object(&[("text", text())], &[])),
            ("thinking_delta", object(&[("thinking", text())], &[])),
            ("signature_delta", object(&[("signature", text())], &[])),
            ("input_json_delta", object(&[("partial_json", text())], &[])),
        ],
    );
    let at_the_end = object(
        &[
            ("stop_reason", one_of_or_null(STOP)),
            ("stop_sequence", json!({ "type": ["string", "null"] })),
        ],
        &[],
    );
    let total = {
        let mut optional = cached().to_vec();
        optional.push(("input_tokens", or_null(&count_of())));
        object(&[("output_tokens", count_of())], &optional)
    };
    tagged(
        "type",
        &[
            ("message_start", object(&[("message", message())], &[])),
            (
                "content_block_start",
                object(&[index(), ("content_block", block())], &[]),
            ),
            (
                "content_block_delta",
                object(&[index(), ("delta", delta)], &[]),
            ),
            ("content_block_stop", object(&[index()], &[])),
            (
                "message_delta",
                object(&[("delta", at_the_end), ("usage", total)], &[]),
            ),
            ("error", error()),
        ],
    )
}

pub(super) fn error() -> Value {
    let detail = object(&[("type", id()), ("message", text())], &[]);
    object(
        &[("type", is("error")), ("error", detail)],
        &[("request_id", json!({ "type": ["string", "null"] }))],
    )
}

pub(super) fn count() -> Value {
    object(&[("input_tokens", count_of())], &[])
}

pub(super) fn model() -> Value {
    object(
        &[
            ("type", is("model")),
            ("id", id()),
            ("display_name", text()),
            ("created_at", text()),
        ],
        &[],
    )
}

pub(super) fn models() -> Value {
    object(
        &[
            ("data", list(model())),
            ("has_more", json!({ "type": "boolean" })),
            ("first_id", json!({ "type": ["string", "null"] })),
            ("last_id", json!({ "type": ["string", "null"] })),
        ],
        &[],
    )
}
