//! Records a real provider into a script: a proxy between a client and the service.
//!
//! - `upstream`: the connection to the service, with TLS.
//! - `tee`: a response body that is passed on and kept.
//! - `exchange`: from one exchange to a rule; what must not be kept is removed there.
//!
//! Request headers are passed on and never kept. What is kept of a request are the conditions of its
//! rule: wire, path, model, the last message of the user and how many turns came before. Requests that
//! look the same become one rule with several replies, in order.

mod exchange;
mod tee;
mod upstream;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::server::MockError;
use exchange::Exchange;
pub use exchange::{Recording, Replaced};
use tee::{Sink, Tee};
use upstream::Upstream;
pub use upstream::{Patience, UpstreamError};

/// What to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The service: `https://api.openai.com`. A path in it is put before the client's path, and a query in it behind the
    /// client's query.
    pub upstream: String,
    /// Whether the script repeats the delays of the service.
    pub keep_timing: bool,
    /// Limit of a request's and of a response's body in bytes; of a longer response the start is kept.
    pub max_body: usize,
    /// Limit of all bodies together, in bytes; later exchanges are passed on and not kept.
    pub max_total: usize,
    /// How long is waited for the service.
    pub patience: Patience,
    /// Certificates in PEM that are trusted beside the usual ones.
    pub roots: Option<Vec<u8>>,
}

impl RecordOptions {
    /// Records this service on a free port of the loopback device.
    pub fn new(upstream: impl Into<String>) -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            upstream: upstream.into(),
            keep_timing: false,
            max_body: 64 << 20,
            max_total: 256 << 20,
            patience: Patience::default(),
            roots: None,
        }
    }
}

/// What became of one request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Heard {
    /// Its method and path.
    pub request: String,
    /// What became of it.
    pub ending: Ending,
}

/// What became of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    /// It was answered with this status and so many bytes.
    Recorded(u16, usize),
    /// The answer broke off, or the client went away; what came is kept.
    Broken(u16, usize),
    /// It was answered, and there was no room to keep it.
    NoRoom(u16),
    /// The service gave no answer, for this reason; nothing is kept.
    Failed(String),
}

impl std::fmt::Display for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.request)?;
        match &self.ending {
            Ending::Recorded(status, bytes) => write!(f, "{status}, {bytes} bytes"),
            Ending::Broken(status, bytes) => write!(f, "{status}, broken off after {bytes} bytes"),
            Ending::NoRoom(status) => write!(f, "{status}, not kept: there is no room left"),
            Ending::Failed(why) => write!(f, "not recorded: {why}"),
        }
    }
}

/// News that nobody has asked for yet; more are forgotten.
const NEWS: usize = 256;

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The service cannot be called.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] MockError),
}

/// A running recorder. Dropping it ends it at once.
#[derive(Debug)]
pub struct Recorder {
    addr: SocketAddr,
    shared: Arc<Shared>,
    news: mpsc::Receiver<Heard>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    upstream: Upstream,
    options: RecordOptions,
    kept: Mutex<Kept>,
    /// Requests whose answer has not ended.
    running: AtomicUsize,
    news: mpsc::Sender<Heard>,
}

/// What is kept.
#[derive(Debug, Default)]
struct Kept {
    exchanges: Vec<Exchange>,
    bytes: usize,
    dropped: usize,
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No code panics with the lock held.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an exchange, if there is room.
    fn keep(&self, exchange: Exchange) {
        self.running.fetch_sub(1, Ordering::Relaxed);
        let status = exchange.head.status.as_u16();
        let answer: usize = exchange.chunks.iter().map(|(_, chunk)| chunk.len()).sum();
        let bytes = answer + exchange.body.len();
        let (request, complete) = (told(&exchange.parts), exchange.complete);
        let mut kept = self.kept();
        let ending = if kept.bytes + bytes > self.options.max_total {
            kept.dropped += 1;
            Ending::NoRoom(status)
        } else {
            kept.bytes += bytes;
            kept.exchanges.push(exchange);
            if complete {
                Ending::Recorded(status, answer)
            } else {
                Ending::Broken(status, answer)
            }
        };
        drop(kept);
        self.tell(Heard { request, ending });
    }

    fn tell(&self, heard: Heard) {
        // Nobody has to listen.
        let _ = self.news.try_send(heard);
    }
}

fn told(parts: &http::request::Parts) -> String {
    format!("{} {}", parts.method, parts.uri.path())
}

impl Recorder {
    /// Starts a recorder.
    ///
    /// # Errors
    ///
    /// [`RecordError::Upstream`] when the service's URL is none, or the certificates to trust are none;
    /// [`RecordError::Listen`] when the address cannot be listened on. Whether the service answers shows with the
    /// first request.
    pub async fn start(options: RecordOptions) -> Result<Self, RecordError> {
        let upstream = Upstream::new(
            &options.upstream,
            options.roots.as_deref(),
            options.patience,
        )?;
        let address = options.listen;
        let listen = |source| MockError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let addr = listener.local_addr().map_err(listen)?;
        let (sender, news) = mpsc::channel(NEWS);
        let shared = Arc::new(Shared {
            upstream,
            options,
            kept: Mutex::default(),
            running: AtomicUsize::new(0),
            news: sender,
        });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Ok(Self {
            addr,
            shared,
            news,
            task,
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Waits for the end of the next exchange, or the next request that gets no answer.
    pub async fn heard(&mut self) -> Heard {
        match self.news.recv().await {
            Some(heard) => heard,
            // The sender lives as long as this.
            None => std::future::pending().await,
        }
    }

    /// Everything that was recorded so far. An exchange is recorded when its response has ended.
    pub fn recording(&self) -> Recording {
        let Shared {
            options, running, ..
        } = &*self.shared;
        let kept = self.shared.kept();
        Recording {
            running: running.load(Ordering::Relaxed),
            dropped: kept.dropped,
            ..exchange::recording(
                &options.upstream,
                &kept.exchanges,
                options.keep_timing,
                options.max_body,
            )
        }
    }

    /// Stops recording and returns what was recorded.
    pub fn stop(self) -> Recording {
        self.recording()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, and with it every connection.
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, shared.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, std::convert::Infallible>(forward(shared, request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
}

async fn forward(shared: Arc<Shared>, request: Request<Incoming>) -> Response<Tee> {
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, shared.options.max_body).collect().await else {
        return Tee::message(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request is too large to record",
        );
    };
    let body = body.to_bytes();
    let began = tokio::time::Instant::now();
    let answer = shared
        .upstream
        .send(outgoing(&shared.upstream, &parts, body.clone()))
        .await;
    let (head, incoming) = match answer {
        Ok(response) => response.into_parts(),
        Err(error) => return no_answer(&shared, &parts, &error),
    };
    let mut response = Response::new(());
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers.clone();
    for name in HOP_BY_HOP {
        response.headers_mut().remove(name);
    }
    let (limit, idle) = (shared.options.max_body, shared.upstream.idle());
    shared.running.fetch_add(1, Ordering::Relaxed);
    let sink = Sink::new(limit, move |chunks, complete| {
        shared.keep(Exchange {
            parts,
            body,
            head,
            began,
            chunks,
            complete,
        });
    });
    response.map(|()| Tee::new(incoming, sink, idle))
}

/// What a client gets when the service gives no answer.
fn no_answer(
    shared: &Shared,
    parts: &http::request::Parts,
    error: &UpstreamError,
) -> Response<Tee> {
    let why = error.to_string();
    shared.tell(Heard {
        request: told(parts),
        ending: Ending::Failed(why.clone()),
    });
    let status = match error {
        UpstreamError::Slow { .. } => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    };
    Tee::message(status, &why)
}

/// Headers that belong to one connection (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [&str; 6] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// The request as the service gets it: without compression, so that what is kept can be read.
fn outgoing(
    upstream: &Upstream,
    parts: &http::request::Parts,
    body: Bytes,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = parts.method.clone();
    *request.headers_mut() = parts.headers.clone();
    for name in HOP_BY_HOP.into_iter().chain(["host", "accept-encoding"]) {
        request.headers_mut().remove(name);
    }
    request
        .headers_mut()
        .insert("accept-encoding", HeaderValue::from_static("identity"));
    if let Ok(host) = HeaderValue::try_from(upstream.authority()) {
        request.headers_mut().insert("host", host);
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    if let Ok(uri) = Uri::try_from(upstream.target(path)) {
        *request.uri_mut() = uri;
    }
    request
}
