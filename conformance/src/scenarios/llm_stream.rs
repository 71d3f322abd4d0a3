//! What adapters are put through: every case of a group, one after the other.
//!
//! All LLM wires have the same scenarios; which cases there are is told by [`cases`](crate::cases).

use super::{Act, Isolation, Scenario};
use crate::cases::Group;

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

/// The scenarios of the area, group by group.
pub const SCENARIOS: &[Scenario] = &[
    scenario(
        "framing",
        "streams whose bytes come in every form that event streams have",
        Act::Testee(|stage| Box::pin(stage.play_group(Group::Framing))),
    ),
    scenario(
        "tools",
        "tool calls: whole, in pieces, side by side, and damaged",
        Act::Testee(|stage| Box::pin(stage.play_group(Group::Tools))),
    ),
    scenario(
        "ends",
        "streams that end early, late, or twice",
        Act::Testee(|stage| Box::pin(stage.play_group(Group::Ends))),
    ),
];
