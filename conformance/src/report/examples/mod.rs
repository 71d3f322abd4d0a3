//! What the golden files are examples of: event types, rejections, reset reasons, endpoints, messages, frames of the
//! wires.
//!
//! `golden/examples.txt` lists what there is, one line each: suite, kind, name, file. It is made with the golden
//! files and is part of the program, so that `coverage` can count what has no example yet.
//!
//! - [`known()`]: what there is to be shown, by the tables of `spec/`; [`of`]: what a transcript shows;
//! - [`coverage`]: the one against the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layout::{Align, table};
use crate::transcript::Transcript;

mod known;
mod seen;

pub use known::known;
pub use seen::of;

/// The index as it was when the program was built.
const INDEX: &str = include_str!("../../../../golden/examples.txt");

/// Something that a golden file can be an example of: its kind and its name.
pub type Example = (String, String);

/// The index of these files, by name: each example with the first file that shows it.
pub fn index(files: impl IntoIterator<Item = (String, Transcript)>) -> String {
    let mut first: BTreeMap<(String, Example), String> = BTreeMap::new();
    for (name, transcript) in files {
        for example in of(&transcript) {
            let key = (transcript.header.suite.clone(), example);
            first.entry(key).or_insert_with(|| name.clone());
        }
    }
    let mut out = String::new();
    for ((suite, (kind, name)), file) in first {
        let _ = writeln!(out, "{suite}\t{kind}\t{name}\t{file}");
    }
    out
}

/// How many of the things that there are have a golden example.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct ExampleCoverage {
    /// What golden files could be examples of: event types, rejections, reset reasons, endpoints, messages, wire events.
    pub known: usize,
    /// Those that have an example.
    pub shown: usize,
    /// Those that have none, as `KIND NAME`.
    pub missing: Vec<String>,
}

/// Counts the examples of a suite; `None` where no table says what there is.
pub fn coverage(suite: &str) -> Option<ExampleCoverage> {
    let known = known(suite);
    if known.is_empty() {
        return None;
    }
    let shown: BTreeSet<Example> = INDEX
        .lines()
        .filter_map(|line| {
            let mut parts = line.split('\t');
            (parts.next()? == suite).then_some(())?;
            Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
        })
        .collect();
    let missing: Vec<String> = known
        .difference(&shown)
        .map(|(kind, name)| format!("{kind} {name}"))
        .collect();
    Some(ExampleCoverage {
        known: known.len(),
        shown: known.len() - missing.len(),
        missing,
    })
}

/// A table of the counts by suite.
pub fn render(rows: &BTreeMap<String, ExampleCoverage>) -> String {
    let heading = ["golden examples", "known", "shown", "missing"].map(str::to_owned);
    let mut lines = vec![heading.to_vec()];
    lines.extend(rows.iter().map(|(suite, counts)| {
        vec![
            suite.clone(),
            counts.known.to_string(),
            counts.shown.to_string(),
            counts.missing.len().to_string(),
        ]
    }));
    let mut text = table(
        &[Align::Left, Align::Right, Align::Right, Align::Right],
        &lines,
    );
    for (suite, counts) in rows {
        text.push_str(&lacking(suite, &counts.missing));
    }
    text
}

/// What a suite has no example of, one line a kind.
fn lacking(suite: &str, missing: &[String]) -> String {
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for example in missing {
        let kind = known::KINDS
            .iter()
            .find(|kind| example.starts_with(&format!("{kind} ")));
        let (kind, name) = kind.map_or(("", example.as_str()), |kind| {
            (*kind, example.get(kind.len() + 1..).unwrap_or_default())
        });
        kinds.entry(kind).or_default().push(name);
    }
    let mut text = String::new();
    for (kind, names) in kinds {
        let _ = writeln!(
            text,
            "\n{suite}, no example of {} {kind}{}: {}",
            names.len(),
            if names.len() == 1 { "" } else { "s" },
            names.join(", ")
        );
    }
    text
}
