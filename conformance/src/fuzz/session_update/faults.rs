//! Faults of reconnects over `session-update` that the fuzzer has to find. What a fault leaves out or adds is numbered
//! anew, so that the numbers of a connection do not give it away.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;

use crate::{
    fuzz::PlantedFault,
    saboteurs::{ChannelInfo, Message, MessageRewriter, OutMessage, Saboteur},
};

macro_rules! fault {
    ($name:literal, $about:literal, $numbers:expr, $act:expr) => {
        PlantedFault {
            name: $name,
            about: $about,
            make: || {
                Arc::new(Fault {
                    act: $act,
                    numbers: $numbers,
                    past: Arc::default(),
                })
            },
        }
    };
}

/// The planted faults.
pub const FAULTS: &[PlantedFault] = &[
    fault!(
        "rebuilt-first-missing",
        "the first event is not rebuilt",
        true,
        |at, event, out| {
            if !(at.rebuilding && at.rebuilt == 1) {
                out.push(event);
            }
        }
    ),
    fault!(
        "rebuilt-end-missing",
        "the ends of turns are not rebuilt",
        true,
        |at, event, out| {
            if !(at.rebuilding && ends(&event)) {
                out.push(event);
            }
        }
    ),
    fault!(
        "rebuilt-tool-missing",
        "results of tools are not rebuilt",
        true,
        |at, event, out| {
            if !(at.rebuilding && kind(&event) == "tool_result") {
                out.push(event);
            }
        }
    ),
    fault!(
        "rebuilt-twice",
        "each rebuilt event comes twice",
        true,
        |at, event, out| {
            if at.rebuilding {
                out.push(event.clone());
            }
            out.push(event);
        }
    ),
    fault!(
        "rebuilt-out-of-order",
        "the first two rebuilt events change places",
        true,
        |at, event, out| {
            if at.rebuilding && at.rebuilt == 1 {
                at.held = Some(event);
                return;
            }
            out.push(event);
            out.extend(at.held.take());
        }
    ),
    fault!(
        "duplicate-at-the-seam",
        "the last rebuilt event is sent again before the first live one",
        true,
        |at, event, out| {
            if at.rebuilding {
                at.last = Some(event.clone());
            } else {
                out.extend(at.last.take());
            }
            out.push(event);
        }
    ),
    fault!(
        "loss-at-the-seam",
        "the first live durable event after a subscription is lost",
        true,
        |at, event, out| {
            let first = !at.rebuilding && at.subscribed && is_durable(&event) && !at.done;
            if first {
                at.done = true;
            } else {
                out.push(event);
            }
        }
    ),
    fault!(
        "live-end-lost",
        "the end of a turn is not told live to who subscribed",
        true,
        |at, event, out| {
            if at.rebuilding || !at.subscribed || at.acts || !ends(&event) {
                out.push(event);
            }
        }
    ),
    fault!(
        "delta-replayed",
        "the newest delta is sent again after the end of its turn",
        true,
        |at, event, out| {
            let over = ends(&event) && !at.rebuilding;
            if kind(&event) == "assistant_delta" {
                at.last = Some(event.clone());
            }
            out.push(event);
            if over {
                out.extend(at.last.take());
            }
        }
    ),
    fault!(
        "wrong-subscriber",
        "a connection hears the events of every session",
        true,
        |at, event, out| {
            let session = event["session_id"].as_str().unwrap_or_default().to_owned();
            let other = at.past(|past| {
                past.iter()
                    .rfind(|known| known["session_id"] != session.as_str())
                    .cloned()
            });
            if is_durable(&event) {
                at.past(|past| past.push(event.clone()));
            }
            out.push(event);
            if !at.done
                && let Some(other) = other
            {
                at.done = true;
                out.push(other);
            }
        }
    ),
    fault!(
        "sequence-goes-on",
        "a new connection goes on with the numbers of the ones before",
        false,
        |at, mut event, out| {
            event["sequence"] = (event["sequence"].as_u64().unwrap_or_default() + at.number).into();
            out.push(event);
        }
    ),
    fault!(
        "sequence-starts-anew",
        "live events are numbered from 1 after what was rebuilt",
        false,
        |at, mut event, out| {
            if at.subscribed && !at.rebuilding {
                let sequence = event["sequence"].as_u64().unwrap_or_default();
                let rebuilt = at.rebuilt.min(sequence.saturating_sub(1));
                event["sequence"] = (sequence - rebuilt).into();
            }
            out.push(event);
        }
    ),
    fault!(
        "sequence-repeats",
        "the end of a turn has the number of the event before it",
        false,
        |_, mut event, out| {
            if ends(&event) {
                event["sequence"] = event["sequence"]
                    .as_u64()
                    .unwrap_or_default()
                    .saturating_sub(1)
                    .into();
            }
            out.push(event);
        }
    ),
    fault!(
        "rebuilt-with-other-content",
        "rebuilt texts are cut",
        true,
        |at, mut event, out| {
            if at.rebuilding && kind(&event) == "assistant_message_completed" {
                event["event"]["content"] = "...".into();
            }
            out.push(event);
        }
    ),
    fault!(
        "rebuilt-without-turn",
        "rebuilt ends of turns name another turn",
        true,
        |at, mut event, out| {
            if at.rebuilding && ends(&event) && at.number % 2 == 1 {
                event["turn_id"] = "turn-0".into();
                event["event"]["turn_id"] = "turn-0".into();
            }
            out.push(event);
        }
    ),
];

fn kind(event: &Value) -> &str {
    event["event"]["type"].as_str().unwrap_or_default()
}

fn ends(event: &Value) -> bool {
    matches!(
        kind(event),
        "turn_completed" | "turn_failed" | "turn_cancelled"
    )
}

fn is_durable(event: &Value) -> bool {
    event["durability"] == "durable"
}

type Act = fn(&mut At, Value, &mut Vec<Value>);

/// One fault, on every connection.
struct Fault {
    act: Act,
    /// Whether events are numbered anew.
    numbers: bool,
    past: Arc<Mutex<Vec<Value>>>,
}

/// Where a connection stands.
struct At {
    act: Act,
    numbers: bool,
    past: Arc<Mutex<Vec<Value>>>,
    /// Position among the connections, from 0.
    number: u64,
    /// Subscriptions that are not answered yet.
    asked: BTreeSet<String>,
    /// A subscription is being answered.
    rebuilding: bool,
    /// A subscription was answered.
    subscribed: bool,
    /// It prompts.
    acts: bool,
    /// Events that were rebuilt.
    rebuilt: u64,
    /// Events that were sent.
    sent: u64,
    done: bool,
    last: Option<Value>,
    held: Option<Value>,
}

impl Saboteur for Fault {
    fn channel(&self, info: &ChannelInfo) -> Option<Box<dyn MessageRewriter>> {
        Some(Box::new(At {
            act: self.act,
            numbers: self.numbers,
            past: Arc::clone(&self.past),
            number: info.number,
            asked: BTreeSet::new(),
            rebuilding: false,
            subscribed: false,
            acts: false,
            rebuilt: 0,
            sent: 0,
            done: false,
            last: None,
            held: None,
        }))
    }
}

impl At {
    fn past<T>(&self, act: impl FnOnce(&mut Vec<Value>) -> T) -> T {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        if past.len() > 1000 {
            past.drain(..500);
        }
        act(&mut past)
    }
}

impl MessageRewriter for At {
    fn to_server(&mut self, message: Message) -> Vec<OutMessage> {
        if let Some(json) = message.json() {
            if json["method"] == "session/subscribe" {
                self.asked.insert(json["request_id"].to_string());
                self.rebuilding = true;
            }
            self.acts |= json["method"] == "session/prompt";
        }
        vec![OutMessage::send(message)]
    }

    fn to_client(&mut self, message: Message) -> Vec<OutMessage> {
        let Some(json) = message.json() else {
            return vec![OutMessage::send(message)];
        };
        if json["kind"] != "event" {
            if self.asked.remove(&json["request_id"].to_string()) {
                self.rebuilding = !self.asked.is_empty();
                self.subscribed |= json.get("result").is_some();
            }
            return vec![OutMessage::send(message)];
        }
        self.rebuilt += u64::from(self.rebuilding);
        let mut out = Vec::new();
        (self.act)(self, json, &mut out);
        if self.numbers {
            for event in &mut out {
                self.sent += 1;
                event["sequence"] = self.sent.into();
            }
        }
        out.iter().map(OutMessage::json).collect()
    }
}
