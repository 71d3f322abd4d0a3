//! A WebSocket or a channel of lines that is played to a server.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use serde_json::Value;

use crate::{
    drivers::{DriveError, lines::LineChannel, websocket::WebSocket},
    replay::{said::Said, words::Words},
    transcript::{End, WsFrame, diff::kind},
};

/// An open channel.
pub(super) struct Channel {
    wire: Wire,
    /// What the recorded server had said by now, without what only keeps the connection alive.
    recorded: Vec<Heard>,
    /// How many of each kind are not waited for any more.
    forgiven: BTreeMap<String, usize>,
    /// How many of `recorded` ids were learnt from.
    learnt: usize,
    /// Whether the recorded client, or server, had closed by now.
    closed: (bool, bool),
}

enum Wire {
    Socket(WebSocket),
    Lines(LineChannel),
}

/// Something that a server said.
#[derive(Clone, Debug)]
struct Heard {
    label: String,
    json: Option<Value>,
}

impl Channel {
    pub(super) fn socket(socket: WebSocket) -> Self {
        Self::new(Wire::Socket(socket))
    }

    pub(super) fn lines(lines: LineChannel) -> Self {
        Self::new(Wire::Lines(lines))
    }

    fn new(wire: Wire) -> Self {
        Self {
            wire,
            recorded: Vec::new(),
            forgiven: BTreeMap::new(),
            learnt: 0,
            closed: (false, false),
        }
    }

    /// The recorded server said this.
    pub(super) fn recorded(&mut self, said: &Said) {
        self.closed.1 |= said.is_close();
        if !said.is_noise() {
            self.recorded.push(Heard {
                label: said.label(),
                json: said.json(),
            });
        }
    }

    /// Says what the recorded client said. What the driver does by itself is not done twice: it answers pings, and a
    /// close.
    ///
    /// # Errors
    ///
    /// When the server does not take it.
    pub(super) async fn say(&mut self, said: Said) -> Result<(), DriveError> {
        let is_close = said.is_close();
        let is_ping = said.is_noise();
        let answers = is_close && self.closed.1;
        self.closed.0 |= is_close;
        match (&self.wire, said) {
            (_, Said::Frame(WsFrame::Pong(_))) => Ok(()),
            (Wire::Socket(_), Said::Frame(_)) if answers => Ok(()),
            (Wire::Socket(socket), Said::Frame(frame)) => {
                let sent = socket.send_message(frame).await;
                // A ping belongs to no order, so the server may have closed before it.
                if is_ping { Ok(()) } else { sent }
            }
            (Wire::Lines(lines), Said::Line(line)) => lines.send_line(line).await,
            (Wire::Socket(_), Said::Line(_)) | (Wire::Lines(_), Said::Frame(_)) => {
                Err(DriveError::Harness("a line on a WebSocket".to_owned()))
            }
        }
    }

    /// Waits until the server has said as much of every kind as the recorded one had by now, and learns its ids.
    /// Gives the kinds of which not enough has come.
    pub(super) async fn catch_up(&mut self, patience: Duration, words: &mut Words) -> Vec<String> {
        let mut wanted = count(&self.recorded);
        for (label, count) in &self.forgiven {
            if let Some(wanted) = wanted.get_mut(label) {
                *wanted = wanted.saturating_sub(*count);
            }
        }
        let enough = |heard: &[Heard]| {
            let have = count(heard);
            let fits =
                |(label, wanted): (&String, &usize)| have.get(label).copied() >= Some(*wanted);
            wanted.iter().filter(|(_, wanted)| **wanted > 0).all(fits)
        };
        match &mut self.wire {
            Wire::Socket(socket) => {
                let all = |seen: &[crate::drivers::websocket::Seen]| {
                    enough(&seen.iter().filter_map(of_frame).collect::<Vec<_>>())
                };
                socket.wait_until(patience, all).await;
            }
            Wire::Lines(lines) => {
                let all = |seen: &[Value]| enough(&seen.iter().map(of_json).collect::<Vec<_>>());
                lines.wait_until(patience, all).await;
            }
        }
        let heard = self.heard();
        self.learn(&heard, words);
        let have = count(&heard);
        let mut missing = Vec::new();
        for (label, wanted) in wanted {
            let lacks = wanted.saturating_sub(have.get(&label).copied().unwrap_or_default());
            if lacks > 0 {
                *self.forgiven.entry(label.clone()).or_default() += lacks;
                missing.push(label);
            }
        }
        missing
    }

    fn heard(&self) -> Vec<Heard> {
        match &self.wire {
            Wire::Socket(socket) => socket.seen().iter().filter_map(of_frame).collect(),
            Wire::Lines(lines) => lines.lines().iter().map(of_json).collect(),
        }
    }

    /// Learns from the n-th message of a kind what the n-th recorded one of that kind is now.
    fn learn(&mut self, heard: &[Heard], words: &mut Words) {
        for (place, recorded) in self.recorded.iter().enumerate().skip(self.learnt) {
            let before = self.recorded.iter().take(place);
            let nth = before.filter(|other| other.label == recorded.label).count();
            let now = heard.iter().filter(|now| now.label == recorded.label);
            if let Some((recorded, now)) = now
                .into_iter()
                .nth(nth)
                .and_then(|now| recorded.json.as_ref().zip(now.json.as_ref()))
            {
                words.learn_json(recorded, now);
            }
        }
        self.learnt = self.recorded.len();
    }

    /// Ends it as the recording ended; whether the server did its part in time.
    pub(super) async fn end(mut self, how: &End, patience: Duration) -> bool {
        let waits = matches!(how, End::Complete | End::Broken(_));
        let asks = matches!(how, End::Complete);
        match &mut self.wire {
            Wire::Socket(socket) => {
                if asks && self.closed == (false, false) {
                    socket.hang_up().await;
                }
                !waits || socket.wait_end(patience).await
            }
            Wire::Lines(lines) => {
                if asks {
                    lines.hang_up().await;
                }
                !waits || lines.wait_end(patience).await
            }
        }
    }
}

fn of_frame(seen: &crate::drivers::websocket::Seen) -> Option<Heard> {
    let said = Said::Frame(seen.frame.clone());
    (!said.is_noise()).then(|| Heard {
        label: said.label(),
        json: seen.json.clone(),
    })
}

/// A line, as its driver has it: null when it is no JSON.
fn of_json(json: &Value) -> Heard {
    if json.is_null() {
        let label = Said::Line(Bytes::from_static(b"no JSON")).label();
        return Heard { label, json: None };
    }
    Heard {
        label: kind(json),
        json: Some(json.clone()),
    }
}

fn count(heard: &[Heard]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for heard in heard {
        *counts.entry(heard.label.clone()).or_default() += 1;
    }
    counts
}
