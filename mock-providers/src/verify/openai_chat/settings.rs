//! Settings: numbers, switches, and what a model takes. Most of them are the same in Responses.
//!
//! Which model takes what is judged by the model's name, and only where the name leaves no doubt: a service that is
//! not known to refuse a setting takes it here too.

use serde_json::Value;
use turnwire_spec::llm::Wire;

use super::quoted;
use crate::verify::shape::{items, kind_of};
use crate::verify::{Faults, Request};

const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

const VERBOSITIES: &[&str] = &["low", "medium", "high"];

/// Whether a model is of the o series: `o1`, `o3-mini`.
fn o_series(model: &str) -> bool {
    let mut letters = model.chars();
    letters.next() == Some('o') && letters.next().is_some_and(|c| c.is_ascii_digit())
}

/// Whether a model thinks before it answers: the o series, and GPT-5 and later.
fn reasons(model: &str) -> bool {
    let version = model
        .strip_prefix("gpt-")
        .and_then(|rest| rest.split(['-', '.']).next());
    o_series(model)
        || version
            .and_then(|text| text.parse::<u32>().ok())
            .is_some_and(|version| version >= 5)
}

/// Whether a model always thinks, so that it always samples in its own way: the o series, and the first GPT-5. Later
/// ones sample as they are told when their effort is none, which is the default of some.
fn samples_in_its_own_way(model: &str) -> bool {
    let first = model.strip_prefix("gpt-5").is_some_and(|rest| {
        rest.is_empty()
            || ["-mini", "-nano", "-20"]
                .iter()
                .any(|next| rest.starts_with(next))
    });
    o_series(model) || first
}

pub(super) fn limit_has_its_new_name(request: &Request<'_>, faults: &mut Faults) {
    if reasons(request.model) && !request.member("max_tokens").is_null() {
        faults
            .at(
                "max_tokens",
                "Unsupported parameter: 'max_tokens' is not supported with this \
         model. Use 'max_completion_tokens' instead.",
            )
            .code("unsupported_parameter");
    }
}

/// LLM-REQ-031: numbers are in their ranges, and there are at most four stop texts.
pub(in crate::verify) fn numbers_are_in_range(request: &Request<'_>, faults: &mut Faults) {
    let range = |name: &str| match name {
        "temperature" => Some((0.0, 2.0)),
        "top_p" => Some((0.0, 1.0)),
        "presence_penalty" | "frequency_penalty" => Some((-2.0, 2.0)),
        "n" => Some((1.0, 128.0)),
        "max_completion_tokens" | "max_tokens" => Some((1.0, f64::MAX)),
        _ => None,
    };
    // Goes along the body, which is shorter than the list of what it could have.
    for (name, value) in request.body.as_object().into_iter().flatten() {
        let Some((least, most)) = range(name) else {
            continue;
        };
        let fits = value
            .as_f64()
            .is_some_and(|number| (least..=most).contains(&number));
        if !(value.is_null() || fits) {
            faults
                .at(
                    name,
                    format!("Invalid '{name}': {value} is not a number from {least} to {most}."),
                )
                .code("invalid_value");
        }
    }
    if items(request.member("stop")).len() > 4 {
        faults
            .at(
                "stop",
                "Invalid 'stop': array too long. Expected an array with maximum length 4.",
            )
            .code("array_above_max_length");
    }
}

/// LLM-REQ-032: the effort is one of the service's words.
pub(super) fn efforts_are_known(request: &Request<'_>, faults: &mut Faults) {
    is_one_of(
        "reasoning_effort",
        request.member("reasoning_effort"),
        EFFORTS,
        faults,
    );
}

pub(super) fn verbosity_is_known(request: &Request<'_>, faults: &mut Faults) {
    is_one_of(
        "verbosity",
        request.member("verbosity"),
        VERBOSITIES,
        faults,
    );
}

/// Reports a word that is not on a list; null counts as absent.
fn is_one_of(param: &str, value: &Value, known: &[&str], faults: &mut Faults) {
    if !(value.is_null() || value.as_str().is_some_and(|word| known.contains(&word))) {
        faults
            .at(
                param,
                format!(
                    "Invalid value: {value}. Supported values are: {}.",
                    quoted(known)
                ),
            )
            .code("invalid_value");
    }
}

pub(super) fn chat_switches_are_booleans(request: &Request<'_>, faults: &mut Faults) {
    let names = ["stream", "store", "logprobs", "parallel_tool_calls"];
    switches_are_booleans(&names, request, faults);
}

/// Reports members that are neither true nor false; null counts as absent. Goes along the body, which is shorter than
/// the list of what it could have.
pub(in crate::verify) fn switches_are_booleans(
    names: &[&str],
    request: &Request<'_>,
    faults: &mut Faults,
) {
    for (name, value) in request.body.as_object().into_iter().flatten() {
        if value.is_boolean() || value.is_null() || !names.contains(&name.as_str()) {
            continue;
        }
        let got = kind_of(value);
        faults
            .at(
                name,
                format!("Invalid type for '{name}': expected a boolean, but got {got} instead."),
            )
            .code("invalid_type");
    }
}

/// Reports a member that is no integer from `least` to `most`; null counts as absent.
pub(in crate::verify) fn integer_is_in_range(
    name: &'static str,
    least: i64,
    most: i64,
    request: &Request<'_>,
    faults: &mut Faults,
) {
    let value = request.member(name);
    if value.is_null() {
        return;
    }
    // A whole number may be written as a decimal, and what is beyond an i64 is too large.
    let number = value
        .as_i64()
        .or_else(|| value.as_u64().map(|_| i64::MAX))
        .or_else(|| {
            let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
            Some(number as i64)
        });
    let (text, code) = match number {
        None => {
            let got = kind_of(value);
            (
                format!("Invalid type for '{name}': expected an integer, but got {got} instead."),
                "invalid_type",
            )
        }
        Some(number) if number < least => (
            format!(
                "Invalid '{name}': integer below minimum value. Expected a value >= {least}, but \
                 got {value} instead."
            ),
            "integer_below_min_value",
        ),
        Some(number) if number > most => (
            format!(
                "Invalid '{name}': integer above maximum value. Expected a value <= {most}, but \
                 got {value} instead."
            ),
            "integer_above_max_value",
        ),
        Some(_) => return,
    };
    faults.at(name, text).code(code);
}

/// Likelihoods of other tokens that one place may show.
pub(in crate::verify) const MOST_LIKELIHOODS: i64 = 20;

pub(super) fn likelihoods_are_asked_for(request: &Request<'_>, faults: &mut Faults) {
    if request.member("top_logprobs").is_null() {
        return;
    }
    integer_is_in_range("top_logprobs", 0, MOST_LIKELIHOODS, request, faults);
    if request.member("logprobs") != true {
        faults.at(
            "top_logprobs",
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
        );
    }
}

/// Members of `metadata`, and characters of a name and of a value.
const MOST_PAIRS: usize = 16;
const LONGEST_NAME: usize = 64;
const LONGEST_VALUE: usize = 512;

/// LLM-REQ-146: `metadata` is a few short texts.
pub(in crate::verify) fn metadata_fits(request: &Request<'_>, faults: &mut Faults) {
    let metadata = request.member("metadata");
    let pairs = match metadata {
        Value::Null => return,
        Value::Object(pairs) => pairs,
        other => {
            let got = kind_of(other);
            faults
                .at(
                    "metadata",
                    format!(
                        "Invalid type for 'metadata': expected a metadata object, but got {got} \
                         instead."
                    ),
                )
                .code("invalid_type");
            return;
        }
    };
    if pairs.len() > MOST_PAIRS {
        faults
            .at(
                "metadata",
                format!(
                    "Invalid 'metadata': too many properties. Expected an object with at most \
                     {MOST_PAIRS} properties, but got an object with {} properties instead.",
                    pairs.len()
                ),
            )
            .code("object_above_max_properties");
    }
    for (name, value) in pairs {
        pair_fits(name, value, faults);
    }
}

fn pair_fits(name: &str, value: &Value, faults: &mut Faults) {
    let param = format!("metadata.{name}");
    let length = name.chars().count();
    if length > LONGEST_NAME {
        faults
            .at(
                &param,
                format!(
                    "Invalid property name in 'metadata': '{name}' is too long. Expected a string \
                     with maximum length {LONGEST_NAME}, but got a string with length {length} \
                     instead."
                ),
            )
            .code("property_name_above_max_length");
    }
    let Some(text) = value.as_str() else {
        let got = kind_of(value);
        faults
            .at(
                &param,
                format!("Invalid type for '{param}': expected a string, but got {got} instead."),
            )
            .code("invalid_type");
        return;
    };
    let length = text.chars().count();
    if length > LONGEST_VALUE {
        faults
            .at(
                &param,
                format!(
                    "Invalid '{param}': string too long. Expected a string with maximum length \
                     {LONGEST_VALUE}, but got a string with length {length} instead."
                ),
            )
            .code("string_above_max_length");
    }
}

/// LLM-REQ-147: a token is made likelier or less likely by at most 100.
pub(super) fn biases_are_in_range(request: &Request<'_>, faults: &mut Faults) {
    let biases = request.member("logit_bias").as_object();
    for (token, bias) in biases.into_iter().flatten() {
        let fits = bias
            .as_f64()
            .is_some_and(|bias| (-100.0..=100.0).contains(&bias));
        if !fits {
            let param = format!("logit_bias.{token}");
            faults
                .at(
                    &param,
                    format!("Invalid '{param}': {bias} is not a number from -100 to 100."),
                )
                .code("invalid_value");
        }
    }
}

/// LLM-REQ-148 and 154: a model that samples in its own way takes no other temperature than 1.
pub(in crate::verify) fn sampling_is_left_alone(request: &Request<'_>, faults: &mut Faults) {
    if !samples_in_its_own_way(request.model) {
        return;
    }
    for name in ["temperature", "top_p"] {
        let value = request.member(name);
        if value.is_null() || value.as_f64() == Some(1.0) {
            continue;
        }
        if request.wire == Wire::OpenaiResponses {
            faults.at(
                name,
                format!("Unsupported parameter: '{name}' is not supported with this model."),
            );
        } else {
            faults
                .at(
                    name,
                    format!(
                        "Unsupported value: '{name}' does not support {value} with this model. \
                         Only the default (1) value is supported."
                    ),
                )
                .code("unsupported_value");
        }
    }
}

/// LLM-REQ-149: a model that does not think knows no effort.
pub(super) fn effort_fits_the_model(request: &Request<'_>, faults: &mut Faults) {
    let plain = ["gpt-3.5", "gpt-4", "chatgpt-4"]
        .iter()
        .any(|family| request.model.starts_with(family));
    if plain && !request.member("reasoning_effort").is_null() {
        faults.add("Unrecognized request argument supplied: reasoning_effort");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_models_that_always_think_sample_in_their_own_way() {
        for model in [
            "o1",
            "o3-mini",
            "o4-mini-2025-04-16",
            "gpt-5",
            "gpt-5-mini",
            "gpt-5-2025-08-07",
        ] {
            assert!(samples_in_its_own_way(model), "{model}");
        }
        for model in [
            "gpt-5.2",
            "gpt-5-chat-latest",
            "gpt-4o",
            "omni",
            "mock-model",
            "",
        ] {
            assert!(!samples_in_its_own_way(model), "{model}");
        }
    }
}
