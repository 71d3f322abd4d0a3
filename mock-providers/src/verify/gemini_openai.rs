//! The rules of Gemini's OpenAI-compatible endpoint: the shapes of Chat Completions, the judgement and the
//! errors of Gemini.
//!
//! Source: facts about the wire, section 5, and the issues that the catalogue names with each rule.

use serde_json::Value;

use super::gemini::body_is_json;
use super::gemini::order::signature_fits;
use super::openai_chat::order::{arguments_are_json, calls_are_answered, results_have_a_call};
use super::openai_chat::{
    images_are_objects_with_a_url, key_is_sent, model_is_named, roles_are_known, tools_are_nested,
};
use super::shape::{accepts, bearer, items, placed, unknown};
use super::{Faults, Request, Rule};
use crate::wires::gemini::signs;

/// The rules, in the order in which the service looks.
pub const RULES: &[Rule] = &[
    Rule::refused("LLM-REQ-125", key_is_sent),
    Rule::refused("LLM-REQ-126", key_is_known),
    Rule::refused("LLM-REQ-127", body_is_json),
    Rule::refused("LLM-REQ-128", model_is_named),
    Rule::refused("LLM-REQ-129", messages_are_there),
    Rule::refused("LLM-REQ-130", members_are_known),
    Rule::refused("LLM-REQ-131", roles_are_known),
    Rule::refused("LLM-REQ-132", images_are_objects_with_a_url),
    Rule::refused("LLM-REQ-133", tools_are_nested),
    Rule::refused("LLM-REQ-134", calls_are_answered),
    Rule::refused("LLM-REQ-135", results_have_a_call),
    Rule::refused("LLM-REQ-136", arguments_are_json),
    Rule::refused("LLM-REQ-137", current_calls_are_signed),
    Rule::refused("LLM-REQ-138", signatures_fit),
    Rule::refused("LLM-REQ-139", thinking_is_set_once),
];

/// What the endpoint knows; `parallel_tool_calls` is not among it.
const MEMBERS: &[&str] = &[
    "audio",
    "extra_body",
    "frequency_penalty",
    "google",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "modalities",
    "model",
    "n",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
];

fn key_is_known(request: &Request<'_>, faults: &mut Faults) {
    if bearer(request).is_some_and(|key| !accepts(request, key)) {
        faults
            .add("API key not valid. Please pass a valid API key.")
            .code("API_KEY_INVALID");
    }
}

fn messages_are_there(request: &Request<'_>, faults: &mut Faults) {
    if items(request.member("messages")).is_empty() {
        faults.at(
            "messages",
            "* GenerateContentRequest.contents: contents is not specified",
        );
    }
}

fn members_are_known(request: &Request<'_>, faults: &mut Faults) {
    for name in unknown(request.body, MEMBERS) {
        faults.at(
            name,
            format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot find field."),
        );
    }
}

fn signature(call: &Value) -> &Value {
    &call["extra_content"]["google"]["thought_signature"]
}

fn current_calls_are_signed(request: &Request<'_>, faults: &mut Faults) {
    if !signs(request.model) {
        return;
    }
    let messages = items(request.member("messages"));
    let turn = messages
        .iter()
        .rposition(|message| message["role"] == "user")
        .unwrap_or(0);
    for (at, message) in messages.iter().enumerate().skip(turn) {
        let first = items(&message["tool_calls"]).first();
        if let Some(call) = first.filter(|call| signature(call).is_null()) {
            let name = call["function"]["name"].as_str().unwrap_or_default();
            faults.at(
                format!("messages[{at}].tool_calls[0]"),
                format!(
                    "Function call is \
             missing a thought_signature in functionCall parts. Additional data, function call \
             `default_api:{name}` , position {at}."
                ),
            );
        }
    }
}

fn signatures_fit(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in placed(request.member("messages")) {
        for (place, call) in placed(&message["tool_calls"]) {
            let Some(signature) = signature(call).as_str() else {
                continue;
            };
            let function = &call["function"];
            let text = function["arguments"].as_str().unwrap_or_default();
            let args = serde_json::from_str(text).unwrap_or_default();
            let name = function["name"].as_str().unwrap_or_default();
            if !signature_fits(request, name, &args, signature) {
                faults.at(
                    format!(
                        "messages[{at}].tool_calls[{place}].extra_content.google.thought_signature"
                    ),
                    "Corrupted thought signature.",
                );
            }
        }
    }
}

/// LLM-REQ-139: the effort is a level of thinking, so a second setting of thinking contradicts it.
fn thinking_is_set_once(request: &Request<'_>, faults: &mut Faults) {
    let config = [
        &request.member("extra_body")["google"],
        request.member("google"),
    ]
    .into_iter()
    .any(|google| !google["thinking_config"].is_null());
    if config && !request.member("reasoning_effort").is_null() {
        faults.at(
            "reasoning_effort",
            "Expected one of either `reasoning_effort` or custom `thinking_config`; found both.",
        );
    }
}
