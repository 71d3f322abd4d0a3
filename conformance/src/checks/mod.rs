//! The checks: pure functions from a transcript to findings, each bound to one requirement.
//!
//! Most requirements are judged by [`generic`], which executes the `rule` of the catalogue entry. Behaviour
//! with logic of its own has a function here, one file a catalogue area, listed in that file's `CHECKS`.
//! A check sees nothing but a transcript; it knows neither the target nor the scenario that provoked it.

use crate::{transcript::Transcript, verdict::Findings};

/// Binds a function to a requirement, under its own name: `check!("COV-SUB-102", reset_carries_no_id)`. With
/// `timed` in front, the function compares when things arrived, and is not asked where that was lost.
macro_rules! check {
    (timed $id:literal, $judge:expr $(,)?) => {
        $crate::checks::Check::new($id, stringify!($judge), $judge).timed()
    };
    ($id:literal, $judge:expr $(,)?) => {
        $crate::checks::Check::new($id, stringify!($judge), $judge)
    };
}

pub(crate) use check;

pub mod chat_ws;
pub mod client;
pub mod generic;
pub mod llm_requests;
pub mod overview;
pub mod provider;
pub mod relay;
pub mod segments;
pub mod session_update;
pub mod sse;
pub mod subscription;
pub mod trace;

/// A requirement and the function that judges it.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Requirement id, such as `COV-SUB-102`.
    pub id: &'static str,
    /// Name of the function, for people who look for it.
    pub name: &'static str,
    /// Judges one transcript.
    pub judge: fn(&Transcript) -> Findings,
    /// Whether it compares when things arrived.
    pub timed: bool,
}

impl Check {
    /// Binds a function to a requirement.
    pub const fn new(
        id: &'static str,
        name: &'static str,
        judge: fn(&Transcript) -> Findings,
    ) -> Self {
        Self {
            id,
            name,
            judge,
            timed: false,
        }
    }

    /// The same, for a function that compares when things arrived.
    #[must_use]
    pub const fn timed(mut self) -> Self {
        self.timed = true;
        self
    }
}
