//! The real program: what it prints where, and how it ends.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test may panic as the test may"
)]

mod adapters;
mod catalogue;
#[cfg(unix)]
mod clients;
mod hostile;
#[cfg(unix)]
mod interrupted;
#[cfg(unix)]
mod mock;
mod offline;
#[cfg(unix)]
mod recorded;
mod runs;
#[cfg(unix)]
mod served;
#[cfg(unix)]
mod servers;
mod support;
mod usage;
