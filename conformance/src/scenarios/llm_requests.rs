//! What adapters are made to send: requests that the mock judges as the service would.
//!
//! The conversations are [`cases::requests`](crate::cases::requests).

use super::{Act, Scenario};
use crate::cases::requests::Theme;

/// The scenarios of the area.
pub const SCENARIOS: &[Scenario] = &[
    Scenario::shared(
        "requests-history",
        "a conversation with an image, two calls, their results, and thinking",
        Act::Testee(|stage| Box::pin(stage.talk_about(Theme::History))),
    ),
    Scenario::shared(
        "requests-compatible",
        "the same on Gemini's OpenAI-compatible endpoint",
        Act::Testee(|stage| Box::pin(stage.talk_about(Theme::Compatible))),
    ),
    Scenario::shared(
        "requests-thinking",
        "a turn with calls, to a service that wants its thinking back",
        Act::Testee(|stage| Box::pin(stage.talk_about(Theme::Thinking))),
    ),
    Scenario::shared(
        "requests-stored",
        "a conversation that goes on from an answer which the service stored",
        Act::Testee(|stage| Box::pin(stage.talk_about(Theme::Stored))),
    ),
    Scenario::shared(
        "requests-again",
        "an answer that fails with 500, and the second attempt",
        Act::Testee(|stage| Box::pin(stage.talk_about(Theme::Again))),
    ),
];
