//! What comes out of the matrix: one object, which is also its JSON form, and a text for people.

use std::{fmt::Write as _, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwire_spec::llm::Wire;

use crate::{cases::Case, drivers::testee::About};

/// The result of a matrix.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MatrixReport {
    /// Version of Turnwire.
    pub turnwire: String,
    /// The wire, which is the name of its suite.
    pub wire: String,
    /// What the adapter calls itself.
    pub adapter: String,
    /// Its version, as it says it.
    pub version: String,
    /// Runs that were made.
    pub runs: usize,
    /// Of these, runs whose report was wrong.
    pub wrong: usize,
    /// Time that it took, in seconds.
    pub seconds: f64,
    /// Every case, in the order of the suite.
    pub cases: Vec<CaseReport>,
}

/// One case of the matrix.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseReport {
    /// Its id; what stands before the first `/` is its hazard.
    pub id: String,
    /// One line for people.
    pub about: String,
    /// Bytes of its answer, when it was right without a split.
    pub bytes: usize,
    /// Places at which it was to be split; 0 where splits make no sense, or it failed without one.
    pub splits: usize,
    /// Why the adapter cannot express it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unsupported: Option<String>,
    /// The first runs that went wrong.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub failures: Vec<Failure>,
}

/// A run that went wrong.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Where its bytes were split; absent when they were not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub split: Option<usize>,
    /// What is true of the case.
    pub expected: String,
    /// What was reported, cut to a readable length.
    pub got: String,
}

/// A case while the matrix runs.
#[derive(Clone, Debug)]
pub struct CaseResult {
    pub(super) case: &'static Case,
    pub(super) body: Vec<u8>,
    pub(super) splits: usize,
    pub(super) runs: usize,
    pub(super) unsupported: Option<String>,
    pub(super) failures: Vec<Failure>,
}

/// Longest text that is shown of a report, in characters.
const SHOWN: usize = 300;

impl CaseResult {
    pub(super) fn new(case: &'static Case) -> Self {
        Self {
            case,
            body: Vec::new(),
            splits: 0,
            runs: 0,
            unsupported: None,
            failures: Vec::new(),
        }
    }

    /// Whether the adapter can express it, and nothing has gone wrong.
    pub(super) fn is_right(&self) -> bool {
        self.unsupported.is_none() && self.failures.is_empty()
    }

    fn report(&self) -> CaseReport {
        let short = |text: &str| match text.char_indices().nth(SHOWN) {
            Some((cut, _)) => format!("{}…", &text[..cut]),
            None => text.to_owned(),
        };
        let failures = self.failures.iter().map(|failure| Failure {
            split: failure.split,
            expected: short(&failure.expected),
            got: short(&failure.got),
        });
        CaseReport {
            id: self.case.id.clone(),
            about: self.case.about.to_owned(),
            bytes: self.body.len(),
            splits: self.splits,
            unsupported: self.unsupported.clone(),
            failures: failures.collect(),
        }
    }
}

impl MatrixReport {
    pub(super) fn of(wire: Wire, about: &About, cases: &[CaseResult], took: Duration) -> Self {
        Self {
            turnwire: env!("CARGO_PKG_VERSION").to_owned(),
            wire: wire.as_str().to_owned(),
            adapter: about.name.clone(),
            version: about.version.clone(),
            runs: cases.iter().map(|case| case.runs).sum(),
            wrong: cases.iter().map(|case| case.failures.len()).sum(),
            seconds: (took.as_secs_f64() * 1000.0).round() / 1000.0,
            cases: cases.iter().map(CaseResult::report).collect(),
        }
    }

    /// Whether every run was right.
    pub fn holds(&self) -> bool {
        self.wrong == 0
    }

    /// The report for people. `rerun` is the command line that plays one case again; `{case}` stands for its options.
    pub fn render(&self, rerun: &str) -> String {
        let mut text = String::new();
        let failed = self.cases.iter().filter(|case| !case.failures.is_empty());
        for case in failed.clone() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "FAIL {}: {}", case.id, case.about);
            for failure in &case.failures {
                let place = failure.split.map(|split| format!(" --split {split}"));
                let options = format!("--case {}{}", case.id, place.unwrap_or_default());
                let _ = writeln!(text, "  expected  {}", failure.expected);
                let _ = writeln!(text, "  got       {}", failure.got);
                let _ = writeln!(text, "  rerun     {}", rerun.replace("{case}", &options));
            }
            text.push('\n');
        }
        let unsupported = self
            .cases
            .iter()
            .filter(|case| case.unsupported.is_some())
            .count();
        let rate =
            f64::from(u32::try_from(self.runs).unwrap_or(u32::MAX)) / self.seconds.max(0.001);
        let _ = writeln!(
            text,
            "{} {} on {}: {} of {} cases failed, {unsupported} not applicable; {} runs in {:.1} s, {rate:.0} a second",
            self.adapter,
            self.version,
            self.wire,
            failed.count(),
            self.cases.len(),
            self.runs,
            self.seconds,
        );
        text
    }
}
