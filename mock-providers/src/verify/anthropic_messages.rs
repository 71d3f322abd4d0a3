//! The rules of Anthropic Messages.
//!
//! Messages of one role that follow each other are judged as one message, as the service joins them.
//!
//! - this file: headers, shapes and settings.
//! - `order`: calls, results and thinking in their order.
//!
//! Source: facts about the wire, section 3.2, and the issues that the catalogue names with each rule.

mod order;

use serde_json::Value;

use super::shape::{
    accepts, bearer, header, is_base64, is_json, is_name, items, placed, unknown, wants_key,
};
use super::{Faults, Request, Rule};

/// The rules, in the order in which the service looks.
pub const RULES: &[Rule] = &[
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
    Rule::refused("LLM-REQ-093", no_sampling),
    Rule::refused("LLM-REQ-094", budget_fits),
    Rule::refused("LLM-REQ-095", thinking_leaves_tools_free),
    Rule::refused("LLM-REQ-096", tools_are_flat),
    Rule::refused("LLM-REQ-097", chosen_tool_is_offered),
    Rule::refused("LLM-REQ-098", few_cache_marks),
];

const MEMBERS: &[&str] = &[
    "cache_control",
    "container",
    "context_management",
    "diagnostics",
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
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
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

fn members_are_known(request: &Request<'_>, faults: &mut Faults) {
    for name in unknown(request.body, MEMBERS) {
        faults.add(extra(name));
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

fn texts_are_not_empty(request: &Request<'_>, faults: &mut Faults) {
    for (_, _, _, block) in blocks(request) {
        if block["type"] == "text" && block["text"] == "" {
            faults.add("messages: text content blocks must be non-empty");
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
            Some("image") => &["type", "source", "cache_control"],
            Some("thinking") => &["type", "thinking", "signature"],
            Some("redacted_thinking") => &["type", "data"],
            Some("tool_use") => &["type", "id", "name", "input", "caller", "cache_control"],
            Some("tool_result") => &[
                "type",
                "tool_use_id",
                "content",
                "is_error",
                "cache_control",
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

/// LLM-REQ-093: the newest version takes no sampling settings; newer models take few under any.
fn no_sampling(request: &Request<'_>, faults: &mut Faults) {
    use turnwire_spec::llm::anthropic_messages::VERSION;
    let sent = |name: &'static str| Some(request.member(name)).filter(|value| !value.is_null());
    for name in ["temperature", "top_p", "top_k"] {
        let Some(value) = sent(name) else { continue };
        if header(request, "anthropic-version") == Some(VERSION) {
            faults.add(extra(name));
            continue;
        }
        let fixed = model_version(request.model).is_none_or(|version| version > (4, 6));
        let allowed = match name {
            "temperature" => value.as_f64() == Some(1.0),
            "top_p" => value.as_f64().is_some_and(|top_p| top_p >= 0.99),
            _ => false,
        };
        if fixed && !allowed {
            faults.add(format!("{name}: this value is not supported by this model"));
        }
    }
}

/// Major and minor version of a model's id: (4, 6) of `claude-opus-4-6`.
pub(super) fn model_version(model: &str) -> Option<(u32, u32)> {
    let mut numbers = model
        .strip_prefix("claude-")?
        .split(['-', '.'])
        .filter_map(|word| word.parse::<u32>().ok())
        .filter(|number| *number < 1000);
    let major = numbers.next()?;
    Some((major, numbers.next().unwrap_or(0)))
}

pub(super) fn thinks(request: &Request<'_>) -> bool {
    matches!(
        request.member("thinking")["type"].as_str(),
        Some("enabled" | "adaptive")
    )
}

fn budget_fits(request: &Request<'_>, faults: &mut Faults) {
    let thinking = request.member("thinking");
    if thinking["type"] != "enabled" {
        return;
    }
    let budget = thinking["budget_tokens"].as_u64();
    let limit = request.member("max_tokens").as_u64().unwrap_or(u64::MAX);
    match budget {
        None => {
            faults.add("thinking.enabled.budget_tokens: Field required");
        }
        Some(budget) if budget < 1024 => {
            faults.add(
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            );
        }
        Some(budget) if budget >= limit => {
            faults.add("`max_tokens` must be greater than `thinking.budget_tokens`");
        }
        Some(_) => {}
    }
}

fn thinking_leaves_tools_free(request: &Request<'_>, faults: &mut Faults) {
    let forced = matches!(
        request.member("tool_choice")["type"].as_str(),
        Some("any" | "tool")
    );
    if forced && thinks(request) {
        faults.add("Thinking may not be enabled when tool_choice forces tool use.");
    }
}

fn tools_are_flat(request: &Request<'_>, faults: &mut Faults) {
    for (at, tool) in placed(request.member("tools")) {
        let own = matches!(tool["type"].as_str(), None | Some("custom"));
        if !tool["name"].as_str().is_some_and(|name| is_name(name, 128)) {
            faults.add(format!(
                "tools.{at}.custom.name: Field required, and it should match \
             pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if own && tool["input_schema"]["type"] != "object" {
            faults.add(format!(
                "tools.{at}.custom.input_schema.type: Field required"
            ));
        }
        let known = [
            "name",
            "description",
            "input_schema",
            "type",
            "strict",
            "input_examples",
            "eager_input_streaming",
            "cache_control",
            "defer_loading",
            "allowed_callers",
        ];
        for name in unknown(tool, &known).into_iter().filter(|_| own) {
            faults.add(extra(&format!("tools.{at}.custom.{name}")));
        }
    }
}

fn chosen_tool_is_offered(request: &Request<'_>, faults: &mut Faults) {
    let choice = request.member("tool_choice");
    match choice["type"].as_str() {
        _ if choice.is_null() => {}
        Some("auto" | "any" | "none") => {}
        Some("tool") => {
            let offered = items(request.member("tools"))
                .iter()
                .any(|tool| tool["name"] == choice["name"]);
            if !offered {
                faults.add(format!(
                    "Tool {} not found in provided tools",
                    choice["name"]
                ));
            }
        }
        _ => {
            faults.add(
                "tool_choice: Input should be an object with type 'auto', 'any', 'tool' or 'none'",
            );
        }
    }
}

/// Marks of the prompt cache in one request.
const CACHE_MARKS: usize = 4;

fn few_cache_marks(request: &Request<'_>, faults: &mut Faults) {
    let in_blocks = blocks(request)
        .filter(|(_, _, _, block)| !block["cache_control"].is_null())
        .count();
    let listed = |name: &str| {
        items(request.member(name))
            .iter()
            .filter(|one| !one["cache_control"].is_null())
            .count()
    };
    let marks = in_blocks + listed("system") + listed("tools");
    if marks > CACHE_MARKS {
        faults.add(format!(
            "A maximum of {CACHE_MARKS} blocks with cache_control may be provided. Found {marks}."
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_names_of_models() {
        assert_eq!(model_version("claude-opus-4-6"), Some((4, 6)));
        assert_eq!(model_version("claude-sonnet-4-5-20250929"), Some((4, 5)));
        assert_eq!(model_version("claude-3-7-sonnet-latest"), Some((3, 7)));
        assert_eq!(model_version("claude-sonnet-4-20250514"), Some((4, 0)));
        assert_eq!(model_version("mock-model"), None);
    }
}
