//! What a run says, for people and machines.
//!
//! - [`model`]: the one object that all forms render, and its JSON form;
//! - [`excerpt`]: the part of a transcript that shows a piece of evidence;
//! - [`human`]: text, failures first; [`junit`]: JUnit XML for CI systems;
//! - [`coverage`]: what is checked and proven, by suite; [`proof`]: what a proof found out;
//! - [`examples`]: what the golden files are examples of;
//! - [`difference`]: what differs between two transcripts;
//! - [`listing`] and [`explained`]: the catalogue, as a list and one entry at a time;
//! - [`schemas`]: the JSON Schemas of everything that is printed as JSON.
//!
//! Rendering is pure: a report in, a text out. Running and judging are elsewhere.

pub mod coverage;
pub mod difference;
pub mod examples;
pub mod excerpt;
pub mod explained;
pub mod human;
pub mod junit;
pub mod listing;
pub mod model;
pub mod proof;
pub mod schemas;

mod from_run;
mod layout;

#[cfg(test)]
mod tests;

pub use from_run::About;
pub use model::{
    AreaReport, EvidenceReport, FileReport, ObservationReport, Outcome, Report, RequirementReport,
    ScenarioReport, State, Totals,
};
