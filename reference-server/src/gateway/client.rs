//! A client of model services: one call, from the request to the answer, over any wire.
//!
//! ```text
//! target ──> request ──> attempt ──head──> reading ──wire's own end──> answer
//!    ^                    │  ^ │                └── broke off: error (nothing is sent again)
//!    │                    │  │ └─ refused, can pass: wait, try again
//!    │                    │  └──────────┘
//!    └── next fallback <──┘ refused for good, or silent for too long, before any output
//! ```
//!
//! Nothing is tried again once a success status has come: who wants that after output was shown has to take
//! the output back. A fallback is asked as long as there was no output.
//!
//! Waiting is told apart: the first-token wait of an attempt, the idle wait between two pieces, the wait
//! before the next attempt (which counts for neither), and the budget of the whole call (which counts
//! everything).
//!
//! Source: seed 000, lines 540-545 and 1193-1200.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::continuation::Origin;
use super::error::{ErrorKind, GatewayError};
use super::fallback;
use super::http::{Answer, BadBaseUrl, Endpoint, HttpError, Outgoing, post};
use super::read::{Body, Progress, Reader};
use super::refusal::{Fault, of_status, without_keys};
use super::reply::{FinishReason, ModelEvent, ModelReply};
use super::request::{ModelRequest, Target};
use super::retry;
use super::schema;
use super::settings::{ClientConfig, TargetConfig};
use super::trace::SentRequest;
use super::wires::{self, Asking};
use super::{Gateway, ModelStream};

/// Bytes of an error body that are read.
const ERROR_BYTES: usize = 64 << 10;
/// How long nothing may come behind a complete answer, until it counts as all that there is. Its usage may still
/// follow, in as many pieces as it likes: every byte begins the wait anew, up to the idle wait in all.
const AFTERWARDS: Duration = Duration::from_secs(2);
/// How often one answer may go on in another request.
const ROUNDS: u32 = 8;

/// Why there is no client.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadClient {
    /// It has nobody to ask.
    #[error("there is no target")]
    NoTarget,
    /// A base URL is none.
    #[error(transparent)]
    BaseUrl(#[from] BadBaseUrl),
}

/// A client of model services. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: ClientConfig,
    endpoints: Vec<Endpoint>,
}

impl Client {
    /// A client with these targets.
    ///
    /// # Errors
    ///
    /// [`BadClient`] when there is no target, or when a base URL is no absolute http or https URL.
    pub fn new(config: ClientConfig) -> Result<Self, BadClient> {
        if config.targets.is_empty() {
            return Err(BadClient::NoTarget);
        }
        let endpoints = config
            .targets
            .iter()
            .map(|target| Endpoint::parse(target.address()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            inner: Arc::new(Inner { config, endpoints }),
        })
    }

    /// Begins a call; nothing is sent before [`Call::next`].
    #[must_use]
    pub fn begin(&self, request: ModelRequest) -> Call {
        let budget = self.inner.config.budget;
        Call {
            client: Arc::clone(&self.inner),
            request: Arc::new(request),
            place: 0,
            attempt: 0,
            state: State::Begin,
            ready: VecDeque::new(),
            sent: Vec::new(),
            shown: false,
            budget: budget.map(|budget| Instant::now() + budget),
        }
    }

    /// Makes a call and waits for its end.
    pub async fn ask(&self, request: ModelRequest) -> Outcome {
        let mut call = self.begin(request);
        let mut events = Vec::new();
        let result = loop {
            match call.next().await {
                Some(Ok(ModelEvent::Done(reply))) => break Ok(*reply),
                Some(Ok(event)) => events.push(event),
                Some(Err(error)) => break Err(error),
                None => break Err(call.error(&Fault::cut())),
            }
        };
        Outcome {
            events,
            result,
            sent: call.sent,
        }
    }
}

/// How a call ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Text, thinking and tool calls in the order in which they came; never [`ModelEvent::Done`].
    pub events: Vec<ModelEvent>,
    /// The answer, or why there is none. What came before an error is in `events`.
    pub result: Result<ModelReply, GatewayError>,
    /// The requests that were sent, in order: attempts and fallbacks.
    pub sent: Vec<SentRequest>,
}

/// One call. Dropping it cuts it off; dropping the future of [`Call::next`] loses nothing.
pub struct Call {
    client: Arc<Inner>,
    request: Arc<ModelRequest>,
    /// Which target is asked.
    place: usize,
    /// Which attempt at this target, from 1; 0 before the first.
    attempt: u32,
    state: State,
    ready: VecDeque<Result<ModelEvent, GatewayError>>,
    sent: Vec<SentRequest>,
    /// Whether some output was handed on.
    shown: bool,
    budget: Option<Instant>,
}

enum State {
    /// The next thing is to ask the target.
    Begin,
    /// Until this time, then the target is asked again.
    Wait(Instant),
    Open(Opening),
    Read(Box<Reading>),
    Over,
}

/// An attempt whose head has not come.
struct Opening {
    future: Pin<Box<dyn Future<Output = Opened> + Send>>,
    /// When the wait for the first output is over.
    first: Instant,
    begun: Instant,
    origin: Origin,
    outgoing: Outgoing,
    /// The answer that goes on in this request.
    goes_on: Option<(Box<dyn Reader>, u32)>,
}

/// What an attempt came to.
enum Opened {
    Accepted(Answer),
    Refused(Fault),
    Failed(HttpError),
}

/// An answer while it is read.
struct Reading {
    answer: Answer,
    body: Body,
    reader: Box<dyn Reader>,
    origin: Origin,
    outgoing: Outgoing,
    /// When the provider has been silent for too long.
    until: Instant,
    /// When an answer that is complete is handed on, whatever may still come.
    latest: Option<Instant>,
    streaming: bool,
    /// How often this answer has gone on in another request.
    round: u32,
}

impl Call {
    /// The next piece, or `None` after [`ModelEvent::Done`] or an error.
    pub async fn next(&mut self) -> Option<Result<ModelEvent, GatewayError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.shown |= matches!(
                    event,
                    Ok(ModelEvent::Text(_) | ModelEvent::Reasoning(_) | ModelEvent::ToolCall(_))
                );
                return Some(event);
            }
            if matches!(self.state, State::Over) {
                return None;
            }
            self.step().await;
        }
    }

    /// Goes on until the provider has accepted a request, or it is clear that nobody will: what then comes
    /// from [`Call::next`] is the error.
    pub async fn settle(&mut self) {
        while self.ready.is_empty() && !matches!(self.state, State::Read(_) | State::Over) {
            self.step().await;
        }
    }

    /// The requests that were sent so far, in order.
    #[must_use]
    pub fn sent(&self) -> &[SentRequest] {
        &self.sent
    }

    async fn step(&mut self) {
        match &mut self.state {
            State::Begin => self.attempt(),
            State::Wait(until) => {
                let until = *until;
                sleep_until(within(until, self.budget)).await;
                if self.budget.is_some_and(|budget| budget <= until) {
                    self.out_of_budget();
                } else {
                    self.state = State::Begin;
                }
            }
            State::Open(opening) => {
                let until = within(opening.first, self.budget);
                let opened = timeout_at(until, opening.future.as_mut()).await;
                self.opened(opened.ok());
            }
            State::Read(reading) => {
                let until = within(reading.until, self.budget);
                let chunk = timeout_at(until, reading.answer.chunk()).await;
                self.read(chunk.ok());
            }
            State::Over => {}
        }
    }

    fn target(&self) -> &TargetConfig {
        &self.client.config.targets[self.place]
    }

    fn name(&self) -> Target {
        let targets = &self.client.config.targets;
        Target {
            provider: self.target().provider.clone(),
            model: Some(fallback::model(targets, self.place, &self.request).to_owned()),
        }
    }

    fn key(&self) -> Option<&str> {
        self.target()
            .api_key
            .as_deref()
            .filter(|key| !key.is_empty())
    }

    /// The error that a fault of the target asked now is.
    fn error(&self, fault: &Fault) -> GatewayError {
        let message = without_keys(&fault.message, self.key());
        let error = GatewayError::new(fault.kind, message, self.name());
        GatewayError {
            code: error.code.or_else(|| fault.code.clone()),
            status: fault.status,
            retry_after: fault.retry_after,
            should_retry: fault.should_retry,
            ..error
        }
    }

    /// Writes the request for the target and sends it.
    fn attempt(&mut self) {
        self.attempt += 1;
        match self.written() {
            Err(fault) => {
                let error = self.error(&fault);
                self.give_up(error);
            }
            Ok((origin, outgoing)) => self.send(origin, outgoing, None),
        }
    }

    fn written(&self) -> Result<(Origin, Outgoing), Fault> {
        let (target, targets) = (self.target(), &self.client.config.targets);
        let endpoint = &self.client.endpoints[self.place];
        if endpoint.secure && self.key().is_none() {
            let message = format!("there is no key for {}", target.provider);
            return Err(Fault::new(ErrorKind::MissingKey, message));
        }
        let model = fallback::model(targets, self.place, &self.request);
        let origin = Origin::new(target.wire, model, target.address());
        let messages = fallback::messages(targets, self.place, &self.request);
        let asking = Asking {
            request: &self.request,
            messages: &messages,
            origin: &origin,
            endpoint,
            key: self.key(),
        };
        let outgoing = wires::outgoing(&asking)?;
        Ok((origin, outgoing))
    }

    fn send(
        &mut self,
        origin: Origin,
        outgoing: Outgoing,
        goes_on: Option<(Box<dyn Reader>, u32)>,
    ) {
        let timeouts = self.client.config.timeouts;
        let endpoint = self.client.endpoints[self.place].clone();
        let begun = Instant::now();
        self.sent.push(SentRequest::new(
            self.name(),
            origin.protocol,
            Arc::clone(&outgoing.body),
            self.attempt.saturating_sub(1),
        ));
        self.state = State::Open(Opening {
            future: Box::pin(open(endpoint, outgoing.clone(), timeouts.connect)),
            first: begun + timeouts.first,
            begun,
            origin,
            outgoing,
            goes_on,
        });
    }

    /// An attempt has come to something, or the patience with it to its end (`None`).
    fn opened(&mut self, opened: Option<Opened>) {
        let State::Open(opening) = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        if let Some(sent) = self.sent.last_mut() {
            let status = match &opened {
                Some(Opened::Accepted(answer)) => Some(answer.response.status().as_u16()),
                Some(Opened::Refused(fault)) => fault.status,
                Some(Opened::Failed(_)) | None => None,
            };
            sent.settle(opening.begun, status);
        }
        match opened {
            None => self.silent(opening.first, self.client.config.timeouts.first),
            Some(Opened::Failed(error)) => {
                let error = self.error(&Fault::new(ErrorKind::Network, error.to_string()));
                self.refused(error);
            }
            Some(Opened::Refused(fault)) => {
                let error = self.error(&fault);
                self.refused(error);
            }
            Some(Opened::Accepted(answer)) => self.accept(answer, opening),
        }
    }

    fn accept(&mut self, answer: Answer, opening: Opening) {
        let timeouts = self.client.config.timeouts;
        // After waits between attempts the wait for the first output begins anew with the answer.
        let until = if self.attempt > 1 {
            Instant::now() + timeouts.first
        } else {
            opening.first
        };
        let (reader, round) = opening
            .goes_on
            .unwrap_or_else(|| (wires::reader(&opening.origin, &self.request), 0));
        self.state = State::Read(Box::new(Reading {
            body: Body::new(answer.response.headers()),
            answer,
            reader,
            origin: opening.origin,
            outgoing: opening.outgoing,
            until,
            latest: None,
            streaming: self.request.streaming,
            round,
        }));
    }

    /// Bytes have come, or the end of the body, or nothing for too long (`None`).
    fn read(&mut self, chunk: Option<Result<Option<bytes::Bytes>, HttpError>>) {
        let State::Read(mut reading) = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        let mut out = Vec::new();
        let patience = self.client.config.timeouts;
        let ended = match chunk {
            Some(Ok(Some(bytes))) => {
                let fed = reading.body.feed(&bytes, reading.reader.as_mut(), &mut out);
                // A plain answer has no pieces: there, bytes are the signs of life.
                let alive = !out.is_empty() || !reading.streaming;
                let now = Instant::now();
                if reading.reader.is_complete() {
                    let latest = *reading.latest.get_or_insert(now + patience.idle);
                    reading.until = latest.min(now + AFTERWARDS);
                } else if alive {
                    reading.until = now + patience.idle;
                }
                match fed {
                    Ok(Progress::More) => None,
                    Ok(Progress::Over) => Some(Ok(())),
                    Err(fault) => Some(Err(fault)),
                }
            }
            Some(Ok(None)) => Some(reading.body.end(reading.reader.as_mut(), &mut out)),
            Some(Err(_)) | None if reading.reader.is_complete() => Some(Ok(())),
            Some(Err(error)) => {
                let message = format!("{}: {error}", Fault::cut().message);
                Some(Err(Fault::new(ErrorKind::Interrupted, message)))
            }
            None => {
                let period = if self.shown {
                    patience.idle
                } else {
                    patience.first
                };
                return self.silent(reading.until, period);
            }
        };
        let more = match &ended {
            Some(Ok(())) if reading.round < ROUNDS => reading.reader.go_on(),
            _ => None,
        };
        let ended = match (ended, &more) {
            (Some(Ok(())), None) => Some(reading.reader.finish(&mut out)),
            (Some(Err(fault)), _) => Some(Err(fault)),
            _ => None,
        };
        let shown = self.shown || !out.is_empty();
        self.ready.extend(out.into_iter().map(Ok));
        match (ended, more) {
            (Some(Ok(reply)), _) => self.complete(reply),
            (Some(Err(fault)), _) => {
                let error = self.error(&fault);
                self.broken(error, shown);
            }
            (None, Some(more)) => self.go_on(*reading, more),
            (None, None) => self.state = State::Read(reading),
        }
    }

    /// The same request again, with the member that makes the service go on.
    fn go_on(&mut self, reading: Reading, more: (&'static str, serde_json::Value)) {
        let mut body = (*reading.outgoing.body).clone();
        body[more.0] = more.1;
        let outgoing = Outgoing {
            body: Arc::new(body),
            ..reading.outgoing
        };
        let goes_on = Some((reading.reader, reading.round + 1));
        self.send(reading.origin, outgoing, goes_on);
    }

    fn complete(&mut self, mut reply: ModelReply) {
        reply.target = self.name();
        let wants = self.request.options.response_schema.as_ref();
        let is_answer = reply.tool_calls.is_empty() && reply.finish != FinishReason::ContentFilter;
        if let Some(schema) = wants.filter(|_| is_answer) {
            match schema::object(&reply.text, schema) {
                Ok(object) => reply.object = Some(object),
                Err(fault) => {
                    let error = self.error(&fault);
                    return self.ready.push_back(Err(error));
                }
            }
        }
        self.ready.push_back(Ok(ModelEvent::Done(Box::new(reply))));
    }

    fn silent(&mut self, until: Instant, period: Duration) {
        if self.budget.is_some_and(|budget| budget <= until) {
            return self.out_of_budget();
        }
        let message = format!("the provider was silent for {period:?}");
        let error = self.error(&Fault::new(ErrorKind::Timeout, message));
        self.broken(error, self.shown);
    }

    fn out_of_budget(&mut self) {
        let budget = self.client.config.budget.unwrap_or_default();
        let message = format!("the time for the request, {budget:?}, is used up");
        let error = self.error(&Fault::new(ErrorKind::Timeout, message));
        self.give_up_for_good(error);
    }

    /// The target refused before an answer began: tried again, or given up.
    fn refused(&mut self, error: GatewayError) {
        match self.client.config.retry.wait_after(self.attempt, &error) {
            Some(wait) if !self.shown => self.state = State::Wait(Instant::now() + wait),
            _ => self.broken(error, self.shown),
        }
    }

    /// The target has failed: another is asked, unless there was output.
    fn broken(&mut self, error: GatewayError, shown: bool) {
        if shown {
            self.give_up_for_good(error);
        } else {
            self.give_up(error);
        }
    }

    fn give_up(&mut self, error: GatewayError) {
        let targets = &self.client.config.targets;
        match fallback::next(targets, self.place, &self.request) {
            Some(place) => {
                self.place = place;
                self.attempt = 0;
                self.state = State::Begin;
            }
            None => self.give_up_for_good(error),
        }
    }

    fn give_up_for_good(&mut self, error: GatewayError) {
        self.state = State::Over;
        self.ready.push_back(Err(error));
    }
}

fn within(until: Instant, budget: Option<Instant>) -> Instant {
    budget.map_or(until, |budget| budget.min(until))
}

async fn open(endpoint: Endpoint, outgoing: Outgoing, connect: Duration) -> Opened {
    let mut answer = match post(endpoint, outgoing, connect).await {
        Ok(answer) => answer,
        Err(error) => return Opened::Failed(error),
    };
    let status = answer.response.status();
    if status.is_success() {
        return Opened::Accepted(answer);
    }
    let body = answer.upto(ERROR_BYTES).await;
    let headers = answer.response.headers();
    let fault = of_status(status, &body);
    Opened::Refused(Fault {
        retry_after: retry::asked(headers, Timestamp::now()).or(fault.retry_after),
        should_retry: retry::should_retry(headers),
        ..fault
    })
}

#[async_trait]
impl Gateway for Client {
    fn target(&self, _slot: &str) -> Target {
        let preferred = &self.inner.config.targets[0];
        Target {
            provider: preferred.provider.clone(),
            model: Some(preferred.model.clone()),
        }
    }

    async fn call(&self, request: ModelRequest) -> Result<Box<dyn ModelStream>, GatewayError> {
        let mut call = self.begin(request);
        call.settle().await;
        Ok(Box::new(call))
    }
}

#[async_trait]
impl ModelStream for Call {
    async fn next(&mut self) -> Option<Result<ModelEvent, GatewayError>> {
        Self::next(self).await
    }

    fn sent(&self) -> &[SentRequest] {
        &self.sent
    }
}
