//! The stop signal of an action, with the one who gave it.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;
use turnwire_spec::covel::vocabulary::{CancelledBy, PLAYER_ABORT_REASON};

/// Who stopped an action.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CancelCause {
    /// The player.
    Player,
    /// The server shuts down; not reported as a player stop.
    Shutdown,
    /// The session was deleted.
    Deleted,
}

impl CancelCause {
    /// The `abortReason` of `execution.completed`.
    #[must_use]
    pub const fn abort_reason(self) -> &'static str {
        match self {
            Self::Player => PLAYER_ABORT_REASON,
            Self::Shutdown => "server-shutdown",
            Self::Deleted => "session-deleted",
        }
    }

    /// The text for people.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Player => "The turn was stopped by the player",
            Self::Shutdown => "The turn was stopped because the server shuts down",
            Self::Deleted => "The turn was stopped because the session was deleted",
        }
    }

    /// Who stopped the loop that was running.
    #[must_use]
    pub const fn cancelled_by(self) -> CancelledBy {
        match self {
            Self::Player => CancelledBy::Player,
            Self::Shutdown | Self::Deleted => CancelledBy::Parent,
        }
    }
}

/// A stop signal; clones share it. The first cause stays.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    token: CancellationToken,
    cause: Arc<OnceLock<CancelCause>>,
}

impl Cancel {
    /// A signal that nobody has given yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the signal.
    pub fn cancel(&self, cause: CancelCause) {
        let _ = self.cause.set(cause);
        self.token.cancel();
    }

    /// Who gave it, when somebody did.
    #[must_use]
    pub fn cause(&self) -> Option<CancelCause> {
        self.cause.get().copied()
    }

    /// Waits for it.
    pub async fn cancelled(&self) -> CancelCause {
        self.token.cancelled().await;
        self.cause().unwrap_or(CancelCause::Shutdown)
    }
}
