//! Freezes the requirements of a suite under a name.
//!
//! A frozen set is written once: there is no way here to write one again. What it holds is told in
//! [`turnwire_spec::catalogue::revision`].

use turnwire_spec::catalogue::{Catalogue, Revision, Suite};

use crate::{ChoreError, generate::write, root};

/// Writes `spec/revisions/SUITE-NAME.yaml`.
///
/// # Errors
///
/// [`ChoreError::NotFrozen`] when there is no such suite, when the name is no plain word, or taken;
/// [`ChoreError::File`] when the file cannot be written.
pub(crate) fn run(suite: &str, name: &str, about: &str) -> Result<(), ChoreError> {
    let not_frozen = |why: String| Err(ChoreError::NotFrozen(why));
    let Some(suite) = Suite::ALL.iter().find(|known| known.name() == suite) else {
        return not_frozen(format!("no suite is named {suite:?}"));
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if name.is_empty() || !name.chars().all(is_plain) {
        return not_frozen(format!(
            "{name:?} is not made of letters, digits, dashes and dots"
        ));
    }
    let path = root().join(format!("spec/revisions/{suite}-{name}.yaml"));
    if path.exists() || Revision::of(*suite).any(|revision| revision.name == name) {
        return not_frozen(format!(
            "{suite} has a revision {name:?}, and what is frozen stays"
        ));
    }
    let revision = Revision::freeze(Catalogue::embedded(), *suite, name, about);
    write(&path, &revision.to_yaml())
}
