//! Faults of the chat socket that need memory, or other sockets.
//!
//! - [`fanout`]: who gets a frame; [`frames`]: what frames become; [`requests`]: what becomes of a client's.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use super::{
    Sabotage,
    channel::{ChannelInfo, Message, MessageRewriter, OutMessage},
    saboteur::Saboteur,
};
use crate::transcript::Side;

pub mod fanout;
pub mod frames;
pub mod requests;

/// The saboteurs of the suite, file by file.
pub const SABOTEURS: &[&[Sabotage]] = &[fanout::SABOTEURS, frames::SABOTEURS, requests::SABOTEURS];

/// Rewrites each channel with what the function makes for it.
pub(super) struct OnChannel<F>(pub(super) F);

impl<F, R> Saboteur for OnChannel<F>
where
    F: Fn(&ChannelInfo) -> R + Send + Sync,
    R: MessageRewriter + 'static,
{
    fn channel(&self, info: &ChannelInfo) -> Option<Box<dyn MessageRewriter>> {
        Some(Box::new((self.0)(info)))
    }
}

/// Calls one function for the messages of both sides, with what has JSON; the rest passes.
pub(super) struct Each<F>(pub(super) F);

impl<F: FnMut(Side, &Value) -> Option<Vec<OutMessage>> + Send> MessageRewriter for Each<F> {
    fn to_client(&mut self, message: Message) -> Vec<OutMessage> {
        self.pass(Side::Server, message)
    }

    fn to_server(&mut self, message: Message) -> Vec<OutMessage> {
        self.pass(Side::Client, message)
    }
}

impl<F: FnMut(Side, &Value) -> Option<Vec<OutMessage>> + Send> Each<F> {
    fn pass(&mut self, from: Side, message: Message) -> Vec<OutMessage> {
        let changed = message.json().and_then(|json| (self.0)(from, &json));
        changed.unwrap_or_else(|| vec![OutMessage::send(message)])
    }
}

/// A saboteur of one function for each channel: `None` passes a message, a list replaces it.
pub(super) fn each<F, C>(make: F) -> Arc<dyn Saboteur>
where
    F: Fn(&ChannelInfo) -> C + Send + Sync + 'static,
    C: FnMut(Side, &Value) -> Option<Vec<OutMessage>> + Send + 'static,
{
    Arc::new(OnChannel(move |info: &ChannelInfo| Each(make(info))))
}

/// The kind of a frame.
pub(super) fn kind(frame: &Value) -> &str {
    frame
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A text of the payload.
pub(super) fn text<'f>(frame: &'f Value, name: &str) -> &'f str {
    frame
        .get("payload")
        .and_then(|payload| payload.get(name))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether it is a numbered frame of the server.
pub(super) fn is_numbered(from: Side, frame: &Value) -> bool {
    from == Side::Server && frame.pointer("/payload/seq").is_some()
}

/// The sessions that a client spoke of on a channel.
#[derive(Debug, Default)]
pub(super) struct Spoken(BTreeSet<String>);

impl Spoken {
    /// Learns from a frame of the client, and from the first frames that answer a new chat.
    pub(super) fn learn(&mut self, from: Side, frame: &Value) {
        if from == Side::Client && kind(frame) != "chat:continue" {
            self.0.insert(text(frame, "sessionId").to_owned());
        }
    }

    /// Whether the client spoke of a session.
    pub(super) fn of(&self, session: &str) -> bool {
        self.0.contains(session)
    }
}
