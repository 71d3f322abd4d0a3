//! What a service wants back of its own answers.
//!
//! Whoever keeps a conversation carries a [`Continuation`] along and does not look into it. The wires
//! write a [`Record`] into it and read it back: native entries go out again only when protocol, model and
//! address are those that made them. What is no record of this gateway is carried as well, and not read.
//!
//! Source: seed 000, lines 1173-1183 and 1202-1209.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use turnwire_spec::llm::Wire;

/// Opaque: carried from an answer to the assistant message of its tool calls, and never shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Continuation(pub Value);

/// The source of thinking that was written into the text.
pub(super) const THINK: &str = "think";

/// What is inside the continuations that this gateway makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    /// The wire.
    pub(super) protocol: Wire,
    /// The model that answered.
    pub(super) model: String,
    /// A digest of the base URL: addresses are kept nowhere.
    pub(super) address: String,
    /// Where thinking was: `reasoning`, `reasoning_content`, `think`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    /// Thinking that can be read and may be sent back; never that of `think` tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<String>,
    /// Whether an entry has a signature.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) signed: bool,
    /// The provider's own entries, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) entries: Vec<Value>,
}

/// Who is asked, as far as a continuation depends on it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Origin {
    pub(super) protocol: Wire,
    pub(super) model: String,
    pub(super) address: String,
}

impl Origin {
    pub(super) fn new(protocol: Wire, model: &str, base_url: &str) -> Self {
        let digest = Sha256::digest(base_url.trim_end_matches('/').as_bytes());
        Self {
            protocol,
            model: model.to_owned(),
            address: digest
                .iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        }
    }

    /// A record of an answer from here.
    pub(super) fn record(&self) -> Record {
        Record {
            protocol: self.protocol,
            model: self.model.clone(),
            address: self.address.clone(),
            source: None,
            reasoning: None,
            signed: false,
            entries: Vec::new(),
        }
    }

    /// Whether this record was made here.
    pub(super) fn made(&self, record: &Record) -> bool {
        record.protocol == self.protocol
            && record.model == self.model
            && record.address == self.address
    }
}

impl Record {
    pub(super) fn read(continuation: Option<&Continuation>) -> Option<Self> {
        Self::deserialize(&continuation?.0).ok()
    }

    pub(super) fn seal(&self) -> Option<Continuation> {
        serde_json::to_value(self).ok().map(Continuation)
    }
}
