//! Stand-ins for what the engine needs from others, for tests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

use super::actions::{Action, ActionRequest, PlayerAction};
use super::happening::Happening;
use super::ids::{SessionId, SessionKey};
use super::model::{DomainEvent, Object, Session};
use super::plugins::{Plugin, Registry};
use super::ports::{
    Clock, Delivery, Ids, Invalidation, PublishError, Publisher, Tap, TapGuard, TurnEvent, TurnSink,
};
use super::sessions::NewSession;
use super::story::Story;
use super::{Engine, EngineConfig, Parts};
use crate::gateway::{
    Continuation, ErrorKind, FinishReason, Gateway, GatewayError, ModelEvent, ModelReply,
    ModelRequest, ModelStream, Target, ToolRequest,
};
use crate::store::Store;
use crate::store::memory::MemoryStore;

/// What the model does in one call.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    /// Writes these pieces.
    Text(&'static [&'static str]),
    /// Writes this beside tool calls: name, arguments.
    Calls(&'static str, Vec<(&'static str, &'static str)>),
    /// Refuses.
    Error(ErrorKind),
    /// Writes these pieces and breaks off.
    Breaks(&'static [&'static str]),
    /// Writes these pieces and then nothing more.
    Hangs(&'static [&'static str]),
    /// Thinks on and on, a piece each time this period has passed.
    Thinks(Duration),
}

/// A gateway that plays a script, one entry a call.
#[derive(Debug, Default)]
pub(crate) struct ScriptedGateway {
    script: Mutex<VecDeque<Say>>,
    pub(crate) requests: Mutex<Vec<ModelRequest>>,
}

impl ScriptedGateway {
    pub(crate) fn says(&self, script: impl IntoIterator<Item = Say>) {
        self.script.lock().unwrap().extend(script);
    }

    /// The text of the last message of each request.
    pub(crate) fn last_messages(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .map(|request| format!("{:?}", request.messages.last().unwrap()))
            .collect()
    }
}

fn error(kind: ErrorKind) -> GatewayError {
    let target = Target {
        provider: "scripted".into(),
        model: Some("m-1".into()),
    };
    GatewayError::new(kind, format!("model says {}", kind.name()), target)
}

fn pieces(pieces: &[&str]) -> VecDeque<Result<ModelEvent, GatewayError>> {
    pieces
        .iter()
        .map(|piece| Ok(ModelEvent::Text((*piece).to_owned())))
        .collect()
}

#[async_trait]
impl Gateway for ScriptedGateway {
    fn target(&self, _slot: &str) -> Target {
        Target {
            provider: "scripted".into(),
            model: Some("m-1".into()),
        }
    }

    async fn call(&self, request: ModelRequest) -> Result<Box<dyn ModelStream>, GatewayError> {
        self.requests.lock().unwrap().push(request);
        let say = self.script.lock().unwrap().pop_front();
        let (events, hangs) = match say {
            None => return Err(error(ErrorKind::BadRequest)),
            Some(Say::Error(kind)) => return Err(error(kind)),
            Some(Say::Text(texts)) => {
                let mut events = pieces(texts);
                events.push_back(Ok(ModelEvent::Done(Box::new(ModelReply {
                    text: texts.concat(),
                    ..ModelReply::default()
                }))));
                (events, false)
            }
            Some(Say::Calls(text, calls)) => {
                let mut events = if text.is_empty() {
                    VecDeque::new()
                } else {
                    pieces(&[text])
                };
                let tool_calls =
                    calls
                        .iter()
                        .enumerate()
                        .map(|(n, (name, arguments))| ToolRequest {
                            id: format!("call-{n}"),
                            name: (*name).to_owned(),
                            arguments: (*arguments).to_owned(),
                        });
                events.push_back(Ok(ModelEvent::Done(Box::new(ModelReply {
                    text: text.to_owned(),
                    tool_calls: tool_calls.collect(),
                    finish: FinishReason::ToolCalls,
                    continuation: Some(Continuation(serde_json::json!({ "x": "opaque-1" }))),
                    ..ModelReply::default()
                }))));
                (events, false)
            }
            Some(Say::Breaks(texts)) => {
                let mut events = pieces(texts);
                events.push_back(Err(error(ErrorKind::Network)));
                (events, false)
            }
            Some(Say::Hangs(texts)) => (pieces(texts), true),
            Some(Say::Thinks(every)) => return Ok(Box::new(Thinking(every))),
        };
        Ok(Box::new(ScriptedStream { events, hangs }))
    }
}

struct ScriptedStream {
    events: VecDeque<Result<ModelEvent, GatewayError>>,
    hangs: bool,
}

#[async_trait]
impl ModelStream for ScriptedStream {
    async fn next(&mut self) -> Option<Result<ModelEvent, GatewayError>> {
        // A turn takes time, so that others get to run.
        tokio::task::yield_now().await;
        match self.events.pop_front() {
            None if self.hangs => std::future::pending().await,
            event => event,
        }
    }
}

struct Thinking(Duration);

#[async_trait]
impl ModelStream for Thinking {
    async fn next(&mut self) -> Option<Result<ModelEvent, GatewayError>> {
        tokio::time::sleep(self.0).await;
        Some(Ok(ModelEvent::Reasoning("hm ".to_owned())))
    }
}

/// A publisher that writes down what it is given.
#[derive(Default)]
pub(crate) struct RecordingPublisher {
    pub(crate) events: Mutex<Vec<(DomainEvent, Delivery)>>,
    /// Places of after-commit publishes that fail.
    pub(crate) refuses: Mutex<BTreeSet<usize>>,
    pub(crate) invalidations: Mutex<Vec<Invalidation>>,
    pub(crate) happenings: Mutex<Vec<Arc<Happening>>>,
    taps: Arc<Mutex<BTreeMap<u64, (SessionKey, Tap)>>>,
    next_tap: AtomicU64,
}

impl RecordingPublisher {
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        self.events
            .lock()
            .unwrap()
            .iter()
            .map(|(event, _)| event.kind)
            .collect()
    }

    /// The events that a commit announced, in order.
    pub(crate) fn committed(&self) -> Vec<&'static str> {
        let events = self.events.lock().unwrap();
        let committed = events
            .iter()
            .filter(|(_, delivery)| *delivery != Delivery::Live);
        committed.map(|(event, _)| event.kind).collect()
    }
}

impl Publisher for RecordingPublisher {
    fn publish(&self, event: &DomainEvent, delivery: Delivery) -> Result<(), PublishError> {
        if let Delivery::AfterCommit { nth, .. } = delivery
            && self.refuses.lock().unwrap().contains(&nth)
        {
            return Err(PublishError(format!("publish {nth} failed")));
        }
        self.events.lock().unwrap().push((event.clone(), delivery));
        for (session, tap) in self.taps.lock().unwrap().values() {
            if *session == event.session {
                tap(event);
            }
        }
        Ok(())
    }

    fn invalidate(&self, _session: &SessionKey, why: Invalidation) {
        self.invalidations.lock().unwrap().push(why);
    }

    fn cursor(&self, _session: &SessionKey) -> String {
        format!("e:{}", self.events.lock().unwrap().len())
    }

    fn tap(&self, session: &SessionKey, tap: Tap) -> TapGuard {
        let id = self.next_tap.fetch_add(1, Ordering::SeqCst);
        self.taps.lock().unwrap().insert(id, (session.clone(), tap));
        Box::new(Untap {
            taps: Arc::clone(&self.taps),
            id,
        })
    }

    fn happened(&self, happening: &Arc<Happening>) {
        self.happenings.lock().unwrap().push(Arc::clone(happening));
    }

    fn is_watched(&self, _session: &SessionKey) -> bool {
        true
    }
}

struct Untap {
    taps: Arc<Mutex<BTreeMap<u64, (SessionKey, Tap)>>>,
    id: u64,
}

impl Drop for Untap {
    fn drop(&mut self) {
        self.taps.lock().unwrap().remove(&self.id);
    }
}

/// A sink that writes down what it hears.
#[derive(Debug, Default)]
pub(crate) struct RecordingSink {
    pub(crate) events: Mutex<Vec<TurnEvent>>,
    heard: tokio::sync::Notify,
}

impl TurnSink for RecordingSink {
    fn event(&self, event: TurnEvent) {
        self.events.lock().unwrap().push(event);
        self.heard.notify_waiters();
    }
}

impl RecordingSink {
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        self.events
            .lock()
            .unwrap()
            .iter()
            .map(|event| event.kind)
            .collect()
    }

    /// The payload of the last event of this kind.
    pub(crate) fn payload(&self, kind: &str) -> Object {
        let events = self.events.lock().unwrap();
        let found = events.iter().rev().find(|event| event.kind == kind);
        found.unwrap_or_else(|| panic!("no {kind}")).payload.clone()
    }

    /// When the last event of this kind was sent.
    pub(crate) fn payload_time(&self, kind: &str) -> Timestamp {
        let events = self.events.lock().unwrap();
        let found = events.iter().rev().find(|event| event.kind == kind);
        found.unwrap_or_else(|| panic!("no {kind}")).timestamp
    }

    /// All text of the narrative so far; a reset clears it.
    pub(crate) fn shown(&self) -> String {
        let mut shown = String::new();
        for event in self
            .events
            .lock()
            .unwrap()
            .iter()
            .filter(|event| event.kind == "narrative.delta")
        {
            if event.payload.get("reset") == Some(&Value::Bool(true)) {
                shown.clear();
            }
            shown.push_str(event.payload["delta"].as_str().unwrap());
        }
        shown
    }

    /// Waits until an event of this kind was heard.
    pub(crate) async fn until(&self, kind: &str) {
        loop {
            let heard = self.heard.notified();
            if self.kinds().contains(&kind) {
                return;
            }
            heard.await;
        }
    }
}

/// Ids that count: `turn-1`, `turn-2`, ...
#[derive(Debug, Default)]
pub(crate) struct CountingIds {
    counts: Mutex<BTreeMap<&'static str, u64>>,
    secrets: AtomicU64,
}

impl Ids for CountingIds {
    fn id(&self, what: &'static str) -> String {
        let mut counts = self.counts.lock().unwrap();
        let count = counts.entry(what).or_default();
        *count += 1;
        format!("{what}-{count}")
    }

    fn secret(&self) -> [u8; 32] {
        let mut secret = [0; 32];
        secret[..8].copy_from_slice(&self.secrets.fetch_add(1, Ordering::SeqCst).to_le_bytes());
        secret
    }
}

/// A clock that advances by a millisecond each time it is read.
#[derive(Debug, Default)]
pub(crate) struct CountingClock(AtomicU64);

impl Clock for CountingClock {
    fn now(&self) -> Timestamp {
        let ms = 1_900_000_000_000 + self.0.fetch_add(1, Ordering::SeqCst);
        Timestamp::from_millisecond(i64::try_from(ms).unwrap()).unwrap()
    }
}

/// An engine between stand-ins.
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) gateway: Arc<ScriptedGateway>,
    pub(crate) publisher: Arc<RecordingPublisher>,
    pub(crate) store: Arc<dyn Store>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with([])
    }

    /// With these plugins besides the story.
    pub(crate) fn with<const N: usize>(plugins: [Arc<dyn Plugin>; N]) -> Self {
        Self::on(Arc::new(MemoryStore::new()), plugins)
    }

    pub(crate) fn on<const N: usize>(store: Arc<dyn Store>, plugins: [Arc<dyn Plugin>; N]) -> Self {
        let gateway = Arc::new(ScriptedGateway::default());
        let publisher = Arc::new(RecordingPublisher::default());
        let story: Arc<dyn Plugin> = Arc::new(Story::new());
        let registry = plugins
            .into_iter()
            .fold(Registry::new().with(story), Registry::with);
        let engine = Engine::new(Parts {
            store: Arc::clone(&store),
            publisher: Arc::clone(&publisher) as Arc<dyn Publisher>,
            gateway: Arc::clone(&gateway) as Arc<dyn Gateway>,
            registry,
            ids: Arc::new(CountingIds::default()),
            clock: Arc::new(CountingClock::default()),
            config: EngineConfig::default(),
        });
        Self {
            engine,
            gateway,
            publisher,
            store,
        }
    }

    /// A new session with the story and these plugins.
    pub(crate) async fn session(&self, plugins: &[&str]) -> Session {
        let plugins = std::iter::once("story").chain(plugins.iter().copied());
        let new = NewSession {
            plugins: Some(plugins.map(Into::into).collect()),
            ..NewSession::default()
        };
        self.engine.create_session(new).await.unwrap().session
    }

    /// Starts an action.
    pub(crate) async fn begin(
        &self,
        session: &Session,
        action: Action,
    ) -> (Arc<RecordingSink>, super::actions::ActionHandle) {
        let sink = Arc::new(RecordingSink::default());
        let request = request(&session.id, action);
        let handle = self
            .engine
            .begin(request, Arc::clone(&sink) as Arc<dyn TurnSink>)
            .await
            .unwrap();
        (sink, handle)
    }

    /// Plays an action to its end.
    pub(crate) async fn play(&self, session: &Session, action: Action) -> Arc<RecordingSink> {
        let (sink, handle) = self.begin(session, action).await;
        handle.finished().await;
        sink
    }

    /// Lets the player say something, to its end.
    pub(crate) async fn say(&self, session: &Session, text: &str) -> Arc<RecordingSink> {
        self.play(session, say(text)).await
    }

    /// The stored messages as `role: content`, those without a turn in parentheses.
    pub(crate) async fn messages(&self, session: &Session) -> Vec<String> {
        let messages = self.store.messages(&session.id).await.unwrap();
        let shown = messages.into_iter().map(|message| {
            let text = format!("{:?}: {}", message.role, message.content);
            if message.turn_id.is_some() {
                text
            } else {
                format!("({text})")
            }
        });
        shown.collect()
    }
}

pub(crate) fn say(text: &str) -> Action {
    Action::Submit {
        actions: vec![PlayerAction::Say(text.to_owned())],
        input_message_id: None,
    }
}

pub(crate) fn request(session: &SessionId, action: Action) -> ActionRequest {
    ActionRequest {
        request_id: "rq-1".into(),
        session_id: session.clone(),
        action,
        recover_from: None,
        model: None,
    }
}
