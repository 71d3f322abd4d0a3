//! Slash commands: what a player can ask of the host itself, and no model ever reads.
//!
//! There is one, `/compact`: what was said so far is put into few words, which the model reads in place of it
//! from then on. Nothing stored is removed.
//!
//! Source: seed 004, lines 27, 37 and 51.

use super::happening::Happened;
use super::ids::{MessageId, SessionId, TurnId};
use super::model::{Message, Role, Session};
use super::{Engine, EngineError};
use crate::store::Write;

/// The kind of the message that stands for all messages before it.
pub const COMPACTION: &str = "compaction";

/// The command that compacts.
pub const COMPACT: &str = "/compact";

/// What a client reads when the session was not free in time.
const BUSY: &str = "Session is busy, please retry";

/// Characters that are kept of a message.
const KEPT_CHARS: usize = 120;

/// Messages that are kept of what was said, the newest ones.
const KEPT_MESSAGES: usize = 40;

impl Engine {
    /// Runs a slash command in a session, once nothing else runs in it. What came of it is told as
    /// [`Happened::CommandDone`].
    ///
    /// # Errors
    ///
    /// [`EngineError::ShuttingDown`], [`EngineError::SessionNotFound`], [`EngineError::Invalid`] when the session is
    /// not free in time, or [`EngineError::Store`].
    pub async fn command(&self, id: &SessionId, text: &str) -> Result<(), EngineError> {
        if self.is_closing() {
            return Err(EngineError::ShuttingDown);
        }
        let inner = &self.inner;
        self.session(id).await?;
        let guard = inner.locks.lock(id, inner.config.lock_within).await;
        let guard = guard.ok_or_else(|| EngineError::Invalid(BUSY.to_owned()))?;
        let session = self.session(id).await?;
        let name = text.split_whitespace().next().unwrap_or_default();
        let (note, success) = if name == COMPACT {
            (self.compact(&session).await?, true)
        } else {
            (format!("There is no command {name:?}."), false)
        };
        let turn = TurnId::from(inner.ids.id("turn"));
        self.emitter_outside(&session.key())
            .tell(Happened::CommandDone {
                turn,
                note,
                success,
            });
        drop(guard);
        // What waited on since before a restart goes out at the end of this, too.
        self.drain(id).await;
        Ok(())
    }

    async fn compact(&self, session: &Session) -> Result<String, EngineError> {
        let messages = self.inner.store.messages(&session.id).await?;
        let said: Vec<&Message> = since_compaction(&messages).collect();
        let count = said.len();
        let skipped = count.saturating_sub(KEPT_MESSAGES);
        let lines = said.iter().skip(skipped).map(|message| line(message));
        let content = lines.collect::<Vec<_>>().join("\n");
        let message = Message {
            id: MessageId::from(self.inner.ids.id("msg")),
            session_id: session.id.clone(),
            role: Role::System,
            content,
            turn_id: None,
            runtime_id: None,
            kind: Some(COMPACTION.to_owned()),
            block: None,
            actions: None,
            segments: None,
            created_at: self.inner.clock.now(),
        };
        self.write_all(session, vec![Write::InsertMessage(message)])
            .await?;
        Ok(format!("Conversation compacted ({count} messages)."))
    }
}

/// The messages that the last compaction does not stand for, without it.
pub(super) fn since_compaction(messages: &[Message]) -> impl Iterator<Item = &Message> {
    let start = messages
        .iter()
        .rposition(is_compaction)
        .map_or(0, |place| place + 1);
    messages.iter().skip(start)
}

/// What the last compaction left of the messages before it.
pub(super) fn compacted(messages: &[Message]) -> Option<&str> {
    let last = messages.iter().rfind(|message| is_compaction(message))?;
    Some(&last.content)
}

fn is_compaction(message: &Message) -> bool {
    message.role == Role::System && message.kind.as_deref() == Some(COMPACTION)
}

fn line(message: &Message) -> String {
    let who = match message.role {
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::System => "Before",
        Role::Tool => "Tool",
    };
    let short: String = message.content.chars().take(KEPT_CHARS).collect();
    format!("{who}: {}", short.replace('\n', " "))
}
