//! Where a socket stands, and what passed by on all of them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};

use crate::saboteurs::{ChannelInfo, Message, MessageRewriter, OutMessage, Outlet, Saboteur};

/// What a fault makes of a frame.
pub(super) type Act = fn(&mut At, Value, &mut Vec<Value>);

/// Sessions, jobs and texts that are remembered; then all are forgotten.
const MOST: usize = 4000;
/// Frames that are remembered of a turn, the newest ones.
const NEWEST: usize = 4;

/// A saboteur of what goes to the server and to the client.
pub(super) fn plant(server: Act, client: Act) -> Arc<dyn Saboteur> {
    Arc::new(Fault {
        server,
        client,
        memory: Arc::default(),
    })
}

/// Leaves a frame as it is.
pub(super) fn pass(_: &mut At, frame: Value, out: &mut Vec<Value>) {
    out.push(frame);
}

struct Fault {
    server: Act,
    client: Act,
    memory: Arc<Mutex<Memory>>,
}

impl Saboteur for Fault {
    fn channel(&self, info: &ChannelInfo) -> Option<Box<dyn MessageRewriter>> {
        let me = {
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            memory.sockets += 1;
            memory.sockets
        };
        Some(Box::new(At {
            server: self.server,
            client: self.client,
            memory: Arc::clone(&self.memory),
            me,
            outlet: info.outlet.clone(),
            asked: None,
            replayed: 0,
            runs: false,
            subscribed: BTreeSet::new(),
            says: false,
            jobs: BTreeMap::new(),
            held: Vec::new(),
            last: None,
        }))
    }
}

/// A subscription that is being answered: from its message to the next `pong`.
pub(super) struct Asked {
    pub(super) session: String,
    replay: bool,
}

/// Where one socket stands.
pub(super) struct At {
    server: Act,
    client: Act,
    memory: Arc<Mutex<Memory>>,
    /// Tells sockets apart.
    pub(super) me: u64,
    pub(super) outlet: Outlet,
    pub(super) asked: Option<Asked>,
    /// Frames of the replay so far, the one at hand among them.
    pub(super) replayed: u64,
    /// The subscription was answered with a turn that runs.
    pub(super) runs: bool,
    /// Sessions that it subscribed to.
    pub(super) subscribed: BTreeSet<String>,
    /// It begins turns.
    pub(super) says: bool,
    /// The jobs that run, with their sessions, as it was told.
    pub(super) jobs: BTreeMap<String, String>,
    held: Vec<Value>,
    /// A frame that a fault keeps.
    pub(super) last: Option<Value>,
}

/// What passed by on all sockets.
#[derive(Default)]
pub(super) struct Memory {
    sockets: u64,
    /// The newest turn of each session.
    turns: BTreeMap<String, Newest>,
    /// The jobs that run, by session.
    pub(super) running: BTreeMap<String, String>,
    /// The session of each job.
    sessions: BTreeMap<String, String>,
    /// What the numbers of a job begin with.
    bases: BTreeMap<String, i64>,
    /// The job that was interrupted, by the one that followed.
    renamed: BTreeMap<String, String>,
    /// The newest subscriber of each session.
    pub(super) owners: BTreeMap<String, u64>,
    texts: BTreeSet<String>,
}

/// The newest turn of a session.
#[derive(Default)]
struct Newest {
    job: String,
    /// Its highest number, and what it begins with.
    top: i64,
    base: i64,
    frames: VecDeque<Value>,
}

impl Memory {
    fn learn(&mut self, frame: &Value) {
        if self
            .turns
            .len()
            .max(self.sessions.len())
            .max(self.texts.len())
            > MOST
        {
            *self = Self {
                sockets: self.sockets,
                ..Self::default()
            };
        }
        let (of, job) = (session(frame).to_owned(), text(frame, "jobId").to_owned());
        if kind(frame) == "chat:active" && !job.is_empty() {
            self.sessions.insert(job.clone(), of.clone());
            if frame["payload"]["running"] == false {
                self.running.remove(&of);
                return;
            }
            let before = self.running.insert(of, job.clone());
            if let Some(before) = before.filter(|before| *before != job)
                && !self.renamed.contains_key(&job)
            {
                let first = self.renamed.get(&before).cloned().unwrap_or(before);
                self.renamed.insert(job, first);
            }
            return;
        }
        let Some(seq) = seq(frame).filter(|_| is_numbered(frame)) else {
            return;
        };
        self.sessions.insert(job.clone(), of.clone());
        let turn = self.turns.entry(of).or_default();
        if turn.job != job {
            if self.bases.contains_key(&job) {
                return;
            }
            let is_first = turn.job.is_empty();
            let base = if is_first {
                0
            } else {
                turn.base + turn.top + 1
            };
            *turn = Newest {
                job: job.clone(),
                base,
                ..Newest::default()
            };
            self.bases.insert(job, base);
        }
        if seq >= turn.top {
            turn.top = seq;
            let known = turn.frames.back().and_then(self::seq) == Some(seq);
            if !known {
                turn.frames.push_back(frame.clone());
            }
            if turn.frames.len() > NEWEST {
                turn.frames.pop_front();
            }
        }
    }

    /// The newest frames of a session's newest turn, at most so many.
    pub(super) fn newest(&self, session: &str, most: usize) -> Vec<Value> {
        let frames = self.turns.get(session).map(|turn| &turn.frames);
        let frames = frames.into_iter().flatten();
        let skipped = frames.clone().count().saturating_sub(most);
        frames.skip(skipped).cloned().collect()
    }

    /// What the numbers of a frame's turn begin with, when they go on from turn to turn.
    pub(super) fn base(&self, frame: &Value) -> i64 {
        let base = self.bases.get(text(frame, "jobId"));
        base.copied().unwrap_or_default()
    }

    /// The job that was interrupted before that of a frame.
    pub(super) fn former_job(&self, frame: &Value) -> Option<String> {
        self.renamed.get(text(frame, "jobId")).cloned()
    }

    /// The session of the job that a frame names.
    pub(super) fn session_of(&self, frame: &Value) -> Option<String> {
        self.sessions.get(text(frame, "jobId")).cloned()
    }

    /// Whether a text is new.
    pub(super) fn once(&mut self, text: &str) -> bool {
        self.texts.insert(text.to_owned())
    }
}

impl At {
    pub(super) fn memory<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a frame belongs to the replay that a subscription asked for.
    pub(super) fn replays(&self, frame: &Value) -> bool {
        let asked = self.asked.as_ref().filter(|asked| asked.replay);
        is_numbered(frame) && asked.is_some_and(|asked| asked.session == session(frame))
    }

    /// Keeps a replay until it is whole, and sends what is made of it.
    pub(super) fn hold_replay(
        &mut self,
        frame: Value,
        out: &mut Vec<Value>,
        make: fn(&mut Self, &mut Vec<Value>) -> Vec<Value>,
    ) {
        if self.replays(&frame) {
            self.held.push(frame);
            return;
        }
        if kind(&frame) == "pong" {
            let mut held = std::mem::take(&mut self.held);
            out.extend(make(self, &mut held));
        }
        out.push(frame);
    }

    fn learn(&mut self, frame: &Value) {
        self.memory(|memory| memory.learn(frame));
        if kind(frame) == "chat:active" {
            let job = text(frame, "jobId").to_owned();
            if frame["payload"]["running"] == true {
                let asked = self.asked.as_ref();
                self.runs |= asked.is_some_and(|asked| asked.session == session(frame));
                self.jobs.insert(job, session(frame).to_owned());
            } else {
                self.jobs.remove(&job);
            }
        }
        self.replayed += u64::from(self.replays(frame));
    }
}

impl MessageRewriter for At {
    fn to_server(&mut self, message: Message) -> Vec<OutMessage> {
        let Some(frame) = message.json() else {
            return vec![OutMessage::send(message)];
        };
        self.says |= kind(&frame) == "chat:send";
        if kind(&frame) == "chat:subscribe" {
            let of = session(&frame).to_owned();
            let asked = Asked {
                session: of.clone(),
                replay: frame["payload"]["wantReplay"] == true,
            };
            let me = self.me;
            if !self.says {
                self.memory(|memory| memory.owners.insert(of.clone(), me));
            }
            self.subscribed.insert(of);
            (self.asked, self.replayed, self.runs) = (Some(asked), 0, false);
        }
        let mut out = Vec::new();
        (self.server)(self, frame.clone(), &mut out);
        // What is not changed passes as it was written.
        let send = |json: Value| {
            if json == frame {
                OutMessage::send(message.clone())
            } else {
                OutMessage::json(&json)
            }
        };
        out.into_iter().map(send).collect()
    }

    fn to_client(&mut self, message: Message) -> Vec<OutMessage> {
        let Some(frame) = message.json() else {
            return vec![OutMessage::send(message)];
        };
        self.learn(&frame);
        let ends = kind(&frame) == "pong";
        let mut out = Vec::new();
        (self.client)(self, frame, &mut out);
        if ends {
            self.asked = None;
        }
        out.iter().map(OutMessage::json).collect()
    }
}

/// The kind of a frame.
pub(super) fn kind(frame: &Value) -> &str {
    frame["type"].as_str().unwrap_or_default()
}

fn text<'f>(frame: &'f Value, name: &str) -> &'f str {
    frame["payload"][name].as_str().unwrap_or_default()
}

/// The session of a frame.
pub(super) fn session(frame: &Value) -> &str {
    text(frame, "sessionId")
}

/// The number of a frame.
pub(super) fn seq(frame: &Value) -> Option<i64> {
    frame["payload"]["seq"].as_i64()
}

/// Whether it is a numbered frame.
pub(super) fn is_numbered(frame: &Value) -> bool {
    frame["payload"]["seq"].is_number()
}

/// The number after a number.
#[expect(
    clippy::cast_precision_loss,
    reason = "a turn has fewer than 2^52 frames"
)]
pub(super) fn next_number(seq: i64) -> f64 {
    seq as f64
}

/// The last number that a subscription with a replay names.
pub(super) fn last(frame: &Value) -> Option<f64> {
    let asks = kind(frame) == "chat:subscribe" && frame["payload"]["wantReplay"] == true;
    frame["payload"]["lastSeq"].as_f64().filter(|_| asks)
}

/// Makes a subscription name another last number.
pub(super) fn set_last(frame: &mut Value, last: f64) {
    frame["payload"]["lastSeq"] = last.into();
}

/// The text that a frame of a client queues.
pub(super) fn queued(frame: &Value) -> Option<&str> {
    let queues = kind(frame) == "chat:set_queue";
    frame["payload"]["text"]
        .as_str()
        .filter(|text| queues && !text.is_empty())
}

/// The text that a frame tells as taken.
pub(super) fn flushed(frame: &Value) -> Option<&str> {
    let tells = kind(frame) == "chat:queued_flushed";
    frame["payload"]["text"].as_str().filter(|_| tells)
}

/// A `chat:resync` for the session of a frame.
pub(super) fn resync_for(frame: &Value) -> Value {
    json!({ "type": "chat:resync", "payload": {
        "projectSlug": frame["payload"]["projectSlug"],
        "target": frame["payload"]["target"],
        "sessionId": session(frame),
    }})
}
