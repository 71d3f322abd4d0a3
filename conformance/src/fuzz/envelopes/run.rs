//! Many envelopes side by side: each worker has an instance of the target for itself, when the harness starts it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, Once, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    Case, Face, MEMORY,
    judge::{Took, judge},
    peer::Peer,
    plant::{Deed, PLANTS, Plant},
    report::{EnvelopeProof, EnvelopeReport, Exchange, Failure},
};
use crate::{
    drivers::{
        DriveError,
        model::ModelServer,
        target::{DEFAULT_VARIANT, Instance},
    },
    fuzz::{
        FuzzError,
        hunt::{self, ENOUGH, Game, Hunted},
        planted::chosen,
        random::Random,
        run::is_reference,
    },
    profile::Profile,
    suites,
};

/// Workers of a target that the harness starts.
const WORKERS: usize = 4;
/// Cases between two looks at the memory.
const STRIDE: u64 = 1_000;

/// What is fuzzed, and how much.
#[derive(Clone, Debug)]
pub struct EnvelopePlan {
    /// The protocol.
    pub face: Face,
    /// What is known about the target.
    pub profile: Arc<Profile>,
    /// Which cases it plays; one at a time for a target that somebody else runs, since what is stored is compared.
    pub cases: hunt::Cases,
}

impl EnvelopePlan {
    /// So many cases of this seed against the target of a profile.
    pub fn new(face: Face, profile: Profile, seed: u64, count: u64) -> Self {
        let (profile, jobs) = if is_reference(&profile) {
            (profile.with_time_scale(1.0), WORKERS)
        } else {
            (profile, 1)
        };
        Self {
            face,
            profile: Arc::new(profile),
            cases: hunt::Cases {
                seed,
                first: 0,
                count,
                jobs,
                progress: None,
            },
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
    Envelopes::hunt(plan, None, ENOUGH).await
}

/// Plays one case, without making it smaller.
///
/// # Errors
///
/// As [`fuzz`].
pub async fn again(plan: &EnvelopePlan, case: Case) -> Result<EnvelopeReport, FuzzError> {
    let game = Envelopes::new(plan, None);
    let hunted = hunt::again(&game, 0, &case).await?;
    Ok(game.report(hunted))
}

/// Plants each fault in front of the reference server, and looks for it in at most as many cases as the plan has.
///
/// # Errors
///
/// As [`fuzz`], and when no fault has `only` in its name.
pub async fn prove(plan: &EnvelopePlan, only: Option<&str>) -> Result<EnvelopeProof, FuzzError> {
    let mut plan = plan.clone();
    plan.cases.jobs = 1;
    let mut proof = EnvelopeProof::new(plan.face.suite(), plan.cases.seed);
    for plant in chosen(PLANTS, |plant| plant.name, only)? {
        let EnvelopeReport {
            played,
            failures,
            details,
            ..
        } = Envelopes::hunt(&plan, Some(plant), 1).await?;
        proof.add((plant.name, plant.about), played, failures, details);
    }
    Ok(proof)
}

/// Envelopes as a game.
#[derive(Debug)]
struct Envelopes {
    plan: EnvelopePlan,
    plant: Option<&'static Plant>,
    found: Mutex<Found>,
}

/// What was found besides failures.
#[derive(Debug, Default)]
struct Found {
    refused: BTreeMap<String, u64>,
    changes: BTreeMap<String, u64>,
    accepted: u64,
    /// Memory of the process after the first cases, and the most since.
    memory: Option<(u64, u64)>,
    leaked: Vec<Vec<u8>>,
}

impl Envelopes {
    fn new(plan: &EnvelopePlan, plant: Option<&'static Plant>) -> Self {
        watch_panics();
        Self {
            plan: plan.clone(),
            plant,
            found: Mutex::default(),
        }
    }

    async fn hunt(
        plan: &EnvelopePlan,
        plant: Option<&'static Plant>,
        enough: usize,
    ) -> Result<EnvelopeReport, FuzzError> {
        let game = Arc::new(Self::new(plan, plant));
        let hunted = hunt::hunt(&game, &plan.cases, enough).await?;
        Ok(game.report(hunted))
    }

    fn report(&self, hunted: Hunted<Case, Exchange>) -> EnvelopeReport {
        let mut found = self.found();
        EnvelopeReport {
            suite: self.plan.face.suite().to_owned(),
            seed: self.plan.cases.seed,
            played: hunted.played,
            accepted: found.accepted,
            refused: std::mem::take(&mut found.refused),
            changes: std::mem::take(&mut found.changes),
            grown_bytes: found.memory.map(|(first, last)| last - first),
            seconds: hunted.seconds(),
            failures: hunted.failures.iter().map(Failure::report).collect(),
            details: hunted.failures,
        }
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Game for Envelopes {
    type Case = Case;
    type Player = Worker;
    type Evidence = Exchange;

    const CONFIRMS: bool = false;
    const TRIES: usize = usize::MAX;

    fn case(&self, random: &mut Random) -> Case {
        Case::random(self.plan.face, random)
    }

    fn smaller(case: &Case) -> Vec<Case> {
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

    async fn player(&self) -> Result<Worker, FuzzError> {
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

    async fn play(
        &self,
        worker: &mut Worker,
        number: u64,
        case: &Case,
    ) -> Result<Option<Failure>, FuzzError> {
        let panics = PANICS.load(Ordering::Relaxed);
        let mut exchange = None;
        let mut what = worker.act(case, self, &mut exchange).await.err();
        if PANICS.load(Ordering::Relaxed) > panics {
            what = Some("a thread panicked".to_owned());
        }
        Ok(what.map(|what| Failure {
            number,
            case: case.clone(),
            what,
            evidence: exchange,
        }))
    }

    /// Looks at the memory.
    fn played(&self, _: &Case, count: u64) -> Option<Failure> {
        if !count.is_multiple_of(STRIDE) && self.plant.is_none() {
            return None;
        }
        let now = resident().filter(|_| self.plan.is_ours())?;
        let mut found = self.found();
        let (first, last) = found.memory.unwrap_or((now, now));
        found.memory = Some((first, last.max(now)));
        let grown = now.saturating_sub(first);
        (grown > MEMORY).then(|| {
            let number = self.plan.cases.first + count;
            Failure {
                number,
                case: self.case(&mut Random::new(self.plan.cases.seed, number)),
                what: format!("{MEMORY_GREW} {} MiB over {count} cases", grown >> 20),
                evidence: None,
            }
        })
    }

    fn shrinks(failure: &Failure) -> bool {
        !failure.what.starts_with(MEMORY_GREW)
    }
}

/// How a failure of the memory begins.
const MEMORY_GREW: &str = "memory grew by";

/// An instance of the target, and the connections to it.
#[derive(Debug)]
struct Worker {
    peer: Peer,
    /// The authoritative state after the case before; `None` when it has to be read.
    before: Option<String>,
    _instance: Instance,
    _model: Option<ModelServer>,
}

impl Worker {
    async fn act(
        &mut self,
        case: &Case,
        game: &Envelopes,
        exchange: &mut Exchange,
    ) -> Result<(), String> {
        let before = match self.before.take() {
            Some(before) => before,
            None => self.peer.state().await?,
        };
        let (sent, mut answer) = self.peer.put(case).await?;
        let mut breaks = false;
        let plant = game.plant.filter(|plant| plant.happens(&sent, &answer));
        if let Some(plant) = plant {
            answer = (plant.answer)(game.plan.face, answer);
            match plant.deed {
                Deed::Nothing => {}
                Deed::Stores => self.peer.store().await,
                Deed::Breaks => breaks = true,
                Deed::Leaks(bytes) => game.found().leaked.push(vec![1; bytes]),
            }
        }
        let took = judge(game.plan.face, case, &sent, &answer);
        for name in &sent.changes {
            *game.found().changes.entry((*name).to_owned()).or_default() += 1;
        }
        let is_safe = matches!(sent.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "ping")
            && case.base != "session/subscribe";
        *exchange = Some((sent, answer));
        match took? {
            Took::Accepted => {
                game.found().accepted += 1;
                if !is_safe {
                    return self.peer.renew().await;
                }
            }
            Took::Refused(how) => *game.found().refused.entry(how).or_default() += 1,
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
