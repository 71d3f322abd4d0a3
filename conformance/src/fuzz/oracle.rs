//! Which requirements a transcript breaks: all checks of the suite that bind a server, the model among them.

use turnwire_spec::catalogue::{Binds, Entry};

use crate::{run::judge, suites::Suite, transcript::Transcript, verdict::Evidence};

/// Requirements about periods and about how soon something comes. Cases run side by side and say nothing about times.
/// (Fewer than [`judge::is_timed`] names: most checks that compare arrivals are what the fuzzer lives on.)
const TIMED: &[&str] = &[
    "COV-OVW-006",
    "COV-OVW-022",
    "COV-SUB-011",
    "COV-SUB-018",
    "COV-SUB-019",
    "COV-SUB-171",
];

/// The requirements that a case is judged by.
#[derive(Clone, Debug)]
pub struct Oracle {
    suite: &'static Suite,
    entries: Vec<&'static Entry>,
}

/// A requirement that a transcript breaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// Requirement id.
    pub id: &'static str,
    /// The first evidence.
    pub evidence: Evidence,
}

impl Oracle {
    /// All requirements of the suite that have a check and bind a server, those about times left out: cases run side by
    /// side, and say nothing about times.
    pub fn of(suite: &'static Suite) -> Self {
        let entries = suite
            .entries(Some(Binds::Server))
            .filter(|entry| suite.judges(entry) && !TIMED.contains(&entry.id.as_str()))
            .collect();
        Self { suite, entries }
    }

    /// The requirements that it judges by.
    pub fn entries(&self) -> &[&'static Entry] {
        &self.entries
    }

    /// The requirements that the transcript breaks, in catalogue order; none when all is well.
    pub fn judge(&self, transcript: &Transcript) -> Vec<Broken> {
        judge::faults(self.suite, &self.entries, transcript)
            .into_iter()
            .map(|(entry, evidence)| Broken {
                id: &entry.id,
                evidence,
            })
            .collect()
    }
}
