//! The progress of long-running jobs.
//!
//! Source: seed 000, lines 345-399.

use serde_json::Value;

use crate::covel::shape::{payload, shape};
use crate::covel::vocabulary::{JobState, JobStatus};

payload! {
    /// A job has a new state. Events of one job are ordered by `sequence`.
    ///
    /// Source: seed 000, lines 348-399.
    "job-status.updated" struct JobStatusUpdated {
        /// The session.
        session_id: String,
        /// What the job ids belong to; equal to `jobId` in the events of a durable job.
        progress_scope_id: String,
        /// The plugin.
        plugin_id: String,
        /// The runtime.
        runtime_id: String,
        /// The job.
        job_id: String,
        /// Its state.
        state: JobState,
        /// How far it is.
        progress?: f64,
        /// What to tell the player.
        message?: String,
        /// More about it; see [`ControlData`] for a durable job.
        data?: Value,
        /// The number of the event within its job.
        sequence: u64,
        /// When: ISO 8601, UTC.
        created_at: String,
    }
}

shape! {
    /// The `data` of an event about a durable job.
    ///
    /// Source: seed 000, lines 348 and 379-387.
    struct ControlData {
        /// The turn that queued the job.
        origin_turn_id: String,
        /// Its durable status.
        durable_status: JobStatus,
        /// A known reason.
        reason?: String,
        /// Fixed text, chosen by state; never the raw error.
        error?: String,
    }
}
