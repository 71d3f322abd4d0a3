//! The `session-update` protocol: runtime events of agent sessions, in one wrapper, over lines of JSON.
//!
//! - [`message`]: the three kinds of message: request, response, event; [`request_id`]: what joins two of them;
//! - [`events`]: what an event can be about, with its class and its members;
//! - [`methods`]: what a client can ask, with parameters and results;
//! - [`errors`]: how a request is refused; [`limits`]: sizes and periods.
//!
//! The seed names the wrapper, its four members, the two classes and some event types; the shape of the messages
//! and the methods are those of the public sources of the protocol, where they do not contradict the seed. A
//! table row says which of the two it stands on, so that a check accuses nobody over what the seed leaves open.
//!
//! Not here: who sends what when (the server's face), and what must hold (the catalogue).
//!
//! Source: seed 002.

pub mod errors;
pub mod events;
pub mod limits;
pub mod message;
pub mod methods;
pub mod request_id;

pub use errors::ErrorType;
pub use events::{Class, EVENTS, EventMeta, Lifetime, event};
pub use message::{Durability, Envelope, ErrorBody, Request, Response, UPDATE};
pub use methods::{METHODS, MethodMeta, method};
pub use request_id::RequestId;

use crate::covel::meta::MakeSchema;
use schemars::JsonSchema as _;

/// The version of the protocol, as `initialize` answers it. Public.
pub const PROTOCOL_VERSION: &str = "2";

/// Prefix of the names of this protocol's schemas.
pub const SCHEMA_PREFIX: &str = "session-update";

/// The schemas of this protocol: messages, the members of each event, parameters and results of each method.
///
/// Names are `session-update.request`, `session-update.event.turn_started`, `session-update.params.session.new`
/// (the method's slashes are dots) and so on.
#[must_use]
pub fn schemas() -> Vec<(String, MakeSchema)> {
    let named = |name: &str| format!("{SCHEMA_PREFIX}.{name}");
    let messages: [(String, MakeSchema); 3] = [
        (named("request"), Request::json_schema),
        (named("response"), Response::json_schema),
        (named("envelope"), Envelope::json_schema),
    ];
    let events = EVENTS
        .iter()
        .filter_map(|meta| Some((named(&format!("event.{}", meta.name)), meta.members?)));
    let of_method = |meta: &'static MethodMeta| {
        let name = meta.name.replace('/', ".");
        let params = meta
            .params
            .map(|make| (named(&format!("params.{name}")), make));
        [
            params,
            Some((named(&format!("result.{name}")), meta.result)),
        ]
    };
    messages
        .into_iter()
        .chain(events)
        .chain(METHODS.iter().flat_map(of_method).flatten())
        .collect()
}
