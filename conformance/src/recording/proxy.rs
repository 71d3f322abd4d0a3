//! The recording reverse proxy.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use http_body::Body as _;
use hyper::{
    body::Incoming, server::conn::http1 as server, service::service_fn, upgrade::OnUpgrade,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::{Duration, sleep},
};

use super::{
    Tape,
    body::{self, Ending, Passed},
    upstream::{Failure, Upstream},
    websocket,
};
use crate::{
    drivers::http::BaseUrl,
    transcript::{End, ExchangeId, Fact, Header, Request, ResponseHead, Transcript},
};

/// Connections at a time; more wait to be accepted.
const CONNECTIONS: usize = 4096;

/// What to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The server.
    pub upstream: BaseUrl,
    /// Header of the transcript.
    pub header: Header,
    /// Bytes that are kept at most.
    pub limit: usize,
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's words.
        error: std::io::Error,
    },
}

/// A running proxy. It stops when it is dropped, and with it all its connections.
#[derive(Debug)]
pub struct RecordingProxy {
    address: SocketAddr,
    tape: Tape,
    accepting: AbortHandle,
}

impl RecordingProxy {
    /// Starts it. Whether the server answers shows with the first request.
    ///
    /// # Errors
    ///
    /// [`RecordError::Listen`] when the address cannot be listened on.
    pub async fn start(options: RecordOptions) -> Result<Self, RecordError> {
        let address = options.listen;
        let listen = |error| RecordError::Listen { address, error };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let tape = Tape::new(options.header, options.limit);
        let accepting = tokio::spawn(accept(listener, options.upstream, tape.clone()));
        Ok(Self {
            address,
            tape,
            accepting: accepting.abort_handle(),
        })
    }

    /// Where clients find it, `http://HOST:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What is recorded so far.
    pub fn tape(&self) -> &Tape {
        &self.tape
    }

    /// Closes all connections and gives what was recorded. Exchanges that were open stay without an end.
    pub fn stop(self) -> Transcript {
        let transcript = self.tape.transcript();
        drop(self);
        transcript
    }
}

impl Drop for RecordingProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, upstream: BaseUrl, tape: Tape) {
    // Dropped with this task, and with it every connection.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                let way = Way {
                    upstream: Upstream::new(upstream.clone()),
                    base: upstream.clone(),
                    tape: tape.clone(),
                };
                connections.spawn(serve(stream, Arc::new(way)));
            }
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, way: Arc<Way>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(move |request| {
        let way = Arc::clone(&way);
        async move { way.pass(request).await }
    });
    // How a connection ends is told by its exchanges.
    let _ = server::Builder::new()
        .preserve_header_case(true)
        .auto_date_header(false)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
}

/// One connection of a client, and the way on from there.
struct Way {
    upstream: Upstream,
    base: BaseUrl,
    tape: Tape,
}

impl Way {
    async fn pass(
        &self,
        incoming: http::Request<Incoming>,
    ) -> Result<http::Response<Passed>, hyper::Error> {
        let (mut parts, incoming) = incoming.into_parts();
        let upgrade = parts.extensions.remove::<OnUpgrade>();
        let target = target(&parts.uri);
        let (mut kept, sent, cut) = match body::read(incoming).await {
            Ok(read) => read,
            Err((length, error)) => {
                self.tape.tell(Fact::Note(format!(
                    "a client left within the body of {} {target} after {length} bytes; the server has not seen it",
                    parts.method
                )));
                return Err(error);
            }
        };
        let coded = coding(&parts.headers);
        if coded.is_some() {
            kept = Bytes::new();
        }
        let exchange = self.tape.next_exchange();
        let request = Request {
            method: parts.method.to_string(),
            target: target.clone(),
            headers: texts(&parts.headers),
            body: kept,
        };
        self.tape.tell(Fact::Request { exchange, request });
        if cut {
            let note = format!(
                "the request body of exchange {} is longer and was cut",
                exchange.0
            );
            self.tape.tell(Fact::Note(note));
        }
        self.tell_coding("request", exchange, coded.as_deref());
        let mut ending = Ending::new(self.tape.clone(), exchange);
        let mut request = http::Request::new(sent);
        *request.method_mut() = parts.method.clone();
        *request.headers_mut() = self.headers(&parts.headers);
        if let Ok(uri) = Uri::try_from(format!("{}{}", self.base.prefix, target)) {
            *request.uri_mut() = uri;
        }
        match self.upstream.send(request).await {
            Ok(response) => Ok(self.answer(response, upgrade, ending)),
            Err(failure) => {
                let (how, words) = match failure {
                    Failure::NotConnected(words) => (End::NotConnected(words.clone()), words),
                    Failure::NoResponse(words) => (End::Broken(words.clone()), words),
                };
                ending.tell(how);
                let words = format!("turnwire record: no answer from {}: {words}\n", self.base);
                let mut response = http::Response::new(Passed::words(words));
                *response.status_mut() = StatusCode::BAD_GATEWAY;
                Ok(response)
            }
        }
    }

    fn answer(
        &self,
        mut response: http::Response<Incoming>,
        upgrade: Option<OnUpgrade>,
        mut ending: Ending,
    ) -> http::Response<Passed> {
        self.tape.tell(Fact::Response {
            exchange: ending.exchange(),
            head: ResponseHead {
                status: response.status().as_u16(),
                headers: texts(response.headers()),
            },
        });
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let server = hyper::upgrade::on(&mut response);
            if let Some(client) = upgrade {
                tokio::spawn(websocket::tunnel(client, server, ending));
            }
            return response.map(|_| Passed::nothing());
        }
        let (mut parts, body) = response.into_parts();
        for name in HOP_BY_HOP {
            parts.headers.remove(name);
        }
        let empty = body.is_end_stream();
        let coded = coding(&parts.headers).filter(|_| !empty);
        self.tell_coding("response", ending.exchange(), coded.as_deref());
        if empty {
            ending.tell(End::Complete);
        }
        let passed = Passed::Recorded {
            inner: body,
            ending,
            kept: coded.is_none(),
        };
        http::Response::from_parts(parts, passed)
    }

    /// In compressed bytes no secret can be found, so they are not kept.
    fn tell_coding(&self, whose: &str, exchange: ExchangeId, coding: Option<&str>) {
        if let Some(coding) = coding {
            self.tape.tell(Fact::Note(format!(
                "the {whose} body of exchange {} is not kept: it is compressed ({coding}), and no secret could be found in it",
                exchange.0
            )));
        }
    }

    /// The headers of the request as the server gets it.
    fn headers(&self, given: &HeaderMap) -> HeaderMap {
        let upgrades = given.contains_key(header::UPGRADE);
        let mut headers = given.clone();
        for name in HOP_BY_HOP {
            let kept = upgrades && (name == header::UPGRADE || name == header::CONNECTION);
            if !kept {
                headers.remove(name);
            }
        }
        // Compressed bytes and compressed messages could not be read.
        headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
        if headers.contains_key(header::ACCEPT_ENCODING) {
            headers.insert(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static("identity"),
            );
        }
        if let Ok(host) = HeaderValue::try_from(self.base.authority()) {
            headers.insert(header::HOST, host);
        }
        headers
    }
}

/// Headers that belong to one connection. Source: RFC 9110, section 7.6.1.
const HOP_BY_HOP: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The target as the client sent it, but for the scheme and host of one in absolute form.
fn target(uri: &Uri) -> String {
    match (uri.path_and_query(), uri.authority()) {
        (Some(path), _) => path.to_string(),
        // That of `CONNECT`.
        (None, Some(authority)) => authority.to_string(),
        (None, None) => "/".to_owned(),
    }
}

fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), body::text(value)))
        .collect()
}

/// How a body is compressed, if it is.
fn coding(headers: &HeaderMap) -> Option<String> {
    let coding = body::text(headers.get(header::CONTENT_ENCODING)?);
    let plain = coding.trim().is_empty() || coding.trim().eq_ignore_ascii_case("identity");
    (!plain).then_some(coding)
}
