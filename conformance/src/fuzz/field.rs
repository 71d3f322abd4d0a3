//! Where cases are played: instances of the target, and one case after the other on them.
//!
//! Cases share one instance, since their sessions are their own. A case that restarts the target has an instance for
//! itself, with a store that outlives the restart, and so has each case of a protocol that tells everybody everything.

use std::{fmt, sync::Arc};

use tokio::{sync::OnceCell, task::JoinSet, time::timeout};

use super::{Case, Protocol, SCENARIO};
use crate::{
    drivers::{
        DriveError,
        model::ModelServer,
        target::{DEFAULT_VARIANT, Instance, Intercept, Launch},
    },
    profile::Profile,
    stage::{Setting, Stage},
    transcript::{Header, Transcript, record::Recorder},
};

/// Variant of the profile that keeps its data over a restart.
const PERSISTENT: &str = "persistent";
/// The notes that carry the case in a transcript's header begin so.
const STEPS: &str = "steps: ";

/// Where the cases of one run are played.
pub struct Field {
    /// The protocol.
    pub protocol: &'static dyn Protocol,
    /// What is known about the target.
    pub profile: Arc<Profile>,
    /// How the target is started.
    pub launch: Arc<dyn Launch>,
    /// Something between the harness and every instance of the target.
    pub intercept: Option<Arc<dyn Intercept>>,
    /// The model provider, when the target can be told where it is.
    pub model: Option<Arc<ModelServer>>,
    /// Seed of the run.
    pub seed: u64,
    shared: OnceCell<Result<Arc<Instance>, DriveError>>,
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Field")
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// What playing a case gave.
#[derive(Clone, Debug)]
pub struct Played {
    /// What was recorded, with the case in its header.
    pub transcript: Transcript,
    /// Why it was not played to its end, if it was not.
    pub problem: Option<DriveError>,
}

impl Field {
    /// Nothing is started yet.
    pub fn new(
        protocol: &'static dyn Protocol,
        profile: Arc<Profile>,
        launch: Arc<dyn Launch>,
        model: Option<Arc<ModelServer>>,
        seed: u64,
    ) -> Self {
        Self {
            protocol,
            profile,
            launch,
            intercept: None,
            model,
            seed,
            shared: OnceCell::new(),
        }
    }

    /// The same field with something else between the harness and the target.
    #[must_use]
    pub fn behind(&self, intercept: Arc<dyn Intercept>) -> Self {
        Self {
            intercept: Some(intercept),
            ..Self::new(
                self.protocol,
                Arc::clone(&self.profile),
                Arc::clone(&self.launch),
                self.model.clone(),
                self.seed,
            )
        }
    }

    /// Starts the instance that cases share.
    ///
    /// # Errors
    ///
    /// When the target does not start.
    pub async fn start(&self) -> Result<(), DriveError> {
        self.shared_instance().await.map(drop)
    }

    /// Plays a case. `number` tells its texts from those of others that run at the same time.
    pub async fn play(&self, number: u64, case: &Case) -> Played {
        self.play_within(number, case, &self.profile).await
    }

    /// Plays a case with the limits of another profile of the same target.
    pub(super) async fn play_within(
        &self,
        number: u64,
        case: &Case,
        profile: &Arc<Profile>,
    ) -> Played {
        let header = Header {
            suite: self.protocol.suite().to_owned(),
            scenario: SCENARIO.to_owned(),
            time_scale: profile.time_scale,
            notes: vec![
                format!("seed {}, case {number}", self.seed),
                format!("{STEPS}{}", case.to_json()),
            ],
            ..Header::default()
        };
        let recorder = Recorder::new(header);
        let problem = self.act(number, case, &recorder, profile).await.err();
        Played {
            transcript: recorder.transcript(),
            problem,
        }
    }

    async fn act(
        &self,
        number: u64,
        case: &Case,
        recorder: &Recorder,
        profile: &Arc<Profile>,
    ) -> Result<(), DriveError> {
        let instance = if case.restarts() || self.protocol.own_variants().is_some() {
            self.own_instance(case.restarts()).await?
        } else {
            self.shared_instance().await?
        };
        let stage = Stage::new(Setting {
            scenario: SCENARIO.to_owned(),
            seed: number,
            recorder: recorder.clone(),
            instance,
            model: self.model.as_ref().map(|model| model.model()),
            profile: Arc::clone(profile),
        })
        .await?;
        let stage = Arc::new(stage);
        let (actor, protocol, case) = (Arc::clone(&stage), self.protocol, case.clone());
        // On a task of its own, so that a panic or a hang ends this case and no other.
        let mut task = JoinSet::new();
        task.spawn(async move { protocol.play(&actor, &case).await });
        let ended = timeout(profile.limits.scenario, task.join_next()).await;
        let ended = match ended {
            Ok(Some(Ok(ended))) => ended,
            Ok(None) => Ok(()),
            Ok(Some(Err(error))) => Err(DriveError::Harness(format!("the player failed: {error}"))),
            Err(_) => {
                task.shutdown().await;
                let limit = profile.limits.scenario;
                Err(DriveError::Harness(format!(
                    "a case took longer than {limit:?}"
                )))
            }
        };
        stage.finish().await;
        ended
    }

    async fn shared_instance(&self) -> Result<Arc<Instance>, DriveError> {
        self.shared
            .get_or_init(|| self.instance(DEFAULT_VARIANT))
            .await
            .clone()
    }

    async fn own_instance(&self, restarts: bool) -> Result<Arc<Instance>, DriveError> {
        let own = self
            .protocol
            .own_variants()
            .map(|own| own[usize::from(restarts)]);
        let usual = restarts.then_some(PERSISTENT);
        let offered = |variant: &&str| self.launch.offers(variant).is_ok();
        let variant = own.into_iter().chain(usual).find(offered);
        self.instance(variant.unwrap_or(DEFAULT_VARIANT)).await
    }

    async fn instance(&self, variant: &str) -> Result<Arc<Instance>, DriveError> {
        let (launch, intercept) = (Arc::clone(&self.launch), self.intercept.clone());
        let model = self.model.as_ref().map(|model| model.base_url());
        Instance::start(launch, variant, model, intercept)
            .await
            .map(Arc::new)
    }
}

/// The case that a transcript was recorded from; `None` when its header carries none.
pub fn case_of(transcript: &Transcript) -> Option<Case> {
    let notes = transcript.header.notes.iter();
    let steps = notes
        .filter_map(|note| note.trim().strip_prefix(STEPS))
        .next()?;
    serde_json::from_str(steps).ok()
}
