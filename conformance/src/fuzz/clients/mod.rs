//! Fuzzing of clients: what a scripted server sends is wrong in form, out of order, cut anywhere, or breaks off.
//!
//! ```text
//! seed, number --> Case (steps, plain data) --> play: a client, a scripted server, a finale --> judged
//!                     ^                                                                          |
//!                     +----------- shrink: fewer steps and changes that fail the same <----------+
//! ```
//!
//! - [`case`]: a case and its steps; [`frames`]: the valid frames that steps begin with; [`bytes`]: a frame or a line on
//!   the wire;
//! - [`covel`] and [`stream`]: playing a case of `covel-sse` and of `sse`, and what must hold in the end; [`chat`] and
//!   [`updates`]: of `chat-ws` and `session-update`, whose clients take `steps`;
//! - [`run`]: many cases side by side; [`plant`]: faults in front of the reference client, `faulty`: what they do;
//!   [`report`]: what comes out; [`saved`]: cases in transcripts.
//!
//! A client may throw away what it does not understand, and it may read everything again. It must not end, it must not
//! stay away, and after it was told to read again it must show what the server has, and no more.

pub mod bytes;
pub mod case;
pub mod chat;
pub mod covel;
mod faulty;
pub mod frames;
pub mod plant;
pub mod report;
pub mod run;
pub mod saved;
mod steps;
pub mod stream;
#[cfg(test)]
mod tests;
pub mod updates;

pub use case::{Case, Kind};
pub use run::{ClientFuzz, Launcher, fuzz, prove};

/// Name of the scenario in the header of a case's transcript.
pub const SCENARIO: &str = "client-fuzz";
