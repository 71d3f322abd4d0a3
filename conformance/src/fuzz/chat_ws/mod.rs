//! `chat-ws`: sockets that come back to a turn with the last number that they have.
//!
//! - [`plan`]: random cases; [`play`]: a case over a stage;
//! - [`truth`]: what happened, from all sockets together; [`segments`]: what each subscription brought;
//!   [`queue`]: what was said next; [`model`]: the rules, as checks;
//! - [`faults`]: what the fuzzer has to find.
//!
//! What is said comes from a socket of its own, under the label `actor`; what each client does is labelled `client-N`.
//! At the end every client that is not connected connects again, a last turn is played in each session, and an
//! `auditor` subscribes and reads the transcripts under the label `transcript`.
//!
//! A client of the case keeps to the protocol, as far as a step does not say otherwise. It knows the job and the last
//! number of the turn that it follows. When it comes back in the middle of a turn it asks for what follows that number;
//! otherwise it asks for all of the newest turn and reads the transcript. It reads the transcript, too, when it is told
//! to (`chat:resync`), and when its turn was over and forgotten, or followed by another one, while it was away.
//!
//! Source: seed 004, lines 18, 25, 29, 36 and 43-44.

use crate::{
    checks::Check,
    drivers::{DriveError, target::Pending},
    fuzz::{Abilities, Case, PlantedFault, Protocol, random::Random, report::Seen},
    profile::FUZZ_CHAT,
    stage::Stage,
    transcript::Transcript,
};

pub mod faults;
pub mod model;
pub mod plan;
pub mod play;
mod queue;
mod segments;
#[cfg(test)]
mod tests;
mod truth;

/// The rules of the model, as checks of the suite.
pub const CHECKS: &[&[Check]] = &[model::CHECKS];

/// Label of the socket that says what is said.
pub const ACTOR: &str = "actor";
/// Label of the socket that subscribes last.
pub const AUDITOR: &str = "auditor";
/// Label under which the transcripts are read at the end.
pub const TRANSCRIPT: &str = "transcript";
/// Label under which the target is stopped.
pub const RESTART: &str = "restart";
/// Label under which a turn is begun that is to succeed.
pub const SAID: &str = "said";

/// `chat-ws`.
#[derive(Clone, Copy, Debug)]
pub struct ChatWs;

impl Protocol for ChatWs {
    fn suite(&self) -> &'static str {
        "chat-ws"
    }

    fn case(&self, random: &mut Random, abilities: &Abilities) -> Case {
        plan::case(random, abilities)
    }

    fn play<'a>(&self, stage: &'a Stage, case: &'a Case) -> Pending<'a, Result<(), DriveError>> {
        Box::pin(play::play(stage, case))
    }

    fn own_variants(&self) -> Option<[&'static str; 2]> {
        Some(FUZZ_CHAT)
    }

    fn seen(&self, transcript: &Transcript) -> Seen {
        model::seen(transcript)
    }

    fn faults(&self) -> &'static [PlantedFault] {
        faults::FAULTS
    }
}
