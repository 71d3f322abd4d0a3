//! Records a real provider into a script: a proxy between a client and the service.
//!
//! - `upstream`: the connection to the service, with TLS.
//! - `tee`: a response body that is passed on and kept.
//! - [`exchange`]: from one exchange to a rule; what must not be kept is removed there.
//!
//! Request headers are passed on and never kept. What is kept of a request are the conditions of its
//! rule: wire, path, model, the last message of the user and how many turns came before. Requests that
//! look the same become one rule with several replies, in order.

pub mod exchange;
mod tee;
mod upstream;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::script::Script;
use crate::server::MockError;
use exchange::{Exchange, Secrets};
use tee::{Sink, Tee};
use upstream::Upstream;
pub use upstream::UpstreamError;

/// What to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The service: `https://api.openai.com`. A path in it is put before the client's path.
    pub upstream: String,
    /// Whether the script repeats the delays of the service.
    pub keep_timing: bool,
    /// Limit of a request's and of a response's body in bytes; of a longer response the start is kept.
    pub max_body: usize,
}

impl RecordOptions {
    /// Records this service on a free port of the loopback device.
    pub fn new(upstream: impl Into<String>) -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            upstream: upstream.into(),
            keep_timing: false,
            max_body: 64 << 20,
        }
    }
}

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
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    upstream: Upstream,
    options: RecordOptions,
    exchanges: Mutex<Vec<Exchange>>,
}

impl Recorder {
    /// Starts a recorder.
    ///
    /// # Errors
    ///
    /// [`RecordError::Upstream`] when the service's URL is none; [`RecordError::Listen`] when the
    /// address cannot be listened on. Whether the service answers shows with the first request.
    pub async fn start(options: RecordOptions) -> Result<Self, RecordError> {
        let upstream = Upstream::new(&options.upstream)?;
        let address = options.listen;
        let listen = |source| MockError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let addr = listener.local_addr().map_err(listen)?;
        let shared = Arc::new(Shared {
            upstream,
            options,
            exchanges: Mutex::default(),
        });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Ok(Self { addr, shared, task })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Everything that was recorded so far, as a script. An exchange is recorded when its response
    /// has ended.
    pub fn script(&self) -> Script {
        let exchanges = self
            .shared
            .exchanges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        exchange::script(
            &self.shared.options.upstream,
            &exchanges,
            self.shared.options.keep_timing,
        )
    }

    /// Stops recording and returns what was recorded.
    pub fn stop(self) -> Script {
        self.script()
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
        Err(error) => return Tee::message(StatusCode::BAD_GATEWAY, &error.to_string()),
    };
    let mut response = Response::new(());
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers.clone();
    for name in HOP_BY_HOP {
        response.headers_mut().remove(name);
    }
    let secrets = Secrets::of(&parts);
    let limit = shared.options.max_body;
    let sink = Sink::new(limit, move |chunks, complete| {
        let exchange = Exchange {
            parts,
            body,
            head,
            began,
            chunks,
            complete,
            secrets,
        };
        let mut exchanges = shared
            .exchanges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        exchanges.push(exchange);
    });
    response.map(|()| Tee::new(incoming, sink))
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
    if let Ok(uri) = Uri::try_from(format!("{}{path}", upstream.prefix())) {
        *request.uri_mut() = uri;
    }
    request
}
