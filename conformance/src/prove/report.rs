//! What comes out of a proof.
//!
//! The numbers that `prove` prints, over the selected requirements:
//!
//! - requirements: the selected entries;
//! - observable: those that can be seen from outside (`observe` is not `library`);
//! - checked: those with a rule or a coded check;
//! - proven: those that are [`Proof::Proven`];
//! - waived: of the others, those with a waiver, and library entries that a Rust test covers;
//! - open: all others. So proven, waived and open together are the requirements.

use std::{collections::BTreeSet, fmt, time::Duration};

use serde::Serialize;
use turnwire_spec::catalogue::Entry;

use crate::{run::RunReport, verdict::Evidence};

/// What comes out of a proof.
#[derive(Clone, Debug)]
pub struct ProveReport {
    /// Suite name.
    pub suite: String,
    /// Each selected requirement, in catalogue order.
    pub requirements: Vec<Verified>,
    /// The run without sabotage, judged by all checks of the suite; `None` when nothing selected has a check.
    pub conformant: Option<RunReport>,
    /// How long all of it took.
    pub took: Duration,
}

/// A requirement and whether it is proven.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// Requirement id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Whether it is proven.
    #[serde(flatten)]
    pub proof: Proof,
    /// How long its sabotaged runs took.
    #[serde(skip)]
    pub took: Duration,
}

/// Whether a check is shown to be able to fail.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "proof", rename_all = "kebab-case")]
pub enum Proof {
    /// Green on the conformant peer, red under its saboteur.
    Proven {
        /// Scenario that was sabotaged.
        scenario: String,
        /// What the check found.
        evidence: Box<Evidence>,
        /// Neighbours that turned red, as the entry says.
        also: Vec<String>,
        /// Neighbours that stayed green, although the entry names them.
        unneeded: Vec<String>,
    },
    /// It has a check, but it is not shown.
    NotProven(Doubt),
    /// It has neither a check nor a waiver.
    NotChecked,
    /// No black-box check can reach it, for this reason.
    Waived(String),
}

/// Why a check is not shown to be able to fail.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "doubt", content = "detail", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Doubt {
    /// It has no saboteur.
    NoSaboteur,
    /// It is red on the conformant peer, for these reasons.
    ConformantRed(Vec<Evidence>),
    /// Nothing showed it, on the conformant peer or under sabotage; with the reason.
    NotExercised(String),
    /// The saboteur did not turn it red in any of these scenarios.
    StillGreen(Vec<String>),
    /// The saboteur turned others red too, which the entry does not name under `also`.
    #[serde(rename_all = "camelCase")]
    AlsoRed {
        /// Scenario that was sabotaged.
        scenario: String,
        /// Ids and what their checks found.
        red: Vec<(String, Evidence)>,
    },
    /// The sabotaged run could not be made, for this reason.
    NoRun(String),
}

impl Verified {
    pub(super) fn new(entry: &Entry, proof: Proof) -> Self {
        Self {
            id: entry.id.clone(),
            title: entry.title.clone(),
            proof,
            took: Duration::ZERO,
        }
    }
}

impl ProveReport {
    /// Ids of the requirements that are proven.
    pub fn proven(&self) -> BTreeSet<String> {
        let proven = self
            .requirements
            .iter()
            .filter(|verified| matches!(verified.proof, Proof::Proven { .. }));
        proven.map(|verified| verified.id.clone()).collect()
    }

    /// Requirements that have a check and are not proven, for people.
    pub fn doubts(&self) -> impl Iterator<Item = (&Verified, &Doubt)> {
        self.requirements
            .iter()
            .filter_map(|verified| match &verified.proof {
                Proof::NotProven(doubt) => Some((verified, doubt)),
                _ => None,
            })
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven { scenario, also, .. } if also.is_empty() => {
                write!(f, "proven in {scenario}")
            }
            Self::Proven { scenario, also, .. } => {
                write!(f, "proven in {scenario}, together with {}", also.join(", "))
            }
            Self::NotProven(doubt) => write!(f, "not proven: {doubt}"),
            Self::NotChecked => f.write_str("not checked"),
            Self::Waived(reason) => write!(f, "waived: {}", reason.trim_end()),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSaboteur => f.write_str("no saboteur"),
            Self::ConformantRed(evidence) => {
                f.write_str("red on the conformant peer")?;
                evidence.first().map_or(Ok(()), |found| {
                    write!(f, ": expected {}, got {}", found.expected, found.got)
                })
            }
            Self::NotExercised(why) => write!(f, "not exercised: {why}"),
            Self::StillGreen(scenarios) => write!(
                f,
                "still green under its saboteur in {}",
                scenarios.join(", ")
            ),
            Self::AlsoRed { scenario, red } => {
                let ids: Vec<_> = red.iter().map(|(id, _)| id.as_str()).collect();
                write!(f, "in {scenario} also red: {}", ids.join(", "))
            }
            Self::NoRun(why) => write!(f, "the sabotaged run could not be made: {why}"),
        }
    }
}
