//! Where sessions are kept: one trait, one transaction a commit.
//!
//! Every change is a [`Batch`] of [`Write`]s that is applied as a whole or not at all. A batch names
//! the life of the session that it was decided for, and is refused when that life is over, so work
//! that outlives its session cannot write into the next one.
//!
//! [`memory`] keeps everything in the process, [`sqlite`] in one file. Both pass the same tests. Not here: who decides what to write (the engine), and who is told (the bus).

#[cfg(test)]
mod file_tests;
pub mod memory;
pub mod sqlite;
#[cfg(test)]
mod suite;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::engine::ids::{
    JobId, LogicalTurnId, MessageId, PluginId, RuntimeId, SessionId, SessionKey, TurnId,
};
use crate::engine::model::{
    ExecutionRow, Job, Message, Phase, PluginDatum, Record, Session, SessionStatus, Setup, Shelf,
    ToolRecord, TraceEvent,
};

/// Keeps sessions and what belongs to them.
///
/// Reads see whole commits only.
///
/// # Errors
///
/// Every method fails with [`StoreError::Backend`] when the medium does; those of writes say what
/// else they refuse.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Which medium this is.
    fn kind(&self) -> StoreKind;

    /// Releases the medium. Calls after this may fail.
    async fn close(&self);

    /// Adds a session. [`StoreError::Conflict`] when its id is taken.
    async fn create_session(&self, session: &Session) -> Result<(), StoreError>;

    /// Removes this life of a session with all that belongs to it. False when it is gone already.
    async fn delete_session(&self, session: &SessionKey) -> Result<bool, StoreError>;

    /// The session of this id.
    async fn session(&self, id: &SessionId) -> Result<Option<Session>, StoreError>;

    /// All sessions, oldest first; those of one world when one is given.
    async fn sessions(&self, world: Option<&str>) -> Result<Vec<Session>, StoreError>;

    /// Applies a batch in one transaction.
    ///
    /// [`StoreError::Gone`] when that life of the session is over; [`StoreError::Conflict`] when a
    /// write contradicts what is stored. Nothing is changed then.
    async fn commit(&self, batch: Batch) -> Result<(), StoreError>;

    /// All messages, oldest first.
    async fn messages(&self, id: &SessionId) -> Result<Vec<Message>, StoreError>;

    /// The newest `limit` messages before `before` (before the end when absent), oldest first.
    async fn messages_before(
        &self,
        id: &SessionId,
        before: Option<Ordinal>,
        limit: usize,
    ) -> Result<Window<Message>, StoreError>;

    /// One message, of whichever session.
    async fn message(&self, id: &MessageId) -> Result<Option<Message>, StoreError>;

    /// The rows of one namespace of a plugin, by key.
    async fn plugin_data(
        &self,
        id: &SessionId,
        plugin: &PluginId,
        namespace: &str,
    ) -> Result<Vec<PluginDatum>, StoreError>;

    /// All rows of all plugins, by plugin, namespace and key.
    async fn all_plugin_data(&self, id: &SessionId) -> Result<Vec<PluginDatum>, StoreError>;

    /// The records of one shelf, in the order in which they were first written.
    async fn records(&self, id: &SessionId, shelf: Shelf) -> Result<Vec<Record>, StoreError>;

    /// Adds trace events, oldest first. Those of a session that is gone are dropped.
    async fn append_traces(
        &self,
        session: &SessionKey,
        events: &[TraceEvent],
    ) -> Result<(), StoreError>;

    /// The newest `limit` trace events before `before`, oldest first.
    async fn traces_before(
        &self,
        id: &SessionId,
        before: Option<Ordinal>,
        limit: usize,
    ) -> Result<Window<TraceEvent>, StoreError>;

    /// The row of the execution that was started last.
    async fn latest_execution(&self, id: &SessionId) -> Result<Option<ExecutionRow>, StoreError>;

    /// The row of one execution.
    async fn execution(
        &self,
        id: &SessionId,
        turn: &TurnId,
    ) -> Result<Option<ExecutionRow>, StoreError>;

    /// The rows of all executions, in the order in which they were started.
    async fn executions(&self, id: &SessionId) -> Result<Vec<ExecutionRow>, StoreError>;

    /// The records of all tool calls, in the order in which they were first written.
    async fn tool_calls(&self, id: &SessionId) -> Result<Vec<ToolRecord>, StoreError>;

    /// All jobs of a session, by the time they were queued, then by id.
    async fn jobs(&self, id: &SessionId) -> Result<Vec<Job>, StoreError>;

    /// The jobs of all sessions that have not reached a terminal state; for recovery at start.
    async fn open_jobs(&self) -> Result<Vec<Job>, StoreError>;

    /// One job.
    async fn job(&self, id: &SessionId, job: &JobId) -> Result<Option<Job>, StoreError>;
}

/// Trace events that are kept of one session at least; older ones may be dropped.
pub const TRACES_KEPT: usize = 20_000;

/// Which medium a store is on. Access control of tier `self` asks for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreKind {
    /// Nothing outlives the process.
    Memory,
    /// A file or database.
    Persistent,
}

/// The place of a row within its session: rises with every row, never reused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Ord, PartialOrd)]
pub struct Ordinal(pub u64);

/// A run of rows, oldest first, and the place of the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Window<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// The place of the first row; `None` when there are no rows.
    pub first: Option<Ordinal>,
}

/// What a batch is about. Nothing depends on it but logs and faults that are injected from outside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// The start row of an execution and the player's input.
    Start,
    /// All domain writes of an execution and its end row.
    Execution,
    /// The end row of an execution that did not commit.
    Failure,
    /// Writes outside any execution: plugin data, session records.
    Outside,
    /// The state of a background job.
    Job,
    /// The record of a tool call, while its turn runs.
    Tool,
}

/// Writes that count together or not at all.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The life of the session that they belong to.
    pub session: SessionKey,
    /// What they are about.
    pub purpose: Purpose,
    /// The writes, in order.
    pub writes: Vec<Write>,
}

/// One change.
#[derive(Clone, Debug)]
pub enum Write {
    /// Changes some members of the session record.
    PatchSession(SessionPatch),
    /// Adds a message at the end. [`StoreError::Conflict`] when its id is taken.
    InsertMessage(Message),
    /// Makes a stored, uncommitted message part of a turn. [`StoreError::Conflict`] when it does not
    /// exist in this session or belongs to another turn.
    AdoptMessage {
        /// The message.
        id: MessageId,
        /// The turn that commits it.
        turn: TurnId,
    },
    /// Sets one row of plugin data.
    PutDatum(PluginDatum),
    /// Removes one row of plugin data, if it exists.
    DeleteDatum {
        /// The plugin.
        plugin: PluginId,
        /// Its namespace.
        namespace: String,
        /// The key.
        key: String,
    },
    /// Adds or replaces a record.
    PutRecord(Record),
    /// Adds or replaces the row of an execution.
    Execution(ExecutionRow),
    /// Adds or replaces the record of a tool call, which its turn and its place in it name.
    ToolCall(ToolRecord),
    /// Counts a player turn, unless the ledger has counted this logical turn before.
    CountTurn(LogicalTurnId),
    /// Adds or replaces a job. [`StoreError::Conflict`] when the stored one has this `sequence` or a
    /// greater one.
    Job(Job),
    /// Removes a job, if it exists.
    DropJob(JobId),
}

/// New values of some members of a session record; `None` leaves a member as it is.
#[derive(Clone, Debug)]
pub struct SessionPatch {
    /// Whether it takes actions.
    pub status: Option<SessionStatus>,
    /// How far its opening is.
    pub phase: Option<Phase>,
    /// Its setup runtimes.
    pub setup_runtimes: Option<BTreeMap<RuntimeId, Setup>>,
    /// Its active plugins.
    pub active_plugins: Option<Vec<PluginId>>,
    /// When the record changes.
    pub updated_at: Timestamp,
}

impl SessionPatch {
    /// A patch that changes nothing but the time of the last change.
    #[must_use]
    pub const fn at(updated_at: Timestamp) -> Self {
        Self {
            status: None,
            phase: None,
            setup_runtimes: None,
            active_plugins: None,
            updated_at,
        }
    }

    fn apply(self, session: &mut Session) {
        session.updated_at = self.updated_at;
        if let Some(status) = self.status {
            session.status = status;
        }
        if let Some(phase) = self.phase {
            session.phase = phase;
        }
        if let Some(setups) = self.setup_runtimes {
            session.setup_runtimes = setups;
        }
        if let Some(plugins) = self.active_plugins {
            session.active_plugins = plugins;
        }
    }
}

/// Why the store did not do it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// This life of the session is over.
    #[error("session {0} is gone")]
    Gone(SessionId),
    /// The write contradicts what is stored.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The medium failed.
    #[error("store failed: {0}")]
    Backend(String),
}
