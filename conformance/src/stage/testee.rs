//! What a scenario acts through when the target connects to the harness: an adapter, or a client.
//!
//! A [`TesteeStage`] belongs to one run of one scenario: a recorder, a testee that is told lines and reports lines,
//! and the harness's own servers, each behind the saboteur when there is one. The transcript holds the lines in
//! both directions, and the exchanges as the harness's servers saw them. [`adapter`](super::adapter) has what is
//! special to adapters.
//!
//! A testee that falls silent, dies or says too much is ended, and a fresh one takes the next line: what it did
//! not report stands in the transcript by its absence.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{Mutex, OnceCell};
use tokio_util::task::AbortOnDropHandle;
use turnwire_spec::catalogue;

use super::adapter::Provided;
use crate::{
    drivers::{
        DriveError,
        http::BaseUrl,
        target::{Front, Intercept},
        testee::{About, LaunchTestee, Said, Testee, last_words, report},
    },
    profile::Profile,
    transcript::{End, ExchangeId, Fact, Side, TargetFact, lateness, record::Recorder},
};

/// What a stage is set up with.
#[derive(Clone, Debug)]
pub struct TesteeSetting {
    /// Name of the scenario.
    pub scenario: String,
    /// The suite that it belongs to.
    pub suite: catalogue::Suite,
    /// Tells the tokens of this run from those of other runs.
    pub seed: u64,
    /// Where the facts go.
    pub recorder: Recorder,
    /// How a testee is started again.
    pub launch: Arc<dyn LaunchTestee>,
    /// The saboteur between the testee and the harness's servers.
    pub intercept: Option<Arc<dyn Intercept>>,
    /// What is known about the target.
    pub profile: Arc<Profile>,
    /// Which cases are played, and how.
    pub cases: Cases,
}

/// Which cases are played, and how. By default all, as they are.
#[derive(Clone, Debug, Default)]
pub struct Cases {
    /// Ids of cases, or of hazards; none means all.
    pub only: Vec<String>,
    /// Splits the bytes of every answer's body here.
    pub splits: Vec<usize>,
    /// Bytes of the longest body that was there to be split, when some were to be.
    pub longest: Longest,
}

/// A maximum that clones share.
#[derive(Clone, Debug, Default)]
pub struct Longest(Arc<AtomicU64>);

impl Longest {
    /// Counts one more.
    pub fn count(&self, length: u64) {
        self.0.fetch_max(length, Ordering::Relaxed);
    }

    /// The maximum so far; 0 without any.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Cases {
    /// Whether the case of this id is played.
    pub fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| crate::cases::is_of(id, only))
    }
}

/// What a scenario acts through.
#[derive(Debug)]
pub struct TesteeStage {
    pub(super) setting: TesteeSetting,
    channel: Mutex<Channel>,
    fronts: Mutex<Vec<Box<dyn Front>>>,
    pub(super) provided: OnceCell<Provided>,
    pub(super) elsewhere: OnceCell<Provided>,
    /// Notes how late the harness is, as long as the scenario runs.
    _watch: AbortOnDropHandle<()>,
}

/// The lines to and from the testee.
#[derive(Debug)]
struct Channel {
    testee: Option<Testee>,
    id: ExchangeId,
}

/// Longest wait for a testee to take a line.
const TAKES_WITHIN: Duration = Duration::from_secs(5);

impl TesteeStage {
    /// A stage with a testee that is ready.
    pub fn new(setting: TesteeSetting, testee: Testee) -> Self {
        let recorder = &setting.recorder;
        recorder.tell(Fact::Target(TargetFact::Started {
            variant: "default".to_owned(),
        }));
        let id = recorder.next_exchange();
        hello(recorder, id, testee.about());
        let watch = AbortOnDropHandle::new(tokio::spawn(lateness::watch(recorder.clone())));
        Self {
            channel: Mutex::new(Channel {
                testee: Some(testee),
                id,
            }),
            setting,
            fronts: Mutex::default(),
            provided: OnceCell::new(),
            elsewhere: OnceCell::new(),
            _watch: watch,
        }
    }

    /// Names what follows: exchanges that open later belong to this label.
    pub fn label(&self, name: &str) {
        self.setting.recorder.tell(Fact::Label(name.to_owned()));
    }

    /// Leaves a remark for readers of the transcript.
    pub fn note(&self, text: &str) {
        self.setting.recorder.tell(Fact::Note(text.to_owned()));
    }

    /// Puts something into the transcript that checks are to know: what is true of a case.
    pub fn state(&self, value: Value) {
        self.setting.recorder.tell(Fact::State(value));
    }

    /// Where the facts go, for a server of the harness.
    pub fn recorder(&self) -> &Recorder {
        &self.setting.recorder
    }

    /// The suite that the scenario belongs to.
    pub fn suite(&self) -> catalogue::Suite {
        self.setting.suite
    }

    /// What is known about the target.
    pub fn profile(&self) -> &Profile {
        &self.setting.profile
    }

    /// Longest wait for a report: the time that an HTTP answer may take in all.
    pub fn patience(&self) -> Duration {
        self.setting.profile.limits.http.total
    }

    /// What the testee said about itself when it was ready.
    ///
    /// # Errors
    ///
    /// When it is down and does not start again.
    pub async fn about(&self) -> Result<About, DriveError> {
        let mut channel = self.channel.lock().await;
        self.up(&mut channel)
            .await
            .map(|testee| testee.about().clone())
    }

    /// Puts the saboteur in front of a server of the harness, and says where the testee finds it.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when the saboteur's proxy does not start.
    pub async fn front(&self, server: &BaseUrl) -> Result<BaseUrl, DriveError> {
        let Some(intercept) = &self.setting.intercept else {
            return Ok(server.clone());
        };
        let front = intercept.before(server).await?;
        let url = front.base_url();
        self.fronts.lock().await.push(front);
        Ok(url)
    }

    /// Sends the testee a line, to a fresh testee when the last one is gone.
    ///
    /// # Errors
    ///
    /// When a fresh one does not start, or does not take the line.
    pub async fn tell(&self, line: &Value) -> Result<(), DriveError> {
        let mut channel = self.channel.lock().await;
        let id = channel.id;
        let testee = self.up(&mut channel).await?;
        if testee.send(line, TAKES_WITHIN).await {
            let bytes = Bytes::from(line.to_string());
            self.line(id, Side::Server, bytes);
            return Ok(());
        }
        let output = testee.output();
        self.down(&mut channel, End::Broken("it takes no line".to_owned()));
        Err(DriveError::NotStarted {
            why: format!("the testee takes no line within {TAKES_WITHIN:?}"),
            output,
        })
    }

    /// The next line of the testee that is a JSON object; others are recorded and passed over.
    ///
    /// `None` when nothing comes in time, or it dies or says too much; then it is ended. A saboteur can take a
    /// report away, too.
    pub async fn report(&self, within: Duration) -> Option<Value> {
        let mut channel = self.channel.lock().await;
        let id = channel.id;
        let until = tokio::time::Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let said = channel.testee.as_mut()?.hear(left).await;
            let end = match said {
                Some(Said::Line(bytes)) => match report::read(&bytes) {
                    Some(report) => return self.heard(id, report, bytes),
                    None => {
                        self.line(id, Side::Client, bytes);
                        continue;
                    }
                },
                Some(Said::TooLong | Said::TooMuch) => End::TooLarge,
                Some(Said::Ended(why)) => {
                    let words = channel.testee.as_ref().map(Testee::output);
                    End::Broken(last_words(why, &words.unwrap_or_default()))
                }
                None => End::TimedOut,
            };
            self.down(&mut channel, end);
            return None;
        }
    }

    fn heard(&self, id: ExchangeId, mut report: Value, bytes: Bytes) -> Option<Value> {
        let Some(intercept) = &self.setting.intercept else {
            self.line(id, Side::Client, bytes);
            return Some(report);
        };
        intercept.report(&mut report);
        if report.is_null() {
            return None;
        }
        self.line(id, Side::Client, report.to_string().into());
        Some(report)
    }

    fn line(&self, exchange: ExchangeId, from: Side, bytes: Bytes) {
        self.setting.recorder.tell(Fact::Line {
            exchange,
            from,
            bytes,
        });
    }

    /// The testee; a fresh one when the last one is gone.
    async fn up<'c>(&self, channel: &'c mut Channel) -> Result<&'c mut Testee, DriveError> {
        if channel.testee.is_none() {
            let testee = self.setting.launch.start().await?;
            hello(&self.setting.recorder, channel.id, testee.about());
            channel.testee = Some(testee);
        }
        channel
            .testee
            .as_mut()
            .ok_or_else(|| DriveError::Harness("the testee is gone".to_owned()))
    }

    fn down(&self, channel: &mut Channel, how: End) {
        channel.testee = None;
        let recorder = &self.setting.recorder;
        recorder.tell(Fact::End {
            exchange: channel.id,
            how,
        });
        channel.id = recorder.next_exchange();
    }

    /// The last lines that the testee wrote for people, oldest first.
    pub async fn output(&self) -> Vec<String> {
        let channel = self.channel.lock().await;
        channel
            .testee
            .as_ref()
            .map(Testee::output)
            .unwrap_or_default()
    }

    /// Ends the servers and gives the testee back, when it is still there.
    pub async fn finish(&self) -> Option<Testee> {
        self.fronts.lock().await.clear();
        self.channel.lock().await.testee.take()
    }
}

/// What the testee said when it was ready is the first line of its channel.
fn hello(recorder: &Recorder, exchange: ExchangeId, about: &About) {
    recorder.tell(Fact::Line {
        exchange,
        from: Side::Client,
        bytes: about.said.to_string().into(),
    });
}
