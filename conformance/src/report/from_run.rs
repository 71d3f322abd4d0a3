//! A report from what a run gives.

use std::collections::BTreeMap;

use turnwire_spec::catalogue::{Catalogue, Entry};

use super::{
    EvidenceReport, ObservationReport, Outcome, Report, RequirementReport, ScenarioReport, State,
    Totals, coverage::is_waived, excerpt,
};
use crate::{
    cases::content::Feature,
    drivers::Blame,
    observations,
    run::{self, RedReason, RunReport},
    transcript::{Transcript, text::redact},
    verdict::{Evidence, Verdict},
};

/// What a run does not know about itself.
#[derive(Clone, Debug)]
pub struct About {
    /// Start of the run, RFC 3339.
    pub started: String,
    /// Factor of the protocol's periods.
    pub time_scale: f64,
    /// The command line that runs a requirement again; `{id}` stands for it.
    pub rerun: String,
    /// The frozen set of requirements that was asked for, by name.
    pub revision: Option<String>,
    /// Whether what the tables do not name is a warning.
    pub strict: bool,
}

impl Report {
    /// The report of a run over these requirements.
    pub fn of(run: &RunReport, entries: &[&Entry], about: About) -> Self {
        let transcripts = run
            .transcripts
            .iter()
            .map(|found| (found.header.scenario.as_str(), found))
            .collect();
        let requirements = entries
            .iter()
            .filter_map(|entry| requirement(run, entry, &transcripts))
            .collect();
        let mut report = Self {
            turnwire: env!("CARGO_PKG_VERSION").to_owned(),
            suite: run.suite.clone(),
            target: run.target.clone(),
            started: about.started,
            seconds: (run.took.as_secs_f64() * 1000.0).round() / 1000.0,
            time_scale: about.time_scale,
            revision: about.revision,
            outcome: outcome(run.outcome()),
            rerun: about.rerun,
            totals: Totals::default(),
            areas: Vec::new(),
            requirements,
            scenarios: scenarios(run),
            observations: observed(run, about.strict),
            harness_errors: harness_errors(run),
            files: Vec::new(),
        };
        report.count();
        report
    }
}

/// What the transcripts show that nobody has named.
fn observed(run: &RunReport, strict: bool) -> Vec<ObservationReport> {
    let all = observations::of(&run.transcripts).into_iter();
    all.map(|observation| ObservationReport {
        what: observation.what,
        times: observation.times,
        warning: strict,
    })
    .collect()
}

fn outcome(outcome: run::Outcome) -> Outcome {
    match outcome {
        run::Outcome::Conformant => Outcome::Conformant,
        run::Outcome::NotConformant => Outcome::NotConformant,
        run::Outcome::Unknown => Outcome::Unknown,
        run::Outcome::NothingExercised => Outcome::NothingExercised,
        run::Outcome::Interrupted => Outcome::Interrupted,
    }
}

fn waiver(entry: &Entry) -> String {
    let test = || {
        entry
            .test
            .as_ref()
            .map(|test| format!("covered by the Rust test {test}"))
    };
    entry.waiver.clone().or_else(test).unwrap_or_default()
}

type Transcripts<'a> = BTreeMap<&'a str, &'a Transcript>;

fn requirement(
    run: &RunReport,
    entry: &Entry,
    transcripts: &Transcripts<'_>,
) -> Option<RequirementReport> {
    let (state, judged, mut why, evidence) = match run.verdict(&entry.id) {
        Some(verdict) => judged(verdict, transcripts),
        None if run.unchecked.iter().all(|(id, _)| *id != entry.id) => return None,
        None if is_waived(entry) => (State::Waived, 0, Some(waiver(entry)), Vec::new()),
        None => (State::Open, 0, None, Vec::new()),
    };
    if let Some(reason) = run.expected.get(&entry.id) {
        why = Some(format!("expected to fail: {reason}"));
    }
    let red = run.red.iter().find(|red| red.id == entry.id);
    if let Some(RedReason::NotExercised(reason) | RedReason::Stale(reason)) =
        red.map(|red| &red.why)
    {
        why = Some(reason.clone());
    }
    let area = Catalogue::embedded()
        .area_of(entry)
        .map(|area| area.name.clone());
    Some(RequirementReport {
        id: entry.id.clone(),
        title: entry.title.clone(),
        statement: entry.statement.clone(),
        level: entry.level.name().to_owned(),
        binds: entry.binds.name().to_owned(),
        area: area.unwrap_or_default(),
        state,
        red: red.is_some(),
        judged,
        why,
        evidence,
    })
}

fn judged(
    verdict: &Verdict,
    transcripts: &Transcripts<'_>,
) -> (State, usize, Option<String>, Vec<EvidenceReport>) {
    match verdict {
        Verdict::Pass { judged } => (State::Pass, *judged, None, Vec::new()),
        Verdict::Fail { judged, evidence } => {
            let evidence = evidence
                .iter()
                .map(|evidence| shown(evidence, transcripts))
                .collect();
            (State::Fail, *judged, None, evidence)
        }
        Verdict::NotApplicable { needs } => {
            let why = match Feature::named(needs) {
                None => format!("the profile says that the target has no {needs}"),
                Some(_) => format!("the adapter does not say that it has the feature {needs}"),
            };
            (State::NotApplicable, 0, Some(why), Vec::new())
        }
        Verdict::NotExercised { why } => (State::NotExercised, 0, Some(why.clone()), Vec::new()),
    }
}

fn shown(evidence: &Evidence, transcripts: &Transcripts<'_>) -> EvidenceReport {
    let transcript = transcripts.get(evidence.scenario.as_str());
    EvidenceReport {
        scenario: evidence.scenario.clone(),
        exchange: evidence.exchange.map(|exchange| exchange.0),
        request: evidence.request.as_deref().map(redact),
        at_micros: evidence
            .at
            .and_then(|at| u64::try_from(at.as_micros()).ok()),
        frame: evidence.frame,
        expected: redact(&evidence.expected),
        got: redact(&evidence.got),
        wire: transcript
            .map(|transcript| excerpt::lines(transcript, evidence))
            .unwrap_or_default(),
    }
}

fn scenarios(run: &RunReport) -> Vec<ScenarioReport> {
    let played = run.timing.iter().map(|(name, took)| ScenarioReport {
        name: name.clone(),
        seconds: (took.as_secs_f64() * 1000.0).round() / 1000.0,
        stopped: run
            .problems
            .iter()
            .find(|problem| problem.scenario == *name)
            .map(|problem| problem.error.to_string()),
        left_out: false,
    });
    let left_out = run.skipped.iter().map(|(name, why)| ScenarioReport {
        name: name.clone(),
        seconds: 0.0,
        stopped: Some(why.clone()),
        left_out: true,
    });
    played.chain(left_out).collect()
}

fn harness_errors(run: &RunReport) -> Vec<String> {
    let own = run
        .problems
        .iter()
        .filter(|problem| problem.error.blame() == Blame::Harness);
    run.harness_errors
        .iter()
        .map(ToString::to_string)
        .chain(own.map(ToString::to_string))
        .collect()
}
