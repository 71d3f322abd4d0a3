//! What a check says, and what it becomes over a whole run.
//!
//! A check looks at one transcript and returns [`Findings`]: how many observations it judged, and the
//! [`Evidence`] of each that is wrong. Findings of all transcripts of a run add up to one [`Verdict`] per
//! requirement. No finding over a whole run is "not exercised": it never passes.

use std::time::Duration;

use serde::Serialize;

use crate::transcript::ExchangeId;

/// What one check found in one transcript.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Observations that were judged, right or wrong.
    pub judged: usize,
    /// What is wrong.
    pub faults: Vec<Evidence>,
}

impl Findings {
    /// Nothing to judge.
    pub fn none() -> Self {
        Self::default()
    }

    /// Judges each observation; `None` is fine, evidence is a fault.
    pub fn each<T>(
        observations: impl IntoIterator<Item = T>,
        mut judge: impl FnMut(T) -> Option<Evidence>,
    ) -> Self {
        let mut findings = Self::default();
        for observation in observations {
            findings.judged += 1;
            findings.faults.extend(judge(observation));
        }
        findings
    }

    /// Notes one judged observation.
    pub fn judge(&mut self, fault: Option<Evidence>) {
        self.judged += 1;
        self.faults.extend(fault);
    }

    /// Adds what was found elsewhere.
    pub fn merge(&mut self, other: Self) {
        self.judged += other.judged;
        self.faults.extend(other.faults);
    }
}

/// Why an observation is wrong: where it stands in the transcript, what was expected, what was there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// Scenario whose transcript shows it; filled in by the runner.
    pub scenario: String,
    /// Exchange of the transcript, when one is concerned.
    #[serde(serialize_with = "exchange_number")]
    pub exchange: Option<ExchangeId>,
    /// Request line of that exchange.
    pub request: Option<String>,
    /// Offset in the transcript, in microseconds.
    #[serde(serialize_with = "micros")]
    pub at: Option<Duration>,
    /// Index of the frame in its stream, from 0.
    pub frame: Option<usize>,
    /// What the requirement asks for.
    pub expected: String,
    /// What was observed, as bytes or JSON, cut to a readable length.
    pub got: String,
}

impl Evidence {
    /// Evidence that names no place yet; see [`Evidence::in_exchange`] and [`Evidence::at_frame`].
    pub fn new(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self {
            expected: shorten(&expected.into()),
            got: shorten(&got.into()),
            ..Self::default()
        }
    }
}

/// Longest `expected` or `got` that a report shows, in characters.
const SHOWN: usize = 600;

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], text.len()),
    }
}

/// The state of one requirement after a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything judged was right.
    Pass {
        /// Observations judged.
        judged: usize,
    },
    /// At least one observation was wrong.
    Fail {
        /// Observations judged.
        judged: usize,
        /// What was wrong, in order of time; at most [`MAX_EVIDENCE`].
        evidence: Vec<Evidence>,
    },
    /// The profile declares the capability absent, or the adapter does not name the feature.
    NotApplicable {
        /// The capability, or the feature.
        needs: String,
    },
    /// Nothing in the run could show it.
    NotExercised {
        /// Why, as far as it is known.
        why: String,
    },
}

impl Verdict {
    /// Whether something in the run showed it, right or wrong.
    pub fn is_exercised(&self) -> bool {
        matches!(self, Self::Pass { .. } | Self::Fail { .. })
    }
}

/// Evidence kept per requirement.
pub const MAX_EVIDENCE: usize = 5;

#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn exchange_number<S: serde::Serializer>(
    id: &Option<ExchangeId>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    id.map(|id| id.0).serialize(serializer)
}

#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn micros<S: serde::Serializer>(at: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|at| u64::try_from(at.as_micros()).unwrap_or(u64::MAX))
        .serialize(serializer)
}
