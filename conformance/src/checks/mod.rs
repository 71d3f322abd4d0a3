//! The checks: pure functions from a transcript to findings, each bound to one requirement.
//!
//! Most requirements are judged by [`generic`], which executes the `rule` of the catalogue entry. Behaviour
//! with logic of its own has a function here, one file a catalogue area, listed in that file's `CHECKS`.
//! A check sees nothing but a transcript; it knows neither the target nor the scenario that provoked it.

use crate::{transcript::Transcript, verdict::Findings};

pub mod generic;
pub mod overview;
pub mod subscription;

/// A requirement and the function that judges it.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Requirement id, such as `COV-SUB-102`.
    pub id: &'static str,
    /// Judges one transcript.
    pub judge: fn(&Transcript) -> Findings,
}

impl Check {
    /// Binds a function to a requirement.
    pub const fn new(id: &'static str, judge: fn(&Transcript) -> Findings) -> Self {
        Self { id, judge }
    }
}
