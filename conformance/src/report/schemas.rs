//! The JSON Schemas of everything that a command prints as JSON.
//!
//! They are checked in as `conformance/schemas/NAME.json`; a test compares, and writes them when the variable
//! `TURNWIRE_BLESS` is set.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};

use crate::{replay::server::ReplayReport, transcript::diff::Diff};

use crate::fuzz::{
    clients::report::{ClientFuzzReport, ClientProof},
    report::{FuzzReport, PlantedReport},
};

use super::{
    coverage::Coverage, explained::Explained, listing::Listing, model::Report, proof::ProofReport,
};
use crate::matrix::MatrixReport;

/// Every schema under its name.
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("report", of::<Report>()),
        ("coverage", of::<Coverage>()),
        ("proof", of::<ProofReport>()),
        ("list", of::<Listing>()),
        ("explain", of::<Explained>()),
        ("fuzz", of::<FuzzReport>()),
        ("fuzz-prove", of::<PlantedReport>()),
        ("fuzz-client", of::<ClientFuzzReport>()),
        ("fuzz-client-prove", of::<ClientProof>()),
        ("diff", of::<Diff>()),
        ("matrix", of::<MatrixReport>()),
        ("replay", of::<ReplayReport>()),
    ]
}

/// The schema of a type, as JSON text with a line feed at its end.
pub fn text<T: JsonSchema>() -> String {
    format!("{:#}\n", of::<T>().as_value())
}

fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
}
