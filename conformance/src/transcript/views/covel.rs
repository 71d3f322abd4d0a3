//! The session streams of `covel-sse`: subscriptions with their cursors, action streams, and the event log of
//! each session as all subscribers together saw it.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use turnwire_spec::{
    catalogue::rule::StreamKind,
    covel::{events::event as event_meta, meta::EventMeta},
    cursor::{Cursor, CursorBuf},
};

use super::stream::{Stream, StreamFrame, streams_of};
use crate::transcript::{End, ExchangeId, Transcript, cut};

/// One opened subscription, `GET /api/events/stream`, answered with an event stream.
#[derive(Clone, Debug)]
pub struct Subscription<'a> {
    /// The stream itself.
    pub stream: Stream<'a>,
    /// Session asked for.
    pub session: String,
    /// Topics asked for; empty means all.
    pub topics: Vec<String>,
    /// Text of `lastEventId`.
    pub query_cursor: Option<String>,
    /// Text of `Last-Event-ID`.
    pub header_cursor: Option<String>,
    /// Whether it broke off, by the harness on purpose or otherwise, so that what did not come is not missing.
    pub broke_off: bool,
}

/// An event of a session's log: its id, and the frame as one subscriber got it.
#[derive(Clone, Debug)]
pub struct LoggedEvent {
    /// Id of the event.
    pub id: CursorBuf,
    /// Type.
    pub event_type: String,
    /// The whole `ProtocolEvent`.
    pub json: Value,
    /// The frame's bytes.
    pub bytes: Vec<u8>,
    /// Exchange on which it was seen first.
    pub exchange: ExchangeId,
}

/// All subscriptions, in the order in which they were opened.
pub fn subscriptions(transcript: &Transcript) -> Vec<Subscription<'_>> {
    let cut = cut::exchanges(transcript);
    let broken = |stream: &Stream<'_>| matches!(stream.exchange.end, Some((_, End::Broken(_))));
    streams_of(transcript, StreamKind::Subscription)
        .into_iter()
        .map(|stream| Subscription {
            session: stream.exchange.query("sessionId").unwrap_or_default(),
            topics: topics(stream.exchange.query("topics")),
            query_cursor: stream.exchange.query("lastEventId"),
            header_cursor: stream
                .exchange
                .request_header("last-event-id")
                .map(str::to_owned),
            broke_off: broken(&stream) || cut.contains(&stream.exchange.id),
            stream,
        })
        .collect()
}

fn topics(list: Option<String>) -> Vec<String> {
    list.iter()
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|t| !t.is_empty())
        .map(str::to_owned)
        .collect()
}

/// All action streams, in the order in which they were opened.
pub fn actions(transcript: &Transcript) -> Vec<Stream<'_>> {
    streams_of(transcript, StreamKind::Action)
}

impl Subscription<'_> {
    /// The cursor text that counts: the query parameter wins over the header. An empty text is none; what it means
    /// beside another one is open, see [`Subscription::is_ambiguous`].
    pub fn cursor_text(&self) -> Option<&str> {
        self.query_cursor
            .as_deref()
            .or(self.header_cursor.as_deref())
            .filter(|text| !text.is_empty())
    }

    /// Whether a cursor was sent that is an empty text: no cursor, or one that cannot be read.
    pub fn is_ambiguous(&self) -> bool {
        [&self.query_cursor, &self.header_cursor]
            .into_iter()
            .flatten()
            .any(String::is_empty)
    }

    /// The cursor that counts, when it parses.
    pub fn cursor(&self) -> Option<CursorBuf> {
        cursor(self.cursor_text()?)
    }

    /// The first `system.connected` frame.
    pub fn connected(&self) -> Option<&StreamFrame> {
        self.of_type("system.connected").next()
    }

    /// The cursor of `system.connected`, when it parses.
    pub fn connected_cursor(&self) -> Option<CursorBuf> {
        cursor(self.connected()?.member("cursor")?.as_str()?)
    }

    /// Frames of one type.
    pub fn of_type<'s>(
        &'s self,
        name: &'s str,
    ) -> impl DoubleEndedIterator<Item = &'s StreamFrame> {
        self.stream
            .events()
            .filter(move |frame| frame.event_type() == name)
    }

    /// Session events with their ids, in the order received; frames without a readable id are left out.
    pub fn events(&self) -> Vec<(CursorBuf, &StreamFrame)> {
        self.stream
            .events()
            .filter(|frame| !frame.event_type().starts_with("system."))
            .filter_map(|frame| Some((cursor(frame.frame.id()?)?, frame)))
            .collect()
    }

    /// Events that were replayed: those of the connection's epoch up to the cursor of `system.connected`.
    pub fn replayed(&self) -> Vec<(CursorBuf, &StreamFrame)> {
        let Some(connected) = self.connected_cursor() else {
            return Vec::new();
        };
        self.events()
            .into_iter()
            .filter(|(id, _)| id.epoch == connected.epoch && id.seq <= connected.seq)
            .collect()
    }

    /// Whether it covers every topic.
    pub fn all_topics(&self) -> bool {
        self.topics.is_empty() || self.topics.len() >= 10
    }

    /// Whether a `system.reset` with this reason came.
    pub fn was_reset_for(&self, reason: &str) -> bool {
        let reasons = |frame: &StreamFrame| {
            frame
                .member("reason")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        self.of_type("system.reset")
            .any(|frame| reasons(frame).as_deref() == Some(reason))
    }

    /// `system.reset` frames that answer a cursor; others tell of what was lost while connected.
    pub fn answering_resets(&self) -> Vec<&StreamFrame> {
        let answers = |frame: &&StreamFrame| {
            let reason = frame.member("reason").and_then(Value::as_str);
            !matches!(reason, Some("publish-failed" | "transport-gap"))
        };
        self.of_type("system.reset").filter(answers).collect()
    }

    /// `system.reset` frames.
    pub fn resets(&self) -> Vec<&StreamFrame> {
        self.of_type("system.reset").collect()
    }
}

/// Whether a subscriber to all topics of a session was connected during this whole span.
pub fn watched(
    subscriptions: &[Subscription<'_>],
    session: &str,
    from: Duration,
    to: Duration,
) -> bool {
    subscriptions
        .iter()
        .filter(|other| other.session == session && other.all_topics())
        .any(|other| {
            let since = other.connected().map(|frame| frame.at);
            let until = other.stream.exchange.end.map(|(end, _)| end);
            since.is_some_and(|since| since < from) && until.is_none_or(|until| until > to)
        })
}

/// The event log of one session: by epoch and seq.
pub type Log = BTreeMap<(String, u64), LoggedEvent>;

/// Seqs of a log after a cursor, up to and with `last`, that a replay owes. Diagnostic events are live only and
/// never replayed.
pub fn due_after(log: &Log, cursor: &CursorBuf, last: u64) -> Vec<u64> {
    let mine = |epoch: &str, seq: u64| epoch == cursor.epoch && seq > cursor.seq && seq <= last;
    let diagnostic = |event: &LoggedEvent| is_diagnostic(&event.event_type);
    log.iter()
        .filter(|((epoch, seq), event)| mine(epoch, *seq) && !diagnostic(event))
        .map(|((_, seq), _)| *seq)
        .collect()
}

/// Whether events of this type are diagnostics: live only, never replayed.
pub fn is_diagnostic(event_type: &str) -> bool {
    event_meta(event_type).is_some_and(EventMeta::is_diagnostic)
}

/// What all subscribers together saw of each session's events: by session, then by epoch and seq. The first
/// sighting counts; checks that compare sightings walk the subscriptions themselves.
pub fn logs(subscriptions: &[Subscription<'_>]) -> BTreeMap<String, Log> {
    let mut logs: BTreeMap<String, Log> = BTreeMap::new();
    for subscription in subscriptions {
        let log = logs.entry(subscription.session.clone()).or_default();
        for (id, frame) in subscription.events() {
            log.entry((id.epoch.clone(), id.seq))
                .or_insert_with(|| LoggedEvent {
                    id,
                    event_type: frame.event_type().to_owned(),
                    json: frame.json.clone().unwrap_or(Value::Null),
                    bytes: frame.frame.to_bytes(),
                    exchange: subscription.stream.exchange.id,
                });
        }
    }
    logs
}

/// Reads a cursor text, `<epoch>:<seq>`.
pub fn cursor(text: &str) -> Option<CursorBuf> {
    Cursor::parse(text).ok().map(Cursor::to_owned)
}
