//! The torture matrix: every case of a wire, with the bytes of its answer split at every place that can matter.
//!
//! ```text
//! case, unsplit ---> right? ---> its bytes ---> places ([`splits`]) ---> case, split there ---> right?
//! ```
//!
//! The cases and what is true of them are those of [`cases`](crate::cases), and the same function says whether a
//! report is right. What differs from a run is the amount: thousands of runs a second, side by side, each worker
//! with a mock provider and an adapter of its own, and nothing recorded. A run that fails is made again, recorded,
//! by `turnwire adapter --case ID --split N`.
//!
//! - [`splits`]: which places matter; [`worker`]: one run after the other; [`report`]: what comes out.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    sync::mpsc::UnboundedSender,
    task::JoinSet,
    time::{Duration, Instant},
};
use turnwire_spec::llm::Wire;

use crate::{
    cases::{self, Case},
    drivers::{DriveError, testee::LaunchTestee},
};

pub mod report;
pub mod splits;
mod worker;

pub use report::{CaseResult, Failure, MatrixReport};
use worker::{Ran, Worker};

/// What is put through the matrix, and how far.
#[derive(Clone, Debug)]
pub struct MatrixPlan {
    /// The wire.
    pub wire: Wire,
    /// How an adapter is started.
    pub launch: Arc<dyn LaunchTestee>,
    /// Ids of cases or hazards; none means all.
    pub only: Vec<String>,
    /// Splits a case at most; of more places those that matter most, and then an even sample.
    pub splits: usize,
    /// Adapters that run at the same time; at least 1.
    pub jobs: usize,
    /// Longest wait for a report.
    pub within: Duration,
    /// Who is told what happens.
    pub events: Option<UnboundedSender<MatrixEvent>>,
}

/// Something happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MatrixEvent {
    /// The adapter is up.
    Up(String),
    /// So many more runs are to be made.
    More(usize),
    /// So many runs were made.
    Ran(usize),
    /// A run went wrong, of this case.
    Failed(String, Failure),
}

/// Failures of one case after which it is left alone: more would say the same.
const ENOUGH: usize = 3;

/// Runs the matrix.
///
/// # Errors
///
/// [`DriveError`] when no adapter starts. What an adapter does with a case is no error.
pub async fn run(plan: MatrixPlan) -> Result<MatrixReport, DriveError> {
    let begun = Instant::now();
    let first = Worker::start(&plan).await?;
    let about = first.about().clone();
    plan.tell(MatrixEvent::Up(format!("{} {}", about.name, about.version)));
    let all = cases::of(plan.wire);
    let is_wanted = |case: &&Case| {
        plan.only.is_empty() || plan.only.iter().any(|only| cases::is_of(&case.id, only))
    };
    let results: Vec<_> = all.iter().filter(is_wanted).map(CaseResult::new).collect();
    let state = Arc::new(State {
        results: Mutex::new(results),
        next: AtomicUsize::new(0),
    });
    let unsplit: Vec<Run> = (0..state.lock().len()).map(Run::unsplit).collect();
    play(&plan, &state, first, unsplit).await?;
    let split = state.split_runs(plan.splits);
    let second = Worker::start(&plan).await?;
    play(&plan, &state, second, split).await?;
    let results = std::mem::take(&mut *state.lock());
    Ok(MatrixReport::of(
        plan.wire,
        &about,
        &results,
        begun.elapsed(),
    ))
}

/// One run that is to be made.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Which case, by its place in the results.
    case: usize,
    split: Option<usize>,
}

impl Run {
    fn unsplit(case: usize) -> Self {
        Self { case, split: None }
    }
}

/// What the workers share.
struct State {
    results: Mutex<Vec<CaseResult>>,
    next: AtomicUsize,
}

impl State {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<CaseResult>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runs with splits, of the cases that were right without.
    fn split_runs(&self, most: usize) -> Vec<Run> {
        let mut runs = Vec::new();
        for (case, result) in self.lock().iter_mut().enumerate() {
            if result.case.splits && result.is_right() {
                let places = splits::places(&result.body, most);
                result.splits = places.len();
                runs.extend(places.into_iter().map(|place| Run {
                    case,
                    split: Some(place),
                }));
            }
        }
        runs
    }

    /// Notes how a run went; the failure, when it is to be told.
    fn note(&self, run: Run, ran: Ran) -> Option<(String, Failure)> {
        let mut results = self.lock();
        let result = results.get_mut(run.case)?;
        result.runs += 1;
        match ran {
            Ran::Right { body } => {
                if run.split.is_none() {
                    result.body = body;
                }
                None
            }
            Ran::Unsupported(why) => {
                result.unsupported = Some(why);
                None
            }
            Ran::Wrong { expected, got } => {
                let failure = Failure {
                    split: run.split,
                    expected,
                    got,
                };
                result.failures.push(failure.clone());
                Some((result.case.id.clone(), failure))
            }
        }
    }

    /// The case of a run; `None` when it failed often enough.
    fn case(&self, run: Run) -> Option<&'static Case> {
        let results = self.lock();
        let result = results.get(run.case)?;
        (result.failures.len() < ENOUGH).then_some(result.case)
    }
}

/// Makes runs with all workers, the first of which is there.
async fn play(
    plan: &MatrixPlan,
    state: &Arc<State>,
    first: Worker,
    runs: Vec<Run>,
) -> Result<(), DriveError> {
    plan.tell(MatrixEvent::More(runs.len()));
    state.next.store(0, Ordering::Relaxed);
    let jobs = plan.jobs.clamp(1, runs.len().max(1));
    let runs: Arc<[Run]> = runs.into();
    let mut workers = JoinSet::new();
    let mut ready = Some(first);
    for _ in 0..jobs {
        let (plan, state, runs) = (plan.clone(), Arc::clone(state), Arc::clone(&runs));
        let ready = ready.take();
        workers.spawn(async move {
            let mut worker = match ready {
                Some(worker) => worker,
                None => Worker::start(&plan).await?,
            };
            while let Some(run) = runs.get(state.next.fetch_add(1, Ordering::Relaxed)) {
                if let Some(case) = state.case(*run) {
                    let ran = worker.play(&plan, case, run.split).await?;
                    if let Some((id, failure)) = state.note(*run, ran) {
                        plan.tell(MatrixEvent::Failed(id, failure));
                    }
                }
                plan.tell(MatrixEvent::Ran(1));
            }
            Ok::<(), DriveError>(())
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended.map_err(|error| DriveError::Harness(error.to_string()))??;
    }
    Ok(())
}

impl MatrixPlan {
    fn tell(&self, event: MatrixEvent) {
        if let Some(events) = &self.events {
            // Nobody has to listen.
            let _ = events.send(event);
        }
    }
}

#[cfg(test)]
mod tests;
