//! A conversation with a client under test, label by label: what it asked for, what it was sent, what it reported.

use std::time::Duration;

use serde_json::Value;
use turnwire_spec::sse::{Decoder, Limits};

use super::http::{Exchange, exchanges};
use crate::transcript::{Fact, Transcript};

/// What happened under one label.
#[derive(Clone, Debug)]
pub struct Act<'a> {
    /// The label.
    pub name: &'a str,
    /// The requests of the client, in order.
    pub exchanges: Vec<Exchange<'a>>,
    /// What it reported, with the time.
    pub reports: Vec<(Duration, &'a Value)>,
    /// When the label was set, and when the next one was.
    pub span: (Duration, Duration),
}

/// One event, as a reader reports it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReadEvent {
    /// Type.
    pub kind: String,
    /// Data.
    pub data: String,
    /// Last event id.
    pub id: String,
}

/// Label under an act that ended because the client cannot do what the person wanted: `ACT/cannot`.
pub const CANNOT: &str = "cannot";

/// Label under an act that ended because the client did not go on by itself: `ACT/unfollowed`.
pub const UNFOLLOWED: &str = "unfollowed";

/// The act that a label belongs to.
pub fn base(label: &str) -> &str {
    label.split('/').next().unwrap_or_default()
}

/// Whether an act ended before its end, as this label says.
pub fn ended_as(acts: &[Act<'_>], act: &Act<'_>, how: &str) -> bool {
    let label = format!("{}/{how}", base(act.name));
    acts.iter().any(|other| other.name == label)
}

/// The acts of a transcript, in order. What happened before the first label is none.
pub fn acts(transcript: &Transcript) -> Vec<Act<'_>> {
    let mut found: Vec<Act<'_>> = Vec::new();
    let end = transcript
        .entries
        .last()
        .map_or(Duration::ZERO, |entry| entry.at);
    for entry in &transcript.entries {
        match &entry.fact {
            Fact::Label(name) => {
                if let Some(last) = found.last_mut() {
                    last.span.1 = entry.at;
                }
                found.push(Act {
                    name,
                    exchanges: Vec::new(),
                    reports: Vec::new(),
                    span: (entry.at, end),
                });
            }
            Fact::State(report) => {
                if let Some(last) = found.last_mut() {
                    last.reports.push((entry.at, report));
                }
            }
            _ => {}
        }
    }
    for exchange in exchanges(transcript) {
        let place = found
            .iter()
            .rposition(|act| act.name == exchange.label && act.span.0 <= exchange.opened);
        if let Some(act) = place.and_then(|place| found.get_mut(place)) {
            act.exchanges.push(exchange);
        }
    }
    found
}

impl Act<'_> {
    /// The events that it reported, with the time.
    pub fn events(&self) -> Vec<(Duration, ReadEvent)> {
        let events = self.reports.iter().filter_map(|(at, report)| {
            let event = report.get("event")?;
            let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            let read = ReadEvent {
                kind: text("type"),
                data: text("data"),
                id: text("lastEventId"),
            };
            Some((*at, read))
        });
        events.collect()
    }

    /// The states of its connection that it reported, with the time.
    pub fn states(&self) -> Vec<(Duration, &str)> {
        let states = self.reports.iter();
        states
            .filter_map(|(at, report)| Some((*at, report.get("state")?.as_str()?)))
            .collect()
    }

    /// The events that a reader finds in the streams that were sent.
    pub fn sent_events(&self) -> Vec<ReadEvent> {
        let mut decoder = Decoder::new(Limits::NONE);
        let mut events = Vec::new();
        for exchange in self.exchanges.iter().filter(|exchange| is_stream(exchange)) {
            for (_, bytes) in &exchange.chunks {
                // Without limits there is no overflow.
                let _ = decoder.feed(bytes, |event| {
                    events.push(ReadEvent {
                        kind: event.event.to_owned(),
                        data: event.data.to_owned(),
                        id: event.last_event_id.to_owned(),
                    });
                });
            }
            decoder.finish();
        }
        events
    }
}

/// Whether a reader reads the body of this answer.
pub fn is_stream(exchange: &Exchange<'_>) -> bool {
    exchange.status() == Some(200) && exchange.media_type().as_deref() == Some("text/event-stream")
}
