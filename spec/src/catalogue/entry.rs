//! One requirement: what must hold, where it is stated, how it is judged and what breaks it.
//!
//! The format is described for authors in `requirements/FORMAT.md`.

use serde::{Deserialize, Serialize};

use super::rewrite::Rewrite;
use super::rule::Rule;
use super::suite::Suite;
use crate::seeds::SeedRange;
use crate::words::words;

/// One normative statement of a protocol.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Area prefix and three digits, `COV-SUB-102`; unique in the catalogue.
    pub id: String,
    /// Three to nine words; unique in the catalogue.
    pub title: String,
    /// How much it binds.
    pub level: Level,
    /// Who has to behave so.
    pub binds: Binds,
    /// The lines of a seed document that state it. An entry without them names its `source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<SeedRange>,
    /// Where it is stated outside the seed documents, usually a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What must hold, in one sentence.
    pub statement: String,
    /// Where it can be seen.
    pub observe: Observe,
    /// How it is decided: the stimulus, then what is compared.
    pub check: String,
    /// The smallest fault that must turn the check red.
    pub sabotage: String,
    /// The data of a generic check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// The data of a generic saboteur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// The ids of neighbours that its sabotage turns red as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// The scenarios that show it, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenario: Vec<String>,
    /// The capability that a target must have, or the feature that an adapter must name, for it to be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// Why no black-box check of it can exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiver: Option<String>,
    /// The Rust test that covers it, by the name of its function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The first requirement set that has it.
    #[serde(default = "first_revision")]
    pub revision: u32,
    /// The suite that it belongs to, where the area alone does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<Suite>,
    /// Other suites in which it holds as well, and is judged again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds_in: Vec<Suite>,
}

const fn first_revision() -> u32 {
    1
}

impl Entry {
    /// The id without its number: `COV-SUB` of `COV-SUB-102`.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.id
            .rsplit_once('-')
            .map_or(self.id.as_str(), |(prefix, _)| prefix)
    }

    /// The number at the end of the id, or `None` when it is not three digits.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        let (_, digits) = self.id.rsplit_once('-')?;
        let three = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
        three.then(|| digits.parse().ok()).flatten()
    }

    /// The lines of the seed that state it, each with its number; empty without a seed.
    pub fn seed_text(&self) -> impl Iterator<Item = (u32, &'static str)> {
        self.seed.iter().flat_map(SeedRange::lines)
    }

    /// Whether it can be seen from outside: on the wire, in a client's state, or by a later query.
    #[must_use]
    pub fn is_observable(&self) -> bool {
        self.observe != Observe::Library
    }
}

words! {
    /// How much a requirement binds.
    "level" enum Level {
        /// Whoever behaves otherwise does not speak the protocol.
        Must = "must",
        /// Whoever behaves otherwise has a reason.
        Should = "should",
        /// Both ways are right.
        May = "may",
    }
}

words! {
    /// Who has to behave as a requirement says.
    "side" enum Binds {
        /// A server of the protocol.
        Server = "server",
        /// A client of the protocol.
        Client = "client",
        /// A program that embeds the library of execution and commit.
        Host = "host",
        /// Code that calls the wire of an LLM provider.
        Adapter = "adapter",
    }
}

words! {
    /// Where a requirement can be seen.
    "place of observation" enum Observe {
        /// In the bytes of a connection.
        Wire = "wire",
        /// In what a client shows or stores.
        ClientState = "client-state",
        /// Through a later query.
        Store = "store",
        /// Only through a call in process.
        Library = "library",
    }
}
