//! Settings: numbers, thinking and safety.

use serde_json::Value;

use crate::verify::shape::items;
use crate::verify::{Faults, Request};
use crate::wires::gemini::member;

/// The settings; `None` when there are none, as in most requests.
fn config<'a>(request: &Request<'a>) -> Option<&'a Value> {
    Some(member(request.body, "generationConfig")).filter(|config| config.is_object())
}

/// Texts that end an answer.
const MOST_STOPS: usize = 5;

/// LLM-REQ-165: the temperature is from 0 to 2, and few texts end an answer.
pub(super) fn settings_are_in_range(request: &Request<'_>, faults: &mut Faults) {
    let Some(config) = config(request) else {
        return;
    };
    let temperature = number(member(config, "temperature"));
    if temperature.is_some_and(|degrees| !(0.0..=2.0).contains(&degrees)) {
        faults.at(
            "generation_config.temperature",
            "* GenerateContentRequest.generation_config.temperature: temperature must be in the \
             range [0.0, 2.0].",
        );
    }
    if items(member(config, "stopSequences")).len() > MOST_STOPS {
        faults.at(
            "generation_config.stop_sequences",
            format!(
                "* GenerateContentRequest.generation_config.stop_sequences: the number of \
                 stop_sequences must not exceed {MOST_STOPS}."
            ),
        );
    }
}

/// A number; the JSON of protocol buffers may have it as a text.
fn number(value: &Value) -> Option<f64> {
    let text = || value.as_str().and_then(|text| text.parse().ok());
    value.as_f64().or_else(text)
}

/// Settings that are numbers: the name, the service's own name, and its type.
const NUMBERS: [(&str, &str, &str); 9] = [
    ("temperature", "temperature", "TYPE_FLOAT"),
    ("topP", "top_p", "TYPE_FLOAT"),
    ("topK", "top_k", "TYPE_INT32"),
    ("candidateCount", "candidate_count", "TYPE_INT32"),
    ("maxOutputTokens", "max_output_tokens", "TYPE_INT32"),
    ("presencePenalty", "presence_penalty", "TYPE_FLOAT"),
    ("frequencyPenalty", "frequency_penalty", "TYPE_FLOAT"),
    ("seed", "seed", "TYPE_INT32"),
    ("logprobs", "logprobs", "TYPE_INT32"),
];

/// LLM-REQ-166: what is a number is written as one.
pub(super) fn numbers_are_numbers(request: &Request<'_>, faults: &mut Faults) {
    let Some(config) = config(request) else {
        return;
    };
    for (name, own, kind) in NUMBERS {
        let value = member(config, name);
        if !value.is_null() && number(value).is_none() {
            let param = format!("generation_config.{own}");
            faults.at(
                &param,
                format!("Invalid value at '{param}' ({kind}), {value}"),
            );
        }
    }
}

/// LLM-REQ-167: a level of thinking and a budget for it contradict each other.
pub(super) fn thinking_is_set_once(request: &Request<'_>, faults: &mut Faults) {
    let Some(config) = config(request) else {
        return;
    };
    let thinking = member(config, "thinkingConfig");
    let both = ["thinkingBudget", "thinkingLevel"]
        .iter()
        .all(|name| !member(thinking, name).is_null());
    if both {
        faults.at(
            "generation_config.thinking_config",
            "You can only set only one of thinking budget and thinking level.",
        );
    }
}

/// Categories of harm that a request may speak of. Those of images are of another service.
const CATEGORIES: &[&str] = &[
    "HARM_CATEGORY_UNSPECIFIED",
    "HARM_CATEGORY_HARASSMENT",
    "HARM_CATEGORY_HATE_SPEECH",
    "HARM_CATEGORY_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_DANGEROUS_CONTENT",
    "HARM_CATEGORY_CIVIC_INTEGRITY",
    "HARM_CATEGORY_JAILBREAK",
];

/// LLM-REQ-168: a category is one of the service's words, or the number of one.
pub(super) fn categories_are_known(request: &Request<'_>, faults: &mut Faults) {
    let settings = items(member(request.body, "safetySettings"));
    for (at, setting) in settings.iter().enumerate() {
        let category = &setting["category"];
        let known = category
            .as_str()
            .is_none_or(|word| CATEGORIES.contains(&word));
        if !known {
            let param = format!("safety_settings[{at}].category");
            faults.at(
                &param,
                format!(
                    "Invalid value at '{param}' \
                     (type.googleapis.com/google.ai.generativelanguage.v1beta.HarmCategory), \
                     {category}"
                ),
            );
        }
    }
}
