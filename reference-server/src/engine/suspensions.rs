//! Runs that wait for the player: what is kept of one, and how it goes on.
//!
//! ```text
//! open ──answer──> runs ──ends──> resolved            (turn.resumed)
//!  │                 ├──suspends again──> resolved, and a new item is open   (turn.suspended)
//!  │                 └──fails──> open
//!  ├──a newer item of its runtime──> voided, without an event
//!  ├──the history or the plugin is another by now──> voided, and the answer is refused
//!  └──dropped──> voided
//! ```
//!
//! The writes of a run that suspends are kept with it and count when it ends well. While an item of a
//! turn is open the turn is not counted; the last resume counts it, once.
//!
//! Not here: tool loops that suspend; only function runtimes do in this server.
//!
//! Source: seed 000, lines 65 and 76-90, 570-576; covel.md of the fact collection, section 2.7.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::alone::{Alone, Events};
use super::emitter::Emitter;
use super::events::changes;
use super::ids::{LogicalTurnId, PluginId, RuntimeId, SessionId, TraceId, TurnId};
use super::model::{Record, Session, Shelf};
use super::plugins::RuntimeSpec;
use super::proposals::PendingProposal;
use super::turn::{CommitPlan, TurnInput};
use super::{Engine, EngineError};
use crate::store::{Batch, Purpose, Store, StoreError, Write};

/// A run that waits for the player.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Suspension {
    /// Its id.
    pub id: String,
    /// Whether it still waits.
    pub state: SuspensionState,
    /// The session.
    pub session_id: SessionId,
    /// The execution that suspended; what resumes it keeps this identity.
    pub turn_id: TurnId,
    /// The turn as the player counts it.
    pub logical_turn_id: LogicalTurnId,
    /// Whether the turn counts as the player's once nothing of it waits.
    pub counts_turn: bool,
    /// The plugin of the runtime.
    pub plugin_id: PluginId,
    /// The version of the plugin at that time.
    pub plugin_version: String,
    /// The runtime.
    pub runtime_id: RuntimeId,
    /// The question, for people.
    pub reason: String,
    /// JSON Schema of the answer.
    pub resume_schema: Value,
    /// When it suspended.
    pub suspended_at: Timestamp,
    /// What the run gets back with the answer.
    pub keeps: Value,
    /// What the player had said.
    pub input: String,
    /// The writes that wait with it.
    pub proposals: Vec<PendingProposal>,
    /// The operations that wait with it.
    pub operations: Vec<Vec<PendingProposal>>,
    /// Player turns that the history had.
    pub player_turns: u64,
}

/// Whether a suspension still waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SuspensionState {
    /// Waits for its answer.
    Open,
    /// Was answered, and its run went on.
    Resolved,
    /// Nobody will answer it any more.
    Voided,
}

impl Suspension {
    /// As the store keeps it, in this state.
    fn record(self, state: SuspensionState) -> Write {
        let id = self.id.clone();
        // A struct of strings, numbers and JSON: nothing in it fails to be JSON.
        let doc = serde_json::to_value(Self { state, ..self }).unwrap_or_default();
        Write::PutRecord(Record {
            shelf: Shelf::Suspension,
            id,
            doc,
        })
    }
}

/// An answer to a suspension.
#[derive(Clone, Debug)]
pub struct Resumption {
    /// What is resumed.
    pub suspension: Suspension,
    /// The answer.
    pub data: Value,
}

/// What came of a resume.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// What the run gave; null when it suspended again.
    pub result: Value,
    /// The events of the run that an action stream would have shown.
    pub events: Events,
}

/// What a commit writes about suspensions.
pub(super) struct Settled {
    /// The writes.
    pub(super) writes: Vec<Write>,
    /// Whether something of the turn still waits, so that it is not counted yet.
    pub(super) waits: bool,
}

impl Settled {
    /// What this plan does to the items of its session, and the items that it adds.
    pub(super) async fn of(store: &dyn Store, plan: &CommitPlan) -> Result<Self, StoreError> {
        let mut settled = Self {
            writes: Vec::new(),
            waits: !plan.suspensions.is_empty(),
        };
        let is_new = |item: &Suspension| {
            let mut added = plan.suspensions.iter();
            added.any(|new| new.runtime_id == item.runtime_id)
        };
        for item in open(store, &plan.session.id).await? {
            if plan.resumes.as_ref() == Some(&item.id) {
                settled.writes.push(item.record(SuspensionState::Resolved));
            } else if is_new(&item) {
                settled.writes.push(item.record(SuspensionState::Voided));
            } else if item.logical_turn_id == plan.logical_turn_id {
                settled.waits = true;
            }
        }
        let added = plan.suspensions.iter().cloned();
        settled
            .writes
            .extend(added.map(|item| item.record(SuspensionState::Open)));
        Ok(settled)
    }
}

/// The open items of a session, oldest first.
async fn open(store: &dyn Store, id: &SessionId) -> Result<Vec<Suspension>, StoreError> {
    let all = all(store, id).await?.into_iter();
    Ok(all
        .filter(|item| item.state == SuspensionState::Open)
        .collect())
}

async fn all(store: &dyn Store, id: &SessionId) -> Result<Vec<Suspension>, StoreError> {
    let records = store.records(id, Shelf::Suspension).await?;
    let read = |record: Record| {
        serde_json::from_value(record.doc)
            .map_err(|error| StoreError::Backend(format!("suspension {}: {error}", record.id)))
    };
    records.into_iter().map(read).collect()
}

impl Engine {
    /// The open suspensions of a session, oldest first.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn suspensions(&self, id: &SessionId) -> Result<Vec<Suspension>, EngineError> {
        self.session(id).await?;
        Ok(open(self.inner.store.as_ref(), id).await?)
    }

    /// Gives a suspension up: nothing of its run is written, and no event tells of it.
    ///
    /// # Errors
    ///
    /// [`EngineError::NotFound`] when none is open under this id, [`EngineError::Busy`], or as
    /// [`Engine::suspensions`].
    pub async fn drop_suspension(&self, id: &SessionId, item: &str) -> Result<(), EngineError> {
        let _guard = self.hold(id).await?;
        let session = self.session(id).await?;
        let mut open = open(self.inner.store.as_ref(), id).await?.into_iter();
        let found = open.find(|suspension| suspension.id == item);
        let found = found.ok_or_else(|| EngineError::NotFound(format!("suspension {item}")))?;
        self.void(&session, found).await
    }

    async fn void(&self, session: &Session, item: Suspension) -> Result<(), EngineError> {
        let batch = Batch {
            session: session.key(),
            purpose: Purpose::Outside,
            writes: vec![item.record(SuspensionState::Voided)],
        };
        Ok(self.inner.store.commit(batch).await?)
    }

    /// Answers a suspension, and runs its runtime on to its end or to its next suspension. Goes on
    /// when the caller does not wait for it.
    ///
    /// # Errors
    ///
    /// [`EngineError::NotFound`]; [`EngineError::SuspensionOver`] when it was answered or voided, or is
    /// voided now because the history or the plugin has changed; [`EngineError::Invalid`] for an answer
    /// that does not fit; [`EngineError::ResumeFailed`], after which it can be answered again;
    /// [`EngineError::SessionNotFound`], [`EngineError::SessionNotActive`], [`EngineError::Busy`],
    /// [`EngineError::ShuttingDown`] or [`EngineError::Store`].
    pub async fn resume_suspension(
        &self,
        id: &SessionId,
        item: &str,
        data: Value,
    ) -> Result<Resumed, EngineError> {
        let (engine, id, item) = (self.clone(), id.clone(), item.to_owned());
        self.detached(async move { engine.answer(&id, &item, data).await })
            .await
    }

    async fn answer(
        &self,
        id: &SessionId,
        item: &str,
        data: Value,
    ) -> Result<Resumed, EngineError> {
        let _guard = self.hold(id).await?;
        let session = self.active_session(id).await?;
        let mut known = all(self.inner.store.as_ref(), id).await?.into_iter();
        let found = known.find(|suspension| suspension.id == item);
        let found = found.ok_or_else(|| EngineError::NotFound(format!("suspension {item}")))?;
        if found.state != SuspensionState::Open {
            return Err(EngineError::SuspensionOver(found.id));
        }
        check_answer(&found.resume_schema, &data)?;
        let Some(spec) = self.still_fits(&session, &found) else {
            let id = found.id.clone();
            self.void(&session, found).await?;
            return Err(EngineError::SuspensionOver(id));
        };
        self.go_on(session, &spec, found, data).await
    }

    /// The runtime of a suspension, unless the history or the plugin has changed since.
    fn still_fits(&self, session: &Session, item: &Suspension) -> Option<Arc<RuntimeSpec>> {
        let plugin = self.inner.registry.plugin(&item.plugin_id)?.manifest();
        let same = plugin.version == item.plugin_version
            && session.active_plugins.contains(&item.plugin_id)
            && session.completed_player_turns == item.player_turns;
        let mut runtimes = plugin.runtimes.iter().filter(|_| same);
        runtimes.find(|spec| spec.id == item.runtime_id).cloned()
    }

    async fn go_on(
        &self,
        session: Session,
        spec: &Arc<RuntimeSpec>,
        item: Suspension,
        data: Value,
    ) -> Result<Resumed, EngineError> {
        let stored = self.inner.store.execution(&session.id, &item.turn_id);
        let row = stored.await?;
        let row = row.ok_or_else(|| EngineError::NotFound(format!("turn {}", item.turn_id)))?;
        let key = session.key();
        let input = TurnInput {
            session,
            turn_id: item.turn_id.clone(),
            logical_turn_id: item.logical_turn_id.clone(),
            counts_turn: item.counts_turn,
            player: None,
            prompt: "",
            lore: None,
            model: None,
            resumed: Some(Resumption {
                suspension: item.clone(),
                data,
            }),
        };
        let trace_id = TraceId::from(self.inner.ids.id("tr"));
        let events = Events::default();
        let emitter = Emitter::of_turn(
            self.outlets(),
            key,
            trace_id,
            item.turn_id.clone(),
            Some(Arc::new(events.clone())),
        );
        let alone = Alone { input, spec, row };
        let end = self.run_alone(alone, &emitter).await;
        let result = end.result.map_err(EngineError::ResumeFailed)?;
        if !end.suspended {
            emitter.fan_out(vec![changes::turn_resumed(&item)]).await;
        }
        Ok(Resumed { result, events })
    }
}

/// Whether the answer fits. A schema that cannot be read asks for nothing.
fn check_answer(schema: &Value, data: &Value) -> Result<(), EngineError> {
    let Ok(validator) = jsonschema::validator_for(schema) else {
        return Ok(());
    };
    let fits = validator.validate(data);
    fits.map_err(|error| EngineError::Invalid(format!("the answer does not fit: {error}")))
}
