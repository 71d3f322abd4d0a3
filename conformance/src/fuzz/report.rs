//! What comes out of fuzzing, for people and machines.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Case, FuzzPlan,
    field::Played,
    oracle::Broken,
    prove::{FaultReport, Found},
};
use crate::transcript::Transcript;

/// A case that fails.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Number of the case.
    pub number: u64,
    /// Seed of the run.
    pub seed: u64,
    /// The case, made smaller when it could be.
    pub case: Case,
    /// What was recorded of it; its header names what it breaks.
    pub transcript: Transcript,
    /// What it breaks.
    pub broken: Vec<Broken>,
    /// Why it could not be played to its end.
    pub problem: Option<String>,
    /// Candidates that were played to make it smaller; 0 when the failure did not come again.
    pub tries: usize,
}

impl Failure {
    /// A case as it was found.
    pub fn new(seed: u64, number: u64, case: Case, played: Played, broken: Vec<Broken>) -> Self {
        let mut failure = Self {
            number,
            seed,
            case,
            transcript: played.transcript,
            problem: played.problem.map(|problem| shorten(&problem.to_string())),
            broken,
            tries: 0,
        };
        failure.mark();
        failure
    }

    /// A smaller case that breaks the same.
    pub fn shrunk(&mut self, case: Case, played: Played, broken: Vec<Broken>, tries: usize) {
        self.case = case;
        self.transcript = played.transcript;
        self.problem = played.problem.map(|problem| shorten(&problem.to_string()));
        self.broken = broken;
        self.tries = tries.max(1);
        self.mark();
    }

    /// Writes into the header what the transcript is an example of.
    fn mark(&mut self) {
        let header = &mut self.transcript.header;
        header.requirements = self
            .broken
            .iter()
            .map(|broken| broken.id.to_owned())
            .collect();
        for Broken { id, evidence } in &self.broken {
            let line = format!("{id}: expected {}", evidence.expected);
            header.notes.push(line.replace('\n', " "));
        }
        header.notes.extend(self.problem.clone());
    }

    /// What it breaks, in one line.
    pub fn what(&self) -> String {
        let ids = self.broken.iter().map(|broken| broken.id.to_owned());
        let all: Vec<String> = ids.chain(self.problem.clone()).collect();
        all.join(", ")
    }

    /// Name of its file.
    pub fn file_name(&self) -> String {
        format!(
            "{}-seed-{}-case-{}.{}",
            self.transcript.header.suite,
            self.seed,
            self.number,
            crate::transcript::text::EXTENSION
        )
    }
}

/// Longest text of a problem, in characters: it may quote a cursor of any length.
const SHOWN: usize = 300;

fn shorten(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// What the cases came upon: whether the fuzzer looks at what it is there for.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// Requests and connections.
    pub exchanges: u64,
    /// Connections that carry events.
    pub connections: u64,
    /// Events on them.
    pub events: u64,
    /// Connections that were cut off, or broke.
    pub broken_off: u64,
    /// Answers to cursors, by kind: `none`, `replay`, `nothing-missed`, and the reasons of resets.
    pub answers: BTreeMap<String, u64>,
}

impl Seen {
    /// Counts one answer to a cursor.
    pub fn answer(&mut self, answer: &str) {
        *self.answers.entry(answer.to_owned()).or_default() += 1;
    }

    /// Adds what another transcript shows.
    pub fn add(&mut self, other: &Self) {
        self.exchanges += other.exchanges;
        self.connections += other.connections;
        self.events += other.events;
        self.broken_off += other.broken_off;
        for (answer, count) in &other.answers {
            *self.answers.entry(answer.clone()).or_default() += count;
        }
    }
}

/// What is counted in a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Cases that were played.
    pub(super) played: u64,
    /// Cases that failed when the time ran out, and passed when they had more.
    pub(super) hurried: u64,
    /// What they came upon.
    pub(super) seen: Seen,
}

/// The result of a run, as it is printed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzReport {
    /// Suite name.
    pub suite: String,
    /// Name of the target, from its profile.
    pub target: String,
    /// Seed of the run.
    pub seed: u64,
    /// Cases that were asked for.
    pub cases: u64,
    /// Cases that were played.
    pub played: u64,
    /// Cases that failed when the time ran out, and passed when they had more: the machine was busy.
    pub hurried: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What the cases came upon.
    pub seen: Seen,
    /// Cases that fail.
    pub failures: Vec<FailureReport>,
    #[serde(skip)]
    pub(super) details: Vec<Failure>,
}

/// A case that fails, as it is printed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureReport {
    /// Number of the case.
    pub case: u64,
    /// Requirements that it breaks.
    pub breaks: Vec<String>,
    /// What was expected and what was there, of the first of them.
    pub evidence: Option<EvidenceReport>,
    /// Why it could not be played to its end.
    pub problem: Option<String>,
    /// Whether it fails again when it is played again; known of the first few only.
    pub comes_again: Option<bool>,
    /// The steps, one JSON object each.
    pub steps: Vec<String>,
    /// Name of the file, when failures are saved.
    pub file: String,
}

/// Evidence, as it is printed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EvidenceReport {
    /// What the requirement asks for.
    pub expected: String,
    /// What was there.
    pub got: String,
}

impl FuzzReport {
    pub(super) fn new(
        plan: &FuzzPlan,
        failures: Vec<Failure>,
        counts: Counts,
        took: Duration,
    ) -> Self {
        Self {
            suite: plan.protocol.suite().to_owned(),
            target: plan.profile.name.clone(),
            seed: plan.seed,
            cases: plan.cases,
            played: counts.played,
            hurried: counts.hurried,
            seconds: (took.as_secs_f64() * 100.0).round() / 100.0,
            seen: counts.seen,
            failures: failures.iter().map(FailureReport::of).collect(),
            details: failures,
        }
    }

    /// The failures with their transcripts.
    pub fn details(&self) -> &[Failure] {
        &self.details
    }

    /// Whether no case fails.
    pub fn holds(&self) -> bool {
        self.failures.is_empty()
    }

    /// For people.
    pub fn render(&self) -> String {
        let mut out = String::new();
        for failure in &self.failures {
            failure.render(&mut out);
        }
        let answers: Vec<String> = self
            .seen
            .answers
            .iter()
            .map(|(answer, count)| format!("{count} {answer}"))
            .collect();
        // Writing to a text cannot fail.
        let _ = writeln!(
            out,
            "{} connections, {} events, {} cut off; answers: {}",
            self.seen.connections,
            self.seen.events,
            self.seen.broken_off,
            answers.join(", ")
        );
        if self.hurried > 0 {
            let _ = writeln!(
                out,
                "{} cases ran out of time and passed when they had more: the machine is busy",
                self.hurried
            );
        }
        let rate = self.played as f64 / self.seconds.max(0.01);
        let _ = writeln!(
            out,
            "{} on {}: {} of {} cases played with seed {}, {} fail, {:.1} s ({rate:.0} cases/s)",
            self.suite,
            self.target,
            self.played,
            self.cases,
            self.seed,
            self.failures.len(),
            self.seconds
        );
        out
    }
}

impl FailureReport {
    fn of(failure: &Failure) -> Self {
        let steps = failure.case.steps.iter();
        Self {
            case: failure.number,
            breaks: failure
                .broken
                .iter()
                .map(|broken| broken.id.to_owned())
                .collect(),
            evidence: failure.broken.first().map(|broken| EvidenceReport {
                expected: broken.evidence.expected.clone(),
                got: broken.evidence.got.clone(),
            }),
            problem: failure.problem.clone(),
            comes_again: (failure.tries > 0).then_some(true),
            steps: steps
                .map(|step| serde_json::to_string(step).unwrap_or_default())
                .collect(),
            file: failure.file_name(),
        }
    }

    fn render(&self, out: &mut String) {
        let what: Vec<&str> = self
            .breaks
            .iter()
            .map(String::as_str)
            .chain(self.problem.as_deref())
            .collect();
        let _ = writeln!(out, "case {}: {}", self.case, what.join(", "));
        for step in &self.steps {
            let _ = writeln!(out, "    {step}");
        }
        if let Some(evidence) = &self.evidence {
            let _ = writeln!(out, "    expected: {}", evidence.expected);
            let _ = writeln!(out, "    got:      {}", evidence.got);
        }
    }
}

/// The result of looking for planted faults, as it is printed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlantedReport {
    /// Suite name.
    pub suite: String,
    /// Seed of the runs.
    pub seed: u64,
    /// Cases that were played at most for each fault.
    pub cases: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Each fault.
    pub faults: Vec<FaultReport>,
    #[serde(skip)]
    pub(super) details: Vec<Found>,
}

impl PlantedReport {
    /// The faults with the transcripts that show them.
    pub fn details(&self) -> &[Found] {
        &self.details
    }

    /// Whether every fault was found and is small.
    pub fn holds(&self) -> bool {
        self.faults.iter().all(FaultReport::holds)
    }

    /// For people.
    pub fn render(&self) -> String {
        let mut out = String::new();
        for fault in &self.faults {
            let _ = writeln!(out, "{}", fault.line());
        }
        let found = self.faults.iter().filter(|fault| fault.holds()).count();
        let _ = writeln!(
            out,
            "{}: {found} of {} planted faults found within {} cases and shrunk to {} steps at most, {:.1} s",
            self.suite,
            self.faults.len(),
            self.cases,
            super::prove::SMALL,
            self.seconds
        );
        out
    }
}
