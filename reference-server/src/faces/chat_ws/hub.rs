//! Who gets what: sockets, subscriptions, and the turns of sessions with what is kept of them.
//!
//! Everything happens under one lock, so a replay ends exactly where the live frames begin. Nothing waits in it:
//! a frame is put into outboxes, which cut a socket that does not read.
//!
//! A session has at most one turn here: the one that runs, or the last one that ran, which lingers for a replay
//! until the next one begins.
//!
//! Source: seed 004, lines 18, 25, 36 and 43; public sources for sizes and times.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use turnwire_spec::chat_ws::server::{Active, KilledTask, Place, QueuedFlushed, Refusal};
use turnwire_spec::chat_ws::{ServerFrame, limits};
use turnwire_spec::covel::limits::TimeScale;
use turnwire_spec::time::format_ms;

use super::Settings;
use super::outbox::Outbox;
use super::turn::{Numbered, Turn};
use crate::engine::happening::{Happened, Happening};
use crate::engine::ids::{MessageId, SessionId};

/// Tells the sockets of this process apart.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct SocketId(u64);

/// A turn that a socket asked for, before it has begun.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// The socket that asked.
    pub(super) socket: SocketId,
    /// The model that was asked for.
    pub(super) model: Option<String>,
}

/// Turns that may be expected at a time; the oldest expectation goes first.
const EXPECTED: usize = 4096;

/// What a killed task is called when nothing is known of it.
const SOME_TASK: &str = "A background task was stopped before it was done.";

/// The hub.
pub(super) struct Hub {
    linger: Duration,
    default_model: Option<String>,
    context_limits: Vec<(String, u64)>,
    kept_frames: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sockets: BTreeMap<SocketId, Member>,
    next_socket: u64,
    chats: BTreeMap<SessionId, Room>,
    expected: VecDeque<(MessageId, Expected)>,
    /// Turns that began so far.
    turns: u64,
}

/// One socket.
struct Member {
    outbox: Arc<Outbox>,
    /// The sessions that it is subscribed to.
    sessions: BTreeSet<SessionId>,
}

/// One session.
#[derive(Default)]
struct Room {
    slug: Option<String>,
    subscribers: BTreeSet<SocketId>,
    turn: Option<Turn>,
}

impl Hub {
    pub(super) fn new(
        settings: &Settings,
        scale: TimeScale,
        default_model: Option<String>,
    ) -> Self {
        Self {
            linger: scale.scale(limits::LINGER),
            default_model,
            context_limits: settings.context_limits.clone(),
            kept_frames: settings.kept_frames,
            state: Mutex::default(),
        }
    }

    /// Takes a new socket in, and tells it which sessions run, the oldest turn first.
    pub(super) fn join(&self, outbox: Arc<Outbox>) -> SocketId {
        let mut state = self.state();
        state.next_socket += 1;
        let id = SocketId(state.next_socket);
        let mut running: Vec<_> = state
            .chats
            .iter()
            .filter_map(|(session, room)| Some((room.running()?.number, room.active(session)?)))
            .collect();
        running.sort_by_key(|(number, _)| *number);
        for (_, active) in running {
            outbox.put(&text(&active));
        }
        let sessions = BTreeSet::new();
        state.sockets.insert(id, Member { outbox, sessions });
        id
    }

    /// A socket has gone; turns that it began go on.
    pub(super) fn leave(&self, socket: SocketId) {
        let mut state = self.state();
        let left = state.sockets.remove(&socket);
        for session in left.into_iter().flat_map(|member| member.sessions) {
            if let Some(room) = state.chats.get_mut(&session) {
                room.subscribers.remove(&socket);
            }
        }
        state.sweep(self.linger);
    }

    /// Attaches a socket to a session for as long as it lives, and replays what it asks for. False when the socket has
    /// as many subscriptions as it may.
    pub(super) fn subscribe(
        &self,
        socket: SocketId,
        session: &SessionId,
        replay: bool,
        last: f64,
    ) -> bool {
        let mut state = self.state();
        state.sweep(self.linger);
        let Some(member) = state.sockets.get_mut(&socket) else {
            return true;
        };
        if !member.sessions.contains(session) {
            if member.sessions.len() >= limits::SUBSCRIPTIONS {
                return false;
            }
            member.sessions.insert(session.clone());
        }
        let outbox = Arc::clone(&member.outbox);
        let room = state.chats.entry(session.clone()).or_default();
        room.subscribers.insert(socket);
        if let (true, Some(turn)) = (replay, &room.turn) {
            match turn.after(last) {
                Some(frames) => frames.for_each(|frame| outbox.put(frame)),
                None => outbox.put(&text(&ServerFrame::Resync(room.place(session)))),
            }
        }
        if let Some(active) = room.active(session) {
            outbox.put(&text(&active));
        }
        true
    }

    /// A socket asked for a turn whose input is this message.
    pub(super) fn expect(&self, input: MessageId, expected: Expected) {
        let mut state = self.state();
        if state.expected.len() >= EXPECTED {
            state.expected.pop_front();
        }
        state.expected.push_back((input, expected));
    }

    /// That turn will not be.
    pub(super) fn forget(&self, input: &MessageId) -> Option<Expected> {
        self.state().forget(input)
    }

    /// That turn was refused: the socket that asked for it is told why.
    pub(super) fn refuse(&self, input: &MessageId, slug: &str, why: String) {
        let mut state = self.state();
        let Some(expected) = state.forget(input) else {
            return;
        };
        if let Some(member) = state.sockets.get(&expected.socket) {
            member
                .outbox
                .put(&text(&ServerFrame::Error(Refusal::of(slug, why))));
        }
    }

    /// Whether the project of a session is known.
    pub(super) fn knows_slug(&self, session: &SessionId) -> bool {
        let state = self.state();
        state
            .chats
            .get(session)
            .is_some_and(|room| room.slug.is_some())
    }

    /// The project of a session.
    pub(super) fn name(&self, session: &SessionId, slug: String) {
        let mut state = self.state();
        state.chats.entry(session.clone()).or_default().slug = Some(slug);
    }

    /// Tells the sockets what happened.
    pub(super) fn apply(&self, happening: &Happening) {
        let mut state = self.state();
        let session = &happening.session.id;
        match &happening.what {
            Happened::TurnStarted { input, .. } => {
                let expected = input.as_ref().and_then(|input| state.forget(input));
                let job = happening.turn_id.as_ref().map_or("", |turn| turn.as_str());
                self.begin(&mut state, session, job, expected);
            }
            Happened::CommandDone {
                turn,
                note,
                success,
            } => {
                self.begin(&mut state, session, turn.as_str(), None);
                state.number(session, |turn| turn.command(note, *success));
                state.end(session, self.linger);
            }
            Happened::TurnEnded(row) => {
                let limit = |model: Option<&str>| self.context_limit(model);
                state.number(session, |turn| turn.end(row, limit));
                state.end(session, self.linger);
            }
            Happened::QueueTaken { text: taken } => {
                let room = state.chats.entry(session.clone()).or_default();
                let frame = ServerFrame::QueuedFlushed(QueuedFlushed {
                    place: room.place(session),
                    text: taken.clone(),
                });
                state.tell_room(session, &text(&frame));
            }
            Happened::TaskKilled { summary } => {
                let room = state.chats.entry(session.clone()).or_default();
                let frame = ServerFrame::KilledTask(KilledTask {
                    place: room.place(session),
                    summary: summary.clone().unwrap_or_else(|| SOME_TASK.to_owned()),
                    timestamp: format_ms(happening.at.as_millisecond()),
                });
                state.tell_all(&text(&frame));
            }
            Happened::Deleted => {
                let gone = state.chats.remove(session);
                for socket in gone.into_iter().flat_map(|room| room.subscribers) {
                    if let Some(member) = state.sockets.get_mut(&socket) {
                        member.sessions.remove(session);
                    }
                }
            }
            what => state.number(session, |turn| turn.during(what)),
        }
    }

    /// A turn begins, and takes the place of the one that lingers.
    fn begin(&self, state: &mut State, session: &SessionId, job: &str, expected: Option<Expected>) {
        state.turns += 1;
        let number = state.turns;
        let origin = expected.as_ref().map(|expected| expected.socket);
        let model = expected.and_then(|expected| expected.model);
        let room = state.chats.entry(session.clone()).or_default();
        let place = room.place(session);
        let model = model.or_else(|| self.default_model.clone());
        let kept = self.kept_frames;
        room.turn = Some(Turn::new(number, job, place, origin, model, kept));
        if let Some(active) = room.active(session) {
            state.tell_all(&text(&active));
        }
    }

    fn context_limit(&self, model: Option<&str>) -> u64 {
        let known = self
            .context_limits
            .iter()
            .find(|(name, _)| Some(name.as_str()) == model);
        known.map_or(limits::CONTEXT_LIMIT, |(_, limit)| *limit)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget(&mut self, input: &MessageId) -> Option<Expected> {
        let place = self.expected.iter().position(|(id, _)| id == input)?;
        self.expected.remove(place).map(|(_, expected)| expected)
    }

    /// Numbers the frames that a running turn makes of something, keeps them, and sends them out.
    fn number(&mut self, session: &SessionId, make: impl FnOnce(&mut Turn) -> Vec<Numbered>) {
        let Some(turn) = self
            .chats
            .get_mut(session)
            .and_then(|room| room.turn.as_mut())
        else {
            return;
        };
        if turn.has_ended() {
            return;
        }
        for frame in make(turn) {
            let Some(room) = self.chats.get_mut(session) else {
                return;
            };
            let Some(turn) = room.turn.as_mut() else {
                return;
            };
            let sent = turn.keep(frame);
            self.tell_room(session, &sent);
        }
    }

    /// The running turn has ended: it lingers.
    fn end(&mut self, session: &SessionId, linger: Duration) {
        let Some(room) = self.chats.get_mut(session) else {
            return;
        };
        let Some(turn) = room.turn.as_mut().filter(|turn| !turn.has_ended()) else {
            return;
        };
        turn.ended = Some(Instant::now());
        let idle = ServerFrame::Active(Active {
            running: false,
            ..turn.active(session)
        });
        self.tell_all(&text(&idle));
        self.sweep(linger);
    }

    /// Sends to the sockets of a session, one copy each.
    fn tell_room(&self, session: &SessionId, text: &Utf8Bytes) {
        let Some(room) = self.chats.get(session) else {
            return;
        };
        let origin = room.turn.as_ref().and_then(|turn| turn.origin);
        let others = origin.filter(|origin| !room.subscribers.contains(origin));
        for socket in room.subscribers.iter().copied().chain(others) {
            if let Some(member) = self.sockets.get(&socket) {
                member.outbox.put(text);
            }
        }
    }

    fn tell_all(&self, text: &Utf8Bytes) {
        let members = self.sockets.values();
        members.for_each(|member| member.outbox.put(text));
    }

    /// Forgets turns that have lingered long enough, and sessions of which nothing is left.
    fn sweep(&mut self, linger: Duration) {
        for room in self.chats.values_mut() {
            let is_over = room
                .turn
                .as_ref()
                .and_then(|turn| turn.ended)
                .is_some_and(|ended| ended.elapsed() > linger);
            if is_over {
                room.turn = None;
            }
        }
        self.chats
            .retain(|_, room| room.turn.is_some() || !room.subscribers.is_empty());
    }
}

impl Room {
    fn running(&self) -> Option<&Turn> {
        self.turn.as_ref().filter(|turn| !turn.has_ended())
    }

    /// That a turn runs, when one does.
    fn active(&self, session: &SessionId) -> Option<ServerFrame> {
        Some(ServerFrame::Active(self.running()?.active(session)))
    }

    fn place(&self, session: &SessionId) -> Place {
        let slug = self.slug.as_deref();
        Place::of(
            slug.unwrap_or(turnwire_spec::chat_ws::SCRATCH),
            session.as_str(),
        )
    }
}

fn text(frame: &ServerFrame) -> Utf8Bytes {
    frame.to_text().into()
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
