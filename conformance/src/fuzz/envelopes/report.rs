//! What comes out of envelope fuzzing, for people and machines.

use std::{collections::BTreeMap, fmt::Write as _};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Case, draft::Sent, wire::Answer};
use crate::fuzz::{hunt, planted::Proof};

/// What was sent and what came back; `None` when there was no connection.
pub type Exchange = Option<(Sent, Answer)>;

/// A case that fails.
pub type Failure = hunt::Failure<Case, Exchange>;

/// A case that fails, as it is printed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureReport {
    /// Number of the case.
    pub case: u64,
    /// The valid request, and the changes of the smallest case that fails the same.
    pub envelope: String,
    /// What is wrong.
    pub what: String,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeReport {
    /// Name of the suite.
    pub suite: String,
    /// Seed of the run.
    pub seed: u64,
    /// Cases that were played.
    pub played: u64,
    /// Cases that were valid after all.
    pub accepted: u64,
    /// Refusals by status and code, type or text.
    pub refused: BTreeMap<String, u64>,
    /// Cases by change.
    pub changes: BTreeMap<String, u64>,
    /// How much the memory of the process grew, in bytes; absent where it is not ours.
    pub grown_bytes: Option<u64>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Cases that fail.
    pub failures: Vec<FailureReport>,
    /// The same, with what was sent.
    #[serde(skip)]
    #[schemars(skip)]
    pub details: Vec<Failure>,
}

/// What became of the planted faults.
pub type EnvelopeProof = Proof<FailureReport, Failure>;

impl Failure {
    /// As it is printed.
    pub fn report(&self) -> FailureReport {
        FailureReport {
            case: self.number,
            envelope: self.case.to_json(),
            what: self.what.chars().take(400).collect(),
        }
    }
}

impl EnvelopeReport {
    /// Whether no case fails.
    pub fn holds(&self) -> bool {
        self.failures.is_empty()
    }

    /// For people.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let refused: u64 = self.refused.values().sum();
        let grown = self
            .grown_bytes
            .map(|bytes| format!(", memory grew by {} MiB", bytes >> 20))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "{}: {} envelopes of seed {}: {refused} refused, {} accepted, {} fail; {:.1} s{grown}",
            self.suite,
            self.played,
            self.seed,
            self.accepted,
            self.failures.len(),
            self.seconds
        );
        for (how, count) in &self.refused {
            let _ = writeln!(text, "  {count:>7}  {how}");
        }
        for failure in &self.failures {
            let _ = writeln!(
                text,
                "FAIL case {}: {}\n     {}",
                failure.case, failure.what, failure.envelope
            );
        }
        text
    }
}

impl EnvelopeProof {
    /// Whether every fault was found.
    pub fn holds(&self) -> bool {
        self.all_found(|_| true)
    }

    /// For people.
    pub fn render(&self) -> String {
        self.lines(|found| format!("{}\n       {}", found.what, found.envelope))
    }
}
