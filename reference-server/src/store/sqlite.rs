//! A store in one SQLite file.
//!
//! Write-ahead log, `synchronous = NORMAL`: a commit that returned survives the death of the process
//! (`kill -9`), though not necessarily the death of the machine. One connection writes, so commits
//! come one after the other; a few others read.
//!
//! Rows keep the model types as JSON documents, with the columns that queries need beside them. The
//! schema has a version (`PRAGMA user_version`); a file of another version is refused.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteRow, SqliteSynchronous,
};
use sqlx::{Connection as _, Row as _};

use super::memory::check_adoption;
use super::{
    Batch, Ordinal as Place, SessionPatch, Store, StoreError, StoreKind, TRACES_KEPT, Window, Write,
};
use crate::engine::ids::{
    JobId, LogicalTurnId, MessageId, PluginId, SessionId, SessionKey, TurnId,
};
use crate::engine::model::{
    ExecutionRow, Job, Message, PluginDatum, Record, Session, Shelf, ToolRecord, TraceEvent,
};

/// The version of the schema below; raised with every change of it.
const SCHEMA_VERSION: i64 = 3;

/// The tables, for a new file.
const SCHEMA: &str = include_str!("schema.sql");

/// Old traces are dropped at every so many-th append, because looking for them costs.
const DROP_EVERY: u64 = 256;

/// How long a statement waits for another process's lock on the file.
const BUSY_WITHIN: Duration = Duration::from_secs(5);

/// Sessions in a file.
#[derive(Debug)]
pub struct SqliteStore {
    writer: SqlitePool,
    readers: SqlitePool,
    /// Appends of traces so far.
    appends: AtomicU64,
}

impl SqliteStore {
    /// Opens the file, and creates it when it does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::Backend`] when the file cannot be opened or has another schema version.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            .busy_timeout(BUSY_WITHIN);
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options.clone())
            .await?;
        migrate(&writer).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(4)
            .connect_with(options.read_only(true))
            .await?;
        let appends = AtomicU64::new(0);
        Ok(Self {
            writer,
            readers,
            appends,
        })
    }
}

async fn migrate(writer: &SqlitePool) -> Result<(), StoreError> {
    let mut connection = writer.acquire().await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let version: i64 = sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(&mut *transaction)
        .await?;
    match version {
        SCHEMA_VERSION => return Ok(()),
        0 => {}
        other => {
            return Err(StoreError::Backend(format!(
                "the file has schema version {other}, this server reads version {SCHEMA_VERSION}"
            )));
        }
    }
    sqlx::raw_sql(SCHEMA).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Backend(error.to_string())
    }
}

fn to_doc(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Backend(error.to_string()))
}

fn from_doc<T: DeserializeOwned>(row: &SqliteRow) -> Result<T, StoreError> {
    let doc: String = row.try_get("doc")?;
    serde_json::from_str(&doc)
        .map_err(|error| StoreError::Backend(format!("stored document: {error}")))
}

fn from_docs<T: DeserializeOwned>(rows: &[SqliteRow]) -> Result<Vec<T>, StoreError> {
    rows.iter().map(from_doc).collect()
}

fn to_session(row: &SqliteRow) -> Result<Session, StoreError> {
    let session: Session = from_doc(row)?;
    let turns: i64 = row.try_get("completed_player_turns")?;
    Ok(Session {
        completed_player_turns: turns.unsigned_abs(),
        ..session
    })
}

fn to_message(row: &SqliteRow) -> Result<Message, StoreError> {
    let message: Message = from_doc(row)?;
    let turn: Option<String> = row.try_get("turn_id")?;
    Ok(Message {
        turn_id: turn.map(TurnId::from),
        ..message
    })
}

/// Rows that came newest first, as a window.
fn to_window<T>(
    rows: &[SqliteRow],
    read: impl Fn(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Window<T>, StoreError> {
    let first = match rows.last() {
        None => None,
        Some(row) => Some(Place(row.try_get::<i64, _>("ordinal")?.unsigned_abs())),
    };
    let rows = rows.iter().rev().map(read).collect::<Result<_, _>>()?;
    Ok(Window { rows, first })
}

fn bound(before: Option<Place>) -> i64 {
    before.map_or(i64::MAX, |Place(before)| {
        i64::try_from(before).unwrap_or(i64::MAX)
    })
}

fn limited(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

async fn apply(
    db: &mut SqliteConnection,
    session: &SessionId,
    write: Write,
) -> Result<(), StoreError> {
    match write {
        Write::PatchSession(patch) => patch_session(db, session, patch).await?,
        Write::InsertMessage(message) => insert_message(db, session, &message).await?,
        Write::AdoptMessage { id, turn } => adopt_message(db, session, &id, &turn).await?,
        Write::PutDatum(datum) => put_datum(db, session, &datum).await?,
        Write::DeleteDatum {
            plugin,
            namespace,
            key,
        } => {
            let sql = "DELETE FROM plugin_data
                       WHERE session_id = ?1 AND plugin_id = ?2 AND namespace = ?3 AND key = ?4";
            let query = sqlx::query(sql)
                .bind(session.as_str())
                .bind(plugin.as_str());
            query.bind(namespace).bind(key).execute(db).await?;
        }
        Write::PutRecord(record) => put_record(db, session, &record).await?,
        Write::Execution(row) => {
            let sql = "INSERT INTO executions (session_id, turn_id, doc) VALUES (?1, ?2, ?3)
                       ON CONFLICT (session_id, turn_id) DO UPDATE SET doc = excluded.doc";
            let query = sqlx::query(sql)
                .bind(session.as_str())
                .bind(row.turn_id.as_str());
            query.bind(to_doc(&row)?).execute(db).await?;
        }
        Write::ToolCall(record) => put_tool_call(db, session, &record).await?,
        Write::CountTurn(turn) => count_turn(db, session, &turn).await?,
        Write::Job(job) => put_job(db, session, &job).await?,
        Write::DropJob(job) => {
            let query = sqlx::query("DELETE FROM jobs WHERE session_id = ?1 AND id = ?2");
            query
                .bind(session.as_str())
                .bind(job.as_str())
                .execute(db)
                .await?;
        }
    }
    Ok(())
}

async fn patch_session(
    db: &mut SqliteConnection,
    id: &SessionId,
    patch: SessionPatch,
) -> Result<(), StoreError> {
    let query = sqlx::query("SELECT doc, completed_player_turns FROM sessions WHERE id = ?1");
    let mut session = to_session(&query.bind(id.as_str()).fetch_one(&mut *db).await?)?;
    patch.apply(&mut session);
    let query = sqlx::query("UPDATE sessions SET doc = ?2 WHERE id = ?1").bind(id.as_str());
    query.bind(to_doc(&session)?).execute(db).await?;
    Ok(())
}

async fn insert_message(
    db: &mut SqliteConnection,
    session: &SessionId,
    message: &Message,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO messages (session_id, id, turn_id, doc) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (id) DO NOTHING";
    let query = sqlx::query(sql)
        .bind(session.as_str())
        .bind(message.id.as_str());
    let query = query
        .bind(message.turn_id.as_ref().map(TurnId::as_str))
        .bind(to_doc(message)?);
    match query.execute(db).await?.rows_affected() {
        0 => Err(StoreError::Conflict(format!(
            "message {} exists",
            message.id
        ))),
        _ => Ok(()),
    }
}

async fn adopt_message(
    db: &mut SqliteConnection,
    session: &SessionId,
    id: &MessageId,
    turn: &TurnId,
) -> Result<(), StoreError> {
    let sql = "SELECT doc, turn_id FROM messages WHERE id = ?1 AND session_id = ?2";
    let query = sqlx::query(sql).bind(id.as_str()).bind(session.as_str());
    let stored = query
        .fetch_optional(&mut *db)
        .await?
        .as_ref()
        .map(to_message)
        .transpose()?;
    check_adoption(stored.as_ref(), id, turn)?;
    let query = sqlx::query("UPDATE messages SET turn_id = ?2 WHERE id = ?1");
    query
        .bind(id.as_str())
        .bind(turn.as_str())
        .execute(db)
        .await?;
    Ok(())
}

async fn put_datum(
    db: &mut SqliteConnection,
    session: &SessionId,
    datum: &PluginDatum,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO plugin_data (session_id, plugin_id, namespace, key, doc)
               VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT (session_id, plugin_id, namespace, key) DO UPDATE SET doc = excluded.doc";
    let query = sqlx::query(sql)
        .bind(session.as_str())
        .bind(datum.plugin_id.as_str());
    let query = query
        .bind(&datum.namespace)
        .bind(&datum.key)
        .bind(to_doc(datum)?);
    query.execute(db).await?;
    Ok(())
}

async fn put_record(
    db: &mut SqliteConnection,
    session: &SessionId,
    record: &Record,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO records (session_id, shelf, id, doc) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (session_id, shelf, id) DO UPDATE SET doc = excluded.doc";
    let query = sqlx::query(sql)
        .bind(session.as_str())
        .bind(record.shelf.name());
    query
        .bind(&record.id)
        .bind(to_doc(record)?)
        .execute(db)
        .await?;
    Ok(())
}

async fn put_tool_call(
    db: &mut SqliteConnection,
    session: &SessionId,
    record: &ToolRecord,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO tool_calls (session_id, turn_id, nth, doc) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (session_id, turn_id, nth) DO UPDATE SET doc = excluded.doc";
    let query = sqlx::query(sql)
        .bind(session.as_str())
        .bind(record.turn_id.as_str());
    let query = query
        .bind(i64::try_from(record.nth).unwrap_or(i64::MAX))
        .bind(to_doc(record)?);
    query.execute(db).await?;
    Ok(())
}

async fn count_turn(
    db: &mut SqliteConnection,
    session: &SessionId,
    turn: &LogicalTurnId,
) -> Result<(), StoreError> {
    let sql =
        "INSERT INTO ledger (session_id, logical_turn_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    let query = sqlx::query(sql).bind(session.as_str()).bind(turn.as_str());
    if query.execute(&mut *db).await?.rows_affected() == 1 {
        let sql =
            "UPDATE sessions SET completed_player_turns = completed_player_turns + 1 WHERE id = ?1";
        sqlx::query(sql).bind(session.as_str()).execute(db).await?;
    }
    Ok(())
}

async fn put_job(
    db: &mut SqliteConnection,
    session: &SessionId,
    job: &Job,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO jobs (session_id, id, sequence, terminal, enqueued_at, doc)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               ON CONFLICT (session_id, id) DO UPDATE
               SET sequence = excluded.sequence, terminal = excluded.terminal, doc = excluded.doc
               WHERE jobs.sequence < excluded.sequence";
    let query = sqlx::query(sql)
        .bind(session.as_str())
        .bind(job.id.as_str());
    let query = query
        .bind(i64::try_from(job.sequence).unwrap_or(i64::MAX))
        .bind(job.status.is_final());
    let query = query
        .bind(job.enqueued_at.as_millisecond())
        .bind(to_doc(job)?);
    match query.execute(db).await?.rows_affected() {
        0 => Err(StoreError::Conflict(format!("job {} has moved on", job.id))),
        _ => Ok(()),
    }
}

async fn drop_old_traces(db: &mut SqliteConnection, session: &SessionId) -> Result<(), StoreError> {
    let sql = "DELETE FROM traces WHERE session_id = ?1 AND ordinal <=
               (SELECT ordinal FROM traces WHERE session_id = ?1 ORDER BY ordinal DESC LIMIT 1 OFFSET ?2)";
    let query = sqlx::query(sql)
        .bind(session.as_str())
        .bind(limited(TRACES_KEPT));
    query.execute(db).await?;
    Ok(())
}

/// Whether this life of the session is stored.
async fn lives(db: &mut SqliteConnection, key: &SessionKey) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM sessions WHERE id = ?1 AND incarnation = ?2";
    let query = sqlx::query(sql)
        .bind(key.id.as_str())
        .bind(key.incarnation.as_str());
    Ok(query.fetch_optional(db).await?.is_some())
}

#[async_trait]
impl Store for SqliteStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Persistent
    }

    async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    async fn create_session(&self, session: &Session) -> Result<(), StoreError> {
        let sql = "INSERT INTO sessions (id, incarnation, world_id, created_at, completed_player_turns, doc)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
        let query = sqlx::query(sql)
            .bind(session.id.as_str())
            .bind(session.incarnation.as_str());
        let query = query
            .bind(session.world_id.as_deref())
            .bind(session.created_at.as_millisecond());
        let turns = i64::try_from(session.completed_player_turns).unwrap_or(i64::MAX);
        match query
            .bind(turns)
            .bind(to_doc(session)?)
            .execute(&self.writer)
            .await?
            .rows_affected()
        {
            0 => Err(StoreError::Conflict(format!(
                "session {} exists",
                session.id
            ))),
            _ => Ok(()),
        }
    }

    async fn delete_session(&self, session: &SessionKey) -> Result<bool, StoreError> {
        let sql = "DELETE FROM sessions WHERE id = ?1 AND incarnation = ?2";
        let query = sqlx::query(sql)
            .bind(session.id.as_str())
            .bind(session.incarnation.as_str());
        Ok(query.execute(&self.writer).await?.rows_affected() > 0)
    }

    async fn session(&self, id: &SessionId) -> Result<Option<Session>, StoreError> {
        let query = sqlx::query("SELECT doc, completed_player_turns FROM sessions WHERE id = ?1");
        let row = query
            .bind(id.as_str())
            .fetch_optional(&self.readers)
            .await?;
        row.as_ref().map(to_session).transpose()
    }

    async fn sessions(&self, world: Option<&str>) -> Result<Vec<Session>, StoreError> {
        let sql = "SELECT doc, completed_player_turns FROM sessions
                   WHERE ?1 IS NULL OR world_id = ?1 ORDER BY created_at, id";
        let rows = sqlx::query(sql)
            .bind(world)
            .fetch_all(&self.readers)
            .await?;
        rows.iter().map(to_session).collect()
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let mut connection = self.writer.acquire().await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        if !lives(&mut transaction, &batch.session).await? {
            return Err(StoreError::Gone(batch.session.id));
        }
        for write in batch.writes {
            apply(&mut transaction, &batch.session.id, write).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    async fn messages(&self, id: &SessionId) -> Result<Vec<Message>, StoreError> {
        let sql = "SELECT doc, turn_id FROM messages WHERE session_id = ?1 ORDER BY ordinal";
        let rows = sqlx::query(sql)
            .bind(id.as_str())
            .fetch_all(&self.readers)
            .await?;
        rows.iter().map(to_message).collect()
    }

    async fn messages_before(
        &self,
        id: &SessionId,
        before: Option<Place>,
        limit: usize,
    ) -> Result<Window<Message>, StoreError> {
        let sql =
            "SELECT ordinal, doc, turn_id FROM messages WHERE session_id = ?1 AND ordinal < ?2
                   ORDER BY ordinal DESC LIMIT ?3";
        let query = sqlx::query(sql)
            .bind(id.as_str())
            .bind(bound(before))
            .bind(limited(limit));
        to_window(&query.fetch_all(&self.readers).await?, to_message)
    }

    async fn message(&self, id: &MessageId) -> Result<Option<Message>, StoreError> {
        let query =
            sqlx::query("SELECT doc, turn_id FROM messages WHERE id = ?1").bind(id.as_str());
        query
            .fetch_optional(&self.readers)
            .await?
            .as_ref()
            .map(to_message)
            .transpose()
    }

    async fn plugin_data(
        &self,
        id: &SessionId,
        plugin: &PluginId,
        namespace: &str,
    ) -> Result<Vec<PluginDatum>, StoreError> {
        let sql = "SELECT doc FROM plugin_data
                   WHERE session_id = ?1 AND plugin_id = ?2 AND namespace = ?3 ORDER BY key";
        let query = sqlx::query(sql)
            .bind(id.as_str())
            .bind(plugin.as_str())
            .bind(namespace);
        from_docs(&query.fetch_all(&self.readers).await?)
    }

    async fn all_plugin_data(&self, id: &SessionId) -> Result<Vec<PluginDatum>, StoreError> {
        let sql = "SELECT doc FROM plugin_data WHERE session_id = ?1
                   ORDER BY plugin_id, namespace, key";
        let query = sqlx::query(sql).bind(id.as_str());
        from_docs(&query.fetch_all(&self.readers).await?)
    }

    async fn records(&self, id: &SessionId, shelf: Shelf) -> Result<Vec<Record>, StoreError> {
        let sql = "SELECT doc FROM records WHERE session_id = ?1 AND shelf = ?2 ORDER BY ordinal";
        let query = sqlx::query(sql).bind(id.as_str()).bind(shelf.name());
        from_docs(&query.fetch_all(&self.readers).await?)
    }

    async fn append_traces(
        &self,
        session: &SessionKey,
        events: &[TraceEvent],
    ) -> Result<(), StoreError> {
        let mut connection = self.writer.acquire().await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        if !lives(&mut transaction, session).await? {
            return Ok(());
        }
        if self
            .appends
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(DROP_EVERY)
        {
            drop_old_traces(&mut transaction, &session.id).await?;
        }
        for event in events {
            let query = sqlx::query("INSERT INTO traces (session_id, doc) VALUES (?1, ?2)");
            query
                .bind(session.id.as_str())
                .bind(to_doc(event)?)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    async fn traces_before(
        &self,
        id: &SessionId,
        before: Option<Place>,
        limit: usize,
    ) -> Result<Window<TraceEvent>, StoreError> {
        let sql = "SELECT ordinal, doc FROM traces WHERE session_id = ?1 AND ordinal < ?2
                   ORDER BY ordinal DESC LIMIT ?3";
        let query = sqlx::query(sql)
            .bind(id.as_str())
            .bind(bound(before))
            .bind(limited(limit));
        to_window(&query.fetch_all(&self.readers).await?, from_doc)
    }

    async fn latest_execution(&self, id: &SessionId) -> Result<Option<ExecutionRow>, StoreError> {
        let sql = "SELECT doc FROM executions WHERE session_id = ?1 ORDER BY ordinal DESC LIMIT 1";
        let row = sqlx::query(sql)
            .bind(id.as_str())
            .fetch_optional(&self.readers)
            .await?;
        row.as_ref().map(from_doc).transpose()
    }

    async fn execution(
        &self,
        id: &SessionId,
        turn: &TurnId,
    ) -> Result<Option<ExecutionRow>, StoreError> {
        let query =
            sqlx::query("SELECT doc FROM executions WHERE session_id = ?1 AND turn_id = ?2");
        let row = query
            .bind(id.as_str())
            .bind(turn.as_str())
            .fetch_optional(&self.readers)
            .await?;
        row.as_ref().map(from_doc).transpose()
    }

    async fn executions(&self, id: &SessionId) -> Result<Vec<ExecutionRow>, StoreError> {
        let sql = "SELECT doc FROM executions WHERE session_id = ?1 ORDER BY ordinal";
        let query = sqlx::query(sql).bind(id.as_str());
        from_docs(&query.fetch_all(&self.readers).await?)
    }

    async fn tool_calls(&self, id: &SessionId) -> Result<Vec<ToolRecord>, StoreError> {
        let sql = "SELECT doc FROM tool_calls WHERE session_id = ?1 ORDER BY ordinal";
        let query = sqlx::query(sql).bind(id.as_str());
        from_docs(&query.fetch_all(&self.readers).await?)
    }

    async fn jobs(&self, id: &SessionId) -> Result<Vec<Job>, StoreError> {
        let sql = "SELECT doc FROM jobs WHERE session_id = ?1 ORDER BY enqueued_at, id";
        from_docs(
            &sqlx::query(sql)
                .bind(id.as_str())
                .fetch_all(&self.readers)
                .await?,
        )
    }

    async fn open_jobs(&self) -> Result<Vec<Job>, StoreError> {
        let sql = "SELECT doc FROM jobs WHERE NOT terminal ORDER BY enqueued_at, id";
        from_docs(&sqlx::query(sql).fetch_all(&self.readers).await?)
    }

    async fn job(&self, id: &SessionId, job: &JobId) -> Result<Option<Job>, StoreError> {
        let query = sqlx::query("SELECT doc FROM jobs WHERE session_id = ?1 AND id = ?2");
        let row = query
            .bind(id.as_str())
            .bind(job.as_str())
            .fetch_optional(&self.readers)
            .await?;
        row.as_ref().map(from_doc).transpose()
    }
}
