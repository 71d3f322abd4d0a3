//! Chat Completions: the plain answer, the chunk, the error, models.

use serde_json::{Value, json};

use super::{count_of, id, is, list, object, one_of, one_of_or_null, or_null, text};

const FINISH: &[&str] = &[
    "stop",
    "length",
    "tool_calls",
    "content_filter",
    "function_call",
];

pub(super) fn completion() -> Value {
    let choice = object(
        &[
            ("index", count_of()),
            ("message", message()),
            ("finish_reason", one_of(FINISH)),
        ],
        &[("logprobs", or_null(&json!({ "type": "object" })))],
    );
    object(
        &[
            ("id", id()),
            ("object", is("chat.completion")),
            ("created", count_of()),
            ("model", id()),
            (
                "choices",
                json!({ "type": "array", "items": choice, "minItems": 1 }),
            ),
        ],
        &[
            ("usage", or_null(&usage())),
            ("service_tier", or_null(&text())),
            ("system_fingerprint", or_null(&text())),
        ],
    )
}

fn message() -> Value {
    object(
        &[
            ("role", is("assistant")),
            ("content", json!({ "type": ["string", "null"] })),
        ],
        &[
            ("refusal", json!({ "type": ["string", "null"] })),
            ("annotations", or_null(&list(json!({ "type": "object" })))),
            ("tool_calls", or_null(&list(call()))),
        ],
    )
}

fn call() -> Value {
    super::tagged(
        "type",
        &[(
            "function",
            object(
                &[
                    ("id", id()),
                    (
                        "function",
                        object(&[("name", id()), ("arguments", text())], &[]),
                    ),
                ],
                &[],
            ),
        )],
    )
}

pub(super) fn chunk() -> Value {
    let piece = object(
        &[("index", count_of())],
        &[
            ("id", or_null(&id())),
            ("type", json!({ "enum": ["function", null] })),
            (
                "function",
                or_null(&object(
                    &[],
                    &[("name", or_null(&text())), ("arguments", or_null(&text()))],
                )),
            ),
        ],
    );
    let delta = object(
        &[],
        &[
            (
                "role",
                one_of_or_null(&["developer", "system", "user", "assistant", "tool"]),
            ),
            ("content", json!({ "type": ["string", "null"] })),
            ("refusal", json!({ "type": ["string", "null"] })),
            ("tool_calls", or_null(&list(piece))),
        ],
    );
    let choice = object(
        &[("index", count_of()), ("delta", delta)],
        &[
            ("finish_reason", one_of_or_null(FINISH)),
            ("logprobs", or_null(&json!({ "type": "object" }))),
        ],
    );
    object(
        &[
            ("id", id()),
            ("object", is("chat.completion.chunk")),
            ("created", count_of()),
            ("model", id()),
            ("choices", list(choice)),
        ],
        &[
            ("usage", or_null(&usage())),
            ("service_tier", or_null(&text())),
            ("system_fingerprint", or_null(&text())),
        ],
    )
}

fn usage() -> Value {
    object(
        &[
            ("prompt_tokens", count_of()),
            ("completion_tokens", count_of()),
            ("total_tokens", count_of()),
        ],
        &[
            (
                "prompt_tokens_details",
                or_null(&object(
                    &[],
                    &[
                        ("cached_tokens", or_null(&count_of())),
                        ("cache_write_tokens", or_null(&count_of())),
                        ("audio_tokens", or_null(&count_of())),
                    ],
                )),
            ),
            (
                "completion_tokens_details",
                or_null(&object(
                    &[],
                    &[
                        ("reasoning_tokens", or_null(&count_of())),
                        ("audio_tokens", or_null(&count_of())),
                        ("accepted_prediction_tokens", or_null(&count_of())),
                        ("rejected_prediction_tokens", or_null(&count_of())),
                    ],
                )),
            ),
        ],
    )
}

pub(super) fn error() -> Value {
    let error = object(
        &[("message", text()), ("type", text())],
        &[
            ("param", json!({ "type": ["string", "null"] })),
            ("code", json!({ "type": ["string", "null"] })),
        ],
    );
    object(&[("error", error)], &[])
}

pub(super) fn model() -> Value {
    object(
        &[
            ("id", id()),
            ("object", is("model")),
            ("created", count_of()),
            ("owned_by", text()),
        ],
        &[],
    )
}

pub(super) fn models() -> Value {
    object(&[("object", is("list")), ("data", list(model()))], &[])
}
