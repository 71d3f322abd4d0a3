//! What a client can ask: the methods, their parameters and their results.
//!
//! The seed names none: interfaces "subscribe", and after a reconnect the durable events are rebuilt. The names
//! are those of the public sources. Two points follow the seed where the public sources differ:
//! `session/subscribe` has the durable events of the session rebuilt and sent in the usual wrapper before it is
//! answered, and `session/replay` gives what is stored (messages, tool records, turn states), not events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::events::{Task, TurnStatus};
use crate::covel::meta::MakeSchema;

/// What is known about one method.
#[derive(Clone, Copy, Debug)]
pub struct MethodMeta {
    /// Its name.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// The schema of its parameters; `None` when it takes none.
    pub params: Option<MakeSchema>,
    /// The schema of its result.
    pub result: MakeSchema,
}

const fn row(
    name: &'static str,
    params: Option<MakeSchema>,
    result: MakeSchema,
    about: &'static str,
) -> MethodMeta {
    MethodMeta {
        name,
        about,
        params,
        result,
    }
}

/// Every method of our own server, in reading order.
pub const METHODS: &[MethodMeta] = &[
    row(
        "initialize",
        None,
        Initialized::json_schema,
        "opens the connection; all but `ping` need it first",
    ),
    row("ping", None, Done::json_schema, "answers at once"),
    row(
        "session/new",
        Some(NewSession::json_schema),
        SessionInfo::json_schema,
        "makes a session and subscribes to it",
    ),
    row(
        "session/list",
        Some(ListSessions::json_schema),
        SessionList::json_schema,
        "the sessions, newest first",
    ),
    row(
        "session/delete",
        Some(OfSession::json_schema),
        Deleted::json_schema,
        "deletes a session",
    ),
    row(
        "session/subscribe",
        Some(OfSession::json_schema),
        Subscribed::json_schema,
        "rebuilds the durable events of a session, then sends its events as they come",
    ),
    row(
        "session/unsubscribe",
        Some(OfSession::json_schema),
        Subscribed::json_schema,
        "ends a subscription",
    ),
    row(
        "session/prompt",
        Some(Prompt::json_schema),
        Prompted::json_schema,
        "plays a turn; answered when it has ended, however it ended",
    ),
    row(
        "session/cancel",
        Some(Cancel::json_schema),
        Done::json_schema,
        "stops the running turn; answered at once",
    ),
    row(
        "session/replay",
        Some(OfSession::json_schema),
        Replayed::json_schema,
        "what is stored of a session",
    ),
    row(
        "shutdown",
        None,
        Done::json_schema,
        "ends the connection once its turns have ended; a stdio server exits",
    ),
];

/// The method of this name.
#[must_use]
pub fn method(name: &str) -> Option<&'static MethodMeta> {
    METHODS.iter().find(|meta| meta.name == name)
}

/// Parameters that name a session.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct OfSession {
    /// The session.
    pub session_id: String,
}

/// Parameters of `session/new`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct NewSession {
    /// What the session works in. Public.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_root: Option<String>,
    /// Plugins of the reference server, for sessions of a conformance run. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugins: Option<Vec<String>>,
}

/// Parameters of `session/list`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ListSessions {
    /// How many at most, 1 to 100; 20 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Parameters of `session/prompt`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Prompt {
    /// The session.
    pub session_id: String,
    /// What the user says.
    pub input: String,
}

/// Parameters of `session/cancel`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Cancel {
    /// The session.
    pub session_id: String,
    /// Only when this turn runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
}

/// `{"ok":true}`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Done {
    /// True.
    pub ok: bool,
}

/// Result of `initialize`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Initialized {
    /// `"2"`.
    pub protocol_version: String,
    /// Of the server.
    pub version: String,
    /// What the server can do.
    pub capabilities: Vec<String>,
    /// The methods that it knows.
    pub methods: Vec<String>,
}

/// Result of `session/new`, and an item of `session/list`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SessionInfo {
    /// The session.
    pub session_id: String,
    /// When it was made: ISO 8601, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

/// Result of `session/list`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SessionList {
    /// The sessions, newest first.
    pub sessions: Vec<SessionInfo>,
}

/// Result of `session/delete`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Deleted {
    /// True.
    pub ok: bool,
    /// The session that was deleted.
    pub deleted: String,
}

/// Result of `session/subscribe` and `session/unsubscribe`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Subscribed {
    /// True.
    pub ok: bool,
    /// Every session that the connection is subscribed to, sorted.
    pub subscribed: Vec<String>,
    /// How many events were rebuilt before this answer. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<u64>,
    /// The tasks that have not ended, as they stand. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<Task>>,
}

/// Result of `session/prompt`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Prompted {
    /// True, whatever became of the turn: that is in its terminal event.
    pub ok: bool,
    /// The session.
    pub session_id: String,
    /// The turn that ran.
    pub turn_id: String,
}

/// Result of `session/replay`: what is stored of a session. Public: `messages`, `turn_state`; the rest is ours.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Replayed {
    /// The session.
    pub session_id: String,
    /// Its messages, oldest first.
    pub messages: Vec<StoredMessage>,
    /// Its tool records, in the order in which the tools were asked for.
    pub tools: Vec<StoredTool>,
    /// The state of each turn, in the order in which they began.
    pub turns: Vec<StoredTurn>,
    /// The state of the latest turn; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_state: Option<StoredTurn>,
    /// Its tasks, as they stand.
    pub tasks: Vec<Task>,
}

/// One stored message.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct StoredMessage {
    /// `user`, `assistant`, `system` or `tool`.
    pub role: String,
    /// The text.
    pub content: String,
    /// The turn that committed it; empty while none has.
    pub turn_id: String,
}

/// One stored tool record.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct StoredTool {
    /// The turn.
    pub turn_id: String,
    /// The provider's id of the call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments; absent when they are no JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// How it ended; absent while it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What it gave, JSON as text; absent while it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// The stored state of a turn.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct StoredTurn {
    /// The turn.
    pub turn_id: String,
    /// Where it stands.
    pub status: TurnStatus,
    /// When that was stored: ISO 8601, UTC.
    pub ts: String,
}
