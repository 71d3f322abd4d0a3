//! What a model answers: pieces while it writes, and the whole.

use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use turnwire_spec::covel::payloads::models::Usage;

use super::continuation::Continuation;
use super::message::ToolRequest;
use super::request::Target;

/// One piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// Text for the reader.
    Text(String),
    /// Thinking; never shown as text.
    Reasoning(String),
    /// A piece of a tool call. It shows that the model is at work; calls are taken from the reply.
    ToolCall(ToolPiece),
    /// The answer is complete.
    Done(Box<ModelReply>),
}

/// A piece of a tool call.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolPiece {
    /// Counts the calls of the answer in the order in which they began, from 0.
    pub index: usize,
    /// The provider's id of the call, in the piece with which it came; it may never come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool, or what is new of its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is new of the arguments' text.
    pub arguments: String,
}

/// A complete answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// The service's id of an answer that it keeps, where another request can go on from it.
    pub stored: Option<String>,
    /// All text.
    pub text: String,
    /// All thinking that can be read.
    pub reasoning: String,
    /// What the model said in place of an answer; not part of the text.
    pub refusal: Option<String>,
    /// The tool calls, in the order of the answer.
    pub tool_calls: Vec<ToolRequest>,
    /// What the provider counted.
    pub usage: TokenUsage,
    /// Why the model stopped.
    pub finish: FinishReason,
    /// The answer as JSON, when a schema was asked for; it satisfies the schema.
    pub object: Option<Value>,
    /// What the service wants back with the results of the calls.
    pub continuation: Option<Continuation>,
    /// Who answered, after fallback.
    pub target: Target,
}

/// What a call cost, in tokens. What the provider did not say is unknown, not zero.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenUsage {
    /// All input, cache reads and writes included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// All output, thinking included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the input: read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// Of the input: written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_input_tokens: Option<u64>,
    /// Of the output: thinking. Never more than the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// What the provider calls the total, whether it is the sum or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
}

impl TokenUsage {
    /// As traces have it, where the unknown is zero.
    #[must_use]
    pub fn counted(&self) -> Usage {
        Usage {
            input_tokens: self.input_tokens.unwrap_or_default(),
            output_tokens: self.output_tokens.unwrap_or_default(),
            cached_input_tokens: self.cached_input_tokens,
            cache_write_input_tokens: self.cache_write_input_tokens,
        }
    }

    /// Whether the provider said nothing.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// The cost of two answers that are one.
    pub(super) fn plus(self, other: Self) -> Self {
        let add = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        Self {
            input_tokens: add(self.input_tokens, other.input_tokens),
            output_tokens: add(self.output_tokens, other.output_tokens),
            cached_input_tokens: add(self.cached_input_tokens, other.cached_input_tokens),
            cache_write_input_tokens: add(
                self.cache_write_input_tokens,
                other.cache_write_input_tokens,
            ),
            reasoning_tokens: add(self.reasoning_tokens, other.reasoning_tokens),
            total_tokens: add(self.total_tokens, other.total_tokens),
        }
    }
}

/// Why a model stopped.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum FinishReason {
    /// It had said all.
    #[default]
    Stop,
    /// It reached its output limit.
    Length,
    /// It calls tools.
    ToolCalls,
    /// The provider withheld text, or the model refused.
    ContentFilter,
    /// Something else, in the provider's words.
    Other(String),
}

impl FinishReason {
    /// Its name in traces.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool-calls",
            Self::ContentFilter => "content-filter",
            Self::Other(name) => name,
        }
    }
}
