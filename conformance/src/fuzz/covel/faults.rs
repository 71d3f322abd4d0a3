//! Faults of subscriptions that the fuzzer has to find, planted between the harness and a conformant server.
//!
//! Each is one mistake that a server's author could make at reconnects; the reference server itself stays clean.
//! What a fault needs to know of the past it has from what passed by: those are in [`past`].

use std::sync::Arc;

use serde_json::Value;
use turnwire_spec::{catalogue::rule::StreamKind::Subscription, cursor::CursorBuf, sse::Frame};

use crate::{
    fuzz::PlantedFault,
    saboteurs::{
        Draft, Out, RequestInfo,
        adapters::{OnFrames, OnRequest, change_cursor, connected_cursor, cursor_of, id_of, read},
    },
    transcript::Request,
};

mod past;

use past::{
    Watching, ignores_the_epoch, leaks, numbers_go_on_in, numbers_go_on_in_views,
    numbers_go_on_out, older_connection_misses, one_epoch_for_ever_in, one_epoch_for_ever_out,
    one_epoch_in_views, pass, reads_digits, replays_after_reset, replays_to_everybody, trims_early,
};

macro_rules! fault {
    ($name:literal, $about:literal, $make:expr) => {
        PlantedFault {
            name: $name,
            about: $about,
            make: || Arc::new($make),
        }
    };
}

/// The planted faults.
pub const FAULTS: &[PlantedFault] = &[
    fault!(
        "replay-off-by-one",
        "the first event after the cursor is not replayed",
        OnFrames::new(Subscription, |_| first_replayed_is_lost())
    ),
    fault!(
        "replay-includes-cursor",
        "the event of the cursor itself is replayed too",
        OnRequest(one_event_earlier)
    ),
    fault!(
        "buffer-trimmed-early",
        "only three events are kept for a replay; a cursor before them gets a gap",
        Watching::new(trims_early, pass)
    ),
    fault!(
        "partial-replay",
        "when more than two events are due only the newest two are replayed, and nothing says so",
        OnFrames::new(Subscription, |_| newest_two_only())
    ),
    fault!(
        "epoch-reused-after-restart",
        "after a restart the session has its former epoch, and its numbers begin again",
        Watching::with_views(
            one_epoch_for_ever_in,
            one_epoch_for_ever_out,
            one_epoch_in_views
        )
    ),
    fault!(
        "numbering-goes-on-after-restart",
        "after a restart the session has its former epoch and its numbers go on, but the events are gone",
        Watching::with_views(numbers_go_on_in, numbers_go_on_out, numbers_go_on_in_views)
    ),
    fault!(
        "duplicate-at-the-seam",
        "the last replayed event is sent once more before the first live one",
        OnFrames::new(Subscription, |_| duplicate_at_the_seam())
    ),
    fault!(
        "loss-at-the-seam",
        "the first live event after a replay is lost",
        OnFrames::new(Subscription, |_| loss_at_the_seam())
    ),
    fault!(
        "precedence-swapped",
        "the cursor in the header wins over the one in the query",
        OnRequest(header_wins)
    ),
    fault!(
        "header-ignored",
        "a cursor in the header is not looked at",
        OnRequest(header_is_ignored)
    ),
    fault!(
        "reset-with-an-id",
        "a reset has an id line",
        OnFrames::new(Subscription, |_| reset_has_an_id)
    ),
    fault!(
        "reset-missing",
        "a cursor that cannot be continued is answered with live events and no reset",
        OnFrames::new(Subscription, |info| reset_is_swallowed(
            info,
            &["gap", "epoch-change"]
        ))
    ),
    fault!(
        "lost-publish-not-told",
        "after a lost publish the connection just ends",
        OnFrames::new(Subscription, |info| reset_is_swallowed(
            info,
            &["publish-failed"]
        ))
    ),
    fault!(
        "reset-with-the-wrong-reason",
        "another epoch is called a gap",
        OnFrames::new(Subscription, |_| other_reason)
    ),
    fault!(
        "reset-with-an-old-cursor",
        "a reset tells the cursor of the event before the newest one",
        OnFrames::new(Subscription, |_| old_cursor_in_reset)
    ),
    fault!(
        "partial-replay-after-reset",
        "a reset is followed by the events that are still there",
        Watching::new(|_, _, _| {}, replays_after_reset)
    ),
    fault!(
        "reset-when-nothing-is-missed",
        "a cursor at the newest event is answered with a reset",
        OnFrames::new(Subscription, resets_the_newest)
    ),
    fault!(
        "wrong-subscriber",
        "a subscriber gets an event of another session",
        Watching::new(|_, _, _| {}, leaks)
    ),
    fault!(
        "connected-cursor-too-old",
        "system.connected names the event before the newest one",
        OnFrames::new(Subscription, |_| connected_is_older)
    ),
    fault!(
        "replay-out-of-order",
        "two neighbours of a replay change places",
        OnFrames::new(Subscription, |_| swaps_neighbours())
    ),
    fault!(
        "live-before-replay",
        "the last replayed event comes after the first live one",
        OnFrames::new(Subscription, |_| live_comes_first())
    ),
    fault!(
        "replay-without-a-cursor",
        "a connection without a cursor gets the whole buffer",
        Watching::new(replays_to_everybody, pass)
    ),
    fault!(
        "digits-are-a-cursor",
        "digits alone are read as a number of the present epoch",
        Watching::new(reads_digits, pass)
    ),
    fault!(
        "epoch-not-compared",
        "a cursor of another epoch is continued when its number fits",
        Watching::new(ignores_the_epoch, pass)
    ),
    fault!(
        "replay-with-fresh-content",
        "a replayed event has another payload than the live one",
        OnFrames::new(Subscription, |_| replayed_differs())
    ),
    fault!(
        "one-of-two-subscribers-misses-one",
        "of several connections only the newest gets every event",
        Watching::new(|_, _, _| {}, older_connection_misses)
    ),
];

// Faults without memory beyond their own stream.

/// The seq of a frame that belongs to the replay.
fn replayed(frame: &Frame, now: Option<&CursorBuf>) -> Option<u64> {
    let (id, now) = (id_of(frame)?, now?);
    (id.epoch == now.epoch && id.seq <= now.seq).then_some(id.seq)
}

fn first_replayed_is_lost() -> impl FnMut(&Frame, &mut Out) + Send {
    let (mut now, mut lost) = (None, false);
    move |frame, out| {
        now = connected_cursor(frame).or(now.take());
        if !lost && replayed(frame, now.as_ref()).is_some() {
            lost = true;
            return;
        }
        out.pass(frame);
    }
}

fn one_event_earlier(info: &RequestInfo, request: &mut Request) {
    if info.stream() == Some(Subscription) {
        change_cursor(request, |text| {
            let cursor = read(text)?;
            Some(CursorBuf::new(cursor.epoch, cursor.seq.checked_sub(1)?).to_string())
        });
    }
}

fn newest_two_only() -> impl FnMut(&Frame, &mut Out) + Send {
    let mut now: Option<CursorBuf> = None;
    move |frame, out| {
        now = connected_cursor(frame).or(now.take());
        let newest = now.as_ref().map_or(0, |now| now.seq);
        match replayed(frame, now.as_ref()) {
            Some(seq) if seq + 2 <= newest => {}
            _ => out.pass(frame),
        }
    }
}

fn duplicate_at_the_seam() -> impl FnMut(&Frame, &mut Out) + Send {
    let (mut now, mut last): (_, Option<Frame>) = (None, None);
    move |frame, out| {
        now = connected_cursor(frame).or(now.take());
        if replayed(frame, now.as_ref()).is_some() {
            last = Some(frame.clone());
        } else if id_of(frame).is_some()
            && let Some(last) = last.take()
        {
            out.pass(&last);
        }
        out.pass(frame);
    }
}

fn loss_at_the_seam() -> impl FnMut(&Frame, &mut Out) + Send {
    let (mut now, mut replays) = (None, false);
    move |frame, out| {
        now = connected_cursor(frame).or(now.take());
        if replayed(frame, now.as_ref()).is_some() {
            replays = true;
        } else if id_of(frame).is_some() && std::mem::take(&mut replays) {
            return;
        }
        out.pass(frame);
    }
}

fn header_wins(info: &RequestInfo, request: &mut Request) {
    let header = info.header("last-event-id");
    if let Some(header) = header.filter(|_| info.stream() == Some(Subscription)) {
        let query = info.query("lastEventId");
        let header = header.to_owned();
        change_cursor(request, |text| {
            (Some(text) == query.as_deref()).then(|| header.clone())
        });
    }
}

fn header_is_ignored(info: &RequestInfo, request: &mut Request) {
    if info.stream() == Some(Subscription) {
        request
            .headers
            .retain(|(name, _)| !name.eq_ignore_ascii_case("last-event-id"));
    }
}

fn is_reset(frame: &Frame) -> Option<Value> {
    (frame.event() == Some("system.reset")).then_some(())?;
    Draft::of(frame).json()
}

fn reset_has_an_id(frame: &Frame, out: &mut Out) {
    let cursor = is_reset(frame).and_then(|reset| cursor_of(&reset, "cursor"));
    match cursor {
        None => out.pass(frame),
        Some(cursor) => {
            let mut draft = Draft::of(frame);
            draft.append(&format!("id: {cursor}"));
            out.send(draft.to_bytes());
        }
    }
}

fn reset_is_swallowed(
    _: &RequestInfo,
    reasons: &'static [&'static str],
) -> impl FnMut(&Frame, &mut Out) + Send + use<> {
    move |frame, out| {
        let reason =
            is_reset(frame).and_then(|reset| Some(reset.get("reason")?.as_str()?.to_owned()));
        if !reason.is_some_and(|reason| reasons.contains(&reason.as_str())) {
            out.pass(frame);
        }
    }
}

fn edit_reset(frame: &Frame, out: &mut Out, edit: impl FnOnce(&mut Value)) {
    if is_reset(frame).is_none() {
        return out.pass(frame);
    }
    let mut draft = Draft::of(frame);
    draft.edit_json(edit);
    out.send(draft.to_bytes());
}

fn other_reason(frame: &Frame, out: &mut Out) {
    edit_reset(frame, out, |reset| {
        if reset["reason"] == "epoch-change" {
            reset["reason"] = "gap".into();
        }
    });
}

fn old_cursor_in_reset(frame: &Frame, out: &mut Out) {
    edit_reset(frame, out, |reset| {
        if let Some(now) = cursor_of(reset, "cursor").filter(|now| now.seq > 0) {
            let older = CursorBuf::new(now.epoch, now.seq - 1);
            reset["latestSeq"] = older.seq.into();
            reset["cursor"] = older.to_string().into();
        }
    });
}

fn resets_the_newest(info: &RequestInfo) -> impl FnMut(&Frame, &mut Out) + Send + use<> {
    let asked = info.query("lastEventId");
    move |frame, out| {
        out.pass(frame);
        let now = connected_cursor(frame);
        if let Some(now) = now.filter(|now| asked.as_deref() == Some(&now.to_string())) {
            out.send(reset(frame, "gap", &now).to_bytes());
        }
    }
}

/// A reset that says `now` is the present, beside a `system.connected` frame.
fn reset(connected: &Frame, reason: &str, now: &CursorBuf) -> Draft {
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

fn connected_is_older(frame: &Frame, out: &mut Out) {
    match connected_cursor(frame).filter(|now| now.seq > 0) {
        None => out.pass(frame),
        Some(now) => {
            let mut draft = Draft::of(frame);
            let older = CursorBuf::new(now.epoch, now.seq - 1).to_string();
            draft.edit_json(|document| document["cursor"] = older.into());
            out.send(draft.to_bytes());
        }
    }
}

fn swaps_neighbours() -> impl FnMut(&Frame, &mut Out) + Send {
    let (mut now, mut held, mut done): (Option<CursorBuf>, Option<Frame>, bool) =
        (None, None, false);
    move |frame, out| {
        now = connected_cursor(frame).or(now.take());
        let newest = now.as_ref().map_or(0, |now| now.seq);
        let seq = replayed(frame, now.as_ref());
        // The last one has no neighbour to wait for.
        if !done && held.is_none() && seq.is_some_and(|seq| seq < newest) {
            held = Some(frame.clone());
            return;
        }
        out.pass(frame);
        if let Some(held) = held.take() {
            out.pass(&held);
            done = true;
        }
    }
}

fn live_comes_first() -> impl FnMut(&Frame, &mut Out) + Send {
    let (mut now, mut held): (Option<CursorBuf>, Option<Frame>) = (None, None);
    move |frame, out| {
        now = connected_cursor(frame).or(now.take());
        let newest = now.as_ref().map(|now| now.seq);
        if replayed(frame, now.as_ref()).is_some_and(|seq| Some(seq) == newest) {
            held = Some(frame.clone());
            return;
        }
        out.pass(frame);
        if let Some(held) = held.take() {
            out.pass(&held);
        }
    }
}

fn replayed_differs() -> impl FnMut(&Frame, &mut Out) + Send {
    let mut now = None;
    move |frame, out| {
        now = connected_cursor(frame).or(now.take());
        if replayed(frame, now.as_ref()).is_none() {
            return out.pass(frame);
        }
        let mut draft = Draft::of(frame);
        draft.edit_json(|document| document["payload"]["replayed"] = true.into());
        out.send(draft.to_bytes());
    }
}
