//! Why the engine does not do what it was asked to.
//!
//! The variants are sorted by who is to blame: the caller's request, the state of the session, and
//! the server itself. How each looks on a wire is decided by the faces.

use crate::store::StoreError;

use super::ids::{JobId, PluginId, RuntimeId, SessionId};

/// Why the engine refuses.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The request itself is wrong, in these words.
    #[error("{0}")]
    Invalid(String),
    /// The page cursor was not made by this server.
    #[error("invalid cursor {0:?}")]
    InvalidCursor(String),
    /// No plugin has this id.
    #[error("unknown plugin {0:?}")]
    UnknownPlugin(PluginId),
    /// The plugin has no such action.
    #[error("plugin {plugin:?} has no action {action:?}")]
    UnknownAction {
        /// The plugin.
        plugin: PluginId,
        /// The action.
        action: String,
    },
    /// The session has no such command.
    #[error("the session has no command {0:?}")]
    UnknownCommand(String),
    /// A session of this id exists.
    #[error("session {0} already exists")]
    SessionExists(SessionId),

    /// There is no such session.
    #[error("Session not found: {0}")]
    SessionNotFound(SessionId),
    /// The session was deleted, or replaced by another of its id, while it was read.
    #[error("session {0} was replaced during the request")]
    IncarnationChanged(SessionId),
    /// The session is paused or ended.
    #[error("session {0} is not active")]
    SessionNotActive(SessionId),
    /// The session has ended, which is final.
    #[error("session {0} has ended")]
    SessionEnded(SessionId),
    /// The session has no active plugins.
    #[error("session {0} has no active plugins")]
    NoActivePlugins(SessionId),
    /// The plugin is not active in the session.
    #[error("plugin {0} is not active")]
    PluginNotActive(PluginId),
    /// No turn runs that could be stopped.
    #[error("session {0} has no running turn")]
    NoRunningTurn(SessionId),
    /// No active plugin has this manual runtime.
    #[error("no active plugin has a manual runtime {:?}", .0.as_str())]
    RuntimeNotActive(RuntimeId),
    /// The session was not free in time.
    #[error("session {0} is busy, please retry")]
    Busy(SessionId),
    /// The suspension was answered or voided.
    #[error("suspension {0} waits for no answer any more")]
    SuspensionOver(String),
    /// The running turn reads no interjection any more.
    #[error("the running turn of session {0} takes no more messages")]
    SteerTooLate(SessionId),
    /// There is no such row.
    #[error("{0} not found")]
    NotFound(String),
    /// The job is in a state that cannot be cancelled, or does not exist.
    #[error("job {0} cannot be cancelled")]
    JobNotCancellable(JobId),

    /// As many jobs of the session are queued as may be.
    #[error("session {0} has too many queued jobs")]
    QueueFull(SessionId),

    /// A run that went on after its suspension failed, or its commit did. It still waits.
    #[error("Resume failed: {0}")]
    ResumeFailed(String),
    /// A manual run failed, or its commit did.
    #[error("{0}")]
    RuntimeFailed(String),
    /// The handler of a plugin failed. Why is in the log.
    #[error("the plugin's handler failed")]
    HandlerThrew,
    /// The server is shutting down.
    #[error("server is shutting down")]
    ShuttingDown,
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Gone(id) => Self::SessionNotFound(id),
            other => Self::Store(other),
        }
    }
}
