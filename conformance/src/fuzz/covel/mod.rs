//! `covel-sse`: subscriptions with the cursor `<epoch>:<seq>`.
//!
//! - [`plan`]: random cases; [`play`]: a case over a stage;
//! - [`model`]: what a client that keeps to the protocol must hold; its rules are in [`answers`] (what a cursor is
//!   answered with), [`streams`] (what comes on a connection) and [`state`] (what it adds up to);
//! - [`faults`]: what the fuzzer has to find.
//!
//! The player labels what each client does `client-N`. A client that has no cursor, or was reset, reads the view, the
//! messages and the stored values under its label, as the protocol asks of it; then events carry it on. At the end
//! every client is brought up to date, an `auditor` subscribes from before the first event, and the same queries are
//! asked once more under the label `authority`.
//!
//! Source: seed 000, lines 640-657 and 720-766.

use crate::{
    checks::Check,
    drivers::{DriveError, target::Pending},
    fuzz::{Abilities, Case, PlantedFault, Protocol, random::Random, report::Seen},
    stage::Stage,
    transcript::{
        Transcript,
        views::{covel, http::exchanges},
    },
};

pub mod answers;
pub mod faults;
pub mod model;
pub mod plan;
pub mod play;
pub mod state;
pub mod streams;
#[cfg(test)]
mod tests;

/// The rules of the model, as checks of the suite.
pub const CHECKS: &[&[Check]] = &[answers::CHECKS, streams::CHECKS, state::CHECKS];

/// The label of a client.
pub fn client_label(client: u8) -> String {
    format!("client-{client}")
}

/// Label of the connection that is opened from before the first event.
pub const AUDITOR: &str = "auditor";
/// Label of the queries that tell the authoritative state.
pub const AUTHORITY: &str = "authority";
/// Namespace of the values that are stored one by one.
pub const NAMESPACE: &str = "fuzz";

/// `covel-sse`.
#[derive(Clone, Copy, Debug)]
pub struct CovelSse;

impl Protocol for CovelSse {
    fn suite(&self) -> &'static str {
        "covel-sse"
    }

    fn case(&self, random: &mut Random, abilities: &Abilities) -> Case {
        plan::case(random, abilities)
    }

    fn play<'a>(&self, stage: &'a Stage, case: &'a Case) -> Pending<'a, Result<(), DriveError>> {
        Box::pin(play::play(stage, case))
    }

    fn seen(&self, transcript: &Transcript) -> Seen {
        let mut seen = Seen {
            exchanges: exchanges(transcript).len() as u64,
            ..Seen::default()
        };
        for subscription in covel::subscriptions(transcript) {
            seen.connections += 1;
            seen.events += subscription.events().len() as u64;
            seen.broken_off += u64::from(subscription.broke_off);
            let reset = subscription.resets().first().copied();
            let reason = reset.and_then(|reset| reset.member("reason")?.as_str());
            seen.answer(match (reason, subscription.cursor_text()) {
                (Some(reason), _) => reason,
                (None, None) => "none",
                (None, Some(_)) if subscription.replayed().is_empty() => "nothing-missed",
                (None, Some(_)) => "replay",
            });
        }
        seen
    }

    fn faults(&self) -> &'static [PlantedFault] {
        faults::FAULTS
    }
}
