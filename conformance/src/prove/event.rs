//! What is told while a proof goes on.

use std::time::Duration;

use super::Verified;

/// Something happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ProveEvent {
    /// The conformant run is over; so many requirements are sabotaged now.
    Sabotaging {
        /// Requirements that have a saboteur and are green.
        sabotages: usize,
    },
    /// A requirement was sabotaged, and judged.
    Sabotaged(Verified),
    /// The proof is over.
    Finished {
        /// Requirements that are proven.
        proven: usize,
        /// Time that it took.
        took: Duration,
    },
}
