//! The wire of Anthropic Messages.
//!
//! `request` writes requests in the order that the service insists on: the results of a turn's calls in one
//! message, before anything else, and signed thinking back where it was. `answer` puts answers together,
//! block by block.
//!
//! A stream is complete at `message_stop`, when a reason to stop has come before. Events, blocks and deltas
//! of unknown types are passed over, as the service demands of its clients.
//!
//! Source: [`turnwire_spec::llm::anthropic_messages`]; seed 000, lines 534 and 1160-1163.

mod answer;
mod request;

use std::collections::BTreeSet;

use http::{HeaderName, HeaderValue};
use turnwire_spec::llm::anthropic_messages::VERSION;

use super::continuation::Origin;
use super::http::{Outgoing, secret};
use super::read::Reader;
use super::refusal::Fault;
use super::wires::Asking;

const VERSION_HEADER: HeaderName = HeaderName::from_static("anthropic-version");
const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

pub(super) fn outgoing(asking: &Asking<'_>) -> Result<Outgoing, Fault> {
    let mut headers = vec![(VERSION_HEADER, HeaderValue::from_static(VERSION))];
    if let Some(key) = asking.key {
        headers.push(secret(KEY_HEADER, key)?);
    }
    let versioned = asking.endpoint.path.ends_with("/v1");
    Ok(Outgoing {
        path: if versioned {
            "/messages"
        } else {
            "/v1/messages"
        }
        .to_owned(),
        headers,
        body: request::body(asking).into(),
    })
}

pub(super) fn reader(origin: Origin, taken: BTreeSet<String>) -> impl Reader {
    answer::Answer::new(origin, taken)
}
