//! The frames of a client, as calls of the engine.
//!
//! A frame that cannot be taken is answered with `chat:error` on its own socket, and nothing else happens. What
//! concerns a session that does not exist is passed over in silence, as a client cannot know better.
//!
//! Source: seed 004, lines 20-31 and 42.

use std::sync::Arc;

use turnwire_spec::chat_ws::client::{Command, Continue, Send, SetQueue};
use turnwire_spec::chat_ws::server::Refusal;
use turnwire_spec::chat_ws::{ClientFrame, NO_SLUG, SCRATCH, ServerFrame, limits, read_client};
use turnwire_spec::covel::payloads::EventPayload;
use turnwire_spec::covel::payloads::execution::ErrorOccurred;
use turnwire_spec::session_update::limits::is_session_id;

use super::Chat;
use super::hub::{Expected, SocketId};
use super::outbox::Outbox;
use crate::engine::EngineError;
use crate::engine::actions::{Action, ActionRequest, PlayerAction};
use crate::engine::ids::{MessageId, PluginId, RequestId, SessionId, TurnId};
use crate::engine::nudge::Nudged;
use crate::engine::ports::{TurnEvent, TurnSink};
use crate::engine::queue::Queued;
use crate::engine::sessions::NewSession;

impl Chat {
    /// Takes a text that came over a socket.
    pub(super) async fn take(self: &Arc<Self>, socket: SocketId, outbox: &Outbox, text: &str) {
        let frame = match read_client(text) {
            Ok(frame) => frame,
            Err(error) => return refuse(outbox, NO_SLUG, error),
        };
        match frame {
            ClientFrame::Ping => outbox.put(&ServerFrame::Pong.to_text().into()),
            ClientFrame::Subscribe(subscribe) => {
                let last = subscribe.last_seq.and_then(|seq| seq.as_f64());
                if !is_session_id(&subscribe.session_id) {
                    return;
                }
                let session = SessionId::from(subscribe.session_id);
                let replay = subscribe.want_replay.unwrap_or_default();
                let last = last.unwrap_or(-1.0);
                if !self.hub.subscribe(socket, &session, replay, last) {
                    let most = limits::SUBSCRIPTIONS;
                    let why = format!("a socket has {most} subscriptions at most");
                    refuse(outbox, NO_SLUG, why);
                }
            }
            ClientFrame::Send(send) => self.send(socket, outbox, send).await,
            ClientFrame::Command(command) => self.command(outbox, command).await,
            ClientFrame::Cancel(cancel) => {
                // A job that nobody knows, or that has ended, is silence.
                let _ = self.engine.abort_turn(&TurnId::from(cancel.job_id));
            }
            ClientFrame::SetQueue(queue) => self.set_queue(queue).await,
            ClientFrame::Continue(again) => self.drive_again(outbox, again).await,
            _ => refuse(outbox, NO_SLUG, "Unknown message"),
        }
    }

    async fn send(self: &Arc<Self>, socket: SocketId, outbox: &Outbox, send: Send) {
        let slug = send.slug().unwrap_or(SCRATCH).to_owned();
        let session = match self.session(&slug, send.session_id).await {
            Ok(session) => session,
            Err(why) => return refuse(outbox, &slug, why),
        };
        let input = MessageId::from(self.engine.ids().id("msg"));
        let request = ActionRequest {
            request_id: RequestId::from(self.engine.ids().id("req")),
            session_id: session,
            action: Action::Submit {
                actions: vec![PlayerAction::Say(send.message)],
                input_message_id: Some(input.clone()),
            },
            recover_from: None,
            model: send.model.clone(),
        };
        let expected = Expected {
            socket,
            model: send.model,
        };
        self.hub.expect(input.clone(), expected);
        let sink = Arc::new(ChatSink {
            face: Arc::clone(self),
            input: input.clone(),
            slug: slug.clone(),
        });
        if let Err(error) = self.engine.begin(request, sink).await {
            self.hub.forget(&input);
            refuse(outbox, &slug, error);
        }
    }

    /// The session that a frame names, or a new one in this project.
    async fn session(&self, slug: &str, id: Option<String>) -> Result<SessionId, String> {
        if !self.settings.has_project(slug) {
            return Err(format!("Project not found: {slug}"));
        }
        let words = |error: EngineError| error.to_string();
        if let Some(id) = id {
            let session = self.engine.session(&SessionId::from(id)).await;
            return Ok(session.map_err(words)?.id);
        }
        let plugins = self
            .settings
            .plugins
            .iter()
            .map(|id| PluginId::from(id.as_str()));
        let new = NewSession {
            world_id: (slug != SCRATCH).then(|| slug.to_owned()),
            plugins: Some(plugins.collect()),
            ..NewSession::default()
        };
        Ok(self
            .engine
            .create_session(new)
            .await
            .map_err(words)?
            .session
            .id)
    }

    async fn command(self: &Arc<Self>, outbox: &Outbox, command: Command) {
        let slug = command.slug().unwrap_or(SCRATCH).to_owned();
        let session = match self.session(&slug, command.session_id).await {
            Ok(session) => session,
            Err(why) => return refuse(outbox, &slug, why),
        };
        // It may have to wait for the session, and the socket does not wait with it.
        let face = Arc::clone(self);
        self.life.tasks.spawn(async move {
            let done = face.engine.command(&session, &command.command).await;
            if let Err(error) = done {
                tracing::debug!(%session, %error, "a command was not run");
            }
        });
    }

    async fn set_queue(&self, queue: SetQueue) {
        let Some(session) = queue.session_id.map(SessionId::from) else {
            return;
        };
        let ts = queue.ts.and_then(|ts| ts.as_f64());
        let queued = queue.text.map(|text| Queued { text, ts });
        if let Err(error) = self.engine.set_queue(&session, queued).await {
            tracing::debug!(%session, %error, "a queue was not set");
        }
    }

    async fn drive_again(&self, outbox: &Outbox, again: Continue) {
        let session = SessionId::from(again.session_id.as_str());
        let slug = match again.slug() {
            Some(slug) => slug.to_owned(),
            None => self.slug(&session).await,
        };
        match self.engine.nudge(&session).await {
            Ok(Nudged::Begun | Nudged::Running) => {}
            Ok(Nudged::Refused) => refuse(outbox, &slug, "Recovery is turned off"),
            Err(EngineError::SessionNotFound(_)) => {}
            Err(error) => refuse(outbox, &slug, format!("Recovery failed: {error}")),
        }
    }
}

fn refuse(outbox: &Outbox, slug: &str, why: impl std::fmt::Display) {
    let frame = ServerFrame::Error(Refusal::of(slug, why.to_string()));
    outbox.put(&frame.to_text().into());
}

/// Hears whether an action that a socket asked for became a turn. The turn itself is told by the session.
struct ChatSink {
    face: Arc<Chat>,
    input: MessageId,
    slug: String,
}

impl TurnSink for ChatSink {
    fn event(&self, event: TurnEvent) {
        if event.kind == ErrorOccurred::EVENT {
            let why = event.payload.get("message").and_then(|text| text.as_str());
            let why = why.unwrap_or("the turn was refused").to_owned();
            self.face.hub.refuse(&self.input, &self.slug, why);
        }
    }
}
