//! Responses: the response object, the events of a stream, token counts.

use serde_json::{Value, json};

use super::{count_of, id, is, list, object, one_of, one_of_or_null, or_null, tagged, text};

const STATUS: &[&str] = &["in_progress", "completed", "incomplete"];

pub(super) fn response() -> Value {
    object(
        &[
            ("id", id()),
            ("object", is("response")),
            ("created_at", json!({ "type": "number" })),
            (
                "status",
                one_of(&[
                    "completed",
                    "failed",
                    "in_progress",
                    "cancelled",
                    "queued",
                    "incomplete",
                ]),
            ),
            ("error", or_null(&failure())),
            (
                "incomplete_details",
                or_null(&object(
                    &[],
                    &[(
                        "reason",
                        one_of_or_null(&["max_output_tokens", "content_filter"]),
                    )],
                )),
            ),
            ("model", id()),
            ("output", list(item())),
            ("parallel_tool_calls", json!({ "type": "boolean" })),
            ("tool_choice", json!({ "type": ["string", "object"] })),
            ("tools", list(json!({ "type": "object" }))),
        ],
        &[
            ("usage", or_null(&usage())),
            (
                "previous_response_id",
                json!({ "type": ["string", "null"] }),
            ),
            ("temperature", json!({ "type": ["number", "null"] })),
            ("top_p", json!({ "type": ["number", "null"] })),
            ("metadata", json!({ "type": ["object", "null"] })),
            ("background", json!({ "type": ["boolean", "null"] })),
            ("truncation", one_of_or_null(&["auto", "disabled"])),
            ("max_output_tokens", json!({ "type": ["integer", "null"] })),
        ],
    )
}

fn failure() -> Value {
    object(&[("code", text()), ("message", text())], &[])
}

fn usage() -> Value {
    object(
        &[
            ("input_tokens", count_of()),
            ("output_tokens", count_of()),
            ("total_tokens", count_of()),
            (
                "input_tokens_details",
                object(
                    &[("cached_tokens", count_of())],
                    &[("cache_write_tokens", or_null(&count_of()))],
                ),
            ),
            (
                "output_tokens_details",
                object(&[("reasoning_tokens", count_of())], &[]),
            ),
        ],
        &[],
    )
}

fn item() -> Value {
    tagged(
        "type",
        &[
            (
                "message",
                object(
                    &[
                        ("id", id()),
                        ("role", is("assistant")),
                        ("status", one_of(STATUS)),
                        ("content", list(part())),
                    ],
                    &[],
                ),
            ),
            (
                "function_call",
                object(
                    &[("call_id", id()), ("name", id()), ("arguments", text())],
                    &[("id", or_null(&id())), ("status", one_of_or_null(STATUS))],
                ),
            ),
            (
                "reasoning",
                object(
                    &[("id", id()), ("summary", list(summary()))],
                    &[
                        ("encrypted_content", json!({ "type": ["string", "null"] })),
                        ("status", one_of_or_null(STATUS)),
                    ],
                ),
            ),
        ],
    )
}

fn summary() -> Value {
    object(&[("type", is("summary_text")), ("text", text())], &[])
}

fn part() -> Value {
    tagged(
        "type",
        &[
            (
                "output_text",
                object(
                    &[
                        ("text", text()),
                        ("annotations", list(json!({ "type": "object" }))),
                    ],
                    &[("logprobs", json!({ "type": ["array", "null"] }))],
                ),
            ),
            ("refusal", object(&[("refusal", text())], &[])),
        ],
    )
}

pub(super) fn event() -> Value {
    let number = || ("sequence_number", count_of());
    let whole = || object(&[number(), ("response", response())], &[]);
    let of_item = || {
        object(
            &[number(), ("output_index", count_of()), ("item", item())],
            &[],
        )
    };
    let within = |more: &[(&str, Value)]| {
        let mut members = vec![number(), ("output_index", count_of()), ("item_id", id())];
        members.extend(more.iter().cloned());
        object(&members, &[])
    };
    let content = |more: &[(&str, Value)]| {
        let mut members = vec![("content_index", count_of())];
        members.extend(more.iter().cloned());
        within(&members)
    };
    let of_summary = |more: &[(&str, Value)]| {
        let mut members = vec![("summary_index", count_of())];
        members.extend(more.iter().cloned());
        within(&members)
    };
    let logprobs = || ("logprobs", json!({ "type": "array" }));
    tagged(
        "type",
        &[
            ("response.created", whole()),
            ("response.queued", whole()),
            ("response.in_progress", whole()),
            ("response.completed", whole()),
            ("response.incomplete", whole()),
            ("response.failed", whole()),
            ("response.output_item.added", of_item()),
            ("response.output_item.done", of_item()),
            (
                "response.content_part.added",
                content(&[("part", json!({ "type": "object" }))]),
            ),
            (
                "response.content_part.done",
                content(&[("part", json!({ "type": "object" }))]),
            ),
            (
                "response.output_text.delta",
                content(&[("delta", text()), logprobs()]),
            ),
            (
                "response.output_text.done",
                content(&[("text", text()), logprobs()]),
            ),
            ("response.refusal.delta", content(&[("delta", text())])),
            ("response.refusal.done", content(&[("refusal", text())])),
            (
                "response.function_call_arguments.delta",
                within(&[("delta", text())]),
            ),
            (
                "response.function_call_arguments.done",
                within(&[("arguments", text())]),
            ),
            (
                "response.reasoning_summary_part.added",
                of_summary(&[("part", json!({ "type": "object" }))]),
            ),
            (
                "response.reasoning_summary_part.done",
                of_summary(&[("part", json!({ "type": "object" }))]),
            ),
            (
                "response.reasoning_summary_text.delta",
                of_summary(&[("delta", text())]),
            ),
            (
                "response.reasoning_summary_text.done",
                of_summary(&[("text", text())]),
            ),
            (
                "response.reasoning_text.delta",
                content(&[("delta", text())]),
            ),
            ("response.reasoning_text.done", content(&[("text", text())])),
        ],
    )
}

pub(super) fn count() -> Value {
    object(
        &[
            ("object", is("response.input_tokens")),
            ("input_tokens", count_of()),
        ],
        &[],
    )
}
