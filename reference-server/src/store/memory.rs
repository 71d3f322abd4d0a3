//! A store that lives and dies with its process.
//!
//! One lock guards everything, because a commit must be seen as a whole; it is never held over an
//! await. A batch is checked against the stored state first and applied only when all of it fits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{Batch, Ordinal, Store, StoreError, StoreKind, TRACES_KEPT, Window, Write};
use crate::engine::ids::{
    JobId, LogicalTurnId, MessageId, PluginId, SessionId, SessionKey, TurnId,
};
use crate::engine::model::{
    ExecutionRow, Job, Message, PluginDatum, Record, Session, Shelf, ToolRecord, TraceEvent,
};

/// Sessions in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rooms: BTreeMap<SessionId, Room>,
    /// Which session owns a message: message ids are unique over all sessions.
    owners: BTreeMap<MessageId, SessionId>,
}

/// One session and what belongs to it.
#[derive(Debug)]
struct Room {
    session: Session,
    messages: Vec<Message>,
    data: BTreeMap<(PluginId, String, String), PluginDatum>,
    traces: VecDeque<TraceEvent>,
    /// How many traces were dropped at the front, so that ordinals stay.
    traces_dropped: usize,
    executions: Vec<ExecutionRow>,
    tools: Vec<ToolRecord>,
    ledger: BTreeSet<LogicalTurnId>,
    jobs: BTreeMap<JobId, Job>,
    records: Vec<Record>,
}

impl Room {
    fn new(session: Session) -> Self {
        Self {
            session,
            messages: Vec::new(),
            data: BTreeMap::new(),
            traces: VecDeque::new(),
            traces_dropped: 0,
            executions: Vec::new(),
            tools: Vec::new(),
            ledger: BTreeSet::new(),
            jobs: BTreeMap::new(),
            records: Vec::new(),
        }
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock was held cannot have left half a batch: nothing in `apply` panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T: Default>(&self, id: &SessionId, read: impl FnOnce(&Room) -> T) -> T {
        self.lock().rooms.get(id).map(read).unwrap_or_default()
    }
}

impl State {
    fn room(&mut self, key: &SessionKey) -> Result<&mut Room, StoreError> {
        match self.rooms.get_mut(&key.id) {
            Some(room) if room.session.incarnation == key.incarnation => Ok(room),
            _ => Err(StoreError::Gone(key.id.clone())),
        }
    }

    /// Whether every write of the batch fits the stored state and the writes before it.
    fn check(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.room(&batch.session)?;
        let mut inserted = BTreeSet::new();
        for write in &batch.writes {
            match write {
                Write::InsertMessage(message) => {
                    let taken = self.owners.contains_key(&message.id);
                    if taken || !inserted.insert(message.id.clone()) {
                        return Err(StoreError::Conflict(format!(
                            "message {} exists",
                            message.id
                        )));
                    }
                }
                Write::AdoptMessage { id, turn } if !inserted.contains(id) => {
                    let room = self.room(&batch.session)?;
                    let stored = room.messages.iter().find(|message| message.id == *id);
                    check_adoption(stored, id, turn)?;
                }
                Write::Job(job) => {
                    let room = self.room(&batch.session)?;
                    if room
                        .jobs
                        .get(&job.id)
                        .is_some_and(|stored| stored.sequence >= job.sequence)
                    {
                        return Err(StoreError::Conflict(format!("job {} has moved on", job.id)));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn apply(&mut self, batch: Batch) -> Result<(), StoreError> {
        let id = batch.session.id.clone();
        for write in batch.writes {
            if let Write::InsertMessage(message) = &write {
                self.owners.insert(message.id.clone(), id.clone());
            }
            self.room(&batch.session)?.apply(write);
        }
        Ok(())
    }
}

impl Room {
    fn apply(&mut self, write: Write) {
        match write {
            Write::PatchSession(patch) => patch.apply(&mut self.session),
            Write::InsertMessage(message) => self.messages.push(message),
            Write::AdoptMessage { id, turn } => {
                if let Some(message) = self.messages.iter_mut().find(|message| message.id == id) {
                    message.turn_id = Some(turn);
                }
            }
            Write::PutDatum(datum) => {
                let key = (
                    datum.plugin_id.clone(),
                    datum.namespace.clone(),
                    datum.key.clone(),
                );
                self.data.insert(key, datum);
            }
            Write::DeleteDatum {
                plugin,
                namespace,
                key,
            } => {
                self.data.remove(&(plugin, namespace, key));
            }
            Write::PutRecord(record) => {
                let same =
                    |stored: &&mut Record| stored.shelf == record.shelf && stored.id == record.id;
                match self.records.iter_mut().find(same) {
                    Some(stored) => *stored = record,
                    None => self.records.push(record),
                }
            }
            Write::Execution(row) => {
                match self
                    .executions
                    .iter_mut()
                    .find(|stored| stored.turn_id == row.turn_id)
                {
                    Some(stored) => *stored = row,
                    None => self.executions.push(row),
                }
            }
            Write::ToolCall(record) => {
                let same = |stored: &&mut ToolRecord| {
                    stored.turn_id == record.turn_id && stored.nth == record.nth
                };
                match self.tools.iter_mut().rev().find(same) {
                    Some(stored) => *stored = record,
                    None => self.tools.push(record),
                }
            }
            Write::CountTurn(turn) => {
                if self.ledger.insert(turn) {
                    self.session.completed_player_turns += 1;
                }
            }
            Write::Job(job) => {
                self.jobs.insert(job.id.clone(), job);
            }
            Write::DropJob(job) => {
                self.jobs.remove(&job);
            }
        }
    }
}

/// Whether a message may become part of `turn`.
pub(super) fn check_adoption(
    stored: Option<&Message>,
    id: &MessageId,
    turn: &TurnId,
) -> Result<(), StoreError> {
    match stored {
        None => Err(StoreError::Conflict(format!(
            "message {id} is not in this session"
        ))),
        Some(message) if message.turn_id.as_ref().is_some_and(|bound| bound != turn) => Err(
            StoreError::Conflict(format!("message {id} belongs to another turn")),
        ),
        Some(_) => Ok(()),
    }
}

/// The last `limit` of the rows that stand before `before`; `skipped` rows came before the first.
fn window<T: Clone>(
    rows: impl ExactSizeIterator<Item = T> + Clone,
    skipped: usize,
    before: Option<Ordinal>,
    limit: usize,
) -> Window<T> {
    let end = before.map_or(rows.len(), |Ordinal(before)| {
        usize::try_from(before)
            .unwrap_or(usize::MAX)
            .saturating_sub(skipped + 1)
            .min(rows.len())
    });
    let start = end.saturating_sub(limit);
    let rows: Vec<T> = rows.skip(start).take(end - start).collect();
    let first = (!rows.is_empty()).then(|| Ordinal((skipped + start + 1) as u64));
    Window { rows, first }
}

#[async_trait]
impl Store for MemoryStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Memory
    }

    async fn close(&self) {}

    async fn create_session(&self, session: &Session) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.rooms.contains_key(&session.id) {
            return Err(StoreError::Conflict(format!(
                "session {} exists",
                session.id
            )));
        }
        state
            .rooms
            .insert(session.id.clone(), Room::new(session.clone()));
        Ok(())
    }

    async fn delete_session(&self, session: &SessionKey) -> Result<bool, StoreError> {
        let mut state = self.lock();
        if state.room(session).is_err() {
            return Ok(false);
        }
        state.rooms.remove(&session.id);
        state.owners.retain(|_, owner| *owner != session.id);
        Ok(true)
    }

    async fn session(&self, id: &SessionId) -> Result<Option<Session>, StoreError> {
        Ok(self.read(id, |room| Some(room.session.clone())))
    }

    async fn sessions(&self, world: Option<&str>) -> Result<Vec<Session>, StoreError> {
        let state = self.lock();
        let all = state.rooms.values().map(|room| &room.session);
        let mut found: Vec<Session> = all
            .filter(|session| world.is_none() || session.world_id.as_deref() == world)
            .cloned()
            .collect();
        found.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(found)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let mut state = self.lock();
        state.check(&batch)?;
        state.apply(batch)
    }

    async fn messages(&self, id: &SessionId) -> Result<Vec<Message>, StoreError> {
        Ok(self.read(id, |room| room.messages.clone()))
    }

    async fn messages_before(
        &self,
        id: &SessionId,
        before: Option<Ordinal>,
        limit: usize,
    ) -> Result<Window<Message>, StoreError> {
        Ok(self.read(id, |room| {
            window(room.messages.iter().cloned(), 0, before, limit)
        }))
    }

    async fn message(&self, id: &MessageId) -> Result<Option<Message>, StoreError> {
        let state = self.lock();
        let room = state
            .owners
            .get(id)
            .and_then(|owner| state.rooms.get(owner));
        Ok(room
            .and_then(|room| room.messages.iter().find(|message| message.id == *id))
            .cloned())
    }

    async fn plugin_data(
        &self,
        id: &SessionId,
        plugin: &PluginId,
        namespace: &str,
    ) -> Result<Vec<PluginDatum>, StoreError> {
        let ours =
            |datum: &&PluginDatum| datum.plugin_id == *plugin && datum.namespace == namespace;
        Ok(self.read(id, |room| {
            room.data.values().filter(ours).cloned().collect()
        }))
    }

    async fn all_plugin_data(&self, id: &SessionId) -> Result<Vec<PluginDatum>, StoreError> {
        Ok(self.read(id, |room| room.data.values().cloned().collect()))
    }

    async fn records(&self, id: &SessionId, shelf: Shelf) -> Result<Vec<Record>, StoreError> {
        let ours = |record: &&Record| record.shelf == shelf;
        Ok(self.read(id, |room| {
            room.records.iter().filter(ours).cloned().collect()
        }))
    }

    async fn append_traces(
        &self,
        session: &SessionKey,
        events: &[TraceEvent],
    ) -> Result<(), StoreError> {
        let mut state = self.lock();
        if let Ok(room) = state.room(session) {
            room.traces.extend(events.iter().cloned());
            while room.traces.len() > TRACES_KEPT {
                room.traces.pop_front();
                room.traces_dropped += 1;
            }
        }
        Ok(())
    }

    async fn traces_before(
        &self,
        id: &SessionId,
        before: Option<Ordinal>,
        limit: usize,
    ) -> Result<Window<TraceEvent>, StoreError> {
        Ok(self.read(id, |room| {
            window(
                room.traces.iter().cloned(),
                room.traces_dropped,
                before,
                limit,
            )
        }))
    }

    async fn latest_execution(&self, id: &SessionId) -> Result<Option<ExecutionRow>, StoreError> {
        Ok(self.read(id, |room| room.executions.last().cloned()))
    }

    async fn execution(
        &self,
        id: &SessionId,
        turn: &TurnId,
    ) -> Result<Option<ExecutionRow>, StoreError> {
        let this = |row: &&ExecutionRow| row.turn_id == *turn;
        Ok(self.read(id, |room| room.executions.iter().find(this).cloned()))
    }

    async fn executions(&self, id: &SessionId) -> Result<Vec<ExecutionRow>, StoreError> {
        Ok(self.read(id, |room| room.executions.clone()))
    }

    async fn tool_calls(&self, id: &SessionId) -> Result<Vec<ToolRecord>, StoreError> {
        Ok(self.read(id, |room| room.tools.clone()))
    }

    async fn jobs(&self, id: &SessionId) -> Result<Vec<Job>, StoreError> {
        let mut jobs: Vec<Job> = self.read(id, |room| room.jobs.values().cloned().collect());
        jobs.sort_by(|a, b| (a.enqueued_at, &a.id).cmp(&(b.enqueued_at, &b.id)));
        Ok(jobs)
    }

    async fn open_jobs(&self) -> Result<Vec<Job>, StoreError> {
        let state = self.lock();
        let jobs = state.rooms.values().flat_map(|room| room.jobs.values());
        let mut open: Vec<Job> = jobs.filter(|job| !job.status.is_final()).cloned().collect();
        open.sort_by(|a, b| (a.enqueued_at, &a.id).cmp(&(b.enqueued_at, &b.id)));
        Ok(open)
    }

    async fn job(&self, id: &SessionId, job: &JobId) -> Result<Option<Job>, StoreError> {
        Ok(self.read(id, |room| room.jobs.get(job).cloned()))
    }
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            first: None,
        }
    }
}
