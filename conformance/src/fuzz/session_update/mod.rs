//! `session-update`: connections without a cursor. A connection that subscribes to a session has its durable events
//! rebuilt, then hears what happens.
//!
//! - [`plan`]: random cases; [`play`]: a case over a stage;
//! - [`model`]: what a connection must have heard; [`faults`]: what the fuzzer has to find.
//!
//! Prompts come from a connection of their own, under the label `actor`; what each client does is labelled `client-N`.
//! At the end every client that is not connected connects again, one more turn is played, and an `auditor` subscribes.
//!
//! Source: seed 002, lines 13-18.

use crate::{
    checks::Check,
    drivers::{DriveError, target::Pending},
    fuzz::{Abilities, Case, PlantedFault, Protocol, random::Random, report::Seen},
    stage::Stage,
    transcript::{
        Transcript,
        views::session_update::{asked, served, updates},
    },
};

pub mod faults;
pub mod model;
pub mod plan;
pub mod play;
#[cfg(test)]
mod tests;

/// The rules of the model, as checks of the suite.
pub const CHECKS: &[&[Check]] = &[model::CHECKS];

/// Label of the connection that prompts.
pub const ACTOR: &str = "actor";
/// Label of the connection that subscribes last.
pub const AUDITOR: &str = "auditor";

/// `session-update`.
#[derive(Clone, Copy, Debug)]
pub struct SessionUpdate;

impl Protocol for SessionUpdate {
    fn suite(&self) -> &'static str {
        "session-update"
    }

    fn case(&self, random: &mut Random, abilities: &Abilities) -> Case {
        plan::case(random, abilities)
    }

    fn play<'a>(&self, stage: &'a Stage, case: &'a Case) -> Pending<'a, Result<(), DriveError>> {
        Box::pin(play::play(stage, case))
    }

    fn seen(&self, transcript: &Transcript) -> Seen {
        let mut seen = Seen::default();
        for channel in served(transcript) {
            seen.connections += 1;
            seen.exchanges += channel.messages.len() as u64;
            seen.events += updates(&channel).len() as u64;
            for subscribe in asked(&channel, "session/subscribe") {
                let rebuilt = subscribe.given("rebuilt").and_then(|count| count.as_u64());
                seen.answer(match (subscribe.response.is_some(), rebuilt) {
                    (false, _) => "cut-off",
                    (true, Some(0)) => "nothing-to-rebuild",
                    (true, Some(_)) => "rebuilt",
                    (true, None) => "refused",
                });
            }
        }
        seen.broken_off = seen.answers.get("cut-off").copied().unwrap_or_default();
        seen
    }

    fn faults(&self) -> &'static [PlantedFault] {
        faults::FAULTS
    }
}
