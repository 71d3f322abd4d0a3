//! The mock model providers as the server that an adapter under test calls: every byte of every exchange goes
//! into the transcript, as the harness got it and sent it.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bytes::Bytes;
use http::{HeaderMap, request::Parts};
use serde_json::{Value, json};
use turnwire_mock::{Mock, MockConfig, MockServer, Outcome, Tap};
use turnwire_spec::{
    catalogue::{Catalogue, Entry, Rewrite},
    llm::Wire,
};

use super::DriveError;
use crate::saboteurs::generic;
use crate::transcript::{End, ExchangeId, Fact, Request, ResponseHead, record::Recorder};

/// A mock provider of one scenario, with a port of its own. It ends when it is dropped.
#[derive(Debug)]
pub struct Provider {
    server: MockServer,
}

impl Provider {
    /// Starts it on a free port of the loopback device; `recorder` gets every exchange.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when there is no free port.
    pub async fn start(recorder: Recorder) -> Result<Self, DriveError> {
        let config = MockConfig {
            tap: Some(Arc::new(Recording::new(recorder))),
            ..MockConfig::default()
        };
        Self::with(config).await
    }

    /// Starts it on a free port of the loopback device; it takes only this key. `recorder` gets every exchange, and
    /// what the service's rules say about every request, see [`Judging`].
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when there is no free port.
    pub async fn judging(recorder: Recorder, key: &str) -> Result<Self, DriveError> {
        let recording = Arc::new(Recording::new(recorder));
        let config = MockConfig {
            tap: Some(recording.clone()),
            keys: vec![key.to_owned()],
            ..MockConfig::default()
        };
        let provider = Self::with(config).await?;
        // Nobody knows the address yet, so no request came without a judge.
        let _ = recording.judging.set(Judging {
            mock: provider.mock().clone(),
        });
        Ok(provider)
    }

    /// Starts it without anybody who records what happens.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when there is no free port.
    pub async fn unrecorded() -> Result<Self, DriveError> {
        Self::with(MockConfig::default()).await
    }

    async fn with(config: MockConfig) -> Result<Self, DriveError> {
        let started = MockServer::start(config).await;
        let server = started.map_err(|error| DriveError::Harness(error.to_string()))?;
        Ok(Self { server })
    }

    /// What it answers with.
    pub fn mock(&self) -> &Mock {
        self.server.mock()
    }

    /// Where it listens, without any path: `http://127.0.0.1:PORT`.
    pub fn root(&self) -> String {
        format!("http://{}", self.server.addr())
    }

    /// The path below the root that clients of a wire are given.
    pub fn path_of(&self, wire: Wire) -> String {
        let url = self.server.base_url_of(wire);
        url.strip_prefix(&self.root())
            .map(str::to_owned)
            .unwrap_or_default()
    }
}

/// Writes the exchanges of a mock into a transcript.
#[derive(Debug)]
struct Recording {
    recorder: Recorder,
    /// The transcript was full when one of these had more to say.
    full: Mutex<HashSet<u64>>,
    judging: OnceLock<Judging>,
}

/// What the service's rules say about each request, as a fact of the transcript:
/// `{"request": EXCHANGE, "breaks": [{"id", "message"}], "shows": [ID]}`.
///
/// A request shows a rule when it breaks it, or when the sabotage of the rule's requirement, done to this very
/// request, would: so a rule counts as shown only by requests that could have broken it.
#[derive(Debug)]
struct Judging {
    mock: Mock,
}

impl Judging {
    fn judge(&self, exchange: ExchangeId, parts: &Parts, request: &Request) -> Value {
        let breaks = self.mock.breaches(parts, &request.body);
        let rules = Catalogue::embedded()
            .areas()
            .iter()
            .filter(|area| area.name == "llm-requests")
            .flat_map(|area| &area.entries);
        let shows: Vec<&str> = rules
            .filter(|entry| {
                breaks.iter().any(|one| one.id == entry.id) || self.could_break(entry, request)
            })
            .map(|entry| entry.id.as_str())
            .collect();
        json!({ "request": exchange.0, "breaks": breaks, "shows": shows })
    }

    fn could_break(&self, entry: &Entry, request: &Request) -> bool {
        let Some(Rewrite::Request(rewrite)) = &entry.rewrite else {
            return false;
        };
        let changed = generic::changed(rewrite, request).filter(|changed| changed != request);
        let found = changed.and_then(|changed| {
            let parts = parts_of(&changed)?;
            Some(self.mock.breaches(&parts, &changed.body))
        });
        found.is_some_and(|found| found.iter().any(|one| one.id == entry.id))
    }
}

fn parts_of(request: &Request) -> Option<Parts> {
    let mut builder = http::Request::builder()
        .method(request.method.as_str())
        .uri(&request.target);
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    Some(builder.body(()).ok()?.into_parts().0)
}

impl Recording {
    fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            full: Mutex::default(),
            judging: OnceLock::new(),
        }
    }
}

fn id(exchange: u64) -> ExchangeId {
    // The numbers are those that the recorder gave out.
    ExchangeId(u32::try_from(exchange).unwrap_or(u32::MAX))
}

fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers
        .iter()
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect()
}

impl Tap for Recording {
    fn request(&self, parts: &Parts, body: &Bytes) -> u64 {
        let exchange = self.recorder.next_exchange();
        let request = Request {
            method: parts.method.to_string(),
            target: parts
                .uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), ToString::to_string),
            headers: texts(&parts.headers),
            body: body.clone(),
        };
        let judged = self
            .judging
            .get()
            .map(|judging| judging.judge(exchange, parts, &request));
        self.recorder.tell(Fact::Request { exchange, request });
        if let Some(judged) = judged {
            self.recorder.tell(Fact::State(judged));
        }
        u64::from(exchange.0)
    }

    fn response(&self, exchange: u64, status: u16, headers: &HeaderMap) {
        let head = ResponseHead {
            status,
            headers: texts(headers),
        };
        self.recorder.tell(Fact::Response {
            exchange: id(exchange),
            head,
        });
    }

    fn chunk(&self, exchange: u64, bytes: &Bytes) {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        if full.contains(&exchange) {
            return;
        }
        let room = self.recorder.tell(Fact::Chunk {
            exchange: id(exchange),
            bytes: bytes.clone(),
        });
        if !room {
            full.insert(exchange);
        }
    }

    fn end(&self, exchange: u64, outcome: Outcome) {
        let how = match outcome {
            Outcome::Complete => End::Complete,
            Outcome::ClientClosed => End::Broken("the testee closed the connection".to_owned()),
            Outcome::Broken | Outcome::Running => End::ClosedByHarness,
        };
        self.recorder.tell(Fact::End {
            exchange: id(exchange),
            how,
        });
    }
}
