//! What adapters are put through: every case of a group, one after the other.
//!
//! All LLM wires have the same scenarios; which cases there are is told by [`cases`](crate::cases).

use super::{Act, Scenario};
use crate::cases::{Group, content::Theme};

/// The scenarios of the area, group by group.
pub const SCENARIOS: &[Scenario] = &[
    Scenario::shared(
        "framing",
        "streams whose bytes come in every form that event streams have",
        Act::Testee(|stage| Box::pin(stage.play_group(Group::Framing))),
    ),
    Scenario::shared(
        "text",
        "text and the members around it, known or not",
        Act::Testee(|stage| Box::pin(stage.play_group(Group::Text))),
    ),
    Scenario::shared(
        "tools",
        "tool calls: whole, in pieces, side by side, and damaged",
        Act::Testee(|stage| Box::pin(stage.play_group(Group::Tools))),
    ),
    Scenario::shared(
        "thinking",
        "thinking in every form that services have for it",
        Act::Testee(|stage| Box::pin(stage.play_group(Group::Thinking))),
    ),
    Scenario::shared(
        "usage",
        "what answers cost, in every place where services say it",
        Act::Testee(|stage| Box::pin(stage.play_group(Group::Usage))),
    ),
    Scenario::shared(
        "ends",
        "streams that end early, late, or twice",
        Act::Testee(|stage| Box::pin(stage.play_group(Group::Ends))),
    ),
    Scenario::shared(
        "errors",
        "errors as a status, within a stream, and in place of it; and when to try again",
        Act::Testee(|stage| Box::pin(stage.play_group(Group::Errors))),
    ),
];

/// Those of the area `llm-waits`.
pub const WAITS: &[Scenario] = &[Scenario::shared(
    "waits",
    "errors that ask to wait, in every form that services have for it",
    Act::Testee(|stage| Box::pin(stage.play_content(Theme::Waits))),
)];
