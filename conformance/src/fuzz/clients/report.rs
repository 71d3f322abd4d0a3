//! What comes out of fuzzing clients, for people and machines.

use std::{collections::BTreeMap, fmt::Write as _};

use schemars::JsonSchema;
use serde::Serialize;

use super::Case;
use crate::{
    fuzz::{hunt, planted::Proof},
    transcript::Transcript,
};

/// A case that fails, with what was recorded of it; the header names the case.
pub type Failure = hunt::Failure<Case, Transcript>;

impl Failure {
    /// As it is printed.
    pub fn report(&self) -> ClientFailure {
        ClientFailure {
            case: self.number,
            what: self.what.chars().take(400).collect(),
            steps: self.case.steps.len(),
            case_steps: self.case.to_json(),
        }
    }
}

/// A case that fails, as it is printed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientFailure {
    /// Number of the case.
    pub case: u64,
    /// What is wrong.
    pub what: String,
    /// Steps of the smallest case that fails the same.
    pub steps: usize,
    /// That case, as JSON.
    pub case_steps: String,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientFuzzReport {
    /// Name of the suite.
    pub suite: String,
    /// The client.
    pub client: String,
    /// Seed of the run.
    pub seed: u64,
    /// Cases that were played.
    pub played: u64,
    /// Cases by what is wrong in them.
    pub changes: BTreeMap<String, u64>,
    /// Cases that failed once, and not when they were played again.
    pub passing: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Cases that fail.
    pub failures: Vec<ClientFailure>,
    /// The same, with what was recorded.
    #[serde(skip)]
    #[schemars(skip)]
    pub details: Vec<Failure>,
}

impl ClientFuzzReport {
    /// Whether no case fails.
    pub fn holds(&self) -> bool {
        self.failures.is_empty()
    }

    /// For people.
    pub fn render(&self) -> String {
        let mut out = String::new();
        for failure in &self.failures {
            let _ = writeln!(out, "FAIL case {}: {}", failure.case, failure.what);
            let _ = writeln!(out, "  case      {}", failure.case_steps);
        }
        let changes: Vec<_> = self
            .changes
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        let _ = writeln!(out, "changes: {}", changes.join(", "));
        if self.passing > 0 {
            let _ = writeln!(
                out,
                "{} cases failed once, and not when they were played again",
                self.passing
            );
        }
        let _ = writeln!(
            out,
            "{} on {}, seed {}: {} cases, {} fail, {:.1} s",
            self.suite,
            self.client,
            self.seed,
            self.played,
            self.failures.len(),
            self.seconds
        );
        out
    }
}

/// What became of the planted faults.
pub type ClientProof = Proof<ClientFailure, Failure>;

/// Most steps of the smallest case that shows a planted fault.
pub const SMALL: usize = 2;

impl ClientProof {
    /// Whether each fault was found, by a small case.
    pub fn holds(&self) -> bool {
        self.all_found(|found| found.steps <= SMALL)
    }

    /// For people.
    pub fn render(&self) -> String {
        self.lines(|found| {
            let ClientFailure {
                case, steps, what, ..
            } = found;
            format!("case {case}, {steps} steps: {what}")
        })
    }
}
