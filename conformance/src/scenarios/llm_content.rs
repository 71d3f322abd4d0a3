//! What adapters are given to say: texts and images, to targets that take them or do not.
//!
//! The calls are [`cases::content`](crate::cases::content).

use super::{Act, Scenario};
use crate::cases::{content::Theme, requests};

/// The scenarios of the area.
pub const SCENARIOS: &[Scenario] = &[
    Scenario::shared(
        "content-forms",
        "contents that are a text, null, and lists of parts",
        Act::Testee(|stage| Box::pin(stage.play_content(Theme::Forms))),
    ),
    Scenario::shared(
        "content-images",
        "images as base64 and as URLs, with and without a type",
        Act::Testee(|stage| Box::pin(stage.play_content(Theme::Images))),
    ),
    Scenario::shared(
        "content-inputs",
        "images for models that take them, that do not, and of which nothing is known",
        Act::Testee(|stage| Box::pin(stage.play_content(Theme::Inputs))),
    ),
    Scenario::shared(
        "content-calls",
        "calls of Gemini's native wire: methods, tools, objects, and what is never asked for",
        Act::Testee(|stage| Box::pin(stage.play_content(Theme::Calls))),
    ),
    Scenario::shared(
        "content-large",
        "images of a megabyte and more",
        Act::Testee(|stage| Box::pin(stage.play_content(Theme::Large))),
    ),
];

/// Those of the area `llm-reasoning`.
pub const REASONING: &[Scenario] = &[
    Scenario::shared(
        "reasoning-timing",
        "thinking, models that write slowly or stop, and waits between attempts",
        Act::Testee(|stage| Box::pin(stage.play_content(Theme::Timing))),
    ),
    Scenario::shared(
        "reasoning-tags",
        "thinking that a model writes into its text, whole and in pieces",
        Act::Testee(|stage| Box::pin(stage.play_content(Theme::Tags))),
    ),
    Scenario::shared(
        "reasoning-back",
        "thinking on Chat Completions, sent back with the results of calls to the same service or another",
        Act::Testee(|stage| Box::pin(stage.talk_about(requests::Theme::SentBack))),
    ),
    Scenario::shared(
        "reasoning-native",
        "signed and encrypted answers, taken to the same model or to another model, address or wire",
        Act::Testee(|stage| Box::pin(stage.talk_about(requests::Theme::Native))),
    ),
];
