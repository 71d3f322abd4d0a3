//! What a client sends.
//!
//! A payload names the project as `projectSlug` or as `target`; where both stand, `projectSlug` counts.
//! Members that nobody knows are ignored.
//!
//! Source: seed 004, lines 20 and 22-31.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;

/// A frame of a client.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientFrame {
    /// Attaches the socket to a session.
    Subscribe(Subscribe),
    /// Says something, and so starts a turn.
    Send(Send),
    /// Runs a slash command.
    Command(Command),
    /// Ends a running turn.
    Cancel(Cancel),
    /// Fills or clears the queue of a session.
    SetQueue(SetQueue),
    /// Drives a session again whose background task was killed.
    Continue(Continue),
    /// Asks for a `pong`.
    Ping,
}

/// `chat:subscribe`. Source: seed 004, line 25.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscribe {
    /// The project.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub project_slug: Option<String>,
    /// The project, by its old name.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub target: Option<String>,
    /// The session; not empty.
    pub session_id: String,
    /// Whether missed frames are asked for; not when absent.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub want_replay: Option<bool>,
    /// The last `seq` that the client has; -1 when absent, which is before the first.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<f64>")]
    pub last_seq: Option<Number>,
}

/// `chat:send`. Source: seed 004, line 26.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Send {
    /// The project.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub project_slug: Option<String>,
    /// The project, by its old name.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub target: Option<String>,
    /// The session; a new one when absent or null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text_or_null")]
    pub session_id: Option<String>,
    /// What is said; may be empty.
    pub message: String,
    /// Whether the project's documents go with a new chat.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub preload_context: Option<bool>,
    /// The model for this turn.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub model: Option<String>,
}

/// `chat:command`. Source: seed 004, line 27.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// The project.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub project_slug: Option<String>,
    /// The project, by its old name.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub target: Option<String>,
    /// The session; a new one when absent or null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text_or_null")]
    pub session_id: Option<String>,
    /// The command as it was typed, with its slash and its arguments; not empty.
    pub command: String,
}

/// `chat:cancel`. Source: seed 004, line 28.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancel {
    /// The job that ends.
    pub job_id: String,
}

/// `chat:set_queue`. Source: seed 004, line 29.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetQueue {
    /// The project.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub project_slug: Option<String>,
    /// The project, by its old name.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub target: Option<String>,
    /// The session; without one nothing happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text_or_null")]
    pub session_id: Option<String>,
    /// What waits; clears the queue when absent, null or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text_or_null")]
    pub text: Option<String>,
    /// When it was written, in milliseconds of the client's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "number_or_null")]
    pub ts: Option<Number>,
}

/// `chat:continue`. Source: seed 004, line 30.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Continue {
    /// The project.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub project_slug: Option<String>,
    /// The project, by its old name.
    #[serde(
        default,
        deserialize_with = "not_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub target: Option<String>,
    /// The session; not empty.
    pub session_id: String,
}

/// A member that may be absent and is not null.
fn not_null<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(from).map(Some)
}

/// A member that may be absent and may be null: `oneOf`, which no transform reads as "absent".
fn text_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "oneOf": [{ "type": "string" }, { "type": "null" }] })
}

fn number_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "oneOf": [{ "type": "number" }, { "type": "null" }] })
}

macro_rules! slugs {
    ($($name:ident),+) => {
        $(impl $name {
            /// The project that it names.
            #[must_use]
            pub fn slug(&self) -> Option<&str> {
                self.project_slug.as_deref().or(self.target.as_deref())
            }
        })+
    };
}

slugs!(Subscribe, Send, Command, SetQueue, Continue);
