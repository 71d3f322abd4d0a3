//! What a scenario acts through.
//!
//! A [`Stage`] belongs to one run of one scenario: a recorder, a client that tells it everything, the target's
//! instance with its restarts, the model that answers the target, scaled time, and tokens that nobody else
//! uses. [`covel`], [`chat_ws`] and [`session_update`] have the
//! steps of their protocols.
//!
//! A target that connects to the harness has a [`TesteeStage`] instead; [`adapter`] has what adapters need.
//!
//! Nothing here judges. A step that the rest of a scenario stands on gives an error when it fails; anything
//! else stands in the transcript.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    drivers::{
        DriveError,
        allowance::Allowance,
        http::{BaseUrl, Call, EventStream, HttpClient, Reply, Throttle},
        model::Model,
        target::Instance,
    },
    profile::Profile,
    run::NO_MODEL,
    transcript::{Fact, TargetFact, lateness, record::Recorder},
};

pub mod adapter;
pub mod chat_ws;
pub mod client;
mod content;
pub mod covel;
mod provider;
mod requests;
pub mod session_update;
pub mod testee;
#[cfg(test)]
mod tests;

pub use client::{ClientSetting, ClientStage};
pub use covel::{CAST, CreateSession, Session, Subscribe};
pub use testee::{Cases, TesteeSetting, TesteeStage};

/// What a scenario acts through.
#[derive(Debug)]
pub struct Stage {
    scenario: String,
    seed: u64,
    recorder: Recorder,
    http: HttpClient,
    model: Option<Model>,
    instance: Arc<Instance>,
    profile: Arc<Profile>,
    tokens: AtomicU32,
    allowance: Allowance,
    /// Notes how late the harness is, as long as the scenario runs.
    _watch: AbortOnDropHandle<()>,
}

/// What a stage is set up with.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Name of the scenario.
    pub scenario: String,
    /// Tells the tokens of this run from those of other runs against the same target.
    pub seed: u64,
    /// Where the facts go.
    pub recorder: Recorder,
    /// The target.
    pub instance: Arc<Instance>,
    /// The model provider, when the profile says how the target reaches it.
    pub model: Option<Model>,
    /// What is known about the target.
    pub profile: Arc<Profile>,
}

impl Stage {
    /// A stage in front of a running instance.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] when the instance is down.
    pub async fn new(setting: Setting) -> Result<Self, DriveError> {
        let Setting {
            scenario,
            seed,
            recorder,
            instance,
            model,
            profile,
        } = setting;
        let url = instance
            .url()
            .await
            .ok_or_else(|| DriveError::NotPossible {
                what: "to act".to_owned(),
                why: "the target is down".to_owned(),
            })?;
        recorder.tell(Fact::Target(TargetFact::Started {
            variant: instance.variant().to_owned(),
        }));
        let http = HttpClient::new(url, recorder.clone(), profile.limits.http);
        let watch = AbortOnDropHandle::new(tokio::spawn(lateness::watch(recorder.clone())));
        Ok(Self {
            scenario,
            seed,
            recorder,
            http,
            model,
            instance,
            profile,
            tokens: AtomicU32::new(1),
            allowance: Allowance::default(),
            _watch: watch,
        })
    }

    /// Names what follows: exchanges that open later belong to this label.
    pub fn label(&self, name: &str) {
        self.recorder.tell(Fact::Label(name.to_owned()));
    }

    /// Leaves a remark for readers of the transcript.
    pub fn note(&self, text: &str) {
        self.recorder.tell(Fact::Note(text.to_owned()));
    }

    /// A text that occurs nowhere else: for request ids, keys, and what the player says. The same scenario gets
    /// the same tokens in every run with the same seed; no token is part of another.
    pub fn token(&self) -> String {
        let number = self.tokens.fetch_add(1, Ordering::Relaxed);
        format!(
            "tw-{:04x}-{}-{number:05}",
            self.seed & 0xffff,
            self.scenario
        )
    }

    /// A period of the protocol as the target keeps it, for a scenario that sits it out: the scenario may last so much
    /// longer than its limit.
    pub fn scaled(&self, period: Duration) -> Duration {
        let scaled = self.kept(period);
        self.allowance.give(scaled);
        scaled
    }

    fn kept(&self, period: Duration) -> Duration {
        period.mul_f64(self.profile.time_scale)
    }

    /// The time that the scenario gets beyond its limit.
    pub fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// From now on the scenario waits when the target refuses a request for its rate and says for how long, as far as the
    /// profile allows; and sends the request again.
    pub fn wait_when_refused(&self) {
        let at_most = self.profile.limits.retry_after;
        self.http
            .wait_when_refused(Throttle::new(at_most, self.allowance.clone()));
    }

    /// How long to wait for something that ought to come within `period`: scaled, but never less than the
    /// profile's shortest patience.
    pub fn patience(&self, period: Duration) -> Duration {
        self.kept(period).max(self.profile.limits.patience)
    }

    /// The variant as which the target was started.
    pub fn variant(&self) -> &str {
        self.instance.variant()
    }

    /// Where the facts go.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Where the target is reached now.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] when it is down.
    pub async fn target_url(&self) -> Result<BaseUrl, DriveError> {
        let url = self.instance.url().await;
        url.ok_or_else(|| DriveError::NotPossible {
            what: "to connect".to_owned(),
            why: "the target is down".to_owned(),
        })
    }

    /// Waits this long, unscaled.
    pub async fn pause(&self, time: Duration) {
        sleep(time).await;
    }

    /// The recording client.
    pub fn http(&self) -> &HttpClient {
        &self.http
    }

    /// Sends a request and reads the whole answer, of any status.
    ///
    /// # Errors
    ///
    /// When there is no response head; see [`HttpClient::send`].
    pub async fn send(&self, call: Call) -> Result<Reply, DriveError> {
        self.http.send(call).await
    }

    /// Sends a request whose answer is read as a stream, of any status.
    ///
    /// # Errors
    ///
    /// When there is no response head; see [`HttpClient::open`].
    pub async fn open(&self, call: Call) -> Result<EventStream, DriveError> {
        self.http.open(call).await
    }

    /// The model that answers the target's calls.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] when the profile does not say how the target reaches it.
    pub fn model(&self) -> Result<&Model, DriveError> {
        self.model.as_ref().ok_or_else(|| DriveError::NotPossible {
            what: "to script the model".to_owned(),
            why: NO_MODEL.to_owned(),
        })
    }

    /// What is known about the target.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Asks the target to stop, waits until it has, and starts it again on the same data. Streams that are open
    /// end as the target ends them; later requests go to the new process.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] for a target that the harness did not start; when it does not stop or start.
    pub async fn restart(&self) -> Result<(), DriveError> {
        self.stop().await?;
        self.start().await
    }

    /// Kills the target without warning and starts it again on the same data.
    ///
    /// # Errors
    ///
    /// As [`Stage::restart`].
    pub async fn kill_and_start(&self) -> Result<(), DriveError> {
        self.kill().await?;
        self.start().await
    }

    /// Asks the target to stop and waits until it has.
    ///
    /// # Errors
    ///
    /// As [`Stage::restart`].
    pub async fn stop(&self) -> Result<(), DriveError> {
        self.instance.stop().await?;
        self.recorder.tell(Fact::Target(TargetFact::Stopped));
        Ok(())
    }

    /// Kills the target without warning.
    ///
    /// # Errors
    ///
    /// As [`Stage::restart`].
    pub async fn kill(&self) -> Result<(), DriveError> {
        self.instance.kill().await?;
        self.recorder.tell(Fact::Target(TargetFact::Killed));
        Ok(())
    }

    /// Starts the target again on the same data.
    ///
    /// # Errors
    ///
    /// As [`Stage::restart`].
    pub async fn start(&self) -> Result<(), DriveError> {
        let url = self.instance.start_again().await?;
        self.http.rebase(url);
        self.recorder.tell(Fact::Target(TargetFact::Started {
            variant: self.instance.variant().to_owned(),
        }));
        Ok(())
    }

    /// Ends what is still being read in the background.
    pub async fn finish(&self) {
        self.http.finish().await;
    }
}
