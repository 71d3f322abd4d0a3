//! What became of the latest execution of a session, and how to ask for it again.
//!
//! Source: seed 000, lines 881-893, and `covel.md` of the fact collection, section 5.3.

use super::ids::SessionId;
use super::model::{ExecutionRow, ExecutionState, ExecutionStatus};
use super::{Engine, EngineError};

impl Engine {
    /// Where the latest execution stands.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`], [`EngineError::IncarnationChanged`] when the session was
    /// deleted or replaced while this was read, or [`EngineError::Store`].
    pub async fn execution_status(&self, id: &SessionId) -> Result<ExecutionStatus, EngineError> {
        let before = self.session(id).await?;
        let status = self.execution_of(id).await?;
        let after = self.inner.store.session(id).await?;
        match after {
            Some(after) if after.incarnation == before.incarnation => Ok(status),
            _ => Err(EngineError::IncarnationChanged(id.clone())),
        }
    }

    pub(super) async fn execution_of(
        &self,
        id: &SessionId,
    ) -> Result<ExecutionStatus, EngineError> {
        if let Some(control) = self.inner.active.current(id) {
            return Ok(ExecutionStatus {
                state: ExecutionState::Running,
                turn_id: Some(control.turn_id()),
                request_id: Some(control.request_id.clone()),
                started_at: Some(control.started_at),
                origin: Some(control.origin),
                abort_reason: None,
                retry: None,
            });
        }
        let row = self.inner.store.latest_execution(id).await?;
        Ok(row.map_or_else(ExecutionStatus::idle, status_of_row))
    }
}

/// The status of an execution that nobody runs.
pub(super) fn status_of_row(row: ExecutionRow) -> ExecutionStatus {
    let state = match &row.end {
        None => ExecutionState::Interrupted,
        Some(end) if end.committed => ExecutionState::Completed,
        Some(_) => ExecutionState::Failed,
    };
    let retry = row.retry.filter(|_| state != ExecutionState::Completed);
    ExecutionStatus {
        state,
        turn_id: Some(row.turn_id),
        request_id: Some(row.request_id),
        started_at: Some(row.started_at),
        origin: Some(row.origin),
        abort_reason: row.end.and_then(|end| end.abort_reason),
        retry,
    }
}
