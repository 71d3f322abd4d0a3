//! Reconnect fuzzing of servers: random conversations of clients that lose their connections and come back.
//!
//! ```text
//! seed, number --> Case (steps, plain data) --> Protocol::play over a Stage --> transcript
//!                     ^                                                            |
//!                     +---- shrink: the same faults with fewer steps <---- Oracle: checks and model
//! ```
//!
//! - [`step`]: a case: turns, commits, drops at any byte, reconnects with any cursor, races, restarts;
//! - [`random`]: the numbers of one case, from the seed of the run and the number of the case;
//! - [`protocol`]: what a suite brings: cases, a player, planted faults; [`covel`] is `covel-sse`,
//!   [`session_update`] is `session-update`, [`chat_ws`] is `chat-ws`;
//! - [`oracle`]: which requirements a transcript breaks; [`field`]: instances of the target and one played case;
//! - [`fair`]: whether a case that fails had the time that it needed;
//! - [`shrink`]: smaller cases that break the same; [`normal`]: transcripts without ids and times, to be compared;
//! - [`envelopes`]: requests that are wrong in form, a fuzzer of its own; [`clients`]: what servers may do to clients,
//!   another one; [`hunt`] is what these two share;
//! - [`run`]: many cases side by side; [`prove`]: whether each planted fault is found; [`report`]: what comes out.
//!
//! The model of each protocol (what a client that keeps to it must hold) is a pure function of a transcript and bound
//! to requirements like any check; it judges transcripts of cases only ([`is_case`]), since the player marks
//! there which client sent what. So a saved counterexample is judged offline by exactly what found it.

pub mod chat_ws;
pub mod clients;
pub mod covel;
pub mod envelopes;
mod fair;
pub mod field;
pub mod hunt;
pub mod normal;
pub mod oracle;
pub mod planted;
pub mod protocol;
pub mod prove;
pub mod random;
#[cfg(test)]
mod repeat_tests;
pub mod report;
pub mod run;
#[cfg(test)]
mod run_tests;
pub mod session_update;
pub mod shrink;
pub mod step;

pub use protocol::{Abilities, PlantedFault, Protocol};
pub use run::{FuzzError, FuzzEvent, FuzzPlan, fuzz};
pub use step::{Case, Step};

/// Name of the scenario in the header of a case's transcript.
pub const SCENARIO: &str = "reconnect-fuzz";

/// Whether a transcript was recorded of a case. A file that is checked has its own name in place of the scenario's, so
/// the steps in its header tell, too.
pub fn is_case(transcript: &crate::transcript::Transcript) -> bool {
    transcript.header.scenario == SCENARIO || field::case_of(transcript).is_some()
}

/// The protocols that can be fuzzed.
pub static PROTOCOLS: &[&dyn Protocol] = &[
    &covel::CovelSse,
    &session_update::SessionUpdate,
    &chat_ws::ChatWs,
];

/// The protocol of this suite, when it can be fuzzed.
pub fn protocol(suite: &str) -> Option<&'static dyn Protocol> {
    PROTOCOLS
        .iter()
        .copied()
        .find(|protocol| protocol.suite() == suite)
}
