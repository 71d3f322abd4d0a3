//! The Covel face over real loopback sockets, against a model that says what it is told to.

#![expect(clippy::unwrap_used, reason = "a test ends where its expectation does")]

mod access;
mod actions;
mod fixtures;
mod life;
mod queries;
mod subscriptions;
mod support;
