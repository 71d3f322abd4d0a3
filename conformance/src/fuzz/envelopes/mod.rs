//! Envelope fuzzing of servers: requests that are wrong in form, on every endpoint and for every kind of frame.
//!
//! ```text
//! seed, number --> Case (a valid request and what is done to it) --> Peer::put --> answer --> judge
//!                      ^                                                             |
//!                      +---- shrink: the same fault with fewer changes <-------------+  state before = state after?
//! ```
//!
//! - [`case`]: a case as plain data; [`change`]: what is done to a request; [`body`]: what is done to its JSON;
//! - [`sample`]: valid requests, made from the schemas of `spec/`; [`draft`]: a request as bytes;
//! - [`peer`]: the target as one of [`http`], [`lines`], [`chat`]; [`wire`]: bytes of HTTP, [`frames`]: of WebSocket;
//! - [`judge`]: the oracle: a documented refusal, or an acceptance of what the tables allow;
//! - [`plant`]: faults that the fuzzer has to find; [`run`]: many cases side by side; [`report`]: what comes out;
//! - [`saved`]: a case that fails, as a transcript, and back.
//!
//! The oracle of every case: it is answered within [`ANSWER_WITHIN`]; a refusal has the documented shape and no 5xx
//! outside the documented ones; what is accepted is valid by the table; what is refused leaves the authoritative
//! state as it was; the valid requests that read this state are answered; no thread panics; memory is bounded.
//!
//! Not here: clients that lose their connections, which is the rest of [`fuzz`](super).

use std::time::Duration;

pub mod body;
pub mod case;
pub mod change;
pub mod chat;
pub mod draft;
pub mod frames;
pub mod http;
pub mod judge;
pub mod lines;
pub mod peer;
pub mod plant;
pub mod report;
pub mod run;
pub mod sample;
pub mod saved;
#[cfg(test)]
mod tests;
pub mod wire;

pub use case::Case;
pub use run::{EnvelopePlan, fuzz, prove};

/// Name of the scenario in the header of a saved case.
pub const SCENARIO: &str = "envelope-fuzz";

/// How long an answer may take.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How much the memory of the process may grow, in bytes, from the first thousand cases on.
pub const MEMORY: u64 = 256 << 20;

/// The protocols whose servers can be fuzzed so.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Face {
    /// `covel-sse`: HTTP.
    Covel,
    /// `session-update`: lines of JSON.
    SessionUpdate,
    /// `chat-ws`: a WebSocket, and the routes beside it.
    ChatWs,
}

impl Face {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Covel, Self::SessionUpdate, Self::ChatWs];

    /// Name of the suite.
    pub fn suite(self) -> &'static str {
        match self {
            Self::Covel => "covel-sse",
            Self::SessionUpdate => "session-update",
            Self::ChatWs => "chat-ws",
        }
    }

    /// The face of a suite; `None` when it has no server with envelopes of its own.
    pub fn of(suite: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|face| face.suite() == suite)
    }
}
