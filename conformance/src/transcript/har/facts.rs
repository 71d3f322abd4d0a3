//! An entry of a HAR file as facts, and what was lost.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use turnwire_spec::sse;

use super::entry::{HarEntry, HarEvent};
use crate::transcript::{
    End, Entry, ExchangeId, Fact, Lost, ResponseHead, header, is_event_stream,
};

/// What a capture may take in all; entries that a broken clock dated later are put at its end. The text form takes
/// up to 584 years.
const LONGEST: Duration = Duration::from_secs(500 * 365 * 24 * 60 * 60);

/// What the file does not have, by exchange.
#[derive(Debug, Default)]
pub(super) struct Losses {
    times: BTreeSet<u32>,
    bytes: BTreeSet<u32>,
    bodies: BTreeSet<u32>,
    /// Schemes of entries that never were on the wire.
    inner: BTreeSet<String>,
}

impl Losses {
    pub(super) fn lost(&self, what: Lost) -> bool {
        match what {
            Lost::Times => !self.times.is_empty(),
            Lost::Bytes => !self.bytes.is_empty(),
        }
    }

    /// Leaves an entry out that has this scheme.
    pub(super) fn never_sent(&mut self, scheme: String) {
        self.inner.insert(scheme);
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let note = |what: &str, exchanges: &BTreeSet<u32>| {
            let numbers: Vec<String> = exchanges.iter().map(u32::to_string).collect();
            (!numbers.is_empty())
                .then(|| format!("lost: {what} of exchange {}", numbers.join(", ")))
        };
        [
            note("when each piece arrived in the event stream", &self.times),
            note(
                "the bytes of the event stream, put together again from its events,",
                &self.bytes,
            ),
            note("the response body", &self.bodies),
            (!self.inner.is_empty()).then(|| {
                let schemes: Vec<String> = self
                    .inner
                    .iter()
                    .map(|scheme| format!("{scheme}:"))
                    .collect();
                format!(
                    "left out, since it never was on the wire: {}",
                    schemes.join(", ")
                )
            }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// The facts of an entry; times since `zero`.
pub(super) fn of(entry: &HarEntry, number: u32, zero: i64, losses: &mut Losses) -> Vec<Entry> {
    let exchange = ExchangeId(number);
    let offset = |at: i64| {
        let micros = at.max(entry.started).saturating_sub(zero);
        Duration::from_micros(u64::try_from(micros).unwrap_or_default()).min(LONGEST)
    };
    let at = |time: i64, fact| Entry {
        at: offset(time),
        fact,
    };
    let request = entry.request.clone();
    let mut facts = vec![at(entry.started, Fact::Request { exchange, request })];
    if entry.response.status == 0 {
        let words = entry.error.clone().unwrap_or_default();
        let how = End::NotConnected(words);
        facts.push(at(entry.finished, Fact::End { exchange, how }));
        return facts;
    }
    let head = ResponseHead {
        status: entry.response.status,
        headers: entry.response.headers.clone(),
    };
    facts.push(at(entry.answered, Fact::Response { exchange, head }));
    let mut last = entry.finished.max(entry.answered);
    for (time, bytes) in pieces(entry, number, losses) {
        last = last.max(time);
        facts.push(at(
            time.max(entry.answered),
            Fact::Chunk { exchange, bytes },
        ));
    }
    for (time, from, frame) in &entry.messages {
        last = last.max(*time);
        facts.push(at(
            (*time).max(entry.answered),
            Fact::WebSocket {
                exchange,
                from: *from,
                frame: frame.clone(),
            },
        ));
    }
    if let Some(how) = end(entry) {
        facts.push(at(last, Fact::End { exchange, how }));
    }
    facts
}

fn is_stream(entry: &HarEntry) -> bool {
    is_event_stream(&entry.response.headers)
}

/// The body in pieces, with the time of each.
fn pieces(entry: &HarEntry, number: u32, losses: &mut Losses) -> Vec<(i64, Bytes)> {
    let body = entry.response.body.clone().unwrap_or_default();
    if body.is_empty() {
        if !entry.events.is_empty() {
            losses.bytes.insert(number);
            return frames(&entry.events);
        }
        if may_have_body(entry) {
            losses.bodies.insert(number);
        }
        return Vec::new();
    }
    if !is_stream(entry) {
        return vec![(entry.finished, body)];
    }
    timed_frames(&body, &entry.events).unwrap_or_else(|| {
        losses.times.insert(number);
        vec![(entry.finished, body)]
    })
}

/// Whether a body that is not in the file may have been on the wire.
fn may_have_body(entry: &HarEntry) -> bool {
    let upgraded = entry.response.status == 101;
    let empty = header(&entry.response.headers, "content-length") == Some("0");
    let without = matches!(entry.response.status, 204 | 304) || entry.request.method == "HEAD";
    entry.response.body.is_none() && !(upgraded || empty || without)
}

/// Frames put together from the events that an `EventSource` dispatched.
fn frames(events: &[HarEvent]) -> Vec<(i64, Bytes)> {
    let mut newest = "";
    events
        .iter()
        .map(|event| {
            let mut frame = String::new();
            if !event.name.is_empty() && event.name != "message" {
                frame.push_str(&format!("event: {}\n", event.name));
            }
            for line in event.data.split('\n') {
                frame.push_str(&format!("data: {line}\n"));
            }
            if event.id != newest {
                frame.push_str(&format!("id: {}\n", event.id));
                newest = &event.id;
            }
            frame.push('\n');
            (event.at, Bytes::from(frame))
        })
        .collect()
}

/// The body cut into its frames with the times of the events, when they are as many.
fn timed_frames(body: &Bytes, events: &[HarEvent]) -> Option<Vec<(i64, Bytes)>> {
    let frames = sse::frames(body).frames;
    let dispatching = frames.iter().filter(|frame| frame.data().is_some()).count();
    if events.is_empty() || dispatching != events.len() {
        return None;
    }
    let mut times = events.iter().map(|event| event.at);
    let mut pieces = Vec::new();
    let mut start = 0;
    for frame in frames.iter().filter(|frame| frame.data().is_some()) {
        let piece = body.slice(start..frame.end.min(body.len()));
        pieces.push((times.next()?, piece));
        start = frame.end.min(body.len());
    }
    if start < body.len() {
        let last = pieces.last().map_or(0, |(at, _)| *at);
        pieces.push((last, body.slice(start..)));
    }
    Some(pieces)
}

/// How the exchange ended, where the file tells. An event stream that a `GET` opened is closed by the client or
/// not at all, and no HAR file says which.
fn end(entry: &HarEntry) -> Option<End> {
    match entry.error.as_deref() {
        Some(words) if words.contains("ABORTED") => return Some(End::ClosedByHarness),
        Some(words) => return Some(End::Broken(words.to_owned())),
        None => {}
    }
    if entry.response.status == 101 || (is_stream(entry) && entry.request.method == "GET") {
        return None;
    }
    entry.response.body.as_ref().map(|_| End::Complete)
}
