//! Snapshots of a session, and the sessions that are made from them.
//!
//! A snapshot holds what the session is at that moment: its record, its messages, its plugins' data
//! and its characters. Jobs, traces and open suspensions are not in it. It is written under the
//! session lock, so that it shows one committed state; its event follows it.
//!
//! Source: seed 000, lines 578-595; covel.md of the fact collection, section 2.7.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use turnwire_spec::covel::vocabulary::SnapshotKind;

use super::emitter::Emitter;
use super::events::changes;
use super::ids::{MessageId, SessionId, TurnId};
use super::model::{Message, PluginDatum, Record, Session, SessionStatus, Shelf};
use super::sessions::{Created, NewSession};
use super::{Engine, EngineError};
use crate::store::{Batch, Purpose, Write};

/// Snapshots that a session keeps. Beyond that none is written.
const SNAPSHOTS_KEPT: usize = 1000;

/// What a session was at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Its id.
    pub id: String,
    /// The turn that was written last.
    pub turn_id: TurnId,
    /// Why it was made.
    pub kind: SnapshotKind,
    /// The one before it, or for a fork the one that was forked.
    pub parent_id: Option<String>,
    /// When.
    pub created_at: Timestamp,
    /// The session.
    pub session: Session,
    /// Its messages, oldest first.
    pub messages: Vec<Message>,
    /// The data of its plugins.
    pub data: Vec<PluginDatum>,
    /// Its characters and their definition.
    pub records: Vec<Record>,
}

/// A session that was made from a snapshot.
#[derive(Clone, Debug)]
pub struct Forked {
    /// The child.
    pub child: Created,
    /// The snapshot that the fork wrote.
    pub fork_snapshot_id: String,
}

impl Engine {
    /// The snapshots of a session, oldest first.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn snapshots(&self, id: &SessionId) -> Result<Vec<Snapshot>, EngineError> {
        self.session(id).await?;
        let records = self.inner.store.records(id, Shelf::Snapshot).await?;
        let read = |record: Record| {
            serde_json::from_value(record.doc)
                .map_err(|error| EngineError::NotFound(format!("snapshot {}: {error}", record.id)))
        };
        records.into_iter().map(read).collect()
    }

    /// Writes a snapshot of a session as it is, and announces it.
    ///
    /// # Errors
    ///
    /// [`EngineError::Invalid`] when the session has as many as it may, [`EngineError::Busy`], or as
    /// [`Engine::snapshots`].
    pub async fn take_snapshot(&self, id: &SessionId) -> Result<Snapshot, EngineError> {
        let _guard = self.hold(id).await?;
        let emitter = self.emitter_outside(&self.session(id).await?.key());
        self.capture(id, SnapshotKind::Manual, None, &emitter).await
    }

    /// After a commit: a snapshot, when a plugin of the session asks for one. Whatever fails is logged.
    pub(super) async fn capture_commit(&self, session: &Session, emitter: &Emitter) {
        let mut active = self.inner.registry.active(&session.active_plugins);
        if !active.any(|plugin| plugin.captures()) {
            return;
        }
        let kind = SnapshotKind::Auto;
        if let Err(error) = self.capture(&session.id, kind, None, emitter).await {
            tracing::warn!(session = %session.id, %error, "no snapshot was written after a commit");
        }
    }

    /// Writes a snapshot and announces it. The caller holds the session.
    async fn capture(
        &self,
        id: &SessionId,
        kind: SnapshotKind,
        forked: Option<&Snapshot>,
        emitter: &Emitter,
    ) -> Result<Snapshot, EngineError> {
        let former = self.snapshots(id).await?;
        if former.len() >= SNAPSHOTS_KEPT {
            let error = format!("session {id} keeps {SNAPSHOTS_KEPT} snapshots and no more");
            return Err(EngineError::Invalid(error));
        }
        let store = &self.inner.store;
        let messages = store.messages(id).await?;
        let mut records = store.records(id, Shelf::Character).await?;
        records.extend(store.records(id, Shelf::CharacterSchema).await?);
        let last = messages
            .iter()
            .rev()
            .find_map(|message| message.turn_id.clone());
        let before = || former.last().map(|snapshot| snapshot.id.clone());
        let snapshot = Snapshot {
            id: self.inner.ids.id("snapshot"),
            turn_id: match kind {
                SnapshotKind::Auto => emitter.turn_id().clone(),
                _ => last.unwrap_or_else(|| emitter.turn_id().clone()),
            },
            kind,
            parent_id: forked.map_or_else(before, |from| Some(from.id.clone())),
            created_at: self.inner.clock.now(),
            session: self.session(id).await?,
            messages,
            data: store.all_plugin_data(id).await?,
            records,
        };
        // A struct of strings, numbers and JSON: nothing in it fails to be JSON.
        let doc = serde_json::to_value(&snapshot).unwrap_or_default();
        let write = Write::PutRecord(Record {
            shelf: Shelf::Snapshot,
            id: snapshot.id.clone(),
            doc,
        });
        let announcement = changes::snapshot_created(&snapshot);
        self.change(emitter, Purpose::Outside, vec![write], vec![announcement])
            .await?;
        Ok(snapshot)
    }

    /// Makes a session from a snapshot of another. What was ended is paused in the child.
    ///
    /// # Errors
    ///
    /// [`EngineError::NotFound`] when the session has no such snapshot, or as [`Engine::take_snapshot`].
    pub async fn fork(&self, id: &SessionId, from: &str) -> Result<Forked, EngineError> {
        let _guard = self.hold(id).await?;
        let parent = self.session(id).await?;
        let mut known = self.snapshots(id).await?.into_iter();
        let found = known.find(|snapshot| snapshot.id == from);
        let from = found.ok_or_else(|| EngineError::NotFound(format!("snapshot {from}")))?;
        let child = self.materialize(&from).await?;
        let emitter = self.emitter_outside(&parent.key());
        let kind = SnapshotKind::Fork;
        let written = self.capture(id, kind, Some(&from), &emitter).await?;
        let told = changes::session_forked(id, &child.session.id, &from.id, &written.id);
        emitter.fan_out(vec![told]).await;
        Ok(Forked {
            child,
            fork_snapshot_id: written.id,
        })
    }

    async fn materialize(&self, from: &Snapshot) -> Result<Created, EngineError> {
        let shown = &from.session;
        let new = NewSession {
            id: None,
            world_id: shown.world_id.clone(),
            locale: Some(shown.locale.clone()),
            plugins: Some(shown.active_plugins.clone()),
        };
        let like = |session: &mut Session| {
            session.phase = shown.phase;
            session.setup_runtimes.clone_from(&shown.setup_runtimes);
            session.completed_player_turns = shown.completed_player_turns;
            if shown.status != SessionStatus::Active {
                session.status = SessionStatus::Paused;
            }
        };
        let child = self.create_session_like(new, like).await?;
        let messages = from.messages.iter().cloned().map(|message| Message {
            // Message ids are unique over all sessions.
            id: MessageId::from(self.inner.ids.id("msg")),
            session_id: child.session.id.clone(),
            ..message
        });
        let mut writes: Vec<Write> = messages.map(Write::InsertMessage).collect();
        writes.extend(from.data.iter().cloned().map(Write::PutDatum));
        writes.extend(from.records.iter().cloned().map(Write::PutRecord));
        let batch = Batch {
            session: child.session.key(),
            purpose: Purpose::Outside,
            writes,
        };
        if let Err(error) = self.inner.store.commit(batch).await {
            self.inner
                .store
                .delete_session(&child.session.key())
                .await?;
            return Err(error.into());
        }
        Ok(child)
    }
}
