//! Background jobs across workers, cancellation and processes.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use turnwire_spec::covel::vocabulary::JobStatus;

use crate::engine::EngineError;
use crate::engine::ids::SessionId;
use crate::engine::jobs::{JobRun, NewJob};
use crate::engine::plugins::{Manifest, Plugin};
use crate::engine::testing::Bench;
use crate::store::memory::MemoryStore;

/// A plugin whose jobs do what their payload says: a number of steps, `"fail"` or `"hang"`.
struct Worker(Manifest);

impl Worker {
    fn plugin() -> Arc<dyn Plugin> {
        Arc::new(Self(Manifest {
            id: "worker".into(),
            name: "Worker".into(),
            version: "1".into(),
            runtimes: vec![],
            hooks: vec![],
            tools: vec![],
        }))
    }
}

#[async_trait]
impl Plugin for Worker {
    fn manifest(&self) -> &Manifest {
        &self.0
    }

    async fn job(&self, run: JobRun<'_>) -> Result<Value, String> {
        match &run.job().payload {
            Value::String(text) if text == "hang" => std::future::pending().await,
            Value::String(text) => Err(text.clone()),
            steps => {
                let steps = steps.as_u64().unwrap_or(0);
                for step in 1..=steps {
                    let percent = 100.0 * step as f64 / steps as f64;
                    run.progress(percent, Some("painting"))
                        .await
                        .map_err(|error| error.to_string())?;
                }
                Ok(json!({ "steps": steps }))
            }
        }
    }
}

fn job(payload: Value) -> NewJob {
    NewJob {
        plugin_id: "worker".into(),
        runtime_id: "painter".into(),
        payload,
        source_turn_id: Some("turn-7".into()),
    }
}

async fn until(bench: &Bench, session: &SessionId, status: JobStatus) {
    while bench.engine.jobs(session).await.unwrap()[0].status != status {
        tokio::task::yield_now().await;
    }
}

/// State and sequence of each job event.
fn told(bench: &Bench) -> Vec<(String, u64)> {
    let events = bench.publisher.events.lock().unwrap();
    let jobs = events
        .iter()
        .filter(|(event, _)| event.kind == "job-status.updated");
    jobs.map(|(event, _)| {
        let payload = &event.payload;
        (
            payload["state"].as_str().unwrap().to_owned(),
            payload["sequence"].as_u64().unwrap(),
        )
    })
    .collect()
}

#[tokio::test]
async fn a_job_tells_each_of_its_states_once_and_in_order() {
    let bench = Bench::with([Worker::plugin()]);
    let session = bench.session(&["worker"]).await;

    bench
        .engine
        .queue_job(&session, job(json!(2)))
        .await
        .unwrap();
    until(&bench, &session.id, JobStatus::Succeeded).await;

    let expected = ["queued", "running", "progress", "progress", "succeeded"];
    let expected: Vec<_> = expected
        .iter()
        .zip(0..)
        .map(|(state, n)| ((*state).to_owned(), n))
        .collect();
    assert_eq!(told(&bench), expected);
    let done = bench.engine.jobs(&session.id).await.unwrap().remove(0);
    assert_eq!(
        (done.attempt, done.result),
        (1, Some(json!({ "steps": 2 })))
    );
    let events = bench.publisher.events.lock().unwrap();
    let last = &events.last().unwrap().0.payload;
    assert_eq!(last["progressScopeId"], last["jobId"]);
    assert_eq!(
        last["data"],
        json!({ "originTurnId": "turn-7", "durableStatus": "succeeded" })
    );
}

#[tokio::test]
async fn a_failed_job_tells_fixed_words_and_not_its_error() {
    let bench = Bench::with([Worker::plugin()]);
    let session = bench.session(&["worker"]).await;

    bench
        .engine
        .queue_job(&session, job(json!("secret detail")))
        .await
        .unwrap();
    until(&bench, &session.id, JobStatus::Failed).await;

    let events = bench.publisher.events.lock().unwrap();
    let last = &events.last().unwrap().0.payload;
    assert_eq!(last["state"], "failed");
    assert_eq!(last["data"]["error"], "The background task failed");
    assert!(!format!("{events:?}").contains("secret detail"));
}

#[tokio::test]
async fn a_cancelled_job_does_not_come_back() {
    let bench = Bench::with([Worker::plugin()]);
    let session = bench.session(&["worker"]).await;
    let queued = bench
        .engine
        .queue_job(&session, job(json!("hang")))
        .await
        .unwrap();
    until(&bench, &session.id, JobStatus::Running).await;

    let cancelled = bench
        .engine
        .cancel_job(&session.id, &queued.id)
        .await
        .unwrap();

    assert_eq!(cancelled.status, JobStatus::Cancelled);
    let again = bench.engine.cancel_job(&session.id, &queued.id).await;
    assert_eq!(again, Err(EngineError::JobNotCancellable(queued.id)));
    bench.engine.shutdown().await;
    let states: Vec<_> = told(&bench).into_iter().map(|(state, _)| state).collect();
    assert_eq!(states, ["queued", "running", "cancelled"]);
}

#[tokio::test]
async fn an_orderly_shutdown_gives_a_job_back_and_the_next_process_runs_it() {
    let store = Arc::new(MemoryStore::new());
    let first = Bench::on(store.clone(), [Worker::plugin()]);
    let session = first.session(&["worker"]).await;
    first
        .engine
        .queue_job(&session, job(json!("hang")))
        .await
        .unwrap();
    until(&first, &session.id, JobStatus::Running).await;

    first.engine.shutdown().await;
    assert_eq!(
        first.engine.jobs(&session.id).await.unwrap()[0].status,
        JobStatus::Queued
    );

    let second = Bench::on(store, [Worker::plugin()]);
    second.engine.resume().await.unwrap();
    until(&second, &session.id, JobStatus::Running).await;
    assert_eq!(second.engine.jobs(&session.id).await.unwrap()[0].attempt, 2);
    second.engine.kill().await;
}

#[tokio::test]
async fn a_job_whose_process_died_is_orphaned() {
    let store = Arc::new(MemoryStore::new());
    let first = Bench::on(store.clone(), [Worker::plugin()]);
    let session = first.session(&["worker"]).await;
    first
        .engine
        .queue_job(&session, job(json!("hang")))
        .await
        .unwrap();
    until(&first, &session.id, JobStatus::Running).await;

    first.engine.kill().await;
    let second = Bench::on(store, [Worker::plugin()]);
    second.engine.resume().await.unwrap();

    let job = second.engine.jobs(&session.id).await.unwrap().remove(0);
    assert_eq!(job.status, JobStatus::Orphaned);
    assert_eq!(told(&second), [("failed".to_owned(), 2)]);
}

#[tokio::test]
async fn the_queue_of_a_session_has_an_end() {
    let bench = Bench::with([Worker::plugin()]);
    let session = bench.session(&["worker"]).await;
    for _ in 0..4 {
        bench
            .engine
            .queue_job(&session, job(json!("hang")))
            .await
            .unwrap();
    }
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;

    let mut queued = 0;
    let full = loop {
        match bench.engine.queue_job(&session, job(json!("hang"))).await {
            Ok(_) => queued += 1,
            Err(error) => break error,
        }
        assert!(queued <= 300, "the queue never fills");
    };

    assert_eq!(full, EngineError::QueueFull(session.id));
    bench.engine.kill().await;
}

/// COV-JOB-161, COV-JOB-162.
#[tokio::test]
async fn of_one_runtime_the_twenty_latest_final_jobs_are_kept() {
    let bench = Bench::with([Worker::plugin()]);
    let session = bench.session(&["worker"]).await;
    let other = NewJob {
        runtime_id: "writer".into(),
        ..job(json!(0))
    };
    bench.engine.queue_job(&session, other).await.unwrap();
    for _ in 0..23 {
        bench
            .engine
            .queue_job(&session, job(json!(0)))
            .await
            .unwrap();
    }
    while bench
        .engine
        .jobs(&session.id)
        .await
        .unwrap()
        .iter()
        .any(|job| !job.status.is_final())
    {
        tokio::task::yield_now().await;
    }

    let kept = bench.engine.jobs(&session.id).await.unwrap();

    assert_eq!(kept.len(), 21);
    assert_eq!(kept[0].runtime_id.as_str(), "writer");
    assert_eq!(kept.last().unwrap().id.as_str(), "job-24");
}
