//! What is checked and what is proven, by suite: the object that `coverage` and `prove` print.
//!
//! `proven + waived + open.len() == requirements` holds for every suite: a requirement that is neither proven
//! nor waived is open.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwire_spec::catalogue::Entry;

use super::{
    examples::ExampleCoverage,
    layout::{Align, table},
};

/// Counts by suite.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Coverage {
    /// Each suite under its name.
    pub suites: BTreeMap<String, SuiteCoverage>,
    /// What the golden transcripts are examples of, by suite; a proof does not count it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub examples: BTreeMap<String, ExampleCoverage>,
}

/// Counts of one suite.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct SuiteCoverage {
    /// Requirements, after selection.
    pub requirements: usize,
    /// Those that can be seen from outside.
    pub observable: usize,
    /// Those that a check judges.
    pub checked: usize,
    /// Those whose check is green on a conformant peer, and red on their saboteur.
    pub proven: usize,
    /// Those of the others that no black-box check has to reach: the catalogue says why, or a Rust test covers a
    /// library entry.
    pub waived: usize,
    /// Ids of those that are neither proven nor waived, in the order of the catalogue.
    pub open: Vec<String>,
}

impl SuiteCoverage {
    /// Counts entries; `checked` says which have a check, `proven` which are proven.
    pub fn of<'a>(
        entries: impl IntoIterator<Item = &'a Entry>,
        checked: impl Fn(&Entry) -> bool,
        proven: &BTreeSet<String>,
    ) -> Self {
        let mut counts = Self::default();
        for entry in entries {
            counts.requirements += 1;
            counts.observable += usize::from(entry.is_observable());
            counts.checked += usize::from(checked(entry));
            if proven.contains(&entry.id) {
                counts.proven += 1;
            } else if is_waived(entry) {
                counts.waived += 1;
            } else {
                counts.open.push(entry.id.clone());
            }
        }
        counts
    }
}

/// Whether no black-box check has to exist: the catalogue says why, or a Rust test covers a library entry.
pub fn is_waived(entry: &Entry) -> bool {
    entry.waiver.is_some() || (entry.test.is_some() && !entry.is_observable())
}

const COLUMNS: [Align; 7] = [
    Align::Left,
    Align::Right,
    Align::Right,
    Align::Right,
    Align::Right,
    Align::Right,
    Align::Right,
];

/// A table of named counts: suites, or areas.
pub fn render(what: &str, rows: &[(String, SuiteCoverage)]) -> String {
    let heading = [
        what,
        "requirements",
        "observable",
        "checked",
        "proven",
        "waived",
        "open",
    ];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|(name, counts)| {
        let SuiteCoverage {
            requirements,
            observable,
            checked,
            proven,
            waived,
            open,
        } = counts;
        let numbers = [
            *requirements,
            *observable,
            *checked,
            *proven,
            *waived,
            open.len(),
        ];
        std::iter::once(name.clone())
            .chain(numbers.map(|number| number.to_string()))
            .collect()
    }));
    table(&COLUMNS, &lines)
}
