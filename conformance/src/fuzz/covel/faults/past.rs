//! Faults that remember: what passed on other connections, and before a restart.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use turnwire_spec::{catalogue::rule::StreamKind::Subscription, cursor::CursorBuf, sse::Frame};

use super::{is_reset, replayed};
use crate::{
    saboteurs::{
        Draft, Out, RequestInfo, Saboteur, Treatment,
        adapters::{change_cursor, connected_cursor, cursor_of, id_of, read, with_id},
        log::EventLog,
    },
    transcript::{Request, ResponseHead},
};

/// What a fault knows of the past. It is shared by all connections and outlives restarts of the target.
#[derive(Default)]
pub(super) struct Past {
    log: EventLog,
    sessions: Mutex<BTreeMap<String, Known>>,
}

/// What a fault knows of one session.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The newest position that anything told.
    newest: Option<CursorBuf>,
    /// What is added to the numbers of the present epoch.
    offset: u64,
    /// Number of the newest connection.
    connection: u64,
    /// Events that the connection's fault has swallowed.
    swallowed: u64,
}

impl Past {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, session: &str) -> Known {
        self.known().get(session).cloned().unwrap_or_default()
    }

    /// Learns from a frame where the session stands.
    fn learn(&self, session: &str, frame: &Frame) {
        let told = connected_cursor(frame).or_else(|| id_of(frame));
        let mut sessions = self.known();
        let known = sessions.entry(session.to_owned()).or_default();
        if let Some(told) = told {
            let newer = known
                .newest
                .as_ref()
                .is_none_or(|newest| newest.epoch != told.epoch || newest.seq < told.seq);
            if newer {
                known.newest = Some(told);
            }
        }
        drop(sessions);
        self.log.note(session, frame);
    }
}

/// A stream that a fault acts upon.
pub(super) struct Stream {
    session: String,
    number: u64,
    now: Option<CursorBuf>,
    /// Whether it has done what it does once.
    done: bool,
}

type OnAsk = fn(&Past, &RequestInfo, &mut Request);
type OnFrame = fn(&Past, &mut Stream, &Frame, &mut Out);
type OnView = fn(&Past, &str, &mut Value);

/// Path of a session's view.
const VIEW: &str = "/api/sessions/:id/view";

/// A fault that sees all subscriptions and remembers them.
pub(super) struct Watching {
    past: Arc<Past>,
    ask: OnAsk,
    frame: OnFrame,
    view: Option<OnView>,
}

impl Watching {
    pub(super) fn new(ask: OnAsk, frame: OnFrame) -> Self {
        Self {
            past: Arc::default(),
            ask,
            frame,
            view: None,
        }
    }

    /// With a change of the view, whose cursor has to fit.
    pub(super) fn with_views(ask: OnAsk, frame: OnFrame, view: OnView) -> Self {
        Self {
            view: Some(view),
            ..Self::new(ask, frame)
        }
    }
}

impl Saboteur for Watching {
    fn request(&self, info: &RequestInfo, request: &mut Request) {
        if info.stream() == Some(Subscription) {
            (self.ask)(&self.past, info, request);
        }
    }

    fn response(&self, info: &RequestInfo, head: &mut ResponseHead) -> Treatment {
        if let Some(view) = self
            .view
            .filter(|_| info.is("GET", VIEW) && head.status == 200)
        {
            let (past, session) = (Arc::clone(&self.past), info.session().unwrap_or_default());
            return Treatment::json(move |document| view(&past, &session, document));
        }
        if info.stream() != Some(Subscription) || head.status != 200 {
            return Treatment::pass();
        }
        let (past, act) = (Arc::clone(&self.past), self.frame);
        let session = info.session().unwrap_or_default();
        past.known().entry(session.clone()).or_default().connection = info.number;
        let mut stream = Stream {
            session,
            number: info.number,
            now: None,
            done: false,
        };
        Treatment::each_frame(move |frame, out| {
            stream.now = connected_cursor(frame).or(stream.now.take());
            act(&past, &mut stream, frame, out);
            past.learn(&stream.session, frame);
        })
    }
}

pub(super) fn pass(_: &Past, _: &mut Stream, frame: &Frame, out: &mut Out) {
    out.pass(frame);
}

pub(super) fn newest(past: &Past, info: &RequestInfo) -> Option<CursorBuf> {
    past.of(&info.session().unwrap_or_default()).newest
}

/// A cursor more than three events old is made one from the future, which is a gap.
pub(super) fn trims_early(past: &Past, info: &RequestInfo, request: &mut Request) {
    let Some(now) = newest(past, info) else {
        return;
    };
    change_cursor(request, |text| {
        let cursor = read(text)?;
        let old = cursor.epoch == now.epoch && cursor.seq + 3 < now.seq;
        old.then(|| CursorBuf::new(cursor.epoch, now.seq + 1_000_000).to_string())
    });
}

/// The cursors of a client that was told one epoch for ever are those of the present one.
pub(super) fn one_epoch_for_ever_in(past: &Past, info: &RequestInfo, request: &mut Request) {
    if let Some(now) = newest(past, info) {
        change_cursor(request, |text| {
            let cursor = read(text).filter(|cursor| cursor.epoch == FOR_EVER)?;
            Some(CursorBuf::new(now.epoch.clone(), cursor.seq).to_string())
        });
    }
}

const FOR_EVER: &str = "for-ever";

pub(super) fn one_epoch_for_ever_out(_: &Past, _: &mut Stream, frame: &Frame, out: &mut Out) {
    out.send(renumbered(frame, 0));
}

pub(super) fn one_epoch_in_views(past: &Past, session: &str, view: &mut Value) {
    if let Some(cursor) = cursor_of(view, "eventCursor") {
        // What the view tells is learned too.
        offset_of(past, session, Some(&cursor));
        view["eventCursor"] = CursorBuf::new(FOR_EVER, cursor.seq).to_string().into();
    }
}

pub(super) fn numbers_go_on_in_views(past: &Past, session: &str, view: &mut Value) {
    if let Some(cursor) = cursor_of(view, "eventCursor") {
        let offset = offset_of(past, session, Some(&cursor));
        view["eventCursor"] = CursorBuf::new(FOR_EVER, cursor.seq + offset)
            .to_string()
            .into();
    }
}

/// What is added to the numbers of a session, once it is known that `told` is its position.
pub(super) fn offset_of(past: &Past, session: &str, told: Option<&CursorBuf>) -> u64 {
    let mut sessions = past.known();
    let known = sessions.entry(session.to_owned()).or_default();
    if let Some(told) = told {
        match &known.newest {
            Some(newest) if newest.epoch == told.epoch => {}
            before => {
                known.offset += before.as_ref().map_or(0, |newest| newest.seq);
                known.newest = Some(told.clone());
            }
        }
    }
    known.offset
}

/// A frame with the one epoch, and numbers so much higher.
pub(super) fn renumbered(frame: &Frame, offset: u64) -> Vec<u8> {
    let moved = |seq: u64| CursorBuf::new(FOR_EVER, seq + offset).to_string();
    let mut draft = Draft::of(frame);
    if let Some(id) = id_of(frame) {
        draft.set_line("id", &moved(id.seq));
    }
    draft.edit_json(|document| {
        for member in ["id", "cursor"] {
            if let Some(cursor) = cursor_of(document, member) {
                document[member] = moved(cursor.seq).into();
            }
        }
        if document.get("epoch").is_some() {
            document["epoch"] = FOR_EVER.into();
        }
        for member in ["oldestSeq", "latestSeq"] {
            if let Some(seq) = document
                .get(member)
                .and_then(Value::as_u64)
                .filter(|seq| *seq > 0)
            {
                document[member] = (seq + offset).into();
            }
        }
    });
    draft.to_bytes()
}

pub(super) fn numbers_go_on_in(past: &Past, info: &RequestInfo, request: &mut Request) {
    let known = past.of(&info.session().unwrap_or_default());
    if let Some(now) = known.newest {
        change_cursor(request, |text| {
            let cursor = read(text).filter(|cursor| cursor.epoch == FOR_EVER)?;
            // What came before the restart counts as the beginning of the present epoch.
            let seq = cursor.seq.saturating_sub(known.offset);
            Some(CursorBuf::new(now.epoch.clone(), seq).to_string())
        });
    }
}

pub(super) fn numbers_go_on_out(past: &Past, stream: &mut Stream, frame: &Frame, out: &mut Out) {
    let offset = offset_of(past, &stream.session, connected_cursor(frame).as_ref());
    out.send(renumbered(frame, offset));
}

pub(super) fn replays_after_reset(past: &Past, stream: &mut Stream, frame: &Frame, out: &mut Out) {
    out.pass(frame);
    let now = stream.now.as_ref().filter(|_| is_reset(frame).is_some());
    if let Some(now) = now {
        let start = CursorBuf::new(now.epoch.clone(), 0);
        for event in past
            .log
            .after(&stream.session, start.as_cursor())
            .iter()
            .take(2)
        {
            out.pass(&event.frame);
        }
    }
}

/// Once a connection, a subscriber of one session gets the newest event of another, with a number that fits.
pub(super) fn leaks(past: &Past, stream: &mut Stream, frame: &Frame, out: &mut Out) {
    out.pass(frame);
    let Some(id) = id_of(frame).filter(|_| !stream.done) else {
        return;
    };
    let others: Vec<String> = past.known().keys().cloned().collect();
    let other = others.iter().rfind(|other| **other != stream.session);
    let event = other.and_then(|other| past.log.events(other).pop());
    if let Some(event) = event {
        stream.done = true;
        out.send(with_id(
            &event.frame,
            &CursorBuf::new(id.epoch, id.seq + 1).to_string(),
        ));
    }
}

pub(super) fn replays_to_everybody(past: &Past, info: &RequestInfo, request: &mut Request) {
    let without = info.query("lastEventId").is_none() && info.header("last-event-id").is_none();
    if let Some(now) = newest(past, info).filter(|_| without) {
        request
            .target
            .push_str(&format!("&lastEventId={}:0", now.epoch));
    }
}

pub(super) fn reads_digits(past: &Past, info: &RequestInfo, request: &mut Request) {
    if let Some(now) = newest(past, info) {
        change_cursor(request, |text| {
            let seq = text.parse().ok()?;
            Some(CursorBuf::new(now.epoch.clone(), seq).to_string())
        });
    }
}

pub(super) fn ignores_the_epoch(past: &Past, info: &RequestInfo, request: &mut Request) {
    if let Some(now) = newest(past, info) {
        change_cursor(request, |text| {
            let cursor = read(text)?;
            Some(CursorBuf::new(now.epoch.clone(), cursor.seq).to_string())
        });
    }
}

/// Of a session's connections the older ones lose every third live event.
pub(super) fn older_connection_misses(
    past: &Past,
    stream: &mut Stream,
    frame: &Frame,
    out: &mut Out,
) {
    let is_live = id_of(frame).is_some() && replayed(frame, stream.now.as_ref()).is_none();
    if is_live {
        let mut sessions = past.known();
        let known = sessions.entry(stream.session.clone()).or_default();
        if known.connection != stream.number {
            known.swallowed += 1;
            if known.swallowed % 3 == 1 {
                return;
            }
        }
    }
    out.pass(frame);
}
