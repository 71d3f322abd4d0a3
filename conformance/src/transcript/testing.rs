//! Small transcripts for unit tests, written as the conversation that they record.
//!
//! ```ignore
//! let transcript = Script::new()
//!     .get("/api/events/stream?sessionId=s1")
//!     .answers(200, "text/event-stream")
//!     .chunk("event: system.connected\ndata: {}\n\n")
//!     .closes()
//!     .transcript();
//! ```

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::{
    End, Entry, ExchangeId, Fact, Header, Request, ResponseHead, Side, TargetFact, Transcript,
    WsFrame,
};

/// A transcript under construction. What follows a request belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    transcript: Transcript,
    now: Duration,
    exchanges: u32,
}

impl Script {
    /// Nothing has happened yet; wall clock zero is 2030-05-01T10:00:00Z, time scale 1.
    pub(crate) fn new() -> Self {
        let header = Header {
            started_ms: 1_903_860_000_000,
            ..Header::default()
        };
        Self {
            transcript: Transcript {
                header,
                entries: Vec::new(),
            },
            now: Duration::ZERO,
            exchanges: 0,
        }
    }

    /// The factor of the target's periods.
    pub(crate) fn scaled(mut self, factor: f64) -> Self {
        self.transcript.header.time_scale = factor;
        self
    }

    /// Time passes.
    pub(crate) fn wait_ms(mut self, ms: u64) -> Self {
        self.now += Duration::from_millis(ms);
        self
    }

    /// The scenario sets a label.
    pub(crate) fn label(self, name: &str) -> Self {
        self.fact(Fact::Label(name.to_owned()))
    }

    /// The target's process changes.
    pub(crate) fn target(self, fact: TargetFact) -> Self {
        self.fact(Fact::Target(fact))
    }

    /// The harness notes something.
    pub(crate) fn note(self, text: &str) -> Self {
        self.fact(Fact::Note(text.to_owned()))
    }

    /// Opens an exchange with a GET.
    pub(crate) fn get(self, target: &str) -> Self {
        self.request(Request {
            method: "GET".into(),
            target: target.into(),
            ..Request::default()
        })
    }

    /// Opens an exchange with a POST of JSON.
    pub(crate) fn post(self, target: &str, body: &Value) -> Self {
        self.request(Request {
            method: "POST".into(),
            target: target.into(),
            headers: vec![("content-type".into(), "application/json".into())],
            body: Bytes::from(body.to_string()),
        })
    }

    /// Opens an exchange with any request.
    pub(crate) fn request(mut self, request: Request) -> Self {
        self.exchanges += 1;
        let exchange = self.exchange();
        self.fact(Fact::Request { exchange, request })
    }

    /// The response head, with a content type unless that is empty.
    pub(crate) fn answers(self, status: u16, content_type: &str) -> Self {
        let typed = (!content_type.is_empty())
            .then(|| ("content-type".to_owned(), content_type.to_owned()));
        self.head(ResponseHead {
            status,
            headers: typed.into_iter().collect(),
        })
    }

    /// Any response head.
    pub(crate) fn head(self, head: ResponseHead) -> Self {
        let exchange = self.exchange();
        self.fact(Fact::Response { exchange, head })
    }

    /// A whole JSON response.
    pub(crate) fn answers_json(self, status: u16, body: &Value) -> Self {
        self.answers(status, "application/json")
            .chunk(&body.to_string())
            .ends()
    }

    /// A piece of the body.
    pub(crate) fn chunk(self, text: &str) -> Self {
        let exchange = self.exchange();
        self.fact(Fact::Chunk {
            exchange,
            bytes: Bytes::copy_from_slice(text.as_bytes()),
        })
    }

    /// An action frame: one data line.
    pub(crate) fn data(self, json: &Value) -> Self {
        self.chunk(&format!("data: {json}\n\n"))
    }

    /// A subscription frame: event line, data line.
    pub(crate) fn event(self, name: &str, json: &Value) -> Self {
        self.chunk(&format!("event: {name}\ndata: {json}\n\n"))
    }

    /// Opens a WebSocket.
    pub(crate) fn websocket(self, target: &str) -> Self {
        self.get(target).answers(101, "")
    }

    /// A text message of the client.
    pub(crate) fn client_says(self, text: &str) -> Self {
        self.ws(Side::Client, WsFrame::Text(text.to_owned()))
    }

    /// A text message of the server.
    pub(crate) fn server_says(self, text: &str) -> Self {
        self.ws(Side::Server, WsFrame::Text(text.to_owned()))
    }

    /// A WebSocket frame on the newest exchange.
    pub(crate) fn ws(self, from: Side, frame: WsFrame) -> Self {
        let exchange = self.exchange();
        self.fact(Fact::WebSocket {
            exchange,
            from,
            frame,
        })
    }

    /// A client under test reports.
    pub(crate) fn reports(self, state: Value) -> Self {
        self.fact(Fact::State(state))
    }

    /// The target ends the response.
    pub(crate) fn ends(self) -> Self {
        self.end(End::Complete)
    }

    /// The harness closes the connection.
    pub(crate) fn closes(self) -> Self {
        self.end(End::ClosedByHarness)
    }

    /// The connection breaks.
    pub(crate) fn breaks(self) -> Self {
        self.end(End::Broken("connection reset".into()))
    }

    /// The exchange ends in any way.
    pub(crate) fn end(self, how: End) -> Self {
        let exchange = self.exchange();
        self.fact(Fact::End { exchange, how })
    }

    /// What was recorded.
    pub(crate) fn transcript(self) -> Transcript {
        self.transcript
    }

    fn exchange(&self) -> ExchangeId {
        ExchangeId(self.exchanges)
    }

    fn fact(mut self, fact: Fact) -> Self {
        self.transcript.entries.push(Entry { at: self.now, fact });
        self
    }
}
