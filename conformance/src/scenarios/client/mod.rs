//! Scripted conversations with Covel clients: one file of acts a catalogue area.
//!
//! - [`script`]: the form of the acts; `player`: playing them; `world`: what the server answers by itself;
//!   `relay`: the model relay and the local model behind a page.
//!
//! An act that the client does not follow, because it lacks what the act is about, ends there; what it would have
//! shown is then not exercised.

use std::{borrow::Cow, path::Path};

use futures_util::{StreamExt as _, stream::FuturesOrdered};
use script::ActScript;
use tokio::sync::Semaphore;

use super::{Act, Isolation, Running, Scenario};
use crate::{drivers::DriveError, stage::ClientStage};

mod player;
mod relay;
pub mod script;
pub(crate) mod world;

/// Binds a scenario to its file of acts.
macro_rules! acts {
    ($name:literal, $file:literal, $about:literal) => {
        Scenario {
            name: $name,
            about: $about,
            needs: &[],
            variant: None,
            isolation: Isolation::Shared,
            run: Act::Client(|stage| {
                let text = include_str!(concat!("acts/", $file, ".yaml"));
                play(stage, $file, text)
            }),
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
    acts!(
        "client-relay",
        "relay",
        "answers of a local model that a client relays, in batches"
    ),
    acts!(
        "client-relay-cancel",
        "relay_cancel",
        "relayed answers that are taken back"
    ),
    acts!(
        "client-commands",
        "commands",
        "slash commands, controls of plugins, interjections and the drafts of a client"
    ),
    acts!(
        "client-restore",
        "restore",
        "what a client restores from traces, jobs and snapshots"
    ),
    acts!(
        "client-retries",
        "retries",
        "failed tasks, their recovery and what is left of it in a client"
    ),
    acts!(
        "client-visits",
        "visits",
        "answers that come after the visit of a session for which they were asked"
    ),
    acts!(
        "client-rpc",
        "rpc",
        "calls of plugins and their approvals in a client"
    ),
    acts!(
        "client-debug",
        "debug",
        "what a client's debug page makes of stored traces"
    ),
    acts!(
        "client-history",
        "history",
        "refetches, holes in the history and unsaved text of a client"
    ),
    acts!(
        "client-handlers",
        "handlers",
        "failing handlers and media of a client, and its several sessions"
    ),
];

fn play<'a>(stage: &'a ClientStage, file: &'static str, embedded: &'static str) -> Running<'a> {
    Box::pin(async move {
        let acts = script::read(&text(file, embedded)).map_err(DriveError::Harness)?;
        let names: Vec<_> = acts.iter().map(|act| act.act.clone()).collect();
        let acts: Vec<_> = acts
            .into_iter()
            .filter(|act| stage.wants(&act.act, &names))
            .collect();
        if let Some(turns) = stage.at_a_time() {
            return side_by_side(stage, &acts, &turns).await;
        }
        play_acts(stage, &acts).await
    })
}

/// Plays these acts, one after the other, whatever file they are from.
///
/// # Errors
///
/// When the client does not start. What it does is no error.
pub async fn play_acts(stage: &ClientStage, acts: &[ActScript]) -> Result<(), DriveError> {
    for act in acts {
        player::play(stage, act).await?;
    }
    Ok(())
}

/// Plays each act with a server of its own, as many at a time as there are turns. They are recorded in their order,
/// as if each had been played after the one before.
async fn side_by_side(
    stage: &ClientStage,
    acts: &[ActScript],
    turns: &Semaphore,
) -> Result<(), DriveError> {
    let mut parts: FuturesOrdered<_> = acts.iter().map(|act| apart(stage, act, turns)).collect();
    while let Some(part) = parts.next().await {
        stage.take_over(&part?);
    }
    Ok(())
}

async fn apart(
    stage: &ClientStage,
    act: &ActScript,
    turns: &Semaphore,
) -> Result<ClientStage, DriveError> {
    let closed = |_| DriveError::Harness("there are no more turns".to_owned());
    let _turn = turns.acquire().await.map_err(closed)?;
    let part = stage.part().await?;
    player::play(&part, act).await?;
    part.finish().await;
    Ok(part)
}

/// The text of a file of acts: what was compiled in. A debug build reads the directory that `TURNWIRE_ACTS` names
/// instead, so that whoever works at acts need not compile for each.
fn text(file: &str, embedded: &'static str) -> Cow<'static, str> {
    if cfg!(debug_assertions)
        && let Some(directory) = std::env::var_os("TURNWIRE_ACTS")
        && let Ok(text) =
            std::fs::read_to_string(Path::new(&directory).join(format!("{file}.yaml")))
    {
        return Cow::Owned(text);
    }
    Cow::Borrowed(embedded)
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
    ("client-relay", include_str!("acts/relay.yaml")),
    (
        "client-relay-cancel",
        include_str!("acts/relay_cancel.yaml"),
    ),
    ("client-commands", include_str!("acts/commands.yaml")),
    ("client-restore", include_str!("acts/restore.yaml")),
    ("client-retries", include_str!("acts/retries.yaml")),
    ("client-visits", include_str!("acts/visits.yaml")),
    ("client-rpc", include_str!("acts/rpc.yaml")),
    ("client-debug", include_str!("acts/debug.yaml")),
    ("client-history", include_str!("acts/history.yaml")),
    ("client-handlers", include_str!("acts/handlers.yaml")),
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
