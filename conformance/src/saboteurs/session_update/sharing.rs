//! Faults of several connections, and of reconnects.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use serde_json::Value;

use super::{Subscribing, Told, before, kind, on_channel, text};
use crate::saboteurs::{ChannelInfo, Message, MessageRewriter, OutMessage, Sabotage, Saboteur};

/// The saboteurs of this file, in catalogue order.
pub(super) const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("SUP-008", one_interface_without_durability),
    Sabotage::new("SUP-009", rebuilt_in_bulk),
    Sabotage::new("SUP-024", one_counter_for_all),
    Sabotage::new("SUP-025", told_to_everybody),
    Sabotage::new("SUP-026", told_to_all_subscribers),
    Sabotage::new("SUP-031", nothing_left_after_a_restart),
    Sabotage::new("SUP-032", deltas_rebuilt),
    Sabotage::new("SUP-034", sequence_goes_on),
    Sabotage::new("SUP-037", ids_made_while_wrapping),
    Sabotage::new("SUP-047", record_stored_later),
];

/// The second connection gets no class.
fn one_interface_without_durability() -> Arc<dyn Saboteur> {
    on_channel(|info: &ChannelInfo| {
        let second = info.number == 1;
        Told(move |mut told: Value| {
            if second && let Some(members) = told.as_object_mut() {
                members.remove("durability");
            }
            vec![told]
        })
    })
}

/// Every connection but the first makes its own ids.
fn ids_made_while_wrapping() -> Arc<dyn Saboteur> {
    on_channel(|info: &ChannelInfo| {
        let number = info.number;
        Told(move |mut told: Value| {
            if number > 0 && told["kind"] == "event" {
                let id = format!("{}-{number}", text(&told, "/event/event_id"));
                told["event"]["event_id"] = id.into();
            }
            vec![told]
        })
    })
}

/// All connections count together.
fn one_counter_for_all() -> Arc<dyn Saboteur> {
    let counter = Arc::new(AtomicU64::new(0));
    on_channel(move |_: &ChannelInfo| {
        let counter = Arc::clone(&counter);
        Told(move |mut told: Value| {
            if told["kind"] == "event" {
                told["sequence"] = (counter.fetch_add(1, Ordering::Relaxed) + 1).into();
            }
            vec![told]
        })
    })
}

/// A later connection counts on from where the earlier ones were when it opened.
fn sequence_goes_on() -> Arc<dyn Saboteur> {
    let highest = Arc::new(AtomicU64::new(0));
    on_channel(move |_: &ChannelInfo| {
        let highest = Arc::clone(&highest);
        let start = highest.load(Ordering::Relaxed);
        Told(move |mut told: Value| {
            if let Some(number) = told["sequence"].as_u64() {
                highest.fetch_max(start + number, Ordering::Relaxed);
                told["sequence"] = (start + number).into();
            }
            vec![told]
        })
    })
}

/// Whoever listens to nothing hears of everything.
fn told_to_everybody() -> Arc<dyn Saboteur> {
    let heard = Arc::default();
    on_channel(move |info: &ChannelInfo| Leak::new(&heard, info, 2))
}

/// Whoever listens to one session hears of all.
fn told_to_all_subscribers() -> Arc<dyn Saboteur> {
    let heard = Arc::default();
    on_channel(move |info: &ChannelInfo| Leak::new(&heard, info, 1))
}

/// Sends what the first connection heard to another one, before the next message to that one, once.
struct Leak {
    heard: Arc<Mutex<Vec<Value>>>,
    listens: bool,
    leaks: bool,
    /// Messages to this connection so far; the answer to `initialize` comes first.
    count: u64,
    /// The last number on this connection.
    last: f64,
}

impl Leak {
    fn new(heard: &Arc<Mutex<Vec<Value>>>, info: &ChannelInfo, to: u64) -> Self {
        Self {
            heard: Arc::clone(heard),
            listens: info.number == 0,
            leaks: info.number == to,
            count: 0,
            last: 0.0,
        }
    }
}

impl MessageRewriter for Leak {
    fn to_client(&mut self, message: Message) -> Vec<OutMessage> {
        let Some(told) = message.json() else {
            return vec![OutMessage::send(message)];
        };
        let heard = Arc::clone(&self.heard);
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let is_event = told["kind"] == "event";
        if self.listens && is_event {
            heard.push(told.clone());
        }
        self.count += 1;
        let mut out = Vec::new();
        if self.leaks && self.count > 1 {
            // Between two numbers of its own; a connection that heard nothing yet counts them as its first.
            let step = if self.last == 0.0 { 1.0 } else { 0.001 };
            for mut stolen in heard.drain(..) {
                self.last += step;
                stolen["sequence"] = self.last.into();
                self.leaks = false;
                out.push(OutMessage::json(&stolen));
            }
        }
        if let Some(number) = told["sequence"].as_f64() {
            self.last = number;
        }
        out.push(OutMessage::json(&told));
        out
    }
}

/// What becomes of the events that are rebuilt, on all connections but the first.
struct Rebuilding {
    later: bool,
    subscribing: Subscribing,
    held: Vec<Value>,
    change: fn(&mut Vec<Value>, Value) -> Vec<Value>,
    answer: fn(&mut Value, Vec<Value>),
}

fn rebuilding(
    change: fn(&mut Vec<Value>, Value) -> Vec<Value>,
    answer: fn(&mut Value, Vec<Value>),
) -> Arc<dyn Saboteur> {
    // Counted here and not by the proxy, which is another one after a restart.
    let count = AtomicU64::new(0);
    on_channel(move |_: &ChannelInfo| Rebuilding {
        later: count.fetch_add(1, Ordering::Relaxed) > 0,
        subscribing: Subscribing::default(),
        held: Vec::new(),
        change,
        answer,
    })
}

impl MessageRewriter for Rebuilding {
    fn to_client(&mut self, message: Message) -> Vec<OutMessage> {
        let Some(mut told) = message.json().filter(|_| self.later) else {
            return vec![OutMessage::send(message)];
        };
        if self.subscribing.rebuilds(&told) {
            let out = (self.change)(&mut self.held, told);
            return out.iter().map(OutMessage::json).collect();
        }
        if self.subscribing.is_answer(&told) {
            (self.answer)(&mut told, std::mem::take(&mut self.held));
        }
        vec![OutMessage::json(&told)]
    }

    fn to_server(&mut self, message: Message) -> Vec<OutMessage> {
        self.subscribing.asks(&message);
        vec![OutMessage::send(message)]
    }
}

/// Puts what is rebuilt into the answer.
fn rebuilt_in_bulk() -> Arc<dyn Saboteur> {
    rebuilding(
        |held, told| {
            held.push(told);
            Vec::new()
        },
        |answer, held| answer["result"]["events"] = held.into(),
    )
}

/// Rebuilds nothing.
fn nothing_left_after_a_restart() -> Arc<dyn Saboteur> {
    rebuilding(|_, _| Vec::new(), |_, _| {})
}

/// Splits a rebuilt message into deltas.
fn deltas_rebuilt() -> Arc<dyn Saboteur> {
    rebuilding(
        |_, told| {
            if kind(&told) == "assistant_message_completed" {
                let mut delta = before(&told, "assistant_delta", "incremental");
                delta["event"]["text"] = told["event"]["content"].clone();
                return vec![delta, told];
            }
            vec![told]
        },
        |_, _| {},
    )
}

/// Tool records are read without their ends.
fn record_stored_later() -> Arc<dyn Saboteur> {
    on_channel(|_: &ChannelInfo| {
        Told(|mut told: Value| {
            if let Some(Value::Array(tools)) = told.pointer_mut("/result/tools") {
                for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
                    tool.remove("result");
                    tool.remove("status");
                }
            }
            vec![told]
        })
    })
}
