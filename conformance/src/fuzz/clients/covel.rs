//! Playing a case of `covel-sse`: a session, what the case does to it, and a finale that is valid again.
//!
//! In the finale the server has a view of its own, resets the subscription, and sends one event after it. What the
//! client then shows must be that view and that event: see [`Model`].

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{
    bytes,
    case::{Case, Frame, Loss, Step},
    frames::{ACTION, SUBSCRIPTION, frame},
};
use crate::{
    drivers::{
        DriveError,
        scripted::{Conversation, Reply},
    },
    scenarios::client::world,
    stage::{ClientStage, client::path_of},
    transcript::{Request, views::http::query_pairs},
};
use serde_json::{Value, json};

/// The session of a case.
const SESSION: &str = "fuzzed";
/// The newest event of the finale's view.
const LAST: &str = "e:900";
/// The event after it.
const AFTER: &str = "e:901";
/// Turns that the finale's view counts.
const TURNS: u64 = 700;
/// How often the finale looks at what is shown.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
/// What the person says in an action. A server that says that the action is committed, and then has a view without what
/// was said, leaves it to the client whether it still shows it.
const SAID: &str = "what was said meanwhile";
/// How long an action may take to come.
const ACTS_WITHIN: Duration = Duration::from_secs(1);

/// Plays a case with a fresh client. What is wrong, in words; nothing when all is well.
///
/// # Errors
///
/// When the client does not start.
pub(super) async fn play(
    stage: &ClientStage,
    case: &Case,
    number: u64,
) -> Result<Option<String>, DriveError> {
    let mut talk = Talk::begin(stage, number).await?;
    let what = talk.play(case).await.err();
    drop(talk);
    stage.end().await;
    Ok(what)
}

struct Talk<'a> {
    stage: &'a ClientStage,
    number: u64,
    world: Arc<Mutex<Value>>,
    /// Reads of the view.
    views: Arc<AtomicUsize>,
    subscription: Option<Conversation>,
    action: Option<Conversation>,
    /// Actions that the person began and that have not come in time; a busy client begins them later.
    owed: usize,
    sent: u64,
    refuse: bool,
}

fn lock(world: &Mutex<Value>) -> std::sync::MutexGuard<'_, Value> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

fn subscribes(request: &Request) -> bool {
    path_of(request) == "/api/events/stream"
}

fn acts(request: &Request) -> bool {
    path_of(request) == "/api/actions"
}

impl<'a> Talk<'a> {
    async fn begin(stage: &'a ClientStage, number: u64) -> Result<Self, DriveError> {
        let world = Arc::new(Mutex::new(world::usual(SESSION)));
        let views = Arc::new(AtomicUsize::new(0));
        let (answers, counted) = (Arc::clone(&world), Arc::clone(&views));
        let url = stage.url();
        stage.server().answer_by(move |request| {
            if world::member(request) == Some("view") {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            world::answer(&lock(&answers), &url, request)
        });
        let env = BTreeMap::from([
            ("TURNWIRE_SESSION".to_owned(), SESSION.to_owned()),
            (
                "TURNWIRE_TIME_SCALE".to_owned(),
                stage.profile().time_scale.to_string(),
            ),
        ]);
        stage.begin_at(SESSION, "", env).await?;
        stage
            .tell(json!({ "do": "open", "session": SESSION }))
            .await;
        Ok(Self {
            stage,
            number,
            world,
            views,
            subscription: None,
            action: None,
            owed: 0,
            sent: 0,
            refuse: false,
        })
    }

    async fn play(&mut self, case: &Case) -> Result<(), String> {
        self.accept("it does not subscribe when a session is opened")
            .await?;
        for step in &case.steps {
            self.step(step).await?;
            self.lives("after", step).await?;
        }
        self.finale().await
    }

    /// Whether the client is still there.
    async fn lives(&self, when: &str, step: &Step) -> Result<(), String> {
        match self.stage.ended().await {
            Some(why) => {
                let step = serde_json::to_string(step).unwrap_or_default();
                Err(format!("it ended: {why} {when} {step}"))
            }
            None => Ok(()),
        }
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Event(frame) => {
                self.follow().await?;
                let bytes = self.event(frame);
                send(self.subscription.as_mut(), &bytes, frame).await;
            }
            Step::Frame(frame) => {
                if self.act().await {
                    let bytes = self.frame(frame);
                    send(self.action.as_mut(), &bytes, frame).await;
                }
            }
            Step::Lose { how } => {
                self.refuse |= *how == Loss::Refused;
                let half = self.event(&Frame::default());
                lose(self.subscription.take(), *how, &half).await;
            }
            Step::Drop { how } => {
                let half = self.frame(&Frame::default());
                lose(self.action.take(), *how, &half).await;
            }
            Step::Person { .. } | Step::Line { .. } => {}
        }
        Ok(())
    }

    /// Sees to it that there is a subscription, unless an action is open: a client pauses it then.
    async fn follow(&mut self) -> Result<(), String> {
        if let Some(action) = &self.action {
            if !action.is_gone() {
                return Ok(());
            }
            self.action = None;
        }
        if self
            .subscription
            .as_ref()
            .is_some_and(Conversation::is_gone)
        {
            self.subscription = None;
        }
        if self.subscription.is_none() {
            self.accept("it does not connect again").await?;
        }
        Ok(())
    }

    /// Whether there is an action: the person says something when there is none.
    async fn act(&mut self) -> bool {
        if self.action.as_ref().is_some_and(|action| !action.is_gone()) {
            return true;
        }
        let line = json!({ "do": "say", "text": SAID });
        if !self.stage.tell(line).await {
            return false;
        }
        // A client that is busy with an action that it has lost does not act.
        self.action = self.stage.server().next(acts, ACTS_WITHIN).await;
        match &mut self.action {
            Some(action) => action.open_events().await,
            None => self.owed += 1,
        }
        self.action.is_some()
    }

    /// Answers the subscription that comes next.
    async fn accept(&mut self, otherwise: &str) -> Result<(), String> {
        if self.refuse {
            self.refuse = false;
            if let Some(mut asked) = self.stage.request_that(subscribes).await {
                let body = json!({ "error": "not now", "code": "server_shutting_down" });
                asked.reply(Reply::json(503, &body)).await;
            }
        }
        loop {
            // As long as an action goes on there is no subscription.
            let late = self.owed > 0;
            let wanted = |request: &Request| subscribes(request) || (late && acts(request));
            match self.stage.request_that(wanted).await {
                None => {
                    return Err(match self.stage.ended().await {
                        Some(why) => format!("it ended: {why}"),
                        None => otherwise.to_owned(),
                    });
                }
                Some(asked) if acts(&asked.request) => self.lose_late(asked).await,
                Some(asked) => {
                    self.connect(asked).await;
                    return Ok(());
                }
            }
        }
    }

    /// Loses an action that comes when nothing is left to be done with it.
    async fn lose_late(&mut self, action: Conversation) {
        self.owed = self.owed.saturating_sub(1);
        action.cut().await;
    }

    async fn connect(&mut self, mut asked: Conversation) {
        asked.open_events().await;
        let cursor = query_pairs(&asked.request.target)
            .find(|(name, _)| name == "lastEventId")
            .map_or_else(|| world::CURSOR.to_owned(), |(_, value)| value);
        let data = json!({
            "sessionId": SESSION, "topics": "all", "cursor": cursor, "timestamp": world::NOW,
        });
        asked
            .send(format!("event: system.connected\ndata: {data}\n\n"))
            .await;
        self.subscription = Some(asked);
    }

    fn event(&mut self, change: &Frame) -> Vec<u8> {
        self.sent += 1;
        let (kind, payload) = frame(SUBSCRIPTION, change.frame);
        let id = format!("e:{}", 5 + self.sent);
        let topic = kind.split(['.', '-']).next().unwrap_or_default();
        let value = json!({
            "id": id, "topic": topic, "type": kind, "sessionId": SESSION,
            "sessionIncarnation": world::INCARNATION, "timestamp": world::NOW, "payload": payload,
        });
        bytes::frame(value, &change.changes, change.wrap, Some(&kind), Some(&id))
    }

    fn frame(&mut self, change: &Frame) -> Vec<u8> {
        let (kind, payload) = frame(ACTION, change.frame);
        let request = self.action.as_ref().and_then(|action| {
            let body: Value = serde_json::from_slice(&action.request.body).ok()?;
            Some(body["requestId"].clone())
        });
        self.sent += 1;
        let value = json!({
            "type": kind, "requestId": request, "traceId": "tr-1", "sessionId": SESSION, "turnId": "t1",
            "flowId": "tr-1", "seq": self.sent, "timestamp": world::NOW, "payload": payload,
        });
        bytes::frame(value, &change.changes, change.wrap, None, None)
    }

    /// Ends what is open, and brings the client up to date.
    async fn finale(&mut self) -> Result<(), String> {
        self.stage.label("finale");
        let model = Model {
            number: self.number,
        };
        world::merge(&mut lock(&self.world), &model.world());
        if let Some(action) = self.action.take() {
            action.cut().await;
        }
        if let Some(subscription) = self.subscription.take() {
            subscription.cut().await;
        }
        let before = self.views.load(Ordering::Relaxed);
        self.accept("it does not connect again in the end").await?;
        self.send_finale().await;
        let wait = self.stage.wait(self.stage.longest()).await;
        loop {
            let seen = Mutex::new(None);
            let fits = |reports: &[Value]| {
                let fault = model.fault(reports);
                let fits = fault.is_none();
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = fault;
                fits
            };
            if self.stage.heard(fits, LOOKS_EVERY).await
                && self.views.load(Ordering::Relaxed) > before
            {
                return Ok(());
            }
            if let Some(why) = self.stage.ended().await {
                return Err(format!("it ended: {why}"));
            }
            if wait.left().is_none() {
                if self.views.load(Ordering::Relaxed) == before {
                    return Err("it does not read the view after a reset".to_owned());
                }
                let fault = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
                return Err(fault.unwrap_or_default());
            }
            if self.owed > 0
                && let Some(action) = self.stage.server().next(acts, Duration::ZERO).await
            {
                self.lose_late(action).await;
            }
            // It may have connected once more, for reasons of its own.
            if let Some(asked) = self.stage.server().next(subscribes, Duration::ZERO).await {
                self.connect(asked).await;
                self.send_finale().await;
            }
        }
    }

    async fn send_finale(&mut self) {
        let Some(subscription) = &mut self.subscription else {
            return;
        };
        let reset = json!({
            "sessionId": SESSION, "reason": "gap", "epoch": "e", "oldestSeq": 899, "latestSeq": 900,
            "cursor": LAST, "timestamp": world::NOW,
        });
        let event = json!({
            "id": AFTER, "topic": "plugin", "type": "plugin-data.changed", "sessionId": SESSION,
            "sessionIncarnation": world::INCARNATION, "timestamp": world::NOW,
            "payload": { "pluginId": "fuzz", "changes": [
                { "namespace": "last", "key": "case", "value": self.number, "operation": "set" },
            ] },
        });
        subscription
            .send(format!("event: system.reset\ndata: {reset}\n\n"))
            .await;
        subscription
            .send(format!(
                "event: plugin-data.changed\ndata: {event}\nid: {AFTER}\n\n"
            ))
            .await;
    }
}

async fn send(to: Option<&mut Conversation>, bytes: &[u8], frame: &Frame) {
    let Some(to) = to else { return };
    for _ in 0..=u8::from(frame.again) {
        for piece in bytes::pieces(bytes, frame.pieces) {
            to.send(piece).await;
        }
    }
}

async fn lose(stream: Option<Conversation>, how: Loss, frame: &[u8]) {
    let Some(mut stream) = stream else { return };
    match how {
        Loss::End | Loss::Refused => stream.finish().await,
        Loss::Reset => stream.cut().await,
        Loss::Half => {
            stream.send(&frame[..frame.len() / 2]).await;
            stream.cut().await;
        }
    }
}

/// What a client shows in the end.
struct Model {
    number: u64,
}

impl Model {
    fn texts(&self) -> [String; 2] {
        [
            format!("what was said in case {}", self.number),
            format!("what was told in case {}", self.number),
        ]
    }

    /// What the server has in the end.
    fn world(&self) -> Value {
        let [said, told] = self.texts();
        let row = |id: &str, role: &str, text: &str| {
            json!({
                "id": id, "role": role, "content": text, "turnId": "t-last", "runtimeId": "teller",
                "kind": "story", "createdAt": world::NOW,
            })
        };
        json!({
            "execution": { "state": "idle" },
            "session": { "completedPlayerTurns": TURNS },
            "view": {
                "session": { "phase": "playing", "completedPlayerTurns": TURNS },
                "messages": [row("last-1", "user", &said), row("last-2", "assistant", &told)],
                "execution": { "state": "idle" },
                "eventCursor": LAST,
            },
        })
    }

    /// What is wrong with the last state that a client has reported; nothing when it is right, or when it reports none.
    fn fault(&self, reports: &[Value]) -> Option<String> {
        let state = reports
            .iter()
            .rev()
            .find_map(|report| report.get("state").filter(|state| state.is_object()))?;
        let wanted = |member: &str, wanted: Value| {
            let shown = state.get(member)?;
            (*shown != wanted).then(|| {
                let shown: String = shown.to_string().chars().take(300).collect();
                format!("{member}: {wanted} is right, it shows {shown}")
            })
        };
        self.messages_fault(state)
            .or_else(|| wanted("executing", json!(false)))
            .or_else(|| wanted("completedPlayerTurns", json!(TURNS)))
            .or_else(|| wanted("phase", json!("playing")))
            .or_else(|| wanted("cursor", json!(AFTER)))
            .or_else(|| {
                let data = state.get("pluginData")?;
                let last = &data["fuzz"]["last"]["case"];
                (*last != json!(self.number)).then(|| {
                    format!("pluginData: the event after the reset is missing, it shows {last}")
                })
            })
    }

    /// Messages that are completed are those of the view, each once and in order.
    fn messages_fault(&self, state: &Value) -> Option<String> {
        let messages = state.get("messages")?.as_array()?;
        let shown: Vec<&str> = messages
            .iter()
            .filter(|message| message["status"] == "completed")
            .filter_map(|message| message["text"].as_str())
            .filter(|text| *text != SAID)
            .collect();
        let wanted = self.texts();
        (shown != wanted).then(|| {
            let shown: String = format!("{shown:?}").chars().take(300).collect();
            format!("messages: {wanted:?} is right, it shows {shown}")
        })
    }
}
