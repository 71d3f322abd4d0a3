//! Calls, results and thinking in their order.

use std::collections::BTreeSet;

use serde_json::Value;

use super::settings::{model_version, thinks};
use super::{SERVER_RESULTS, blocks, place};
use crate::verify::shape::{items, placed};
use crate::verify::{Faults, Request};

/// Messages of one role that follow each other, as one.
struct Joined<'a> {
    /// The place of the first of them.
    at: usize,
    role: &'a str,
    blocks: Vec<&'a Value>,
}

fn joined<'a>(request: &Request<'a>) -> Vec<Joined<'a>> {
    let mut list: Vec<Joined<'a>> = Vec::new();
    for (at, message) in placed(request.member("messages")) {
        let role = message["role"].as_str().unwrap_or_default();
        let blocks = items(&message["content"]).iter();
        match list.last_mut() {
            Some(last) if last.role == role => last.blocks.extend(blocks),
            _ => list.push(Joined {
                at,
                role,
                blocks: blocks.collect(),
            }),
        }
    }
    list
}

fn calls<'a, 'b>(message: &'b Joined<'a>) -> impl Iterator<Item = &'a str> + use<'a, 'b> {
    let calls = message
        .blocks
        .iter()
        .filter(|block| block["type"] == "tool_use");
    calls.filter_map(|call| call["id"].as_str())
}

fn is_result(block: &Value) -> bool {
    block["type"] == "tool_result"
}

/// LLM-REQ-083: no two calls of a request have the same id.
pub(super) fn call_ids_are_unique(request: &Request<'_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for (at, block, _, value) in blocks(request).filter(|(.., block)| block["type"] == "tool_use") {
        if value["id"].as_str().is_some_and(|id| !seen.insert(id)) {
            faults.add(format!(
                "{}: `tool_use` ids must be unique",
                place(at, block)
            ));
        }
    }
}

/// LLM-REQ-084: the message after a message with calls has a result for each of them.
pub(super) fn calls_are_answered(request: &Request<'_>, faults: &mut Faults) {
    let list = joined(request);
    for (message, next) in list.iter().zip(list.iter().skip(1).map(Some).chain([None])) {
        let results = next.map_or(&[][..], |next| next.blocks.as_slice());
        let answered: BTreeSet<&str> = results
            .iter()
            .filter(|block| is_result(block))
            .filter_map(|block| block["tool_use_id"].as_str())
            .collect();
        let missing: Vec<&str> = calls(message).filter(|id| !answered.contains(id)).collect();
        if message.role == "assistant" && !missing.is_empty() {
            faults.add(format!(
                "messages.{}: `tool_use` ids were found without `tool_result` \
             blocks immediately after: {}. Each `tool_use` block must have a corresponding \
             `tool_result` block in the next message.",
                message.at,
                missing.join(", ")
            ));
        }
    }
}

/// LLM-REQ-085: results stand before anything else in their message.
pub(super) fn results_come_first(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in placed(request.member("messages")) {
        let blocks = items(&message["content"]);
        let first_other = blocks.iter().position(|block| !is_result(block));
        let late = first_other
            .and_then(|other| blocks.get(other..))
            .is_some_and(|rest| rest.iter().any(is_result));
        if late {
            let ids = blocks.iter().filter(|block| is_result(block));
            let ids: Vec<&str> = ids
                .filter_map(|block| block["tool_use_id"].as_str())
                .collect();
            faults.add(format!(
                "messages.{}: `tool_use` ids were found without `tool_result` \
             blocks immediately after: {}. In the next message the `tool_result` blocks must \
             come first.",
                at.saturating_sub(1),
                ids.join(", ")
            ));
        }
    }
}

/// LLM-REQ-086: a result answers a call of the message just before it.
pub(super) fn results_have_a_call(request: &Request<'_>, faults: &mut Faults) {
    let list = joined(request);
    let mut before: BTreeSet<&str> = BTreeSet::new();
    for message in &list {
        for block in message.blocks.iter().filter(|block| is_result(block)) {
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            if message.role != "user" || !before.contains(id) {
                faults.add(format!(
                    "messages.{}.content: unexpected `tool_use_id` found in \
                 `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding \
                 `tool_use` block in the previous message.",
                    message.at
                ));
            }
        }
        before = calls(message).collect();
    }
}

/// LLM-REQ-088: the result of a tool of the service's own comes after its call, in one message.
pub(super) fn server_results_have_a_call(request: &Request<'_>, faults: &mut Faults) {
    for message in joined(request) {
        let mut called = BTreeSet::new();
        for block in &message.blocks {
            let kind = block["type"].as_str().unwrap_or_default();
            if kind == "server_tool_use" {
                called.extend(block["id"].as_str());
            }
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            if SERVER_RESULTS.contains(&kind) && !called.contains(id) {
                faults.add(format!(
                    "messages.{}: `{kind}` block with id {id} was found without \
                 a corresponding `server_tool_use` block before it",
                    message.at
                ));
            }
        }
    }
}

/// LLM-REQ-089: thinking comes back with the text and the signature with which it came.
pub(super) fn signatures_fit(request: &Request<'_>, faults: &mut Faults) {
    for (at, block, _, value) in blocks(request) {
        let good = match value["type"].as_str() {
            Some("thinking") => {
                let text = value["thinking"].as_str().unwrap_or_default();
                let signature = value["signature"].as_str().unwrap_or_default();
                request.signer.fits("thinking", text, signature) || request.memory.made(signature)
            }
            Some("redacted_thinking") => value["data"]
                .as_str()
                .is_some_and(|data| request.memory.made(data)),
            _ => true,
        };
        if !good {
            let member = if value["type"] == "thinking" {
                "signature"
            } else {
                "data"
            };
            faults.add(format!(
                "{}: Invalid `{member}` in `{}` block",
                place(at, block),
                value["type"].as_str().unwrap_or_default()
            ));
        }
    }
}

/// The signatures of a message's thinking, in order; the bytes of what cannot be read.
fn signatures(message: &Joined<'_>) -> Vec<String> {
    message
        .blocks
        .iter()
        .filter_map(|block| match block["type"].as_str() {
            Some("thinking") => block["signature"].as_str(),
            Some("redacted_thinking") => block["data"].as_str(),
            _ => None,
        })
        .map(str::to_owned)
        .collect()
}

/// LLM-REQ-090: the latest turn's calls come back with their thinking, all of it and in order.
pub(super) fn thinking_stays_with_its_calls(request: &Request<'_>, faults: &mut Faults) {
    let list = joined(request);
    let Some(latest) = list
        .iter()
        .rev()
        .find(|message| message.role == "assistant")
    else {
        return;
    };
    let Some(needed) = calls(latest).find_map(|id| request.memory.thinking_of(id)) else {
        return;
    };
    let sent = signatures(latest);
    let sorted = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
    let fewer = sent.len() != needed.len();
    let reordered = sent != needed && sorted(&sent) == sorted(&needed);
    // Without any thinking it is LLM-REQ-091 that tells; a changed signature is LLM-REQ-089's.
    if !sent.is_empty() && (fewer || reordered) {
        faults.add(format!(
            "messages.{}: `thinking` or `redacted_thinking` blocks in the latest \
         assistant message cannot be modified. These blocks must remain as they were in the \
         original response.",
            latest.at
        ));
    }
}

/// LLM-REQ-091: with older models that think, a message with calls begins with thinking.
pub(super) fn calls_begin_with_thinking(request: &Request<'_>, faults: &mut Faults) {
    let old = model_version(request.model).is_some_and(|version| version < (4, 5));
    if !(old && thinks(request)) {
        return;
    }
    let list = joined(request);
    let Some(latest) = list
        .iter()
        .rev()
        .find(|message| message.role == "assistant")
    else {
        return;
    };
    let first = latest
        .blocks
        .first()
        .and_then(|block| block["type"].as_str());
    if calls(latest).next().is_some() && !matches!(first, Some("thinking" | "redacted_thinking")) {
        faults.add(format!(
            "messages.{}.content.0.type: Expected `thinking` or \
         `redacted_thinking`, but found `{}`. When `thinking` is enabled, a final `assistant` \
         message must start with a thinking block.",
            latest.at,
            first.unwrap_or_default()
        ));
    }
}

/// LLM-REQ-092: newer models do not go on from an answer that the client began.
pub(super) fn no_prefill(request: &Request<'_>, faults: &mut Faults) {
    let Some(last) = items(request.member("messages")).last() else {
        return;
    };
    if last["role"] != "assistant" {
        return;
    }
    // A turn that was paused is sent back as it is.
    let paused = items(&last["content"])
        .iter()
        .any(|block| block["type"] == "server_tool_use");
    let new = model_version(request.model).is_none_or(|version| version >= (4, 6));
    let text = match &last["content"] {
        Value::String(text) => text.as_str(),
        blocks => items(blocks)
            .last()
            .and_then(|block| block["text"].as_str())
            .unwrap_or_default(),
    };
    if new && !paused {
        faults.add(
            "This model does not support assistant message prefill. The conversation \
         must end with a user message.",
        );
    } else if text.ends_with(char::is_whitespace) {
        faults.add("messages: final assistant content cannot end with trailing whitespace");
    }
}
