//! What adapters are made to send: requests that the mock judges as the service would.
//!
//! The conversations are [`cases::requests`](crate::cases::requests).

use super::{Act, Isolation, Scenario};
use crate::cases::requests::Theme;

const fn scenario(name: &'static str, about: &'static str, run: Act) -> Scenario {
    Scenario {
        name,
        about,
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run,
    }
}

/// The scenarios of the area.
pub const SCENARIOS: &[Scenario] = &[
    scenario(
        "requests-history",
        "a conversation with an image, two calls, their results, and thinking",
        Act::Testee(|stage| Box::pin(stage.talk_about(Theme::History))),
    ),
    scenario(
        "requests-compatible",
        "the same on Gemini's OpenAI-compatible endpoint",
        Act::Testee(|stage| Box::pin(stage.talk_about(Theme::Compatible))),
    ),
    scenario(
        "requests-thinking",
        "a turn with calls, to a service that wants its thinking back",
        Act::Testee(|stage| Box::pin(stage.talk_about(Theme::Thinking))),
    ),
    scenario(
        "requests-stored",
        "a conversation that goes on from an answer which the service stored",
        Act::Testee(|stage| Box::pin(stage.talk_about(Theme::Stored))),
    ),
    scenario(
        "requests-again",
        "an answer that fails with 500, and the second attempt",
        Act::Testee(|stage| Box::pin(stage.talk_about(Theme::Again))),
    ),
];
