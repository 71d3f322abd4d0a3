//! What goes wrong, as HTTP answers: the one place where status and code are chosen.
//!
//! Every answer that is no success has the body `{error, code?, details?}`.
//!
//! Source: seed 000, lines 1017-1026; covel.md of the fact collection, section 2.1.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use turnwire_spec::covel::ErrorBody;

use crate::engine::EngineError;
use crate::store::StoreError;

/// What a client reads instead of the details of a failure of the server, in production.
pub const INTERNAL: &str = "Internal server error";

/// An answer that is no success.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// 4xx or 5xx.
    pub status: StatusCode,
    /// Lower snake case; `None` where the protocol names none.
    pub code: Option<&'static str>,
    /// The text for people.
    pub error: String,
    /// Seconds after which it is worth trying again.
    pub retry_after: Option<u64>,
}

impl ApiError {
    /// An answer with a code.
    #[must_use]
    pub fn new(status: StatusCode, code: &'static str, error: impl Into<String>) -> Self {
        Self {
            status,
            code: Some(code),
            error: error.into(),
            retry_after: None,
        }
    }

    /// An answer without a code.
    #[must_use]
    pub fn plain(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            code: None,
            error: error.into(),
            retry_after: None,
        }
    }

    /// 400 with this code.
    #[must_use]
    pub fn bad(code: &'static str, error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, error)
    }

    /// 400 without a code.
    #[must_use]
    pub fn invalid(error: impl Into<String>) -> Self {
        Self::plain(StatusCode::BAD_REQUEST, error)
    }

    /// The session's owner token is missing or wrong.
    #[must_use]
    pub fn owner_required() -> Self {
        let error = "this session needs its owner's token";
        Self::new(StatusCode::UNAUTHORIZED, "session_owner_required", error)
    }

    /// There is no such session.
    #[must_use]
    pub fn session_not_found(id: &str) -> Self {
        let error = format!("Session not found: {id}");
        Self::new(StatusCode::NOT_FOUND, "session_not_found", error)
    }

    /// The session was deleted or replaced while the request was at it.
    #[must_use]
    pub fn incarnation_changed(id: &str) -> Self {
        let error = format!("session {id} was replaced during the request");
        Self::new(StatusCode::CONFLICT, "session_incarnation_changed", error)
    }

    /// The body is too long.
    #[must_use]
    pub fn too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "payload_too_large",
            "Payload Too Large",
        )
    }

    /// Nothing lives at this path.
    #[must_use]
    pub fn no_route(path: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("nothing at {path}"),
        )
    }

    /// The path does not take this method.
    #[must_use]
    pub fn no_method(method: &str) -> Self {
        let error = format!("{method} is not answered here");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", error)
    }

    /// The server is on its way down.
    #[must_use]
    pub fn shutting_down() -> Self {
        let error = "server is shutting down";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "server_shutting_down",
            error,
        )
    }

    /// A failure of the server: the details go to the log, and to the client outside production.
    #[must_use]
    pub fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "a request failed");
        Self::plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self {
            status,
            code,
            error,
            retry_after,
        } = self;
        let body = ErrorBody {
            error,
            code: code.map(str::to_owned),
            details: None,
        };
        let mut response = (status, Json(body)).into_response();
        if let Some(seconds) = retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        use StatusCode as S;
        let text = error.to_string();
        let (status, code) = match error {
            EngineError::Invalid(_) => return Self::invalid(text),
            EngineError::InvalidCursor(_) => (S::BAD_REQUEST, "invalid_cursor"),
            EngineError::UnknownPlugin(_) => (S::BAD_REQUEST, "unknown_plugin"),
            EngineError::UnknownAction { .. } => (S::NOT_FOUND, "unknown_action"),
            EngineError::UnknownCommand(_) => (S::NOT_FOUND, "command_not_active"),
            EngineError::HandlerThrew => (S::INTERNAL_SERVER_ERROR, "handler-threw"),
            EngineError::SessionExists(_) => (S::CONFLICT, "session_already_exists"),
            EngineError::SessionNotFound(id) => return Self::session_not_found(id.as_str()),
            EngineError::IncarnationChanged(id) => return Self::incarnation_changed(id.as_str()),
            EngineError::SessionNotActive(_) => (S::CONFLICT, "session_not_active"),
            EngineError::SessionEnded(_) => (S::CONFLICT, "session_ended"),
            EngineError::NoActivePlugins(_) => (S::BAD_REQUEST, "no_active_plugins"),
            EngineError::PluginNotActive(_) => (S::NOT_FOUND, "plugin_not_active"),
            EngineError::NoRunningTurn(_) => (S::CONFLICT, "no_running_turn"),
            EngineError::RuntimeNotActive(_) => (S::NOT_FOUND, "runtime_not_active"),
            EngineError::SteerTooLate(_) => (S::CONFLICT, "steer_too_late"),
            EngineError::Busy(_) => (S::SERVICE_UNAVAILABLE, "session_busy"),
            EngineError::SuspensionOver(_) => return Self::plain(S::CONFLICT, text),
            EngineError::ResumeFailed(_) | EngineError::RuntimeFailed(_) => {
                return Self::plain(S::INTERNAL_SERVER_ERROR, text);
            }
            EngineError::NotFound(_) => return Self::plain(S::NOT_FOUND, text),
            EngineError::JobNotCancellable(_) => (S::CONFLICT, "runtime_job_not_cancellable"),
            EngineError::QueueFull(_) => (S::TOO_MANY_REQUESTS, "background_queue_full"),
            EngineError::ShuttingDown => return Self::shutting_down(),
            EngineError::Store(error) => return error.into(),
        };
        Self::new(status, code, text)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Gone(id) => Self::session_not_found(id.as_str()),
            StoreError::Conflict(_) => {
                Self::new(StatusCode::CONFLICT, "conflict", error.to_string())
            }
            other => Self::internal(&other),
        }
    }
}
