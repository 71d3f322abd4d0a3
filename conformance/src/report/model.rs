//! The report of a run: one object, which is also its JSON form.
//!
//! The JSON form is an object with camelCase members; its schema is `conformance/schemas/report.json`. Members are
//! added in later versions and none is removed or changed; `turnwire` names the version that wrote it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run found out about a target.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Version of the program that wrote it.
    pub turnwire: String,
    /// The suite that was run.
    pub suite: String,
    /// Name of the target, from its profile.
    pub target: String,
    /// Start of the run, RFC 3339; empty when unknown.
    pub started: String,
    /// How long it took.
    pub seconds: f64,
    /// Factor of the protocol's periods.
    pub time_scale: f64,
    /// The frozen set of requirements that was asked for, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// What the run comes to.
    pub outcome: Outcome,
    /// The command line that runs one requirement again; `{id}` stands for it.
    pub rerun: String,
    /// Counts over all requirements.
    pub totals: Totals,
    /// Counts by area, in the order of the catalogue.
    pub areas: Vec<AreaReport>,
    /// Each selected requirement, in the order of the catalogue.
    pub requirements: Vec<RequirementReport>,
    /// Each scenario that belonged to the run.
    pub scenarios: Vec<ScenarioReport>,
    /// The files that were judged; empty for a run against a target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileReport>,
    /// What the target said beyond the tables of its protocol; no fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observations: Vec<ObservationReport>,
    /// What the harness itself did wrong, or could not do.
    pub harness_errors: Vec<String>,
}

/// Something that the tables of the protocol do not name.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservationReport {
    /// What it is, such as `frame kind chat:queued_state`.
    pub what: String,
    /// How often it was seen.
    pub times: usize,
    /// Whether it was asked to be a warning.
    pub warning: bool,
}

/// What a run comes to.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nothing is red.
    Conformant,
    /// At least one requirement is red.
    NotConformant,
    /// The harness broke the protocol or could not play a scenario: what is not red is not known to be right.
    Unknown,
    /// Nothing in the run could show any requirement: it says nothing about the target.
    NothingExercised,
    /// The run was interrupted: what is not exercised was not looked at.
    Interrupted,
}

/// The state of a requirement after a run.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Everything judged was right.
    Pass,
    /// At least one observation was wrong.
    Fail,
    /// Nothing in the run could show it.
    NotExercised,
    /// The profile declares the capability absent.
    NotApplicable,
    /// The catalogue says why no black-box check can exist.
    Waived,
    /// It has no check yet.
    Open,
}

impl State {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotExercised => "not exercised",
            Self::NotApplicable => "not applicable",
            Self::Waived => "waived",
            Self::Open => "open",
        }
    }
}

/// Counts of requirements by state.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// All.
    pub requirements: usize,
    /// Passed.
    pub pass: usize,
    /// Failed.
    pub fail: usize,
    /// Not exercised.
    pub not_exercised: usize,
    /// Not applicable.
    pub not_applicable: usize,
    /// Waived.
    pub waived: usize,
    /// Without a check.
    pub open: usize,
}

impl Totals {
    /// Counts the requirements.
    pub fn of<'a>(requirements: impl IntoIterator<Item = &'a RequirementReport>) -> Self {
        let mut totals = Self::default();
        for requirement in requirements {
            totals.requirements += 1;
            let count = match requirement.state {
                State::Pass => &mut totals.pass,
                State::Fail => &mut totals.fail,
                State::NotExercised => &mut totals.not_exercised,
                State::NotApplicable => &mut totals.not_applicable,
                State::Waived => &mut totals.waived,
                State::Open => &mut totals.open,
            };
            *count += 1;
        }
        totals
    }
}

/// One area of the catalogue.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AreaReport {
    /// Name, such as `covel-subscription`.
    pub name: String,
    /// What its ids begin with, such as `COV-SUB`.
    pub prefix: String,
    /// Its counts.
    pub totals: Totals,
}

/// One requirement.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequirementReport {
    /// Its id, such as `COV-SUB-102`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What must hold.
    pub statement: String,
    /// `must`, `should` or `may`.
    pub level: String,
    /// Who has to behave so.
    pub binds: String,
    /// Area that it stands in.
    pub area: String,
    /// Its state.
    pub state: State,
    /// It makes the run end with exit code 1.
    pub red: bool,
    /// Observations that were judged.
    pub judged: usize,
    /// Why it was not judged, why a failure was expected, or why what passed is red all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What is wrong.
    pub evidence: Vec<EvidenceReport>,
}

/// Where and how an observation is wrong.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceReport {
    /// Scenario whose transcript shows it.
    pub scenario: String,
    /// Number of the exchange in the transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u32>,
    /// Request line of that exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Offset in the transcript, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_micros: Option<u64>,
    /// Index of the frame in its stream, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<usize>,
    /// What the requirement asks for.
    pub expected: String,
    /// What was observed.
    pub got: String,
    /// The part of the transcript that shows it, in the text form, line by line.
    pub wire: Vec<String>,
}

/// A file that was judged.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileReport {
    /// Its path, as it was given.
    pub name: String,
    /// `twire` or `har`.
    pub form: String,
    /// The scenario that it names; empty for a recording.
    pub scenario: String,
    /// HTTP exchanges that were judged.
    pub exchanges: usize,
    /// HTTP exchanges of a HAR file that do not belong to the protocol.
    pub left_out: usize,
    /// What the file does not keep: `times`, `bytes`. What cannot be seen without it was not judged.
    pub lost: Vec<String>,
    /// Its notes, line by line.
    pub notes: Vec<String>,
}

/// One scenario.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioReport {
    /// Its name.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// Why it was left out or could not go on; absent when it ran to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// It was left out, because the target cannot do what it needs.
    pub left_out: bool,
}

impl Report {
    /// The requirement with this id.
    pub fn requirement(&self, id: &str) -> Option<&RequirementReport> {
        self.requirements
            .iter()
            .find(|requirement| requirement.id == id)
    }

    /// The command line that runs this requirement again.
    pub fn rerun(&self, id: &str) -> String {
        self.rerun.replace("{id}", id)
    }

    /// Fills in the counts, over all and by area, from the requirements.
    pub fn count(&mut self) {
        self.totals = Totals::of(&self.requirements);
        let mut areas: BTreeMap<&str, Vec<&RequirementReport>> = BTreeMap::new();
        for requirement in &self.requirements {
            areas
                .entry(&requirement.area)
                .or_default()
                .push(requirement);
        }
        self.areas = areas
            .into_iter()
            .map(|(name, requirements)| AreaReport {
                name: name.to_owned(),
                prefix: requirements
                    .first()
                    .map(|first| prefix(&first.id))
                    .unwrap_or_default(),
                totals: Totals::of(requirements),
            })
            .collect();
    }

    /// The JSON form, pretty, with a line feed at its end.
    ///
    /// # Errors
    ///
    /// When a number in it is no JSON number.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

fn prefix(id: &str) -> String {
    id.rsplit_once('-')
        .map_or(id, |(prefix, _)| prefix)
        .to_owned()
}
