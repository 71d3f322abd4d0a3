//! The native wire of Gemini.
//!
//! `request` writes requests, `answer` puts answers together. Both look at signatures: they stay on the
//! parts on which they came, and go back only to the model and the address that made them. A conversation
//! that is signed by another model or address of this protocol is refused before anything is sent.
//!
//! An answer is complete with a reason to finish, or with the reason why the prompt was blocked. An answer
//! that is to be continued goes on in another request.
//!
//! Not here: embeddings, generated images and sound, uploads, the service's own tools.
//!
//! Source: [`turnwire_spec::llm::gemini`]; seed 000, lines 535, 548-568, 1161 and 1204-1207.

mod answer;
mod request;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use http::HeaderName;

use super::continuation::Origin;
use super::http::{Outgoing, secret};
use super::read::Reader;
use super::refusal::Fault;
use super::wires::Asking;

const KEY_HEADER: HeaderName = HeaderName::from_static("x-goog-api-key");

pub(super) fn outgoing(asking: &Asking<'_>) -> Result<Outgoing, Fault> {
    let model = asking.model();
    let model = escaped(model.strip_prefix("models/").unwrap_or(model));
    let version = if asking.endpoint.path.is_empty() {
        "/v1beta"
    } else {
        ""
    };
    let method = if asking.request.streaming {
        "streamGenerateContent?alt=sse"
    } else {
        "generateContent"
    };
    let key = asking.key.map(|key| secret(KEY_HEADER, key)).transpose()?;
    Ok(Outgoing {
        path: format!("{version}/models/{model}:{method}"),
        headers: key.into_iter().collect(),
        body: request::body(asking)?.into(),
    })
}

pub(super) fn reader(origin: Origin, taken: BTreeSet<String>) -> impl Reader {
    answer::Answer::new(origin, taken)
}

/// A name as a part of a path.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
