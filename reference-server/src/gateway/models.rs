//! The model table: what is known of models by their names.
//!
//! Only what decides something here: whether a model takes images, and how much fits into a request. What
//! the table does not know is unknown, not impossible.

use super::settings::TargetConfig;

/// What is known of a model.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Known {
    /// The start of its name.
    name: &'static str,
    images: bool,
    /// Tokens that fit into a request.
    window: u64,
}

const fn known(name: &'static str, images: bool, window: u64) -> Known {
    Known {
        name,
        images,
        window,
    }
}

/// The longest name that fits counts.
const TABLE: &[Known] = &[
    known("claude-", true, 200_000),
    known("codestral-", false, 256_000),
    known("deepseek-", false, 128_000),
    known("gemini-", true, 1_000_000),
    known("gpt-3.5-", false, 16_000),
    known("gpt-4", false, 8_000),
    known("gpt-4-turbo", true, 128_000),
    known("gpt-4.1", true, 1_000_000),
    known("gpt-4o", true, 128_000),
    known("gpt-5", true, 400_000),
    known("gpt-oss-", false, 128_000),
    known("o1", true, 200_000),
    known("o1-mini", false, 128_000),
    known("o3", true, 200_000),
    known("o3-mini", false, 200_000),
    known("o4-mini", true, 200_000),
    known("qwen3-", false, 32_000),
    known("qwen3-vl-", true, 128_000),
];

fn of(model: &str) -> Option<&'static Known> {
    let name = model.strip_prefix("models/").unwrap_or(model);
    TABLE
        .iter()
        .filter(|known| name.starts_with(known.name))
        .max_by_key(|known| known.name.len())
}

/// Whether a target takes images; `None` when nobody knows.
///
/// Source: seed 000, lines 542-543.
pub(super) fn takes_images(target: &TargetConfig, model: &str) -> Option<bool> {
    match &target.input {
        Some(input) => Some(input.iter().any(|kind| kind == "image")),
        None => of(model).map(|known| known.images),
    }
}

/// How many tokens fit into a request; `None` when nobody knows.
pub(super) fn window(target: &TargetConfig, model: &str) -> Option<u64> {
    target
        .context_window
        .or_else(|| of(model).map(|known| known.window))
}

/// Whether a Gemini model signs its calls and wants the first one of a turn signed: from version 3 on.
pub(super) fn signs_calls(model: &str) -> bool {
    gemini_version(model).is_some_and(|version| version >= 3)
}

/// The major version of a Gemini model.
fn gemini_version(model: &str) -> Option<u32> {
    let name = model.strip_prefix("models/").unwrap_or(model);
    let version = name.strip_prefix("gemini-")?.split(['-', '.']).next()?;
    version.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_spec::llm::Wire;

    #[test]
    fn the_longest_name_counts_and_the_configuration_more() {
        let target = TargetConfig::new(Wire::OpenaiChat, "http://127.0.0.1:1", "m");
        assert_eq!(takes_images(&target, "gpt-5.2-mini"), Some(true));
        assert_eq!(takes_images(&target, "o3-mini-high"), Some(false));
        assert_eq!(takes_images(&target, "made-up"), None);
        assert_eq!(window(&target, "made-up"), None);

        let told = target.accepts(["text"]).window(10);
        assert_eq!(takes_images(&told, "gpt-5"), Some(false));
        assert_eq!(window(&told, "gpt-5"), Some(10));
    }

    #[test]
    fn versions_of_gemini_are_read_from_names() {
        assert_eq!(gemini_version("models/gemini-3-pro"), Some(3));
        assert_eq!(gemini_version("gemini-2.5-flash"), Some(2));
        assert_eq!(gemini_version("gemini-pro"), None);
    }
}
