//! Faults of order and time on one connection.

use std::sync::Arc;

use serde_json::Value;

use super::{Told, kind, on_channel, text};
use crate::saboteurs::{ChannelInfo, Message, MessageRewriter, OutMessage, Sabotage, Saboteur};

/// The saboteurs of this file, in catalogue order.
pub(super) const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("SUP-002", deltas_merged),
    Sabotage::new("SUP-006", session_of_the_last_subscription),
    Sabotage::new("SUP-013", deltas_with_the_message),
    Sabotage::new("SUP-044", request_with_the_result),
];

/// Sends two deltas that stand together as one.
fn deltas_merged() -> Arc<dyn Saboteur> {
    on_channel(|_: &ChannelInfo| {
        let mut held: Option<Value> = None;
        Told(move |mut told: Value| {
            if kind(&told) != "assistant_delta" {
                return held.take().into_iter().chain([told]).collect();
            }
            match held.take() {
                None => {
                    held = Some(told);
                    Vec::new()
                }
                Some(first) => {
                    let whole = text(&first, "/event/text") + &text(&told, "/event/text");
                    told["event"]["text"] = whole.into();
                    vec![told]
                }
            }
        })
    })
}

/// Names the session that was subscribed to last in every event.
fn session_of_the_last_subscription() -> Arc<dyn Saboteur> {
    on_channel(|_: &ChannelInfo| LastSession::default())
}

#[derive(Default)]
struct LastSession(Option<Value>);

impl MessageRewriter for LastSession {
    fn to_client(&mut self, message: Message) -> Vec<OutMessage> {
        match (message.json(), &self.0) {
            (Some(mut told), Some(session)) if told["kind"] == "event" => {
                told["session_id"] = session.clone();
                vec![OutMessage::json(&told)]
            }
            _ => vec![OutMessage::send(message)],
        }
    }

    fn to_server(&mut self, message: Message) -> Vec<OutMessage> {
        if let Some(asked) = message.json()
            && asked["method"] == "session/subscribe"
        {
            self.0 = Some(asked["params"]["session_id"].clone());
        }
        vec![OutMessage::send(message)]
    }
}

/// Holds everything from the first event of one type back until one of another type comes.
fn held(from: &'static str, until: &'static str) -> Arc<dyn Saboteur> {
    on_channel(move |_: &ChannelInfo| {
        let mut held: Vec<Value> = Vec::new();
        Told(move |told: Value| {
            let is_end = kind(&told) == until || told["kind"] == "response";
            if kind(&told) != from && held.is_empty() {
                return vec![told];
            }
            held.push(told);
            if is_end {
                std::mem::take(&mut held)
            } else {
                Vec::new()
            }
        })
    })
}

/// Sends the deltas together with the completed message.
fn deltas_with_the_message() -> Arc<dyn Saboteur> {
    held("assistant_delta", "assistant_message_completed")
}

/// Sends the request of a tool together with its result.
fn request_with_the_result() -> Arc<dyn Saboteur> {
    held("tool_requested", "tool_result")
}
