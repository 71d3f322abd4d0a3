//! What a server sends.
//!
//! Members that may be absent are left out, those that may be null are always there.
//!
//! Source: seed 004, lines 11-18 and 33-49.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::notice::TurnNotice;

/// Where a turn frame belongs.
///
/// Source: seed 004, lines 11-18.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    /// The project, [`SCRATCH`](super::SCRATCH) outside any.
    pub project_slug: String,
    /// The same once more, under its old name.
    pub target: String,
    /// The session; null until a new chat's id is known.
    #[schemars(required)]
    pub session_id: Option<String>,
    /// What `chat:cancel` takes; null until it is known.
    #[schemars(required)]
    pub job_id: Option<String>,
    /// Number of the frame in its turn, from 0.
    pub seq: u64,
}

/// Where a frame outside a turn's numbers belongs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The project.
    pub project_slug: String,
    /// The same once more.
    pub target: String,
    /// The session.
    pub session_id: String,
}

/// A frame of a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", content = "payload")]
#[non_exhaustive]
pub enum ServerFrame {
    /// Whether a session runs a turn.
    #[serde(rename = "chat:active")]
    Active(Active),
    /// A piece of the assistant's text.
    #[serde(rename = "chat:response")]
    Response(Response),
    /// A tool use begins.
    #[serde(rename = "chat:tool_start")]
    ToolStart(ToolStart),
    /// A tool use has its result.
    #[serde(rename = "chat:tool_call")]
    ToolCall(ToolCall),
    /// An assistant message is over.
    #[serde(rename = "chat:message_boundary")]
    Boundary(Routing),
    /// The turn is over.
    #[serde(rename = "chat:complete")]
    Complete(Complete),
    /// A frame or a turn could not be taken.
    #[serde(rename = "chat:error")]
    Error(Refusal),
    /// What was asked for is gone from the buffer.
    #[serde(rename = "chat:resync")]
    Resync(Place),
    /// The queue was taken.
    #[serde(rename = "chat:queued_flushed")]
    QueuedFlushed(QueuedFlushed),
    /// A background task was killed.
    #[serde(rename = "chat:killed_task")]
    KilledTask(KilledTask),
    /// The turn dead-ended.
    #[serde(rename = "chat:notice")]
    Notice(Notice),
    /// The answer to `ping`.
    #[serde(rename = "pong")]
    Pong,
}

/// `chat:active`. Source: seed 004, line 36.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Active {
    /// The project.
    pub project_slug: String,
    /// The same once more.
    pub target: String,
    /// The session.
    pub session_id: String,
    /// The job that runs; null until it is known.
    #[schemars(required)]
    pub job_id: Option<String>,
    /// Whether a turn runs.
    pub running: bool,
}

/// `chat:response`. Source: seed 004, line 37.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// Where it belongs.
    #[serde(flatten)]
    pub routing: Routing,
    /// The piece of text.
    pub chunk: String,
}

/// `chat:tool_start`. Source: seed 004, line 38.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStart {
    /// Where it belongs.
    #[serde(flatten)]
    pub routing: Routing,
    /// Name of the tool.
    pub tool_name: String,
    /// One line on what it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_summary: Option<String>,
    /// Id of this use of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// The tool use from within which it is used; null at the top.
    #[schemars(required)]
    pub parent_tool_use_id: Option<String>,
}

/// `chat:tool_call`. Source: seed 004, line 39.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Where it belongs.
    #[serde(flatten)]
    pub routing: Routing,
    /// Name of the tool.
    pub tool_name: String,
    /// One line on what it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_summary: Option<String>,
    /// What it gave, or why it failed.
    pub output: String,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// Id of the use that this completes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
}

/// `chat:complete`. Source: seed 004, line 41.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Complete {
    /// Where it belongs.
    #[serde(flatten)]
    pub routing: Routing,
    /// Whether the turn came to its end without an error.
    pub success: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// The `usage` of `chat:complete`, in tokens.
///
/// Source: seed 004, line 49.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Input that no cache had.
    pub input_tokens: u64,
    /// Output.
    pub output_tokens: u64,
    /// Input that was read from a cache.
    pub cache_read_tokens: u64,
    /// Input that was written into a cache.
    pub cache_creation_tokens: u64,
    /// All input: the three of the four above that are not output.
    pub context_tokens: u64,
    /// Most that the model takes.
    pub context_limit: u64,
}

impl Usage {
    /// The usage of these counts, for a model with this limit.
    #[must_use]
    pub fn of(input: u64, output: u64, read: u64, creation: u64, limit: u64) -> Self {
        Self {
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: read,
            cache_creation_tokens: creation,
            context_tokens: input.saturating_add(read).saturating_add(creation),
            context_limit: limit,
        }
    }
}

/// `chat:error`. Source: seed 004, line 42.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// The project, or [`NO_SLUG`](super::NO_SLUG).
    pub project_slug: String,
    /// The same once more.
    pub target: String,
    /// Why.
    pub error: String,
}

/// `chat:queued_flushed`. Source: seed 004, line 44.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedFlushed {
    /// Where it belongs.
    #[serde(flatten)]
    pub place: Place,
    /// What is said now; absent where a copy is only stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// `chat:killed_task`. Source: seed 004, line 45.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KilledTask {
    /// Where it belongs.
    #[serde(flatten)]
    pub place: Place,
    /// What was killed.
    pub summary: String,
    /// When, in ISO 8601; tells repetitions.
    pub timestamp: String,
}

/// `chat:notice`. Source: seed 004, line 46.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// Where it belongs.
    #[serde(flatten)]
    pub routing: Routing,
    /// Why the turn dead-ended.
    pub notice: TurnNotice,
}

impl Place {
    /// A session of a project.
    #[must_use]
    pub fn of(slug: &str, session: &str) -> Self {
        Self {
            project_slug: slug.to_owned(),
            target: slug.to_owned(),
            session_id: session.to_owned(),
        }
    }
}

impl Refusal {
    /// A refusal in this project.
    #[must_use]
    pub fn of(slug: &str, error: impl Into<String>) -> Self {
        Self {
            project_slug: slug.to_owned(),
            target: slug.to_owned(),
            error: error.into(),
        }
    }
}

impl ServerFrame {
    /// The text of the message that carries it.
    #[must_use]
    pub fn to_text(&self) -> String {
        // Members are texts and numbers, which always serialize.
        serde_json::to_value(self)
            .unwrap_or_else(|_| json!({ "type": "pong" }))
            .to_string()
    }

    /// The frame as JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }
}
