//! Requirement sets that are frozen by name.
//!
//! The catalogue moves on: entries are added, and statements get clearer. A revision is a set of requirements of one suite
//! as it stood at one time, so that a maintainer can hold a server to the same set next year. It names each requirement
//! with a fingerprint of what it asked for; a statement that has changed since is a fault of the catalogue
//! ([`Revision::faults`]), which needs a new id, not a new text.
//!
//! The data is in `revisions/*.yaml`, one file a revision, and embedded. A file is written once and never again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::{Catalogue, Entry, Suite};

/// A requirement set that is frozen by name.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// The suite.
    pub suite: Suite,
    /// Its name, unique in its suite, such as `2026-11`.
    pub name: String,
    /// What it is the set of, in one line.
    pub about: String,
    /// The fingerprint of each requirement, by id.
    pub requirements: BTreeMap<String, String>,
}

/// Where the catalogue no longer says what a revision froze.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Thawed {
    /// The requirement is gone.
    #[error("{revision}: {id} is gone; a frozen requirement stays in the catalogue")]
    Gone {
        /// Suite and name of the revision.
        revision: String,
        /// Requirement id.
        id: String,
    },
    /// It asks for something else.
    #[error("{revision}: {id} asks for something else; give the new statement an id of its own")]
    Changed {
        /// Suite and name of the revision.
        revision: String,
        /// Requirement id.
        id: String,
    },
}

impl Revision {
    /// All revisions of this version, suite after suite, by name.
    ///
    /// # Panics
    ///
    /// Never in a version that passed its tests: they read the same bytes.
    #[must_use]
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Revision>> = LazyLock::new(|| {
            let text = include_str!(concat!(env!("OUT_DIR"), "/revisions.json"));
            match serde_json::from_str(text) {
                Ok(revisions) => revisions,
                Err(error) => panic!("the embedded revisions are broken: {error}"),
            }
        });
        &ALL
    }

    /// The revisions of a suite.
    pub fn of(suite: Suite) -> impl Iterator<Item = &'static Self> {
        Self::all()
            .iter()
            .filter(move |revision| revision.suite == suite)
    }

    /// The requirements of a suite as they stand in a catalogue, under a name.
    #[must_use]
    pub fn freeze(catalogue: &Catalogue, suite: Suite, name: &str, about: &str) -> Self {
        let entries = catalogue.suite(suite);
        Self {
            suite,
            name: name.to_owned(),
            about: about.to_owned(),
            requirements: entries
                .map(|entry| (entry.id.clone(), fingerprint(entry)))
                .collect(),
        }
    }

    /// Whether it has a requirement.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.requirements.contains_key(id)
    }

    /// Where a catalogue no longer says what was frozen.
    #[must_use]
    pub fn faults(&self, catalogue: &Catalogue) -> Vec<Thawed> {
        let thawed = |(id, frozen): (&String, &String)| {
            let (id, revision) = (id.clone(), format!("{} {}", self.suite, self.name));
            match catalogue.get(&id) {
                None => Some(Thawed::Gone { revision, id }),
                Some(entry) if fingerprint(entry) != *frozen => {
                    Some(Thawed::Changed { revision, id })
                }
                Some(_) => None,
            }
        };
        self.requirements.iter().filter_map(thawed).collect()
    }

    /// The text of its file.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut text =
            String::from("# Frozen: written once by `cargo xtask freeze`, and never again.\n");
        // Writing to a text cannot fail.
        let _ = writeln!(text, "suite: {}", self.suite);
        let _ = writeln!(text, "name: {:?}", self.name);
        let _ = writeln!(text, "about: {:?}", self.about);
        let _ = writeln!(text, "requirements:");
        for (id, fingerprint) in &self.requirements {
            let _ = writeln!(text, "  {id}: {fingerprint:?}");
        }
        text
    }
}

/// What a requirement asks for, in 16 hexadecimal digits: its statement without regard to line breaks, whom it binds, and
/// with which force. FNV-1a, 64 bits.
#[must_use]
pub fn fingerprint(entry: &Entry) -> String {
    let words = entry.statement.split_whitespace();
    let mark = [entry.level.name(), entry.binds.name()];
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for word in mark.into_iter().chain(words) {
        for byte in word.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_frozen_still_says_the_same() {
        let faults = Revision::all()
            .iter()
            .flat_map(|it| it.faults(Catalogue::embedded()));
        let told: Vec<String> = faults.map(|fault| fault.to_string()).collect();
        assert_eq!(told, [""; 0]);
        assert!(Revision::of(Suite::ChatWs).next().is_some());
    }

    #[test]
    fn a_statement_that_changes_or_goes_is_told() {
        let text = |statement: &str| {
            format!(
                "- id: CWS-001\n  title: t\n  level: must\n  binds: server\n  seed: a.txt:1-1\n  statement: {statement}\n  observe: wire\n  check: c\n  sabotage: s\n"
            )
        };
        let read = |text: &str| Catalogue::from_yaml([("chat-ws.yaml", text)]).unwrap();
        let before = read(&text("It holds."));
        let frozen = Revision::freeze(&before, Suite::ChatWs, "r", "all");
        assert_eq!(frozen.faults(&before), []);
        assert_eq!(frozen.faults(&read(&text(">-\n    It\n    holds."))), []);
        let changed = frozen.faults(&read(&text("It may hold.")));
        assert!(matches!(changed.as_slice(), [Thawed::Changed { id, .. }] if id == "CWS-001"));
        let gone = frozen.faults(&read("[]"));
        assert!(matches!(gone.as_slice(), [Thawed::Gone { .. }]));
    }

    #[test]
    fn a_file_reads_back() {
        let frozen = Revision::freeze(Catalogue::embedded(), Suite::ChatWs, "r", "all \"of\" it");
        let read: Revision = serde_saphyr::from_str(&frozen.to_yaml()).unwrap();
        assert_eq!(read, frozen);
    }
}
