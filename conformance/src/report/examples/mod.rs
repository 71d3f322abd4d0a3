//! What the golden files are examples of: event types, rejections, reset reasons, endpoints, messages, frames of the
//! wires.
//!
//! `golden/examples.txt` lists what there is, one line each: suite, kind, name, file. It is made with the golden
//! files and is part of the program, so that `coverage` can count what has no example yet.
//!
//! - [`known()`]: what there is to be shown, by the tables of `spec/`; [`of`]: what a transcript shows;
//! - [`excuses`]: what cannot be shown, and why;
//! - [`coverage`]: the ones against the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layout::{Align, table};
use crate::transcript::Transcript;

mod excused;
mod known;
mod seen;

pub use excused::{Excuse, excuses};
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
    /// Those that cannot have one, as `KIND NAME`, by the reason; they are not among the missing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excused: BTreeMap<String, Vec<String>>,
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
    let mut lacking: BTreeSet<Example> = known.difference(&shown).cloned().collect();
    let mut counts = ExampleCoverage {
        known: known.len(),
        shown: known.len() - lacking.len(),
        ..ExampleCoverage::default()
    };
    let text = |(kind, name): &Example| format!("{kind} {name}");
    for excuse in excuses() {
        if excuse.suite == suite && lacking.remove(&excuse.example) {
            let names = counts.excused.entry(excuse.why).or_default();
            names.push(text(&excuse.example));
        }
    }
    counts.missing = lacking.iter().map(text).collect();
    Some(counts)
}

/// A table of the counts by suite, what has no example, and what cannot have one.
pub fn render(rows: &BTreeMap<String, ExampleCoverage>) -> String {
    let heading = ["golden examples", "known", "shown", "excused", "missing"].map(str::to_owned);
    let mut lines = vec![heading.to_vec()];
    lines.extend(rows.iter().map(|(suite, counts)| {
        let excused: usize = counts.excused.values().map(Vec::len).sum();
        let numbers = [counts.known, counts.shown, excused, counts.missing.len()];
        std::iter::once(suite.clone())
            .chain(numbers.map(|number| number.to_string()))
            .collect()
    }));
    let columns = [
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
    ];
    let mut text = table(&columns, &lines);
    for (suite, counts) in rows {
        for (kind, names) in by_kind(&counts.missing) {
            let _ = writeln!(text, "\n{suite}, no example of {}", listed(&kind, &names));
        }
        for (why, excused) in &counts.excused {
            let kinds = by_kind(excused);
            let kinds: Vec<_> = kinds
                .iter()
                .map(|(kind, names)| listed(kind, names))
                .collect();
            let _ = writeln!(text, "\n{suite}, {why}: {}", kinds.join("; "));
        }
    }
    text
}

/// The names of examples, by kind.
fn by_kind(examples: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for example in examples {
        let (kind, name) =
            excused::example(example).unwrap_or_else(|| (String::new(), example.clone()));
        kinds.entry(kind).or_default().push(name);
    }
    kinds
}

/// How many of a kind, and which.
fn listed(kind: &str, names: &[String]) -> String {
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{} {kind}{plural}: {}", names.len(), names.join(", "))
}
