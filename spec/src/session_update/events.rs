//! What an event can be about: a table of event types, their class, and the members of those that we send.
//!
//! Every event has `type`, `ts`, `event_id`, `session_id` and `turn_id`; the types of [`Members`] are what comes
//! besides. A type that is in no row is new: its class is what its envelope says, and nothing else is known of it.
//!
//! Source: seed 002, lines 16 and 22-27; members are public.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::message::Durability;
use crate::covel::meta::MakeSchema;
use crate::words::words;

/// The class of an event type.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// One of the two, as the seed says.
    Stated(Durability),
    /// The seed does not say; this is what the public sources say, and what our server sends.
    Public(Durability),
    /// A terminal state is durable, as the seed says; of other states it does not say.
    ByState,
}

impl Class {
    /// The class that the seed demands, when it does; `terminal` is whether the event tells a terminal state.
    #[must_use]
    pub const fn demanded(self, terminal: bool) -> Option<Durability> {
        match self {
            Self::Stated(class) => Some(class),
            Self::ByState if terminal => Some(Durability::Durable),
            Self::Public(_) | Self::ByState => None,
        }
    }
}

/// What an event type says about the life of a turn, tool or task. The envelope says nothing about it.
///
/// Source: seed 002, line 27.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lifetime {
    /// A turn begins.
    TurnBegins,
    /// A turn has ended.
    TurnEnds,
    /// A tool was asked for.
    ToolBegins,
    /// A tool has ended.
    ToolEnds,
    /// A task stands as its `status` says.
    Task,
    /// Something goes on.
    Goes,
}

/// What is known about one event type.
#[derive(Clone, Copy, Debug)]
pub struct EventMeta {
    /// Its `type`.
    pub name: &'static str,
    /// Its class.
    pub class: Class,
    /// What it says about a life.
    pub lifetime: Lifetime,
    /// The schema of its members, for those that our server sends.
    pub members: Option<MakeSchema>,
}

const DURABLE: Class = Class::Stated(Durability::Durable);
const INCREMENTAL: Class = Class::Stated(Durability::Incremental);
const PASSING: Class = Class::Public(Durability::Incremental);

const fn row(
    name: &'static str,
    class: Class,
    lifetime: Lifetime,
    members: MakeSchema,
) -> EventMeta {
    EventMeta {
        name,
        class,
        lifetime,
        members: Some(members),
    }
}

const fn other(name: &'static str, class: Class) -> EventMeta {
    EventMeta {
        name,
        class,
        lifetime: Lifetime::Goes,
        members: None,
    }
}

/// Every event type that a source names, ours first.
pub const EVENTS: &[EventMeta] = &[
    row(
        "turn_started",
        DURABLE,
        Lifetime::TurnBegins,
        members::<TurnStarted>,
    ),
    row(
        "assistant_delta",
        INCREMENTAL,
        Lifetime::Goes,
        members::<AssistantDelta>,
    ),
    row(
        "assistant_message_completed",
        DURABLE,
        Lifetime::Goes,
        members::<AssistantMessageCompleted>,
    ),
    row(
        "tool_input_started",
        PASSING,
        Lifetime::Goes,
        members::<OfTool>,
    ),
    row(
        "tool_input_delta",
        INCREMENTAL,
        Lifetime::Goes,
        members::<ToolInputDelta>,
    ),
    row(
        "tool_input_ended",
        PASSING,
        Lifetime::Goes,
        members::<OfTool>,
    ),
    row(
        "tool_requested",
        DURABLE,
        Lifetime::ToolBegins,
        members::<ToolRequested>,
    ),
    row(
        "tool_call_started",
        PASSING,
        Lifetime::Goes,
        members::<OfTool>,
    ),
    row(
        "tool_progress",
        INCREMENTAL,
        Lifetime::Goes,
        members::<ToolProgress>,
    ),
    row(
        "tool_result",
        DURABLE,
        Lifetime::ToolEnds,
        members::<ToolResult>,
    ),
    row(
        "token_stats_updated",
        PASSING,
        Lifetime::Goes,
        members::<TokenStatsUpdated>,
    ),
    row(
        "turn_step_retry",
        PASSING,
        Lifetime::Goes,
        members::<TurnStepRetry>,
    ),
    row(
        "turn_completed",
        DURABLE,
        Lifetime::TurnEnds,
        members::<TurnCompleted>,
    ),
    row(
        "turn_failed",
        DURABLE,
        Lifetime::TurnEnds,
        members::<TurnFailed>,
    ),
    row(
        "turn_cancelled",
        DURABLE,
        Lifetime::TurnEnds,
        members::<TurnCancelled>,
    ),
    row(
        "task_updated",
        Class::ByState,
        Lifetime::Task,
        members::<TaskUpdated>,
    ),
    other("task_output", PASSING),
    other("file_change", PASSING),
    other("plan_updated", PASSING),
    other("user_question_requested", PASSING),
    other("user_question_answered", PASSING),
    other("queued_input_delivered", PASSING),
    other("context_built", PASSING),
    other("context_compacted", Class::Public(Durability::Durable)),
    other("background_wait_changed", PASSING),
    other("task_continuation_failed", PASSING),
];

/// The row of an event type.
#[must_use]
pub fn event(name: &str) -> Option<&'static EventMeta> {
    EVENTS.iter().find(|meta| meta.name == name)
}

words! {
    /// The stored states of a turn. Public.
    "turn status" enum TurnStatus {
        /// It runs.
        Running = "running",
        /// It gave an answer.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
    }
}

words! {
    /// The states of a task. Public.
    "task status" enum TaskStatus {
        /// It waits for a worker.
        Starting = "starting",
        /// It works.
        Running = "running",
        /// It is being stopped.
        Cancelling = "cancelling",
        /// It gave a result.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
        /// It took too long.
        TimedOut = "timed_out",
        /// Whoever worked on it is gone.
        Lost = "lost",
    }
}

impl TaskStatus {
    /// Whether it never changes again.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Cancelled | Self::TimedOut | Self::Lost
        )
    }

    /// Whether a text names a terminal state.
    #[must_use]
    pub fn text_is_terminal(text: &str) -> bool {
        text.parse::<Self>().is_ok_and(Self::is_terminal)
    }
}

words! {
    /// How a tool call ended. Public.
    "tool status" enum ToolStatus {
        /// It gave a result.
        Completed = "completed",
        /// The turn was stopped.
        Cancelled = "cancelled",
        /// It was refused.
        Rejected = "rejected",
        /// It failed.
        Failed = "failed",
        /// The time ran out.
        TimedOut = "timed_out",
        /// There is no such tool.
        Unavailable = "unavailable",
    }
}

/// The members that an event of one type has besides the common ones.
pub trait Members: Serialize {
    /// The `type`.
    const TYPE: &'static str;
}

/// Declares the members of one event type.
macro_rules! members {
    (
        $(#[$meta:meta])*
        $kind:literal struct $name:ident {
            $($(#[$doc:meta])* $member:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
        pub struct $name {
            $($(#[$doc])* pub $member: $type,)*
        }

        impl Members for $name {
            const TYPE: &'static str = $kind;
        }
    };
}

members! {
    /// A turn began: the user's message and the turn's state are stored.
    "turn_started" struct TurnStarted {
        /// Length of the user's input in characters; 0 without input.
        user_message_chars: u64,
    }
}

members! {
    /// A piece of the assistant's text.
    "assistant_delta" struct AssistantDelta {
        /// The piece, as the model gave it.
        text: String,
    }
}

members! {
    /// A message of the assistant is stored.
    "assistant_message_completed" struct AssistantMessageCompleted {
        /// The text.
        content: String,
        /// Its length in characters.
        content_chars: u64,
    }
}

/// The members of events about a tool call of which there is nothing more to say.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct OfTool {
    /// The provider's id of the call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
}

members! {
    /// A piece of the arguments that the model is writing.
    "tool_input_delta" struct ToolInputDelta {
        /// The provider's id of the call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// A piece of the JSON text.
        delta: String,
    }
}

members! {
    /// A tool was asked for. Its completion is [`ToolResult`].
    "tool_requested" struct ToolRequested {
        /// The provider's id of the call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// The beginning of the arguments' text; see [`ARGS_PREVIEW_CHARS`](super::limits::ARGS_PREVIEW_CHARS).
        args_preview: String,
        /// The arguments; absent when they are no JSON object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Map<String, Value>>,
    }
}

members! {
    /// A tool tells how far it is.
    "tool_progress" struct ToolProgress {
        /// The provider's id of the call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// What it tells.
        payload: Map<String, Value>,
    }
}

members! {
    /// A tool has ended; the tool record says the same.
    "tool_result" struct ToolResult {
        /// The provider's id of the call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// How it ended.
        status: ToolStatus,
        /// What the model reads, JSON as text.
        result: String,
        /// What went wrong, in one word; empty when nothing did.
        error_type: String,
        /// Where it went wrong: `tool`.
        error_source: String,
        /// How long it worked.
        duration_ms: u64,
    }
}

members! {
    /// What the last model call cost.
    "token_stats_updated" struct TokenStatsUpdated {
        /// The counts.
        stats: TokenStats,
    }
}

/// Counts of one model call.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct TokenStats {
    /// What the model read.
    pub input_tokens: u64,
    /// How much of that came from a cache.
    pub cached_input_tokens: u64,
    /// What it wrote.
    pub output_tokens: u64,
    /// Both together.
    pub total_tokens: u64,
}

members! {
    /// The text since the last step is void.
    "turn_step_retry" struct TurnStepRetry {
        /// The attempt or step, from 1.
        attempt: u64,
        /// Why: `stream_interrupted`, or `draft` for text that stood beside tool calls.
        reason: String,
    }
}

members! {
    /// The turn gave an answer, and it is stored.
    "turn_completed" struct TurnCompleted {
        /// From its start to its end, as stored.
        duration_ms: u64,
    }
}

members! {
    /// The turn failed.
    "turn_failed" struct TurnFailed {
        /// Why, for people.
        error: String,
        /// Why, in one word.
        error_type: String,
        /// `failed`.
        status: String,
        /// `runtime`.
        error_source: String,
    }
}

members! {
    /// The turn was stopped.
    "turn_cancelled" struct TurnCancelled {
        /// By whom.
        reason: String,
    }
}

members! {
    /// A task changed. `turn_id` is empty; the turn that started it is in `origin_turn_id`.
    ///
    /// Source: seed 002, lines 16 and 27.
    "task_updated" struct TaskUpdated {
        /// The turn that started the task; empty when none did.
        origin_turn_id: String,
        /// The task as it now stands.
        task: Task,
    }
}

/// A task as it stands.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Task {
    /// The task.
    pub task_id: String,
    /// The session that owns it.
    pub owner_session_id: String,
    /// The turn that started it; empty when none did.
    pub origin_turn_id: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// How far it is, in percent, when it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// When it began to work: ISO 8601, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended: ISO 8601, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// Why it ended as it did, when there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The common members, and those of one type.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "a schema is made from it, no value ever is")]
struct Event<M> {
    /// The event type.
    #[serde(rename = "type")]
    kind: String,
    /// When it happened: ISO 8601, UTC.
    ts: String,
    /// The identity of this one event, wherever and whenever it is told.
    event_id: String,
    /// The session.
    session_id: String,
    /// The turn; empty on task updates.
    turn_id: String,
    #[serde(flatten)]
    members: M,
}

fn members<M: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    Event::<M>::json_schema(generator)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_event_type_has_one_row() {
        let names: BTreeSet<_> = EVENTS.iter().map(|meta| meta.name).collect();

        assert_eq!(names.len(), EVENTS.len());
    }

    #[test]
    fn the_classes_that_the_seed_states_are_demanded() {
        let demanded = |name: &str, terminal| event(name).unwrap().class.demanded(terminal);

        assert_eq!(
            demanded("assistant_delta", false),
            Some(Durability::Incremental)
        );
        assert_eq!(demanded("tool_requested", false), Some(Durability::Durable));
        assert_eq!(demanded("turn_cancelled", true), Some(Durability::Durable));
        assert_eq!(demanded("task_updated", true), Some(Durability::Durable));
        assert_eq!(demanded("task_updated", false), None);
        assert_eq!(demanded("tool_input_started", false), None);
    }

    #[test]
    fn terminal_task_states_are_told_by_their_text() {
        assert!(TaskStatus::text_is_terminal("lost"));
        assert!(!TaskStatus::text_is_terminal("running"));
        assert!(!TaskStatus::text_is_terminal("finished"));
    }
}
