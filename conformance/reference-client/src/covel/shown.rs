//! What a person sees of a session, and the report of it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::debug::{DebugPage, Rebuilt};

/// What is shown. Its JSON is what the client reports.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// The session that is open.
    pub session: String,
    /// `connecting`, `open`, `paused` or `closed`.
    pub connection: &'static str,
    /// The last event that was received.
    pub cursor: Option<String>,
    /// `setup` or `playing`.
    pub phase: Option<String>,
    /// The number of turns that the player has played.
    pub completed_player_turns: u64,
    /// Whether an action runs.
    pub executing: bool,
    /// What went wrong with the last action.
    pub execution_error: Option<String>,
    /// Something that is no error, such as `stopped` or `busy`.
    pub notice: Option<String>,
    /// Whether the person may try again.
    pub retry_offered: bool,
    /// What stands in the input box.
    pub input: String,
    /// Choices that go out with what is said next: block and values.
    pub selections: Vec<Value>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Text of a turn that was not saved; no part of the conversation.
    pub unsaved: Vec<Unsaved>,
    /// The events of the game.
    pub events: Vec<Value>,
    /// The steps of executions.
    pub steps: Vec<Step>,
    /// The executions that the steps belong to.
    pub groups: Vec<Group>,
    /// Background jobs, by id.
    pub jobs: BTreeMap<String, Job>,
    /// Plugin data: plugin, namespace, key.
    pub plugin_data: BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>>,
    /// Slots of the interface, `SLOT` or `SLOT/KEY`, as they are to be shown: a preview over what is committed.
    pub slots: BTreeMap<String, Value>,
    /// Suspended runtimes that wait for an answer.
    pub suspensions: Vec<Suspension>,
    /// Characters, by id.
    pub characters: BTreeMap<String, Value>,
    /// The fields of characters.
    pub character_schema: Option<Value>,
    /// Dimensions, by id.
    pub dimensions: BTreeMap<String, Value>,
    /// Receipts of settlements, by the id of their result.
    pub settlements: BTreeMap<String, Value>,
    /// Why plugins are paused, by plugin.
    pub paused_plugins: BTreeMap<String, String>,
    /// Snapshots that were told of.
    pub snapshots: Vec<String>,
    /// Where automatic rounds are.
    pub advance: Option<Advance>,
    /// What models thought, call by call.
    pub thinking: Vec<Thought>,
    /// Media that were finished.
    pub assets: Vec<Value>,
    /// Media that components show, by id, and whether they could be loaded.
    pub media: BTreeMap<String, bool>,
    /// Failed tasks that wait to be tried again.
    pub unrecovered: Vec<Task>,
    /// Diagnostic events, in the order in which they were learned of.
    pub timeline: Vec<Diagnostic>,
    /// The text on the stage: the newest piece of the story.
    pub stage: Option<String>,
    /// The active plugins.
    pub plugins: Vec<String>,
    /// The world of the session.
    pub world: Option<Value>,
    /// The call that the person is asked to allow.
    pub approval: Option<Approval>,
    /// What went wrong with the last call of a plugin.
    pub call_error: Option<String>,
    /// Handlers that failed.
    pub handler_warnings: Vec<HandlerWarning>,
    /// Media that could not be had.
    pub media_warnings: Vec<MediaWarning>,
    /// The debug page, once it was opened.
    pub debug: Option<DebugPage>,
    /// What was copied there last.
    pub clipboard: Option<Value>,
    /// What was rebuilt there last.
    pub rebuilt: Option<Rebuilt>,
    /// What was exported for the public.
    pub exported: Option<String>,
}

/// A task of a turn.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The turn.
    pub turn_id: String,
    /// The runtime.
    pub runtime_id: String,
}

/// A diagnostic event.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The turn.
    pub turn_id: String,
    /// The runtime, when it names one.
    pub runtime_id: Option<String>,
    /// Type, turn and flow, and position, which tell one from another.
    #[serde(skip)]
    pub identity: (String, String, u64),
}

/// A call that waits for the person.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Its id.
    pub id: String,
    /// The plugin.
    pub plugin_id: String,
    /// The action.
    pub action: String,
}

/// A handler failed. Neither what it was given nor what it said is told.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HandlerWarning {
    /// The session.
    pub session: String,
    /// The event's id.
    pub event: String,
    /// The event's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The type of the error.
    pub error: &'static str,
}

/// A medium could not be had.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaWarning {
    /// The session.
    pub session: String,
    /// The medium.
    pub media: String,
    /// The status, when there was an answer.
    pub status: Option<u16>,
    /// The kind of error, when there was none.
    pub error: Option<&'static str>,
}

/// One message of the conversation.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id, once the server has told it.
    pub id: Option<String>,
    /// `player`, `assistant`, or another role of the server's.
    pub role: String,
    /// What it says.
    pub text: String,
    /// `sending`, `streaming`, `provisional` (whole, not committed) or `completed`.
    pub status: Status,
    /// The turn that it belongs to.
    pub turn_id: Option<String>,
    /// The runtime that wrote it.
    pub runtime_id: Option<String>,
    /// `story`, or another kind.
    pub kind: Option<String>,
    /// Who speaks, paragraph by paragraph; null where nobody does.
    pub speakers: Vec<Option<String>>,
    /// What it asks the player for.
    pub form: Option<Form>,
    /// The request that it was sent with; only for the player's own.
    #[serde(skip)]
    pub request: Option<String>,
}

/// How far a message is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Sent, and not known to be stored.
    Sending,
    /// Text is still coming.
    Streaming,
    /// Whole, in an execution that is not committed.
    Provisional,
    /// Stored.
    #[default]
    Completed,
}

/// What a message asks the player for.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Form {
    /// The id of the block, by which it is shown once.
    pub block_id: String,
    /// A remark in front of the fields.
    pub notice: Option<String>,
    /// What was answered.
    pub values: Option<Value>,
    /// Whether it was answered.
    pub submitted: bool,
    /// What the player typed.
    pub draft: Option<Value>,
    /// What is wrong with it: `{field?, message}`.
    pub issues: Vec<Value>,
    /// The block as it came.
    #[serde(skip)]
    pub block: Value,
}

/// Text that was not saved.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unsaved {
    /// The turn.
    pub turn_id: String,
    /// The text.
    pub text: String,
}

/// One step of an execution.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The turn.
    pub turn_id: String,
    /// The runtime.
    pub runtime_id: String,
    /// The run, when there is one.
    pub run_id: Option<String>,
    /// `running`, `pending`, `completed`, `failed`, `skipped` or `suspended`.
    pub status: String,
    /// The stage that its start named.
    pub stage: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<f64>,
    /// What went wrong.
    pub error: Option<String>,
    /// What kind of failure.
    pub error_kind: Option<String>,
    /// The provider that failed.
    pub failure_target: Option<Value>,
    /// The background job that does it.
    pub job_id: Option<String>,
}

/// One execution, as a heading of its steps.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The turn.
    pub turn_id: String,
    /// `running`, `completed` or `failed`, as a whole.
    pub status: String,
    /// Whether it sets the session up, whatever became of it.
    pub setup: bool,
    /// Whether single tasks of it may be tried again.
    pub task_retries: bool,
}

/// One background job.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// `queued`, `running`, `progress`, `waiting-input`, `succeeded`, `failed` or `cancelled`.
    pub state: String,
    /// From 0 to 100.
    pub progress: Option<f64>,
    /// For people.
    pub message: Option<String>,
    /// The turn that it came from.
    pub turn_id: Option<String>,
    /// The job that it is a part of.
    pub parent: Option<String>,
    /// The newest event that counted.
    pub sequence: u64,
}

/// A suspended runtime.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suspension {
    /// Its id.
    pub id: String,
    /// The runtime.
    pub runtime_id: String,
}

/// Where automatic rounds are.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Advance {
    /// `waiting` or `running`.
    pub phase: String,
    /// The round.
    pub round: u64,
}

/// What a model thought in one call.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Thought {
    /// The turn.
    pub turn_id: String,
    /// The runtime.
    pub runtime_id: String,
    /// What it thought.
    pub text: String,
    /// The background job in whose task it stands.
    pub job_id: Option<String>,
    /// Event type, flow, position, and the turn that the event names, which tell one call from another.
    #[serde(skip)]
    pub identity: (String, String, u64, String),
}

impl Job {
    /// Whether nothing will change any more.
    pub fn is_final(&self) -> bool {
        matches!(self.state.as_str(), "succeeded" | "failed" | "cancelled")
    }
}

impl Shown {
    /// What a fresh visit of a session shows.
    pub fn opening(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            connection: "connecting",
            ..Self::default()
        }
    }

    /// The newest piece of the story that is shown.
    pub(super) fn on_stage(&self) -> Option<String> {
        let mut story = self.messages.iter().rev();
        let newest = story.find(|message| message.kind.as_deref() == Some("story"));
        newest.map(|message| message.text.clone())
    }

    /// The message that holds this form.
    pub fn form(&mut self, block_id: &str) -> Option<&mut Form> {
        let forms = self
            .messages
            .iter_mut()
            .filter_map(|message| message.form.as_mut());
        forms.into_iter().find(|form| form.block_id == block_id)
    }
}
