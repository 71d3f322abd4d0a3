//! The engine's happenings as events of the protocol. Pure: a happening in, an event out, the same for every
//! connection, and the same when it is told again from what is stored.
//!
//! Source: seed 002, lines 3, 11-18 and 22-27.

use jiff::Timestamp;
use serde_json::{Map, Value};
use turnwire_spec::covel::payloads::models::Usage;
use turnwire_spec::covel::vocabulary::JobStatus;
use turnwire_spec::session_update::events::{
    AssistantDelta, AssistantMessageCompleted, Members, OfTool, Task, TaskStatus, TaskUpdated,
    TokenStats, TokenStatsUpdated, ToolInputDelta, ToolProgress, ToolRequested, ToolResult,
    ToolStatus, TurnCancelled, TurnCompleted, TurnFailed, TurnStarted, TurnStatus, TurnStepRetry,
};
use turnwire_spec::session_update::limits::ARGS_PREVIEW_CHARS;
use turnwire_spec::session_update::message::Kind;
use turnwire_spec::session_update::{Durability, Envelope, UPDATE};

use crate::engine::cancel::CancelCause;
use crate::engine::happening::{Happened, Happening, ToolName};
use crate::engine::model::{ExecutionEnd, ExecutionRow, Job, ToolOutcome, ToolRecord};

/// An event without the number that it gets on a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    durability: Durability,
    session_id: String,
    turn_id: String,
    event: Map<String, Value>,
}

impl Update {
    /// The event of a happening; `None` for one that the protocol has no event for.
    #[must_use]
    pub fn of(happening: &Happening) -> Option<Self> {
        let (kind, members) = event(&happening.what)?;
        let turn_id = happening
            .turn_id
            .as_ref()
            .map_or_else(String::new, ToString::to_string);
        let session_id = happening.session.id.to_string();
        let mut event = Map::new();
        let mut put = |name: &str, value: &str| event.insert(name.to_owned(), value.into());
        put("type", kind);
        put("ts", &time(happening.at));
        put("event_id", &happening.event_id);
        put("session_id", &session_id);
        put("turn_id", &turn_id);
        event.extend(members);
        Some(Self {
            durability: if happening.what.is_fact() {
                Durability::Durable
            } else {
                Durability::Incremental
            },
            session_id,
            turn_id,
            event,
        })
    }

    /// The line with this number.
    #[must_use]
    pub fn line(self, sequence: u64) -> String {
        let envelope = Envelope {
            kind: Kind::Event,
            method: UPDATE.to_owned(),
            sequence,
            durability: self.durability,
            session_id: self.session_id,
            turn_id: self.turn_id,
            event: self.event,
        };
        serde_json::to_string(&envelope).unwrap_or_default()
    }
}

/// A time on the wire: ISO 8601 in UTC, with microseconds.
#[must_use]
pub fn time(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// The state of a turn whose row is this.
#[must_use]
pub fn turn_status(end: Option<&ExecutionEnd>) -> TurnStatus {
    match end {
        None => TurnStatus::Running,
        Some(end) if end.committed => TurnStatus::Completed,
        Some(end) if is_cancelled(end) => TurnStatus::Cancelled,
        Some(_) => TurnStatus::Failed,
    }
}

/// A task as the wire shows a job.
#[must_use]
pub fn task(job: &Job) -> Task {
    let status = match job.status {
        JobStatus::Queued => TaskStatus::Starting,
        JobStatus::Claimed | JobStatus::Running | JobStatus::Committing => TaskStatus::Running,
        JobStatus::Succeeded => TaskStatus::Completed,
        JobStatus::Failed | JobStatus::Stale => TaskStatus::Failed,
        JobStatus::TimedOut => TaskStatus::TimedOut,
        JobStatus::Cancelled => TaskStatus::Cancelled,
        JobStatus::Orphaned => TaskStatus::Lost,
    };
    Task {
        task_id: job.id.to_string(),
        owner_session_id: job.session_id.to_string(),
        origin_turn_id: origin(job),
        status,
        percent: job.progress,
        started_at: job.started_at.map(time),
        finished_at: job.finished_at.map(time),
        reason: job.error.clone(),
    }
}

/// The word of a tool's outcome.
#[must_use]
pub const fn tool_status(outcome: ToolOutcome) -> ToolStatus {
    match outcome {
        ToolOutcome::Completed => ToolStatus::Completed,
        ToolOutcome::Failed => ToolStatus::Failed,
        ToolOutcome::Cancelled => ToolStatus::Cancelled,
        ToolOutcome::Rejected => ToolStatus::Rejected,
        ToolOutcome::TimedOut => ToolStatus::TimedOut,
        ToolOutcome::Unavailable => ToolStatus::Unavailable,
    }
}

/// The arguments of a call, when they are an object. No text counts as none.
#[must_use]
pub fn arguments(record: &ToolRecord) -> Option<Map<String, Value>> {
    if record.arguments.trim().is_empty() {
        return Some(Map::new());
    }
    serde_json::from_str(&record.arguments).ok()
}

fn event(what: &Happened) -> Option<(&'static str, Map<String, Value>)> {
    let of_tool = |kind: &'static str, call: &ToolName| {
        let call = call.clone();
        let members = OfTool {
            tool_call_id: call.call_id,
            tool_name: call.name,
        };
        (kind, object(&members))
    };
    Some(match what {
        Happened::TurnStarted { input_chars, .. } => members(&TurnStarted {
            user_message_chars: *input_chars,
        }),
        Happened::Text { delta } => members(&AssistantDelta {
            text: delta.clone(),
        }),
        Happened::TextVoided { attempt, reason } => members(&TurnStepRetry {
            attempt: (*attempt).into(),
            reason: (*reason).to_owned(),
        }),
        Happened::ToolInputStarted(call) => of_tool("tool_input_started", call),
        Happened::ToolInput { call, delta } => members(&ToolInputDelta {
            tool_call_id: call.call_id.clone(),
            tool_name: call.name.clone(),
            delta: delta.clone(),
        }),
        Happened::ToolInputEnded(call) => of_tool("tool_input_ended", call),
        Happened::ToolRequested(record) => members(&ToolRequested {
            tool_call_id: record.call_id.clone(),
            tool_name: record.name.clone(),
            args_preview: record.arguments.chars().take(ARGS_PREVIEW_CHARS).collect(),
            arguments: arguments(record),
        }),
        Happened::ToolStarted(call) => of_tool("tool_call_started", call),
        Happened::ToolProgress { call, payload } => members(&ToolProgress {
            tool_call_id: call.call_id.clone(),
            tool_name: call.name.clone(),
            payload: payload.clone(),
        }),
        Happened::ToolEnded(record) => tool_result(record)?,
        Happened::Usage(usage) => members(&TokenStatsUpdated {
            stats: stats(usage),
        }),
        Happened::MessageCompleted(message) => members(&AssistantMessageCompleted {
            content: message.content.clone(),
            content_chars: message.content.chars().count() as u64,
        }),
        Happened::TurnEnded(row) => turn_ended(row)?,
        Happened::Task(job) => members(&TaskUpdated {
            origin_turn_id: origin(job),
            task: task(job),
        }),
        // What waits to be said, and recovery, are of no event of this protocol.
        Happened::RuntimeFailed { .. }
        | Happened::QueueTaken { .. }
        | Happened::CommandDone { .. }
        | Happened::TaskKilled { .. }
        | Happened::Deleted => return None,
    })
}

fn members<M: Members>(members: &M) -> (&'static str, Map<String, Value>) {
    (M::TYPE, object(members))
}

fn object(members: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(members) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn tool_result(record: &ToolRecord) -> Option<(&'static str, Map<String, Value>)> {
    let end = record.end.as_ref()?;
    Some(members(&ToolResult {
        tool_call_id: record.call_id.clone(),
        tool_name: record.name.clone(),
        status: tool_status(end.outcome),
        result: end.result.clone(),
        error_type: end.error.clone().unwrap_or_default(),
        error_source: "tool".to_owned(),
        duration_ms: end.duration_ms,
    }))
}

fn turn_ended(row: &ExecutionRow) -> Option<(&'static str, Map<String, Value>)> {
    let end = row.end.as_ref()?;
    let why = || end.error.clone().unwrap_or_default();
    Some(match turn_status(Some(end)) {
        TurnStatus::Cancelled => members(&TurnCancelled { reason: why() }),
        TurnStatus::Failed => members(&TurnFailed {
            error: why(),
            error_type: end
                .abort_reason
                .clone()
                .unwrap_or_else(|| "TurnFailed".to_owned()),
            status: "failed".to_owned(),
            error_source: "runtime".to_owned(),
        }),
        TurnStatus::Completed | TurnStatus::Running => members(&TurnCompleted {
            duration_ms: u64::try_from(end.ended_at.duration_since(row.started_at).as_millis())
                .unwrap_or_default(),
        }),
    })
}

/// Somebody stopped it. That its process died, or that a hook vetoed it, is a failure.
fn is_cancelled(end: &ExecutionEnd) -> bool {
    let causes = [
        CancelCause::Player,
        CancelCause::Shutdown,
        CancelCause::Deleted,
    ];
    let reason = end.abort_reason.as_deref();
    causes
        .iter()
        .any(|cause| reason == Some(cause.abort_reason()))
}

fn origin(job: &Job) -> String {
    job.source_turn_id
        .as_ref()
        .map_or_else(String::new, ToString::to_string)
}

fn stats(usage: &Usage) -> TokenStats {
    TokenStats {
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.cached_input_tokens.unwrap_or_default(),
        output_tokens: usage.output_tokens,
        total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
    }
}
