//! What comes out of a run.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use serde::Serialize;
use turnwire_spec::catalogue::Entry;

use super::{
    RunPlan,
    execute::{Played, Scene},
    judge::{self, NOTHING},
};
use crate::{
    drivers::{Blame, DriveError},
    transcript::Transcript,
    verdict::Verdict,
};

pub use super::harness::HarnessError;

/// What comes out of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Suite name.
    pub suite: String,
    /// Name of the target, from the profile.
    pub target: String,
    /// A verdict for each selected requirement that has a check, in catalogue order.
    pub verdicts: Vec<(String, Verdict)>,
    /// Selected requirements without a check, each with its waiver, when it has one.
    pub unchecked: Vec<(String, Option<String>)>,
    /// What makes the run a failure, in catalogue order.
    pub red: Vec<Red>,
    /// Requirements that fail as the profile expects, with its reasons.
    pub expected: BTreeMap<String, String>,
    /// Which scenarios showed which requirement, right or wrong.
    pub exercised: BTreeMap<String, Vec<String>>,
    /// What was recorded, in the order of the suite.
    pub transcripts: Vec<Transcript>,
    /// Requests of the harness that break the protocol.
    pub harness_errors: Vec<HarnessError>,
    /// Scenarios that could not be played to their end.
    pub problems: Vec<Problem>,
    /// Scenarios that were left out, and why.
    pub skipped: Vec<(String, String)>,
    /// How long each scenario took.
    pub timing: Vec<(String, Duration)>,
    /// How long the run took.
    pub took: Duration,
    /// Whether the run was interrupted before everything was played.
    pub interrupted: bool,
}

/// A requirement that makes the run a failure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Red {
    /// Requirement id.
    pub id: String,
    /// Why.
    #[serde(flatten)]
    pub why: RedReason,
}

/// Why a requirement makes the run a failure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "reason", content = "detail", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RedReason {
    /// The target breaks it.
    Failed,
    /// It must be exercised and was not; with the reason of the verdict.
    NotExercised(String),
    /// The profile expects it to fail, and it passes; with the profile's reason.
    Stale(String),
}

/// A scenario that could not be played to its end. What it had recorded by then was judged all the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Name of the scenario.
    pub scenario: String,
    /// What happened.
    pub error: ScenarioError,
    /// Last lines of the target's output, oldest first.
    pub output: Vec<String>,
}

/// Why a scenario could not be played to its end.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// It could not go on.
    #[error("{0}")]
    Drive(DriveError),
    /// It was still going on after this long.
    #[error("it was still going on after {0:?}; see [limits] scenario in the profile")]
    TookTooLong(Duration),
    /// Its own code panicked.
    #[error("harness: the scenario panicked: {0}")]
    Panicked(String),
    /// The run was interrupted meanwhile.
    #[error("{}", INTERRUPTED)]
    Interrupted,
}

/// Why a scenario is left out, or was given up, after an interruption.
pub(super) const INTERRUPTED: &str = "the run was interrupted";

impl ScenarioError {
    /// Who has to act on it.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Drive(error) => error.blame(),
            Self::TookTooLong(_) => Blame::Target,
            Self::Panicked(_) | Self::Interrupted => Blame::Harness,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.scenario, self.error)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nothing is red, and everything that was to be played was played.
    Conformant,
    /// A requirement is red.
    NotConformant,
    /// The harness broke the protocol or could not play a scenario: what is not red is not known to be right.
    Unknown,
    /// Nothing showed any requirement, right or wrong: the run says nothing about the target.
    NothingExercised,
    /// The run was interrupted: what was not shown was not looked at.
    Interrupted,
}

impl RunReport {
    /// How the run ended. An interruption comes before everything else. A harness that breaks the protocol accuses nobody, so it comes before red
    /// requirements; a scenario that could not be played comes after them. A run in which nothing was exercised is
    /// never conformant.
    pub fn outcome(&self) -> Outcome {
        if self.interrupted {
            Outcome::Interrupted
        } else if !self.harness_errors.is_empty() {
            Outcome::Unknown
        } else if !self.red.is_empty() {
            Outcome::NotConformant
        } else if !self.problems.is_empty() {
            Outcome::Unknown
        } else if !self
            .verdicts
            .iter()
            .any(|(_, verdict)| verdict.is_exercised())
        {
            Outcome::NothingExercised
        } else {
            Outcome::Conformant
        }
    }

    /// The verdict of a requirement, when it has a check and was selected.
    pub fn verdict(&self, id: &str) -> Option<&Verdict> {
        self.verdicts
            .iter()
            .find(|(found, _)| found == id)
            .map(|(_, verdict)| verdict)
    }

    /// Whether a requirement makes the run a failure.
    pub fn is_red(&self, id: &str) -> bool {
        self.red.iter().any(|red| red.id == id)
    }
}

/// Adds everything up.
pub(super) fn assemble(plan: &RunPlan, played: Played, took: Duration) -> RunReport {
    let mut report = RunReport {
        suite: plan.suite.name().to_owned(),
        target: plan.profile.name.clone(),
        verdicts: Vec::new(),
        unchecked: Vec::new(),
        red: Vec::new(),
        expected: BTreeMap::new(),
        exercised: BTreeMap::new(),
        transcripts: Vec::new(),
        harness_errors: Vec::new(),
        problems: Vec::new(),
        skipped: Vec::new(),
        timing: Vec::new(),
        took,
        interrupted: played.interrupted(),
    };
    for (index, entry) in plan.requirements.iter().enumerate() {
        report.add_requirement(plan, index, entry, &played);
    }
    for left_out in played.left_out {
        report
            .skipped
            .push((left_out.scenario.name.to_owned(), left_out.why));
    }
    for scene in played.scenes {
        report
            .timing
            .push((scene.scenario.name.to_owned(), scene.took));
        report.harness_errors.extend(scene.harness_errors);
        report.problems.extend(scene.problem);
        report
            .transcripts
            .push(Arc::unwrap_or_clone(scene.transcript));
    }
    report
}

impl RunReport {
    fn add_requirement(&mut self, plan: &RunPlan, index: usize, entry: &Entry, played: &Played) {
        let id = || entry.id.clone();
        if !plan.suite.judges(entry) {
            self.unchecked.push((id(), entry.waiver.clone()));
            if plan.profile.requires.contains(&entry.id) {
                let why = RedReason::NotExercised("it has no check".to_owned());
                self.red.push(Red { id: id(), why });
            }
            return;
        }
        let shown: Vec<_> = played
            .scenes
            .iter()
            .filter(|scene| shows(scene, index))
            .collect();
        if !shown.is_empty() {
            let names = shown.iter().map(|scene| scene.scenario.name.to_owned());
            self.exercised.insert(id(), names.collect());
        }
        let findings = shown.iter().filter_map(|scene| scene.judged.of(index));
        let transcripts = played.scenes.iter().map(|scene| scene.transcript.as_ref());
        let absent = judge::is_absent(entry, &plan.profile, transcripts);
        let verdict = judge::merge(entry, findings, absent, &why_not(plan, entry, played));
        let expected = plan.profile.expected_failures.get(&entry.id);
        let red = match (&verdict, expected) {
            (Verdict::Fail { .. }, Some(reason)) => {
                self.expected.insert(id(), reason.clone());
                None
            }
            (Verdict::Fail { .. }, None) => Some(RedReason::Failed),
            (Verdict::Pass { .. }, Some(reason)) => Some(RedReason::Stale(reason.clone())),
            (Verdict::NotExercised { why }, _) if plan.requires(entry) => {
                Some(RedReason::NotExercised(why.clone()))
            }
            _ => None,
        };
        self.red.extend(red.map(|why| Red { id: id(), why }));
        self.verdicts.push((id(), verdict));
    }
}

fn shows(scene: &Scene, index: usize) -> bool {
    scene
        .judged
        .of(index)
        .is_some_and(|findings| findings.judged > 0 || !findings.faults.is_empty())
}

/// Why a requirement was not exercised, if it was not: what became of the scenarios that may show it.
fn why_not(plan: &RunPlan, entry: &Entry, played: &Played) -> String {
    let scenarios = plan.suite.scenarios_of(entry);
    let may_show = |name: &str| scenarios.iter().any(|scenario| scenario.name == name);
    let left_out = played
        .left_out
        .iter()
        .filter(|left_out| may_show(left_out.scenario.name))
        .map(|left_out| {
            format!(
                "scenario {} was left out: {}",
                left_out.scenario.name, left_out.why
            )
        });
    let problems = played
        .scenes
        .iter()
        .filter_map(|scene| scene.problem.as_ref());
    let broken = problems
        .filter(|problem| may_show(&problem.scenario))
        .map(|problem| format!("scenario {problem}"));
    let nothing = || {
        let interrupted = played.interrupted();
        (if interrupted { INTERRUPTED } else { NOTHING }).to_owned()
    };
    left_out.chain(broken).next().unwrap_or_else(nothing)
}
