//! Faults after a failed publish.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_spec::{catalogue::rule::StreamKind::Subscription, cursor::CursorBuf, sse::Frame};

use crate::saboteurs::{
    Draft, Out, Sabotage, Saboteur,
    adapters::{OnFrames, OnJson, connected_cursor},
};

/// The saboteurs of this file.
pub const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("COV-SUB-157", || {
        fanout(|payload| drop_member(payload, "totalCount"))
    }),
    Sabotage::new("COV-SUB-160", || {
        Arc::new(OnFrames::new(Subscription, |_| reset_in_the_old_epoch()))
    }),
    Sabotage::new("COV-SUB-190", || {
        fanout(|payload| payload["failedCount"] = json!(1))
    }),
    Sabotage::new("COV-SUB-191", || {
        fanout(|payload| payload["errors"] = json!([]))
    }),
];

/// Changes the payload of each `commit.fanout.failed` that the trace query tells.
fn fanout(change: fn(&mut Value)) -> Arc<dyn Saboteur> {
    Arc::new(OnJson::new(
        "/api/traces/:id",
        move |_: &str, trace: &mut Value| {
            let events = trace
                .get_mut("events")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten();
            for event in events.filter(|event| {
                event.get("type").and_then(Value::as_str) == Some("commit.fanout.failed")
            }) {
                if let Some(payload) = event.get_mut("payload") {
                    change(payload);
                }
            }
        },
    ))
}

fn drop_member(payload: &mut Value, name: &str) {
    if let Some(members) = payload.as_object_mut() {
        members.shift_remove(name);
    }
}

/// COV-SUB-160: the reset names the epoch that the connection had.
fn reset_in_the_old_epoch() -> impl FnMut(&Frame, &mut Out) + Send {
    let mut now: Option<CursorBuf> = None;
    move |frame, out| {
        now = connected_cursor(frame).or(now.take());
        let mut draft = Draft::of(frame);
        if let Some(now) = now
            .as_ref()
            .filter(|_| frame.event() == Some("system.reset"))
        {
            draft.edit_json(|document| {
                document["epoch"] = Value::from(now.epoch.clone());
                let latest = document
                    .get("latestSeq")
                    .and_then(Value::as_u64)
                    .unwrap_or_default();
                document["cursor"] =
                    Value::from(CursorBuf::new(now.epoch.clone(), latest).to_string());
            });
        }
        out.send(draft.to_bytes());
    }
}
