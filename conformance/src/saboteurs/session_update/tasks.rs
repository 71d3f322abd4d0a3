//! Faults of tasks.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use super::{Told, before, ends_task, ends_turn, kind, on_channel, text};
use crate::saboteurs::{ChannelInfo, Sabotage, Saboteur};

/// The saboteurs of this file, in catalogue order.
pub(super) const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("SUP-020", origin_is_the_latest_turn),
    Sabotage::new("SUP-021", updates_end_with_their_turn),
    Sabotage::new("SUP-022", updates_start_their_turn_again),
    Sabotage::new("SUP-038", every_delivery_has_its_own_id),
    Sabotage::new("SUP-048", ends_are_lost_after_their_turn),
];

/// Names the turn that began last as the origin.
fn origin_is_the_latest_turn() -> Arc<dyn Saboteur> {
    on_channel(|_: &ChannelInfo| {
        let mut latest = String::new();
        Told(move |mut told: Value| {
            if kind(&told) == "turn_started" {
                latest = text(&told, "/turn_id");
            }
            if kind(&told) == "task_updated" {
                told["event"]["origin_turn_id"] = latest.clone().into();
            }
            vec![told]
        })
    })
}

/// Does something to the task updates whose origin has ended on this connection.
fn once_ended(change: fn(Value) -> Vec<Value>) -> Arc<dyn Saboteur> {
    on_channel(move |_: &ChannelInfo| {
        let mut ended: Vec<String> = Vec::new();
        Told(move |told: Value| {
            if ends_turn(&told) {
                ended.push(text(&told, "/turn_id"));
            }
            let is_late = kind(&told) == "task_updated"
                && ended.contains(&text(&told, "/event/origin_turn_id"));
            if is_late { change(told) } else { vec![told] }
        })
    })
}

/// Drops them.
fn updates_end_with_their_turn() -> Arc<dyn Saboteur> {
    once_ended(|_| Vec::new())
}

/// Tells the start of the turn again before each.
fn updates_start_their_turn_again() -> Arc<dyn Saboteur> {
    once_ended(|told| {
        let turn = text(&told, "/event/origin_turn_id");
        let mut start = before(&told, "turn_started", "durable");
        start["turn_id"] = turn.clone().into();
        start["event"] = json!({
            "type": "turn_started",
            "ts": told["event"]["ts"],
            "event_id": start["event"]["event_id"],
            "session_id": told["session_id"],
            "turn_id": turn,
            "user_message_chars": 0,
        });
        vec![start, told]
    })
}

/// Drops the ends of tasks.
fn ends_are_lost_after_their_turn() -> Arc<dyn Saboteur> {
    once_ended(|told| {
        if ends_task(&told) {
            Vec::new()
        } else {
            vec![told]
        }
    })
}

/// Gives the end of a task another id on every connection.
fn every_delivery_has_its_own_id() -> Arc<dyn Saboteur> {
    let count = AtomicU64::new(0);
    on_channel(move |_: &ChannelInfo| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        Told(move |mut told: Value| {
            if ends_task(&told) {
                let id = format!("{}-{number}", text(&told, "/event/event_id"));
                told["event"]["event_id"] = id.into();
            }
            vec![told]
        })
    })
}
