//! Many cases side by side, each judged as soon as it has been played.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{RwLock, Semaphore, mpsc::UnboundedSender},
    task::{JoinSet, spawn_blocking},
    time::Instant,
};

use super::{
    Abilities, Case, Protocol, fair,
    field::{Field, Played},
    oracle::{Broken, Oracle},
    random::Random,
    report::{Counts, Failure, FuzzReport, Seen},
    shrink,
};
use crate::{
    drivers::{DriveError, model::ModelServer, target::Launch},
    profile::{Profile, Target},
    suites::{self, Suite},
    transcript::Transcript,
};

/// Failures that are shrunk; more are counted only.
const SHRUNK: usize = 8;
/// Failures after which a run ends before its cases do.
const ENOUGH: usize = 40;
/// How long a case waits for what ought to come at once: many run side by side, and only one that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time of one case.
const CASE: Duration = Duration::from_secs(120);
/// Cases that run out of time again although they have more: then it is the target that does not answer, and later ones
/// are believed at once.
const KNOWN_SLOW: usize = 3;
/// Cases between two events that tell how far a run is.
const STRIDE: u64 = 100;

/// What is fuzzed, with what, and how much.
#[derive(Clone)]
pub struct FuzzPlan {
    /// The protocol.
    pub protocol: &'static dyn Protocol,
    /// What is known about the target.
    pub profile: Arc<Profile>,
    /// How the target is started.
    pub launch: Arc<dyn Launch>,
    /// Which cases: the same seed gives the same.
    pub seed: u64,
    /// How many cases.
    pub cases: u64,
    /// Number of the first one.
    pub first: u64,
    /// Cases that are played at the same time; at least 1.
    pub jobs: usize,
    /// A case that fails, and for which the time ran out, is played again with more, and only then believed.
    pub confirms: bool,
    /// Who is told what happens.
    pub events: Option<UnboundedSender<FuzzEvent>>,
}

/// What happens during a run.
#[derive(Clone, Debug)]
pub enum FuzzEvent {
    /// So many cases have been played, of so many.
    Played {
        /// Cases so far.
        done: u64,
        /// Failures so far.
        failures: u64,
    },
    /// A case fails.
    Failed {
        /// Its number.
        case: u64,
        /// What it breaks, or why it could not be played.
        what: String,
    },
    /// A case that fails was made smaller.
    Shrunk {
        /// Its number.
        case: u64,
        /// Steps that are left.
        steps: usize,
    },
    /// A planted fault was looked for.
    Fault(Box<super::prove::Found>),
}

/// Why nothing could be found out.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FuzzError {
    /// The target does not start or does not answer.
    #[error("{0}")]
    Target(DriveError),
    /// The mock model provider does not start.
    #[error("harness: the mock model provider does not start: {0}")]
    Model(String),
    /// The protocol has no suite.
    #[error("harness: {0}")]
    Harness(String),
    /// No planted fault has this text in its name.
    #[error("no planted fault has {text:?} in its name; there are {known}")]
    NoFault {
        /// The text.
        text: String,
        /// The names of all faults.
        known: String,
    },
}

impl FuzzPlan {
    /// So many cases of this seed against the target of a profile.
    pub fn new(protocol: &'static dyn Protocol, profile: Profile, seed: u64, cases: u64) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let mut profile = profile;
        if is_reference(&profile) {
            // No case waits for a period, and short ones only cut off who is slow because the machine is busy.
            profile = profile.with_time_scale(1.0);
        }
        let limits = &mut profile.limits;
        limits.patience = limits.patience.max(PATIENCE);
        limits.scenario = limits.scenario.max(CASE);
        limits.http.head = limits.http.head.max(PATIENCE);
        limits.http.idle = limits.http.idle.max(PATIENCE);
        limits.http.total = limits.http.total.max(PATIENCE * 2);
        let launch = launcher(protocol, &profile);
        Self {
            protocol,
            profile: Arc::new(profile),
            launch,
            seed,
            cases,
            first: 0,
            jobs: (processors * 12).clamp(1, MOST_JOBS),
            confirms: true,
            events: None,
        }
    }

    /// What the target is able to.
    pub fn abilities(&self) -> Abilities {
        let fixture = &self.profile.fixture_plugin;
        Abilities {
            model: self.profile.reaches_model(),
            fixtures: self.profile.session_plugins.contains(fixture),
            restarts: self.launch.restarts().is_ok(),
        }
    }

    pub(super) fn tell(&self, event: FuzzEvent) {
        if let Some(events) = &self.events {
            // Nobody has to listen.
            let _ = events.send(event);
        }
    }

    pub(super) fn suite(&self) -> Result<&'static Suite, FuzzError> {
        suites::find(self.protocol.suite()).map_err(|error| FuzzError::Harness(error.to_string()))
    }

    pub(super) async fn field(&self) -> Result<Field, FuzzError> {
        let model = if self.profile.reaches_model() {
            let started = match self.profile.model_listen {
                Some(address) => ModelServer::listen(address).await,
                None => ModelServer::start().await,
            };
            let model = started.map_err(|error| FuzzError::Model(error.to_string()))?;
            Some(Arc::new(model))
        } else {
            None
        };
        Ok(Field::new(
            self.protocol,
            Arc::clone(&self.profile),
            Arc::clone(&self.launch),
            model,
            self.seed,
        ))
    }
}

/// How the target of a profile is started for a protocol.
pub(super) fn launcher(protocol: &dyn Protocol, profile: &Profile) -> Arc<dyn Launch> {
    match suites::find(protocol.suite()) {
        Ok(suite) => profile.launcher_for(suite.id),
        Err(_) => profile.launcher(),
    }
}

/// Cases at a time: more would use up the subscriptions that a server allows.
pub const MOST_JOBS: usize = 64;

/// Plays the cases of a plan, judges them, and makes those smaller that fail.
///
/// # Errors
///
/// When nothing could be found out: the target does not start or answer.
pub async fn fuzz(plan: FuzzPlan) -> Result<FuzzReport, FuzzError> {
    let begun = Instant::now();
    let oracle = Oracle::of(plan.suite()?);
    let field = Arc::new(plan.field().await?);
    field.start().await.map_err(FuzzError::Target)?;
    let hunt = Arc::new(Hunt::new(plan.clone(), field, oracle, ENOUGH));
    hunt.play_all().await;
    let mut failures = hunt.failures();
    let counts = hunt.counts();
    for failure in failures.iter_mut().take(SHRUNK) {
        hunt.make_smaller(failure, shrink::TRIES).await;
        plan.tell(FuzzEvent::Shrunk {
            case: failure.number,
            steps: failure.case.steps.len(),
        });
    }
    Ok(FuzzReport::new(&plan, failures, counts, begun.elapsed()))
}

/// Plays one case, and makes it smaller when it fails.
///
/// # Errors
///
/// As [`fuzz`].
pub async fn again(plan: FuzzPlan, case: Case) -> Result<FuzzReport, FuzzError> {
    let begun = Instant::now();
    let oracle = Oracle::of(plan.suite()?);
    let field = Arc::new(plan.field().await?);
    field.start().await.map_err(FuzzError::Target)?;
    let hunt = Hunt::new(plan.clone(), field, oracle, ENOUGH);
    let attempt = hunt.attempt(plan.first, &case).await;
    hunt.note(plan.first, case, attempt);
    let (failures, counts) = (hunt.failures(), hunt.counts());
    Ok(FuzzReport::new(&plan, failures, counts, begun.elapsed()))
}

/// A search for cases that fail.
pub(super) struct Hunt {
    plan: FuzzPlan,
    field: Arc<Field>,
    oracle: Arc<Oracle>,
    /// Failures after which it ends.
    enough: usize,
    next: AtomicU64,
    played: AtomicU64,
    /// Cases that failed when the time ran out, and passed when they had more.
    hurried: AtomicU64,
    /// Cases that ran out of time again.
    slow: AtomicUsize,
    over: AtomicBool,
    found: Mutex<Found>,
    judges: Semaphore,
    /// Held by each case that is played; exclusively by one that must have the machine for itself.
    machine: RwLock<()>,
}

#[derive(Default)]
struct Found {
    failures: Vec<Failure>,
    seen: Seen,
}

/// A case that was played, and what was found.
struct Attempt {
    played: Played,
    broken: Vec<Broken>,
    seen: Seen,
}

impl Attempt {
    fn fails(&self) -> bool {
        !self.broken.is_empty() || self.played.problem.is_some()
    }
}

impl Hunt {
    pub(super) fn new(plan: FuzzPlan, field: Arc<Field>, oracle: Oracle, enough: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            next: AtomicU64::new(plan.first),
            plan,
            field,
            oracle: Arc::new(oracle),
            enough,
            played: AtomicU64::new(0),
            hurried: AtomicU64::new(0),
            slow: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            found: Mutex::default(),
            judges: Semaphore::new(processors),
            machine: RwLock::default(),
        }
    }

    /// Plays all cases, or until enough fail.
    pub(super) async fn play_all(self: &Arc<Self>) {
        let mut workers = JoinSet::new();
        for _ in 0..self.plan.jobs.clamp(1, MOST_JOBS) {
            let hunt = Arc::clone(self);
            workers.spawn(async move { hunt.work().await });
        }
        workers.join_all().await;
    }

    async fn work(&self) {
        let end = self.plan.first + self.plan.cases;
        while !self.over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                return;
            }
            let mut random = Random::new(self.plan.seed, number);
            let case = self.plan.protocol.case(&mut random, &self.plan.abilities());
            let attempt = self.attempt(number, &case).await;
            self.note(number, case, attempt);
        }
    }

    /// Plays a case and judges it. One that fails because the time ran out is no failure yet: it is played again with
    /// more, and nothing beside it, and what counts is what comes out then.
    async fn attempt(&self, number: u64, case: &Case) -> Attempt {
        let profile = &self.field.profile;
        let first = {
            let _among_others = self.machine.read().await;
            self.field.play_within(number, case, profile).await
        };
        let first = self.judged(first).await;
        let believed = !self.plan.confirms || self.slow.load(Ordering::Relaxed) >= KNOWN_SLOW;
        if believed || !first.fails() || !fair::ran_out(&first.played, profile) {
            return first;
        }
        let patient = Arc::new(fair::with_more_time(profile));
        let again = {
            let _alone = self.machine.write().await;
            self.field.play_within(number, case, &patient).await
        };
        let again = self.judged(again).await;
        if !again.fails() {
            self.hurried.fetch_add(1, Ordering::Relaxed);
        } else if fair::ran_out(&again.played, &patient) {
            self.slow.fetch_add(1, Ordering::Relaxed);
        }
        again
    }

    async fn judged(&self, played: Played) -> Attempt {
        let (broken, seen) = self.judge(&played.transcript).await;
        Attempt {
            played,
            broken,
            seen,
        }
    }

    /// Whether the same requirements hold when a case is played somewhere else.
    pub(super) async fn passes_on(&self, field: &Field, failure: &Failure) -> bool {
        let played = field.play(failure.number, &failure.case).await;
        let (broken, _) = self.judge(&played.transcript).await;
        let breaks = |id| broken.iter().any(|broken| broken.id == id);
        !failure.broken.iter().any(|broken| breaks(broken.id))
    }

    fn note(&self, number: u64, case: Case, attempt: Attempt) {
        let fails = attempt.fails();
        let Attempt {
            played,
            broken,
            seen,
        } = attempt;
        let failures = {
            let mut found = self.found();
            found.seen.add(&seen);
            if fails {
                let failure = Failure::new(self.plan.seed, number, case, played, broken);
                self.plan.tell(FuzzEvent::Failed {
                    case: number,
                    what: failure.what(),
                });
                found.failures.push(failure);
            }
            found.failures.len()
        };
        if failures >= self.enough {
            self.over.store(true, Ordering::Relaxed);
        }
        let done = self.played.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(STRIDE) {
            self.plan.tell(FuzzEvent::Played {
                done,
                failures: failures as u64,
            });
        }
    }

    /// What a transcript breaks, and what it shows. On a thread where nobody waits for sockets.
    async fn judge(&self, transcript: &Transcript) -> (Vec<Broken>, Seen) {
        let (oracle, transcript) = (Arc::clone(&self.oracle), transcript.clone());
        let protocol = self.plan.protocol;
        let _turn = self.judges.acquire().await;
        spawn_blocking(move || (oracle.judge(&transcript), protocol.seen(&transcript)))
            .await
            .unwrap_or_default()
    }

    /// Plays smaller cases that break the same, and keeps the smallest. A failure that does not come again stays as
    /// it is, and says so.
    pub(super) async fn make_smaller(&self, failure: &mut Failure, most: usize) {
        let wanted: BTreeSet<&str> = failure.broken.iter().map(|broken| broken.id).collect();
        let best: Mutex<Option<(Played, Vec<Broken>)>> = Mutex::default();
        let number = failure.number;
        let attempt = |case: Case| {
            let (wanted, best) = (&wanted, &best);
            async move {
                let Attempt { played, broken, .. } = self.attempt(number, &case).await;
                let same = if wanted.is_empty() {
                    played.problem.is_some()
                } else {
                    broken.iter().any(|broken| wanted.contains(broken.id))
                };
                if same {
                    *best.lock().unwrap_or_else(PoisonError::into_inner) = Some((played, broken));
                }
                same
            }
        };
        if !attempt(failure.case.clone()).await && !attempt(failure.case.clone()).await {
            return;
        }
        let protocol = self.plan.protocol;
        let whole = failure.case.clone();
        let (case, tries) =
            shrink::shrink(whole, most, |step| protocol.simpler(step), attempt).await;
        let best = best.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some((played, broken)) = best {
            failure.shrunk(case, played, broken, tries);
        }
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The failures so far, by the number of the case.
    pub(super) fn failures(&self) -> Vec<Failure> {
        let mut failures = self.found().failures.clone();
        failures.sort_by_key(|failure| failure.number);
        failures
    }

    fn counts(&self) -> Counts {
        Counts {
            played: self.played(),
            hurried: self.hurried.load(Ordering::Relaxed),
            seen: self.found().seen.clone(),
        }
    }

    /// Cases that were played.
    pub(super) fn played(&self) -> u64 {
        self.played.load(Ordering::Relaxed)
    }
}

/// Whether the target of a profile is the reference server.
pub(super) fn is_reference(profile: &Profile) -> bool {
    matches!(profile.target, Target::Reference)
}
