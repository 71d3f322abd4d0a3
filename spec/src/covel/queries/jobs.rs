//! Background jobs, suspensions and snapshots.
//!
//! Source: seed 000, lines 402-475 and 571-593; most members are public.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plugins::{ApprovalRequired, DeferredJob};
use crate::covel::shape::{Nullable, Object, True, shape};
use crate::covel::vocabulary::{JobActivation, JobStatus, SnapshotKind};

shape! {
    /// A background job as it may be seen: without its input and without raw errors.
    ///
    /// Source: seed 000, lines 404-426 and 455-466.
    #[schemars(extend("not" = { "required": ["payload"] }))]
    struct PublicJob {
        /// 1. Public.
        schema_version?: u64,
        /// The job.
        job_id: String,
        /// The plugin.
        plugin_id?: String,
        /// The runtime.
        runtime_id?: String,
        /// The session.
        session_id?: String,
        /// Its durable status.
        status: JobStatus,
        /// What queued it.
        origin?: JobOrigin,
        /// When it was queued first: ISO 8601, UTC.
        enqueued_at?: String,
        /// When it was changed: ISO 8601, UTC.
        updated_at?: String,
        /// How often it was claimed.
        attempt?: u64,
        /// How long it may wait.
        max_queue_ms?: u64,
        /// How long it may run.
        max_execution_ms?: u64,
        /// When it must have ended: ISO 8601, UTC.
        deadline_at?: String,
        /// When the lease ends: ISO 8601, UTC.
        lease_expires_at?: String,
        /// When it was claimed: ISO 8601, UTC.
        claimed_at?: String,
        /// When it began: ISO 8601, UTC.
        started_at?: String,
        /// When its commit began: ISO 8601, UTC.
        committing_at?: String,
        /// When it ended: ISO 8601, UTC.
        finished_at?: String,
        /// The worker.
        owner_id?: String,
        /// The turn of the background execution.
        background_turn_id?: String,
        /// The background execution.
        background_execution_id?: String,
        /// What it gave; on success.
        result?: Object,
        /// A known reason.
        reason?: String,
        /// Fixed text, chosen by reason or status.
        error?: String,
        /// `prompt`, when queued with an expected follower.
        phase?: String,
    }
}

shape! {
    /// What queued a job. Source: seed 000, lines 408-411; the further members are public.
    struct JobOrigin {
        /// How.
        activation: JobActivation,
        /// In which turn.
        source_turn_id?: String,
        /// In which execution.
        source_execution_id?: String,
        /// By which runtime.
        source_runtime_id?: String,
    }
}

shape! {
    /// A suspension that waits for its answer. Public.
    struct Suspension {
        /// The suspension.
        id: String,
        /// The session.
        session_id?: String,
        /// The turn.
        turn_id?: String,
        /// The runtime.
        runtime_id?: String,
        /// Its plugin.
        plugin_id?: String,
        /// What it waits for.
        reason?: String,
        /// What the answer must look like.
        resume_schema?: Value,
        /// When: ISO 8601, UTC.
        created_at?: String,
    }
}

shape! {
    /// The answer of resuming a suspension. Public.
    struct Resumed {
        /// What the runtime gave.
        result: Value,
        /// The events of the run.
        events: Vec<Value>,
        /// The jobs that the run queued.
        deferred_jobs?: Vec<DeferredJob>,
    }
}

/// The answer of `POST /api/sessions/:id/suspensions/:suspensionId/resume` that is no refusal.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ResumeAnswer {
    /// 202: the player must approve something first.
    ApprovalRequired(ApprovalRequired),
    /// 200: it ran.
    Resumed(Resumed),
}

shape! {
    /// The answer of dropping a suspension. Public.
    struct DroppedSuspension {
        /// `true`.
        ok: True,
        /// The suspension.
        suspension_id: String,
    }
}

shape! {
    /// A snapshot in lists, without what it holds. Public.
    struct SnapshotRecord {
        /// The snapshot.
        id: String,
        /// The session.
        session_id?: String,
        /// The turn that it shows.
        turn_id?: Nullable<String>,
        /// Why it was made.
        kind?: SnapshotKind,
        /// The snapshot that it follows.
        parent_id?: Nullable<String>,
        /// When: ISO 8601, UTC.
        created_at?: String,
        /// Its size in bytes.
        payload_size?: u64,
    }
}

shape! {
    /// The answer of `POST /api/sessions/:id/fork`. Public.
    struct Forked {
        /// The child session.
        session_id: String,
        /// The session that was forked.
        parent_session_id: String,
        /// The snapshot that the child begins with.
        from_snapshot_id: String,
        /// The snapshot that the fork wrote.
        fork_snapshot_id: String,
        /// What the child's owner authenticates with; told once.
        owner_token?: String,
    }
}
