//! What an action brings: the player's input, and what it recovers.

use super::{Conduct, NOTHING_QUEUED, Refused};
use crate::engine::actions::{Action, PlayerAction};
use crate::engine::ids::MessageId;
use crate::engine::model::{ExecutionState, Message, Origin, Role, Session};
use crate::engine::queue::Queued;
use crate::engine::recovery::status_of_row;
use crate::engine::turn::PlayerInput;
use turnwire_spec::covel::vocabulary::RejectionCode;

impl Conduct {
    /// No runtime of this server asks for an interaction, so every answer is to none that exists.
    pub(super) fn refuse_interactions(&self) -> Result<(), Refused> {
        let Action::Submit { actions, .. } = &self.request.action else {
            return Ok(());
        };
        if actions
            .iter()
            .any(|action| matches!(action, PlayerAction::Interaction(_)))
        {
            return Err(Refused {
                message: "There is no such interaction".to_owned(),
                code: Some(RejectionCode::InvalidInteractionSubmission),
            });
        }
        Ok(())
    }

    /// Checks a recovery against what can be recovered, and gives the origin that it keeps.
    pub(super) async fn recovered_origin(&self) -> Result<Option<Origin>, Refused> {
        let Some(source) = &self.request.recover_from else {
            return Ok(None);
        };
        let stale = || Refused::because(format!("turn {source} cannot be recovered"));
        let row = self
            .engine
            .inner
            .store
            .latest_execution(&self.session.id)
            .await?;
        let row = row.filter(|row| row.turn_id == *source).ok_or_else(stale)?;
        let origin = row.origin;
        let status = status_of_row(row);
        let unfinished = matches!(
            status.state,
            ExecutionState::Failed | ExecutionState::Interrupted
        );
        let input = match &self.request.action {
            Action::Submit {
                input_message_id, ..
            } => input_message_id.as_ref(),
            Action::StartSession { .. } | Action::RetryTurn | Action::Drain => None,
        };
        let same = status.retry == Some(self.request.action.description(input));
        if unfinished && same {
            Ok(Some(origin))
        } else {
            Err(stale())
        }
    }

    /// What waits in the queue, for an action that is to take it.
    pub(super) async fn queued(&self) -> Result<Option<Queued>, Refused> {
        if self.request.action != Action::Drain {
            return Ok(None);
        }
        let queued = self.engine.queued(&self.session.id).await;
        let queued = queued.map_err(Refused::because)?;
        let queued = queued.ok_or_else(|| Refused::because(NOTHING_QUEUED))?;
        Ok(Some(queued))
    }

    /// A queued text as the player's input, and the message that is stored for it.
    pub(super) fn queued_input(
        &self,
        session: &Session,
        queued: &Queued,
    ) -> (Option<PlayerInput>, Option<Message>) {
        let said = PlayerAction::Say(queued.text.clone());
        let player = PlayerInput {
            message_id: MessageId::from(self.engine.inner.ids.id("msg")),
            text: queued.text.clone(),
        };
        let message = self.user_message(session, &player, &[said]);
        (Some(player), Some(message))
    }

    fn user_message(
        &self,
        session: &Session,
        player: &PlayerInput,
        actions: &[PlayerAction],
    ) -> Message {
        let items = actions
            .iter()
            .map(PlayerAction::to_json)
            .collect::<Vec<_>>();
        Message {
            id: player.message_id.clone(),
            session_id: session.id.clone(),
            role: Role::User,
            content: player.text.clone(),
            turn_id: None,
            runtime_id: None,
            kind: None,
            block: None,
            actions: Some(items.into()),
            segments: None,
            created_at: self.engine.inner.clock.now(),
        }
    }

    /// The player's input, and the message that has to be stored for it.
    ///
    /// Source: seed 000, lines 937-953.
    pub(super) async fn player_input(
        &self,
        session: &Session,
    ) -> Result<(Option<PlayerInput>, Option<Message>), Refused> {
        let Action::Submit {
            actions,
            input_message_id,
        } = &self.request.action
        else {
            return Ok((None, None));
        };
        let text = self.request.action.player_text().unwrap_or_default();
        let stored = match input_message_id {
            None => None,
            Some(id) => self.engine.inner.store.message(id).await?,
        };
        let made = || MessageId::from(self.engine.inner.ids.id("msg"));
        let message_id = input_message_id.clone().unwrap_or_else(made);
        let player = PlayerInput {
            message_id,
            text: text.clone(),
        };
        if let Some(stored) = stored {
            check_reuse(&stored, session, &text)?;
            return Ok((Some(player), None));
        }
        let message = self.user_message(session, &player, actions);
        Ok((Some(player), Some(message)))
    }
}

/// Whether a stored message may be the input of a new turn.
fn check_reuse(stored: &Message, session: &Session, text: &str) -> Result<(), Refused> {
    let id = &stored.id;
    if stored.session_id != session.id {
        return Err(Refused::because(format!(
            "message {id} belongs to another session"
        )));
    }
    if stored.turn_id.is_some() {
        return Err(Refused::because(format!(
            "message {id} belongs to another turn"
        )));
    }
    if stored.role != Role::User || stored.content != text {
        return Err(Refused::because(format!(
            "message {id} has another content"
        )));
    }
    Ok(())
}
