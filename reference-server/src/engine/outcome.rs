//! How runs and executions end: the vocabulary that results, events and rows share.
//!
//! Source: seed 000, lines 165-208.

use serde::Serialize;

use super::model::JobState;
use crate::gateway::{ErrorKind, Target};

/// The `abortReason` of a turn that the player stopped.
///
/// Source: seed 000, lines 232-238.
pub const ABORTED_BY_PLAYER: &str = "aborted-by-player";

/// Why an agent runtime's loop ended. Each way to end has exactly one.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The model gave its final reply.
    Completed,
    /// The steps ran out.
    MaxSteps,
    /// The runtime's own deadline passed.
    Deadline,
    /// Somebody stopped it.
    Cancelled,
    /// The model call failed for good.
    ModelError,
    /// There was no valid output, repair included.
    InvalidOutput,
}

impl StopReason {
    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::MaxSteps => "max-steps",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::ModelError => "model-error",
            Self::InvalidOutput => "invalid-output",
        }
    }
}

/// How an agent runtime's loop ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopStop {
    /// Why.
    pub reason: StopReason,
    /// Whether the finalizer step wrote the answer.
    pub finalizer: bool,
    /// Whether a repair step replaced the answer.
    pub repaired: bool,
    /// Who stopped it, when it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<CancelledBy>,
}

impl LoopStop {
    /// An end for this reason, without finalizer or repair.
    #[must_use]
    pub const fn plain(reason: StopReason) -> Self {
        Self {
            reason,
            finalizer: false,
            repaired: false,
            cancelled_by: None,
        }
    }
}

/// Who stopped a loop.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CancelledBy {
    /// The player.
    Player,
    /// What encloses it: the server shuts down, or the session is gone.
    Parent,
}

/// What one step of a loop did besides asking and calling tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StepNote {
    /// It asked to repair an invalid answer.
    OutputRepair,
}

impl StepNote {
    /// Its `kind` on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutputRepair => "output-repair",
        }
    }
}

/// Why a run failed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The text for people.
    pub error: String,
    /// The category, when a model call was to blame.
    #[serde(skip)]
    pub kind: Option<ErrorKind>,
    /// Which model failed, when one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
}

impl Failure {
    /// A failure that no model is to blame for.
    #[must_use]
    pub fn new(error: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            kind: None,
            target: None,
        }
    }
}

/// How a runtime's run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeStatus {
    /// It gave its output.
    Success,
    /// It did not.
    Failed,
    /// It never started.
    Skipped,
}

/// The terminal state of an action request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Terminal {
    /// Runtimes that were to run.
    pub runtime_count: usize,
    /// Runtimes that gave a result, failures included.
    pub result_count: usize,
    /// How long the request took.
    pub duration_ms: u64,
    /// Whether the last execution was committed.
    pub committed: bool,
    /// Why it was not; present exactly when it was not.
    pub error: Option<String>,
    /// Who stopped it, when somebody did.
    pub abort_reason: Option<String>,
    /// Whether events of a committed round could not be published.
    pub resync: bool,
}

impl JobState {
    /// Its durable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Orphaned => "orphaned",
        }
    }
}
