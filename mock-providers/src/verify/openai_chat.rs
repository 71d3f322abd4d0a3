//! The rules of OpenAI Chat Completions.
//!
//! - this file: headers, messages, tools and formats.
//! - `order`: calls and results.
//! - `settings`: numbers, switches and what models take.
//!
//! Source: facts about the wire, section 1.2, and the issues that the catalogue names with each rule.

pub(super) mod order;
pub(super) mod settings;

use serde_json::Value;
use turnwire_spec::llm::azure;

use super::schema::{not_strict, root_is_no_object};
use super::shape::{
    accepts, bearer, header, is_image_url, is_json, is_name, items, member, placed, type_name,
    unknown, wants_key,
};
use super::{Faults, Request, Rule};

/// The rules, in the order in which the service looks.
pub const RULES: &[Rule] = &[
    Rule::refused("LLM-REQ-002", key_is_sent),
    Rule::refused("LLM-REQ-003", key_is_known),
    Rule::refused("LLM-REQ-004", body_is_json),
    Rule::refused("LLM-REQ-005", model_is_named),
    Rule::refused("LLM-REQ-006", messages_are_there),
    Rule::refused("LLM-REQ-007", members_are_known),
    Rule::refused("LLM-REQ-008", roles_are_known),
    Rule::refused("LLM-REQ-009", content_is_text_or_parts),
    Rule::refused("LLM-REQ-010", assistant_says_something),
    Rule::refused("LLM-REQ-011", parts_are_known),
    Rule::refused("LLM-REQ-012", images_are_objects_with_a_url),
    Rule::refused("LLM-REQ-013", order::calls_are_not_an_empty_list),
    Rule::refused("LLM-REQ-014", order::arguments_are_text),
    Rule::noted("LLM-REQ-015", order::arguments_are_json),
    Rule::refused("LLM-REQ-016", order::call_ids_are_unique),
    Rule::refused("LLM-REQ-017", order::call_ids_are_short),
    Rule::refused("LLM-REQ-018", order::calls_are_answered),
    Rule::refused("LLM-REQ-019", order::results_have_a_call),
    Rule::refused("LLM-REQ-020", order::results_name_their_call),
    Rule::refused("LLM-REQ-021", tools_are_nested),
    Rule::refused("LLM-REQ-141", tools_are_some_and_not_too_many),
    Rule::refused("LLM-REQ-022", function_names_fit),
    Rule::refused("LLM-REQ-023", strict_tools_are_strict),
    Rule::refused("LLM-REQ-024", chosen_tool_is_offered),
    Rule::refused("LLM-REQ-025", tool_options_need_tools),
    Rule::refused("LLM-REQ-026", format_is_known),
    Rule::refused("LLM-REQ-027", strict_format_is_strict),
    Rule::refused("LLM-REQ-028", json_mode_says_json),
    Rule::refused("LLM-REQ-029", stream_options_need_a_stream),
    Rule::refused("LLM-REQ-030", settings::limit_has_its_new_name),
    Rule::refused("LLM-REQ-031", settings::numbers_are_in_range),
    Rule::refused("LLM-REQ-032", settings::efforts_are_known),
    Rule::refused("LLM-REQ-033", order::thinking_comes_back_as_asked),
    Rule::refused("LLM-REQ-140", settings::chat_switches_are_booleans),
    Rule::refused("LLM-REQ-142", order::calls_have_a_type),
    Rule::refused("LLM-REQ-143", settings::verbosity_is_known),
    Rule::refused("LLM-REQ-144", settings::likelihoods_are_asked_for),
    Rule::refused("LLM-REQ-145", strict_schemas_describe_an_object),
    Rule::refused("LLM-REQ-146", settings::metadata_fits),
    Rule::refused("LLM-REQ-147", settings::biases_are_in_range),
    Rule::refused("LLM-REQ-148", settings::sampling_is_left_alone),
    Rule::refused("LLM-REQ-149", settings::effort_fits_the_model),
];

const MEMBERS: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// The key of a request: a bearer token, or on Azure's classic form a header of its own.
fn key<'a>(request: &Request<'a>) -> Option<&'a str> {
    let is_azure = request.query.is_some_and(azure::is_versioned);
    let own = header(request, azure::KEY_HEADER).filter(|_| is_azure);
    own.or_else(|| bearer(request))
}

/// LLM-REQ-002: a bearer token is sent.
pub(super) fn key_is_sent(request: &Request<'_>, faults: &mut Faults) {
    if wants_key(request) && key(request).is_none() {
        faults
            .add(
                "You didn't provide an API key. You need to provide your API key in an \
             Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
            )
            .status(401);
    }
}

/// LLM-REQ-003: the token is one that the service gave out.
pub(super) fn key_is_known(request: &Request<'_>, faults: &mut Faults) {
    if wants_key(request) && key(request).is_some_and(|key| !accepts(request, key)) {
        faults
            .add("Incorrect API key provided.")
            .code("invalid_api_key")
            .status(401);
    }
}

/// LLM-REQ-004: the body says that it is JSON, and is an object.
pub(super) fn body_is_json(request: &Request<'_>, faults: &mut Faults) {
    if !is_json(request) {
        faults.add(
            "Unsupported content type. This API method only accepts 'application/json' \
         requests, but you did not send that Content-Type header.",
        );
    } else if !request.body.is_object() {
        faults.add("We could not parse the JSON body of your request: it is no object.");
    }
}

/// LLM-REQ-005: `model` is a text.
pub(super) fn model_is_named(request: &Request<'_>, faults: &mut Faults) {
    if request.member("model").as_str().is_none_or(str::is_empty) {
        faults
            .at("model", "you must provide a model parameter")
            .code("missing_required_parameter");
    }
}

fn messages_are_there(request: &Request<'_>, faults: &mut Faults) {
    match request.member("messages") {
        Value::Null => {
            faults
                .at("messages", "Missing required parameter: 'messages'.")
                .code("missing_required_parameter");
        }
        Value::Array(messages) if messages.is_empty() => {
            faults
                .at(
                    "messages",
                    "Invalid 'messages': empty array. Expected an array with \
             minimum length 1, but got an empty array instead.",
                )
                .code("empty_array");
        }
        Value::Array(_) => {}
        other => {
            let got = type_name(other);
            faults
                .at(
                    "messages",
                    format!(
                        "Invalid type for 'messages': expected an array of \
             objects, but got {got} instead."
                    ),
                )
                .code("invalid_type");
        }
    }
}

fn members_are_known(request: &Request<'_>, faults: &mut Faults) {
    for name in unknown(request.body, MEMBERS) {
        faults
            .at(name, format!("Unknown parameter: '{name}'."))
            .code("unknown_parameter");
    }
}

fn messages<'a>(request: &Request<'a>) -> impl Iterator<Item = (usize, &'a Value)> {
    placed(request.member("messages"))
}

/// LLM-REQ-008: `role` is one of the wire's.
pub(super) fn roles_are_known(request: &Request<'_>, faults: &mut Faults) {
    const ROLES: [&str; 6] = [
        "system",
        "assistant",
        "user",
        "function",
        "tool",
        "developer",
    ];
    for (at, message) in messages(request) {
        if !member(message, "role")
            .as_str()
            .is_some_and(|role| ROLES.contains(&role))
        {
            faults
                .at(
                    format!("messages[{at}].role"),
                    format!(
                        "Invalid value: {}. Supported \
             values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
                        member(message, "role")
                    ),
                )
                .code("invalid_value");
        }
    }
}

fn content_is_text_or_parts(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in messages(request) {
        let content = member(message, "content");
        let empty = member(message, "role") == "assistant" && content.is_null();
        if !(content.is_string() || content.is_array() || empty) {
            let got = type_name(content);
            faults
                .at(
                    format!("messages[{at}].content"),
                    format!(
                        "Invalid value for 'content': \
             expected a string or an array of objects, but got {got} instead."
                    ),
                )
                .code("invalid_type");
        }
    }
}

fn assistant_says_something(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in messages(request) {
        let silent = ["content", "refusal", "tool_calls", "function_call", "audio"]
            .iter()
            .all(|name| member(message, name).is_null());
        if member(message, "role") == "assistant" && silent {
            faults
                .at(
                    format!("messages[{at}]"),
                    "Invalid value for 'content': expected a string, got null.",
                )
                .code("invalid_value");
        }
    }
}

/// LLM-REQ-011: the parts of a content are of types that the role may use.
pub(super) fn parts_are_known(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in messages(request) {
        let known: &[&str] = match member(message, "role").as_str() {
            Some("user") => &["text", "image_url", "input_audio", "file"],
            Some("assistant") => &["text", "refusal"],
            _ => &["text"],
        };
        for (place, part) in placed(member(message, "content")) {
            if !part["type"]
                .as_str()
                .is_some_and(|kind| known.contains(&kind))
            {
                faults
                    .at(
                        format!("messages[{at}].content[{place}].type"),
                        format!(
                            "Invalid value: {}. Supported values are: {}.",
                            part["type"],
                            quoted(known)
                        ),
                    )
                    .code("invalid_value");
            }
        }
    }
}

/// Words as error texts list them.
pub(super) fn quoted(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("'{word}'"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// LLM-REQ-012: `image_url` is an object, and its `url` can be fetched or read.
pub(super) fn images_are_objects_with_a_url(request: &Request<'_>, faults: &mut Faults) {
    for (at, message) in messages(request) {
        for (place, part) in placed(member(message, "content")) {
            if part["type"] != "image_url" {
                continue;
            }
            let param = format!("messages[{at}].content[{place}].image_url");
            let image = &part["image_url"];
            if !image.is_object() {
                let got = type_name(image);
                faults
                    .at(
                        &param,
                        format!(
                            "Invalid type for '{param}': expected an object, but \
                 got a {got} instead."
                        ),
                    )
                    .code("invalid_type");
            } else if !image["url"].as_str().is_some_and(is_image_url) {
                faults
                    .at(
                        format!("{param}.url"),
                        "Invalid image URL: expected an http(s) URL \
                 or a base64-encoded data URL with an image MIME type.",
                    )
                    .code("invalid_image_url");
            }
        }
    }
}

/// LLM-REQ-021: a tool is `{type, function: {name, …}}`.
pub(super) fn tools_are_nested(request: &Request<'_>, faults: &mut Faults) {
    for (at, tool) in placed(request.member("tools")) {
        let nested = match tool["type"].as_str() {
            Some("function") => tool["function"]["name"].is_string(),
            Some("custom") => tool["custom"]["name"].is_string(),
            _ => false,
        };
        if !nested {
            let member = if tool["type"] == "custom" {
                "custom"
            } else {
                "function"
            };
            let param = format!("tools[{at}].{member}");
            faults
                .at(&param, format!("Missing required parameter: '{param}'."))
                .code("missing_required_parameter");
        }
    }
}

/// Tools that one request may offer.
const MOST_TOOLS: usize = 128;

fn tools_are_some_and_not_too_many(request: &Request<'_>, faults: &mut Faults) {
    let Some(count) = request.member("tools").as_array().map(Vec::len) else {
        return;
    };
    if count == 0 {
        faults
            .at(
                "tools",
                "Invalid 'tools': empty array. Expected an array with minimum length 1, but got \
                 an empty array instead.",
            )
            .code("empty_array");
    } else if count > MOST_TOOLS {
        faults
            .at(
                "tools",
                format!(
                    "Invalid 'tools': array too long. Expected an array with maximum length \
                     {MOST_TOOLS}, but got an array with length {count} instead."
                ),
            )
            .code("array_above_max_length");
    }
}

/// LLM-REQ-022: names of functions have 1 to 64 letters, digits, `_` and `-`.
fn function_names_fit(request: &Request<'_>, faults: &mut Faults) {
    let mut check = |param: String, name: &Value| {
        if name.as_str().is_some_and(|name| !is_name(name, 64)) {
            faults
                .at(
                    &param,
                    format!(
                        "Invalid '{param}': string does not match pattern. \
             Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
                    ),
                )
                .code("invalid_value");
        }
    };
    for (at, tool) in placed(request.member("tools")) {
        check(
            format!("tools[{at}].function.name"),
            &tool["function"]["name"],
        );
    }
    for (at, place, call) in order::calls(request) {
        let param = format!("messages[{at}].tool_calls[{place}].function.name");
        check(param, &call["function"]["name"]);
    }
}

fn strict_tools_are_strict(request: &Request<'_>, faults: &mut Faults) {
    for (at, tool) in placed(request.member("tools")) {
        let function = &tool["function"];
        if function["strict"] == true
            && let Some(why) = not_strict(&function["parameters"])
        {
            let name = function["name"].as_str().unwrap_or_default();
            faults
                .at(
                    format!("tools[{at}].function.parameters"),
                    format!("Invalid schema for function '{name}': {why}"),
                )
                .code("invalid_function_parameters");
        }
    }
}

/// LLM-REQ-024: the tool that must be used is on offer.
pub(super) fn chosen_tool_is_offered(request: &Request<'_>, faults: &mut Faults) {
    let choice = request.member("tool_choice");
    let name = choice["function"]["name"]
        .as_str()
        .or(choice["custom"]["name"].as_str());
    let offered = |name: &str| {
        items(request.member("tools"))
            .iter()
            .any(|tool| tool["function"]["name"] == name || tool["custom"]["name"] == name)
    };
    let Some(name) =
        name.filter(|name| !items(request.member("tools")).is_empty() && !offered(name))
    else {
        return;
    };
    faults
        .at(
            "tool_choice",
            format!("Invalid value for 'tool_choice': function '{name}' is not one of the tools."),
        )
        .code("invalid_value");
}

fn tool_options_need_tools(request: &Request<'_>, faults: &mut Faults) {
    if !items(request.member("tools")).is_empty() {
        return;
    }
    let choice = request.member("tool_choice");
    if !choice.is_null() && choice != "none" {
        faults.at(
            "tool_choice",
            "Invalid value for 'tool_choice': 'tool_choice' is only \
         allowed when 'tools' are specified.",
        );
    }
    if !request.member("parallel_tool_calls").is_null() {
        faults.at(
            "parallel_tool_calls",
            "Invalid value for 'parallel_tool_calls': \
         'parallel_tool_calls' is only allowed when 'tools' are specified.",
        );
    }
}

fn format_is_known(request: &Request<'_>, faults: &mut Faults) {
    let format = request.member("response_format");
    match format["type"].as_str() {
        _ if format.is_null() => {}
        Some("text" | "json_object") => {}
        Some("json_schema")
            if format["json_schema"]["name"]
                .as_str()
                .is_some_and(|name| is_name(name, 64)) => {}
        Some("json_schema") => {
            faults
                .at(
                    "response_format.json_schema.name",
                    "Missing required parameter: 'response_format.json_schema.name'.",
                )
                .code("missing_required_parameter");
        }
        _ => {
            faults
                .at(
                    "response_format.type",
                    format!(
                        "Invalid value: {}. Supported values are: \
             'text', 'json_object' and 'json_schema'.",
                        format["type"]
                    ),
                )
                .code("invalid_value");
        }
    }
}

fn strict_format_is_strict(request: &Request<'_>, faults: &mut Faults) {
    let named = member(request.member("response_format"), "json_schema");
    if named["strict"] == true
        && let Some(why) = not_strict(&named["schema"])
    {
        let name = named["name"].as_str().unwrap_or_default();
        faults.at(
            "response_format",
            format!("Invalid schema for response_format '{name}': {why}"),
        );
    }
}

fn json_mode_says_json(request: &Request<'_>, faults: &mut Faults) {
    let says = || {
        let messages = request.member("messages").to_string();
        messages.to_ascii_lowercase().contains("json")
    };
    if request.member("response_format")["type"] == "json_object" && !says() {
        faults.at(
            "messages",
            "'messages' must contain the word 'json' in some form, to use \
         'response_format' of type 'json_object'.",
        );
    }
}

fn stream_options_need_a_stream(request: &Request<'_>, faults: &mut Faults) {
    if !request.member("stream_options").is_null() && request.member("stream") != true {
        faults.at(
            "stream_options",
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        );
    }
}

fn strict_schemas_describe_an_object(request: &Request<'_>, faults: &mut Faults) {
    for (at, tool) in placed(request.member("tools")) {
        let function = &tool["function"];
        if function["strict"] == true
            && let Some(why) = root_is_no_object(&function["parameters"])
        {
            let name = function["name"].as_str().unwrap_or_default();
            faults
                .at(
                    format!("tools[{at}].function.parameters"),
                    format!("Invalid schema for function '{name}': {why}"),
                )
                .code("invalid_function_parameters");
        }
    }
    let named = member(request.member("response_format"), "json_schema");
    if named["strict"] == true
        && let Some(why) = root_is_no_object(&named["schema"])
    {
        let name = named["name"].as_str().unwrap_or_default();
        faults.at(
            "response_format",
            format!("Invalid schema for response_format '{name}': {why}"),
        );
    }
}
