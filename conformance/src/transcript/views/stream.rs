//! Event streams of a transcript: frames with the time at which each was complete.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use turnwire_spec::{
    catalogue::rule::StreamKind,
    sse::{self, Frame},
};

use super::{
    http::{Exchange, exchanges},
    memory,
};
use crate::{
    transcript::{End, Transcript},
    verdict::Evidence,
};

/// One response that is an event stream.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    /// The exchange.
    pub exchange: Exchange<'a>,
    /// Which of the protocol's streams it is; `None` for any other.
    pub kind: Option<StreamKind>,
    /// Blocks that dispatch or carry fields; comments-only blocks too, in order.
    pub frames: Frames,
}

/// The frames of one stream, shared by those who read the same transcript.
pub type Frames = Arc<[StreamFrame]>;

/// One frame of a stream.
#[derive(Clone, Debug)]
pub struct StreamFrame {
    /// Position among the frames of the stream, from 0.
    pub index: usize,
    /// When its last byte arrived.
    pub at: Duration,
    /// Lines and bytes.
    pub frame: Frame,
    /// Its data as JSON, when it is.
    pub json: Option<Value>,
}

/// All responses with the media type of an event stream, in the order in which they were opened.
pub fn streams(transcript: &Transcript) -> Vec<Stream<'_>> {
    let opened: Vec<_> = exchanges(transcript)
        .into_iter()
        .filter(|exchange| exchange.media_type().as_deref() == Some("text/event-stream"))
        .collect();
    let frames = memory::frames(transcript, || opened.iter().map(read_frames).collect());
    let known = opened.into_iter().zip(frames.iter());
    known
        .map(|(exchange, frames)| Stream {
            kind: kind_of(&exchange),
            exchange,
            frames: Arc::clone(frames),
        })
        .collect()
}

/// The streams of one kind.
pub fn streams_of(transcript: &Transcript, kind: StreamKind) -> Vec<Stream<'_>> {
    streams(transcript)
        .into_iter()
        .filter(|stream| stream.kind == Some(kind))
        .collect()
}

/// Which of the protocol's streams a request opens.
pub fn kind_of(exchange: &Exchange<'_>) -> Option<StreamKind> {
    kind_of_request(&exchange.request.method, exchange.path())
}

/// Which of the protocol's streams a request with this method and path opens.
pub fn kind_of_request(method: &str, path: &str) -> Option<StreamKind> {
    match (method, path) {
        ("POST", "/api/actions") => Some(StreamKind::Action),
        ("GET", "/api/events/stream") => Some(StreamKind::Subscription),
        ("GET", "/api/model-relay/stream") => Some(StreamKind::Relay),
        _ => None,
    }
}

fn read_frames(exchange: &Exchange<'_>) -> Frames {
    let ends = chunk_ends(exchange);
    sse::frames(&exchange.body())
        .frames
        .into_iter()
        .filter(|frame| !frame.is_blank())
        .enumerate()
        .map(|(index, frame)| StreamFrame {
            index,
            at: arrival(&ends, frame.end),
            json: frame
                .data()
                .and_then(|data| serde_json::from_str(&data).ok()),
            frame,
        })
        .collect()
}

impl Stream<'_> {
    /// Frames that carry an event: all but comments, and only complete ones.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &StreamFrame> {
        self.frames
            .iter()
            .filter(|frame| frame.frame.terminated && !frame.frame.is_comment_only())
    }

    /// Whether the target ended the stream itself, properly.
    pub fn ended_by_target(&self) -> bool {
        matches!(self.exchange.end, Some((_, End::Complete)))
    }

    /// Evidence at one of its frames.
    pub fn evidence(
        &self,
        frame: &StreamFrame,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Evidence {
        Evidence {
            at: Some(frame.at),
            frame: Some(frame.index),
            ..self.exchange.evidence(expected, got)
        }
    }
}

impl StreamFrame {
    /// Type of the event: the `event` line of a named frame, else the `type` member of the data, else `message`.
    pub fn event_type(&self) -> &str {
        event_type(&self.frame, self.json.as_ref())
    }

    /// A top-level member of the data.
    pub fn member(&self, name: &str) -> Option<&Value> {
        self.json.as_ref()?.get(name)
    }

    /// The value at a JSON pointer of the data.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        self.json.as_ref()?.pointer(pointer)
    }

    /// The frame's bytes as text, for evidence.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.frame.to_bytes()).into_owned()
    }
}

/// Type of a frame's event: its `event` line, else the `type` member of its data, else `message`.
pub fn event_type<'f>(frame: &'f Frame, json: Option<&'f Value>) -> &'f str {
    frame
        .event()
        .or_else(|| json?.get("type")?.as_str())
        .unwrap_or("message")
}

/// A value as it stands in a line or a query: strings without quotes, anything else as JSON.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether a type fits one of the patterns; `system.*` matches a prefix.
pub fn type_matches(patterns: &[String], name: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => pattern == name,
        })
}

fn chunk_ends(exchange: &Exchange<'_>) -> Vec<(usize, Duration)> {
    let mut total = 0;
    exchange
        .chunks
        .iter()
        .map(|(at, bytes)| {
            total += bytes.len();
            (total, *at)
        })
        .collect()
}

/// When the byte before `end` arrived.
fn arrival(ends: &[(usize, Duration)], end: usize) -> Duration {
    let index = ends.partition_point(|(total, _)| *total < end);
    ends.get(index)
        .or(ends.last())
        .map(|(_, at)| *at)
        .unwrap_or_default()
}
