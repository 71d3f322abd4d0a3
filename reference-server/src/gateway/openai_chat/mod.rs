//! The wire of OpenAI Chat Completions, and of the many services that imitate it.
//!
//! `request` writes requests, `answer` puts answers together, `calls` the pieces of tool calls. What
//! compatible services do otherwise is accepted: missing, null and equal indexes of tool calls, missing
//! ids, arguments as objects, content as a list, thinking under four names or within tags, usage in the
//! choice, an error inside the stream.
//!
//! A stream is complete when it gave a reason to finish; `[DONE]` alone says nothing. Of several choices
//! the first one that comes is the answer.
//!
//! Source: [`turnwire_spec::llm::openai_chat`]; seed 000, lines 1155-1183.

mod answer;
mod calls;
mod request;

use std::collections::BTreeSet;

use super::continuation::Origin;
use super::http::Outgoing;
use super::read::Reader;
use super::refusal::Fault;
use super::wires::Asking;

/// What a service of this family does in its own way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dialect {
    /// As OpenAI.
    Plain,
    /// Gemini's compatible endpoint.
    Gemini,
}

pub(super) fn outgoing(asking: &Asking<'_>) -> Result<Outgoing, Fault> {
    write(asking, Dialect::Plain)
}

pub(super) fn reader(origin: Origin, taken: BTreeSet<String>) -> impl Reader {
    read(origin, taken, Dialect::Plain)
}

/// Writes a request of this family.
pub(super) fn write(asking: &Asking<'_>, dialect: Dialect) -> Result<Outgoing, Fault> {
    let key = asking.key.map(|key| asking.endpoint.openai_key(key));
    Ok(Outgoing {
        path: "/chat/completions".to_owned(),
        headers: key.transpose()?.into_iter().collect(),
        body: request::body(asking, dialect)?.into(),
    })
}

/// Reads an answer of this family.
pub(super) fn read(origin: Origin, taken: BTreeSet<String>, dialect: Dialect) -> impl Reader {
    answer::Answer::new(origin, taken, dialect)
}
