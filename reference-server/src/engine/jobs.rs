//! Background jobs: work of a plugin that outlives the request which asked for it.
//!
//! ```text
//! queued ──> running ──(progress)*──> succeeded | failed
//!   ▲  │        │  │
//!   │  │        │  └── worker died ──> orphaned
//!   │  └────────┴───── cancel ───────> cancelled
//!   └── orderly shutdown ┘
//! ```
//!
//! The stored row is the truth. Each change is a commit of its own and raises `sequence`; the store
//! refuses a change that comes too late, so a worker whose job was cancelled cannot bring it back.
//! `job-status.updated` follows each change.
//!
//! Source: seed 000, lines 349-399.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Mutex;
use turnwire_spec::covel::limits::{FINAL_JOBS_KEPT, QUEUED_JOBS_PER_SESSION};
use turnwire_spec::covel::vocabulary::JobStatus;
use turnwire_spec::time::format_ms;

use super::events::changes::job_status_updated;
use super::happening::Happening;
use super::ids::{JobId, PluginId, RuntimeId, SessionId, SessionKey, TurnId};
use super::model::{Job, Session};
use super::{Engine, EngineError};
use crate::store::{Purpose, StoreError, Write};

/// What clients read of a failed job, whatever the cause.
const FAILED: &str = "The background task failed";
/// What clients read of a job whose worker died.
const ORPHANED: &str = "The background task was interrupted";

/// What a new job is asked to be.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// The plugin that does it.
    pub plugin_id: PluginId,
    /// The runtime that it runs for.
    pub runtime_id: RuntimeId,
    /// What the plugin needs to do it. Never shown to clients.
    pub payload: Value,
    /// The turn that asks for it, when one does.
    pub source_turn_id: Option<TurnId>,
}

/// One run of a job, as the plugin sees it.
pub struct JobRun<'a> {
    engine: &'a Engine,
    session: &'a SessionKey,
    start: Job,
    now: &'a Mutex<Job>,
}

impl JobRun<'_> {
    /// The job as it was when this run began.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.start
    }

    /// The engine, for what the job does.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        self.engine
    }

    /// Reports how far the work is, in percent.
    ///
    /// # Errors
    ///
    /// [`EngineError::Store`] when the report could not be stored; it is not told then. A conflict
    /// means that the job is no longer this run's.
    pub async fn progress(&self, percent: f64, message: Option<&str>) -> Result<(), EngineError> {
        let change = Change::Progress {
            percent,
            message: message.map(str::to_owned),
        };
        self.engine
            .advance(self.session, &mut *self.now.lock().await, change)
            .await
    }
}

/// What happens to a job.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    Start,
    Progress {
        percent: f64,
        message: Option<String>,
    },
    Succeed(Value),
    Fail,
    Cancel,
    Orphan,
    Requeue,
}

/// The job after this change, or `None` when its state does not allow it.
fn after(job: &Job, change: Change, now: Timestamp) -> Option<Job> {
    use JobStatus::{Cancelled, Failed, Orphaned, Queued, Running, Succeeded};
    let status = match (job.status, &change) {
        (Queued, Change::Start) | (Running, Change::Progress { .. }) => Running,
        (Running, Change::Succeed(_)) => Succeeded,
        (Queued | Running, Change::Fail) => Failed,
        (Queued | Running, Change::Cancel) => Cancelled,
        (Running, Change::Orphan) => Orphaned,
        (Running, Change::Requeue) => Queued,
        _ => return None,
    };
    let mut next = Job {
        status,
        sequence: job.sequence + 1,
        updated_at: now,
        ..job.clone()
    };
    match change {
        Change::Start => {
            next.attempt += 1;
            next.started_at = Some(now);
        }
        Change::Progress { percent, message } => {
            next.progress = Some(percent.clamp(0.0, 100.0));
            next.message = message;
        }
        Change::Succeed(result) => next.result = Some(result),
        Change::Fail => next.error = Some(FAILED.to_owned()),
        Change::Orphan => next.error = Some(ORPHANED.to_owned()),
        Change::Cancel => {}
        Change::Requeue => {
            next.progress = None;
            next.message = None;
            next.started_at = None;
        }
    }
    if status.is_final() {
        next.finished_at = Some(now);
    }
    Some(next)
}

/// The final jobs of the same runtime that give way when `job` ends: all but the most recent ones.
fn outdated<'a>(jobs: &'a [Job], job: &Job) -> impl Iterator<Item = &'a JobId> {
    let same_runtime = |other: &&Job| {
        other.runtime_id == job.runtime_id && other.plugin_id == job.plugin_id && other.id != job.id
    };
    let mut ended: Vec<&Job> = jobs
        .iter()
        .filter(|other| other.status.is_final())
        .filter(same_runtime)
        .collect();
    ended.sort_by_key(|other| std::cmp::Reverse((other.finished_at, &other.id)));
    ended
        .into_iter()
        .skip(FINAL_JOBS_KEPT - 1)
        .map(|other| &other.id)
}

impl Engine {
    /// Queues a job. It is stored and told when this returns, and runs as soon as a worker is free.
    ///
    /// # Errors
    ///
    /// [`EngineError::QueueFull`], [`EngineError::ShuttingDown`], [`EngineError::SessionNotFound`]
    /// or [`EngineError::Store`].
    pub async fn queue_job(&self, session: &Session, new: NewJob) -> Result<Job, EngineError> {
        if self.is_closing() {
            return Err(EngineError::ShuttingDown);
        }
        let jobs = self.inner.store.jobs(&session.id).await?;
        let queued = jobs
            .iter()
            .filter(|job| job.status == JobStatus::Queued)
            .count();
        if queued >= QUEUED_JOBS_PER_SESSION {
            return Err(EngineError::QueueFull(session.id.clone()));
        }
        let now = self.inner.clock.now();
        let job = Job {
            id: JobId::from(self.inner.ids.id("job")),
            session_id: session.id.clone(),
            plugin_id: new.plugin_id,
            runtime_id: new.runtime_id,
            status: JobStatus::Queued,
            sequence: 0,
            attempt: 0,
            payload: new.payload,
            progress: None,
            message: None,
            source_turn_id: new.source_turn_id,
            result: None,
            error: None,
            enqueued_at: now,
            updated_at: now,
            started_at: None,
            finished_at: None,
        };
        self.store_job(&session.key(), &job).await?;
        self.employ(session.key(), job.clone());
        Ok(job)
    }

    /// All jobs of a session, by the time they were queued.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn jobs(&self, id: &SessionId) -> Result<Vec<Job>, EngineError> {
        self.session(id).await?;
        Ok(self.inner.store.jobs(id).await?)
    }

    /// Calls a job off that is queued or running.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`], [`EngineError::JobNotCancellable`] or [`EngineError::Store`].
    pub async fn cancel_job(&self, id: &SessionId, job: &JobId) -> Result<Job, EngineError> {
        let session = self.session(id).await?.key();
        let refused = || EngineError::JobNotCancellable(job.clone());
        let mut stored = self.inner.store.job(id, job).await?.ok_or_else(refused)?;
        if stored.status.is_final() {
            return Err(refused());
        }
        match self.advance(&session, &mut stored, Change::Cancel).await {
            Err(EngineError::Store(StoreError::Conflict(_))) => Err(refused()),
            other => other.map(|()| stored),
        }
    }

    /// Takes up the jobs of a former process.
    pub(super) async fn recover_jobs(&self) -> Result<(), EngineError> {
        for mut job in self.inner.store.open_jobs().await? {
            let Some(session) = self.inner.store.session(&job.session_id).await? else {
                continue;
            };
            match job.status {
                JobStatus::Queued => self.employ(session.key(), job),
                _ => {
                    self.advance(&session.key(), &mut job, Change::Orphan)
                        .await?
                }
            }
        }
        Ok(())
    }

    /// Gives a queued job to a worker.
    fn employ(&self, session: SessionKey, job: Job) {
        let engine = self.clone();
        self.spawn(async move {
            let id = job.id.clone();
            match engine.work(&session, job).await {
                // Somebody else decided about the job meanwhile; that decision stands.
                Ok(())
                | Err(
                    EngineError::Store(StoreError::Conflict(_)) | EngineError::SessionNotFound(_),
                ) => {}
                Err(error) => {
                    tracing::warn!(job = %id, %error, "a background job could not be recorded")
                }
            }
        });
    }

    async fn work(&self, session: &SessionKey, mut job: Job) -> Result<(), EngineError> {
        let stopping = self.inner.stopping.clone();
        let permit = tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            permit = self.inner.workers.acquire() => permit,
        };
        let Ok(_permit) = permit else { return Ok(()) };
        self.advance(session, &mut job, Change::Start).await?;
        let Some(plugin) = self.inner.registry.plugin(&job.plugin_id).map(Arc::clone) else {
            return self.advance(session, &mut job, Change::Fail).await;
        };
        let now = Mutex::new(job.clone());
        let run = JobRun {
            engine: self,
            session,
            start: job,
            now: &now,
        };
        let change = tokio::select! {
            biased;
            () = stopping.cancelled() => Change::Requeue,
            result = plugin.job(run) => match result {
                Ok(result) => Change::Succeed(result),
                Err(error) => {
                    tracing::warn!(session = %session.id, error, "a background job failed");
                    Change::Fail
                }
            },
        };
        self.advance(session, &mut *now.lock().await, change).await
    }

    /// Stores and tells a change of a job. A change that its state does not allow is a conflict.
    async fn advance(
        &self,
        session: &SessionKey,
        job: &mut Job,
        change: Change,
    ) -> Result<(), EngineError> {
        let Some(next) = after(job, change, self.inner.clock.now()) else {
            let conflict = StoreError::Conflict(format!("job {} is {}", job.id, job.status.name()));
            return Err(EngineError::Store(conflict));
        };
        self.store_job(session, &next).await?;
        *job = next;
        Ok(())
    }

    async fn store_job(&self, session: &SessionKey, job: &Job) -> Result<(), EngineError> {
        let emitter = self.emitter_outside(session);
        let told = job_status_updated(job, &format_ms(job.updated_at.as_millisecond()));
        let mut writes = vec![Write::Job(job.clone())];
        if job.status.is_final() {
            let others = self.inner.store.jobs(&session.id).await?;
            writes.extend(outdated(&others, job).cloned().map(Write::DropJob));
        }
        self.change(&emitter, Purpose::Job, writes, vec![told])
            .await?;
        emitter.tell_fact(Happening::task(session, job));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(status: JobStatus) -> Job {
        Job {
            id: "j".into(),
            session_id: "s".into(),
            plugin_id: "p".into(),
            runtime_id: "r".into(),
            status,
            sequence: 3,
            attempt: 1,
            payload: Value::Null,
            progress: Some(50.0),
            message: None,
            source_turn_id: None,
            result: None,
            error: None,
            enqueued_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            started_at: Some(Timestamp::UNIX_EPOCH),
            finished_at: None,
        }
    }

    fn all_changes() -> Vec<Change> {
        let progress = Change::Progress {
            percent: 140.0,
            message: None,
        };
        let succeed = Change::Succeed(Value::Null);
        vec![
            Change::Start,
            progress,
            succeed,
            Change::Fail,
            Change::Cancel,
            Change::Orphan,
            Change::Requeue,
        ]
    }

    #[test]
    fn a_job_that_has_ended_never_changes() {
        use JobStatus::{Cancelled, Failed, Orphaned, Succeeded};
        for state in [Succeeded, Failed, Cancelled, Orphaned] {
            for change in all_changes() {
                assert_eq!(after(&job(state), change, Timestamp::UNIX_EPOCH), None);
            }
        }
    }

    #[test]
    fn every_change_that_is_allowed_raises_the_sequence_by_one() {
        let allowed: usize = [JobStatus::Queued, JobStatus::Running]
            .into_iter()
            .flat_map(|state| all_changes().into_iter().map(move |change| (state, change)))
            .filter_map(|(state, change)| after(&job(state), change, Timestamp::UNIX_EPOCH))
            .inspect(|next| assert_eq!(next.sequence, 4))
            .count();

        assert_eq!(allowed, 9);
    }

    #[test]
    fn a_job_that_goes_back_to_the_queue_keeps_its_attempt_and_loses_its_progress() {
        let next = after(
            &job(JobStatus::Running),
            Change::Requeue,
            Timestamp::UNIX_EPOCH,
        )
        .unwrap();

        assert_eq!(
            (next.attempt, next.progress, next.started_at),
            (1, None, None)
        );
    }

    #[test]
    fn progress_stays_within_a_hundred_percent() {
        let change = Change::Progress {
            percent: 140.0,
            message: None,
        };

        let next = after(&job(JobStatus::Running), change, Timestamp::UNIX_EPOCH).unwrap();

        assert_eq!(next.progress, Some(100.0));
    }
}
