//! How a request is refused: one table from what the engine says to the words of the protocol.

use serde_json::json;
use turnwire_spec::session_update::{ErrorBody, ErrorType, RequestId};

use super::requests::answer;
use crate::engine::EngineError;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) kind: ErrorType,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(kind: ErrorType, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorType::InvalidRequest, message)
    }

    /// The line that says so.
    pub(super) fn response(&self, request_id: &RequestId) -> String {
        let error = ErrorBody {
            kind: self.kind.to_string(),
            message: self.message.clone(),
        };
        answer(request_id, "error", &json!(error))
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        let kind = match &error {
            EngineError::SessionNotFound(_) => ErrorType::SessionNotFound,
            EngineError::NoRunningTurn(_) => ErrorType::TurnNotActive,
            EngineError::ShuttingDown => ErrorType::ServerStopping,
            EngineError::Invalid(_) | EngineError::UnknownPlugin(_) => ErrorType::InvalidRequest,
            EngineError::Store(cause) => {
                tracing::warn!(%cause, "a request failed in the store");
                return Self::new(ErrorType::RuntimeError, "the store failed");
            }
            _ => ErrorType::RuntimeError,
        };
        Self::new(kind, error.to_string())
    }
}
