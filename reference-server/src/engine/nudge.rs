//! Background tasks that were killed, and sessions that hang because of it.
//!
//! Both sides of it are behind one switch, [`EngineConfig::surface_killed_tasks`](super::EngineConfig): that a
//! killed task is told, and that a client may have the session driven again.
//!
//! Source: seed 004, lines 30 and 45.

use std::sync::Arc;
use std::time::Duration;

use super::actions::{Action, ActionRequest, PlayerAction};
use super::happening::Happened;
use super::ids::{RequestId, SessionId};
use super::model::Session;
use super::ports::{TurnEvent, TurnSink};
use super::{Engine, EngineError};

/// What the model reads when a session is driven again.
const NUDGE_TEXT: &str =
    "A background task was stopped before it was done. Go on without it, as well as you can.";

/// How often it is looked at whether a turn that has told its end lets go of its session.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What became of the wish to drive a session again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Nudged {
    /// A turn begins.
    Begun,
    /// Something runs in the session already.
    Running,
    /// The switch is off.
    Refused,
}

struct Deaf;

impl TurnSink for Deaf {
    fn event(&self, _: TurnEvent) {}
}

impl Engine {
    /// Tells that a background task that a session waits for was killed, where that is to be told. The summary is
    /// that of the notification, `<task-notification>` with a `<summary>`.
    pub fn task_killed(&self, session: &Session, notification: &str) {
        if self.inner.config.surface_killed_tasks {
            let summary = summary(notification);
            self.emitter_outside(&session.key())
                .tell(Happened::TaskKilled { summary });
        }
    }

    /// Drives a session again that hangs. The message that begins the turn is the host's, not the player's.
    ///
    /// # Errors
    ///
    /// As [`Engine::begin`].
    pub async fn nudge(&self, id: &SessionId) -> Result<Nudged, EngineError> {
        if !self.inner.config.surface_killed_tasks {
            return Ok(Nudged::Refused);
        }
        if !self.lets_go(id).await {
            return Ok(Nudged::Running);
        }
        let request = ActionRequest {
            request_id: RequestId::from(self.inner.ids.id("req")),
            session_id: id.clone(),
            action: Action::Submit {
                actions: vec![PlayerAction::Nudge(NUDGE_TEXT.to_owned())],
                input_message_id: None,
            },
            recover_from: None,
            model: None,
        };
        self.begin(request, Arc::new(Deaf)).await?;
        Ok(Nudged::Begun)
    }

    /// Whether nothing runs in a session. A turn tells its end a moment before it lets go of the session, and who has heard
    /// of the end may ask at once: so that moment is waited for, but no turn that goes on.
    async fn lets_go(&self, id: &SessionId) -> bool {
        let letting_go = async {
            while let Some(control) = self.inner.active.current(id) {
                if !control.tells_its_end() {
                    return false;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            true
        };
        let within = self.inner.config.lock_within;
        tokio::time::timeout(within, letting_go)
            .await
            .unwrap_or(false)
    }
}

/// The text of the `summary` element, where there is one that says something.
fn summary(notification: &str) -> Option<String> {
    let (_, rest) = notification.split_once("<summary>")?;
    let (summary, _) = rest.split_once("</summary>")?;
    let summary = summary.trim();
    (!summary.is_empty()).then(|| summary.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_a_notification_is_that_of_its_element() {
        let of = |text| summary(text);
        assert_eq!(
            of("<task-notification><summary> build stopped </summary></task-notification>")
                .as_deref(),
            Some("build stopped")
        );
        assert_eq!(of("<task-notification></task-notification>"), None);
        assert_eq!(of("<summary></summary>"), None);
    }
}
