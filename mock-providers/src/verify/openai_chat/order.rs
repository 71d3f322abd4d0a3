//! Calls and results: their shapes and their order.

use std::collections::BTreeSet;

use serde_json::Value;

use super::messages;
use crate::script::Echo;
use crate::verify::shape::{items, member, placed, type_name};
use crate::verify::{Faults, Request};

/// LLM-REQ-013: of the model's messages; in those of others the service does not look at calls.
pub(super) fn calls_are_not_an_empty_list(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in messages(request) {
        let none = member(message, "tool_calls")
            .as_array()
            .is_some_and(Vec::is_empty);
        if none && member(message, "role") == "assistant" {
            let param = format!("messages[{at}].tool_calls");
            faults
                .at(
                    &param,
                    format!(
                        "Invalid '{param}': empty array. Expected an array with \
             minimum length 1, but got an empty array instead."
                    ),
                )
                .code("empty_array");
        }
    }
}

/// All calls of a conversation: message, place, call.
pub(super) fn calls<'a>(request: &Request<'a>) -> impl Iterator<Item = (usize, usize, &'a Value)> {
    messages(request).flat_map(|(at, message)| {
        placed(member(message, "tool_calls")).map(move |(place, call)| (at, place, call))
    })
}

/// LLM-REQ-142: a replayed call says of which type it is.
pub(super) fn calls_have_a_type(request: &Request<'_>, faults: &mut Faults) {
    for (at, place, call) in calls(request) {
        let param = || format!("messages[{at}].tool_calls[{place}].type");
        match member(call, "type") {
            Value::Null => {
                let param = param();
                faults
                    .at(&param, format!("Missing required parameter: '{param}'."))
                    .code("missing_required_parameter");
            }
            kind if kind == "function" || kind == "custom" => {}
            kind => {
                faults
                    .at(
                        param(),
                        format!(
                            "Invalid value: {kind}. Supported values are: 'function', \
                             'allowed_tools', and 'custom'."
                        ),
                    )
                    .code("invalid_value");
            }
        }
    }
}

pub(super) fn arguments_are_text(request: &Request<'_>, faults: &mut Faults) {
    for (at, place, call) in calls(request) {
        let custom = call["type"] == "custom" && call["custom"]["input"].is_string();
        if !(call["function"]["arguments"].is_string() || custom) {
            let param = format!("messages[{at}].tool_calls[{place}].function.arguments");
            let got = type_name(&call["function"]["arguments"]);
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

/// LLM-REQ-015: the text of the arguments is JSON.
pub(in crate::verify) fn arguments_are_json(request: &Request<'_>, faults: &mut Faults) {
    for (at, place, call) in calls(request) {
        let text = call["function"]["arguments"].as_str();
        if text.is_some_and(|text| serde_json::from_str::<Value>(text).is_err()) {
            let param = format!("messages[{at}].tool_calls[{place}].function.arguments");
            faults.at(
                &param,
                format!("'{param}' is no JSON; several services refuse or drop it."),
            );
        }
    }
}

pub(super) fn call_ids_are_unique(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in messages(request) {
        let mut seen = BTreeSet::new();
        for call in items(member(message, "tool_calls")) {
            let id = call["id"].as_str().unwrap_or_default();
            if !seen.insert(id) {
                faults
                    .at(
                        format!("messages[{at}].tool_calls"),
                        format!("Duplicate value for 'tool_call_id' of '{id}'"),
                    )
                    .code("invalid_value");
            }
        }
    }
}

/// Characters of a call's id: 40 in older reports, 64 in newer ones.
const LONGEST_ID: usize = 64;

pub(super) fn call_ids_are_short(request: &Request<'_>, faults: &mut Faults) {
    for (at, place, call) in calls(request) {
        let length = call["id"].as_str().map_or(0, str::len);
        if length > LONGEST_ID {
            let param = format!("messages[{at}].tool_calls[{place}].id");
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

/// LLM-REQ-018: the messages after a message with calls are the results, one for each call.
pub(in crate::verify) fn calls_are_answered(request: &Request<'_>, faults: &mut Faults) {
    let messages = items(request.member("messages"));
    for (at, message) in messages.iter().enumerate() {
        let calls = items(member(message, "tool_calls"));
        if member(message, "role") != "assistant" || calls.is_empty() {
            continue;
        }
        let rest = messages.get(at + 1..).unwrap_or_default();
        let results = rest
            .iter()
            .take_while(|next| member(next, "role") == "tool");
        let answered: BTreeSet<&str> = results
            .filter_map(|result| result["tool_call_id"].as_str())
            .collect();
        let missing: Vec<&str> = calls
            .iter()
            .filter_map(|call| call["id"].as_str())
            .filter(|id| !answered.contains(id))
            .collect();
        if !missing.is_empty() {
            faults.at(
                format!("messages[{}].role", at + 1),
                format!(
                    "An assistant message with \
             'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
             The following tool_call_ids did not have response messages: {}",
                    missing.join(", ")
                ),
            );
        }
    }
}

/// LLM-REQ-019: a result answers a call of the message before its run of results.
pub(in crate::verify) fn results_have_a_call(request: &Request<'_>, faults: &mut Faults) {
    let messages = items(request.member("messages"));
    for (at, message) in messages.iter().enumerate() {
        let Some(id) = member(message, "tool_call_id")
            .as_str()
            .filter(|_| member(message, "role") == "tool")
        else {
            continue;
        };
        let before = messages.get(..at).unwrap_or_default();
        let caller = before.iter().rev().find(|other| other["role"] != "tool");
        let calls = caller.map_or(&[][..], |caller| items(&caller["tool_calls"]));
        if !calls.iter().any(|call| call["id"] == id) {
            faults.at(
                format!("messages[{at}].role"),
                "Invalid parameter: messages with role \
             'tool' must be a response to a preceding message with 'tool_calls'.",
            );
        }
    }
}

/// LLM-REQ-020: a result names its call.
pub(super) fn results_name_their_call(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in messages(request) {
        if member(message, "role") == "tool" && !member(message, "tool_call_id").is_string() {
            let param = format!("messages[{at}].tool_call_id");
            faults
                .at(&param, format!("Missing required parameter: '{param}'."))
                .code("missing_required_parameter");
        }
    }
}

/// LLM-REQ-033: services that want thinking back get it, and those that refuse it do not.
pub(super) fn thinking_comes_back_as_asked(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in
        messages(request).filter(|(_, message)| member(message, "role") == "assistant")
    {
        let echoed = !member(message, "reasoning_content").is_null();
        match request.echo {
            Some(Echo::Required) if !echoed && !items(member(message, "tool_calls")).is_empty() => {
                faults.at(
                    format!("messages[{at}].reasoning_content"),
                    "Missing \
                 `reasoning_content` field in the assistant message at message index. In \
                 thinking mode, assistant messages with tool calls must carry it.",
                );
            }
            Some(Echo::Refused) if echoed => {
                faults.at(
                    format!("messages[{at}].reasoning_content"),
                    "The reasoning_content of an assistant message must not be sent back.",
                );
            }
            _ => {}
        }
    }
}
