//! The things that the engine decides about and the store keeps.
//!
//! Plain data: no behaviour beyond small pure questions. Wire shapes (which members a view or a
//! `SessionRecord` shows) belong to the faces; these types hold what is known, faces choose.
//!
//! Source: seed 000, sections 1, 2 and 7, and `covel.md` of the fact collection, sections 5.1 to 5.5.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnwire_spec::covel::Topic;
use turnwire_spec::covel::vocabulary::JobStatus;

use super::ids::{
    Incarnation, JobId, LogicalTurnId, MessageId, PluginId, RequestId, RuntimeId, SessionId,
    SessionKey, TraceId, TurnId,
};

/// A JSON object: every payload is one.
pub type Object = Map<String, Value>;

/// Whether a session takes actions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    /// Takes actions.
    #[default]
    Active,
    /// Refuses actions until it is active again.
    Paused,
    /// Refuses actions for good.
    Ended,
}

/// How far the opening of a session is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Some setup runtime has not completed yet.
    Setup,
    /// The main loop runs.
    #[default]
    Playing,
}

/// How far one setup runtime of a session is.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Setup {
    /// `pending` until its run commits, then `done`.
    pub state: SetupState,
    /// The version of the plugin that brought the runtime.
    pub plugin_version: String,
    /// How often the setup was started over.
    pub generation: u32,
    /// How many runs were tried.
    pub attempts: u32,
}

/// The states of one setup runtime: `Pending -> Done`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SetupState {
    /// Has not completed.
    Pending,
    /// Its run was committed.
    Done,
}

/// One session as the store keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Which life of that id this is.
    pub incarnation: Incarnation,
    /// The world that it plays in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world_id: Option<String>,
    /// Whether it takes actions.
    pub status: SessionStatus,
    /// How far its opening is.
    pub phase: Phase,
    /// Player turns that were committed, each logical turn once.
    pub completed_player_turns: u64,
    /// The setup runtimes, by runtime id; empty when no active plugin has one.
    pub setup_runtimes: BTreeMap<RuntimeId, Setup>,
    /// BCP 47 tag, fixed at creation.
    pub locale: String,
    /// The active plugins, in the order in which they were chosen.
    pub active_plugins: Vec<PluginId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its record last changed.
    pub updated_at: Timestamp,
    /// SHA-256 of the owner token. The token itself is stored nowhere.
    pub owner_hash: [u8; 32],
}

impl Session {
    /// This life of this session.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        SessionKey {
            id: self.id.clone(),
            incarnation: self.incarnation.clone(),
        }
    }
}

/// Who wrote a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The player.
    User,
    /// A runtime.
    Assistant,
    /// The host.
    System,
    /// A tool.
    Tool,
}

/// One message of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// Who wrote it.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The turn that committed it; `None` for player input whose turn has not committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The runtime that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<RuntimeId>,
    /// The output kind of a runtime's message (`story`, `plugin`, `system`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// An interaction block, when the message shows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Value>,
    /// The actions that a player message submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Value>,
    /// The segments of a story message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<Value>,
    /// When it was first saved.
    pub created_at: Timestamp,
}

/// One row of a plugin's data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginDatum {
    /// The plugin that owns it.
    pub plugin_id: PluginId,
    /// Groups keys. Namespaces that begin with `_` are the host's own.
    pub namespace: String,
    /// Its key within the namespace.
    pub key: String,
    /// The value.
    pub value: Value,
    /// When it was last set.
    pub updated_at: Timestamp,
}

/// A document that a session keeps beside its messages and its plugins' data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which kind of document it is.
    pub shelf: Shelf,
    /// Its id within the shelf.
    pub id: String,
    /// The document, as the part of the engine that owns the shelf writes it.
    pub doc: Value,
}

/// The kinds of documents.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shelf {
    /// [`Suspension`](super::suspensions::Suspension)s, by id.
    Suspension,
    /// [`Snapshot`](super::snapshots::Snapshot)s, by id.
    Snapshot,
    /// Characters, by id.
    Character,
    /// The one definition of the fields of characters, under the id `schema`.
    CharacterSchema,
}

impl Shelf {
    /// Its name in the store.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Suspension => "suspension",
            Self::Snapshot => "snapshot",
            Self::Character => "character",
            Self::CharacterSchema => "character-schema",
        }
    }
}

/// One saved trace event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceEvent {
    /// The id under which it was saved.
    pub id: String,
    /// The session.
    pub session_id: SessionId,
    /// The event type; mostly a protocol event, but some rows exist in the trace table only.
    #[serde(rename = "type")]
    pub kind: String,
    /// The turn during which it happened.
    pub turn_id: TurnId,
    /// The trace of the request.
    pub trace_id: TraceId,
    /// The payload exactly as it was emitted.
    pub payload: Object,
    /// When it was saved.
    pub timestamp: Timestamp,
}

/// Who caused an event.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The plugin.
    pub plugin_id: PluginId,
    /// Its runtime.
    pub runtime_id: RuntimeId,
}

/// Something that happened to a session, for the subscribers of its topic.
///
/// The incarnation is captured when the work that causes the event is admitted and never changes
/// after that.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainEvent {
    /// What happened: the name of a row of [`turnwire_spec::covel::EVENTS`].
    pub kind: &'static str,
    /// Who hears of it.
    pub topic: Topic,
    /// The session, and which life of it.
    pub session: SessionKey,
    /// The turn in which it happened, when one did.
    pub turn_id: Option<TurnId>,
    /// The runtime that caused it, when one did.
    pub source: Option<Source>,
    /// What there is to know.
    pub payload: Object,
    /// When it happened.
    pub timestamp: Timestamp,
}

/// Who began an execution.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The player, by an action. Counts as a player turn when it commits.
    Player,
    /// The opening, or what follows from it. Does not count.
    Continuation,
}

impl Origin {
    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Player => "player",
            Self::Continuation => "continuation",
        }
    }
}

/// The end of one execution, as its row tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionEnd {
    /// Whether its writes are saved. The row is written in the transaction of those writes.
    pub committed: bool,
    /// Why they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Who stopped it, when somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort_reason: Option<String>,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// The row of one execution: written before its first runtime, ended with its commit or failure.
///
/// A row without an end whose execution nobody runs any more was interrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionRow {
    /// The session.
    pub session_id: SessionId,
    /// This execution.
    pub turn_id: TurnId,
    /// The turn as the player counts it.
    pub logical_turn_id: LogicalTurnId,
    /// The request that began it.
    pub request_id: RequestId,
    /// Its trace.
    pub trace_id: TraceId,
    /// Who began it.
    pub origin: Origin,
    /// How to ask for it again, when its input was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryAction>,
    /// The player's message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_message_id: Option<MessageId>,
    /// When it began.
    pub started_at: Timestamp,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ExecutionEnd>,
}

/// The record of one tool call: written when the tool is asked for, completed before its end is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRecord {
    /// The session.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: TurnId,
    /// The runtime that called.
    pub runtime_id: RuntimeId,
    /// The provider's id of the call. Providers may use one again in another step.
    pub call_id: String,
    /// Its place among the calls of the turn, from 0.
    pub nth: u64,
    /// Which model call asked for it; calls of one step are asked for together.
    pub step: u64,
    /// The tool.
    pub name: String,
    /// The arguments, as the text that the model wrote.
    pub arguments: String,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ToolEnd>,
}

/// How a tool call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolEnd {
    /// Its outcome.
    pub outcome: ToolOutcome,
    /// What the model reads, JSON as text.
    pub result: String,
    /// The code of what went wrong; absent when nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it worked, in milliseconds.
    pub duration_ms: u64,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// The outcomes of a tool call.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It gave a result.
    Completed,
    /// It failed.
    Failed,
    /// The turn was stopped.
    Cancelled,
    /// It was refused.
    Rejected,
    /// The time ran out.
    TimedOut,
    /// There is no such tool.
    Unavailable,
}

/// How a client asks for an unfinished execution again: an action of this type with this payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryAction {
    /// The action type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its payload.
    pub payload: Object,
}

impl RetryAction {
    /// As a member of a payload.
    #[must_use]
    pub fn to_object(&self) -> Object {
        let kind = ("type".to_owned(), Value::String(self.kind.clone()));
        Object::from_iter([
            kind,
            ("payload".to_owned(), Value::Object(self.payload.clone())),
        ])
    }
}

/// What `GET /api/sessions/:id/execution` can say.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionState {
    /// No execution was ever started.
    Idle,
    /// An action is under way, its work after the commit included.
    Running,
    /// The latest execution was committed.
    Completed,
    /// The latest execution ended without a commit.
    Failed,
    /// The latest execution has no end, and nobody runs it any more.
    Interrupted,
}

/// The state of the latest execution of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionStatus {
    /// Where it stands.
    pub state: ExecutionState,
    /// Which execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// Which request began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Who began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Who stopped it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort_reason: Option<String>,
    /// How to ask for it again; only for failed and interrupted executions with a recorded input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryAction>,
}

impl ExecutionStatus {
    /// Nothing was ever started.
    #[must_use]
    pub fn idle() -> Self {
        Self {
            state: ExecutionState::Idle,
            turn_id: None,
            request_id: None,
            started_at: None,
            origin: None,
            abort_reason: None,
            retry: None,
        }
    }
}

/// One background job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The session.
    pub session_id: SessionId,
    /// The plugin whose job it is.
    pub plugin_id: PluginId,
    /// The runtime whose job it is.
    pub runtime_id: RuntimeId,
    /// Where it stands.
    pub status: JobStatus,
    /// The number of its latest status event: 0 for the first, then one more each time.
    pub sequence: u64,
    /// 0 at creation, one more each time that a worker takes it.
    pub attempt: u32,
    /// What the plugin needs to do it. Never shown to clients.
    pub payload: Value,
    /// How far its worker says it is, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// What its worker says about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The turn that queued it, when one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_turn_id: Option<TurnId>,
    /// What it gave, once it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it failed, in fixed words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was queued.
    pub enqueued_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When its worker took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it reached a terminal state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}
