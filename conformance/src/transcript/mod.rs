//! Everything that happened in one run of a scenario, losslessly.
//!
//! A [`Transcript`] is a header and a list of timed [`Fact`]s: requests, response heads, body chunks as they
//! arrived, WebSocket frames, stdio lines, how each exchange ended, what became of the target's process, and
//! the labels that the scenario set. Checks read transcripts through [`views`] and see nothing else.
//!
//! - [`text`]: the one text form, `*.twire` (golden files, recordings, counterexamples);
//! - [`diff`]: what differs between two of them;
//! - [`har`]: import of what a browser exports;
//! - [`record`]: collecting facts while a scenario runs;
//! - [`lateness`]: how late the harness itself was; [`mark`]: what it notes of an exchange; [`cut`]: streams that it cut
//!   off on purpose;
//! - [`views`]: typed readings (exchanges, event-stream frames, subscriptions, action streams).
//!
//! No judgement lives here, and no sockets.

use std::time::Duration;

use bytes::Bytes;

pub mod cut;
pub mod diff;
pub mod har;
pub mod lateness;
pub mod mark;
pub mod record;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;
pub mod views;

/// What happened, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// Where the transcript comes from.
    pub header: Header,
    /// The facts; `at` never decreases.
    pub entries: Vec<Entry>,
}

/// Where a transcript comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Suite name, such as `covel-sse`.
    pub suite: String,
    /// Scenario that provoked the traffic; empty for a recording.
    pub scenario: String,
    /// Requirement ids that the file is an example of; may be empty.
    pub requirements: Vec<String>,
    /// Wall clock at offset zero, Unix milliseconds; 0 when unknown.
    pub started_ms: i64,
    /// Factor that the target's protocol periods were multiplied with; 1 is real time.
    pub time_scale: f64,
    /// What whoever recorded it could not keep; empty for a recording of our own.
    pub lost: Vec<Lost>,
    /// Free text for readers, line by line.
    pub notes: Vec<String>,
}

/// Something that a transcript lacks because it was imported from a form that does not keep it. What cannot be
/// seen without it is not judged.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Lost {
    /// When the pieces of a body arrived: all have the time at which the last one did.
    Times,
    /// The bytes of event streams: frames were put together again from their events.
    Bytes,
}

impl Lost {
    /// All that can be lost.
    pub const ALL: [Self; 2] = [Self::Times, Self::Bytes];

    /// The word for it in the text form.
    pub fn word(self) -> &'static str {
        match self {
            Self::Times => "times",
            Self::Bytes => "bytes",
        }
    }
}

impl Default for Header {
    fn default() -> Self {
        Self {
            suite: String::new(),
            scenario: String::new(),
            requirements: Vec::new(),
            started_ms: 0,
            time_scale: 1.0,
            lost: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// One fact with the time at which the harness saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Offset from the start of the transcript, microsecond resolution, not scaled.
    pub at: Duration,
    /// What was seen.
    pub fact: Fact,
}

/// Numbers the exchanges (HTTP request and answer, WebSocket connection, stdio channel) of one transcript, from 1.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ExchangeId(pub u32);

/// One observation.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// The scenario names what follows; exchanges that open later belong to the newest label.
    Label(String),
    /// The target's process (or in-process instance) changed.
    Target(TargetFact),
    /// The harness sent a request; its body is sent as one piece.
    Request {
        /// Exchange that this opens.
        exchange: ExchangeId,
        /// Request as sent.
        request: Request,
    },
    /// The response head arrived.
    Response {
        /// Exchange that it answers.
        exchange: ExchangeId,
        /// Status and headers as received.
        head: ResponseHead,
    },
    /// A piece of the response body arrived (transfer coding removed).
    Chunk {
        /// Exchange whose body it is part of.
        exchange: ExchangeId,
        /// The bytes.
        bytes: Bytes,
    },
    /// A WebSocket frame or message was seen.
    WebSocket {
        /// Exchange of the upgrade request.
        exchange: ExchangeId,
        /// Who sent it.
        from: Side,
        /// The frame.
        frame: WsFrame,
    },
    /// A line on a stdio or socket channel.
    Line {
        /// Channel, numbered like an exchange.
        exchange: ExchangeId,
        /// Who sent it.
        from: Side,
        /// The line without its terminator.
        bytes: Bytes,
    },
    /// The exchange is over.
    End {
        /// Exchange that ended.
        exchange: ExchangeId,
        /// How it ended.
        how: End,
    },
    /// A client under test reported what it shows.
    State(serde_json::Value),
    /// A remark for readers; judged by nothing.
    Note(String),
}

impl Fact {
    /// The exchange that it is about, when it is about one.
    pub fn exchange(&self) -> Option<ExchangeId> {
        match self {
            Self::Request { exchange, .. }
            | Self::Response { exchange, .. }
            | Self::Chunk { exchange, .. }
            | Self::WebSocket { exchange, .. }
            | Self::Line { exchange, .. }
            | Self::End { exchange, .. } => Some(*exchange),
            Self::Label(_) | Self::Target(_) | Self::State(_) | Self::Note(_) => None,
        }
    }
}

/// The two ends of a wire, seen from the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The client end.
    Client,
    /// The server end.
    Server,
}

/// What became of the target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TargetFact {
    /// It answers; the variant of the profile that it was started as (`default` when none).
    Started {
        /// Name of the variant in the profile.
        variant: String,
    },
    /// It was asked to stop and did.
    Stopped,
    /// It was killed without warning.
    Killed,
}

/// A request as the harness sent it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Method, upper case.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers in the order sent.
    pub headers: Vec<(String, String)>,
    /// Body; empty when there is none.
    pub body: Bytes,
}

/// A response head as it was received.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseHead {
    /// Status code.
    pub status: u16,
    /// Headers in the order received; bytes that are no UTF-8 are replaced.
    pub headers: Vec<(String, String)>,
}

/// A WebSocket frame.
#[derive(Clone, Debug, PartialEq)]
pub enum WsFrame {
    /// Text message.
    Text(String),
    /// Binary message.
    Binary(Bytes),
    /// Ping with its payload.
    Ping(Bytes),
    /// Pong with its payload.
    Pong(Bytes),
    /// Close with code and reason, when given.
    Close(Option<(u16, String)>),
}

/// How an exchange ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum End {
    /// The target ended the response properly.
    Complete,
    /// The connection broke off before the response was complete; with the transport's words.
    Broken(String),
    /// The harness closed the connection.
    ClosedByHarness,
    /// Nothing (more) came within the time that the harness waits.
    TimedOut,
    /// More came than the harness keeps; the rest was not read.
    TooLarge,
    /// No connection could be made; with the transport's words.
    NotConnected(String),
    /// What came back is not HTTP; with the parser's words.
    NotHttp(String),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Complete => "it ended",
            Self::ClosedByHarness => "it was ended",
            Self::TimedOut => "nothing came in time",
            Self::TooLarge => "more came than is taken",
            Self::Broken(why) | Self::NotConnected(why) | Self::NotHttp(why) => why,
        })
    }
}

/// Looks a header up, ignoring case.
pub fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// Whether a message with these headers is an event stream.
pub fn is_event_stream(headers: &[(String, String)]) -> bool {
    let media_type = header(headers, "content-type").and_then(|value| value.split(';').next());
    media_type.is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case("text/event-stream"))
}
