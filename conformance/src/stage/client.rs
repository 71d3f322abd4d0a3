//! What a scenario acts through when the target is a client: a scripted server, and the client that is started
//! at its URL, told what the person does, and listened to.
//!
//! Reports are recorded as state facts the moment they come, so their place among the bytes that the server sent
//! says what the client knew by then. A client that reports nothing is judged by its requests alone.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{Mutex as AsyncMutex, mpsc, watch},
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    drivers::{
        DriveError,
        http::BaseUrl,
        scripted::{Conversation, ScriptedServer},
        target::{Front, Intercept},
        testee::{
            Said, Testee,
            client::{ClientStart, LaunchClient},
        },
    },
    profile::Profile,
    transcript::{End, ExchangeId, Fact, Request, Side, TargetFact, lateness, record::Recorder},
};

/// What a stage is set up with.
#[derive(Clone, Debug)]
pub struct ClientSetting {
    /// Name of the scenario.
    pub scenario: String,
    /// Where the facts go.
    pub recorder: Recorder,
    /// How a client is started.
    pub launch: Arc<dyn LaunchClient>,
    /// The saboteur between the client and the scripted server.
    pub intercept: Option<Arc<dyn Intercept>>,
    /// What is known about the target.
    pub profile: Arc<Profile>,
}

/// What a scenario acts through.
#[derive(Debug)]
pub struct ClientStage {
    setting: ClientSetting,
    server: ScriptedServer,
    front: Option<Box<dyn Front>>,
    running: AsyncMutex<Option<Live>>,
    path: Mutex<String>,
    _watch: AbortOnDropHandle<()>,
}

/// A client that runs.
#[derive(Debug)]
struct Live {
    to: mpsc::Sender<Value>,
    heard: watch::Receiver<Heard>,
    _pump: AbortOnDropHandle<()>,
    fresh: bool,
}

/// What a client has reported.
#[derive(Clone, Debug, Default)]
struct Heard {
    reports: Vec<Value>,
    ended: bool,
}

/// A client in this process is quiet when nothing came of it for so long.
const QUIET: Duration = Duration::from_millis(50);

/// A program is.
const QUIET_PROGRAM: Duration = Duration::from_millis(400);

/// Looks until a client counts as one that never rests.
const RESTLESS: u32 = 60;

/// Reports of one client that are looked through.
const REPORTS: usize = 100_000;

impl ClientStage {
    /// A stage with a server that listens; no client is started yet.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when there is no free port.
    pub async fn new(setting: ClientSetting) -> Result<Self, DriveError> {
        let recorder = setting.recorder.clone();
        let server = match setting.launch.listens() {
            Some(address) => ScriptedServer::listen(address, recorder).await?,
            None => ScriptedServer::start(recorder).await?,
        };
        let front = match &setting.intercept {
            None => None,
            Some(intercept) => {
                let url = BaseUrl::parse(&server.url());
                let url = url.map_err(|error| DriveError::Harness(error.to_string()))?;
                Some(intercept.before(&url).await?)
            }
        };
        let watch = tokio::spawn(lateness::watch(setting.recorder.clone()));
        Ok(Self {
            server,
            front,
            running: AsyncMutex::default(),
            path: Mutex::default(),
            _watch: AbortOnDropHandle::new(watch),
            setting,
        })
    }

    /// Names what follows: exchanges that open later belong to this label.
    pub fn label(&self, name: &str) {
        self.tell_fact(Fact::Label(name.to_owned()));
    }

    /// Leaves a remark for readers of the transcript.
    pub fn note(&self, text: &str) {
        self.tell_fact(Fact::Note(text.to_owned()));
    }

    fn tell_fact(&self, fact: Fact) {
        self.setting.recorder.tell(fact);
    }

    /// The server that the client finds.
    pub fn server(&self) -> &ScriptedServer {
        &self.server
    }

    /// What is known about the target.
    pub fn profile(&self) -> &Profile {
        &self.setting.profile
    }

    /// How long to wait for what the client ought to do.
    pub fn patience(&self) -> Duration {
        self.setting.profile.limits.patience
    }

    /// Waits this long.
    pub async fn pause(&self, time: Duration) {
        sleep(time).await;
    }

    /// Where the client finds the server.
    pub fn url(&self) -> String {
        let front = self.front.as_ref();
        let url = front.map_or_else(|| self.server.url(), |front| front.base_url().to_string());
        url.trim_end_matches('/').to_owned()
    }

    /// Begins a case: a label, and a fresh client at the URL that ends in it.
    ///
    /// # Errors
    ///
    /// When the client does not start.
    pub async fn begin(&self, name: &str) -> Result<(), DriveError> {
        self.begin_at(name, &format!("/{name}"), BTreeMap::new())
            .await
    }

    /// Begins a case at this path, with this environment.
    ///
    /// # Errors
    ///
    /// When the client does not start.
    pub async fn begin_at(
        &self,
        name: &str,
        path: &str,
        env: BTreeMap<String, String>,
    ) -> Result<(), DriveError> {
        self.end().await;
        self.label(name);
        path.clone_into(&mut self.path.lock().unwrap_or_else(PoisonError::into_inner));
        self.start(path, env).await
    }

    /// Starts a fresh client and ends the one before, as when a page is loaded again.
    ///
    /// # Errors
    ///
    /// When the client does not start.
    pub async fn start(&self, path: &str, env: BTreeMap<String, String>) -> Result<(), DriveError> {
        let start = ClientStart {
            url: format!("{}{path}", self.url()),
            scenario: self.setting.scenario.clone(),
            env,
        };
        let mut running = self.running.lock().await;
        *running = None;
        let testee = self.setting.launch.start(&start).await?;
        self.tell_fact(Fact::Target(TargetFact::Started {
            variant: "default".to_owned(),
        }));
        let (to, lines) = mpsc::channel(16);
        let (tell, heard) = watch::channel(Heard::default());
        let pump = Pump {
            id: self.setting.recorder.next_exchange(),
            recorder: self.setting.recorder.clone(),
            intercept: self.setting.intercept.clone(),
            tell,
        };
        *running = Some(Live {
            to,
            heard,
            _pump: AbortOnDropHandle::new(tokio::spawn(pump.run(testee, lines))),
            fresh: true,
        });
        Ok(())
    }

    /// Loads the client again: the page where it is one, else a fresh client.
    ///
    /// # Errors
    ///
    /// When the client does not start.
    pub async fn reload(&self, env: BTreeMap<String, String>) -> Result<(), DriveError> {
        if !self.setting.launch.reloads() {
            return self.start("", env).await;
        }
        self.tell(json!({ "do": "reload" })).await;
        self.tell_fact(Fact::Target(TargetFact::Started {
            variant: "default".to_owned(),
        }));
        if let Some(live) = self.running.lock().await.as_mut() {
            live.fresh = true;
        }
        Ok(())
    }

    /// Tells the client what the person does.
    pub async fn tell(&self, line: Value) {
        let to = self
            .running
            .lock()
            .await
            .as_ref()
            .map(|live| live.to.clone());
        if let Some(to) = to {
            // A client that is gone is told nothing; its silence stands in the transcript.
            let _ = to.send(line).await;
        }
    }

    /// Ends the client and closes what it asked for in vain.
    pub async fn end(&self) {
        *self.running.lock().await = None;
        self.server.dismiss();
    }

    /// The next request for the path of the case.
    pub async fn request(&self) -> Option<Conversation> {
        let path = self
            .path
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        self.request_for(&path).await
    }

    /// The next request for this path.
    pub async fn request_for(&self, path: &str) -> Option<Conversation> {
        self.request_that(|request| path_of(request) == path).await
    }

    /// The next request that is wanted.
    pub async fn request_that(&self, wanted: impl Fn(&Request) -> bool) -> Option<Conversation> {
        let (within, ended) = self.waits().await;
        tokio::select! {
            asked = self.server.next(wanted, within) => asked,
            () = ended => None,
        }
    }

    /// How long the next request may take, and a future that is done when the client is gone for good.
    async fn waits(&self) -> (Duration, impl Future<Output = ()> + use<>) {
        let mut running = self.running.lock().await;
        let live = running.as_mut();
        let fresh = live.as_ref().is_some_and(|live| live.fresh);
        let heard = live.map(|live| {
            live.fresh = false;
            live.heard.clone()
        });
        let within = match (self.setting.launch.waits(), fresh) {
            (None, _) => self.patience(),
            (Some(waits), true) => waits.first,
            (Some(waits), false) => waits.later.max(self.patience()),
        };
        let ended = async move {
            if let Some(mut heard) = heard {
                let _ = heard.wait_for(|heard| heard.ended).await;
                // What it asked for before it ended may still be on its way.
                sleep(Duration::from_millis(100)).await;
            }
        };
        (within, ended)
    }

    /// Waits until a report of this client fits; whether one did.
    pub async fn reported(&self, fits: impl Fn(&Value) -> bool) -> bool {
        self.heard(|reports| reports.iter().any(&fits), self.patience())
            .await
    }

    /// Waits until the client has noticed that its stream is over: it says so, or it is gone.
    pub async fn noticed_the_end(&self) {
        let noticed = |reports: &[Value]| {
            let is_over =
                |report: &Value| report["state"] == "connecting" || report["state"] == "closed";
            let was_open = reports
                .iter()
                .any(|report| !report["event"].is_null() || report["state"] == "open");
            was_open && reports.last().is_some_and(is_over)
        };
        self.heard(noticed, self.patience()).await;
    }

    /// Waits until the reports of this client fit, or it is gone; whether they did.
    pub async fn heard(&self, fits: impl Fn(&[Value]) -> bool, within: Duration) -> bool {
        let heard = self
            .running
            .lock()
            .await
            .as_ref()
            .map(|live| live.heard.clone());
        let Some(mut heard) = heard else {
            return false;
        };
        let done = heard.wait_for(|heard| heard.ended || fits(&heard.reports));
        match timeout(within, done).await {
            Ok(Ok(heard)) => fits(&heard.reports),
            _ => false,
        }
    }

    /// Waits until the client is quiet: no report and no request for a while.
    pub async fn settle(&self) {
        let quiet = if self.setting.launch.waits().is_none() {
            QUIET
        } else {
            QUIET_PROGRAM
        };
        let mut before = None;
        // A client that never rests is not waited for.
        for _ in 0..RESTLESS {
            let reports = {
                let running = self.running.lock().await;
                running
                    .as_ref()
                    .map_or(0, |live| live.heard.borrow().reports.len())
            };
            let now = Some((reports, self.server.arrivals()));
            if now == before {
                return;
            }
            before = now;
            sleep(quiet).await;
        }
    }

    /// Ends everything.
    pub async fn finish(&self) {
        self.end().await;
    }
}

/// Path of a request, without the query.
pub fn path_of(request: &Request) -> &str {
    request.target.split('?').next().unwrap_or_default()
}

/// Carries lines between the harness and one client, and records them.
struct Pump {
    id: ExchangeId,
    recorder: Recorder,
    intercept: Option<Arc<dyn Intercept>>,
    tell: watch::Sender<Heard>,
}

/// Longest wait for a client to take a line.
const TAKES_WITHIN: Duration = Duration::from_secs(5);

impl Pump {
    async fn run(self, mut testee: Testee, mut lines: mpsc::Receiver<Value>) {
        loop {
            tokio::select! {
                line = lines.recv() => {
                    let Some(line) = line else { return };
                    self.line(Side::Server, line.to_string().into());
                    testee.send(&line, TAKES_WITHIN).await;
                }
                said = testee.hear(Duration::MAX) => match said {
                    Some(Said::Line(bytes)) => self.hear(bytes),
                    Some(Said::TooLong) => return self.over(End::TooLarge),
                    Some(Said::Ended(why)) => return self.over(End::Broken(why)),
                    None => {}
                },
            }
        }
    }

    fn hear(&self, bytes: bytes::Bytes) {
        let report = serde_json::from_slice::<Value>(&bytes);
        let Some(mut report) = report.ok().filter(Value::is_object) else {
            return self.line(Side::Client, bytes);
        };
        if let Some(intercept) = &self.intercept {
            intercept.report(&mut report);
        }
        if report.is_null() {
            return;
        }
        self.recorder.tell(Fact::State(report.clone()));
        self.tell.send_modify(|heard| {
            if heard.reports.len() < REPORTS {
                heard.reports.push(report);
            }
        });
    }

    fn line(&self, from: Side, bytes: bytes::Bytes) {
        self.recorder.tell(Fact::Line {
            exchange: self.id,
            from,
            bytes,
        });
    }

    fn over(&self, how: End) {
        self.recorder.tell(Fact::End {
            exchange: self.id,
            how,
        });
        self.tell.send_modify(|heard| heard.ended = true);
    }
}
