//! The rules of Gemini native. Names of members may be in camelCase or snake_case, also mixed.
//!
//! - this file: headers, shapes and tools.
//! - `order`: calls, responses and signatures.
//! - `settings`: numbers, thinking and safety.
//!
//! Source: facts about the wire, section 4.2, and the issues that the catalogue names with each rule.

pub(super) mod order;
mod settings;

use serde_json::Value;

use super::schema::foreign_keyword;
use super::shape::{accepts, bearer, header, is_base64, is_json, items, placed, wants_key};
use super::{Faults, Request, Rule};
use crate::wires::gemini::{contents, member, parts, query_value};

/// The rules, in the order in which the service looks.
pub const RULES: &[Rule] = &[
    Rule::refused("LLM-REQ-099", key_is_sent),
    Rule::refused("LLM-REQ-100", key_is_known),
    Rule::refused("LLM-REQ-101", body_is_json),
    Rule::refused("LLM-REQ-102", members_are_known),
    Rule::refused("LLM-REQ-103", contents_are_there),
    Rule::refused("LLM-REQ-104", contents_have_parts),
    Rule::refused("LLM-REQ-105", parts_have_one_payload),
    Rule::refused("LLM-REQ-106", roles_are_known),
    Rule::refused("LLM-REQ-107", inline_data_is_typed_base64),
    Rule::refused("LLM-REQ-108", files_can_be_fetched),
    Rule::refused("LLM-REQ-109", order::calls_follow_the_user),
    Rule::refused("LLM-REQ-110", order::responses_follow_calls),
    Rule::refused("LLM-REQ-111", order::responses_are_as_many_as_calls),
    Rule::refused("LLM-REQ-112", order::responses_are_objects),
    Rule::refused("LLM-REQ-113", order::responses_carry_the_calls_id),
    Rule::refused("LLM-REQ-114", order::responses_carry_the_calls_name),
    Rule::refused("LLM-REQ-115", order::current_calls_are_signed),
    Rule::refused("LLM-REQ-116", order::signatures_fit),
    Rule::refused("LLM-REQ-117", function_names_fit),
    Rule::refused("LLM-REQ-118", parameters_keep_to_the_subset),
    Rule::refused("LLM-REQ-119", parameters_are_not_empty_objects),
    Rule::refused("LLM-REQ-120", calling_mode_is_known),
    Rule::refused("LLM-REQ-121", names_are_allowed_with_any_only),
    Rule::refused("LLM-REQ-122", schemas_need_json),
    Rule::refused("LLM-REQ-123", cached_content_stands_alone),
    Rule::refused("LLM-REQ-124", own_tools_and_functions_need_leave),
    Rule::refused("LLM-REQ-165", settings::settings_are_in_range),
    Rule::refused("LLM-REQ-166", settings::numbers_are_numbers),
    Rule::refused("LLM-REQ-167", settings::thinking_is_set_once),
    Rule::refused("LLM-REQ-168", settings::categories_are_known),
];

const MEMBERS: &[&str] = &[
    "cachedContent",
    "contents",
    "continuationToken",
    "generationConfig",
    "labels",
    "model",
    "safetySettings",
    "serviceTier",
    "store",
    "systemInstruction",
    "toolConfig",
    "tools",
];

const CONFIG: &[&str] = &[
    "audioTranscriptionConfig",
    "candidateCount",
    "enableAffectiveDialog",
    "enableEnhancedCivicAnswers",
    "frequencyPenalty",
    "imageConfig",
    "logprobs",
    "maxOutputTokens",
    "mediaResolution",
    "presencePenalty",
    "responseFormat",
    "responseJsonSchema",
    "responseLogprobs",
    "responseMimeType",
    "responseModalities",
    "responseSchema",
    "seed",
    "speechConfig",
    "stopSequences",
    "temperature",
    "thinkingConfig",
    "topK",
    "topP",
    "translationConfig",
];

const PART: &[&str] = &[
    "audioMetadata",
    "audioTranscription",
    "codeExecutionResult",
    "documentMetadata",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
    "mediaProcessing",
    "mediaResolution",
    "partMetadata",
    "speechMetadata",
    "spreadsheetMetadata",
    "text",
    "thought",
    "thoughtSignature",
    "toolCall",
    "toolResponse",
    "videoMetadata",
];

const CONTENT: &[&str] = &["parts", "role"];

const CALL: &[&str] = &["args", "id", "name", "partialArgs", "willContinue"];

const RESPONSE: &[&str] = &[
    "id",
    "name",
    "parts",
    "response",
    "scheduling",
    "willContinue",
];

/// Members of a part that are its payload.
const PAYLOADS: &[&str] = &[
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
    "text",
    "toolCall",
    "toolResponse",
];

fn key_is_sent(request: &Request<'_>, faults: &mut Faults) {
    if wants_key(request) && api_key(request).is_none() && bearer(request).is_none() {
        faults
            .add(
                "Method doesn't allow unregistered callers (callers without established \
         identity). Please use API Key or other form of API consumer identity to call this API.",
            )
            .status(403);
    }
}

fn api_key<'a>(request: &Request<'a>) -> Option<&'a str> {
    header(request, "x-goog-api-key").or_else(|| query_value(request.query, "key"))
}

fn key_is_known(request: &Request<'_>, faults: &mut Faults) {
    if api_key(request).is_some_and(|key| !accepts(request, key)) {
        faults
            .add("API key not valid. Please pass a valid API key.")
            .code("API_KEY_INVALID");
    }
}

/// LLM-REQ-101: the body says that it is JSON, and is an object.
pub(super) fn body_is_json(request: &Request<'_>, faults: &mut Faults) {
    if !is_json(request) || !request.body.is_object() {
        faults.add("Invalid JSON payload received. Unexpected token: expected an object.");
    }
}

/// Reports members that nobody knows; a snake_case name counts as its camelCase name.
fn unknown(value: &Value, known: &[&str], place: &str, faults: &mut Faults) {
    let members = value
        .as_object()
        .into_iter()
        .flat_map(|members| members.keys());
    for name in members {
        if !known.iter().any(|known| *known == camel(name)) {
            let place = if place.is_empty() {
                String::new()
            } else {
                format!(" at '{place}'")
            };
            let message = format!(
                "Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field."
            );
            faults.at(name, message);
        }
    }
}

fn camel(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut upper = false;
    for character in name.chars() {
        match character {
            '_' => upper = true,
            c if upper => {
                camel.push(c.to_ascii_uppercase());
                upper = false;
            }
            c => camel.push(c),
        }
    }
    camel
}

fn members_are_known(request: &Request<'_>, faults: &mut Faults) {
    unknown(request.body, MEMBERS, "", faults);
    unknown(
        member(request.body, "generationConfig"),
        CONFIG,
        "generation_config",
        faults,
    );
    for (at, content) in contents(request.body).iter().enumerate() {
        unknown(content, CONTENT, &format!("contents[{at}]"), faults);
        for (place, part) in parts(content).iter().enumerate() {
            let place = format!("contents[{at}].parts[{place}]");
            unknown(part, PART, &place, faults);
            unknown(member(part, "functionCall"), CALL, &place, faults);
            unknown(member(part, "functionResponse"), RESPONSE, &place, faults);
        }
    }
}

fn contents_are_there(request: &Request<'_>, faults: &mut Faults) {
    if contents(request.body).is_empty() {
        faults.at(
            "contents",
            "* GenerateContentRequest.contents: contents is not specified",
        );
    }
}

fn contents_have_parts(request: &Request<'_>, faults: &mut Faults) {
    for (at, content) in contents(request.body).iter().enumerate() {
        if parts(content).is_empty() {
            faults.at(
                format!("contents[{at}].parts"),
                format!(
                    "* \
             GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty."
                ),
            );
        }
    }
}

/// All parts of a conversation: content, place, the part.
fn all_parts<'a>(request: &Request<'a>) -> impl Iterator<Item = (usize, usize, &'a Value)> {
    contents(request.body)
        .iter()
        .enumerate()
        .flat_map(|(at, content)| {
            parts(content)
                .iter()
                .enumerate()
                .map(move |(place, part)| (at, place, part))
        })
}

fn parts_have_one_payload(request: &Request<'_>, faults: &mut Faults) {
    for (at, place, part) in all_parts(request) {
        let count = PAYLOADS
            .iter()
            .filter(|name| !member(part, name).is_null())
            .count();
        let param = format!("contents[{at}].parts[{place}].data");
        if count == 0 {
            faults.at(
                &param,
                format!(
                    "* GenerateContentRequest.{param}: required oneof field \
             'data' must have one initialized field"
                ),
            );
        } else if count > 1 {
            faults.at(
                &param,
                format!("Invalid value at '{param}' (oneof), oneof field 'data' is already set."),
            );
        }
    }
}

fn roles_are_known(request: &Request<'_>, faults: &mut Faults) {
    for (at, content) in contents(request.body).iter().enumerate() {
        let role = &content["role"];
        let known = matches!(role.as_str(), Some("user" | "model" | "function"));
        if !(known || role.is_null() && contents(request.body).len() == 1) {
            faults.at(
                format!("contents[{at}].role"),
                "Please use a valid role: user, model.",
            );
        }
    }
}

fn inline_data_is_typed_base64(request: &Request<'_>, faults: &mut Faults) {
    for (at, place, part) in all_parts(request) {
        let blob = member(part, "inlineData");
        let typed = member(blob, "mimeType")
            .as_str()
            .is_some_and(|kind| kind.contains('/'));
        let good = typed && blob["data"].as_str().is_some_and(is_base64);
        if !(blob.is_null() || good) {
            let param = format!("contents[{at}].parts[{place}].inline_data");
            faults.at(
                &param,
                format!(
                    "Invalid value at '{param}.data' (TYPE_BYTES), Base64 \
             decoding failed, or the MIME type is missing"
                ),
            );
        }
    }
}

/// LLM-REQ-108: a file is one that was uploaded to the service or registered with it, or one that it can fetch.
fn files_can_be_fetched(request: &Request<'_>, faults: &mut Faults) {
    const FETCHED: [&str; 4] = ["https://", "http://", "gs://", "files/"];
    for (at, place, part) in all_parts(request) {
        let file = member(part, "fileData");
        let uri = member(file, "fileUri").as_str().unwrap_or_default();
        if !file.is_null() && !FETCHED.iter().any(|start| uri.starts_with(start)) {
            faults.at(
                format!("contents[{at}].parts[{place}].file_data.file_uri"),
                format!("Invalid or unsupported file uri: {uri}"),
            );
        }
    }
}

/// All functions on offer.
fn functions<'a>(request: &Request<'a>) -> impl Iterator<Item = (usize, usize, &'a Value)> {
    placed(request.member("tools")).flat_map(|(at, tool)| {
        placed(member(tool, "functionDeclarations")).map(move |(place, one)| (at, place, one))
    })
}

fn function_names_fit(request: &Request<'_>, faults: &mut Faults) {
    for (at, place, function) in functions(request) {
        let name = function["name"].as_str().unwrap_or_default();
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
        if !(begins && name.len() <= 128 && name.chars().all(fits)) {
            let param = format!("tools[{at}].function_declarations[{place}].name");
            faults.at(
                &param,
                format!(
                    "* GenerateContentRequest.{param}: Invalid function name. \
             Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), \
             underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
                ),
            );
        }
    }
}

fn parameters_keep_to_the_subset(request: &Request<'_>, faults: &mut Faults) {
    let mut check = |place: String, schema: &Value| {
        if let Some(keyword) = foreign_keyword(schema) {
            faults.at(
                &place,
                format!(
                    "Invalid JSON payload received. Unknown name \
             \"{keyword}\" at '{place}': Cannot find field."
                ),
            );
        }
    };
    for (at, place, function) in functions(request) {
        check(
            format!("tools[{at}].function_declarations[{place}].parameters"),
            &function["parameters"],
        );
    }
    let config = member(request.body, "generationConfig");
    check(
        "generation_config.response_schema".to_owned(),
        member(config, "responseSchema"),
    );
}

fn parameters_are_not_empty_objects(request: &Request<'_>, faults: &mut Faults) {
    for (at, place, function) in functions(request) {
        let schema = &function["parameters"];
        let object = schema["type"]
            .as_str()
            .is_some_and(|kind| kind.eq_ignore_ascii_case("object"));
        let none = schema["properties"]
            .as_object()
            .is_none_or(serde_json::Map::is_empty);
        if object && none {
            let param = format!("tools[{at}].function_declarations[{place}].parameters.properties");
            faults.at(
                &param,
                format!("* GenerateContentRequest.{param}: should be non-empty for OBJECT type"),
            );
        }
    }
}

fn calling<'a>(request: &Request<'a>) -> &'a Value {
    member(member(request.body, "toolConfig"), "functionCallingConfig")
}

fn calling_mode_is_known(request: &Request<'_>, faults: &mut Faults) {
    let mode = &calling(request)["mode"];
    let known = matches!(
        mode.as_str(),
        Some("MODE_UNSPECIFIED" | "AUTO" | "ANY" | "NONE" | "VALIDATED")
    );
    if !(mode.is_null() || known) {
        faults.at(
            "tool_config.function_calling_config.mode",
            format!("Invalid value at 'tool_config.function_calling_config.mode', {mode}"),
        );
    }
}

fn names_are_allowed_with_any_only(request: &Request<'_>, faults: &mut Faults) {
    let names = items(member(calling(request), "allowedFunctionNames"));
    let mode = calling(request)["mode"].as_str();
    if !names.is_empty() && !matches!(mode, Some("ANY" | "VALIDATED")) {
        faults.at(
            "tool_config.function_calling_config.allowed_function_names",
            "Allowed \
         function names should be set only when the function calling mode is ANY or VALIDATED.",
        );
    }
}

fn schemas_need_json(request: &Request<'_>, faults: &mut Faults) {
    let config = member(request.body, "generationConfig");
    let schema = ["responseSchema", "responseJsonSchema"]
        .iter()
        .any(|name| !member(config, name).is_null());
    let kind = member(config, "responseMimeType").as_str();
    if schema && !matches!(kind, Some("application/json" | "text/x.enum")) {
        faults.at(
            "generation_config.response_schema",
            "* \
         GenerateContentRequest.generation_config.response_schema: only allowed when \
         `response_mime_type` is set to `application/json`",
        );
    }
}

fn cached_content_stands_alone(request: &Request<'_>, faults: &mut Faults) {
    let cached = !member(request.body, "cachedContent").is_null();
    let also = ["systemInstruction", "tools", "toolConfig"];
    if cached
        && also
            .iter()
            .any(|name| !member(request.body, name).is_null())
    {
        faults.at(
            "cached_content",
            "CachedContent can not be used with GenerateContent request \
         setting system_instruction, tools or tool_config.",
        );
    }
}

fn own_tools_and_functions_need_leave(request: &Request<'_>, faults: &mut Faults) {
    let own = items(request.member("tools"))
        .iter()
        .filter_map(Value::as_object)
        .flat_map(|tool| tool.keys())
        .any(|name| camel(name) != "functionDeclarations");
    let leave = member(
        member(request.body, "toolConfig"),
        "includeServerSideToolInvocations",
    );
    if own && functions(request).next().is_some() && leave != true {
        faults.at(
            "tools",
            "Please enable tool_config.include_server_side_tool_invocations to \
         use Built-in tools with Function calling.",
        );
    }
}
