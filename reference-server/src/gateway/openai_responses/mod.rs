//! The wire of OpenAI Responses.
//!
//! `request` writes requests, `answer` puts answers together, `item` one item of an answer.
//!
//! An answer is a list of items, and a stream fills them by their places; what a stream leaves out is
//! taken from the events that repeat it whole. A stream is complete with `response.completed`,
//! `response.incomplete` or `response.failed`.
//!
//! Source: [`turnwire_spec::llm::openai_responses`]; seed 000, lines 533, 1159 and 1163-1173.

mod answer;
mod item;
mod request;

use std::collections::BTreeSet;

use super::continuation::Origin;
use super::http::Outgoing;
use super::read::Reader;
use super::refusal::Fault;
use super::wires::Asking;

pub(super) fn outgoing(asking: &Asking<'_>) -> Result<Outgoing, Fault> {
    let key = asking.key.map(|key| asking.endpoint.openai_key(key));
    Ok(Outgoing {
        path: "/responses".to_owned(),
        headers: key.transpose()?.into_iter().collect(),
        body: request::body(asking).into(),
    })
}

pub(super) fn reader(origin: Origin, taken: BTreeSet<String>) -> impl Reader {
    answer::Answer::new(origin, taken)
}
