//! The messages: each is one JSON object on a line of its own.
//!
//! ```json
//! {"kind":"request","request_id":"c-1","method":"session/subscribe","params":{"session_id":"s-1"}}
//! {"kind":"response","request_id":"c-1","result":{"ok":true,"subscribed":["s-1"]}}
//! {"kind":"event","method":"session/update","sequence":1,"durability":"durable","session_id":"s-1","turn_id":"t-1","event":{"type":"turn_started"}}
//! ```
//!
//! A line ends with LF; a CR before it is not part of the message.
//!
//! Source: seed 002, lines 3, 11, 16 and 22-25; the rest is public.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::words::words;

/// The method of every runtime event.
///
/// Source: seed 002, line 11.
pub const UPDATE: &str = "session/update";

words! {
    /// What a message is.
    "message kind" enum Kind {
        /// A client asks.
        Request = "request",
        /// The server answers.
        Response = "response",
        /// The server tells.
        Event = "event",
    }
}

words! {
    /// The two classes of events. That there are two is the seed's, the words are public.
    ///
    /// Source: seed 002, lines 16 and 25.
    "durability" enum Durability {
        /// Key progress that can be had again after a reconnect.
        Durable = "durable",
        /// For immediate display; never told again.
        Incremental = "incremental",
    }
}

/// What a client asks.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Request {
    /// `request`.
    #[schemars(schema_with = "request_kind")]
    pub kind: Kind,
    /// The client's name for the request: a string that is not blank, or a number.
    #[schemars(schema_with = "request_id")]
    pub request_id: Value,
    /// What is asked.
    #[schemars(length(min = 1))]
    pub method: String,
    /// With what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
}

/// What the server answers: `result` or `error`, never both.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(extend("oneOf" = [{ "required": ["result"] }, { "required": ["error"] }]))]
pub struct Response {
    /// `response`.
    #[schemars(schema_with = "response_kind")]
    pub kind: Kind,
    /// That of the request; null for a line that could not be read.
    pub request_id: Value,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub result: Option<Value>,
    /// Why nothing came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// Why a request is refused.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ErrorBody {
    /// A word; see [`ErrorType`](super::ErrorType).
    #[serde(rename = "type")]
    pub kind: String,
    /// For people.
    pub message: String,
}

/// The one wrapper of every runtime event.
///
/// Source: seed 002, lines 3, 11, 16 and 22-25.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Envelope {
    /// `event`.
    #[schemars(schema_with = "event_kind")]
    pub kind: Kind,
    /// `session/update`.
    #[schemars(schema_with = "update")]
    pub method: String,
    /// Place in the order in which events were sent on this connection; no cursor of the conversation. It starts
    /// anew with each connection; responses do not count.
    #[schemars(schema_with = "number")]
    pub sequence: u64,
    /// Whether it is recoverable key progress.
    pub durability: Durability,
    /// The session concerned.
    pub session_id: String,
    /// The turn that it belongs to; empty on task updates.
    pub turn_id: String,
    /// The event, as the kernel produced it; see [`events`](super::events).
    #[schemars(schema_with = "any_event")]
    pub event: Map<String, Value>,
}

fn constant(text: &str) -> schemars::Schema {
    schemars::json_schema!({ "const": text })
}

fn request_kind(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    constant("request")
}

fn response_kind(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    constant("response")
}

fn event_kind(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    constant("event")
}

fn update(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    constant(UPDATE)
}

/// The seed says that it is a number and no more.
fn number(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "number" })
}

fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({})
}

fn request_id(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "anyOf": [{ "type": "string", "pattern": "\\S" }, { "type": "number" }],
    })
}

/// Of any event the sources say that it has a type and an identity.
fn any_event(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "properties": {
            "type": { "type": "string", "minLength": 1 },
            "event_id": { "type": "string", "minLength": 1 },
        },
        "required": ["type", "event_id"],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_envelope_has_its_seven_members_in_the_order_of_the_table() {
        let event = json!({ "type": "turn_started", "event_id": "e" });
        let envelope = Envelope {
            kind: Kind::Event,
            method: UPDATE.to_owned(),
            sequence: 7,
            durability: Durability::Durable,
            session_id: "s".into(),
            turn_id: "t".into(),
            event: event.as_object().unwrap().clone(),
        };

        assert_eq!(
            serde_json::to_string(&envelope).unwrap(),
            r#"{"kind":"event","method":"session/update","sequence":7,"durability":"durable","session_id":"s","turn_id":"t","event":{"type":"turn_started","event_id":"e"}}"#
        );
    }
}
