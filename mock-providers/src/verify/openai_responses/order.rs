//! Calls, outputs and thinking: their shapes and their order.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{input, kind};
use crate::verify::shape::{items, type_name};
use crate::verify::{Faults, Request};

pub(super) fn reasoning_has_a_summary(request: &Request<'_>, faults: &mut Faults) {
    for (at, item) in of_kind(request, "reasoning") {
        if !item["summary"].is_array() {
            let param = format!("input[{at}].summary");
            faults
                .at(&param, format!("Missing required parameter: '{param}'."))
                .code("missing_required_parameter");
        }
    }
}

fn of_kind<'a>(request: &Request<'a>, wanted: &'a str) -> impl Iterator<Item = (usize, &'a Value)> {
    input(request)
        .iter()
        .enumerate()
        .filter(move |(_, item)| kind(item) == wanted)
}

pub(super) fn call_members_are_text(request: &Request<'_>, faults: &mut Faults) {
    for (at, call) in of_kind(request, "function_call") {
        for member in ["call_id", "name", "arguments"] {
            if !call[member].is_string() {
                let param = format!("input[{at}].{member}");
                let got = type_name(&call[member]);
                faults
                    .at(
                        &param,
                        format!(
                            "Invalid type for '{param}': expected a string, but got {got} instead."
                        ),
                    )
                    .code("invalid_type");
            }
        }
    }
}

/// Characters of a call's id.
const LONGEST_ID: usize = 64;

pub(super) fn call_ids_are_short(request: &Request<'_>, faults: &mut Faults) {
    for (at, item) in input(request).iter().enumerate() {
        let length = item["call_id"].as_str().map_or(0, str::len);
        if length > LONGEST_ID {
            let param = format!("input[{at}].call_id");
            faults
                .at(
                    &param,
                    format!(
                        "Invalid '{param}': string too long. Expected a string \
             with maximum length {LONGEST_ID}, but got a string with length {length} instead."
                    ),
                )
                .code("string_above_max_length");
        }
    }
}

pub(super) fn item_ids_keep_their_prefix(request: &Request<'_>, faults: &mut Faults) {
    for (at, item) in input(request).iter().enumerate() {
        let prefix = match kind(item) {
            "function_call" => "fc",
            "custom_tool_call" => "ctc",
            "reasoning" => "rs",
            "message" if item["role"] == "assistant" => "msg",
            _ => continue,
        };
        if let Some(id) = item["id"].as_str().filter(|id| !id.starts_with(prefix)) {
            let param = format!("input[{at}].id");
            faults
                .at(
                    &param,
                    format!(
                        "Invalid '{param}': '{id}'. Expected an ID that begins with '{prefix}'."
                    ),
                )
                .code("invalid_value");
        }
    }
}

fn is_output(item: &Value) -> bool {
    matches!(
        kind(item),
        "function_call_output" | "custom_tool_call_output"
    )
}

fn is_call(item: &Value) -> bool {
    matches!(kind(item), "function_call" | "custom_tool_call")
}

pub(super) fn outputs_are_text_or_parts(request: &Request<'_>, faults: &mut Faults) {
    for (at, item) in input(request)
        .iter()
        .enumerate()
        .filter(|(_, item)| is_output(item))
    {
        if !(item["output"].is_string() || item["output"].is_array()) {
            let param = format!("input[{at}].output");
            let got = type_name(&item["output"]);
            faults
                .at(
                    &param,
                    format!(
                        "Invalid type for '{param}': expected a string or an \
             array of content parts, but got {got} instead."
                    ),
                )
                .code("invalid_type");
        }
    }
}

pub(super) fn calls_are_answered(request: &Request<'_>, faults: &mut Faults) {
    for (at, call) in input(request)
        .iter()
        .enumerate()
        .filter(|(_, item)| is_call(item))
    {
        let rest = input(request).get(at + 1..).unwrap_or_default();
        let answered = rest
            .iter()
            .any(|item| is_output(item) && item["call_id"] == call["call_id"]);
        if let Some(id) = call["call_id"].as_str().filter(|_| !answered) {
            faults.at(
                "input",
                format!("No tool output found for function call {id}."),
            );
        }
    }
}

pub(super) fn outputs_have_a_call(request: &Request<'_>, faults: &mut Faults) {
    for (at, output) in input(request)
        .iter()
        .enumerate()
        .filter(|(_, item)| is_output(item))
    {
        let before = input(request).get(..at).unwrap_or_default();
        let called = before
            .iter()
            .any(|item| is_call(item) && item["call_id"] == output["call_id"]);
        if !called {
            let id = output["call_id"].as_str().unwrap_or_default();
            faults.at(
                "input",
                format!("No tool call found for function call output with call_id {id}."),
            );
        }
    }
}

/// Whether an item is something that thinking can lead to.
fn is_made_by_the_model(item: &Value) -> bool {
    match kind(item) {
        "message" => item["role"] == "assistant",
        "function_call_output" | "custom_tool_call_output" => false,
        _ => true,
    }
}

/// LLM-REQ-051: thinking stands directly before the item that it led to.
pub(super) fn reasoning_is_followed_by_its_item(request: &Request<'_>, faults: &mut Faults) {
    for (at, item) in of_kind(request, "reasoning") {
        if !input(request).get(at + 1).is_some_and(is_made_by_the_model) {
            let id = item["id"].as_str().unwrap_or_default();
            faults.at(
                "input",
                format!(
                    "Item '{id}' of type 'reasoning' was provided without \
             its required following item."
                ),
            );
        }
    }
}

/// LLM-REQ-052: what was made with thinking is not sent by its id without that thinking.
pub(super) fn items_keep_their_reasoning(request: &Request<'_>, faults: &mut Faults) {
    let sent: BTreeSet<&str> = of_kind(request, "reasoning")
        .filter_map(|(_, item)| item["id"].as_str())
        .collect();
    for item in input(request)
        .iter()
        .filter(|item| kind(item) != "reasoning")
    {
        let Some(id) = item["id"].as_str() else {
            continue;
        };
        let needed = request.memory.thinking_of(id).unwrap_or_default();
        if let Some(missing) = needed.iter().find(|needed| !sent.contains(needed.as_str())) {
            let kind = kind(item);
            faults.at(
                "input",
                format!(
                    "Item '{id}' of type '{kind}' was provided without its \
             required 'reasoning' item: '{missing}'."
                ),
            );
        }
    }
}

/// LLM-REQ-053: encrypted thinking comes back as `response.output_item.done` had it.
pub(super) fn encrypted_reasoning_is_unchanged(request: &Request<'_>, faults: &mut Faults) {
    for (at, item) in of_kind(request, "reasoning") {
        let Some(sent) = item["encrypted_content"].as_str() else {
            continue;
        };
        if !item["summary"].is_array() {
            continue; // LLM-REQ-044 tells.
        }
        let texts = items(&item["summary"])
            .iter()
            .chain(items(&item["content"]));
        let text: String = texts.filter_map(|part| part["text"].as_str()).collect();
        if !(request.signer.fits("encrypted", &text, sent) || request.memory.made(sent)) {
            let id = item["id"].as_str().unwrap_or_default();
            faults
                .at(
                    format!("input[{at}].encrypted_content"),
                    format!(
                        "The encrypted content \
             for item {id} could not be verified. Reason: Encrypted content could not be \
             decrypted or parsed."
                    ),
                )
                .code("invalid_encrypted_content");
        }
    }
}
