//! Coded saboteurs of area `session-update`. The simple ones are data, in the catalogue.
//!
//! - [`order`]: faults of order and time on one connection; [`tasks`]: of tasks;
//! - [`sharing`]: of several connections, and of reconnects;
//! - [`client`]: of clients under test.

use std::sync::Arc;

use serde_json::Value;

use super::{ChannelInfo, Message, MessageRewriter, OutMessage, Sabotage, Saboteur};

mod client;
mod order;
mod sharing;
mod tasks;

/// The coded saboteurs of this area, list by list.
pub const SABOTEURS: &[&[Sabotage]] = &[
    order::SABOTEURS,
    tasks::SABOTEURS,
    sharing::SABOTEURS,
    client::SABOTEURS,
];

/// A saboteur that is one function of a channel.
struct OnChannel<F>(F);

impl<F, R> Saboteur for OnChannel<F>
where
    F: Fn(&ChannelInfo) -> R + Send + Sync,
    R: MessageRewriter + 'static,
{
    fn channel(&self, info: &ChannelInfo) -> Option<Box<dyn MessageRewriter>> {
        Some(Box::new((self.0)(info)))
    }
}

/// A saboteur whose rewriter is made for each channel.
fn on_channel<F, R>(make: F) -> Arc<dyn Saboteur>
where
    F: Fn(&ChannelInfo) -> R + Send + Sync + 'static,
    R: MessageRewriter + 'static,
{
    Arc::new(OnChannel(make))
}

/// Rewrites what the server says: JSON in, any number of JSON out. What is no JSON passes.
struct Told<F>(F);

impl<F: FnMut(Value) -> Vec<Value> + Send> MessageRewriter for Told<F> {
    fn to_client(&mut self, message: Message) -> Vec<OutMessage> {
        match message.json() {
            Some(json) => (self.0)(json).iter().map(OutMessage::json).collect(),
            None => vec![OutMessage::send(message)],
        }
    }
}

/// Tells where the answer to a subscription comes, so that what is rebuilt before it can be told.
#[derive(Default)]
struct Subscribing {
    /// The id of the request that is not answered yet.
    open: Option<Value>,
}

impl Subscribing {
    /// The client sent this.
    fn asks(&mut self, message: &Message) {
        if let Some(json) = message.json()
            && json["method"] == "session/subscribe"
        {
            self.open = Some(json["request_id"].clone());
        }
    }

    /// Whether this is an event that is rebuilt, before the answer.
    fn rebuilds(&self, told: &Value) -> bool {
        self.open.is_some() && told["kind"] == "event"
    }

    /// Whether this is the answer.
    fn is_answer(&mut self, told: &Value) -> bool {
        let is_it = told["kind"] == "response" && self.open.as_ref() == Some(&told["request_id"]);
        if is_it {
            self.open = None;
        }
        is_it
    }
}

fn kind(told: &Value) -> &str {
    told["event"]["type"].as_str().unwrap_or_default()
}

fn ends_turn(told: &Value) -> bool {
    matches!(
        kind(told),
        "turn_completed" | "turn_failed" | "turn_cancelled"
    )
}

fn ends_task(told: &Value) -> bool {
    use turnwire_spec::session_update::events::TaskStatus;
    let status = told["event"]["task"]["status"].as_str().unwrap_or_default();
    kind(told) == "task_updated" && TaskStatus::text_is_terminal(status)
}

fn text(told: &Value, pointer: &str) -> String {
    let found = told.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}

/// A copy of an event that comes right before it: half a number lower, with another id.
fn before(told: &Value, kind: &str, durability: &str) -> Value {
    let mut copy = told.clone();
    copy["sequence"] = (told["sequence"].as_f64().unwrap_or_default() - 0.5).into();
    copy["durability"] = durability.into();
    copy["event"]["type"] = kind.into();
    copy["event"]["event_id"] = format!("{}-0", text(told, "/event/event_id")).into();
    copy
}
