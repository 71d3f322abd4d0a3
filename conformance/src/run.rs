//! A run: scenarios against a target, checks over what they recorded, one verdict per requirement.
//!
//! - [`plan`]: what is run, against what; [`event`]: what is told while it runs; [`report`]: what comes out;
//! - [`pick`]: which scenarios can be run, and why others cannot;
//! - [`pool`]: the instances of the target, shared or not; [`execute`]: scenarios side by side;
//! - [`judge`]: checks over transcripts, live or from files; [`harness`]: whether the harness's own requests
//!   keep to the protocol.
//!
//! A wrong target is a verdict. [`RunError`] means that nothing could be found out; a
//! [`Problem`](report::Problem) that one scenario could not be played.

use std::time::Duration;

use tokio::time::Instant;

use crate::drivers::{DriveError, model::ModelServer};

pub mod event;
mod execute;
pub mod harness;
pub mod judge;
mod pick;
pub mod plan;
mod pool;
pub mod report;
#[cfg(test)]
mod tests;

pub use event::RunEvent;
pub use judge::{judge, judge_played};
pub(crate) use pick::NO_MODEL;
pub use pick::{MODEL, RATE_LIMITS, RESTART};
pub use plan::RunPlan;
pub use report::{HarnessError, Outcome, Problem, Red, RedReason, RunReport};

/// Why there is no report.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The target does not answer, or answers in another protocol.
    #[error("the target cannot be reached: {0}")]
    Unreachable(DriveError),
    /// What answers is no such server.
    #[error("{url} answers {path} with {status} {media_type}; is this the base URL of the API?")]
    NotTheApi {
        /// Base URL of the target.
        url: String,
        /// The path that was asked for.
        path: String,
        /// Status code.
        status: u16,
        /// Media type of the answer.
        media_type: String,
    },
    /// What answers does not speak the protocol of lines.
    #[error(
        "{url} answers {{\"kind\":\"request\",\"request_id\":1,\"method\":\"initialize\"}} with {got}, \
         not with a response that has request_id 1 and a result"
    )]
    NotTheProtocol {
        /// Where the target listens.
        url: String,
        /// The answer as JSON, `null` for a line without any, or `nothing`.
        got: String,
    },
    /// The target did not start.
    #[error("{0}")]
    NotStarted(DriveError),
    /// The mock model provider does not start.
    #[error("harness: the mock model provider does not start: {0}")]
    Model(String),
    /// There is nothing to do.
    #[error("nothing to run: {0}")]
    Nothing(String),
}

impl RunError {
    /// The last lines that the target said, oldest first.
    pub fn output(&self) -> &[String] {
        match self {
            Self::NotStarted(DriveError::NotStarted { output, .. }) => output,
            _ => &[],
        }
    }
}

/// Plays the scenarios of a plan and judges what they show.
///
/// # Errors
///
/// [`RunError`] when nothing could be found out: the target is down, hangs, speaks no HTTP, is no such API, or
/// does not start; or the plan selects nothing. A single scenario that fails is no error but a problem in the
/// report.
pub async fn run(plan: RunPlan) -> Result<RunReport, RunError> {
    let begun = Instant::now();
    if plan.requirements.is_empty() {
        return Err(RunError::Nothing("no requirement is selected".to_owned()));
    }
    let model = start_model(&plan).await?;
    let played = execute::play(&plan, model.as_ref()).await;
    let report = played.map(|played| report::assemble(&plan, played, begun.elapsed()));
    if let Some(model) = model {
        // Nobody waits for replies any more.
        let _ = tokio::time::timeout(Duration::from_millis(100), model.shutdown()).await;
    }
    if let Ok(report) = &report {
        plan.tell(RunEvent::Finished {
            outcome: report.outcome(),
            took: report.took,
        });
    }
    report
}

async fn start_model(plan: &RunPlan) -> Result<Option<ModelServer>, RunError> {
    if !plan.profile.reaches_model() {
        return Ok(None);
    }
    let started = match plan.profile.model_listen {
        Some(address) => ModelServer::listen(address).await,
        None => ModelServer::start().await,
    };
    started
        .map(Some)
        .map_err(|error| RunError::Model(error.to_string()))
}
