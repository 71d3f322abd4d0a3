//! The requirement catalogue: every statement that a target can be held to.
//!
//! - [`entry`]: one requirement and its words;
//! - [`rule`] and [`rewrite`]: its executable halves, what a check demands and what a saboteur breaks;
//! - [`relation`]: the forms of a rule that compare two places of one conversation;
//! - [`messages`]: the forms of both for messages of a WebSocket or a channel of lines;
//! - [`load`]: from text to a catalogue, with places in the errors;
//! - [`select`]: finding entries by id, area or a misspelt name;
//! - [`suite`]: which suite an area belongs to; [`revision`]: sets that are frozen by name;
//! - [`faults`]: what a catalogue must hold to be of use.
//!
//! The data is in `requirements/*.yaml`, one file an area, and embedded. Judging is not done here:
//! checks read an entry's `rule`, saboteurs its `rewrite`.

pub mod entry;
pub mod faults;
pub mod load;
pub mod messages;
mod references;
pub mod relation;
pub mod revision;
pub mod rewrite;
pub mod rule;
pub mod select;
pub mod suite;

pub use entry::{Binds, Entry, Level, Observe};
pub use faults::Fault;
pub use load::LoadError;
pub use revision::Revision;
pub use rewrite::Rewrite;
pub use rule::Rule;
pub use select::UnknownSelection;
pub use suite::{Suite, suite_of};

/// One file of the catalogue.
#[derive(Clone, Debug)]
pub struct Area {
    /// The name of the file without its extension: `covel-subscription`.
    pub name: String,
    /// What its ids begin with: `COV-SUB`. Empty when the area has no entries.
    pub prefix: String,
    /// Its entries, in the order of the document that they are taken from.
    pub entries: Vec<Entry>,
}

/// Every area, in the order of the file names.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    areas: Vec<Area>,
}

impl Catalogue {
    /// Every area, in the order of the file names.
    #[must_use]
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// Every entry, area after area.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.areas.iter().flat_map(|area| &area.entries)
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.areas.iter().map(|area| area.entries.len()).sum()
    }

    /// Whether there is no entry at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.areas.iter().all(|area| area.entries.is_empty())
    }
}
