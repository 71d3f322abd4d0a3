//! Faults of replay: too little, too much, out of order.

use std::sync::Arc;

use serde_json::Value;
use turnwire_spec::{catalogue::rule::StreamKind::Subscription, cursor::CursorBuf, sse::Frame};

use crate::{
    saboteurs::{
        Draft, Out, RequestInfo, Sabotage, Saboteur, Treatment,
        adapters::{Epochs, OnFrames, OnRequest, change_cursor, connected_cursor, id_of, read},
    },
    transcript::{Request, ResponseHead},
};

/// The saboteurs of this file.
pub const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("COV-SUB-023", || {
        Arc::new(OnFrames::new(Subscription, |_| replay_only_the_newest()))
    }),
    Sabotage::new("COV-SUB-024", || {
        Arc::new(OnRequest(compare_with_greater_or_equal))
    }),
    Sabotage::new("COV-SUB-027", || {
        Arc::new(OnFrames::new(Subscription, |_| {
            live_event_before_the_last_replayed()
        }))
    }),
    Sabotage::new("COV-SUB-029", || {
        Arc::new(OnFrames::new(Subscription, reset_when_nothing_is_left))
    }),
    Sabotage::new("COV-SUB-031", || Arc::<ReplayToEverybody>::default()),
    Sabotage::new("COV-SUB-033", || {
        Arc::new(OnFrames::new(Subscription, |info| {
            older_cursor(info.query("topics").is_none())
        }))
    }),
    Sabotage::new("COV-SUB-034", || {
        Arc::new(OnFrames::new(Subscription, |info| {
            older_cursor(info.query("topics").is_some())
        }))
    }),
    Sabotage::new("COV-SUB-036", || {
        Arc::new(OnRequest(cursor_of_seq_0_is_unknown))
    }),
    Sabotage::new("COV-SUB-076", || {
        Arc::new(OnRequest(ids_are_not_the_accepted_cursors))
    }),
];

/// COV-SUB-023: of what is due only the newest event is replayed.
fn replay_only_the_newest() -> impl FnMut(&Frame, &mut Out) + Send {
    let mut now = None;
    move |frame, out| {
        now = connected_cursor(frame).or(now.take());
        let newest = now.as_ref().map(|now| now.seq);
        match replayed(frame, now.as_ref()) {
            Some(seq) if Some(seq) != newest => {}
            _ => out.pass(frame),
        }
    }
}

/// The seq of a frame that belongs to the replay.
fn replayed(frame: &Frame, now: Option<&CursorBuf>) -> Option<u64> {
    let (id, now) = (id_of(frame)?, now?);
    (id.epoch == now.epoch && id.seq <= now.seq).then_some(id.seq)
}

/// COV-SUB-024: the event of the cursor itself is replayed too.
fn compare_with_greater_or_equal(info: &RequestInfo, request: &mut Request) {
    if info.stream() == Some(Subscription) {
        change_cursor(request, |text| {
            let cursor = read(text)?;
            Some(CursorBuf::new(cursor.epoch, cursor.seq.checked_sub(1)?).to_string())
        });
    }
}

/// COV-SUB-027: the last replayed event is held back until a live one was sent.
fn live_event_before_the_last_replayed() -> impl FnMut(&Frame, &mut Out) + Send {
    let mut now = None;
    let mut held: Option<Frame> = None;
    move |frame, out| {
        now = connected_cursor(frame).or(now.take());
        let last_replayed = replayed(frame, now.as_ref())
            .is_some_and(|seq| now.as_ref().is_some_and(|now| seq == now.seq));
        if last_replayed {
            held = Some(frame.clone());
            return;
        }
        out.pass(frame);
        if let Some(held) = held.take() {
            out.pass(&held);
        }
    }
}

/// COV-SUB-029: a cursor that equals the newest id is answered with a reset.
fn reset_when_nothing_is_left(info: &RequestInfo) -> impl FnMut(&Frame, &mut Out) + Send + use<> {
    let asked = info.query("lastEventId");
    move |frame, out| {
        out.pass(frame);
        if let Some(now) =
            connected_cursor(frame).filter(|now| asked.as_deref() == Some(&now.to_string()))
        {
            out.send(reset(frame, "gap", &now).to_bytes());
        }
    }
}

/// A `system.reset` that says `now` is the present, beside a `system.connected` frame.
pub(super) fn reset(connected: &Frame, reason: &str, now: &CursorBuf) -> Draft {
    let told = Draft::of(connected).json().unwrap_or_default();
    let data = serde_json::json!({
        "sessionId": told.get("sessionId").unwrap_or(&Value::Null),
        "reason": reason,
        "epoch": now.epoch,
        "oldestSeq": now.seq.min(1),
        "latestSeq": now.seq,
        "cursor": now.to_string(),
        "timestamp": told.get("timestamp").unwrap_or(&Value::Null),
    });
    Draft::new("system.reset", &data.to_string())
}

/// COV-SUB-031: a connection without a cursor gets the whole buffer.
#[derive(Default)]
struct ReplayToEverybody {
    epochs: Epochs,
}

impl Saboteur for ReplayToEverybody {
    fn request(&self, info: &RequestInfo, request: &mut Request) {
        let without = info.query("lastEventId").is_none() && info.header("last-event-id").is_none();
        let epoch = self.epochs.of(&info.session().unwrap_or_default());
        if let Some(epoch) = epoch.filter(|_| info.stream() == Some(Subscription) && without) {
            request.target.push_str(&format!("&lastEventId={epoch}:0"));
        }
    }

    fn response(&self, info: &RequestInfo, _head: &mut ResponseHead) -> Treatment {
        if info.stream() != Some(Subscription) {
            return Treatment::pass();
        }
        let (epochs, session) = (self.epochs.clone(), info.session().unwrap_or_default());
        Treatment::each_frame(move |frame, out| {
            epochs.learn(&session, frame);
            out.pass(frame);
        })
    }
}

/// COV-SUB-033, COV-SUB-034: `system.connected` names the event before the newest one.
fn older_cursor(applies: bool) -> impl FnMut(&Frame, &mut Out) + Send {
    move |frame, out| match connected_cursor(frame).filter(|now| applies && now.seq > 0) {
        None => out.pass(frame),
        Some(now) => {
            let mut draft = Draft::of(frame);
            let older = CursorBuf::new(now.epoch, now.seq - 1);
            draft.edit_json(|document| document["cursor"] = Value::from(older.to_string()));
            out.send(draft.to_bytes());
        }
    }
}

/// COV-SUB-036: a cursor whose seq is 0 is answered with a reset.
fn cursor_of_seq_0_is_unknown(info: &RequestInfo, request: &mut Request) {
    if info.stream() == Some(Subscription) {
        change_cursor(request, |text| {
            (read(text)?.seq == 0).then(|| "never-issued:0".to_owned())
        });
    }
}

/// COV-SUB-076: the accepted cursor is not the id as it was written.
fn ids_are_not_the_accepted_cursors(info: &RequestInfo, request: &mut Request) {
    if info.stream() == Some(Subscription) {
        change_cursor(request, |text| {
            (read(text)?.seq > 0).then(|| format!("x-{text}"))
        });
    }
}
