//! Turnwire.

pub mod sse;
