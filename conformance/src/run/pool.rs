//! The instances of the target: one for each variant that scenarios share, and one for each scenario that needs
//! the target for itself.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{sync::OnceCell, time::Instant};

use super::{RunError, RunEvent, RunPlan};
use crate::{
    cases,
    drivers::{
        DriveError,
        http::{BaseUrl, Call, HttpClient},
        lines::{LineChannel, Open},
        model::ModelServer,
        target::{DEFAULT_VARIANT, Instance},
        testee::{
            Testee,
            client::{ClientStart, PROBE, PROBE_URL},
        },
    },
    profile::Target,
    scenarios::Scenario,
    transcript::{End, Fact, Header, Transcript, record::Recorder},
};

type Shared = Arc<OnceCell<Result<Arc<Instance>, DriveError>>>;

/// Starts instances when they are first asked for. Dropping it ends those that are shared.
pub(super) struct Pool<'p> {
    plan: &'p RunPlan,
    model_url: Option<String>,
    shared: Mutex<BTreeMap<String, Shared>>,
    /// Testees that wait for their next scenario.
    idle: Mutex<Vec<Testee>>,
    begun: Instant,
    /// Body bytes that the run's transcripts keep.
    kept: AtomicUsize,
}

/// Body bytes that the transcripts of a run keep; when there are more, nothing further is played.
const KEPT_AT_MOST: usize = 512 << 20;

impl<'p> Pool<'p> {
    pub(super) fn new(plan: &'p RunPlan, model: Option<&ModelServer>) -> Self {
        Self {
            plan,
            model_url: model.map(ModelServer::base_url),
            shared: Mutex::default(),
            idle: Mutex::default(),
            begun: Instant::now(),
            kept: AtomicUsize::new(0),
        }
    }

    /// Counts a transcript that is kept.
    pub(super) fn keep(&self, transcript: &Transcript) {
        let bytes = transcript.entries.iter().map(|entry| match &entry.fact {
            Fact::Chunk { bytes, .. } => bytes.len(),
            _ => 0,
        });
        self.kept.fetch_add(bytes.sum(), Ordering::Relaxed);
    }

    /// Why nothing further is played, when the target has sent too much.
    pub(super) fn full(&self) -> Option<String> {
        let kept = self.kept.load(Ordering::Relaxed);
        (kept > KEPT_AT_MOST)
            .then(|| format!("the target has sent {} MiB to other scenarios", kept >> 20))
    }

    /// The instance for a scenario, shared or fresh.
    pub(super) async fn instance(&self, scenario: &Scenario) -> Result<Arc<Instance>, DriveError> {
        let variant = scenario.variant.unwrap_or(DEFAULT_VARIANT);
        // Somebody else's server is there once, whoever needs it alone.
        if scenario.alone() && self.plan.launch.restarts().is_ok() {
            return self.start(variant).await;
        }
        self.shared_instance(variant).await
    }

    /// A testee that no other scenario uses.
    pub(super) async fn testee(&self, scenario: &Scenario) -> Result<Testee, DriveError> {
        let idle = || {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.pop()
        };
        if let Some(testee) = (!scenario.alone()).then(idle).flatten() {
            return Ok(testee);
        }
        let launch = self.plan.testee.as_ref();
        let launch = launch.ok_or_else(|| DriveError::NotPossible {
            what: "to start a testee".to_owned(),
            why: "the target is a server".to_owned(),
        })?;
        launch.start().await
    }

    /// Keeps a testee for the next scenario.
    pub(super) fn keep_testee(&self, testee: Testee) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(testee);
    }

    /// Finds out whether there is a testee that gets ready.
    async fn probe_testee(&self) -> Result<(), RunError> {
        if let Some(launch) = &self.plan.testee {
            let testee = launch.start().await.map_err(not_started)?;
            let about = testee.about();
            if cases::wire(self.plan.suite.name()).is_some() {
                about.speaks(self.plan.suite.name()).map_err(not_started)?;
            }
            let name = format!("{} {}", about.name, about.version);
            self.plan.tell(RunEvent::TargetUp {
                variant: DEFAULT_VARIANT.to_owned(),
                url: name.trim_end().to_owned(),
                took: self.begun.elapsed(),
            });
            self.keep_testee(testee);
        }
        Ok(())
    }

    /// Finds out whether a client starts; it finds nobody at its URL.
    async fn probe_client(&self) -> Result<(), RunError> {
        if let Some(launch) = &self.plan.client {
            let start = ClientStart {
                url: PROBE_URL.to_owned(),
                scenario: PROBE.to_owned(),
                ..ClientStart::default()
            };
            launch.start(&start).await.map_err(not_started)?;
        }
        Ok(())
    }

    /// Finds out whether there is a target at all, by its default variant.
    pub(super) async fn probe(&self) -> Result<(), RunError> {
        self.probe_testee().await?;
        self.probe_client().await?;
        if matches!(self.plan.profile.target, Target::Testee) {
            return Ok(());
        }
        let instance = self
            .shared_instance(DEFAULT_VARIANT)
            .await
            .map_err(not_started)?;
        // The reference server needs no look, and a saboteur may break just this answer.
        let known = matches!(self.plan.profile.target, Target::Reference);
        if let Some(url) = instance.url().await {
            if !known && self.plan.intercept.is_none() {
                self.look(url.clone()).await?;
            }
            self.tell_up(DEFAULT_VARIANT, &url);
        }
        Ok(())
    }

    fn tell_up(&self, variant: &str, url: &BaseUrl) {
        let (variant, url) = (variant.to_owned(), url.to_string());
        self.plan.tell(RunEvent::TargetUp {
            variant,
            url,
            took: self.begun.elapsed(),
        });
    }

    async fn look(&self, url: BaseUrl) -> Result<(), RunError> {
        if url.lines {
            return self.look_at_lines(&url).await;
        }
        let path = self.plan.suite.probe;
        let recorder = Recorder::new(Header::default());
        let client = HttpClient::new(url.clone(), recorder, self.plan.profile.limits.http);
        let reply = client
            .send(Call::get(path))
            .await
            .map_err(RunError::Unreachable)?;
        if reply.end != End::Complete {
            return Err(RunError::Unreachable(reply.unexpected("a whole answer")));
        }
        let media_type = reply
            .header("content-type")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let other = self.plan.suite.probe_again();
        let is_missing = match other.filter(|_| reply.status == 404) {
            Some(other) => {
                let again = client.send(Call::get(other)).await;
                again.is_ok_and(|again| again.status == 404)
            }
            None => false,
        };
        if is_missing || media_type.contains("html") {
            return Err(RunError::NotTheApi {
                url: url.to_string(),
                path: path.to_owned(),
                status: reply.status,
                media_type,
            });
        }
        Ok(())
    }

    /// Whether a server of lines answers `initialize`.
    async fn look_at_lines(&self, url: &BaseUrl) -> Result<(), RunError> {
        let limits = self.plan.profile.limits.http;
        let recorder = Recorder::new(Header::default());
        let mut channel = LineChannel::open(url, recorder, limits, Open::default())
            .await
            .map_err(RunError::Unreachable)?;
        let hello =
            serde_json::json!({ "kind": "request", "request_id": 1, "method": "initialize" });
        channel.send(&hello).await.map_err(RunError::Unreachable)?;
        let answer = channel
            .wait(limits.head, |line| line["request_id"] == 1)
            .await;
        if answer
            .as_ref()
            .is_some_and(|answer| answer["result"].is_object())
        {
            return Ok(());
        }
        let got = answer.or_else(|| channel.lines().into_iter().next());
        Err(RunError::NotTheProtocol {
            url: url.to_string(),
            got: got.map_or_else(|| "nothing".to_owned(), |got| got.to_string()),
        })
    }

    async fn shared_instance(&self, variant: &str) -> Result<Arc<Instance>, DriveError> {
        let cell = {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(shared.entry(variant.to_owned()).or_default())
        };
        cell.get_or_init(|| self.start(variant)).await.clone()
    }

    async fn start(&self, variant: &str) -> Result<Arc<Instance>, DriveError> {
        let (launch, intercept) = (Arc::clone(&self.plan.launch), self.plan.intercept.clone());
        let instance = Instance::start(launch, variant, self.model_url.clone(), intercept).await?;
        Ok(Arc::new(instance))
    }
}

fn not_started(error: DriveError) -> RunError {
    match error {
        DriveError::NotStarted { .. } => RunError::NotStarted(error),
        other => RunError::Unreachable(other),
    }
}
