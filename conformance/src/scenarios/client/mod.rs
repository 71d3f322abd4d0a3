//! Scripted conversations with Covel clients: one file of acts a catalogue area.
//!
//! - [`script`]: the form of the acts; `player`: playing them; `world`: what the server answers by itself.
//!
//! An act that the client does not follow, because it lacks what the act is about, ends there; what it would have
//! shown is then not exercised.

use super::{Act, Isolation, Running, Scenario};
use crate::stage::ClientStage;

mod player;
pub mod script;
mod world;

/// Binds a scenario to its file of acts.
macro_rules! acts {
    ($name:literal, $file:literal, $about:literal) => {
        Scenario {
            name: $name,
            about: $about,
            needs: &[],
            variant: None,
            isolation: Isolation::Shared,
            run: Act::Client(|stage| play(stage, include_str!(concat!("acts/", $file, ".yaml")))),
        }
    };
}

/// The scenarios, area by area.
pub const SCENARIOS: &[Scenario] = &[
    acts!(
        "client-subscription",
        "subscription",
        "cursors, resets, reconnects and topics of a client"
    ),
    acts!(
        "client-queries",
        "queries",
        "what a client keeps of each event of a turn"
    ),
    acts!(
        "client-turn",
        "turn",
        "narrative, previews, stages and rounds in a client"
    ),
    acts!(
        "client-ends",
        "ends",
        "stops, failures, echoes and automatic rounds in a client"
    ),
    acts!(
        "client-forms",
        "forms",
        "forms, diagnostics and discarded runs in a client"
    ),
    acts!(
        "client-state",
        "state",
        "suspensions, data, characters, dimensions and thinking in a client"
    ),
    acts!("client-jobs", "jobs", "background jobs in a client"),
    acts!(
        "client-slots",
        "slots",
        "slots of the interface in a client"
    ),
    acts!(
        "client-recovery",
        "recovery",
        "lost streams, recovery, late answers in a client"
    ),
    acts!(
        "client-polling",
        "polling",
        "reads of a lost action, pauses and hidden pages of a client"
    ),
];

fn play<'a>(stage: &'a ClientStage, yaml: &'static str) -> Running<'a> {
    Box::pin(async move {
        let acts = script::read(yaml).map_err(crate::drivers::DriveError::Harness)?;
        for act in &acts {
            player::play(stage, act).await?;
        }
        Ok(())
    })
}

/// The texts of the acts, by scenario: for whoever looks up what an act does.
pub const TEXTS: &[(&str, &str)] = &[
    (
        "client-subscription",
        include_str!("acts/subscription.yaml"),
    ),
    ("client-queries", include_str!("acts/queries.yaml")),
    ("client-turn", include_str!("acts/turn.yaml")),
    ("client-ends", include_str!("acts/ends.yaml")),
    ("client-forms", include_str!("acts/forms.yaml")),
    ("client-state", include_str!("acts/state.yaml")),
    ("client-jobs", include_str!("acts/jobs.yaml")),
    ("client-slots", include_str!("acts/slots.yaml")),
    ("client-recovery", include_str!("acts/recovery.yaml")),
    ("client-polling", include_str!("acts/polling.yaml")),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn acts_can_be_read_and_their_names_are_unique() {
        let mut names = BTreeSet::new();
        for (scenario, yaml) in TEXTS {
            let acts = script::read(yaml).unwrap_or_else(|error| panic!("{scenario}: {error}"));
            for act in acts {
                assert!(names.insert(act.act.clone()), "{} is there twice", act.act);
            }
        }
    }
}
