//! What a saboteur does to a message channel: a WebSocket, or a channel of lines.
//!
//! A [`Saboteur`](super::Saboteur) is asked for a [`MessageRewriter`] when a channel opens. Without one the
//! channel passes untouched, byte for byte. A rewriter sees whole messages of both sides, control frames
//! included, and says what happens for each in a list of [`OutMessage`]s. It does no I/O and reads no clock: all
//! times are those of the protocol, before scaling. What a fault needs beyond the message at hand, such as the
//! other channels, it reaches through an [`Outlet`].

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc;

use super::saboteur::RequestInfo;
use crate::transcript::{Side, WsFrame, views::messages::kind_of};

/// A message, a control frame, or a line (which is a text).
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A text message, or a line without its end.
    Text(String),
    /// A binary message; also a text that is no UTF-8, which passes as it is.
    Binary(Bytes),
    /// A ping.
    Ping(Bytes),
    /// A pong.
    Pong(Bytes),
    /// A close frame, or the end of a channel of lines.
    Close(Option<(u16, String)>),
}

impl Message {
    /// Its JSON, when it is a text with JSON.
    pub fn json(&self) -> Option<Value> {
        match self {
            Self::Text(text) => serde_json::from_str(text).ok(),
            _ => None,
        }
    }

    /// Its kind, as rules name it; see [`turnwire_spec::catalogue::messages`].
    pub fn kind(&self) -> String {
        let named = self
            .json()
            .and_then(|json| kind_of(&json).map(str::to_owned));
        named.unwrap_or_else(|| {
            match self {
                Self::Text(_) => ":text",
                Self::Binary(_) => ":binary",
                Self::Ping(_) => ":ping",
                Self::Pong(_) => ":pong",
                Self::Close(_) => ":close",
            }
            .to_owned()
        })
    }
}

impl From<WsFrame> for Message {
    fn from(frame: WsFrame) -> Self {
        match frame {
            WsFrame::Text(text) => Self::Text(text),
            WsFrame::Binary(bytes) => Self::Binary(bytes),
            WsFrame::Ping(bytes) => Self::Ping(bytes),
            WsFrame::Pong(bytes) => Self::Pong(bytes),
            WsFrame::Close(code) => Self::Close(code),
        }
    }
}

impl From<Message> for WsFrame {
    fn from(message: Message) -> Self {
        match message {
            Message::Text(text) => Self::Text(text),
            Message::Binary(bytes) => Self::Binary(bytes),
            Message::Ping(bytes) => Self::Ping(bytes),
            Message::Pong(bytes) => Self::Pong(bytes),
            Message::Close(code) => Self::Close(code),
        }
    }
}

/// What happens next on a channel, towards one side.
#[derive(Clone, Debug, PartialEq)]
pub struct OutMessage {
    /// Held back for so long, with all that follows in its direction, before scaling.
    pub delay: Duration,
    /// What happens.
    pub act: Act,
}

/// One thing that happens on a channel.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// The message goes on its way.
    Send(Message),
    /// A message goes to the side from which the one at hand came.
    Answer(Message),
    /// Both sides are closed: with a close frame of this code on a WebSocket, by the end elsewhere.
    Close(u16),
    /// Both connections break off.
    Cut,
}

impl OutMessage {
    /// Sends it on its way at once.
    pub fn send(message: Message) -> Self {
        Self::of(Act::Send(message))
    }

    /// Sends this JSON on its way at once.
    pub fn json(json: &Value) -> Self {
        Self::send(Message::Text(json.to_string()))
    }

    /// Sends this JSON back.
    pub fn answer(json: &Value) -> Self {
        Self::of(Act::Answer(Message::Text(json.to_string())))
    }

    /// Does this at once.
    pub fn of(act: Act) -> Self {
        Self {
            delay: Duration::ZERO,
            act,
        }
    }

    /// After so long, before scaling.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// Rewrites one channel. By default everything passes.
pub trait MessageRewriter: Send {
    /// The server sent a message; what follows goes to the client.
    fn to_client(&mut self, message: Message) -> Vec<OutMessage> {
        vec![OutMessage::send(message)]
    }

    /// The client sent a message; what follows goes to the server.
    fn to_server(&mut self, message: Message) -> Vec<OutMessage> {
        vec![OutMessage::send(message)]
    }
}

/// What kind of channel it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChannelKind {
    /// A WebSocket.
    WebSocket,
    /// Lines, over a socket or a program's standard input and output.
    Lines,
}

/// A channel that opens.
#[derive(Clone, Debug)]
pub struct ChannelInfo {
    /// What it is.
    pub kind: ChannelKind,
    /// The upgrade request; an empty one for lines.
    pub request: RequestInfo,
    /// Its position among the channels of this saboteur's proxy, from 0.
    pub number: u64,
    /// Sends on this channel from elsewhere, for as long as it is open.
    pub outlet: Outlet,
}

/// Sends on a channel from outside of its rewriter: later, or from another channel's.
#[derive(Clone, Debug)]
pub struct Outlet(pub(super) mpsc::UnboundedSender<(Side, OutMessage)>);

impl Outlet {
    /// Sends to one side. Nothing happens when the channel has gone; what waits is bounded by what a saboteur makes.
    pub fn send(&self, to: Side, message: OutMessage) {
        // A channel that has gone takes nothing.
        let _ = self.0.send((to, message));
    }

    /// Sends JSON to the client.
    pub fn to_client(&self, json: &Value) {
        self.send(Side::Client, OutMessage::json(json));
    }

    /// Sends JSON to the server.
    pub fn to_server(&self, json: &Value) {
        self.send(Side::Server, OutMessage::json(json));
    }

    /// Whether the channel has gone.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// An outlet that leads nowhere, for tests of rewriters, and what was sent through it.
    #[cfg(test)]
    pub(crate) fn test() -> (Self, mpsc::UnboundedReceiver<(Side, OutMessage)>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }
}
