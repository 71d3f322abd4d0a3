//! The payloads of all events, one type an event, grouped as in the seed.
//!
//! - [`narrative`], [`execution`], [`state`], [`data`], [`jobs`], [`plugins`]: what players see;
//! - [`tools`], [`models`], [`hooks`], [`internals`], [`agents`]: diagnostics of turns;
//! - [`conceal`]: what is left of a diagnostic when a runtime hides its content.
//!
//! Members are written as in the seed, with `?` for a member that may be absent. Objects are open:
//! a server may send more members, except where the seed says that there are no others. A member
//! whose type no source tells is a [`Value`].

pub mod agents;
pub mod conceal;
pub mod data;
pub mod execution;
pub mod hooks;
pub mod internals;
pub mod jobs;
pub mod models;
pub mod narrative;
pub mod plugins;
pub mod state;
pub mod tools;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::envelope::Payload;
pub use super::shape;

/// A type that is the payload of one kind of event.
pub trait EventPayload: Serialize + JsonSchema {
    /// The event's name.
    const EVENT: &'static str;

    /// The payload as it goes into a frame: members in the order of their declaration.
    fn payload(&self) -> Payload {
        match serde_json::to_value(self) {
            Ok(Value::Object(members)) => members,
            // Payloads are objects with text keys, which always serialize to an object.
            _ => Payload::new(),
        }
    }
}
