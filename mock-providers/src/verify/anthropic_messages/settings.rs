//! Settings: sampling, thinking, tools and the cache.

use std::collections::BTreeSet;

use super::{blocks, extra};
use crate::verify::shape::{header, is_name, items, placed, unknown};
use crate::verify::{Faults, Request};

/// LLM-REQ-093: the newest version takes no sampling settings; newer models take few under any.
pub(super) fn no_sampling(request: &Request<'_>, faults: &mut Faults) {
    use turnwire_spec::llm::anthropic_messages::VERSION;
    let sent = |name: &'static str| Some(request.member(name)).filter(|value| !value.is_null());
    for name in ["temperature", "top_p", "top_k"] {
        let Some(value) = sent(name) else { continue };
        if header(request, "anthropic-version") == Some(VERSION) {
            faults.add(extra(name));
            continue;
        }
        let fixed = samples_in_its_own_way(request.model);
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

/// Whether a model takes few sampling settings: those after 4.6, and those of no known version.
fn samples_in_its_own_way(model: &str) -> bool {
    model_version(model).is_none_or(|version| version > (4, 6))
}

/// LLM-REQ-160: of the models and the version that take any.
pub(super) fn sampling_is_in_range(request: &Request<'_>, faults: &mut Faults) {
    use turnwire_spec::llm::anthropic_messages::OLD_VERSION;
    let takes = header(request, "anthropic-version") == Some(OLD_VERSION)
        && !samples_in_its_own_way(request.model);
    for name in ["temperature", "top_p"].iter().filter(|_| takes) {
        let value = request.member(name);
        match value.as_f64() {
            _ if value.is_null() => {}
            None => {
                faults.add(format!("{name}: Input should be a valid number"));
            }
            Some(number) if !(0.0..=1.0).contains(&number) => {
                faults.add(format!("{name}: range: 0..1"));
            }
            Some(_) => {}
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

pub(super) fn budget_fits(request: &Request<'_>, faults: &mut Faults) {
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

pub(super) fn thinking_leaves_tools_free(request: &Request<'_>, faults: &mut Faults) {
    let forced = matches!(
        request.member("tool_choice")["type"].as_str(),
        Some("any" | "tool")
    );
    if forced && thinks(request) {
        faults.add("Thinking may not be enabled when tool_choice forces tool use.");
    }
}

pub(super) fn tools_are_flat(request: &Request<'_>, faults: &mut Faults) {
    for (at, tool) in placed(request.member("tools")) {
        let own = matches!(tool["type"].as_str(), None | Some("custom"));
        // A set of the service's tools has no name of its own.
        let set = tool["type"]
            .as_str()
            .is_some_and(|kind| kind.contains("toolset"));
        if !set && !tool["name"].as_str().is_some_and(|name| is_name(name, 128)) {
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

pub(super) fn chosen_tool_is_offered(request: &Request<'_>, faults: &mut Faults) {
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

pub(super) fn few_cache_marks(request: &Request<'_>, faults: &mut Faults) {
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

/// LLM-REQ-158: `metadata` says who the user is and nothing else.
pub(super) fn metadata_is_the_users_id(request: &Request<'_>, faults: &mut Faults) {
    let metadata = request.member("metadata");
    for name in unknown(metadata, &["user_id"]) {
        faults.add(extra(&format!("metadata.{name}")));
    }
    let id = &metadata["user_id"];
    if !(id.is_null() || id.is_string()) {
        faults.add("metadata.user_id: Input should be a valid string");
    }
}

/// LLM-REQ-161: any tool is none where there are none. `auto` and `none` may stand alone.
pub(super) fn a_free_choice_has_tools(request: &Request<'_>, faults: &mut Faults) {
    let offered = !items(request.member("tools")).is_empty()
        || !items(request.member("mcp_servers")).is_empty();
    if request.member("tool_choice")["type"] == "any" && !offered {
        faults.add("tool_choice.any may only be specified while providing tools");
    }
}

pub(super) fn tool_names_are_unique(request: &Request<'_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    let names = items(request.member("tools")).iter();
    let twice = names
        .filter_map(|tool| tool["name"].as_str())
        .any(|name| !seen.insert(name));
    if twice {
        faults.add("tools: Tool names must be unique.");
    }
}

pub(super) fn stop_sequences_are_not_blank(request: &Request<'_>, faults: &mut Faults) {
    for (at, text) in placed(request.member("stop_sequences")) {
        match text.as_str() {
            None => {
                faults.add(format!(
                    "stop_sequences.{at}: Input should be a valid string"
                ));
            }
            Some(text) if text.trim().is_empty() => {
                faults.add("stop_sequences: each stop sequence must contain non-whitespace");
            }
            Some(_) => {}
        }
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
