//! A message of a WebSocket, or a line of a stdio or socket channel.

use bytes::Bytes;
use serde_json::Value;

use super::words::Words;
use crate::transcript::{
    ExchangeId, Fact, Side, WsFrame,
    diff::{canonical, kind},
};

/// Longest text of a message in a report, in characters.
const SHORT: usize = 120;

/// What one side said on a channel.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A WebSocket message or control frame.
    Frame(WsFrame),
    /// A line, without its terminator.
    Line(Bytes),
}

impl Said {
    /// What a fact says on a channel, and who.
    pub fn of(fact: &Fact) -> Option<(ExchangeId, Side, Self)> {
        match fact {
            Fact::WebSocket {
                exchange,
                from,
                frame,
            } => Some((*exchange, *from, Self::Frame(frame.clone()))),
            Fact::Line {
                exchange,
                from,
                bytes,
            } => Some((*exchange, *from, Self::Line(bytes.clone()))),
            _ => None,
        }
    }

    /// Whether it only keeps the connection alive; there are as many of these as time passed.
    pub fn is_noise(&self) -> bool {
        matches!(self, Self::Frame(WsFrame::Ping(_) | WsFrame::Pong(_)))
    }

    /// Whether it closes the channel.
    pub fn is_close(&self) -> bool {
        matches!(self, Self::Frame(WsFrame::Close(_)))
    }

    /// What it says, when that is text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Frame(WsFrame::Text(text)) => Some(text),
            Self::Line(bytes) => std::str::from_utf8(bytes).ok(),
            Self::Frame(_) => None,
        }
    }

    /// The JSON of a text.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(self.text()?).ok()
    }

    /// What kind of message it is: messages of another kind are never taken for this one.
    pub fn label(&self) -> String {
        match self {
            Self::Frame(WsFrame::Close(_)) => return "close".to_owned(),
            Self::Frame(WsFrame::Binary(_)) => return "binary".to_owned(),
            Self::Frame(WsFrame::Ping(_)) => return "ping".to_owned(),
            Self::Frame(WsFrame::Pong(_)) => return "pong".to_owned(),
            Self::Frame(WsFrame::Text(_)) | Self::Line(_) => {}
        }
        self.json()
            .map_or_else(|| "text".to_owned(), |json| kind(&json))
    }

    /// The same, with JSON in a form that does not depend on the order of members.
    pub fn canonical(&self) -> String {
        match self {
            Self::Frame(WsFrame::Binary(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            said => said.text().map(canonical).unwrap_or_default(),
        }
    }

    /// The same in the words of now.
    #[must_use]
    pub fn in_words(&self, words: &Words) -> Self {
        match self {
            Self::Frame(WsFrame::Text(text)) => Self::Frame(WsFrame::Text(words.say_text(text))),
            Self::Frame(WsFrame::Binary(bytes)) => {
                Self::Frame(WsFrame::Binary(words.say(bytes).into()))
            }
            Self::Frame(other) => Self::Frame(other.clone()),
            Self::Line(bytes) => Self::Line(words.say(bytes).into()),
        }
    }

    /// Its beginning, for a report.
    pub fn shown(&self) -> String {
        let text = match self.text() {
            Some(text) => text.to_owned(),
            None => self.label(),
        };
        match text.char_indices().nth(SHORT) {
            Some((cut, _)) => format!("{}...", text.get(..cut).unwrap_or_default()),
            None => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_the_kind_and_of_an_answer_the_request() {
        let cases = [
            (r#"{"type":"chat:send","payload":{}}"#, "chat:send"),
            (
                r#"{"kind":"event","method":"session/update","event":{"type":"turn_started"}}"#,
                "event session/update turn_started",
            ),
            (
                r#"{"kind":"request","request_id":"r-1","method":"ping"}"#,
                "request ping",
            ),
            (
                r#"{"kind":"response","request_id":"r-1","result":{}}"#,
                "response r-1",
            ),
            ("[1]", "json"),
            ("no json", "text"),
        ];
        for (line, expected) in cases {
            assert_eq!(Said::Line(Bytes::from(line)).label(), expected, "{line}");
        }
    }
}
