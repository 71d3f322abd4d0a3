//! The mock model providers as the server that an adapter under test calls: every byte of every exchange goes
//! into the transcript, as the harness got it and sent it.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{HeaderMap, request::Parts};
use turnwire_mock::{Mock, MockConfig, MockServer, Outcome, Tap};
use turnwire_spec::llm::Wire;

use super::DriveError;
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
}

impl Recording {
    fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            full: Mutex::default(),
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
        self.recorder.tell(Fact::Request { exchange, request });
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
