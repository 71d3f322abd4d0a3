//! How runs and executions end: what results, events and rows share.
//!
//! The words (stop reasons, statuses) are the protocol's own, in [`turnwire_spec::covel::vocabulary`].
//!
//! Source: seed 000, lines 165-208.

use serde::Serialize;
use turnwire_spec::covel::payloads::execution::FailureTarget;
use turnwire_spec::covel::vocabulary::{CancelledBy, StopReason};

use crate::gateway::ErrorKind;

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

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The text for people.
    pub error: String,
    /// The category, when a model call was to blame.
    #[serde(skip)]
    pub kind: Option<ErrorKind>,
    /// Which model failed, when one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<FailureTarget>,
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
