//! Reference clients: known good testees, and templates for authors of clients.
//!
//! - [`session_update`]: a client of the `session-update` protocol.

pub mod session_update;
