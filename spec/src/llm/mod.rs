//! The wires of LLM providers: what travels between a client and a model service.
//!
//! One module a wire, each with the request, the plain answer, the stream and the error body as
//! serde types. The types are lenient readers and plain writers: a member that services leave out or
//! send as null is an `Option`, and where a wire is open, unknown members are kept in `extra`, so
//! that reading and writing again loses nothing that matters.
//!
//! Not here: the event-stream framing (`sse`), judging what a peer sent (the mock providers verify
//! requests), and the mapping to one model of text, calls and usage (the gateway).

pub mod anthropic_messages;
pub mod azure;
pub mod events;
pub mod gemini;
pub mod openai_chat;
pub mod openai_responses;
pub mod schemas;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use events::{EVENTS, WireEvent};

/// Members of a JSON object that a type does not name, in the order in which they came.
pub type Extra = serde_json::Map<String, serde_json::Value>;

/// Paths of the wires behind the version, as templates. Those below `/models/` name a model, and for Gemini
/// a method.
pub const PATHS: &[&str] = &[
    "/chat/completions",
    "/responses",
    "/responses/input_tokens",
    "/messages",
    "/messages/count_tokens",
    "/models",
    "/models/:id",
    "/models/:method",
];

/// A protocol between a client and a model service.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// OpenAI Chat Completions, `POST /v1/chat/completions`.
    OpenaiChat,
    /// OpenAI Responses, `POST /v1/responses`.
    OpenaiResponses,
    /// Anthropic Messages, `POST /v1/messages`.
    AnthropicMessages,
    /// Gemini native, `POST /v1beta/models/{model}:generateContent` and its streaming sibling.
    Gemini,
    /// Gemini's OpenAI-compatible endpoint, `POST /v1beta/openai/chat/completions`.
    GeminiOpenai,
}

impl Wire {
    /// Every wire, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
        Self::GeminiOpenai,
    ];

    /// The name in scripts, suites and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::AnthropicMessages => "anthropic-messages",
            Self::Gemini => "gemini",
            Self::GeminiOpenai => "gemini-openai",
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no wire.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{0:?} is no wire; there are openai-chat, openai-responses, anthropic-messages, gemini and gemini-openai"
)]
pub struct UnknownWire(pub String);

impl FromStr for Wire {
    type Err = UnknownWire;

    fn from_str(text: &str) -> Result<Self, UnknownWire> {
        Self::ALL
            .into_iter()
            .find(|wire| wire.as_str() == text)
            .ok_or_else(|| UnknownWire(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wire_is_read_back_from_its_name() {
        for wire in Wire::ALL {
            assert_eq!(wire.as_str().parse(), Ok(wire));
            assert_eq!(serde_json::to_value(wire).unwrap(), wire.as_str());
        }
        assert!("openai".parse::<Wire>().is_err());
    }
}
