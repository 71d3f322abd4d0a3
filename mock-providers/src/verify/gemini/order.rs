//! Calls, responses and signatures: their shapes and their order.

use serde_json::Value;
use turnwire_spec::llm::gemini::SKIP_SIGNATURE;

use super::all_parts;
use crate::verify::{Faults, Request};
use crate::wires::gemini::{contents, member, parts, signs};
use crate::wires::openai_chat::GEMINI_CALL;
use crate::wires::signatures::call_text;

fn calls(content: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    parts(content)
        .iter()
        .map(|part| (part, member(part, "functionCall")))
        .filter(|(_, call)| call.is_object())
}

fn responses(content: &Value) -> impl Iterator<Item = &Value> {
    parts(content)
        .iter()
        .map(|part| member(part, "functionResponse"))
        .filter(|one| one.is_object())
}

fn has_calls(content: &Value) -> bool {
    calls(content).next().is_some()
}

fn has_responses(content: &Value) -> bool {
    responses(content).next().is_some()
}

pub(super) fn calls_follow_the_user(request: &Request<'_>, faults: &mut Faults) {
    let list = contents(request.body);
    for (at, _) in list
        .iter()
        .enumerate()
        .filter(|(_, content)| has_calls(content))
    {
        let before = at.checked_sub(1).and_then(|before| list.get(before));
        if before.is_none_or(|before| before["role"] == "model") {
            faults.at(
                format!("contents[{at}]"),
                "Please ensure that function call turn comes \
             immediately after a user turn or after a function response turn.",
            );
        }
    }
}

pub(super) fn responses_follow_calls(request: &Request<'_>, faults: &mut Faults) {
    let list = contents(request.body);
    for (at, _) in list
        .iter()
        .enumerate()
        .filter(|(_, content)| has_responses(content))
    {
        let before = at.checked_sub(1).and_then(|before| list.get(before));
        if !before.is_some_and(has_calls) {
            faults.at(
                format!("contents[{at}]"),
                "Please ensure that function response turn \
             comes immediately after a function call turn.",
            );
        }
    }
}

pub(super) fn responses_are_as_many_as_calls(request: &Request<'_>, faults: &mut Faults) {
    let list = contents(request.body);
    for (at, content) in list
        .iter()
        .enumerate()
        .filter(|(_, content)| has_calls(content))
    {
        let wanted = calls(content).count();
        let got = list.get(at + 1).map_or(0, |next| responses(next).count());
        if wanted != got {
            faults.at(
                format!("contents[{at}]"),
                "Please ensure that the number of function \
             response parts is equal to the number of function call parts of the function call \
             turn.",
            );
        }
    }
}

pub(super) fn responses_are_objects(request: &Request<'_>, faults: &mut Faults) {
    for (at, place, part) in all_parts(request) {
        let response = member(part, "functionResponse");
        if response.is_object() && !response["response"].is_object() {
            let param = format!("contents[{at}].parts[{place}].function_response.response");
            faults.at(
                &param,
                format!(
                    "Invalid value at '{param}' (type.googleapis.com/google.protobuf.Struct), {}",
                    response["response"]
                ),
            );
        }
    }
}

/// Every call with the response that belongs to it: by id where one has the call's id, else by place.
fn pairs<'a>(request: &Request<'a>) -> Vec<(&'a Value, &'a Value)> {
    let list = contents(request.body);
    let mut pairs = Vec::new();
    for (content, next) in list.iter().zip(list.iter().skip(1)) {
        let answers: Vec<&Value> = responses(next).collect();
        for (at, (_, call)) in calls(content).enumerate() {
            let by_id = answers
                .iter()
                .find(|one| !call["id"].is_null() && one["id"] == call["id"]);
            if let Some(answer) = by_id.or(answers.get(at)) {
                pairs.push((call, *answer));
            }
        }
    }
    pairs
}

pub(super) fn responses_carry_the_calls_id(request: &Request<'_>, faults: &mut Faults) {
    for (call, response) in pairs(request) {
        if !call["id"].is_null() && response["id"] != call["id"] {
            faults.at(
                "contents",
                format!(
                    "The function response for call id {} has id {}.",
                    call["id"], response["id"]
                ),
            );
        }
    }
}

pub(super) fn responses_carry_the_calls_name(request: &Request<'_>, faults: &mut Faults) {
    for (call, response) in pairs(request) {
        if response["name"] != call["name"] {
            faults.at(
                "contents",
                format!(
                    "The function response has name {}, but the function call has name {}.",
                    response["name"], call["name"]
                ),
            );
        }
    }
}

/// The place of the first content of the current turn: the last one in which the user speaks.
fn current_turn(list: &[Value]) -> usize {
    let speaks = |content: &Value| content["role"] == "user" && !has_responses(content);
    list.iter().rposition(speaks).unwrap_or(0)
}

pub(super) fn current_calls_are_signed(request: &Request<'_>, faults: &mut Faults) {
    if !signs(request.model) {
        return;
    }
    let list = contents(request.body);
    for (at, content) in list.iter().enumerate().skip(current_turn(list)) {
        let Some((part, call)) = calls(content).next() else {
            continue;
        };
        if member(part, "thoughtSignature").is_null() {
            let name = call["name"].as_str().unwrap_or_default();
            faults.at(
                format!("contents[{at}]"),
                format!(
                    "Function call is missing a \
             thought_signature in functionCall parts. This is required for tools to work \
             correctly, and missing thought_signature may lead to degraded model performance. \
             Additional data, function call `default_api:{name}` , position {at}."
                ),
            );
        }
    }
}

/// Whether a signature belongs to a call, or is accepted in place of one.
pub(in crate::verify) fn signature_fits(
    request: &Request<'_>,
    name: &str,
    args: &Value,
    signature: &str,
) -> bool {
    signature == SKIP_SIGNATURE
        || request
            .signer
            .fits(GEMINI_CALL, &call_text(name, args), signature)
        || request.memory.made(signature)
}

pub(super) fn signatures_fit(request: &Request<'_>, faults: &mut Faults) {
    for (at, place, part) in all_parts(request) {
        let Some(signature) = member(part, "thoughtSignature").as_str() else {
            continue;
        };
        let call = member(part, "functionCall");
        let name = call["name"].as_str().unwrap_or_default();
        let good = if call.is_object() {
            signature_fits(request, name, &call["args"], signature)
        } else {
            signature == SKIP_SIGNATURE
                || request.signer.fits("gemini text", "", signature)
                || request.memory.made(signature)
        };
        if !good {
            faults.at(
                format!("contents[{at}].parts[{place}].thought_signature"),
                "Corrupted thought signature.",
            );
        }
    }
}
