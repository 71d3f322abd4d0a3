//! Calls to language models: one trait, one file a wire.
//!
//! The engine speaks in the types of this file; a wire ([`openai_chat`]) translates them to what a
//! provider understands and back. Retries are the caller's business: a wire tries once and says
//! whether trying again can help.
//!
//! Source: seed 000, lines 1193-1211 (what counts as activity), 1213-1220 and 1286-1313.

mod http;
pub mod openai_chat;

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwire_spec::covel::payloads::execution::FailureTarget;
pub use turnwire_spec::covel::payloads::models::Usage;
use turnwire_spec::covel::vocabulary::{ERROR_KIND_MISSING_KEY, ERROR_KIND_UNKNOWN};

pub use self::http::BadBaseUrl;

/// Reaches models.
#[async_trait]
pub trait Gateway: Send + Sync + 'static {
    /// Which model answers for this role.
    fn target(&self, slot: &str) -> Target;

    /// Sends one request and returns as soon as the provider has accepted it.
    ///
    /// Dropping the returned stream cuts the call off.
    ///
    /// # Errors
    ///
    /// [`GatewayError`] when the provider refused, could not be reached, or was not in time.
    async fn call(&self, request: ModelRequest) -> Result<Box<dyn ModelStream>, GatewayError>;
}

/// The answer to one request while it comes in.
#[async_trait]
pub trait ModelStream: Send {
    /// The next piece, or `None` after [`ModelEvent::Done`].
    ///
    /// # Errors
    ///
    /// [`GatewayError`] when the answer breaks off; nothing follows it.
    async fn next(&mut self) -> Option<Result<ModelEvent, GatewayError>>;
}

/// One model: identities only, never keys or addresses.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The provider.
    pub provider: String,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl From<Target> for FailureTarget {
    fn from(target: Target) -> Self {
        Self {
            provider: target.provider,
            model: target.model,
        }
    }
}

/// One request to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// Who is asked.
    pub target: Target,
    /// The conversation.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// Whether it may, must, or must not call them.
    pub tool_choice: ToolChoice,
    /// Whether the answer comes in pieces.
    pub streaming: bool,
}

/// Whether the model calls tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// It must.
    Required,
    /// It must not.
    None,
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(
    tag = "role",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum ChatMessage {
    /// The host's instructions.
    System {
        /// The text.
        content: String,
    },
    /// The player.
    User {
        /// The text.
        content: String,
    },
    /// The model.
    Assistant {
        /// The text; may be empty beside tool calls.
        content: String,
        /// The tool calls.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolRequest>,
    },
    /// The result of a tool call.
    Tool {
        /// Which call.
        tool_call_id: String,
        /// The result, or the error, as text.
        content: String,
    },
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub json_schema: Value,
}

/// One tool call that a model asks for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequest {
    /// The provider's id for it.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// The arguments, as the text that the model wrote.
    pub arguments: String,
}

/// One piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// Text for the reader.
    Text(String),
    /// Thinking; never shown as text.
    Reasoning(String),
    /// A piece of the arguments of a tool call whose id and name are known. The whole call comes with the reply.
    ToolInput {
        /// The provider's id of the call.
        id: String,
        /// The tool.
        name: String,
        /// The piece, as the provider sent it; empty when it only opened the call.
        delta: String,
    },
    /// The answer is complete.
    Done(ModelReply),
}

/// A complete answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// All text.
    pub text: String,
    /// All thinking.
    pub reasoning: String,
    /// The tool calls, in the order of their indexes.
    pub tool_calls: Vec<ToolRequest>,
    /// What the provider counted; zero when it said nothing.
    pub usage: Usage,
    /// Why the model stopped.
    pub finish: FinishReason,
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
    /// The provider withheld text.
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

/// How long a provider may be silent. Periods are real time, after any scaling.
#[derive(Clone, Copy, Debug)]
pub struct GatewayTimeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// Until the first sign of the answer.
    pub first: Duration,
    /// Between two signs after that.
    pub idle: Duration,
}

impl Default for GatewayTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first: Duration::from_secs(60),
            idle: Duration::from_secs(60),
        }
    }
}

/// Why a model gave no answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct GatewayError {
    /// The category.
    pub kind: ErrorKind,
    /// What the provider said, or what went wrong on the way. Holds no key and no address.
    pub message: String,
    /// Who failed.
    pub target: Target,
    /// The HTTP status, when there was one.
    pub status: Option<u16>,
    /// How long the provider asks to wait before the next try.
    pub retry_after: Option<Duration>,
}

impl GatewayError {
    /// Whether the same request can succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::RateLimited
                | ErrorKind::Unavailable
                | ErrorKind::Network
                | ErrorKind::Timeout
        )
    }
}

/// The categories of model failures. The set is open: clients accept others.
///
/// Source: seed 000, line 184, names `missing_key` and `unknown`; the others are ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ErrorKind {
    /// A remote provider had no key, so nothing was sent.
    MissingKey,
    /// The key was refused.
    Unauthorized,
    /// Too many requests.
    RateLimited,
    /// The provider refused the request as such.
    BadRequest,
    /// The provider has no such model.
    NotFound,
    /// The provider failed.
    Unavailable,
    /// The connection could not be made or broke.
    Network,
    /// The provider was silent for too long.
    Timeout,
    /// The answer was not what the wire promises.
    BadAnswer,
    /// Anything else.
    Unknown,
}

impl ErrorKind {
    /// Its name on the wire (`errorKind`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MissingKey => ERROR_KIND_MISSING_KEY,
            Self::Unauthorized => "unauthorized",
            Self::RateLimited => "rate_limited",
            Self::BadRequest => "bad_request",
            Self::NotFound => "model_not_found",
            Self::Unavailable => "provider_unavailable",
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::BadAnswer => "bad_answer",
            Self::Unknown => ERROR_KIND_UNKNOWN,
        }
    }
}
