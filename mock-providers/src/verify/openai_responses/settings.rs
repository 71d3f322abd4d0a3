//! Settings: numbers, switches, and what belongs together.

use crate::verify::openai_chat::quoted;
use crate::verify::openai_chat::settings::{
    MOST_LIKELIHOODS, integer_is_in_range, switches_are_booleans,
};
use crate::verify::shape::{placed, unknown};
use crate::verify::{Faults, Request};

const INCLUDES: &[&str] = &[
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
];

const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

pub(super) fn includes_are_known(request: &Request<'_>, faults: &mut Faults) {
    for (at, include) in placed(request.member("include")) {
        if !include
            .as_str()
            .is_some_and(|include| INCLUDES.contains(&include))
        {
            faults
                .at(
                    format!("include[{at}]"),
                    format!(
                        "Invalid value: {include}. Supported values are: {}.",
                        quoted(INCLUDES)
                    ),
                )
                .code("invalid_value");
        }
    }
}

pub(super) fn usage_is_not_asked_for(request: &Request<'_>, faults: &mut Faults) {
    for name in unknown(request.member("stream_options"), &["include_obfuscation"]) {
        let param = format!("stream_options.{name}");
        faults
            .at(&param, format!("Unknown parameter: '{param}'."))
            .code("unknown_parameter");
    }
}

pub(super) fn one_history_at_a_time(request: &Request<'_>, faults: &mut Faults) {
    let both = ["previous_response_id", "conversation"]
        .iter()
        .all(|name| !request.body[*name].is_null());
    if both {
        faults
            .at(
                "previous_response_id",
                "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
            )
            .code("mutually_exclusive_parameters");
    }
}

pub(super) fn efforts_are_known(request: &Request<'_>, faults: &mut Faults) {
    let effort = &request.member("reasoning")["effort"];
    if !(effort.is_null() || effort.as_str().is_some_and(|word| EFFORTS.contains(&word))) {
        faults
            .at(
                "reasoning.effort",
                format!(
                    "Invalid value: {effort}. Supported values are: {}.",
                    quoted(EFFORTS)
                ),
            )
            .code("invalid_value");
    }
}

/// Tokens that an answer may be limited to.
const LEAST_OUTPUT: i64 = 16;

pub(super) fn limit_leaves_room(request: &Request<'_>, faults: &mut Faults) {
    integer_is_in_range("max_output_tokens", LEAST_OUTPUT, i64::MAX, request, faults);
}

pub(super) fn likelihoods_are_few(request: &Request<'_>, faults: &mut Faults) {
    integer_is_in_range("top_logprobs", 0, MOST_LIKELIHOODS, request, faults);
}

/// LLM-REQ-152: the word stands in the input; `instructions` do not count. What is stored elsewhere is not known.
pub(super) fn json_mode_says_json(request: &Request<'_>, faults: &mut Faults) {
    let known = ["prompt", "conversation"]
        .iter()
        .all(|name| request.member(name).is_null());
    let says = || {
        let input = request.member("input").to_string();
        input.to_ascii_lowercase().contains("json")
    };
    if request.member("text")["format"]["type"] == "json_object" && known && !says() {
        faults.at(
            "input",
            "Response input messages must contain the word 'json' in some form to use \
             'text.format' of type 'json_object'.",
        );
    }
}

pub(super) fn responses_switches_are_booleans(request: &Request<'_>, faults: &mut Faults) {
    let names = ["stream", "store", "background", "parallel_tool_calls"];
    switches_are_booleans(&names, request, faults);
}
