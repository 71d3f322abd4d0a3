//! Gemini: the answer (plain, and each piece of a stream), the error, token counts, models.

use serde_json::{Value, json};

use super::{count_of, id, is, list, object, one_of, text};

const FINISH: &[&str] = &[
    "FINISH_REASON_UNSPECIFIED",
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "IMAGE_SAFETY",
    "UNEXPECTED_TOOL_CALL",
];

pub(super) fn response() -> Value {
    let candidate = object(
        &[],
        &[
            ("content", content()),
            ("finishReason", one_of(FINISH)),
            ("index", count_of()),
            ("finishMessage", text()),
        ],
    );
    let feedback = object(&[], &[("blockReason", id())]);
    object(
        &[],
        &[
            ("candidates", list(candidate)),
            ("promptFeedback", feedback),
            ("usageMetadata", usage()),
            ("modelVersion", id()),
            ("responseId", id()),
        ],
    )
}

fn content() -> Value {
    let call = object(
        &[("name", id())],
        &[("args", json!({ "type": "object" })), ("id", text())],
    );
    let part = object(
        &[],
        &[
            ("text", text()),
            ("thought", json!({ "type": "boolean" })),
            ("thoughtSignature", text()),
            ("functionCall", call),
        ],
    );
    object(&[], &[("parts", list(part)), ("role", is("model"))])
}

fn usage() -> Value {
    object(
        &[],
        &[
            ("promptTokenCount", count_of()),
            ("candidatesTokenCount", count_of()),
            ("totalTokenCount", count_of()),
            ("cachedContentTokenCount", count_of()),
            ("thoughtsTokenCount", count_of()),
            ("toolUsePromptTokenCount", count_of()),
        ],
    )
}

pub(super) fn error() -> Value {
    let detail = object(
        &[
            ("code", count_of()),
            ("message", text()),
            (
                "status",
                json!({ "type": "string", "pattern": "^[A-Z_]+$" }),
            ),
        ],
        &[("details", list(json!({ "type": "object" })))],
    );
    object(&[("error", detail)], &[])
}

pub(super) fn count() -> Value {
    object(
        &[("totalTokens", count_of())],
        &[("cachedContentTokenCount", count_of())],
    )
}

pub(super) fn model() -> Value {
    object(
        &[("name", json!({ "type": "string", "pattern": "^models/." }))],
        &[
            ("version", text()),
            ("displayName", text()),
            ("description", text()),
            ("inputTokenLimit", count_of()),
            ("outputTokenLimit", count_of()),
        ],
    )
}

pub(super) fn models() -> Value {
    object(&[("models", list(model()))], &[("nextPageToken", text())])
}
