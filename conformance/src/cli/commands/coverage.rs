//! `turnwire coverage`: counts by suite and area. It runs nothing: what is proven is what the last `prove` on this
//! machine showed.

use std::collections::{BTreeMap, BTreeSet};

use turnwire_spec::catalogue::{Catalogue, Entry, Suite};

use super::{list::is_checked, print};
use crate::{
    cli::{args::CoverageArgs, console::Console, exit::CliError, select, state},
    report::{
        coverage::{Coverage, SuiteCoverage, render},
        examples::{self, ExampleCoverage},
    },
};

pub(in crate::cli) fn run(args: &CoverageArgs, console: &Console) -> Result<u8, CliError> {
    let entries = if args.print.schema {
        Vec::new()
    } else {
        select::entries(&args.select)?
    };
    let proven = proven(&entries, console);
    let human = |coverage: &Coverage| human(coverage, &entries, &proven);
    print(
        console,
        args.print,
        || Ok(coverage(&entries, &proven)),
        human,
    )
}

/// The requirements that the last proofs on this machine proved.
fn proven(entries: &[&Entry], console: &Console) -> BTreeSet<String> {
    let mut proven = BTreeSet::new();
    for suite in suites(entries) {
        match state::last_proof(suite.name()) {
            Some(proof) => {
                console.note(&format!(
                    "{suite}: proven as of the last `turnwire prove`, {}",
                    proof.started
                ));
                proven.extend(proof.proven);
            }
            None if entries
                .iter()
                .any(|entry| is_checked(entry) && suite_of(entry) == suite) =>
            {
                console.note(&format!(
                    "{suite}: never proven here; run `turnwire prove --suite {suite}`"
                ));
            }
            None => {}
        }
    }
    proven
}

fn suite_of(entry: &Entry) -> Suite {
    Catalogue::embedded().suite_of(entry)
}

fn suites(entries: &[&Entry]) -> BTreeSet<Suite> {
    entries.iter().map(|entry| suite_of(entry)).collect()
}

fn coverage(entries: &[&Entry], proven: &BTreeSet<String>) -> Coverage {
    let suites = suites(entries).into_iter().map(|suite| {
        let own = entries
            .iter()
            .copied()
            .filter(|entry| suite_of(entry) == suite);
        (
            suite.name().to_owned(),
            SuiteCoverage::of(own, is_checked, proven),
        )
    });
    Coverage {
        suites: suites.collect(),
        examples: examples(entries),
    }
}

/// What the golden transcripts show, for the suites of these entries.
fn examples(entries: &[&Entry]) -> BTreeMap<String, ExampleCoverage> {
    suites(entries)
        .into_iter()
        .filter_map(|suite| Some((suite.name().to_owned(), examples::coverage(suite.name())?)))
        .collect()
}

fn human(coverage: &Coverage, entries: &[&Entry], proven: &BTreeSet<String>) -> String {
    let suites: Vec<_> = coverage
        .suites
        .iter()
        .map(|(name, counts)| (name.clone(), counts.clone()))
        .collect();
    let areas = Catalogue::embedded().areas().iter().map(|area| {
        let own = entries
            .iter()
            .copied()
            .filter(|entry| entry.prefix() == area.prefix);
        (
            area.name.clone(),
            SuiteCoverage::of(own, is_checked, proven),
        )
    });
    let areas: Vec<_> = areas
        .filter(|(_, counts)| counts.requirements > 0)
        .collect();
    let mut text = format!("{}\n{}", render("area", &areas), render("suite", &suites));
    if !coverage.examples.is_empty() {
        text.push('\n');
        text.push_str(&examples::render(&coverage.examples));
    }
    text
}
