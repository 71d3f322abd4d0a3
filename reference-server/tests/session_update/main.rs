//! The session-update face over real sockets, and over pipes as a child has them.

#![expect(clippy::unwrap_used, reason = "a test ends where its expectation does")]

mod conversation;
mod storage;
mod support;
