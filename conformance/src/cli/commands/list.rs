//! `turnwire list`: what there is to run and to select.

use turnwire_spec::catalogue::{self, Catalogue, Entry, Revision};

use super::print;
use crate::{
    cli::{
        args::{ListArgs, Listed},
        console::Console,
        exit::CliError,
        select,
    },
    report::coverage::is_waived,
    report::listing::{ListedArea, ListedRequirement, ListedScenario, ListedSuite, Listing},
    suites::{self, Suite},
};

pub(in crate::cli) fn run(args: &ListArgs, console: &Console) -> Result<u8, CliError> {
    print(console, args.print, || listing(args), Listing::render)
}

fn listing(args: &ListArgs) -> Result<Listing, CliError> {
    let entries = select::entries(&args.select)?;
    let mut listing = Listing::default();
    match args.what {
        Listed::Requirements => {
            listing.requirements = Some(entries.into_iter().map(requirement).collect())
        }
        Listed::Scenarios => listing.scenarios = Some(scenarios(&entries)),
        Listed::Areas => listing.areas = Some(areas(&entries)),
        Listed::Suites => listing.suites = Some(suites_of(&entries)),
    }
    Ok(listing)
}

/// The suite with scenarios and coded checks, if there is one of this id.
fn runnable(id: catalogue::Suite) -> Option<&'static Suite> {
    suites::SUITES.iter().find(|suite| suite.id == id)
}

/// Whether a check judges the requirement.
pub(super) fn is_checked(entry: &Entry) -> bool {
    runnable(Catalogue::embedded().suite_of(entry)).is_some_and(|suite| suite.judges(entry))
}

fn requirement(entry: &Entry) -> ListedRequirement {
    let catalogue = Catalogue::embedded();
    ListedRequirement {
        id: entry.id.clone(),
        title: entry.title.clone(),
        suite: catalogue.suite_of(entry).name().to_owned(),
        area: catalogue
            .area_of(entry)
            .map(|area| area.name.clone())
            .unwrap_or_default(),
        level: entry.level.name().to_owned(),
        binds: entry.binds.name().to_owned(),
        observe: entry.observe.name().to_owned(),
        checked: is_checked(entry),
        waived: is_waived(entry),
    }
}

/// The scenarios that may show one of the requirements.
fn scenarios(entries: &[&'static Entry]) -> Vec<ListedScenario> {
    let mut listed = Vec::new();
    for suite in suites::SUITES {
        let own = entries
            .iter()
            .filter(|entry| Catalogue::embedded().is_in(entry, suite.id));
        let shown: std::collections::BTreeSet<&str> = own
            .flat_map(|entry| suite.scenarios_of(entry))
            .map(|scenario| scenario.name)
            .collect();
        listed.extend(
            suite
                .scenarios()
                .filter(|scenario| shown.contains(scenario.name))
                .map(|scenario| ListedScenario {
                    name: scenario.name.to_owned(),
                    suite: suite.name().to_owned(),
                    about: scenario.about.to_owned(),
                    needs: scenario
                        .needs
                        .iter()
                        .map(|need| (*need).to_owned())
                        .collect(),
                    variant: scenario.variant.map(str::to_owned),
                }),
        );
    }
    listed
}

fn areas(entries: &[&Entry]) -> Vec<ListedArea> {
    let areas = Catalogue::embedded().areas().iter().map(|area| {
        let own: Vec<_> = entries
            .iter()
            .filter(|entry| entry.prefix() == area.prefix)
            .collect();
        let checked = own.iter().filter(|entry| is_checked(entry)).count();
        ListedArea {
            name: area.name.clone(),
            prefix: area.prefix.clone(),
            requirements: own.len(),
            checked,
        }
    });
    areas.filter(|area| area.requirements > 0).collect()
}

fn suites_of(entries: &[&Entry]) -> Vec<ListedSuite> {
    let suites = catalogue::Suite::ALL.iter().map(|suite| {
        let own: Vec<_> = entries
            .iter()
            .filter(|entry| Catalogue::embedded().is_in(entry, *suite))
            .collect();
        ListedSuite {
            name: suite.name().to_owned(),
            requirements: own.len(),
            checked: own.iter().filter(|entry| is_checked(entry)).count(),
            scenarios: runnable(*suite)
                .map(|suite| suite.scenarios().count())
                .unwrap_or_default(),
            revisions: Revision::of(*suite)
                .map(|revision| revision.name.clone())
                .collect(),
        }
    });
    suites.filter(|suite| suite.requirements > 0).collect()
}
