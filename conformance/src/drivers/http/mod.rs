//! A recording HTTP/1.1 client.
//!
//! - [`url`]: the base URL of a target;
//! - [`call`]: a request; [`reply`]: a whole answer; [`events`]: an event stream, read by hand or in the background;
//! - [`upgrade`]: a request that turns its connection into something else;
//! - [`throttle`]: a target that lets no more requests through for now;
//! - [`connect`]: TCP, TLS, and the connection that a plain request may use again.
//!
//! It tells the [`Recorder`] of every request, response head, body chunk as it arrives, and end. It follows no
//! redirect and decompresses nothing: what is recorded is what was sent and received. It repeats nothing but what a target
//! refused for its rate, and only when it is told to, see [`HttpClient::wait_when_refused`].

use std::{
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use hyper::body::Incoming;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::transcript::{End, ExchangeId, Fact, ResponseHead, cut::CutAt, record::Recorder};

use self::{
    body::Body,
    connect::{Connection, Connector},
};
use super::{DriveError, causes};

mod body;
pub mod call;
pub mod connect;
pub mod events;
mod pump;
pub mod reply;
#[cfg(test)]
mod tests;
pub mod throttle;
pub mod upgrade;
pub mod url;

pub use call::Call;
pub use events::{EventStream, Reading};
pub use reply::Reply;
pub use throttle::Throttle;
pub use upgrade::{Switched, Upgrade};
pub use url::BaseUrl;

/// How long the client waits and how much it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HttpLimits {
    /// For a TCP connection and its TLS handshake.
    pub connect: Duration,
    /// From the request to the response head.
    pub head: Duration,
    /// Between two pieces of a plain answer.
    pub idle: Duration,
    /// For a whole plain answer. Streams are bounded by what the scenario waits.
    pub total: Duration,
    /// Bytes of a response head.
    pub max_head: usize,
    /// Bytes of one response body; more ends the exchange as [`End::TooLarge`].
    pub max_body: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(10),
            total: Duration::from_secs(30),
            max_head: 64 << 10,
            max_body: 16 << 20,
        }
    }
}

/// The client of one scenario. Clones share recorder, address and connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    recorder: Recorder,
    base: RwLock<BaseUrl>,
    limits: HttpLimits,
    connector: Connector,
    readers: TaskTracker,
    finished: CancellationToken,
    throttle: OnceLock<Throttle>,
}

/// An answer whose head is here and whose body is not.
struct Opened {
    head: ResponseHead,
    body: Body,
}

impl HttpClient {
    /// A client for the target at `base`, which tells `recorder` everything.
    pub fn new(base: BaseUrl, recorder: Recorder, limits: HttpLimits) -> Self {
        Self {
            inner: Arc::new(Inner {
                recorder,
                base: RwLock::new(base),
                limits,
                connector: Connector::default(),
                readers: TaskTracker::new(),
                finished: CancellationToken::new(),
                throttle: OnceLock::new(),
            }),
        }
    }

    /// From now on a request that the target refuses for its rate is sent again, after the time that the target asks for.
    /// Only the first call counts.
    pub fn wait_when_refused(&self, throttle: Throttle) {
        let _ = self.inner.throttle.set(throttle);
    }

    /// What it tells everything.
    pub fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// Where requests go now.
    pub fn base(&self) -> BaseUrl {
        self.inner
            .base
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sends later requests to another address, over new connections.
    pub fn rebase(&self, base: BaseUrl) {
        *self
            .inner
            .base
            .write()
            .unwrap_or_else(PoisonError::into_inner) = base;
        self.inner.connector.forget();
    }

    /// The limits it works within.
    pub fn limits(&self) -> &HttpLimits {
        &self.inner.limits
    }

    /// Sends a request and reads the whole answer, of any status. A body that breaks off, is too large or takes
    /// too long is no error; see [`Reply::end`].
    ///
    /// # Errors
    ///
    /// When there is no response head: [`DriveError::NotConnected`], [`DriveError::NotHttp`],
    /// [`DriveError::NoResponse`], [`DriveError::Silent`]; [`DriveError::Harness`] when the call is no HTTP
    /// request at all; [`DriveError::NotPossible`] when the target lets no more requests through for longer than the
    /// client waits.
    pub async fn send(&self, call: Call) -> Result<Reply, DriveError> {
        let line = call.line();
        let (asked, Opened { head, mut body }) = self.exchange(call, true).await?;
        let until = asked + self.inner.limits.total;
        let bytes = body.read_whole(self.inner.limits.idle, until).await;
        if let Some(connection) = body.release() {
            self.inner.connector.keep(connection);
        }
        let end = body.account().ended().unwrap_or(End::ClosedByHarness);
        Ok(Reply {
            request: line,
            exchange: body.account().exchange,
            status: head.status,
            headers: head.headers,
            body: bytes,
            end,
        })
    }

    /// Sends a request and reads the head only, over a connection of its own. Whatever the status, the body is
    /// read by the caller.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::send`].
    pub async fn open(&self, call: Call) -> Result<EventStream, DriveError> {
        let (line, by_hand) = (call.line(), call.receive_buffer.is_some());
        let (_, Opened { head, body }) = self.exchange(call, false).await?;
        Ok(EventStream::new(
            line,
            head,
            body,
            by_hand,
            self.inner.readers.clone(),
            self.inner.finished.clone(),
        ))
    }

    /// Ends what is still being read in the background, and closes all connections.
    pub async fn finish(&self) {
        self.inner.finished.cancel();
        self.inner.readers.close();
        self.inner.readers.wait().await;
        self.inner.connector.forget();
    }

    /// Sends a request, again while the target refuses it for its rate; gives the answer, and when it was asked for.
    async fn exchange(&self, call: Call, reuse: bool) -> Result<(Instant, Opened), DriveError> {
        loop {
            let asked = Instant::now();
            let (exchange, connection, response) = self.ask(&call, reuse).await?;
            let mut opened = self.opened(exchange, connection, response, call.cut);
            let Some(wait) = self.asks_to_wait(&call, &mut opened).await? else {
                return Ok((asked, opened));
            };
            self.inner.recorder.tell(throttle::note(exchange, wait));
            drop(opened);
            sleep(wait).await;
        }
    }

    /// How long to wait before the request is sent again, when the target refuses it for its rate and says when it will not.
    async fn asks_to_wait(
        &self,
        call: &Call,
        opened: &mut Opened,
    ) -> Result<Option<Duration>, DriveError> {
        let Some(throttle) = self.inner.throttle.get() else {
            return Ok(None);
        };
        let Opened { head, body } = opened;
        let header = |name| crate::transcript::header(&head.headers, name);
        let asked = header("retry-after")
            .filter(|_| head.status == throttle::STATUS)
            .and_then(|value| throttle::retry_after(value, header("date")));
        let Some(asked) = asked else {
            return Ok(None);
        };
        let limits = &self.inner.limits;
        let whole = body.peek(limits.idle, Instant::now() + limits.total).await;
        let code = serde_json::from_slice::<serde_json::Value>(&whole)
            .is_ok_and(|body| body["code"] == throttle::CODE);
        if !code {
            return Ok(None);
        }
        throttle.wait(&call.line(), asked).map(Some)
    }

    /// Sends a request and waits for the response head, which is not recorded yet.
    async fn ask(
        &self,
        call: &Call,
        reuse: bool,
    ) -> Result<(ExchangeId, Connection, hyper::Response<Incoming>), DriveError> {
        let base = self.base();
        let exchange = self.inner.recorder.next_exchange();
        let request = call.request(&base)?;
        self.inner.recorder.tell(Fact::Request {
            exchange,
            request: call.recorded(&request),
        });
        if let Some(why) = &call.wrong {
            self.inner
                .recorder
                .tell(Fact::Note(call::on_purpose(exchange, why)));
        }
        let (connection, response) = match self.respond(&base, call, request, reuse).await {
            Ok(answer) => answer,
            Err(failure) => {
                self.inner.recorder.tell(Fact::End {
                    exchange,
                    how: failure.end(),
                });
                return Err(failure.error(call.line(), &base));
            }
        };
        Ok((exchange, connection, response))
    }

    async fn respond(
        &self,
        base: &BaseUrl,
        call: &Call,
        request: call::HyperRequest,
        reuse: bool,
    ) -> Result<(Connection, hyper::Response<Incoming>), Failure> {
        let limits = &self.inner.limits;
        let kept = if reuse {
            self.inner.connector.reuse()
        } else {
            None
        };
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                let opening = self
                    .inner
                    .connector
                    .open(base, call.receive_buffer, limits.max_head);
                match timeout(limits.connect, opening).await {
                    Ok(opened) => opened.map_err(Failure::NotConnected)?,
                    Err(_) => {
                        return Err(Failure::NotConnected(format!(
                            "no answer within {:?}",
                            limits.connect
                        )));
                    }
                }
            }
        };
        let wait = call.head_within.unwrap_or(limits.head);
        match timeout(wait, connection.send(request)).await {
            Err(_) => Err(Failure::Silent(wait)),
            Ok(Err(error)) => Err(Failure::of(&error)),
            Ok(Ok(response)) => Ok((connection, response)),
        }
    }

    fn opened(
        &self,
        exchange: ExchangeId,
        connection: Connection,
        response: hyper::Response<Incoming>,
        cut: Option<CutAt>,
    ) -> Opened {
        let (parts, incoming) = response.into_parts();
        let head = ResponseHead {
            status: parts.status.as_u16(),
            headers: reply::headers(&parts.headers),
        };
        self.inner.recorder.tell(Fact::Response {
            exchange,
            head: head.clone(),
        });
        let body = Body::new(
            exchange,
            incoming,
            connection,
            self.inner.recorder.clone(),
            self.inner.limits.max_body,
            cut,
        );
        Opened { head, body }
    }
}

/// Why there is no response head.
enum Failure {
    NotConnected(String),
    NotHttp(String),
    NoResponse(String),
    Silent(Duration),
}

impl Failure {
    fn of(error: &hyper::Error) -> Self {
        let words = causes(error);
        // What talks before it is asked is told by the connection only, not by the request.
        if error.is_parse() || words.contains("unexpected message") {
            return Self::NotHttp(words);
        }
        Self::NoResponse(words)
    }

    fn end(&self) -> End {
        match self {
            Self::NotConnected(why) => End::NotConnected(why.clone()),
            Self::NotHttp(why) => End::NotHttp(why.clone()),
            Self::NoResponse(why) => End::Broken(why.clone()),
            Self::Silent(_) => End::TimedOut,
        }
    }

    fn error(self, request: String, base: &BaseUrl) -> DriveError {
        match self {
            Self::NotConnected(why) => DriveError::NotConnected {
                url: base.to_string(),
                why,
            },
            Self::NotHttp(why) => DriveError::NotHttp { request, why },
            Self::NoResponse(why) => DriveError::NoResponse { request, why },
            Self::Silent(waited) => DriveError::Silent { request, waited },
        }
    }
}
