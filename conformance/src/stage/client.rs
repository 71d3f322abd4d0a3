//! What a scenario acts through when the target is a client: a scripted server, and the client that is started
//! at its URL, told what the person does, and listened to.
//!
//! Reports are recorded as state facts the moment they come, so their place among the bytes that the server sent
//! says what the client knew by then. A client that reports nothing is judged by its requests alone.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{Mutex as AsyncMutex, Semaphore, mpsc, watch},
    time::{Instant, sleep},
};
use tokio_util::task::AbortOnDropHandle;

use self::{
    hope::Hope,
    pump::{Heard, Pump},
    wait::MOST_KEPT,
};
use super::Cases;
use crate::{
    drivers::{
        DriveError,
        http::BaseUrl,
        scripted::{Conversation, ScriptedServer},
        target::{Front, Intercept},
        testee::{
            Rests,
            client::{ClientStart, LaunchClient},
        },
    },
    profile::Profile,
    transcript::{Fact, Request, TargetFact, lateness, record::Recorder},
};

mod hope;
mod pump;
mod quiet;
mod wait;

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
    /// Which acts are played.
    pub cases: Cases,
}

/// What a scenario acts through.
#[derive(Debug)]
pub struct ClientStage {
    setting: ClientSetting,
    server: ScriptedServer,
    front: Option<Box<dyn Front>>,
    running: AsyncMutex<Option<Live>>,
    path: Mutex<String>,
    conversation: Mutex<Place>,
    hope: Arc<Hope>,
    watch: AbortOnDropHandle<()>,
}

/// Where a scenario is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Conversations that were begun.
    begun: usize,
    /// Facts that were recorded when the one began that goes on.
    going_on: Option<usize>,
}

/// A client that runs.
#[derive(Debug)]
struct Live {
    to: mpsc::Sender<Value>,
    heard: watch::Receiver<Heard>,
    rests: Option<Arc<dyn Rests>>,
    _pump: AbortOnDropHandle<()>,
    begun: Instant,
    /// From its start to the first request that was waited for; `None` before.
    took: Option<Duration>,
}

/// How much longer our own client is waited for where nobody is between it and the server.
const OWN_PATIENCE: u32 = 10;

/// What is done to a page from outside, whatever its client can do.
const TO_PAGES: [&str; 5] = ["hide", "show", "offline", "online", "reload"];

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
            conversation: Mutex::default(),
            hope: Arc::default(),
            watch: AbortOnDropHandle::new(watch),
            setting,
        })
    }

    /// How many clients may run at a time, where the parts of a scenario can be played side by side.
    pub fn at_a_time(&self) -> Option<Arc<Semaphore>> {
        // A saboteur may count what it sees.
        let alone = self.setting.intercept.is_some();
        (!alone).then(|| self.setting.launch.at_a_time()).flatten()
    }

    /// A stage of its own for a part of the scenario. What happens there is recorded apart.
    ///
    /// # Errors
    ///
    /// As [`ClientStage::new`].
    pub async fn part(&self) -> Result<Self, DriveError> {
        // Each part has a watch of its own.
        self.watch.abort();
        let recorder = self.setting.recorder.fresh();
        let setting = ClientSetting {
            recorder,
            ..self.setting.clone()
        };
        let hope = Arc::clone(&self.hope);
        let part = Self::new(setting).await?;
        Ok(Self { hope, ..part })
    }

    /// Takes over what a part has recorded, after everything so far.
    pub fn take_over(&self, part: &Self) {
        self.setting.recorder.take_over(&part.setting.recorder);
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
        let recorded = self.setting.recorder.recorded();
        {
            let mut place = self.place();
            place.begun += 1;
            place.going_on = Some(recorded);
        }
        self.label(name);
        path.clone_into(&mut self.path.lock().unwrap_or_else(PoisonError::into_inner));
        self.start(path, env).await
    }

    /// Starts a fresh client and ends the one before, as when a page is loaded again.
    ///
    /// # Errors
    ///
    /// When the client does not start, or has shown that it is of no use to start it again.
    pub async fn start(&self, path: &str, env: BTreeMap<String, String>) -> Result<(), DriveError> {
        self.hope.left()?;
        let start = ClientStart {
            url: format!("{}{path}", self.url()),
            scenario: self.setting.scenario.clone(),
            env,
            conversation: self.place().begun,
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
            hope: Arc::clone(&self.hope),
            tell,
        };
        *running = Some(Live {
            to,
            heard,
            rests: testee.rests(),
            _pump: AbortOnDropHandle::new(tokio::spawn(pump.run(testee, lines))),
            begun: Instant::now(),
            took: None,
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
            live.begun = Instant::now();
            live.took = None;
        }
        Ok(())
    }

    /// Tells the client what the person does. False when the client has said that a person cannot do that with it;
    /// then it is not told.
    pub async fn tell(&self, line: Value) -> bool {
        let live = self.running.lock().await;
        let Some((to, heard)) = live.as_ref().map(|live| (live.to.clone(), &live.heard)) else {
            return true;
        };
        let can = heard.borrow().can.clone();
        drop(live);
        let ours = self.setting.launch.reloads() && TO_PAGES.iter().any(|does| line["do"] == *does);
        if !ours && can.is_some_and(|can| !can.contains(&line["do"])) {
            return false;
        }
        // A client that is gone is told nothing; its silence stands in the transcript.
        let _ = to.send(line).await;
        true
    }

    /// Waits until the client has said what it can do, and that this is no part of it. One that does not say is waited
    /// for as long as it runs.
    pub async fn cannot(&self, does: &str) {
        let live = self.running.lock().await;
        let heard = live.as_ref().map(|live| live.heard.clone());
        drop(live);
        let Some(mut heard) = heard else {
            return std::future::pending().await;
        };
        let lacks = |can: &Vec<Value>| !can.iter().any(|able| able == does);
        let said = heard.wait_for(|heard| heard.can.as_ref().is_some_and(lacks));
        if said.await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends the client and closes what it asked for in vain.
    pub async fn end(&self) {
        *self.running.lock().await = None;
        self.server.dismiss();
        self.place().going_on = None;
    }

    /// How many facts there were when the conversation began that goes on; all of them when none does.
    pub fn recorded_whole(&self) -> usize {
        let going_on = self.place().going_on;
        going_on.unwrap_or_else(|| self.setting.recorder.recorded())
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        let place = self.conversation.lock();
        place.unwrap_or_else(PoisonError::into_inner)
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
        self.request_after(Duration::ZERO, wanted).await
    }

    /// The next request that is wanted, where the client waits for so much protocol time before it asks.
    pub async fn request_after(
        &self,
        pause: Duration,
        wanted: impl Fn(&Request) -> bool,
    ) -> Option<Conversation> {
        let (within, ended) = self.waits().await;
        let within = within + pause.mul_f64(self.setting.profile.time_scale);
        let asked = async {
            tokio::select! {
                asked = self.server.next(wanted, MOST_KEPT.saturating_add(within)) => asked,
                () = ended => None,
            }
        };
        let asked = self.within(within, asked).await.flatten();
        if let Some(live) = self.running.lock().await.as_mut() {
            live.took.get_or_insert_with(|| live.begun.elapsed());
        }
        if asked.is_some() || self.server.arrivals() > 0 {
            self.hope.asked();
        } else if self.setting.launch.waits().is_some() {
            let strangers = self.server.strangers();
            self.hope
                .waited_in_vain(within, self.ended().await, strangers);
        }
        asked
    }

    /// How long the next request may take, and a future that is done when the client is gone for good.
    async fn waits(&self) -> (Duration, impl Future<Output = ()> + use<>) {
        let running = self.running.lock().await;
        let live = running.as_ref();
        let fresh = live.is_some_and(|live| live.took.is_none());
        let heard = live.map(|live| live.heard.clone());
        let within = match (self.setting.launch.waits(), fresh) {
            // Our own comes soon. It is waited for in vain only where a saboteur keeps it away.
            (None, _) if self.setting.intercept.is_none() => self.patience() * OWN_PATIENCE,
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
        match self.within(within, done).await {
            Some(Ok(heard)) => fits(&heard.reports),
            _ => false,
        }
    }

    /// Why the client is gone; nothing while it is there.
    pub async fn ended(&self) -> Option<String> {
        let running = self.running.lock().await;
        let heard = running.as_ref()?.heard.borrow();
        heard.ended.then(|| heard.why.clone())
    }

    /// The longest that anything is waited for that the client does by itself.
    pub fn longest(&self) -> Duration {
        let own = self.setting.launch.waits().is_none();
        self.patience() * if own { OWN_PATIENCE } else { 1 }
    }

    /// Whether this act is played: all are, unless some were chosen and are there.
    pub fn wants(&self, act: &str, acts: &[String]) -> bool {
        let chosen = |act: &str| self.setting.cases.wants(act);
        chosen(act) || !acts.iter().any(|act| chosen(act))
    }

    /// Why the whole scenario has shown nothing of the client, where it has not asked for anything.
    pub fn nothing_seen(&self) -> Option<DriveError> {
        self.hope.nothing_seen()
    }

    /// Ends everything.
    pub async fn finish(&self) {
        self.end().await;
        self.watch.abort();
    }
}

/// Path of a request, without the query.
pub fn path_of(request: &Request) -> &str {
    request.target.split('?').next().unwrap_or_default()
}
