//! Arguments resolved against the catalogue, the suites and the scenarios.

use turnwire_spec::catalogue::{self, Binds, Catalogue, Entry, Revision};

use super::{args::SelectArgs, exit::CliError};
use crate::{
    scenarios::Scenario,
    suites::{self, Suite},
};

/// The suite that runs when none is named, by itself or by a requirement.
pub(super) const DEFAULT_SUITE: &str = "covel-sse";

/// What a run is about.
#[derive(Clone, Debug)]
pub(super) struct Selected {
    pub(super) suite: &'static Suite,
    pub(super) entries: Vec<&'static Entry>,
    /// The scenarios that were named, if any were.
    pub(super) scenarios: Option<Vec<&'static Scenario>>,
}

/// What a run is about.
///
/// # Errors
///
/// [`CliError::Usage`] for a name that does not exist, with the nearest one, and when nothing is left.
pub(super) fn for_run(args: &SelectArgs, scenarios: &[String]) -> Result<Selected, CliError> {
    let catalogue = Catalogue::embedded();
    let first = named(&args.requirements)?
        .first()
        .and_then(|id| catalogue.get(id));
    let implied = first.map_or(DEFAULT_SUITE, |entry| catalogue.suite_of(entry).name());
    let name = args.suite.as_deref().unwrap_or(implied);
    suite_named(name)?;
    let suite = suites::find(name).map_err(|_| {
        let runnable: Vec<&str> = suites::SUITES.iter().map(Suite::name).collect();
        CliError::Usage(format!(
            "suite {name} has no scenarios yet; there are scenarios for {}",
            runnable.join(", ")
        ))
    })?;
    let entries = entries(&SelectArgs {
        suite: Some(name.to_owned()),
        ..args.clone()
    })?;
    let named: Result<Vec<_>, _> = scenarios.iter().map(|name| suite.scenario(name)).collect();
    let named = named.map_err(usage)?;
    Ok(Selected {
        suite,
        entries,
        scenarios: (!named.is_empty()).then_some(named),
    })
}

/// The requirements that are selected, in the order of the catalogue.
///
/// # Errors
///
/// [`CliError::Usage`] for a name that does not exist, with the nearest one, and when nothing is left.
pub(super) fn entries(args: &SelectArgs) -> Result<Vec<&'static Entry>, CliError> {
    let catalogue = Catalogue::embedded();
    let suite = args.suite.as_deref().map(suite_named).transpose()?;
    let binds = args.binds.as_deref().map(side_named).transpose()?;
    let named = named(&args.requirements)?;
    let revisions = args
        .revision
        .as_deref()
        .map(|name| revisions_named(name, suite))
        .transpose()?;
    let wanted = |entry: &&Entry| {
        suite.is_none_or(|suite| catalogue.is_in(entry, suite))
            && revisions
                .as_ref()
                .is_none_or(|sets| sets.iter().any(|set| set.has(&entry.id)))
            && binds.is_none_or(|binds| entry.binds == binds)
            && (args.requirements.is_empty() || named.contains(&entry.id.as_str()))
    };
    let entries: Vec<_> = catalogue.entries().filter(wanted).collect();
    if entries.is_empty() {
        return Err(CliError::Usage(format!(
            "no requirement is selected by {}",
            asked(args)
        )));
    }
    Ok(entries)
}

/// The ids of the requirements that these texts name.
///
/// # Errors
///
/// [`CliError::Usage`] for a text that names none, with the nearest name.
pub(super) fn named(texts: &[String]) -> Result<Vec<&'static str>, CliError> {
    let mut named = Vec::new();
    for text in texts {
        let found = Catalogue::embedded().select(text).map_err(usage)?;
        named.extend(found.into_iter().map(|entry| entry.id.as_str()));
    }
    Ok(named)
}

/// The requirement of this id.
///
/// # Errors
///
/// [`CliError::Usage`] when there is none, with the nearest name.
pub(super) fn entry(id: &str) -> Result<&'static Entry, CliError> {
    let catalogue = Catalogue::embedded();
    match catalogue.get(id) {
        Some(entry) => Ok(entry),
        None => match catalogue.select(id) {
            Ok(found) => Err(CliError::Usage(format!(
                "{id} names {} requirements; one is explained at a time, see `turnwire list --requirement {id}`",
                found.len()
            ))),
            Err(error) => Err(usage(error)),
        },
    }
}

/// The frozen sets of this name, of one suite or of all.
fn revisions_named(
    name: &str,
    suite: Option<catalogue::Suite>,
) -> Result<Vec<&'static Revision>, CliError> {
    let all = Revision::all().iter();
    let all: Vec<&Revision> = all
        .filter(|revision| suite.is_none_or(|suite| revision.suite == suite))
        .collect();
    let found: Vec<_> = all.iter().copied().filter(|it| it.name == name).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let known: Vec<String> = all
        .iter()
        .map(|revision| format!("{} {}", revision.suite, revision.name))
        .collect();
    let hint = if known.is_empty() {
        "none is frozen".to_owned()
    } else {
        format!("there are {}", known.join(", "))
    };
    Err(CliError::Usage(format!(
        "no revision is named {name:?}; {hint}"
    )))
}

fn suite_named(name: &str) -> Result<catalogue::Suite, CliError> {
    word("suite", name, catalogue::Suite::ALL, |suite| suite.name())
}

fn side_named(name: &str) -> Result<Binds, CliError> {
    word("side", name, Binds::ALL, |side| side.name())
}

fn word<T: Copy>(
    what: &str,
    text: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, CliError> {
    if let Some(found) = all.iter().find(|word| name(**word) == text) {
        return Ok(*found);
    }
    let likeness = |word: &str| strsim::normalized_damerau_levenshtein(text, word);
    let nearest = all
        .iter()
        .map(|word| name(*word))
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let hint = match nearest.filter(|nearest| likeness(nearest) >= 0.5) {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => format!(
            "there are {}",
            all.iter()
                .map(|word| name(*word))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    Err(CliError::Usage(format!(
        "no {what} is named {text:?}; {hint}"
    )))
}

/// The filters, as they were typed.
fn asked(args: &SelectArgs) -> String {
    let suite = args.suite.iter().map(|name| format!("--suite {name}"));
    let revision = args
        .revision
        .iter()
        .map(|name| format!("--revision {name}"));
    let requirements = args
        .requirements
        .iter()
        .map(|id| format!("--requirement {id}"));
    let binds = args.binds.iter().map(|side| format!("--binds {side}"));
    let all: Vec<String> = suite
        .chain(revision)
        .chain(requirements)
        .chain(binds)
        .collect();
    all.join(" ")
}

fn usage(error: impl std::fmt::Display) -> CliError {
    CliError::Usage(error.to_string())
}
