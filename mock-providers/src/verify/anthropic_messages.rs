//! The rules of Anthropic Messages.
//!
//! Messages of one role that follow each other are judged as one message, as the service joins them.
//!
//! - this file: headers and shapes.
//! - `order`: calls, results and thinking in their order.
//! - `settings`: sampling, thinking, tools and the cache.
//!
//! Source: facts about the wire, section 3.2, and the issues that the catalogue names with each rule.

mod order;
mod settings;

use serde_json::Value;

use super::shape::{
    accepts, bearer, header, is_base64, is_json, is_name, items, placed, unknown, wants_key,
};
use super::{Faults, Request, Rule};

/// The rules, in the order in which the service looks.
pub const RULES: &[Rule] = &[
    Rule::refused("LLM-REQ-157", body_is_not_too_large),
    Rule::refused("LLM-REQ-065", key_is_sent),
    Rule::refused("LLM-REQ-066", key_is_known),
    Rule::refused("LLM-REQ-067", version_is_known),
    Rule::refused("LLM-REQ-068", body_is_json),
    Rule::refused("LLM-REQ-069", model_is_named),
    Rule::refused("LLM-REQ-070", limit_is_set),
    Rule::refused("LLM-REQ-071", messages_are_there),
    Rule::refused("LLM-REQ-072", members_are_known),
    Rule::refused("LLM-REQ-073", messages_have_role_and_content_only),
    Rule::refused("LLM-REQ-074", roles_are_known),
    Rule::noted("LLM-REQ-075", first_message_is_the_users),
    Rule::refused("LLM-REQ-076", messages_are_not_empty),
    Rule::refused("LLM-REQ-077", texts_are_not_empty),
    Rule::refused("LLM-REQ-078", blocks_are_known),
    Rule::refused("LLM-REQ-079", block_members_are_known),
    Rule::refused("LLM-REQ-080", images_have_a_source),
    Rule::refused("LLM-REQ-081", inputs_are_objects),
    Rule::refused("LLM-REQ-082", call_ids_fit),
    Rule::refused("LLM-REQ-083", order::call_ids_are_unique),
    Rule::refused("LLM-REQ-084", order::calls_are_answered),
    Rule::refused("LLM-REQ-085", order::results_come_first),
    Rule::refused("LLM-REQ-086", order::results_have_a_call),
    Rule::refused("LLM-REQ-087", results_hold_plain_blocks),
    Rule::refused("LLM-REQ-088", order::server_results_have_a_call),
    Rule::refused("LLM-REQ-089", order::signatures_fit),
    Rule::refused("LLM-REQ-090", order::thinking_stays_with_its_calls),
    Rule::refused("LLM-REQ-091", order::calls_begin_with_thinking),
    Rule::refused("LLM-REQ-092", order::no_prefill),
    Rule::refused("LLM-REQ-093", settings::no_sampling),
    Rule::refused("LLM-REQ-094", settings::budget_fits),
    Rule::refused("LLM-REQ-095", settings::thinking_leaves_tools_free),
    Rule::refused("LLM-REQ-096", settings::tools_are_flat),
    Rule::refused("LLM-REQ-097", settings::chosen_tool_is_offered),
    Rule::refused("LLM-REQ-098", settings::few_cache_marks),
    Rule::refused("LLM-REQ-158", settings::metadata_is_the_users_id),
    Rule::refused("LLM-REQ-159", beta_members_name_their_beta),
    Rule::refused("LLM-REQ-160", settings::sampling_is_in_range),
    Rule::refused("LLM-REQ-161", settings::a_free_choice_has_tools),
    Rule::refused("LLM-REQ-162", settings::tool_names_are_unique),
    Rule::refused("LLM-REQ-163", texts_are_not_blank),
    Rule::refused("LLM-REQ-164", settings::stop_sequences_are_not_blank),
];

const MEMBERS: &[&str] = &[
    "billing_policy",
    "cache_control",
    "compaction",
    "container",
    "context_management",
    "diagnostics",
    "fallback_credit_token",
    "fallbacks",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "thread",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// What a request whose tokens are to be counted may have: nothing that only an answer needs.
const COUNTED: &[&str] = &[
    "billing_policy",
    "cache_control",
    "compaction",
    "context_management",
    "mcp_servers",
    "messages",
    "model",
    "output_config",
    "output_format",
    "speed",
    "system",
    "thinking",
    "tool_choice",
    "tools",
];

/// Members that are not defined without a header that names a beta.
const BETA: &[&str] = &[
    "billing_policy",
    "compaction",
    "context_management",
    "fallback_credit_token",
    "fallbacks",
    "mcp_servers",
    "output_format",
    "thread",
];

/// Types of blocks that the service's own tools return; they come back as they are.
pub(super) const SERVER_RESULTS: &[&str] = &[
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
];

/// The place of a member, as the service writes it.
fn place(at: usize, block: usize) -> String {
    format!("messages.{at}.content.{block}")
}

fn messages<'a>(request: &Request<'a>) -> impl Iterator<Item = (usize, &'a Value)> {
    placed(request.member("messages"))
}

/// All blocks of a conversation: message, place, the message, the block.
fn blocks<'a>(request: &Request<'a>) -> impl Iterator<Item = (usize, usize, &'a Value, &'a Value)> {
    messages(request).flat_map(|(at, message)| {
        placed(&message["content"]).map(move |(place, block)| (at, place, message, block))
    })
}

/// The key: `x-api-key` counts when both are there.
fn key<'a>(request: &Request<'a>) -> Option<&'a str> {
    header(request, "x-api-key")
        .filter(|key| !key.is_empty())
        .or_else(|| bearer(request))
}

fn key_is_sent(request: &Request<'_>, faults: &mut Faults) {
    if wants_key(request) && key(request).is_none() {
        faults.add("x-api-key header is required").status(401);
    }
}

fn key_is_known(request: &Request<'_>, faults: &mut Faults) {
    if key(request).is_some_and(|key| !accepts(request, key)) {
        faults.add("invalid x-api-key").status(401);
    }
}

fn version_is_known(request: &Request<'_>, faults: &mut Faults) {
    use turnwire_spec::llm::anthropic_messages::{OLD_VERSION, VERSION};
    match header(request, "anthropic-version") {
        None => {
            faults.add("anthropic-version: header is required");
        }
        Some(version) if version != VERSION && version != OLD_VERSION => {
            faults.add(format!(
                "anthropic-version: \"{version}\" is not a valid version"
            ));
        }
        Some(_) => {}
    }
}

fn body_is_json(request: &Request<'_>, faults: &mut Faults) {
    if !is_json(request) || !request.body.is_object() {
        faults.add(
            "The request body is not valid JSON: expected an object with content-type \
         application/json",
        );
    }
}

fn model_is_named(request: &Request<'_>, faults: &mut Faults) {
    if request.member("model").as_str().is_none_or(str::is_empty) {
        faults.add("model: Field required");
    }
}

fn limit_is_set(request: &Request<'_>, faults: &mut Faults) {
    let limit = request.member("max_tokens");
    match limit {
        _ if request.count => {}
        Value::Null => {
            faults.add("max_tokens: Field required");
        }
        limit if limit.as_u64().is_none() => {
            faults.add("max_tokens: Input should be a valid integer");
        }
        _ => {}
    }
}

fn messages_are_there(request: &Request<'_>, faults: &mut Faults) {
    match request.member("messages") {
        Value::Null => {
            faults.add("messages: Field required");
        }
        Value::Array(messages) if messages.is_empty() => {
            faults.add("messages: at least one message is required");
        }
        Value::Array(_) => {}
        _ => {
            faults.add("messages: Input should be a valid list");
        }
    }
}

fn extra(place: &str) -> String {
    format!("{place}: Extra inputs are not permitted")
}

/// Bytes of a request.
const MOST_BYTES: u64 = 32 << 20;

/// LLM-REQ-157: judged by the length that is announced.
fn body_is_not_too_large(request: &Request<'_>, faults: &mut Faults) {
    let length = header(request, "content-length").and_then(|length| length.parse().ok());
    if length.is_some_and(|length: u64| length > MOST_BYTES) {
        faults.add("Request exceeds the maximum size").status(413);
    }
}

/// LLM-REQ-072: no member but those that the path defines.
fn members_are_known(request: &Request<'_>, faults: &mut Faults) {
    let known = if request.count { COUNTED } else { MEMBERS };
    for name in unknown(request.body, known) {
        faults.add(extra(name));
    }
}

/// LLM-REQ-159: the header of servers has a name of its own; for the others any beta will do.
fn beta_members_name_their_beta(request: &Request<'_>, faults: &mut Faults) {
    let betas = || {
        let values = request.headers.get_all("anthropic-beta").iter();
        values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|list| list.split(','))
    };
    for name in BETA.iter().filter(|name| !request.member(name).is_null()) {
        let named = betas().map(str::trim).any(|beta| match *name {
            "mcp_servers" => beta.starts_with("mcp-client-"),
            _ => !beta.is_empty(),
        });
        if !named {
            faults.add(extra(name));
        }
    }
}

fn messages_have_role_and_content_only(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in messages(request) {
        for name in unknown(message, &["role", "content"]) {
            faults.add(extra(&format!("messages.{at}.{name}")));
        }
        if !(message["content"].is_string() || message["content"].is_array()) {
            faults.add(format!(
                "messages.{at}.content: Input should be a valid string or list"
            ));
        }
    }
}

fn roles_are_known(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in messages(request) {
        if !matches!(
            message["role"].as_str(),
            Some("user" | "assistant" | "system")
        ) {
            faults.add(format!(
                "messages: Unexpected role {} at messages.{at}. Allowed roles \
             are \"user\" or \"assistant\"",
                message["role"]
            ));
        }
    }
}

fn first_message_is_the_users(request: &Request<'_>, faults: &mut Faults) {
    let first = items(request.member("messages"))
        .iter()
        .find(|message| message["role"] != "system");
    if first.is_some_and(|first| first["role"] == "assistant") {
        faults.add("messages: first message must use the \"user\" role");
    }
}

fn messages_are_not_empty(request: &Request<'_>, faults: &mut Faults) {
    let last = items(request.member("messages")).len().saturating_sub(1);
    for (at, message) in messages(request) {
        let content = &message["content"];
        let empty = content == "" || content.as_array().is_some_and(Vec::is_empty);
        if empty && !(at == last && message["role"] == "assistant") {
            faults.add(format!(
                "messages.{at}: all messages must have non-empty content except \
             for the optional final assistant message"
            ));
        }
    }
}

/// LLM-REQ-077: no text block is empty, of the system prompt neither, which may be one text.
fn texts_are_not_empty(request: &Request<'_>, faults: &mut Faults) {
    texts_are(str::is_empty, "must be non-empty", request, faults);
    if request.member("system") == "" {
        faults.add("system: text content blocks must be non-empty");
    }
}

/// LLM-REQ-163: no text is of white space alone. A content that is one text stands for a block of it.
fn texts_are_not_blank(request: &Request<'_>, faults: &mut Faults) {
    let blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    texts_are(blank, "must contain non-whitespace text", request, faults);
    let whole = messages(request).map(|(_, message)| ("messages", &message["content"]));
    for (place, text) in whole.chain([("system", request.member("system"))]) {
        if text.as_str().is_some_and(blank) {
            faults.add(format!(
                "{place}: text content blocks must contain non-whitespace text"
            ));
        }
    }
}

/// Reports the text blocks, of messages and of the system prompt, whose text is wrong.
fn texts_are(wrong: impl Fn(&str) -> bool, why: &str, request: &Request<'_>, faults: &mut Faults) {
    let said = blocks(request).map(|(_, _, _, block)| ("messages", block));
    let system = items(request.member("system"));
    for (place, block) in said.chain(system.iter().map(|block| ("system", block))) {
        if block["type"] == "text" && block["text"].as_str().is_some_and(&wrong) {
            faults.add(format!("{place}: text content blocks {why}"));
        }
    }
}

/// Types of blocks that a role may say.
fn known_blocks(role: &Value) -> Vec<&'static str> {
    let mut known = vec!["text"];
    match role.as_str() {
        Some("assistant") => known.extend(
            [
                "thinking",
                "redacted_thinking",
                "tool_use",
                "server_tool_use",
                "mcp_tool_use",
                "mcp_tool_result",
                "compaction",
                "document",
                "container_upload",
            ]
            .iter()
            .copied()
            .chain(SERVER_RESULTS.iter().copied()),
        ),
        Some("system") => {}
        _ => known.extend([
            "image",
            "document",
            "search_result",
            "tool_result",
            "container_upload",
        ]),
    }
    known
}

fn blocks_are_known(request: &Request<'_>, faults: &mut Faults) {
    for (at, block, message, value) in blocks(request) {
        let known = known_blocks(&message["role"]);
        let kind = value["type"].as_str().unwrap_or_default();
        let newest = header(request, "anthropic-version")
            == Some(turnwire_spec::llm::anthropic_messages::VERSION);
        let document = kind == "document" && message["role"] == "assistant" && newest;
        if !known.contains(&kind) || document {
            let known = known
                .iter()
                .map(|kind| format!("'{kind}'"))
                .collect::<Vec<_>>()
                .join(", ");
            faults.add(format!(
                "{}: Input tag '{kind}' found using 'type' does not match any of \
             the expected tags: {known}",
                place(at, block)
            ));
        }
    }
}

fn block_members_are_known(request: &Request<'_>, faults: &mut Faults) {
    for (at, block, _, value) in blocks(request) {
        let known: &[&str] = match value["type"].as_str() {
            Some("text") => &["type", "text", "citations", "cache_control"],
            Some("image") => &["type", "source", "cache_control", "transformations"],
            Some("thinking") => &["type", "thinking", "signature"],
            Some("redacted_thinking") => &["type", "data"],
            Some("tool_use") => &[
                "type",
                "id",
                "name",
                "input",
                "caller",
                "cache_control",
                "toolset_name",
            ],
            Some("tool_result") => &[
                "type",
                "tool_use_id",
                "content",
                "is_error",
                "cache_control",
                "toolset_name",
            ],
            _ => continue,
        };
        for name in unknown(value, known) {
            faults.add(extra(&format!("{}.{name}", place(at, block))));
        }
    }
}

fn images_have_a_source(request: &Request<'_>, faults: &mut Faults) {
    let nested = blocks(request).flat_map(|(at, block, _, value)| {
        items(&value["content"])
            .iter()
            .map(move |inner| (at, block, inner))
    });
    let all = blocks(request)
        .map(|(at, block, _, value)| (at, block, value))
        .chain(nested);
    for (at, block, value) in all.filter(|(_, _, value)| value["type"] == "image") {
        let source = &value["source"];
        let good = match source["type"].as_str() {
            Some("base64") => {
                let kinds = ["image/jpeg", "image/png", "image/gif", "image/webp"];
                source["media_type"]
                    .as_str()
                    .is_some_and(|kind| kinds.contains(&kind))
                    && source["data"].as_str().is_some_and(is_base64)
            }
            Some("url") => source["url"]
                .as_str()
                .is_some_and(|url| url.starts_with("https://")),
            Some("file") => source["file_id"].is_string(),
            _ => false,
        };
        if !good {
            faults.add(format!(
                "{}.image.source: Input should be a base64, url or file source \
             with a supported media type",
                place(at, block)
            ));
        }
    }
}

fn inputs_are_objects(request: &Request<'_>, faults: &mut Faults) {
    for (at, block, _, value) in blocks(request) {
        if value["type"] == "tool_use" && !value["input"].is_object() {
            faults.add(format!(
                "{}.tool_use.input: Input should be a valid dictionary",
                place(at, block)
            ));
        }
    }
}

fn call_ids_fit(request: &Request<'_>, faults: &mut Faults) {
    for (at, block, _, value) in blocks(request) {
        let id = value["id"].as_str().unwrap_or_default();
        if value["type"] == "tool_use" && !is_name(id, usize::MAX) {
            faults.add(format!(
                "{}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
                place(at, block)
            ));
        }
    }
}

fn results_hold_plain_blocks(request: &Request<'_>, faults: &mut Faults) {
    const KNOWN: [&str; 5] = [
        "text",
        "image",
        "document",
        "search_result",
        "tool_reference",
    ];
    for (at, block, _, value) in blocks(request) {
        for inner in items(&value["content"])
            .iter()
            .filter(|_| value["type"] == "tool_result")
        {
            if !inner["type"]
                .as_str()
                .is_some_and(|kind| KNOWN.contains(&kind))
            {
                faults.add(format!(
                    "{}.tool_result.content: Input tag {} found using 'type' \
                 does not match any of the expected tags",
                    place(at, block),
                    inner["type"]
                ));
            }
        }
    }
}
