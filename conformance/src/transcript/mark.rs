//! Marks: notes of the harness that say something of one exchange, such as `cut on purpose: #12`.
//!
//! A mark is a few words, the number of the exchange, and perhaps more behind a colon. Whoever leaves one has it as a
//! constant, so that it is read as it was written.

use super::{ExchangeId, Fact, Transcript};

/// The words of a mark.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeMark(pub &'static str);

impl ExchangeMark {
    /// The note that marks an exchange.
    pub fn of(self, exchange: ExchangeId) -> String {
        format!("{}: #{}", self.0, exchange.0)
    }

    /// The note that marks an exchange, and says more.
    pub fn because(self, exchange: ExchangeId, why: &str) -> String {
        format!("{}: {why}", self.of(exchange))
    }

    /// The exchanges that are marked so, in the order of their notes.
    pub fn exchanges(self, transcript: &Transcript) -> impl Iterator<Item = ExchangeId> {
        let number = move |fact: &Fact| {
            let Fact::Note(text) = fact else { return None };
            let rest = text.strip_prefix(self.0)?.strip_prefix(": #")?;
            rest.split(':').next()?.parse().ok().map(ExchangeId)
        };
        let facts = transcript.entries.iter().map(|entry| &entry.fact);
        facts.filter_map(number)
    }
}
