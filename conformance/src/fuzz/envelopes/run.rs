//! Many envelopes side by side: each worker has an instance of the target for itself, when the harness starts it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, Once, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::{sync::mpsc::UnboundedSender, task::JoinSet, time::Instant};

use super::{
    Case, Face, MEMORY,
    judge::{Took, judge},
    peer::Peer,
    plant::{Deed, PLANTS, Plant},
    report::{EnvelopeFault, EnvelopeProof, EnvelopeReport, Failure},
};
use crate::{
    drivers::{
        DriveError,
        model::ModelServer,
        target::{DEFAULT_VARIANT, Instance},
    },
    fuzz::{FuzzError, random::Random, run::is_reference},
    profile::Profile,
    suites,
};

/// Failures after which a run ends before its cases do.
const ENOUGH: usize = 10;
/// Workers of a target that the harness starts.
const WORKERS: usize = 4;
/// Cases between two looks at the memory, and between two lines of progress.
const STRIDE: u64 = 1_000;

/// What is fuzzed, and how much.
#[derive(Clone, Debug)]
pub struct EnvelopePlan {
    /// The protocol.
    pub face: Face,
    /// What is known about the target.
    pub profile: Arc<Profile>,
    /// Which cases: the same seed gives the same.
    pub seed: u64,
    /// How many.
    pub cases: u64,
    /// Number of the first one.
    pub first: u64,
    /// Workers; one for a target that somebody else runs, since each compares what is stored.
    pub jobs: usize,
    /// Who is told how many cases have been played.
    pub progress: Option<UnboundedSender<u64>>,
}

impl EnvelopePlan {
    /// So many cases of this seed against the target of a profile.
    pub fn new(face: Face, profile: Profile, seed: u64, cases: u64) -> Self {
        let (profile, jobs) = if is_reference(&profile) {
            (profile.with_time_scale(1.0), WORKERS)
        } else {
            (profile, 1)
        };
        Self {
            face,
            profile: Arc::new(profile),
            seed,
            cases,
            first: 0,
            jobs,
            progress: None,
        }
    }

    fn is_ours(&self) -> bool {
        is_reference(&self.profile)
    }
}

/// Plays the cases of a plan, and makes those smaller that fail.
///
/// # Errors
///
/// When the target does not start or cannot be spoken to.
pub async fn fuzz(plan: &EnvelopePlan) -> Result<EnvelopeReport, FuzzError> {
    Hunt::run(plan, None, ENOUGH).await
}

/// Plays one case, without making it smaller.
///
/// # Errors
///
/// As [`fuzz`].
pub async fn again(plan: &EnvelopePlan, case: Case) -> Result<EnvelopeReport, FuzzError> {
    let hunt = Hunt::new(plan, None, 1);
    let mut worker = hunt.worker().await?;
    let failure = worker.play(0, &case, &hunt).await;
    hunt.note(failure);
    Ok(hunt.report(Instant::now()))
}

/// Plants each fault in front of the reference server, and looks for it in at most as many cases as the plan has.
///
/// # Errors
///
/// As [`fuzz`].
pub async fn prove(plan: &EnvelopePlan, only: Option<&str>) -> Result<EnvelopeProof, FuzzError> {
    let mut proof = EnvelopeProof {
        suite: plan.face.suite().to_owned(),
        seed: plan.seed,
        faults: Vec::new(),
        details: Vec::new(),
    };
    let plants = PLANTS.iter();
    for plant in plants.filter(|plant| only.is_none_or(|only| plant.name.contains(only))) {
        let plan = EnvelopePlan {
            jobs: 1,
            ..plan.clone()
        };
        let report = Hunt::run(&plan, Some(plant), 1).await?;
        proof.faults.push(EnvelopeFault {
            name: plant.name.to_owned(),
            about: plant.about.to_owned(),
            cases: report.played,
            found: report.failures.first().cloned(),
        });
        let details = report.details.into_iter().take(1);
        proof
            .details
            .extend(details.map(|failure| (plant.name.to_owned(), failure)));
    }
    Ok(proof)
}

struct Hunt {
    plan: EnvelopePlan,
    plant: Option<&'static Plant>,
    enough: usize,
    next: AtomicU64,
    played: AtomicU64,
    over: AtomicBool,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    failures: Vec<Failure>,
    refused: BTreeMap<String, u64>,
    changes: BTreeMap<String, u64>,
    accepted: u64,
    /// Memory of the process after the first cases, and now.
    memory: Option<(u64, u64)>,
    leaked: Vec<Vec<u8>>,
}

impl Hunt {
    fn new(plan: &EnvelopePlan, plant: Option<&'static Plant>, enough: usize) -> Self {
        watch_panics();
        Self {
            plan: plan.clone(),
            plant,
            enough,
            next: AtomicU64::new(plan.first),
            played: AtomicU64::new(0),
            over: AtomicBool::new(false),
            found: Mutex::default(),
        }
    }

    async fn run(
        plan: &EnvelopePlan,
        plant: Option<&'static Plant>,
        enough: usize,
    ) -> Result<EnvelopeReport, FuzzError> {
        let begun = Instant::now();
        let hunt = Arc::new(Self::new(plan, plant, enough));
        let mut workers = JoinSet::new();
        for _ in 0..plan.jobs.max(1) {
            let hunt = Arc::clone(&hunt);
            workers.spawn(async move { hunt.work().await });
        }
        for ended in workers.join_all().await {
            ended?;
        }
        hunt.make_smaller().await?;
        Ok(hunt.report(begun))
    }

    async fn work(&self) -> Result<(), FuzzError> {
        let mut worker = self.worker().await?;
        let end = self.plan.first + self.plan.cases;
        while !self.over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                break;
            }
            let mut random = Random::new(self.plan.seed, number);
            let case = Case::random(self.plan.face, &mut random);
            let failure = worker.play(number, &case, self).await;
            if failure.is_some() {
                // A target that was led astray is no measure for the cases that follow.
                worker = self.worker().await?;
            }
            self.note(failure);
        }
        Ok(())
    }

    async fn worker(&self) -> Result<Worker, FuzzError> {
        let suite = suites::find(self.plan.face.suite())
            .map_err(|error| FuzzError::Harness(error.to_string()))?;
        let model = if self.plan.is_ours() {
            let started = ModelServer::start().await;
            Some(started.map_err(|error| FuzzError::Model(error.to_string()))?)
        } else {
            None
        };
        let launch = self.plan.profile.launcher_for(suite.id);
        let url = model.as_ref().map(ModelServer::base_url);
        let instance = Instance::start(launch, DEFAULT_VARIANT, url, None)
            .await
            .map_err(FuzzError::Target)?;
        let not_reached = |why: String| {
            FuzzError::Target(DriveError::Harness(format!(
                "no envelope can be sent: {why}"
            )))
        };
        let base = instance.url().await;
        let base = base.ok_or_else(|| not_reached("the target has no address".to_owned()))?;
        let peer = Peer::open(self.plan.face, &base)
            .await
            .map_err(not_reached)?;
        Ok(Worker {
            peer,
            before: None,
            _instance: instance,
            _model: model,
        })
    }

    fn note(&self, failure: Option<Failure>) {
        let played = self.played.fetch_add(1, Ordering::Relaxed) + 1;
        let mut found = self.found();
        found.failures.extend(failure);
        if played.is_multiple_of(STRIDE) || self.plant.is_some() {
            self.look_at_memory(&mut found, played);
        }
        if found.failures.len() >= self.enough {
            self.over.store(true, Ordering::Relaxed);
        }
        if let Some(progress) = self
            .plan
            .progress
            .as_ref()
            .filter(|_| played.is_multiple_of(STRIDE))
        {
            // Nobody has to listen.
            let _ = progress.send(played);
        }
    }

    fn look_at_memory(&self, found: &mut Found, played: u64) {
        let Some(now) = resident().filter(|_| self.plan.is_ours()) else {
            return;
        };
        let (first, last) = found.memory.unwrap_or((now, now));
        found.memory = Some((first, last.max(now)));
        let grown = now.saturating_sub(first);
        if grown > MEMORY && found.failures.is_empty() {
            let number = self.plan.first + played;
            let mut random = Random::new(self.plan.seed, number);
            found.failures.push(Failure {
                number,
                case: Case::random(self.plan.face, &mut random),
                what: format!("{MEMORY_GREW} {} MiB over {played} cases", grown >> 20),
                exchange: None,
            });
        }
    }

    /// Takes changes away and makes them smaller while the same is wrong.
    async fn make_smaller(&self) -> Result<(), FuzzError> {
        let failures = std::mem::take(&mut self.found().failures);
        let mut smaller = Vec::new();
        for failure in failures {
            let shrunk = if failure.what.starts_with(MEMORY_GREW) {
                failure
            } else {
                self.shrink(failure).await?
            };
            smaller.push(shrunk);
        }
        self.found().failures = smaller;
        Ok(())
    }

    async fn shrink(&self, mut failure: Failure) -> Result<Failure, FuzzError> {
        'again: loop {
            for candidate in candidates(&failure.case) {
                let mut worker = self.worker().await?;
                let smaller = worker.play(failure.number, &candidate, self).await;
                if let Some(smaller) = smaller.filter(|it| kind(&it.what) == kind(&failure.what)) {
                    failure = smaller;
                    continue 'again;
                }
            }
            return Ok(failure);
        }
    }

    fn report(&self, begun: Instant) -> EnvelopeReport {
        let mut found = self.found();
        let mut failures = std::mem::take(&mut found.failures);
        failures.sort_by_key(|failure| failure.number);
        EnvelopeReport {
            suite: self.plan.face.suite().to_owned(),
            seed: self.plan.seed,
            played: self.played.load(Ordering::Relaxed),
            accepted: found.accepted,
            refused: std::mem::take(&mut found.refused),
            changes: std::mem::take(&mut found.changes),
            grown_bytes: found.memory.map(|(first, last)| last - first),
            seconds: (begun.elapsed().as_secs_f64() * 100.0).round() / 100.0,
            failures: failures.iter().map(Failure::report).collect(),
            details: failures,
        }
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a failure of the memory begins.
const MEMORY_GREW: &str = "memory grew by";

/// What a failure is about, without what differs from case to case.
fn kind(what: &str) -> String {
    what.split([':', '"', '('])
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn candidates(case: &Case) -> Vec<Case> {
    let with = |changes: Vec<_>| Case {
        base: case.base.clone(),
        changes,
    };
    let fewer = (0..case.changes.len()).map(|at| {
        let mut changes = case.changes.clone();
        changes.remove(at);
        with(changes)
    });
    let smaller = case.changes.iter().enumerate().filter_map(|(at, change)| {
        let mut changes = case.changes.clone();
        *changes.get_mut(at)? = change.smaller()?;
        Some(with(changes))
    });
    fewer.chain(smaller).collect()
}

struct Worker {
    peer: Peer,
    /// The authoritative state after the case before; `None` when it has to be read.
    before: Option<String>,
    _instance: Instance,
    _model: Option<ModelServer>,
}

impl Worker {
    /// Plays a case: `None` when all is well.
    async fn play(&mut self, number: u64, case: &Case, hunt: &Hunt) -> Option<Failure> {
        let panics = PANICS.load(Ordering::Relaxed);
        let mut exchange = None;
        let mut what = self.act(case, hunt, &mut exchange).await.err();
        if PANICS.load(Ordering::Relaxed) > panics {
            what = Some("a thread panicked".to_owned());
        }
        what.map(|what| Failure {
            number,
            case: case.clone(),
            what,
            exchange,
        })
    }

    async fn act(
        &mut self,
        case: &Case,
        hunt: &Hunt,
        exchange: &mut Option<(super::draft::Sent, super::wire::Answer)>,
    ) -> Result<(), String> {
        let before = match self.before.take() {
            Some(before) => before,
            None => self.peer.state().await?,
        };
        let (sent, mut answer) = self.peer.put(case).await?;
        let mut breaks = false;
        let plant = hunt.plant.filter(|plant| plant.happens(&sent, &answer));
        if let Some(plant) = plant {
            answer = (plant.answer)(hunt.plan.face, answer);
            match plant.deed {
                Deed::Nothing => {}
                Deed::Stores => self.peer.store().await,
                Deed::Breaks => breaks = true,
                Deed::Leaks(bytes) => hunt.found().leaked.push(vec![1; bytes]),
            }
        }
        let took = judge(hunt.plan.face, case, &sent, &answer);
        for name in &sent.changes {
            *hunt.found().changes.entry((*name).to_owned()).or_default() += 1;
        }
        let is_safe = matches!(sent.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "ping")
            && case.base != "session/subscribe";
        *exchange = Some((sent, answer));
        match took? {
            Took::Accepted => {
                hunt.found().accepted += 1;
                if !is_safe {
                    return self.peer.renew().await;
                }
            }
            Took::Refused(how) => *hunt.found().refused.entry(how).or_default() += 1,
        }
        let after = match breaks {
            true => Err("GET is answered with 500".to_owned()),
            false => self.peer.state().await,
        };
        let after = after.map_err(|why| format!("the next valid request fails: {why}"))?;
        if after != before {
            return Err(format!(
                "something is stored: {}",
                difference(&before, &after)
            ));
        }
        self.before = Some(after);
        Ok(())
    }
}

/// The first line that differs.
fn difference(before: &str, after: &str) -> String {
    let lines = before.lines().zip(after.lines());
    let differs = lines
        .filter(|(one, other)| one != other)
        .map(|(_, other)| other)
        .next();
    differs.unwrap_or_default().chars().take(300).collect()
}

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts the panics of this process's runtime from now on, where a server in process runs.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let thread = std::thread::current();
            if thread.name().is_some_and(|name| name.starts_with("tokio")) {
                PANICS.fetch_add(1, Ordering::Relaxed);
            }
            before(info);
        }));
    });
}

/// Memory of this process that is in use, in bytes; `None` where the system does not tell.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
