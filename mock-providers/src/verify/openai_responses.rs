//! The rules of OpenAI Responses.
//!
//! A request that goes on from a stored response is judged with that response's items before its own.
//!
//! - this file: headers, shapes and formats.
//! - `order`: calls, outputs and thinking.
//! - `settings`: numbers, switches and what belongs together.
//!
//! Source: facts about the wire, section 2.2, and the issues that the catalogue names with each rule.

mod order;
mod settings;

use serde_json::Value;

use super::openai_chat::settings::{metadata_fits, numbers_are_in_range, sampling_is_left_alone};
use super::openai_chat::{self, body_is_json, key_is_known, key_is_sent, quoted};
use super::schema::{not_strict, root_is_no_object};
use super::shape::{is_image_url, is_name, items, kind_of, placed, type_name, unknown};
use super::{Faults, Request, Rule};

/// The rules, in the order in which the service looks.
pub const RULES: &[Rule] = &[
    Rule::refused("LLM-REQ-034", key_is_sent),
    Rule::refused("LLM-REQ-035", key_is_known),
    Rule::refused("LLM-REQ-036", body_is_json),
    Rule::refused("LLM-REQ-037", model_is_named),
    Rule::refused("LLM-REQ-038", input_is_text_or_items),
    Rule::refused("LLM-REQ-039", members_are_known),
    Rule::refused("LLM-REQ-040", items_are_known),
    Rule::refused("LLM-REQ-041", roles_are_known),
    Rule::refused("LLM-REQ-042", parts_fit_their_role),
    Rule::refused("LLM-REQ-043", image_urls_are_plain_text),
    Rule::refused("LLM-REQ-044", order::reasoning_has_a_summary),
    Rule::refused("LLM-REQ-045", order::call_members_are_text),
    Rule::refused("LLM-REQ-046", order::call_ids_are_short),
    Rule::refused("LLM-REQ-047", order::item_ids_keep_their_prefix),
    Rule::refused("LLM-REQ-048", order::outputs_are_text_or_parts),
    Rule::refused("LLM-REQ-049", order::calls_are_answered),
    Rule::refused("LLM-REQ-050", order::outputs_have_a_call),
    Rule::refused("LLM-REQ-051", order::reasoning_is_followed_by_its_item),
    Rule::refused("LLM-REQ-052", order::items_keep_their_reasoning),
    Rule::refused("LLM-REQ-053", order::encrypted_reasoning_is_unchanged),
    Rule::refused("LLM-REQ-054", tools_are_flat),
    Rule::noted("LLM-REQ-055", function_members_are_all_there),
    Rule::refused("LLM-REQ-056", strict_tools_are_strict),
    Rule::refused("LLM-REQ-057", chosen_tool_is_offered),
    Rule::refused("LLM-REQ-058", format_is_flat),
    Rule::refused("LLM-REQ-059", strict_format_is_strict),
    Rule::refused("LLM-REQ-060", settings::includes_are_known),
    Rule::refused("LLM-REQ-061", settings::usage_is_not_asked_for),
    Rule::refused("LLM-REQ-062", settings::one_history_at_a_time),
    Rule::refused("LLM-REQ-063", numbers_are_in_range),
    Rule::refused("LLM-REQ-064", settings::efforts_are_known),
    Rule::refused("LLM-REQ-150", settings::limit_leaves_room),
    Rule::refused("LLM-REQ-151", settings::likelihoods_are_few),
    Rule::refused("LLM-REQ-152", settings::json_mode_says_json),
    Rule::refused("LLM-REQ-153", metadata_fits),
    Rule::refused("LLM-REQ-154", sampling_is_left_alone),
    Rule::refused("LLM-REQ-155", settings::responses_switches_are_booleans),
    Rule::refused("LLM-REQ-156", strict_schemas_describe_an_object),
];

const MEMBERS: &[&str] = &[
    "access_programs",
    "background",
    "background_options",
    "context_management",
    "conversation",
    "frequency_penalty",
    "image",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// Types of items that a request may hold; of the service's own tools, calls and outputs.
const ITEMS: &[&str] = &[
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "item_reference",
    "custom_tool_call",
    "custom_tool_call_output",
    "compaction",
    "compaction_trigger",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "computer_call",
    "computer_call_output",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "shell_call",
    "shell_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "additional_tools",
    "agent_message",
    "multi_agent_call",
    "multi_agent_call_output",
    "program",
    "program_output",
    "tool_search_call",
    "tool_search_output",
];

fn input<'a>(request: &Request<'a>) -> &'a [Value] {
    items(request.member("input"))
}

/// The type of an item; messages may leave it out.
fn kind(item: &Value) -> &str {
    match item["type"].as_str() {
        Some(kind) => kind,
        None if item["role"].is_string() => "message",
        None => "",
    }
}

/// LLM-REQ-037: a model is named, here or by the stored prompt.
fn model_is_named(request: &Request<'_>, faults: &mut Faults) {
    if request.member("prompt").is_null() || !request.member("model").is_null() {
        openai_chat::model_is_named(request, faults);
    }
}

/// LLM-REQ-038: what the model is to go on from is in the request, or stored.
fn input_is_text_or_items(request: &Request<'_>, faults: &mut Faults) {
    // A response that is gone on from stands before the input already.
    let stored = ["prompt", "conversation"]
        .iter()
        .any(|name| !request.member(name).is_null());
    let (input, nothing) = match request.member("input") {
        Value::Null if stored => return,
        Value::Null => {
            faults
                .at("input", "Missing required parameter: 'input'.")
                .code("missing_required_parameter");
            return;
        }
        input @ Value::String(text) => (input, text.is_empty()),
        input @ Value::Array(items) => (input, items.is_empty()),
        input => (input, false),
    };
    if nothing && !stored {
        faults
            .add(
                "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation' must \
                 be provided.",
            )
            .code("missing_required_parameter");
    } else if !(input.is_string() || input.is_array()) {
        let got = kind_of(input);
        faults
            .at(
                "input",
                format!(
                    "Invalid type for 'input': expected one of a string or array of input items, \
                     but got {got} instead."
                ),
            )
            .code("invalid_type");
    }
}

fn members_are_known(request: &Request<'_>, faults: &mut Faults) {
    for name in unknown(request.body, MEMBERS) {
        faults
            .at(name, format!("Unknown parameter: '{name}'."))
            .code("unknown_parameter");
    }
}

fn items_are_known(request: &Request<'_>, faults: &mut Faults) {
    for (at, item) in input(request).iter().enumerate() {
        if !ITEMS.contains(&kind(item)) {
            faults
                .at(
                    format!("input[{at}].type"),
                    format!(
                        "Invalid value: {}. Supported values are: {}.",
                        item["type"],
                        quoted(ITEMS)
                    ),
                )
                .code("invalid_value");
        }
    }
}

fn roles_are_known(request: &Request<'_>, faults: &mut Faults) {
    for (at, item) in input(request)
        .iter()
        .enumerate()
        .filter(|(_, item)| kind(item) == "message")
    {
        if !matches!(
            item["role"].as_str(),
            Some("user" | "assistant" | "system" | "developer")
        ) {
            faults
                .at(
                    format!("input[{at}].role"),
                    format!(
                        "Invalid value: {}. Supported values \
             are: 'assistant', 'system', 'developer', and 'user'.",
                        item["role"]
                    ),
                )
                .code("invalid_value");
        }
    }
}

/// LLM-REQ-042: what the model said is `output_text`, what others said is `input_text`.
fn parts_fit_their_role(request: &Request<'_>, faults: &mut Faults) {
    for (at, item) in input(request)
        .iter()
        .enumerate()
        .filter(|(_, item)| kind(item) == "message")
    {
        let known: &[&str] = match item["role"].as_str() {
            Some("assistant") => &["output_text", "refusal"],
            _ => &[
                "input_text",
                "input_image",
                "input_file",
                "scoped_content",
                "input_audio",
            ],
        };
        for (place, part) in placed(&item["content"]) {
            if !part["type"]
                .as_str()
                .is_some_and(|kind| known.contains(&kind))
            {
                faults
                    .at(
                        format!("input[{at}].content[{place}]"),
                        format!(
                            "Invalid value: {}. Supported values are: {}.",
                            part["type"],
                            quoted(known)
                        ),
                    )
                    .code("invalid_value");
            }
        }
        if !(item["content"].is_string() || item["content"].is_array()) {
            faults
                .at(
                    format!("input[{at}].content"),
                    "Missing required parameter: 'content'.",
                )
                .code("missing_required_parameter");
        }
    }
}

fn image_urls_are_plain_text(request: &Request<'_>, faults: &mut Faults) {
    for (at, item) in input(request).iter().enumerate() {
        let parts = placed(&item["content"]).chain(placed(&item["output"]));
        for (place, part) in parts.filter(|(_, part)| part["type"] == "input_image") {
            let param = format!("input[{at}].content[{place}].image_url");
            let url = &part["image_url"];
            if part["file_id"].is_string() && url.is_null() {
                continue;
            }
            match url.as_str() {
                None => {
                    let got = type_name(url);
                    faults
                        .at(
                            &param,
                            format!(
                                "Invalid type for '{param}': expected an image \
                     URL, but got {got} instead."
                            ),
                        )
                        .code("invalid_type");
                }
                Some(url) if !is_image_url(url) => {
                    faults
                        .at(
                            &param,
                            format!(
                                "Invalid '{param}'. Expected a valid URL or a \
                     base64-encoded data URL."
                            ),
                        )
                        .code("invalid_value");
                }
                Some(_) => {}
            }
        }
    }
}

/// LLM-REQ-054: a function tool is flat: `{type, name, parameters, …}`.
fn tools_are_flat(request: &Request<'_>, faults: &mut Faults) {
    for (at, tool) in placed(request.member("tools")) {
        let named = matches!(tool["type"].as_str(), Some("function" | "custom"));
        if tool["type"].is_null()
            || (named && !tool["name"].as_str().is_some_and(|name| is_name(name, 64)))
        {
            let param = format!("tools[{at}].{}", if named { "name" } else { "type" });
            faults
                .at(&param, format!("Missing required parameter: '{param}'."))
                .code("missing_required_parameter");
        }
    }
}

fn function_members_are_all_there(request: &Request<'_>, faults: &mut Faults) {
    for (at, tool) in placed(request.member("tools")).filter(|(_, tool)| tool["type"] == "function")
    {
        for member in ["parameters", "strict"] {
            if tool
                .as_object()
                .is_some_and(|tool| !tool.contains_key(member))
            {
                let param = format!("tools[{at}].{member}");
                faults
                    .at(&param, format!("Missing required parameter: '{param}'."))
                    .code("missing_required_parameter");
            }
        }
    }
}

/// LLM-REQ-056: a tool that says nothing is strict here.
fn strict_tools_are_strict(request: &Request<'_>, faults: &mut Faults) {
    for (at, tool) in placed(request.member("tools")) {
        if let Some(why) = not_strict(&tool["parameters"]).filter(|_| tool["strict"] == true) {
            let name = tool["name"].as_str().unwrap_or_default();
            faults
                .at(
                    format!("tools[{at}].parameters"),
                    format!("Invalid schema for function '{name}': {why}"),
                )
                .code("invalid_function_parameters");
        }
    }
}

fn chosen_tool_is_offered(request: &Request<'_>, faults: &mut Faults) {
    let choice = request.member("tool_choice");
    let offered = |name: &str| {
        items(request.member("tools"))
            .iter()
            .any(|tool| tool["name"] == name)
    };
    if let Some(name) = choice["name"]
        .as_str()
        .filter(|name| !offered(name) && choice["server_label"].is_null())
    {
        faults.at(
            "tool_choice",
            format!("Tool choice '{name}' not found in 'tools' parameter."),
        );
    }
}

/// LLM-REQ-058: the members of a schema are flat in `text.format`.
fn format_is_flat(request: &Request<'_>, faults: &mut Faults) {
    let format = &request.member("text")["format"];
    match format["type"].as_str() {
        _ if format.is_null() => {}
        Some("text" | "json_object") => {}
        Some("json_schema") => {
            for member in ["name", "schema"] {
                if format[member].is_null() {
                    let param = format!("text.format.{member}");
                    faults
                        .at(&param, format!("Missing required parameter: '{param}'."))
                        .code("missing_required_parameter");
                }
            }
        }
        _ => {
            faults
                .at(
                    "text.format.type",
                    format!(
                        "Invalid value: {}. Supported values are: \
             'json_object', 'json_schema', and 'text'.",
                        format["type"]
                    ),
                )
                .code("invalid_value");
        }
    }
}

fn strict_format_is_strict(request: &Request<'_>, faults: &mut Faults) {
    let format = &request.member("text")["format"];
    if let Some(why) = not_strict(&format["schema"]).filter(|_| format["strict"] == true) {
        let name = format["name"].as_str().unwrap_or_default();
        faults
            .at(
                "text.format.schema",
                format!("Invalid schema for response_format '{name}': {why}"),
            )
            .code("invalid_json_schema");
    }
}

fn strict_schemas_describe_an_object(request: &Request<'_>, faults: &mut Faults) {
    for (at, tool) in placed(request.member("tools")) {
        let why = root_is_no_object(&tool["parameters"]);
        if let Some(why) = why.filter(|_| tool["strict"] == true) {
            let name = tool["name"].as_str().unwrap_or_default();
            faults
                .at(
                    format!("tools[{at}].parameters"),
                    format!("Invalid schema for function '{name}': {why}"),
                )
                .code("invalid_function_parameters");
        }
    }
    let format = &request.member("text")["format"];
    if let Some(why) = root_is_no_object(&format["schema"]).filter(|_| format["strict"] == true) {
        let name = format["name"].as_str().unwrap_or_default();
        faults
            .at(
                "text.format.schema",
                format!("Invalid schema for response_format '{name}': {why}"),
            )
            .code("invalid_json_schema");
    }
}
