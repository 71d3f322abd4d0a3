//! The report of a proof: for each requirement, whether its check is shown to be able to fail, and why not.
//!
//! `turnwire prove --format json` prints the counts, a [`Coverage`]; this is what `--json FILE` writes, and what
//! people see.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwire_spec::catalogue::{Catalogue, Entry};

use super::{
    coverage::{Coverage, SuiteCoverage, render},
    layout::{Paint, paragraph},
};
use crate::prove::{Doubt, Proof, ProveReport};

/// What a proof found out.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProofReport {
    /// Version of the program that wrote it.
    pub turnwire: String,
    /// The suite that was proven.
    pub suite: String,
    /// Start of the proof, RFC 3339; empty when unknown.
    pub started: String,
    /// How long it took.
    pub seconds: f64,
    /// The command line that proves one requirement again; `{id}` stands for it.
    pub rerun: String,
    /// The counts.
    pub coverage: Coverage,
    /// The counts by area, in the order of the catalogue.
    pub areas: Vec<AreaProof>,
    /// Each selected requirement, in the order of the catalogue.
    pub requirements: Vec<RequirementProof>,
}

/// The counts of one area.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AreaProof {
    /// Name, such as `covel-subscription`.
    pub name: String,
    /// Its counts.
    pub counts: SuiteCoverage,
}

/// Whether a requirement is proven.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proven {
    /// Green on the conformant peer, red under its saboteur, and nothing else red.
    Proven,
    /// It has a check that is not shown to be able to fail.
    NotProven,
    /// It has neither a check nor a waiver.
    NotChecked,
    /// No black-box check can reach it.
    Waived,
}

/// One requirement.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequirementProof {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Area that it stands in.
    pub area: String,
    /// Whether it is proven.
    pub proof: Proven,
    /// In which scenario, or why not.
    pub why: String,
    /// Evidence that was not to be there: of the conformant peer, or of neighbours under the sabotage.
    pub evidence: Vec<String>,
}

impl ProofReport {
    /// The report of a proof of these requirements.
    pub fn of(report: &ProveReport, entries: &[&Entry], started: String, rerun: String) -> Self {
        let checked: BTreeSet<&str> = report
            .requirements
            .iter()
            .filter(|verified| matches!(verified.proof, Proof::Proven { .. } | Proof::NotProven(_)))
            .map(|verified| verified.id.as_str())
            .collect();
        let proven = report.proven();
        let count = |entries: &mut dyn Iterator<Item = &Entry>| {
            SuiteCoverage::of(
                entries,
                |entry| checked.contains(entry.id.as_str()),
                &proven,
            )
        };
        let counts = count(&mut entries.iter().copied());
        let areas = Catalogue::embedded().areas().iter().map(|area| {
            let own = entries
                .iter()
                .copied()
                .filter(|entry| entry.prefix() == area.prefix);
            AreaProof {
                name: area.name.clone(),
                counts: count(&mut own.into_iter()),
            }
        });
        Self {
            turnwire: env!("CARGO_PKG_VERSION").to_owned(),
            suite: report.suite.clone(),
            started,
            seconds: (report.took.as_secs_f64() * 1000.0).round() / 1000.0,
            rerun,
            coverage: Coverage {
                suites: [(report.suite.clone(), counts)].into(),
                ..Coverage::default()
            },
            areas: areas.filter(|area| area.counts.requirements > 0).collect(),
            requirements: report
                .requirements
                .iter()
                .map(|found| requirement(&found.id, &found.title, &found.proof))
                .collect(),
        }
    }

    /// Whether every check is shown to be able to fail.
    pub fn holds(&self) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.proof != Proven::NotProven)
    }

    /// The report as text: what is not proven first.
    pub fn render(&self, colour: bool) -> String {
        let paint = Paint(colour);
        let mut out = String::new();
        for requirement in self
            .requirements
            .iter()
            .filter(|requirement| requirement.proof == Proven::NotProven)
        {
            let RequirementProof {
                id,
                title,
                why,
                evidence,
                ..
            } = requirement;
            let _ = writeln!(
                out,
                "{} {} {title}",
                paint.bad("NOT PROVEN"),
                paint.strong(id)
            );
            out.push_str(&paragraph(why, "  "));
            for evidence in evidence {
                out.push_str(&paragraph(evidence, "    "));
            }
            let _ = writeln!(out, "  rerun     {}", self.rerun.replace("{id}", id));
            let _ = writeln!(out, "  explain   turnwire explain {id}\n");
        }
        let areas: Vec<_> = self
            .areas
            .iter()
            .map(|area| (area.name.clone(), area.counts.clone()))
            .collect();
        out.push_str(&render("area", &areas));
        for (suite, counts) in &self.coverage.suites {
            let SuiteCoverage {
                requirements,
                checked,
                proven,
                waived,
                open,
                ..
            } = counts;
            let outcome = if self.holds() {
                paint.good("proven")
            } else {
                paint.bad("not proven")
            };
            let _ = writeln!(
                out,
                "\n{suite}: {outcome}; {proven} of {checked} checks can fail, of {requirements} requirements {waived} \
                 are waived and {} open, {:.1} s",
                open.len(),
                self.seconds
            );
        }
        out
    }

    /// The report as JUnit XML: one test suite an area, one test case a requirement.
    ///
    /// # Errors
    ///
    /// When the XML cannot be written.
    pub fn junit(&self) -> Result<String, quick_junit::SerializeError> {
        let mut junit = quick_junit::Report::new(format!("turnwire prove {}", self.suite));
        for area in &self.areas {
            let mut suite = TestSuite::new(area.name.as_str());
            for requirement in self
                .requirements
                .iter()
                .filter(|requirement| requirement.area == area.name)
            {
                let status = match requirement.proof {
                    Proven::Proven => TestCaseStatus::success(),
                    Proven::NotProven => {
                        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                        status
                            .set_message(requirement.why.as_str())
                            .set_type("not proven");
                        status.set_description(requirement.evidence.join("\n"));
                        status
                    }
                    Proven::NotChecked | Proven::Waived => {
                        let mut status = TestCaseStatus::skipped();
                        status.set_message(requirement.why.as_str());
                        status
                    }
                };
                let mut case =
                    TestCase::new(format!("{} {}", requirement.id, requirement.title), status);
                case.set_classname(requirement.area.as_str());
                suite.add_test_case(case);
            }
            junit.add_test_suite(suite);
        }
        junit.to_string()
    }
}

fn requirement(id: &str, title: &str, proof: &Proof) -> RequirementProof {
    let catalogue = Catalogue::embedded();
    let area = catalogue.get(id).and_then(|entry| catalogue.area_of(entry));
    let kind = match proof {
        Proof::Proven { .. } => Proven::Proven,
        Proof::NotProven(_) => Proven::NotProven,
        Proof::NotChecked => Proven::NotChecked,
        Proof::Waived(_) => Proven::Waived,
    };
    RequirementProof {
        id: id.to_owned(),
        title: title.to_owned(),
        area: area.map(|area| area.name.clone()).unwrap_or_default(),
        proof: kind,
        why: proof.to_string(),
        evidence: evidence(proof),
    }
}

fn evidence(proof: &Proof) -> Vec<String> {
    match proof {
        Proof::NotProven(Doubt::ConformantRed(evidence)) => {
            let shown = evidence.iter().map(|found| {
                format!(
                    "{}: expected {}, got {}",
                    found.scenario, found.expected, found.got
                )
            });
            shown.collect()
        }
        Proof::NotProven(Doubt::AlsoRed { red, .. }) => red
            .iter()
            .map(|(id, found)| format!("{id}: expected {}, got {}", found.expected, found.got))
            .collect(),
        _ => Vec::new(),
    }
}
