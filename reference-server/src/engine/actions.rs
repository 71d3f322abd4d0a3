//! Actions: what a client can ask a session to do, and how one is admitted.
//!
//! [`Engine::begin`] checks what can be answered before a stream opens, and starts a task that runs
//! the action to its end whoever listens. What that task does is in `conduct`.
//!
//! Source: seed 000, lines 857-960.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::cancel::CancelCause;
use super::conduct::Conduct;
use super::ids::{MessageId, RequestId, SessionId, TraceId, TurnId};
use super::locks::Control;
use super::model::{Object, Origin, RetryAction};
use super::ports::TurnSink;
use super::{Engine, EngineError};

/// The type of the item of `actions` that tells a message of the host from one of the player.
pub const NUDGE: &str = "nudge";

/// One action request.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionRequest {
    /// The client's name for it.
    pub request_id: RequestId,
    /// The session.
    pub session_id: SessionId,
    /// What to do.
    pub action: Action,
    /// The unfinished execution that this request takes up again.
    pub recover_from: Option<TurnId>,
    /// Asks for this model instead of the one that the gateway would choose.
    pub model: Option<String>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Open the session: its setup, if it has one, and the first turn.
    StartSession {
        /// Added to what the model is told; nothing when absent or empty.
        lore: Option<String>,
    },
    /// Play a turn with the player's input.
    Submit {
        /// What the player does, at least one.
        actions: Vec<PlayerAction>,
        /// The message under which the client has shown or saved the input.
        input_message_id: Option<MessageId>,
    },
    /// Play a turn without input, from the committed context.
    RetryTurn,
    /// Play a turn with what waits in the session's queue, see [`queue`](super::queue).
    Drain,
}

/// One thing that a player does.
#[derive(Clone, Debug, PartialEq)]
pub enum PlayerAction {
    /// Says this.
    Say(String),
    /// Does this.
    Act(String),
    /// Gives this slash command.
    Command(String),
    /// Nothing: the host asks, in the player's place, that interrupted work is taken up again.
    Nudge(String),
    /// Answers an interaction; the members besides `type`, as they came.
    Interaction(Object),
}

impl PlayerAction {
    /// What the player's message shows of it.
    fn text(&self) -> Option<&str> {
        match self {
            Self::Say(text) | Self::Act(text) | Self::Command(text) | Self::Nudge(text) => {
                Some(text)
            }
            Self::Interaction(_) => None,
        }
    }

    /// As one item of `actions`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let text = |kind: &str, text: &str| json!({ "type": kind, "text": text });
        match self {
            Self::Say(said) => text("say", said),
            Self::Act(done) => text("act", done),
            Self::Command(given) => text("command", given),
            Self::Nudge(asked) => text(NUDGE, asked),
            Self::Interaction(members) => {
                let mut item = Object::from_iter([("type".to_owned(), json!("interaction"))]);
                item.extend(members.clone());
                Value::Object(item)
            }
        }
    }
}

impl Action {
    /// Its `type`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StartSession { .. } => "start_session",
            Self::Submit { .. } | Self::Drain => "submit_actions",
            Self::RetryTurn => "retry_turn",
        }
    }

    /// Who begins the execution that it asks for.
    pub(super) const fn origin(&self) -> Origin {
        match self {
            Self::StartSession { .. } => Origin::Continuation,
            Self::Submit { .. } | Self::RetryTurn | Self::Drain => Origin::Player,
        }
    }

    /// How to ask for it again, with the input stored as this message.
    pub(super) fn description(&self, input: Option<&MessageId>) -> RetryAction {
        let mut payload = Object::new();
        match self {
            Self::StartSession { lore: Some(lore) } => {
                payload.insert("loreOverride".into(), lore.clone().into());
            }
            Self::Submit { actions, .. } => {
                let items = actions
                    .iter()
                    .map(PlayerAction::to_json)
                    .collect::<Vec<_>>();
                payload.insert("actions".into(), items.into());
                if let Some(input) = input {
                    payload.insert("inputMessageId".into(), input.clone().into());
                }
            }
            Self::StartSession { lore: None } | Self::RetryTurn | Self::Drain => {}
        }
        RetryAction {
            kind: self.name().to_owned(),
            payload,
        }
    }

    /// The player's text, one action a line; `None` for actions without player input.
    pub(super) fn player_text(&self) -> Option<String> {
        match self {
            Self::Submit { actions, .. } => {
                let lines: Vec<&str> = actions.iter().filter_map(PlayerAction::text).collect();
                Some(lines.join("\n"))
            }
            Self::StartSession { .. } | Self::RetryTurn | Self::Drain => None,
        }
    }
}

/// An action that was admitted. It runs on when this is dropped.
#[derive(Debug)]
pub struct ActionHandle {
    /// The trace of all its events.
    pub trace_id: TraceId,
    /// The first turn that it will write.
    pub turn_id: TurnId,
    task: JoinHandle<()>,
}

impl ActionHandle {
    /// Waits until the action is over, its work after the commit included.
    pub async fn finished(self) {
        // The task cannot be aborted from outside; a panic in it was reported by the runtime.
        let _ = self.task.await;
    }
}

impl Engine {
    /// Admits an action and starts it. Its events go to `sink` until it is over.
    ///
    /// # Errors
    ///
    /// [`EngineError::ShuttingDown`], [`EngineError::SessionNotFound`],
    /// [`EngineError::SessionNotActive`], [`EngineError::NoActivePlugins`] for an opening without
    /// plugins, [`EngineError::Invalid`] for a submission without actions, or [`EngineError::Store`].
    /// What is found out later arrives as an event.
    pub async fn begin(
        &self,
        request: ActionRequest,
        sink: Arc<dyn TurnSink>,
    ) -> Result<ActionHandle, EngineError> {
        if self.is_closing() {
            return Err(EngineError::ShuttingDown);
        }
        let session = self.active_session(&request.session_id).await?;
        match &request.action {
            Action::StartSession { .. } if session.active_plugins.is_empty() => {
                return Err(EngineError::NoActivePlugins(session.id));
            }
            Action::Submit { actions, .. } if actions.is_empty() => {
                return Err(EngineError::Invalid("actions must not be empty".to_owned()));
            }
            _ => {}
        }
        let turn_id = TurnId::from(self.inner.ids.id("turn"));
        let trace_id = TraceId::from(self.inner.ids.id("tr"));
        let control = Arc::new(Control::new(
            session.id.clone(),
            request.request_id.clone(),
            request.action.origin(),
            turn_id.clone(),
            self.inner.clock.now(),
        ));
        let enlisted = self.inner.active.enlist(&control);
        // The engine may have been told to stop since it was asked above.
        if self.is_closing() {
            control.cancel.cancel(CancelCause::Shutdown);
        }
        let conduct = Conduct::new(
            self.clone(),
            request,
            session.key(),
            control,
            sink,
            trace_id.clone(),
        );
        let (engine, id) = (self.clone(), session.id);
        let task = self.spawn(async move {
            if conduct.run(enlisted).await {
                engine.drain(&id).await;
            }
        });
        Ok(ActionHandle {
            trace_id,
            turn_id,
            task,
        })
    }

    /// Stops the action of this session that is under way, in the player's name. Does so again
    /// without effect while the action ends.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`], [`EngineError::NoRunningTurn`] or [`EngineError::Store`].
    pub async fn abort(&self, id: &SessionId) -> Result<TurnId, EngineError> {
        self.session(id).await?;
        let control = self.inner.active.current_action(id);
        let control = control.ok_or_else(|| EngineError::NoRunningTurn(id.clone()))?;
        control.cancel.cancel(CancelCause::Player);
        Ok(control.turn_id())
    }

    /// Stops the action that writes this turn, or will, in the player's name. False when there is none.
    #[must_use]
    pub fn abort_turn(&self, turn: &TurnId) -> bool {
        let control = self.inner.active.of_turn(turn);
        if let Some(control) = &control {
            control.cancel.cancel(CancelCause::Player);
        }
        control.is_some()
    }

    /// [`Engine::begin`] with [`Action::StartSession`].
    ///
    /// # Errors
    ///
    /// As [`Engine::begin`].
    pub async fn start_session(
        &self,
        request_id: RequestId,
        session_id: SessionId,
        sink: Arc<dyn TurnSink>,
    ) -> Result<ActionHandle, EngineError> {
        let action = Action::StartSession { lore: None };
        self.begin(
            ActionRequest {
                request_id,
                session_id,
                action,
                recover_from: None,
                model: None,
            },
            sink,
        )
        .await
    }

    /// [`Engine::begin`] with [`Action::Submit`].
    ///
    /// # Errors
    ///
    /// As [`Engine::begin`].
    pub async fn submit_actions(
        &self,
        request_id: RequestId,
        session_id: SessionId,
        actions: Vec<PlayerAction>,
        sink: Arc<dyn TurnSink>,
    ) -> Result<ActionHandle, EngineError> {
        let action = Action::Submit {
            actions,
            input_message_id: None,
        };
        self.begin(
            ActionRequest {
                request_id,
                session_id,
                action,
                recover_from: None,
                model: None,
            },
            sink,
        )
        .await
    }
}
