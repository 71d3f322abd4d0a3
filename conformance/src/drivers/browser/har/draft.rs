//! One exchange while it grows. Times are Chromium's: seconds of a clock that only runs forward.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use turnwire_spec::sse;

use super::PageId;

/// An exchange.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) page: PageId,
    pub(super) id: String,
    /// How many exchanges of this request came before, as when it was redirected.
    pub(super) hop: usize,
    /// Chromium's word, such as `Fetch`.
    pub(super) kind: String,
    pub(super) request: Value,
    pub(super) started: f64,
    /// What to add to a time for Unix seconds.
    pub(super) to_unix: Option<f64>,
    pub(super) response: Option<Value>,
    pub(super) body: Body,
    /// Time and length of what came of a stream before its bytes were asked for.
    early: Vec<(f64, usize)>,
    /// Events as an `EventSource` dispatched them.
    dispatched: Vec<StreamEvent>,
    pub(super) messages: Vec<SocketMessage>,
    pub(super) finished: Option<f64>,
    pub(super) error: Option<String>,
    pub(super) last: f64,
}

/// What is known of the body of a response.
#[derive(Debug, Default)]
pub(super) enum Body {
    /// Nothing.
    #[default]
    Unknown,
    /// All of it.
    Bytes(Vec<u8>),
    /// A stream so far: what had come when its bytes were asked for, and what came since, with times.
    Stream {
        buffered: Vec<u8>,
        pieces: Vec<(f64, Vec<u8>)>,
    },
}

/// An event of an event stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StreamEvent {
    pub(super) at: f64,
    pub(super) name: String,
    pub(super) id: String,
    pub(super) data: String,
}

/// A message on a WebSocket.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SocketMessage {
    pub(super) at: f64,
    pub(super) sent: bool,
    pub(super) opcode: u64,
    pub(super) data: String,
}

impl Draft {
    /// The exchange of `Network.requestWillBeSent`.
    pub(super) fn request(page: PageId, params: &Value) -> Self {
        let started = seconds(&params["timestamp"]);
        let kind = params["type"].as_str().unwrap_or("Other");
        Self {
            kind: kind.to_owned(),
            request: params["request"].clone(),
            to_unix: params["wallTime"].as_f64().map(|wall| wall - started),
            ..Self::new(page, &params["requestId"], started)
        }
    }

    /// The exchange of `Network.webSocketCreated`.
    pub(super) fn socket(page: PageId, params: &Value) -> Self {
        let request = serde_json::json!({ "method": "GET", "url": params["url"], "headers": {} });
        Self {
            kind: "WebSocket".to_owned(),
            request,
            ..Self::new(page, &params["requestId"], 0.0)
        }
    }

    fn new(page: PageId, id: &Value, started: f64) -> Self {
        Self {
            page,
            id: id.as_str().unwrap_or_default().to_owned(),
            hop: 0,
            kind: String::new(),
            request: Value::Null,
            started,
            to_unix: None,
            response: None,
            body: Body::Unknown,
            early: Vec::new(),
            dispatched: Vec::new(),
            messages: Vec::new(),
            finished: None,
            error: None,
            last: started,
        }
    }

    /// Unix seconds of the request.
    pub(super) fn started_unix(&self) -> Option<f64> {
        self.to_unix.map(|more| self.started + more)
    }

    pub(super) fn response(&mut self, response: &Value) {
        self.response = Some(response.clone());
    }

    pub(super) fn finish(&mut self, at: &Value) {
        let at = seconds(at);
        self.finished = Some(at);
        self.last = self.last.max(at);
    }

    /// Whether it is answered with an event stream.
    fn is_event_stream(&self) -> bool {
        let response = self.response.as_ref();
        response.is_some_and(|response| response["mimeType"] == "text/event-stream")
    }

    /// Whether a script asked for it, and not the page.
    pub(super) fn is_of_a_script(&self) -> bool {
        matches!(self.kind.as_str(), "Fetch" | "XHR" | "EventSource")
    }

    /// Whether its body, or what came of it so far, is known.
    pub(super) fn is_known(&self) -> bool {
        !matches!(self.body, Body::Unknown)
    }

    /// Takes any other event of the exchange; gives the bytes that are kept of it.
    pub(super) fn take(&mut self, method: &str, params: &Value) -> usize {
        let at = seconds(&params["timestamp"]);
        self.last = self.last.max(at);
        match method {
            "Network.dataReceived" => self.data(at, params),
            "Network.loadingFailed" => {
                self.finished = Some(at);
                let why = params["errorText"].as_str().filter(|text| !text.is_empty());
                self.error = Some(why.unwrap_or("net::ERR_FAILED").to_owned());
                0
            }
            "Network.eventSourceMessageReceived" => {
                let text = |member: &str| params[member].as_str().unwrap_or_default().to_owned();
                self.dispatched.push(StreamEvent {
                    at,
                    name: text("eventName"),
                    id: text("eventId"),
                    data: text("data"),
                });
                params["data"].as_str().map_or(0, str::len)
            }
            "Network.webSocketWillSendHandshakeRequest" => {
                self.started = at;
                self.to_unix = params["wallTime"].as_f64().map(|wall| wall - at);
                self.request["headers"] = params["request"]["headers"].clone();
                0
            }
            "Network.webSocketHandshakeResponseReceived" => {
                self.response = Some(params["response"].clone());
                0
            }
            "Network.webSocketFrameSent" => self.message(at, true, &params["response"]),
            "Network.webSocketFrameReceived" => self.message(at, false, &params["response"]),
            "Network.webSocketClosed" => {
                self.finished = Some(at);
                0
            }
            _ => 0,
        }
    }

    fn data(&mut self, at: f64, params: &Value) -> usize {
        match params["data"].as_str().map(|text| STANDARD.decode(text)) {
            Some(Ok(piece)) => {
                let length = piece.len();
                if let Body::Stream { pieces, .. } = &mut self.body {
                    pieces.push((at, piece));
                } else {
                    let buffered = Vec::new();
                    let pieces = vec![(at, piece)];
                    self.body = Body::Stream { buffered, pieces };
                }
                length
            }
            _ => {
                let length = params["dataLength"].as_u64().unwrap_or_default();
                self.early
                    .push((at, usize::try_from(length).unwrap_or(usize::MAX)));
                0
            }
        }
    }

    fn message(&mut self, at: f64, sent: bool, frame: &Value) -> usize {
        let data = frame["payloadData"].as_str().unwrap_or_default().to_owned();
        let length = data.len();
        self.messages.push(SocketMessage {
            at,
            sent,
            opcode: frame["opcode"].as_u64().unwrap_or_default(),
            data,
        });
        length
    }

    /// What had come of a stream when its bytes were asked for. Pieces may have come before this answer.
    pub(super) fn buffered(&mut self, bytes: Vec<u8>) -> usize {
        let length = bytes.len();
        if let Body::Stream { buffered, .. } = &mut self.body {
            *buffered = bytes;
        } else {
            let (buffered, pieces) = (bytes, Vec::new());
            self.body = Body::Stream { buffered, pieces };
        }
        length
    }

    /// All of the body.
    pub(super) fn whole(&mut self, body: Body) -> usize {
        if matches!(self.body, Body::Stream { .. }) {
            return 0;
        }
        self.body = body;
        self.bytes().map_or(0, |bytes| bytes.len())
    }

    /// Forgets the body and the messages; gives how many bytes those were.
    pub(super) fn give_up(&mut self) -> usize {
        let held = self.bytes().map_or(0, |bytes| bytes.len());
        let messages: usize = self.messages.iter().map(|message| message.data.len()).sum();
        let events: usize = self.dispatched.iter().map(|event| event.data.len()).sum();
        (self.body, self.messages, self.dispatched) = Default::default();
        held + messages + events
    }

    /// The body, when it is known.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        match &self.body {
            Body::Unknown => None,
            Body::Bytes(bytes) => Some(bytes.clone()),
            Body::Stream { .. } => Some(
                self.pieces()
                    .into_iter()
                    .flat_map(|(_, piece)| piece.iter().copied())
                    .collect(),
            ),
        }
    }

    /// A stream in pieces, with the time of each.
    fn pieces(&self) -> Vec<(f64, &[u8])> {
        let Body::Stream { buffered, pieces } = &self.body else {
            return Vec::new();
        };
        let mut rest = &buffered[..];
        let mut cut = Vec::new();
        let mut at = self.started;
        for (time, length) in &self.early {
            let (piece, more) = rest.split_at((*length).min(rest.len()));
            (at, rest) = (*time, more);
            cut.push((*time, piece));
        }
        cut.push((at, rest));
        cut.extend(pieces.iter().map(|(time, piece)| (*time, &piece[..])));
        cut.retain(|(_, piece)| !piece.is_empty());
        cut
    }

    /// The events of a stream: as an `EventSource` dispatched them, or as one would have.
    pub(super) fn events(&self) -> Vec<StreamEvent> {
        if !self.is_event_stream() {
            return Vec::new();
        }
        if self.kind == "EventSource" {
            return self.dispatched.clone();
        }
        let mut decoder = sse::Decoder::new(sse::Limits::NONE);
        let mut events = Vec::new();
        for (at, piece) in self.pieces() {
            let fed = decoder.feed(piece, |event| {
                events.push(StreamEvent {
                    at,
                    name: event.event.to_owned(),
                    id: event.last_event_id.to_owned(),
                    data: event.data.to_owned(),
                });
            });
            if fed.is_err() {
                break;
            }
        }
        events
    }
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}
