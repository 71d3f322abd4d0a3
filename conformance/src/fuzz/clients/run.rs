//! Many cases side by side, each with a fresh client, and the smallest of those that fail.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{sync::mpsc::UnboundedSender, task::JoinSet, time::Instant};

use super::{
    Case, Kind, SCENARIO, covel,
    plant::{PLANTS, Plant},
    report::{ClientFault, ClientFuzzReport, ClientProof, Failure},
    saved, stream,
};
use crate::{
    drivers::testee::client::{LaunchClient, OwnClient, own},
    fuzz::{FuzzError, random::Random},
    profile::Profile,
    stage::{Cases, ClientSetting, ClientStage},
    suites,
    transcript::{Header, record::Recorder},
};

/// Failures after which a run ends before its cases do.
const ENOUGH: usize = 10;
/// Candidates that are played at most to make a failure smaller.
const TRIES: usize = 60;

/// The patience with a faulty client: a tenth of the longest wait for it.
const PROOF_PATIENCE: Duration = Duration::from_millis(150);

/// What is fuzzed, and how much.
#[derive(Clone, Debug)]
pub struct ClientFuzz {
    /// The protocol.
    pub kind: Kind,
    /// How the client is started.
    pub launch: Arc<dyn LaunchClient>,
    /// What is known about it.
    pub profile: Arc<Profile>,
    /// Which cases: the same seed gives the same.
    pub seed: u64,
    /// How many.
    pub cases: u64,
    /// Number of the first one.
    pub first: u64,
    /// Clients at a time.
    pub jobs: usize,
    /// Who is told how many cases have been played.
    pub progress: Option<UnboundedSender<u64>>,
}

/// The reference client of a protocol.
///
/// # Errors
///
/// When it has none.
pub fn reference(kind: Kind) -> Result<OwnClient, FuzzError> {
    let suite =
        suites::find(kind.suite()).map_err(|error| FuzzError::Harness(error.to_string()))?;
    own::client(suite.id)
        .ok_or_else(|| FuzzError::Harness(format!("{} has no reference client", kind.suite())))
}

/// Plays the cases of a plan, and makes those smaller that fail.
///
/// # Errors
///
/// When the client does not start.
pub async fn fuzz(plan: &ClientFuzz) -> Result<ClientFuzzReport, FuzzError> {
    Hunt::run(plan, None, ENOUGH).await
}

/// Plays one case, without making it smaller.
///
/// # Errors
///
/// As [`fuzz`].
pub async fn again(
    plan: &ClientFuzz,
    number: u64,
    case: &Case,
) -> Result<ClientFuzzReport, FuzzError> {
    let hunt = Hunt::new(plan, None, 1);
    let begun = Instant::now();
    let failure = hunt.attempt(number, case).await?;
    hunt.note(case, failure);
    Ok(hunt.report(begun))
}

/// Plants each fault in front of the reference client, and looks for it in at most as many cases as the plan has.
///
/// # Errors
///
/// As [`fuzz`].
pub async fn prove(plan: &ClientFuzz, only: Option<&str>) -> Result<ClientProof, FuzzError> {
    let mut proof = ClientProof {
        suite: plan.kind.suite().to_owned(),
        seed: plan.seed,
        faults: Vec::new(),
        details: Vec::new(),
    };
    // Faults that keep a client away are waited for again and again while their case is made smaller.
    let mut quick = plan.clone();
    let mut profile = (*plan.profile).clone();
    profile.limits.patience = PROOF_PATIENCE;
    quick.profile = Arc::new(profile);
    let plan = &quick;
    let plants = PLANTS.iter().filter(|plant| plant.kind == plan.kind);
    // They mostly wait, so they are looked for side by side.
    let hunts = plants
        .filter(|plant| only.is_none_or(|only| plant.name.contains(only)))
        .map(|plant| async move { (plant, Hunt::run(plan, Some(plant), 1).await) });
    for (plant, report) in join_all(hunts).await {
        let report = report?;
        proof.faults.push(ClientFault {
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
    plan: ClientFuzz,
    plant: Option<(&'static Plant, OwnClient)>,
    enough: usize,
    next: AtomicU64,
    played: AtomicU64,
    over: AtomicBool,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    failures: Vec<Failure>,
    passing: u64,
    changes: BTreeMap<String, u64>,
}

impl Hunt {
    fn new(plan: &ClientFuzz, plant: Option<(&'static Plant, OwnClient)>, enough: usize) -> Self {
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
        plan: &ClientFuzz,
        plant: Option<&'static Plant>,
        enough: usize,
    ) -> Result<ClientFuzzReport, FuzzError> {
        let begun = Instant::now();
        let plant = match plant {
            None => None,
            Some(plant) => Some((plant, reference(plan.kind)?)),
        };
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
        let end = self.plan.first + self.plan.cases;
        while !self.over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                break;
            }
            let mut random = Random::new(self.plan.seed, number);
            let case = Case::random(self.plan.kind, &mut random);
            let mut failure = self.attempt(number, &case).await?;
            if failure.is_some() {
                // A machine may be busy for once; what is wrong is wrong again.
                failure = self.attempt(number, &case).await?;
                if failure.is_none() {
                    self.found().passing += 1;
                }
            }
            self.note(&case, failure);
        }
        Ok(())
    }

    /// Plays a case with a fresh client: `None` when all is well.
    async fn attempt(&self, number: u64, case: &Case) -> Result<Option<Failure>, FuzzError> {
        let recorder = Recorder::new(Header {
            suite: self.plan.kind.suite().to_owned(),
            scenario: SCENARIO.to_owned(),
            time_scale: self.plan.profile.time_scale,
            ..Header::default()
        });
        let launch = match &self.plant {
            None => Arc::clone(&self.plan.launch),
            Some((plant, own)) => plant.client(*own, case),
        };
        let stage = ClientStage::new(ClientSetting {
            scenario: SCENARIO.to_owned(),
            recorder: recorder.clone(),
            launch,
            intercept: None,
            profile: Arc::clone(&self.plan.profile),
            cases: Cases::default(),
        })
        .await
        .map_err(FuzzError::Target)?;
        let played = match self.plan.kind {
            Kind::Covel => covel::play(&stage, case, number).await,
            Kind::Stream => stream::play(&stage, case).await,
        };
        stage.finish().await;
        let Some(what) = played.map_err(FuzzError::Target)? else {
            return Ok(None);
        };
        let mut transcript = recorder.transcript();
        saved::mark(&mut transcript, self.plan.seed, number, case, &what);
        Ok(Some(Failure {
            number,
            case: case.clone(),
            what,
            transcript,
        }))
    }

    fn note(&self, case: &Case, failure: Option<Failure>) {
        let played = self.played.fetch_add(1, Ordering::Relaxed) + 1;
        let mut found = self.found();
        for name in case.names() {
            *found.changes.entry(name.to_owned()).or_default() += 1;
        }
        found.failures.extend(failure);
        if found.failures.len() >= self.enough {
            self.over.store(true, Ordering::Relaxed);
        }
        if let Some(progress) = &self.plan.progress {
            // Nobody has to listen.
            let _ = progress.send(played);
        }
    }

    async fn make_smaller(&self) -> Result<(), FuzzError> {
        let failures = std::mem::take(&mut self.found().failures);
        let mut smaller = Vec::new();
        for failure in failures {
            smaller.push(self.shrink(failure).await?);
        }
        self.found().failures = smaller;
        Ok(())
    }

    /// Takes steps and changes away while the same is wrong.
    async fn shrink(&self, mut failure: Failure) -> Result<Failure, FuzzError> {
        let mut tries = 0;
        'again: loop {
            for candidate in failure.case.smaller() {
                tries += 1;
                if tries > TRIES {
                    return Ok(failure);
                }
                let smaller = self.attempt(failure.number, &candidate).await?;
                if let Some(smaller) = smaller.filter(|it| kind(&it.what) == kind(&failure.what)) {
                    failure = smaller;
                    continue 'again;
                }
            }
            return Ok(failure);
        }
    }

    fn report(&self, begun: Instant) -> ClientFuzzReport {
        let mut found = self.found();
        let mut failures = std::mem::take(&mut found.failures);
        failures.sort_by_key(|failure| failure.number);
        ClientFuzzReport {
            suite: self.plan.kind.suite().to_owned(),
            client: self.plan.profile.name.clone(),
            seed: self.plan.seed,
            played: self.played.load(Ordering::Relaxed),
            changes: std::mem::take(&mut found.changes),
            passing: found.passing,
            seconds: (begun.elapsed().as_secs_f64() * 100.0).round() / 100.0,
            failures: failures.iter().map(Failure::report).collect(),
            details: failures,
        }
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a failure is about, without what differs from case to case.
fn kind(what: &str) -> &str {
    what.split(':').next().unwrap_or_default()
}
