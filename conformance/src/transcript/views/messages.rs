//! Message channels: WebSocket connections and channels of lines, as messages with direction and time.
//!
//! What a kind is, and which kinds stand for control frames, is told in
//! [`turnwire_spec::catalogue::messages`]. Only what was told counts: a message that a scenario sent and a message
//! that the target sent are facts alike.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::Value;
use turnwire_spec::catalogue::messages::{Selection, Sender};

use super::{memory, stream::type_matches};
use crate::{
    schema,
    transcript::{End, ExchangeId, Fact, Request, Side, Transcript, WsFrame},
    verdict::Evidence,
};

/// One channel.
#[derive(Clone, Debug)]
pub struct Channel<'a> {
    /// Number in the transcript.
    pub id: ExchangeId,
    /// Newest label when it was opened.
    pub label: &'a str,
    /// The upgrade request; a channel of lines has none.
    pub request: Option<&'a Request>,
    /// When it was opened, or its first line passed.
    pub opened: Duration,
    /// What passed, in order.
    pub messages: Vec<Message<'a>>,
    /// How and when it ended; `None` when it was open at the end of the transcript.
    pub end: Option<(Duration, &'a End)>,
    /// When the transcript ends.
    pub last: Duration,
}

/// One message, control frame or line.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// Position among the messages of the channel, both directions together, from 0.
    pub index: usize,
    /// When it was sent or had arrived.
    pub at: Duration,
    /// Who sent it.
    pub from: Side,
    /// Newest label at that time.
    pub label: &'a str,
    /// What it is.
    pub content: Content<'a>,
    /// Its JSON, when it is a text with JSON; shared by those who read the same transcript.
    pub json: Option<Arc<Value>>,
}

/// The JSON of the WebSocket messages and lines of a transcript, in the order in which they were told.
pub type Documents = Arc<[Option<Arc<Value>>]>;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content<'a> {
    /// A WebSocket message or control frame.
    Frame(&'a WsFrame),
    /// A line.
    Line(&'a [u8]),
}

/// All channels on which anything passed, and all WebSocket upgrades that succeeded, in the order of opening.
pub fn channels(transcript: &Transcript) -> Vec<Channel<'_>> {
    let documents = memory::documents(transcript, || documents(transcript));
    channels_with(transcript, &documents)
}

/// The JSON of the messages of a transcript.
pub(super) fn documents(transcript: &Transcript) -> Documents {
    let read = |fact: &Fact| match fact {
        Fact::WebSocket { frame, .. } => Some(match frame {
            WsFrame::Text(text) => serde_json::from_str(text).ok().map(Arc::new),
            _ => None,
        }),
        Fact::Line { bytes, .. } => Some(serde_json::from_slice(bytes).ok().map(Arc::new)),
        _ => None,
    };
    let facts = transcript.entries.iter().map(|entry| &entry.fact);
    facts.filter_map(read).collect()
}

/// As [`channels`], with the JSON of the messages.
pub(super) fn channels_with<'a>(
    transcript: &'a Transcript,
    documents: &Documents,
) -> Vec<Channel<'a>> {
    let last = transcript
        .entries
        .last()
        .map_or(Duration::ZERO, |entry| entry.at);
    let mut reader = Reader {
        last,
        documents: documents.iter(),
        ..Reader::default()
    };
    for entry in &transcript.entries {
        reader.read(entry.at, &entry.fact);
    }
    reader.channels
}

#[derive(Default)]
struct Reader<'a, 'd> {
    last: Duration,
    /// The JSON of the messages that are not read yet.
    documents: std::slice::Iter<'d, Option<Arc<Value>>>,
    label: &'a str,
    /// Requests whose answer may still be 101, with the label and the time.
    requests: BTreeMap<ExchangeId, (&'a Request, &'a str, Duration)>,
    channels: Vec<Channel<'a>>,
    place: BTreeMap<ExchangeId, usize>,
}

impl<'a> Reader<'a, '_> {
    fn read(&mut self, at: Duration, fact: &'a Fact) {
        match fact {
            Fact::Label(label) => self.label = label,
            Fact::Request { exchange, request } => {
                self.requests.insert(*exchange, (request, self.label, at));
            }
            Fact::Response { exchange, head } if head.status == 101 => {
                self.channel(*exchange, at);
            }
            Fact::WebSocket {
                exchange,
                from,
                frame,
            } => {
                self.message(*exchange, at, *from, Content::Frame(frame));
            }
            Fact::Line {
                exchange,
                from,
                bytes,
            } => {
                self.message(*exchange, at, *from, Content::Line(bytes));
            }
            Fact::End { exchange, how } => {
                if let Some(channel) = self
                    .place
                    .get(exchange)
                    .and_then(|place| self.channels.get_mut(*place))
                {
                    channel.end = Some((at, how));
                }
            }
            _ => {}
        }
    }

    fn channel(&mut self, id: ExchangeId, at: Duration) -> usize {
        if let Some(place) = self.place.get(&id) {
            return *place;
        }
        let request = self.requests.get(&id);
        self.channels.push(Channel {
            id,
            label: request.map_or(self.label, |(_, label, _)| label),
            request: request.map(|(request, _, _)| *request),
            opened: request.map_or(at, |(_, _, opened)| *opened),
            messages: Vec::new(),
            end: None,
            last: self.last,
        });
        let place = self.channels.len() - 1;
        self.place.insert(id, place);
        place
    }

    fn message(&mut self, id: ExchangeId, at: Duration, from: Side, content: Content<'a>) {
        let (place, label) = (self.channel(id, at), self.label);
        let json = self.documents.next().cloned().flatten();
        if let Some(channel) = self.channels.get_mut(place) {
            channel.messages.push(Message {
                index: channel.messages.len(),
                at,
                from,
                label,
                content,
                json,
            });
        }
    }
}

impl<'a> Channel<'a> {
    /// Path of the upgrade request, without the query; empty for a channel of lines.
    pub fn path(&self) -> &'a str {
        let target = self.request.map_or("", |request| request.target.as_str());
        target.split('?').next().unwrap_or_default()
    }

    /// The messages of one side.
    pub fn from(&self, side: Side) -> impl DoubleEndedIterator<Item = &Message<'a>> {
        self.messages
            .iter()
            .filter(move |message| message.from == side)
    }

    /// The messages of one side with this kind.
    pub fn of_kind<'s>(
        &'s self,
        side: Side,
        kind: &'s str,
    ) -> impl DoubleEndedIterator<Item = &'s Message<'a>> {
        self.from(side)
            .filter(move |message| message.kind() == kind)
    }

    /// When it ended, or the transcript did.
    pub fn until(&self) -> Duration {
        self.end.map_or(self.last, |(at, _)| at)
    }

    /// Evidence at the channel as a whole.
    pub fn evidence(&self, expected: impl Into<String>, got: impl Into<String>) -> Evidence {
        let request = self
            .request
            .map(|request| format!("{} {}", request.method, request.target));
        Evidence {
            exchange: Some(self.id),
            request,
            at: Some(self.opened),
            ..Evidence::new(expected, got)
        }
    }

    /// Evidence at one of its messages.
    pub fn evidence_at(
        &self,
        message: &Message<'_>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Evidence {
        Evidence {
            at: Some(message.at),
            frame: Some(message.index),
            ..self.evidence(expected, got)
        }
    }
}

impl Message<'_> {
    /// Its kind.
    pub fn kind(&self) -> &str {
        let named = self.json.as_deref().and_then(kind_of);
        named.unwrap_or(match self.content {
            Content::Frame(WsFrame::Binary(_)) => ":binary",
            Content::Frame(WsFrame::Ping(_)) => ":ping",
            Content::Frame(WsFrame::Pong(_)) => ":pong",
            Content::Frame(WsFrame::Close(_)) => ":close",
            Content::Frame(WsFrame::Text(_)) | Content::Line(_) => ":text",
        })
    }

    /// Whether it is a message or a line, and no control frame.
    pub fn is_data(&self) -> bool {
        !matches!(
            self.content,
            Content::Frame(WsFrame::Ping(_) | WsFrame::Pong(_) | WsFrame::Close(_))
        )
    }

    /// The value at a JSON pointer.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        at(self.json.as_deref()?, pointer)
    }

    /// The text at a JSON pointer.
    pub fn text_at(&self, pointer: &str) -> Option<&str> {
        self.pointer(pointer)?.as_str()
    }

    /// The whole number at a JSON pointer.
    pub fn number_at(&self, pointer: &str) -> Option<i64> {
        self.pointer(pointer)?.as_i64()
    }

    /// The message as text, for evidence.
    pub fn show(&self) -> Cow<'_, str> {
        match self.content {
            Content::Frame(WsFrame::Text(text)) => text.into(),
            Content::Line(bytes) => String::from_utf8_lossy(bytes),
            Content::Frame(other) => format!("{other:?}").into(),
        }
    }
}

/// The value at a JSON pointer. As [`Value::pointer`], which takes the pointer apart into texts of its own; hundreds of
/// checks ask every message for its session and job.
fn at<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    if pointer.contains('~') {
        return value.pointer(pointer);
    }
    let Some(names) = pointer.strip_prefix('/') else {
        return value.pointer(pointer);
    };
    names.split('/').try_fold(value, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(_) => value.pointer(&format!("/{name}")),
        _ => None,
    })
}

/// The kind that the JSON of a message names; see [`turnwire_spec::catalogue::messages`].
pub fn kind_of(json: &Value) -> Option<&str> {
    if let Some(kind) = json.get("type").and_then(Value::as_str) {
        return Some(kind);
    }
    match json.get("kind")?.as_str()? {
        "event" => json.pointer("/event/type")?.as_str(),
        "request" => json.get("method")?.as_str(),
        other => Some(other),
    }
}

/// The side that a rule names.
pub fn side_of(sender: Sender) -> Side {
    match sender {
        Sender::Client => Side::Client,
        Sender::Server => Side::Server,
    }
}

/// Whether a selection takes a message.
pub fn selects(selection: &Selection, message: &Message<'_>) -> bool {
    message.from == side_of(selection.from)
        && kind_selected(&selection.types, &selection.not_type, message)
        && label_fits(selection.label.as_deref(), message.label)
        && selection.where_data.as_ref().is_none_or(|wanted| {
            message
                .json
                .as_ref()
                .is_some_and(|json| schema::satisfied(wanted, json))
        })
}

/// Whether a message is of a kind that is asked for; one without JSON only by its name.
pub fn kind_selected(types: &[String], not_types: &[String], message: &Message<'_>) -> bool {
    let kind = message.kind();
    let listed = if types.is_empty() {
        message.json.is_some()
    } else {
        type_matches(types, kind)
    };
    listed && !type_matches(not_types, kind)
}

/// Whether a label is the wanted one; a prefix ending in `*` is allowed.
pub fn label_fits(wanted: Option<&str>, label: &str) -> bool {
    wanted.is_none_or(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => label.starts_with(prefix),
        None => label == pattern,
    })
}

#[cfg(test)]
mod tests {
    use crate::transcript::testing::Script;

    use super::*;

    #[test]
    fn a_value_stands_where_the_pointer_says() {
        let value = serde_json::json!({ "a": [{ "b": 1 }, 2], "c/d": 3, "": 4, "~": 5 });
        for pointer in [
            "", "/", "/a", "/a/0/b", "/a/1", "/a/01", "/a/+1", "/a/2", "/c~1d", "/~0", "/a/0/b/x",
            "a", "/x/y",
        ] {
            assert_eq!(at(&value, pointer), value.pointer(pointer), "{pointer:?}");
        }
    }

    #[test]
    fn messages_have_kind_direction_label_and_time() {
        let transcript = Script::new()
            .label("a")
            .websocket("/ws?x=1")
            .client_says(r#"{"type":"chat:send","payload":{"message":"m"}}"#)
            .label("b")
            .wait_ms(5)
            .server_says(r#"{"type":"chat:complete","payload":{"seq":3}}"#)
            .server_says("no json")
            .ws(Side::Server, WsFrame::Ping(Default::default()))
            .closes()
            .transcript();
        let channels = channels(&transcript);
        let channel = &channels[0];
        assert_eq!((channel.path(), channel.label), ("/ws", "a"));
        let told: Vec<_> = channel
            .messages
            .iter()
            .map(|it| (it.kind(), it.from, it.label))
            .collect();
        assert_eq!(
            told,
            [
                ("chat:send", Side::Client, "a"),
                ("chat:complete", Side::Server, "b"),
                (":text", Side::Server, "b"),
                (":ping", Side::Server, "b"),
            ]
        );
        assert_eq!(channel.messages[1].number_at("/payload/seq"), Some(3));
        assert!(channel.end.is_some());
    }

    #[test]
    fn the_kinds_of_a_line_protocol_are_its_events_and_methods() {
        let kind = |text: &str| {
            let json: Value = serde_json::from_str(text).unwrap();
            kind_of(&json).map(str::to_owned)
        };
        assert_eq!(
            kind(r#"{"kind":"event","event":{"type":"turn_started"}}"#).as_deref(),
            Some("turn_started")
        );
        assert_eq!(
            kind(r#"{"kind":"request","method":"initialize"}"#).as_deref(),
            Some("initialize")
        );
        assert_eq!(kind(r#"{"kind":"response"}"#).as_deref(), Some("response"));
        assert_eq!(kind("[]"), None);
    }
}
