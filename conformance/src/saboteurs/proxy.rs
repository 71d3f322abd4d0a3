//! The proxy between the harness and a conformant peer, in which a saboteur sits.
//!
//! It serves HTTP/1.1 on a loopback port of its own. Each request opens one connection to the peer, so that
//! what becomes of a connection on one side becomes of it on the other: a clean end, a break, a client that
//! leaves. Bodies stream; nothing waits for more than the saboteur asks for, and socket buffers are small, so
//! that a slow reader is felt by the peer. With [`Conformant`](super::Conformant) nothing changes but the
//! framing of bodies.
//!
//! A WebSocket upgrade is passed on. Its bytes are copied unchanged, unless the saboteur wants to rewrite its
//! messages: see [`bridge`].

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    body::Incoming, client::conn::http1 as client, server::conn::http1 as server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use super::{
    bridge,
    channel::ChannelKind,
    pump::{self, MAX_HELD, ProxyBody},
    saboteur::{Answer, Edit, More, RequestInfo, Saboteur, Treatment},
};
use crate::transcript::{Request, ResponseHead};

/// Why a proxy could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// No loopback port could be bound.
    #[error("cannot open a loopback port for the saboteur: {0}")]
    Bind(#[from] std::io::Error),
    /// The peer's address is not `http://HOST:PORT`.
    #[error("a saboteur needs a peer at http://HOST:PORT, not {0:?}")]
    Upstream(String),
}

/// A running proxy. It stops when it is dropped, and with it all its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

/// Size of the socket buffers on both sides, in bytes.
const SOCKET_BUFFER: u32 = 64 << 10;

/// How long a request of the saboteur's own keeps its connection when no answer comes.
const SENT_TOO: Duration = Duration::from_millis(20);

/// Connections at a time; more wait to be accepted.
const CONNECTIONS: usize = 4096;

struct Shared {
    saboteur: Arc<dyn Saboteur>,
    /// `host:port` of the peer.
    upstream: Mutex<String>,
    scale: f64,
    requests: AtomicU64,
    channels: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("upstream", &self.upstream)
            .field("scale", &self.scale)
            .finish_non_exhaustive()
    }
}

impl Proxy {
    /// Starts a proxy in front of the peer at `upstream`, `http://HOST:PORT`. Times of the saboteur are
    /// multiplied with `time_scale`, as those of the peer are.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Upstream`] for another form of address, [`ProxyError::Bind`] when there is no port.
    pub async fn start(
        upstream: &str,
        saboteur: Arc<dyn Saboteur>,
        time_scale: f64,
    ) -> Result<Self, ProxyError> {
        let upstream = authority(upstream)?;
        let socket = TcpSocket::new_v4()?;
        socket.set_send_buffer_size(SOCKET_BUFFER)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let listener = socket.listen(1024)?;
        let address = listener.local_addr()?;
        let scale = if time_scale.is_finite() && time_scale > 0.0 {
            time_scale
        } else {
            1.0
        };
        let shared = Arc::new(Shared {
            saboteur,
            upstream: Mutex::new(upstream),
            scale,
            requests: AtomicU64::new(0),
            channels: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// Where the harness finds it, `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The peer is elsewhere now, such as after a restart. Open connections stay with the old one.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Upstream`] when this is not `http://HOST:PORT`; the address stays as it was.
    pub fn set_upstream(&self, upstream: &str) -> Result<(), ProxyError> {
        *self
            .shared
            .upstream
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = authority(upstream)?;
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn authority(url: &str) -> Result<String, ProxyError> {
    let host = url
        .strip_prefix("http://")
        .map(|rest| rest.trim_end_matches('/'));
    host.filter(|host| host.contains(':') && !host.contains(['/', '?', '@']))
        .map(str::to_owned)
        .ok_or_else(|| ProxyError::Upstream(url.to_owned()))
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, shared.clone()));
            }
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { shared.handle(request).await }
    });
    // The connection ends when either side ends it; how is told by the exchange, not here.
    let _ = server::Builder::new()
        .preserve_header_case(true)
        .auto_date_header(false)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
}

/// The peer gave no response; the connection to the harness is dropped without one.
#[derive(Debug, thiserror::Error)]
enum Gone {
    #[error("no connection to the peer: {0}")]
    Connect(#[from] std::io::Error),
    #[error("the peer gave no response: {0}")]
    Response(#[from] hyper::Error),
    #[error("the request cannot be passed on: {0}")]
    Request(String),
}

impl Shared {
    async fn handle(
        self: &Arc<Self>,
        incoming: http::Request<Incoming>,
    ) -> Result<http::Response<ProxyBody>, Gone> {
        let (mut parts, body) = incoming.into_parts();
        let upgrade = parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
        let limited = Limited::new(body, MAX_HELD).collect().await;
        let bytes = limited
            .map_err(|error| Gone::Request(error.to_string()))?
            .to_bytes();
        let request = Request {
            method: parts.method.to_string(),
            target: parts
                .uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), ToString::to_string),
            headers: texts(&parts.headers),
            body: bytes,
        };
        let info = RequestInfo {
            request,
            number: self.requests.fetch_add(1, Ordering::Relaxed),
        };
        if let Some(answer) = self.saboteur.answer(&info) {
            return self.answer(answer);
        }
        let mut request = info.request.clone();
        self.saboteur.request(&info, &mut request);
        change_request(&mut parts, &info.request, &request)?;
        for more in self.saboteur.more(&info) {
            self.more(more).await;
        }
        let outgoing = http::Request::from_parts(parts, Full::new(request.body));
        let (response, connection) = self.ask(outgoing).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(self.tunnel(&info, response, upgrade, connection));
        }
        self.respond(&info, response, connection).await
    }

    /// Sends a request of the saboteur's own: at once, or later and meanwhile on its own way.
    async fn more(self: &Arc<Self>, more: More) {
        if more.after.is_zero() {
            return self.send_too(more.request).await;
        }
        let (shared, after) = (Arc::clone(self), more.after.mul_f64(self.scale));
        tokio::spawn(async move {
            sleep(after).await;
            shared.send_too(more.request).await;
        });
    }

    /// Sends a request of the saboteur's own, whose answer nobody reads. It is with the peer when this returns.
    async fn send_too(&self, request: Request) {
        let built = http::Request::builder()
            .method(request.method.as_str())
            .uri(&request.target);
        let headers = request.headers.iter().filter(|(name, _)| {
            !matches!(
                name.as_str(),
                "content-length" | "transfer-encoding" | "connection"
            )
        });
        let built = headers
            .fold(built, |built, (name, value)| built.header(name, value))
            .header(header::CONTENT_LENGTH, request.body.len());
        if let Ok(outgoing) = built.body(Full::new(request.body)) {
            // A stream would be answered when the scenario says so, which nobody waits for.
            let _ = tokio::time::timeout(SENT_TOO, self.ask(outgoing)).await;
        }
    }

    /// Sends a request to the peer. The connection lasts as long as what is returned beside the response.
    async fn ask(
        &self,
        request: http::Request<Full<Bytes>>,
    ) -> Result<(http::Response<Incoming>, Connection), Gone> {
        let upstream = self
            .upstream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let stream = connect(&upstream).await?;
        let (mut sender, connection) = client::Builder::new()
            .preserve_header_case(true)
            .handshake(TokioIo::new(stream))
            .await?;
        let connection = Connection(
            tokio::spawn(async move {
                let _ = connection.with_upgrades().await;
            })
            .abort_handle(),
        );
        Ok((sender.send_request(request).await?, connection))
    }

    async fn respond(
        &self,
        info: &RequestInfo,
        response: http::Response<Incoming>,
        connection: Connection,
    ) -> Result<http::Response<ProxyBody>, Gone> {
        let (mut parts, upstream) = response.into_parts();
        let before = ResponseHead {
            status: parts.status.as_u16(),
            headers: texts(&parts.headers),
        };
        let mut head = before.clone();
        let mut treatment = self.saboteur.response(info, &mut head);
        sleep(
            Duration::try_from_secs_f64(treatment.delay.as_secs_f64() * self.scale)
                .unwrap_or_default(),
        )
        .await;
        if head != before {
            parts.status = status(head.status)?;
            parts.headers = header_map(&head.headers)?;
        }
        if reframed(&treatment) {
            parts.headers.remove(header::CONTENT_LENGTH);
        }
        let (sink, body) = pump::body(&treatment, self.scale);
        let edit = std::mem::take(&mut treatment.edit);
        tokio::spawn(async move {
            pump::pump(upstream, edit, sink).await;
            drop(connection);
        });
        Ok(http::Response::from_parts(parts, body))
    }

    /// Connects the two sides of an upgraded connection, until both have ended or the saboteur has enough.
    fn tunnel(
        &self,
        info: &RequestInfo,
        mut response: http::Response<Incoming>,
        harness: Option<hyper::upgrade::OnUpgrade>,
        connection: Connection,
    ) -> http::Response<ProxyBody> {
        let peer = hyper::upgrade::on(&mut response);
        let number = self.channels.fetch_add(1, Ordering::Relaxed);
        let (saboteur, scale) = (self.saboteur.as_ref(), self.scale);
        let bridge = bridge::open(
            saboteur,
            ChannelKind::WebSocket,
            info.clone(),
            number,
            scale,
        );
        if let Some(harness) = harness {
            tokio::spawn(async move {
                if let (Ok(harness), Ok(peer)) = (harness.await, peer.await) {
                    let (mut harness, mut peer) = (TokioIo::new(harness), TokioIo::new(peer));
                    match bridge {
                        Some(bridge) => bridge.run(harness, peer).await,
                        None => {
                            // How it ended shows on both sides.
                            let _ = tokio::io::copy_bidirectional(&mut harness, &mut peer).await;
                        }
                    }
                }
                drop(connection);
            });
        }
        let (_, body) = pump::body(&Treatment::pass(), 1.0);
        response.map(|_| body)
    }

    fn answer(&self, answer: Answer) -> Result<http::Response<ProxyBody>, Gone> {
        let treatment = Treatment {
            hold_open: answer.hold_open,
            ..Treatment::default()
        };
        let (sink, body) = pump::body(&treatment, self.scale);
        tokio::spawn(pump::pour(answer.body, sink));
        let mut response = http::Response::new(body);
        *response.status_mut() = status(answer.head.status)?;
        *response.headers_mut() = header_map(&answer.head.headers)?;
        Ok(response)
    }
}

/// Whether the length of the body is no longer what the peer said.
fn reframed(treatment: &Treatment) -> bool {
    !matches!(treatment.edit, Edit::Pass) || treatment.hold_open
}

/// A connection to the peer, closed when this is dropped.
#[derive(Debug)]
struct Connection(AbortHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn connect(upstream: &str) -> std::io::Result<TcpStream> {
    let address = tokio::net::lookup_host(upstream).await?.next();
    let address = address.ok_or_else(|| std::io::Error::other("the peer's name has no address"))?;
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_nodelay(true)?;
    socket.connect(address).await
}

fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect()
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, Gone> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|error| Gone::Request(error.to_string()))?;
        let value = HeaderValue::from_bytes(value.as_bytes())
            .map_err(|error| Gone::Request(error.to_string()))?;
        map.append(name, value);
    }
    Ok(map)
}

fn status(code: u16) -> Result<StatusCode, Gone> {
    StatusCode::from_u16(code).map_err(|error| Gone::Request(error.to_string()))
}

/// Writes what the saboteur changed into the head of the request; the rest stays as it came.
fn change_request(
    parts: &mut http::request::Parts,
    before: &Request,
    after: &Request,
) -> Result<(), Gone> {
    let bad = |error: &dyn std::fmt::Display| Gone::Request(error.to_string());
    if before.method != after.method {
        parts.method = after.method.parse().map_err(|error| bad(&error))?;
    }
    parts.uri = after.target.parse().map_err(|error| bad(&error))?;
    if before.headers != after.headers {
        parts.headers = header_map(&after.headers)?;
    }
    if before.body != after.body {
        parts.headers.remove(header::TRANSFER_ENCODING);
        parts
            .headers
            .insert(header::CONTENT_LENGTH, HeaderValue::from(after.body.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
