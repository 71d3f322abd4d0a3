//! The chat face over real sockets: limits and abuse, and one session through all faces at once.

mod abuse;
mod faces;
mod queue;
mod support;
