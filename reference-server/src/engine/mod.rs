//! The engine: sessions, turns and the commit boundary. It decides; it knows no wire and no face.
//!
//! - [`ids`], [`model`]: what it is about;
//! - [`ports`]: what it needs from others (publisher, action stream, clock, ids);
//! - [`hooks`], [`tools`], [`proposals`]: what plugins take part in;
//! - [`error`]: why it refuses.

pub mod error;
pub mod hooks;
pub mod ids;
pub mod model;
pub mod ports;
pub mod proposals;
pub mod tools;

pub use error::EngineError;
