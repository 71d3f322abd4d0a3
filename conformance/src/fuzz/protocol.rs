//! What a suite brings to the fuzzer.

use std::sync::Arc;

use super::{Case, Step, random::Random, report::Seen};
use crate::{
    drivers::{DriveError, target::Pending},
    saboteurs::Saboteur,
    stage::Stage,
    transcript::Transcript,
};

/// A protocol that can be fuzzed.
pub trait Protocol: Send + Sync {
    /// Name of the suite.
    fn suite(&self) -> &'static str;

    /// A random case of what the target is able to.
    fn case(&self, random: &mut Random, abilities: &Abilities) -> Case;

    /// Plays a case: its steps, then what brings every client up to date, then the authoritative state. It judges
    /// nothing.
    ///
    /// # Errors
    ///
    /// When the case cannot be played on: no session, no answer, no restart.
    fn play<'a>(&self, stage: &'a Stage, case: &'a Case) -> Pending<'a, Result<(), DriveError>>;

    /// Variants of the target that cases are played on, where it offers them in place of its usual ones: without and
    /// with data that outlives a restart. Each case then has an instance for itself, since on this protocol it hears
    /// of the sessions of others.
    fn own_variants(&self) -> Option<[&'static str; 2]> {
        None
    }

    /// What a transcript comes upon.
    fn seen(&self, transcript: &Transcript) -> Seen;

    /// Smaller forms of a step, the smallest first.
    fn simpler(&self, step: &Step) -> Vec<Step> {
        super::shrink::simpler(step)
    }

    /// Faults that the fuzzer has to find.
    fn faults(&self) -> &'static [PlantedFault];
}

/// What the target is able to, as far as cases are about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Abilities {
    /// Its model calls can be answered: turns can be played.
    pub model: bool,
    /// It has the fixture plugin.
    pub fixtures: bool,
    /// It can be stopped, killed and started again.
    pub restarts: bool,
}

/// A fault between the harness and a conformant server, which the fuzzer has to find.
#[derive(Clone, Copy, Debug)]
pub struct PlantedFault {
    /// Name, unique in its suite, such as `replay-off-by-one`.
    pub name: &'static str,
    /// What is wrong, in one line.
    pub about: &'static str,
    /// Makes a fresh one, without memory.
    pub make: fn() -> Arc<dyn Saboteur>,
}
