//! The chat face over real sockets: limits and abuse, and one session through all faces at once.

#![expect(clippy::unwrap_used, reason = "a test ends where its expectation does")]

mod abuse;
mod faces;
mod queue;
mod support;
