//! Plays an act: the server's side of the conversation, and what the person does.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use turnwire_spec::covel::events;

use super::{
    relay,
    script::{ActScript, Step, StreamName},
    world,
};
use crate::{
    drivers::{
        DriveError,
        scripted::{Conversation, Reply},
    },
    stage::{ClientStage, client::path_of},
    transcript::{
        Request,
        views::{
            client::{CANNOT, UNFOLLOWED},
            http::query_pairs,
        },
    },
};

/// Longest pause that a client makes before it asks again, in protocol time: 30 s, and half as long again.
const LONGEST_PAUSE: Duration = Duration::from_secs(45);

/// Longest wait for a client that was ended to be gone.
const GONE_WITHIN: Duration = Duration::from_millis(500);

/// Plays one act with a fresh client.
///
/// # Errors
///
/// When the client does not start. What it does is no error.
pub(super) async fn play(stage: &ClientStage, act: &ActScript) -> Result<(), DriveError> {
    let mut document = world::usual(&act.act);
    world::merge(&mut document, &act.world);
    let shared = Arc::new(Mutex::new(Answers {
        session: act.act.clone(),
        server: stage.url(),
        world: document,
        held: BTreeSet::new(),
        stored: BTreeMap::new(),
    }));
    let answers = Arc::clone(&shared);
    stage
        .server()
        .answer_by(move |request| lock(&answers).answer(request));
    let mut env = act.env.clone();
    env.insert("TURNWIRE_SESSION".to_owned(), act.act.clone());
    let scale = stage.profile().time_scale;
    env.insert("TURNWIRE_TIME_SCALE".to_owned(), scale.to_string());
    if env.contains_key("TURNWIRE_DATA_MODE") {
        let store = format!("{}{}", stage.url(), world::STORE);
        env.insert("TURNWIRE_STORE".to_owned(), store);
    }
    if env.contains_key("TURNWIRE_DEPLOYMENT") {
        let model = format!("{}{}", stage.url(), relay::LOCAL_MODEL);
        env.insert("TURNWIRE_LOCAL_MODEL".to_owned(), model);
    }
    stage.begin_at(&act.act, "", env.clone()).await?;
    let mut player = Player {
        stage,
        act,
        session: act.act.clone(),
        env,
        answers: shared,
        streams: BTreeMap::new(),
        kept: None,
        relay: relay::Relay::default(),
        before: Value::Null,
        seq: 0,
        sent: 0,
    };
    for step in &act.steps {
        if !player.step(step).await? {
            // The client did not do what the step stands on; the rest would mean nothing.
            stage.label(&format!("{}/{}", act.act, left_at(step)));
            break;
        }
    }
    player.end_here();
    stage.end().await;
    player.is_left().await;
    drop(player);
    Ok(())
}

/// The label that says how an act ended before its end: the person wanted something that the client cannot do, or the
/// client did not do something by itself.
fn left_at(step: &Step) -> &'static str {
    match step {
        Step::Do(_)
        | Step::Say(_)
        | Step::Take
        | Step::Join(_)
        | Step::Answer(_)
        | Step::RelayOpen
        | Step::First(..)
        | Step::Break(_) => CANNOT,
        Step::In(_, step) => left_at(step),
        _ => UNFOLLOWED,
    }
}

#[derive(Debug)]
struct Answers {
    /// The session of the act.
    session: String,
    /// Where the client finds the server.
    server: String,
    world: Value,
    held: BTreeSet<String>,
    /// What the client has put into its own store, by path.
    stored: BTreeMap<String, Bytes>,
}

impl Answers {
    fn answer(&mut self, request: &Request) -> Option<Reply> {
        let held = self.held.iter().any(|name| world::is_for(request, name));
        match path_of(request) {
            _ if held => None,
            path if path.starts_with(world::STORE) => Some(self.store(path, request)),
            _ => self.usual_answer(request),
        }
    }

    /// The store of a client that keeps its data itself: what was put at a path is there for whoever gets it.
    fn store(&mut self, path: &str, request: &Request) -> Reply {
        if request.method == "PUT" {
            self.stored.insert(path.to_owned(), request.body.clone());
            return Reply::empty(204);
        }
        match self.stored.get(path) {
            Some(body) => Reply {
                body: body.clone(),
                ..Reply::json(200, &Value::Null)
            },
            None => Reply::empty(404),
        }
    }

    /// Sessions other than the act's are empty.
    fn usual_answer(&self, request: &Request) -> Option<Reply> {
        let other = world::session_of(request).filter(|session| *session != self.session);
        match other {
            Some(session) => world::answer(&world::usual(session), &self.server, request),
            None => world::answer(&self.world, &self.server, request),
        }
    }
}

fn lock(answers: &Mutex<Answers>) -> std::sync::MutexGuard<'_, Answers> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Player<'a> {
    stage: &'a ClientStage,
    act: &'a ActScript,
    /// The session that steps are about.
    session: String,
    env: BTreeMap<String, String>,
    answers: Arc<Mutex<Answers>>,
    /// What is open, by session.
    streams: BTreeMap<(String, StreamName), Conversation>,
    /// A request that waits, and its answer.
    kept: Option<(Conversation, Reply)>,
    relay: relay::Relay,
    /// The id of the action before this one.
    before: Value,
    /// Position of the next action frame.
    seq: u64,
    /// Events that the subscription has carried in this act.
    sent: u64,
}

impl Player<'_> {
    /// Does one step; whether the conversation can go on.
    async fn step(&mut self, step: &Step) -> Result<bool, DriveError> {
        match step {
            Step::Open => return Ok(self.open().await),
            Step::Do(line) => return Ok(self.stage.tell(line.clone()).await),
            Step::Say(text) => {
                let told = self.stage.tell(json!({ "do": "say", "text": text })).await;
                return Ok(told && self.take().await);
            }
            Step::Take => return Ok(self.take().await),
            Step::Accept(cursor) | Step::Join(cursor) => {
                return Ok(self.accept(cursor.as_deref()).await);
            }
            Step::Refuse(path, status, code) => return Ok(self.refuse(path, *status, code).await),
            Step::First(path, status, body) | Step::Reply(path, status, body) => {
                return Ok(self.reply(path, *status, body).await);
            }
            Step::Break(path) => {
                let Some(asked) = self.stage.request_for(path).await else {
                    return Ok(false);
                };
                asked.cut().await;
            }
            Step::Aside => {
                if let Some(open) = self.close(StreamName::Action) {
                    self.hold(StreamName::Earlier, open);
                }
            }
            Step::In(session, step) => {
                let own = std::mem::replace(&mut self.session, session.clone());
                let done = Box::pin(self.step(step)).await;
                self.session = own;
                return done;
            }
            Step::Frame(frame) => {
                let text = self.frame(frame);
                self.send(StreamName::Action, &text).await;
            }
            Step::Bytewise(frame) => {
                for byte in self.frame(frame).bytes() {
                    self.send(StreamName::Action, [byte]).await;
                }
            }
            Step::Event(event) => {
                let text = self.event(event);
                self.send(StreamName::Subscription, &text).await;
            }
            Step::Control(kind, data) => {
                let text = format!("event: {kind}\ndata: {data}\n\n");
                self.send(StreamName::Subscription, &text).await;
            }
            Step::Raw(stream, text) => self.send(*stream, text).await,
            Step::End(stream) => {
                if let Some(open) = self.close(*stream) {
                    open.finish().await;
                }
            }
            Step::Cut(stream) => {
                if let Some(open) = self.close(*stream) {
                    open.cut().await;
                }
            }
            Step::World(change) => world::merge(&mut lock(&self.answers).world, change),
            Step::Hold(member) => {
                lock(&self.answers).held.insert(member.clone());
            }
            Step::Release(member) => {
                lock(&self.answers).held.remove(member);
                return Ok(self.answer(member).await);
            }
            Step::Answer(member) => return Ok(self.answer(member).await),
            Step::Keep(member) => return Ok(self.keep(member).await),
            Step::Give => {
                if let Some((mut asked, reply)) = self.kept.take() {
                    asked.reply(reply).await;
                }
            }
            Step::Visit(session) => {
                self.session.clone_from(session);
                lock(&self.answers).session.clone_from(session);
                return Ok(self.open().await);
            }
            Step::RelayOpen => return Ok(self.relay.open(self.stage).await),
            Step::RelayCut => self.relay.cut().await,
            Step::RelayRequest(id) => return Ok(self.relay.request(self.stage, id).await),
            Step::RelayPieces(id, count, bytes) => self.relay.pieces(id, *count, *bytes).await,
            Step::RelayFinish(id) => self.relay.finish(id).await,
            Step::RelayCancel(id) => self.relay.cancel(id).await,
            Step::Settle => self.stage.settle().await,
            Step::Wait(ms) => self.stage.pause(Duration::from_millis(*ms)).await,
            Step::Period(ms) => {
                let period = Duration::from_millis(*ms);
                self.stage
                    .pause(period.mul_f64(self.stage.profile().time_scale))
                    .await;
            }
            Step::Label(name) => self.stage.label(&format!("{}/{name}", self.act.act)),
            Step::Offline => {
                // A page notices by itself; a client that cannot be told does so by what fails.
                self.stage.tell(json!({ "do": "offline" })).await;
                self.stage.server().go_offline().await;
                for stream in [StreamName::Subscription, StreamName::Action] {
                    if let Some(open) = self.close(stream) {
                        open.cut().await;
                    }
                }
            }
            Step::Online => {
                self.stage.server().go_online();
                self.stage.tell(json!({ "do": "online" })).await;
            }
            Step::Reload => {
                self.streams.clear();
                self.relay = relay::Relay::default();
                self.stage.reload(self.env.clone()).await?;
                return Ok(self.open().await);
            }
        }
        Ok(true)
    }

    async fn open(&mut self) -> bool {
        self.stage
            .tell(json!({ "do": "open", "session": self.session }))
            .await;
        let cursor = lock(&self.answers).world["view"]["eventCursor"]
            .as_str()
            .map(str::to_owned);
        let open = self.accept(cursor.as_deref()).await;
        self.stage.settle().await;
        open
    }

    /// The next action of the client.
    async fn take(&mut self) -> bool {
        let own = |request: &Request| {
            let body = serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
            path_of(request) == "/api/actions" && body["sessionId"] == self.session.as_str()
        };
        let asked = self.stage.request_that(own);
        let Some(mut asked) = asked.await else {
            return false;
        };
        asked.open_events().await;
        self.before = self.request_id();
        self.hold(StreamName::Action, asked);
        self.seq = 0;
        true
    }

    /// The next subscription of the client. One that it has left since counts for nothing.
    async fn accept(&mut self, cursor: Option<&str>) -> bool {
        // A client that was ended may have had a request on its way.
        let own = |request: &Request| {
            let mut pairs = query_pairs(&request.target);
            path_of(request) == "/api/events/stream"
                && pairs.any(|(name, value)| name == "sessionId" && value == self.session)
        };
        let mut asked = loop {
            match self.stage.request_that(own).await {
                Some(asked) if asked.is_gone() => {}
                Some(asked) => break asked,
                None => return false,
            }
        };
        asked.open_events().await;
        let topics = asked
            .request
            .target
            .split_once("topics=")
            .map(|(_, rest)| rest.split('&').next().unwrap_or_default());
        let data = json!({
            "sessionId": self.session,
            "topics": topics.map_or(json!("all"), |topics| topics.replace("%2C", ",").split(',').map(str::to_owned).collect()),
            "cursor": cursor.unwrap_or(world::CURSOR),
            "timestamp": world::NOW,
        });
        asked
            .send(format!("event: system.connected\ndata: {data}\n\n"))
            .await;
        self.hold(StreamName::Subscription, asked);
        true
    }

    async fn refuse(&mut self, path: &str, status: u16, code: &str) -> bool {
        let body = json!({ "error": code.replace('_', " "), "code": code });
        self.reply(path, status, &body).await
    }

    async fn reply(&mut self, path: &str, status: u16, body: &Value) -> bool {
        let asked = self
            .stage
            .request_after(LONGEST_PAUSE, |request| world::is_for(request, path));
        let Some(mut asked) = asked.await else {
            return false;
        };
        asked.reply(Reply::json(status, body)).await;
        true
    }

    async fn answer(&mut self, member: &str) -> bool {
        let asked = self
            .stage
            .request_after(LONGEST_PAUSE, |request| world::is_for(request, member))
            .await;
        let Some(mut asked) = asked else {
            return false;
        };
        let reply = lock(&self.answers).usual_answer(&asked.request);
        asked
            .reply(reply.unwrap_or_else(|| Reply::empty(404)))
            .await;
        true
    }

    /// Ends the record of what is open. The client goes next, so what it would make of the ends is not seen.
    fn end_here(&mut self) {
        let kept = self.kept.as_mut().map(|(asked, _)| asked);
        let open = self.streams.values_mut();
        open.chain(kept).for_each(Conversation::ends_here);
        self.relay.end_here();
    }

    /// Waits until the client, which has been ended, is off its streams: closed under its eyes, they would make it ask
    /// for something in the next act.
    async fn is_left(&mut self) {
        for stream in self.streams.values_mut() {
            stream.left(GONE_WITHIN).await;
        }
    }

    /// Takes a request aside, with the answer of now.
    async fn keep(&mut self, member: &str) -> bool {
        let asked = self
            .stage
            .request_that(|request| world::is_for(request, member))
            .await;
        let mut answers = lock(&self.answers);
        answers.held.remove(member);
        let Some(asked) = asked else {
            return false;
        };
        let reply = answers.usual_answer(&asked.request);
        self.kept = Some((asked, reply.unwrap_or_else(|| Reply::empty(404))));
        true
    }

    fn hold(&mut self, stream: StreamName, open: Conversation) {
        self.streams.insert((self.session.clone(), stream), open);
    }

    fn close(&mut self, stream: StreamName) -> Option<Conversation> {
        self.streams.remove(&(self.session.clone(), stream))
    }

    async fn send(&mut self, stream: StreamName, bytes: impl AsRef<[u8]>) {
        if let Some(open) = self.streams.get_mut(&(self.session.clone(), stream)) {
            open.send(bytes).await;
        }
    }

    /// The id of the action that runs.
    fn request_id(&self) -> Value {
        let body = self
            .streams
            .get(&(self.session.clone(), StreamName::Action))
            .and_then(|action| serde_json::from_slice::<Value>(&action.request.body).ok());
        body.map_or(Value::Null, |body| body["requestId"].clone())
    }

    /// A frame of the action: its nine members, with those that the script gives.
    fn frame(&mut self, frame: &[Value]) -> String {
        let mut envelope = json!({
            "type": frame.first(),
            "requestId": self.request_id(),
            "traceId": "tr-1", "sessionId": self.session, "turnId": "t1", "flowId": "tr-1",
            "seq": self.seq, "timestamp": world::NOW,
            "payload": frame.get(1).cloned().unwrap_or_else(|| json!({})),
        });
        self.seq += 1;
        world::merge(&mut envelope, frame.get(2).unwrap_or(&Value::Null));
        // Scripts name the request of the action so, and that of the one before.
        for pointer in ["/requestId", "/payload/requestId"] {
            if let Some(id) = envelope.pointer_mut(pointer) {
                match id.as_str() {
                    Some("@request") => *id = self.request_id(),
                    Some("@before") => *id = self.before.clone(),
                    _ => {}
                }
            }
        }
        format!("data: {envelope}\n\n")
    }

    /// An event of the subscription, with its id; the script's `id: null` leaves the id away.
    fn event(&mut self, event: &[Value]) -> String {
        self.sent += 1;
        let kind = event
            .first()
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let topic = events::event(&kind).and_then(|meta| meta.topic.ours());
        let topic = topic.map_or_else(
            || kind.split('.').next().unwrap_or_default().to_owned(),
            |topic| topic.to_string(),
        );
        let mut data = json!({
            "id": format!("e:{}", 5 + self.sent), "topic": topic, "type": kind,
            "sessionId": self.session, "sessionIncarnation": world::INCARNATION, "timestamp": world::NOW,
            "payload": event.get(1).cloned().unwrap_or_else(|| json!({})),
        });
        world::merge(&mut data, event.get(2).unwrap_or(&Value::Null));
        let id = data["id"].as_str().unwrap_or_default();
        format!("event: {kind}\ndata: {data}\nid: {id}\n\n")
    }
}
