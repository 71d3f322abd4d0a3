//! What waits to be said next in a session: one text, taken exactly once.
//!
//! The text is stored with the session, so it outlives its client and the process. It is taken when an action
//! ends, whatever became of it, and at once when nothing runs: by an action of its own ([`Action::Drain`]),
//! whose first transaction stores the player's message and removes the text. So of two that want to take it one
//! finds nothing, and a process that dies leaves either the text or the turn.
//!
//! Source: seed 004, lines 26, 29 and 44.

use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::actions::{Action, ActionRequest};
use super::happening::Happened;
use super::ids::{PluginId, RequestId, SessionId};
use super::model::{PluginDatum, Session};
use super::ports::{TurnEvent, TurnSink};
use super::{Engine, EngineError};
use crate::store::{Batch, Purpose, Write};

/// Whose data the queue is: the host's own.
const OWNER: &str = "_host";
/// Its namespace; one that begins with `_` is closed to plugins and clients.
const NAMESPACE: &str = "_queue";
/// The key of the text that waits.
const WAITING: &str = "waiting";
/// The key of the text that was taken last.
const TAKEN: &str = "taken";

/// A text that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    /// The text; not empty.
    pub text: String,
    /// When its client wrote it, in milliseconds of the client's clock; tells a repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts: Option<f64>,
}

/// Hears nothing: who is told of a turn listens to the session.
struct Deaf;

impl TurnSink for Deaf {
    fn event(&self, _: TurnEvent) {}
}

impl Engine {
    /// Puts a text into the session's queue in place of what waits there; clears it without a text, or with one of
    /// blanks. What waits while nothing runs is taken at once. A text that was taken before (the same text with
    /// the same time) is not taken again, but told as taken.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn set_queue(
        &self,
        id: &SessionId,
        queued: Option<Queued>,
    ) -> Result<(), EngineError> {
        let session = self.session(id).await?;
        let queued = queued.filter(|queued| !queued.text.trim().is_empty());
        let Some(queued) = queued else {
            return self.write_queue(&session, forget(WAITING)).await;
        };
        let taken = self.read_queue(id, TAKEN).await?;
        if queued.ts.is_some() && taken.as_ref() == Some(&queued) {
            self.write_queue(&session, forget(WAITING)).await?;
            self.emitter_outside(&session.key())
                .tell(Happened::QueueTaken { text: None });
            return Ok(());
        }
        let write = self.keep(WAITING, &queued);
        self.write_queue(&session, write).await?;
        self.drain(id).await;
        Ok(())
    }

    /// What waits in the session's queue.
    ///
    /// # Errors
    ///
    /// [`EngineError::Store`].
    pub async fn queued(&self, id: &SessionId) -> Result<Option<Queued>, EngineError> {
        self.read_queue(id, WAITING).await
    }

    /// Takes what waits, unless an action is under way, whose end will.
    ///
    /// A turn that ends begins the next one, so its future is boxed.
    pub(super) fn drain<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            if self.is_closing() || self.inner.active.current(id).is_some() {
                return;
            }
            match self.queued(id).await {
                Ok(None) => {}
                Ok(Some(queued)) if queued.text.starts_with('/') => {
                    self.drain_command(id, &queued).await;
                }
                Ok(Some(_)) => self.begin_drain(id).await,
                Err(error) => {
                    tracing::warn!(session = %id, %error, "the queue cannot be read");
                }
            }
        })
    }

    async fn begin_drain(&self, id: &SessionId) {
        let request = ActionRequest {
            request_id: RequestId::from(self.inner.ids.id("req")),
            session_id: id.clone(),
            action: Action::Drain,
            recover_from: None,
            model: None,
        };
        if let Err(error) = self.begin(request, Arc::new(Deaf)).await {
            tracing::debug!(session = %id, %error, "the queue waits on");
        }
    }

    /// A queued slash command is taken and run.
    async fn drain_command(&self, id: &SessionId, queued: &Queued) {
        let taken = async {
            let session = self.session(id).await?;
            let writes = self.take(queued);
            self.write_all(&session, writes).await?;
            let text = Some(queued.text.clone());
            self.emitter_outside(&session.key())
                .tell(Happened::QueueTaken { text });
            self.command(id, &queued.text).await
        };
        if let Err(error) = taken.await {
            tracing::warn!(session = %id, %error, "a queued command failed");
        }
    }

    /// The writes that take a text.
    pub(super) fn take(&self, queued: &Queued) -> Vec<Write> {
        vec![forget(WAITING), self.keep(TAKEN, queued)]
    }

    fn keep(&self, key: &str, queued: &Queued) -> Write {
        // A text and a number always serialize.
        let value = serde_json::to_value(queued).unwrap_or(Value::Null);
        Write::PutDatum(PluginDatum {
            plugin_id: PluginId::from(OWNER),
            namespace: NAMESPACE.to_owned(),
            key: key.to_owned(),
            value,
            updated_at: self.inner.clock.now(),
        })
    }

    async fn read_queue(&self, id: &SessionId, key: &str) -> Result<Option<Queued>, EngineError> {
        let owner = PluginId::from(OWNER);
        let rows = self.inner.store.plugin_data(id, &owner, NAMESPACE).await?;
        let row = rows.into_iter().find(|row| row.key == key);
        Ok(row.and_then(|row| serde_json::from_value(row.value).ok()))
    }

    async fn write_queue(&self, session: &Session, write: Write) -> Result<(), EngineError> {
        self.write_all(session, vec![write]).await
    }

    pub(super) async fn write_all(
        &self,
        session: &Session,
        writes: Vec<Write>,
    ) -> Result<(), EngineError> {
        let batch = Batch {
            session: session.key(),
            purpose: Purpose::Outside,
            writes,
        };
        Ok(self.inner.store.commit(batch).await?)
    }
}

fn forget(key: &str) -> Write {
    Write::DeleteDatum {
        plugin: PluginId::from(OWNER),
        namespace: NAMESPACE.to_owned(),
        key: key.to_owned(),
    }
}
