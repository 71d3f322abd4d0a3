//! Faults of epochs, resets and replay states.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use turnwire_spec::{catalogue::rule::StreamKind::Subscription, cursor::CursorBuf, sse::Frame};

use super::replay::reset;
use crate::{
    saboteurs::{
        Draft, FrameRewriter, Out, RequestInfo, Sabotage, Saboteur, Treatment,
        adapters::{
            Epochs, OnFrames, change_cursor, connected_cursor, cursor_of, id_of, read, with_id,
        },
    },
    transcript::{Request, ResponseHead},
};

/// The saboteurs of this file.
pub const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("COV-SUB-079", || {
        Arc::new(OnFrames::new(Subscription, |_| seq_counts_all_sessions))
    }),
    Sabotage::new("COV-SUB-081", || Arc::<OneEpochForever>::default()),
    Sabotage::new("COV-SUB-082", || Arc::<OneEpochForever>::default()),
    Sabotage::new("COV-SUB-085", || Arc::<ComparesSeqOnly>::default()),
    Sabotage::new("COV-SUB-088", || Arc::<ReadsDigitsAsSeq>::default()),
    Sabotage::new("COV-SUB-097", || {
        Arc::<ClearsWithTheLastSubscriber>::default()
    }),
    Sabotage::new("COV-SUB-115", || Arc::<RenewsAfterReset>::default()),
    Sabotage::new("COV-SUB-123", || Arc::<ResetsAtTheEdge>::default()),
];

/// COV-SUB-079: later events of a session have the numbers of sixty others in front of them.
fn seq_counts_all_sessions(frame: &Frame, out: &mut Out) {
    match id_of(frame).filter(|id| id.seq > 1) {
        Some(id) => out.send(with_id(
            frame,
            &CursorBuf::new(id.epoch, id.seq + 60).to_string(),
        )),
        None => out.pass(frame),
    }
}

/// Hands a subscription's frames to a function that shares the saboteur's memory.
fn watched(
    info: &RequestInfo,
    mut see: impl FnMut(&str, &Frame, &mut Out) + Send + 'static,
) -> Treatment {
    if info.stream() != Some(Subscription) {
        return Treatment::pass();
    }
    let session = info.session().unwrap_or_default();
    Treatment::each_frame(move |frame, out| see(&session, frame, out))
}

/// The cursor of a subscription's request gets the session's present epoch.
fn as_if_of_now(epochs: &Epochs, info: &RequestInfo, request: &mut Request) {
    let epoch = epochs.of(&info.session().unwrap_or_default());
    if let Some(epoch) = epoch.filter(|_| info.stream() == Some(Subscription)) {
        change_cursor(request, |text| {
            Some(CursorBuf::new(epoch.clone(), read(text)?.seq).to_string())
        });
    }
}

/// COV-SUB-081, COV-SUB-082: the epoch of a session is always the same text, whatever became of its state.
#[derive(Default)]
struct OneEpochForever {
    epochs: Epochs,
}

impl Saboteur for OneEpochForever {
    fn request(&self, info: &RequestInfo, request: &mut Request) {
        as_if_of_now(&self.epochs, info, request);
    }

    fn response(&self, info: &RequestInfo, _head: &mut ResponseHead) -> Treatment {
        let epochs = self.epochs.clone();
        watched(info, move |session, frame, out| {
            epochs.learn(session, frame);
            let forever = |seq| CursorBuf::new("forever", seq).to_string();
            let mut draft = Draft::of(frame);
            if let Some(id) = id_of(frame) {
                draft.set_line("id", &forever(id.seq));
            }
            draft.edit_json(|document| {
                for member in ["id", "cursor"] {
                    if let Some(cursor) = cursor_of(document, member) {
                        document[member] = Value::from(forever(cursor.seq));
                    }
                }
                if document.get("epoch").is_some() {
                    document["epoch"] = Value::from("forever");
                }
            });
            out.send(draft.to_bytes());
        })
    }
}

/// COV-SUB-085: a cursor is read as if its epoch were the present one.
#[derive(Default)]
struct ComparesSeqOnly {
    epochs: Epochs,
}

impl Saboteur for ComparesSeqOnly {
    fn request(&self, info: &RequestInfo, request: &mut Request) {
        as_if_of_now(&self.epochs, info, request);
    }

    fn response(&self, info: &RequestInfo, _head: &mut ResponseHead) -> Treatment {
        let epochs = self.epochs.clone();
        watched(info, move |session, frame, out| {
            epochs.learn(session, frame);
            out.pass(frame);
        })
    }
}

/// COV-SUB-088: digits alone are read as the seq of the present epoch.
#[derive(Default)]
struct ReadsDigitsAsSeq {
    epochs: Epochs,
}

impl Saboteur for ReadsDigitsAsSeq {
    fn request(&self, info: &RequestInfo, request: &mut Request) {
        let epoch = self.epochs.of(&info.session().unwrap_or_default());
        if let Some(epoch) = epoch.filter(|_| info.stream() == Some(Subscription)) {
            change_cursor(request, |text| {
                let seq = text.parse().ok()?;
                Some(CursorBuf::new(epoch.clone(), seq).to_string())
            });
        }
    }

    fn response(&self, info: &RequestInfo, _head: &mut ResponseHead) -> Treatment {
        let epochs = self.epochs.clone();
        watched(info, move |session, frame, out| {
            epochs.learn(session, frame);
            out.pass(frame);
        })
    }
}

/// What [`ClearsWithTheLastSubscriber`] knows of a session.
#[derive(Default)]
struct Subscribers {
    open: usize,
    cleared: bool,
}

/// COV-SUB-097: events that come when nobody is subscribed find a cleared state.
#[derive(Clone, Default)]
struct ClearsWithTheLastSubscriber {
    sessions: Arc<Mutex<BTreeMap<String, Subscribers>>>,
}

impl ClearsWithTheLastSubscriber {
    fn with<T>(&self, session: &str, act: impl FnOnce(&mut Subscribers) -> T) -> T {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        act(sessions.entry(session.to_owned()).or_default())
    }
}

impl Saboteur for ClearsWithTheLastSubscriber {
    fn request(&self, info: &RequestInfo, request: &mut Request) {
        let session = info.session().unwrap_or_default();
        if info.stream() == Some(Subscription) {
            if self.with(&session, |known| known.cleared) {
                change_cursor(request, |_| Some("never-issued:1".to_owned()));
            }
        } else if info.request.method == "PUT" {
            self.with(&session, |known| known.cleared |= known.open == 0);
        }
    }

    fn response(&self, info: &RequestInfo, _head: &mut ResponseHead) -> Treatment {
        if info.stream() != Some(Subscription) {
            return Treatment::pass();
        }
        let session = info.session().unwrap_or_default();
        self.with(&session, |known| known.open += 1);
        Treatment::frames(Counted {
            all: self.clone(),
            session,
        })
    }
}

/// A stream that is counted as long as it lives.
struct Counted {
    all: ClearsWithTheLastSubscriber,
    session: String,
}

impl FrameRewriter for Counted {}

impl Drop for Counted {
    fn drop(&mut self) {
        self.all.with(&self.session, |known| {
            known.open = known.open.saturating_sub(1)
        });
    }
}

/// COV-SUB-115: the cursor that a reset told is unknown a moment later.
#[derive(Default)]
struct RenewsAfterReset {
    told: Arc<Mutex<Vec<String>>>,
}

impl Saboteur for RenewsAfterReset {
    fn request(&self, info: &RequestInfo, request: &mut Request) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if info.stream() == Some(Subscription) {
            change_cursor(request, |text| {
                told.iter()
                    .any(|known| known == text)
                    .then(|| "never-issued:1".to_owned())
            });
        }
    }

    fn response(&self, info: &RequestInfo, _head: &mut ResponseHead) -> Treatment {
        let told = Arc::clone(&self.told);
        watched(info, move |_, frame, out| {
            if frame.event() == Some("system.reset")
                && let Some(cursor) = Draft::of(frame)
                    .json()
                    .as_ref()
                    .and_then(|data| cursor_of(data, "cursor"))
            {
                told.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(cursor.to_string());
            }
            out.pass(frame);
        })
    }
}

/// COV-SUB-123: a cursor at the buffer's oldest event gets a reset.
#[derive(Default)]
struct ResetsAtTheEdge {
    oldest: Arc<Mutex<Option<u64>>>,
}

impl Saboteur for ResetsAtTheEdge {
    fn response(&self, info: &RequestInfo, _head: &mut ResponseHead) -> Treatment {
        let (oldest, asked) = (Arc::clone(&self.oldest), info.query("lastEventId"));
        watched(info, move |_, frame, out| {
            out.pass(frame);
            let mut oldest = oldest.lock().unwrap_or_else(PoisonError::into_inner);
            let document = Draft::of(frame).json().unwrap_or_default();
            if let Some(told) = document.get("oldestSeq").and_then(Value::as_u64) {
                *oldest = Some(told);
            }
            let at_edge = asked
                .as_deref()
                .and_then(read)
                .is_some_and(|cursor| Some(cursor.seq) == *oldest);
            if let Some(now) = connected_cursor(frame).filter(|_| at_edge) {
                out.send(reset(frame, "gap", &now).to_bytes());
            }
        })
    }
}
