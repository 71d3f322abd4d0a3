//! Faults of clients: in what they send, in what they make of what they hear, and in what they show.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use super::{Told, on_channel, text};
use crate::saboteurs::{ChannelInfo, Message, MessageRewriter, OutMessage, Sabotage, Saboteur};

/// The saboteurs of this file, in catalogue order.
pub(super) const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("SUP-003", reads_after_each_event),
    Sabotage::new("SUP-023", task_wakes_its_turn),
    Sabotage::new("SUP-035", drops_low_numbers),
    Sabotage::new("SUP-039", one_notice_a_session),
    Sabotage::new("SUP-041", turn_read_from_the_event_id),
    Sabotage::new("SUP-043", reads_event_records),
    Sabotage::new("SUP-045", block_comes_with_the_result),
    Sabotage::new("SUP-046", complete_at_a_hundred_percent),
    Sabotage::new("SUP-049", durable_ends_the_turn),
];

/// Changes what the client shows.
struct Shows(fn(&mut Value));

impl Saboteur for Shows {
    fn report(&self, report: &mut Value) {
        if let Some(state) = report.get_mut("state") {
            (self.0)(state);
        }
    }
}

fn shows(change: fn(&mut Value)) -> Arc<dyn Saboteur> {
    Arc::new(Shows(change))
}

/// Every turn that is shown.
fn turns(state: &mut Value) -> impl Iterator<Item = &mut Value> {
    state["turns"].as_array_mut().into_iter().flatten()
}

/// Reads the session after each event.
fn reads_after_each_event() -> Arc<dyn Saboteur> {
    on_channel(|_: &ChannelInfo| Reads::default())
}

#[derive(Default)]
struct Reads(u64);

impl MessageRewriter for Reads {
    fn to_client(&mut self, message: Message) -> Vec<OutMessage> {
        let told = message.json().unwrap_or_default();
        let mut out = vec![OutMessage::send(message)];
        if told["kind"] == "event" {
            self.0 += 1;
            let params = json!({ "session_id": told["session_id"] });
            out.push(OutMessage::answer(&json!({
                "kind": "request",
                "request_id": format!("poll-{}", self.0),
                "method": "session/replay",
                "params": params,
            })));
        }
        out
    }
}

/// Asks for the record of an event at its start.
fn reads_event_records() -> Arc<dyn Saboteur> {
    on_channel(|_: &ChannelInfo| ReadsRecords)
}

struct ReadsRecords;

impl MessageRewriter for ReadsRecords {
    fn to_server(&mut self, message: Message) -> Vec<OutMessage> {
        let subscribes = message
            .json()
            .is_some_and(|asked| asked["method"] == "session/subscribe");
        let read = json!({
            "kind": "request",
            "request_id": "records",
            "method": "session/event",
            "params": { "event_id": "0" },
        });
        let first = subscribes.then(|| OutMessage::json(&read));
        first
            .into_iter()
            .chain([OutMessage::send(message)])
            .collect()
    }
}

/// Drops events whose number is not above the highest one of earlier connections.
fn drops_low_numbers() -> Arc<dyn Saboteur> {
    let highest = Arc::new(AtomicU64::new(0));
    on_channel(move |_: &ChannelInfo| {
        let highest = Arc::clone(&highest);
        Told(move |told: Value| match told["sequence"].as_u64() {
            Some(number) if number <= highest.load(Ordering::Relaxed) => Vec::new(),
            Some(number) => {
                highest.store(number, Ordering::Relaxed);
                vec![told]
            }
            None => vec![told],
        })
    })
}

/// Takes the part of an event's id before a colon as its turn.
fn turn_read_from_the_event_id() -> Arc<dyn Saboteur> {
    on_channel(|_: &ChannelInfo| {
        Told(|mut told: Value| {
            let id = text(&told, "/event/event_id");
            if let Some((turn, _)) = id.split_once(':') {
                told["turn_id"] = turn.into();
            }
            vec![told]
        })
    })
}

/// Shows a turn as running again when a task of it has ended.
fn task_wakes_its_turn() -> Arc<dyn Saboteur> {
    shows(|state| {
        let has_tasks = state["notices"].as_array().is_some_and(|it| !it.is_empty());
        if has_tasks && let Some(turn) = turns(state).next() {
            turn["status"] = "running".into();
        }
    })
}

/// Shows the end of one task only.
fn one_notice_a_session() -> Arc<dyn Saboteur> {
    shows(|state| {
        if let Some(notices) = state["notices"].as_array_mut() {
            notices.truncate(1);
        }
    })
}

/// Shows no tool that has not ended.
fn block_comes_with_the_result() -> Arc<dyn Saboteur> {
    shows(|state| {
        for turn in turns(state) {
            if let Some(tools) = turn["tools"].as_array_mut() {
                tools.retain(|tool| tool["status"] != "pending");
            }
        }
    })
}

/// Shows a tool as complete that says it is at a hundred percent.
fn complete_at_a_hundred_percent() -> Arc<dyn Saboteur> {
    shows(|state| {
        for turn in turns(state) {
            for tool in turn["tools"].as_array_mut().into_iter().flatten() {
                if tool["progress"]["percent"] == 100 {
                    tool["status"] = "completed".into();
                }
            }
        }
    })
}

/// Shows a turn as ended after any durable event.
fn durable_ends_the_turn() -> Arc<dyn Saboteur> {
    shows(|state| {
        for turn in turns(state) {
            let has_tools = turn["tools"].as_array().is_some_and(|it| !it.is_empty());
            if has_tools && turn["status"] == "running" {
                turn["status"] = "completed".into();
            }
        }
    })
}
