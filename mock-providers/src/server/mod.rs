//! Sockets: one port for all wires.
//!
//! - `body`: does the steps of a plan, one frame at a time.
//! - `socket`: a TCP stream that can be reset.
//! - `control`: the API under `/_turnwire/`.
//!
//! Bare hyper, because bytes and chunk boundaries are the point: one event is one HTTP chunk, and
//! with splits one write is one segment (`TCP_NODELAY`). The server keeps no state of its own; what to
//! answer is [`Mock`]'s.

mod body;
mod control;
mod socket;

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwire_spec::llm::Wire;

use crate::journal::Outcome;
use crate::mock::{Hijack, Mock, MockConfig, Planned, Wanted};
use crate::script::SocketEnd;
use crate::tap::Watched;
use body::{Broken, MockBody};
use socket::{Handle, Socket};

/// Why a mock server does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MockError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
}

/// How long a graceful shutdown waits for running replies.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(5);

/// A running mock server. Dropping it ends it at once; [`MockServer::shutdown`] lets replies finish.
///
/// It dereferences to [`Mock`], so `server.load(…)` and `server.journal()` work.
#[derive(Debug)]
pub struct MockServer {
    mock: Mock,
    addr: SocketAddr,
    stop: CancellationToken,
    abort: CancellationToken,
    task: JoinHandle<()>,
}

impl Deref for MockServer {
    type Target = Mock;

    fn deref(&self) -> &Mock {
        &self.mock
    }
}

/// What the command line needs to say to serve a mock.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// How the mock behaves.
    pub config: MockConfig,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            config: MockConfig::default(),
        }
    }
}

/// Starts a mock server as the command line asks for it.
///
/// # Errors
///
/// [`MockError::Listen`] when the address cannot be listened on.
pub async fn serve(options: ServeOptions) -> Result<MockServer, MockError> {
    let address = options.listen;
    let listen = |source| MockError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen)?;
    let addr = listener.local_addr().map_err(listen)?;
    let mock = Mock::new(options.config);
    let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
    let task = tokio::spawn(accept(listener, mock.clone(), stop.clone(), abort.clone()));
    Ok(MockServer {
        mock,
        addr,
        stop,
        abort,
        task,
    })
}

impl MockServer {
    /// Starts a server on a free port of the loopback device.
    ///
    /// # Errors
    ///
    /// [`MockError::Listen`] when there is no free port.
    pub async fn start(config: MockConfig) -> Result<Self, MockError> {
        serve(ServeOptions {
            config,
            ..ServeOptions::default()
        })
        .await
    }

    /// The mock behind the server.
    pub fn mock(&self) -> &Mock {
        &self.mock
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base URL of the OpenAI wires: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        self.base_url_of(Wire::OpenaiChat)
    }

    /// The base URL that clients of a wire are given.
    pub fn base_url_of(&self, wire: Wire) -> String {
        let path = match wire {
            Wire::OpenaiChat | Wire::OpenaiResponses => "/v1",
            Wire::AnthropicMessages => "",
            Wire::Gemini => "/v1beta",
            Wire::GeminiOpenai => "/v1beta/openai",
        };
        format!("http://{}{path}", self.addr)
    }

    /// Stops listening, lets running replies finish for a few seconds, then closes what is left.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(SHUTDOWN_WITHIN, &mut self.task)
            .await
            .is_err()
        {
            self.abort.cancel();
        }
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.stop.cancel();
        self.abort.cancel();
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    mock: Mock,
    stop: CancellationToken,
    abort: CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(mock.config().max_connections.max(1)));
    let tasks = TaskTracker::new();
    loop {
        let next = async {
            // The semaphore is never closed.
            let slot = slots.clone().acquire_owned().await.ok();
            (slot, listener.accept().await)
        };
        let (slot, stream) = tokio::select! {
            () = stop.cancelled() => break,
            (slot, accepted) = next => match accepted {
                Ok((stream, _)) => (slot, stream),
                Err(error) => {
                    // Out of file descriptors, most likely: wait for one to come free.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            },
        };
        let (mock, stop, abort) = (mock.clone(), stop.clone(), abort.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = abort.cancelled() => {}
                () = connection(stream, mock, stop) => {}
            }
            drop(slot);
        });
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

async fn connection(stream: TcpStream, mock: Mock, stop: CancellationToken) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    let socket = Socket::new(stream);
    let handle = socket.handle();
    let service = service_fn(move |request| {
        let (mock, handle) = (mock.clone(), handle.clone());
        async move { respond(&mock, request, handle).await }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        // Bodies are many small pieces. Copied together they go out in one write; as vectors, in one for
        // every sixteen buffers.
        .writev(false)
        .serve_connection(TokioIo::new(socket), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Scripted breaks end here too.
        tracing::debug!(%error, "connection ended");
    }
}

async fn respond(
    mock: &Mock,
    request: Request<Incoming>,
    socket: Arc<Handle>,
) -> Result<Response<MockBody>, Broken> {
    let (parts, body) = request.into_parts();
    let collected = collect(body, mock.config().max_body).await;
    if control::is_control(parts.uri.path()) {
        let planned = control::answer(mock, &parts, collected.as_ref().ok());
        return Ok(response(planned, socket, None));
    }
    let watched = mock.config().tap.as_ref().map(|tap| {
        let body = collected.as_ref().ok().cloned().unwrap_or_default();
        Watched::request(tap, &parts, &body)
    });
    let wanted = match collected {
        Ok(bytes) => mock.answer(parts, bytes),
        Err(TooLarge) => mock.too_large(parts),
    };
    match wanted {
        Wanted::Hijack(hijack) => Err(take_over(hijack, &socket, watched).await),
        Wanted::Response(planned) => {
            if !planned.plan.before_headers.is_zero() {
                tokio::time::sleep(planned.plan.before_headers).await;
            }
            Ok(response(planned, socket, watched))
        }
    }
}

/// Writes bytes past hyper and ends the connection.
async fn take_over(hijack: Hijack, socket: &Handle, mut watched: Option<Watched>) -> Broken {
    tokio::time::sleep(hijack.before).await;
    if socket.write(&hijack.bytes).await.is_ok() {
        hijack.ticket.sent(hijack.bytes.len());
        if let Some(watched) = &watched {
            watched.chunk(&Bytes::copy_from_slice(&hijack.bytes));
        }
    }
    match hijack.then {
        SocketEnd::Close => {}
        SocketEnd::Reset => {
            tokio::time::sleep(crate::faults::RESET_AFTER).await;
            socket.reset();
        }
        SocketEnd::Hold => std::future::pending().await,
    }
    hijack.ticket.end(Outcome::Broken);
    if let Some(watched) = &mut watched {
        watched.end(Outcome::Broken);
    }
    Broken
}

struct TooLarge;

/// Bodies up to this size are copied out of the connection's buffer: the journal keeps bodies, and would keep whole
/// buffers with them.
const COPIED: usize = 64 << 10;

fn own(bytes: Bytes) -> Bytes {
    if bytes.len() > COPIED {
        return bytes;
    }
    Bytes::copy_from_slice(&bytes)
}

/// The whole body; an aborted one counts as what came of it, since nobody is left to be answered.
async fn collect(body: Incoming, limit: usize) -> Result<Bytes, TooLarge> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(own(collected.to_bytes())),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(TooLarge),
        Err(_) => Ok(Bytes::new()),
    }
}

fn response(planned: Planned, socket: Arc<Handle>, watched: Option<Watched>) -> Response<MockBody> {
    let Planned {
        status,
        headers,
        length,
        close_after,
        plan,
        ticket,
    } = planned;
    let mut headers = headers;
    if let Some(length) = length {
        headers.insert(http::header::CONTENT_LENGTH, length.into());
    }
    if let Some(watched) = &watched {
        watched.response(status, &headers);
    }
    let body = MockBody::new(plan, ticket, socket, close_after, watched);
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    *response.headers_mut() = headers;
    response
}
