//! Many cases side by side, each with a fresh client, and the smallest of those that fail.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;

use super::{
    Case, Kind, SCENARIO, chat, covel,
    plant::{PLANTS, Plant},
    report::{ClientFuzzReport, ClientProof, Failure},
    saved, stream, updates,
};
use crate::{
    clients,
    drivers::{
        DriveError,
        testee::{
            LaunchTestee,
            client::{LaunchClient, own},
        },
    },
    fuzz::{
        FuzzError,
        hunt::{self, ENOUGH, Game, Hunted},
        planted::chosen,
        random::Random,
    },
    profile::Profile,
    stage::{Cases, ClientSetting, ClientStage, TesteeSetting, TesteeStage},
    suites,
    transcript::{Header, Transcript, record::Recorder},
};

/// Our own client may take so many times its patience for anything: it is waited for in vain only where it is wrong.
const OWN_PATIENCE: u32 = 10;

/// The patience with a faulty client: a tenth of the longest wait for it.
const PROOF_PATIENCE: Duration = Duration::from_millis(150);

/// What is fuzzed, and how much.
#[derive(Clone, Debug)]
pub struct ClientFuzz {
    /// The protocol.
    pub kind: Kind,
    /// How the client is started.
    pub launch: Launcher,
    /// What is known about it.
    pub profile: Arc<Profile>,
    /// Which cases it plays; a client each.
    pub cases: hunt::Cases,
}

/// How a client is started.
#[derive(Clone, Debug)]
pub enum Launcher {
    /// One that connects as soon as it is started.
    Connects(Arc<dyn LaunchClient>),
    /// One that is told each step; see [`Kind::takes_steps`].
    Steps(Arc<dyn LaunchTestee>),
}

/// A reference client.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Its name.
    pub name: &'static str,
    /// How it is started.
    pub launch: Launcher,
}

/// The reference client of a protocol.
///
/// # Errors
///
/// When it has none.
pub fn reference(kind: Kind) -> Result<Reference, FuzzError> {
    let suite =
        suites::find(kind.suite()).map_err(|error| FuzzError::Harness(error.to_string()))?;
    let found = if kind.takes_steps() {
        clients::of(suite.id).map(|launch| Reference {
            name: "turnwire reference client",
            launch: Launcher::Steps(launch),
        })
    } else {
        own::client(suite.id).map(|own| Reference {
            name: own.name,
            launch: Launcher::Connects(Arc::new(own)),
        })
    };
    found.ok_or_else(|| FuzzError::Harness(format!("{} has no reference client", kind.suite())))
}

/// Plays the cases of a plan, and makes those smaller that fail.
///
/// # Errors
///
/// When the client does not start.
pub async fn fuzz(plan: &ClientFuzz) -> Result<ClientFuzzReport, FuzzError> {
    Clients::hunt(plan, None, ENOUGH).await
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
    let game = Clients::new(plan, None);
    let hunted = hunt::again(&game, number, case).await?;
    Ok(game.report(hunted))
}

/// Plants each fault in front of the reference client, and looks for it in at most as many cases as the plan has.
///
/// # Errors
///
/// As [`fuzz`], and when no fault has `only` in its name.
pub async fn prove(plan: &ClientFuzz, only: Option<&str>) -> Result<ClientProof, FuzzError> {
    // Faults that keep a client away are waited for again and again while their case is made smaller.
    let mut quick = plan.clone();
    let mut profile = (*plan.profile).clone();
    profile.limits.patience = PROOF_PATIENCE;
    quick.profile = Arc::new(profile);
    let plan = &quick;
    let plants = PLANTS.iter().filter(|plant| plant.kind == plan.kind);
    // They mostly wait, so they are looked for side by side.
    let hunts = chosen(plants, |plant| plant.name, only)?
        .into_iter()
        .map(|plant| async move { (plant, Clients::hunt(plan, Some(plant), 1).await) });
    let mut proof = ClientProof::new(plan.kind.suite(), plan.cases.seed);
    for (plant, report) in join_all(hunts).await {
        let ClientFuzzReport {
            played,
            failures,
            details,
            ..
        } = report?;
        proof.add((plant.name, plant.about), played, failures, details);
    }
    Ok(proof)
}

/// Clients as a game.
#[derive(Debug)]
struct Clients {
    plan: ClientFuzz,
    plant: Option<&'static Plant>,
    /// Cases by what is wrong in them.
    changes: Mutex<BTreeMap<String, u64>>,
}

impl Clients {
    fn new(plan: &ClientFuzz, plant: Option<&'static Plant>) -> Self {
        Self {
            plan: plan.clone(),
            plant,
            changes: Mutex::default(),
        }
    }

    async fn hunt(
        plan: &ClientFuzz,
        plant: Option<&'static Plant>,
        enough: usize,
    ) -> Result<ClientFuzzReport, FuzzError> {
        let game = Arc::new(Self::new(plan, plant));
        let hunted = hunt::hunt(&game, &plan.cases, enough).await?;
        Ok(game.report(hunted))
    }

    fn report(&self, hunted: Hunted<Case, Transcript>) -> ClientFuzzReport {
        ClientFuzzReport {
            suite: self.plan.kind.suite().to_owned(),
            client: self.plan.profile.name.clone(),
            seed: self.plan.cases.seed,
            played: hunted.played,
            changes: std::mem::take(&mut self.changes()),
            passing: hunted.passing,
            seconds: hunted.seconds(),
            failures: hunted.failures.iter().map(Failure::report).collect(),
            details: hunted.failures,
        }
    }

    fn changes(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is wrong, in words; nothing when all is well.
    async fn attempt(
        &self,
        recorder: &Recorder,
        number: u64,
        case: &Case,
    ) -> Result<Option<String>, DriveError> {
        let own = &self.plan.launch;
        let launch = self
            .plant
            .map_or_else(|| own.clone(), |plant| plant.client(own));
        match launch {
            Launcher::Connects(launch) => self.connects(launch, recorder, number, case).await,
            Launcher::Steps(launch) => self.steps(launch, recorder, number, case).await,
        }
    }

    async fn connects(
        &self,
        launch: Arc<dyn LaunchClient>,
        recorder: &Recorder,
        number: u64,
        case: &Case,
    ) -> Result<Option<String>, DriveError> {
        let stage = ClientStage::new(ClientSetting {
            scenario: SCENARIO.to_owned(),
            recorder: recorder.clone(),
            launch,
            intercept: None,
            profile: Arc::clone(&self.plan.profile),
            cases: Cases::default(),
        })
        .await?;
        let played = match self.plan.kind {
            Kind::Stream => stream::play(&stage, case).await,
            _ => covel::play(&stage, case, number).await,
        };
        stage.finish().await;
        played
    }

    async fn steps(
        &self,
        launch: Arc<dyn LaunchTestee>,
        recorder: &Recorder,
        number: u64,
        case: &Case,
    ) -> Result<Option<String>, DriveError> {
        let kind = self.plan.kind;
        let suite = suites::find(kind.suite())
            .map_err(|error| DriveError::Harness(error.to_string()))?
            .id;
        let patience = self.plan.profile.limits.patience;
        let longest = patience * if launch.in_process() { OWN_PATIENCE } else { 1 };
        let testee = launch.start().await?;
        let setting = TesteeSetting {
            scenario: SCENARIO.to_owned(),
            suite,
            seed: self.plan.cases.seed,
            recorder: recorder.clone(),
            launch,
            intercept: None,
            profile: Arc::clone(&self.plan.profile),
            cases: Cases::default(),
        };
        let stage = TesteeStage::new(setting, testee);
        let played = match kind {
            Kind::Updates => updates::play(&stage, case, number, longest).await,
            _ => chat::play(&stage, case, number, longest).await,
        };
        stage.finish().await;
        played
    }
}

impl Game for Clients {
    type Case = Case;
    /// Each case has a fresh client.
    type Player = ();
    type Evidence = Transcript;

    const CONFIRMS: bool = true;
    const TRIES: usize = 60;

    fn case(&self, random: &mut Random) -> Case {
        Case::random(self.plan.kind, random)
    }

    fn smaller(case: &Case) -> Vec<Case> {
        case.smaller()
    }

    fn nothing() -> Option<Case> {
        Some(Case { steps: Vec::new() })
    }

    async fn player(&self) -> Result<(), FuzzError> {
        Ok(())
    }

    async fn play(
        &self,
        (): &mut (),
        number: u64,
        case: &Case,
    ) -> Result<Option<Failure>, FuzzError> {
        if self.plant.is_some_and(|plant| !plant.is_triggered(case)) {
            // There the client is as good as any, and a busy machine would be taken for the fault.
            return Ok(None);
        }
        let recorder = Recorder::new(Header {
            suite: self.plan.kind.suite().to_owned(),
            scenario: SCENARIO.to_owned(),
            time_scale: self.plan.profile.time_scale,
            ..Header::default()
        });
        let attempt = self.attempt(&recorder, number, case).await;
        let Some(what) = attempt.map_err(FuzzError::Target)? else {
            return Ok(None);
        };
        let mut transcript = recorder.transcript();
        saved::mark(&mut transcript, self.plan.cases.seed, number, case, &what);
        Ok(Some(Failure {
            number,
            case: case.clone(),
            what,
            evidence: transcript,
        }))
    }

    /// A client with a planted fault fails in ways that a busy machine mixes up.
    fn is_same(&self, one: &str, other: &str) -> bool {
        self.plant.is_some() || hunt::kind(one) == hunt::kind(other)
    }

    fn played(&self, case: &Case, _: u64) -> Option<Failure> {
        let mut changes = self.changes();
        for name in case.names() {
            *changes.entry(name.to_owned()).or_default() += 1;
        }
        None
    }
}
