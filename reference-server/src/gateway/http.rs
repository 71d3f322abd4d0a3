//! One HTTP request to a provider: connect, send, read what comes. How long the caller waits is its own
//! business, except for the connection.
//!
//! Every call has its own connection, which dies with the answer, so that dropping an answer cuts
//! the call off at the provider too. Redirects are not followed.

use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use turnwire_spec::llm::azure;

use super::error::ErrorKind;
use super::refusal::Fault;

const AGENT: &str = concat!("turnwire/", env!("CARGO_PKG_VERSION"));

static TLS: LazyLock<Option<Arc<ClientConfig>>> = LazyLock::new(|| {
    let roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?;
    Some(Arc::new(
        builder.with_root_certificates(roots).with_no_client_auth(),
    ))
});

/// Where a provider is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Endpoint {
    pub(super) secure: bool,
    host: String,
    port: u16,
    /// The path of the base URL, without a slash at its end.
    pub(super) path: String,
    /// The query of the base URL, without `?`, which is joined to that of every request; mostly empty.
    query: String,
}

/// Why a base URL is none.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadBaseUrl {
    /// It is no absolute URL with a host.
    #[error("{0:?} is no absolute http or https URL")]
    NotAbsolute(String),
    /// Its scheme is neither http nor https.
    #[error("{0:?} is neither http nor https")]
    Scheme(String),
}

impl Endpoint {
    pub(super) fn parse(base_url: &str) -> Result<Self, BadBaseUrl> {
        let not_absolute = || BadBaseUrl::NotAbsolute(base_url.to_owned());
        let uri: Uri = base_url.parse().map_err(|_| not_absolute())?;
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(BadBaseUrl::Scheme(base_url.to_owned())),
            None => return Err(not_absolute()),
        };
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(not_absolute)?;
        Ok(Self {
            secure,
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(if secure { 443 } else { 80 }),
            path: uri.path().trim_end_matches('/').to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
        })
    }

    /// The target of a request whose path, with its own query, is this behind the base URL's.
    fn target(&self, path: &str) -> String {
        let joint = if path.contains('?') { '&' } else { '?' };
        match self.query.as_str() {
            "" => format!("{}{path}", self.path),
            query => format!("{}{path}{joint}{query}", self.path),
        }
    }

    /// The header that carries a key of OpenAI's wires there.
    pub(super) fn openai_key(&self, key: &str) -> Result<(HeaderName, HeaderValue), Fault> {
        if azure::is_versioned(&self.query) {
            return secret(HeaderName::from_static(azure::KEY_HEADER), key);
        }
        secret(AUTHORIZATION, &format!("Bearer {key}"))
    }

    /// The host as TCP and TLS want it: an IPv6 address without its brackets.
    fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

/// Why no answer came, or why it broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("no connection to the provider within {0:?}")]
    Slow(Duration),
    #[error("the provider could not be reached: {0}")]
    Connect(String),
    #[error("the connection to the provider broke: {0}")]
    Broken(String),
}

/// An answer whose body is still coming.
pub(super) struct Answer {
    pub(super) response: Response<()>,
    body: Incoming,
    _connection: Connection,
}

/// The task that drives a connection; ends with this value.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One request: where on the endpoint, with what headers, and what it says.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    /// The path behind the base URL's, with its query.
    pub(super) path: String,
    /// Headers besides those of every request.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub(super) body: Arc<Value>,
}

/// Sends one JSON request and waits for the head of the answer.
pub(super) async fn post(
    endpoint: Endpoint,
    outgoing: Outgoing,
    connect: Duration,
) -> Result<Answer, HttpError> {
    let request = request(&endpoint, outgoing)?;
    let stream = within(
        connect,
        TcpStream::connect((endpoint.bare_host(), endpoint.port)),
    )
    .await?
    .map_err(|error| HttpError::Connect(error.to_string()))?;
    // Without it a request in two segments waits for an acknowledgement.
    let _ = stream.set_nodelay(true);
    if endpoint.secure {
        let stream = within(connect, secure(&endpoint, stream)).await??;
        send(stream, request).await
    } else {
        send(stream, request).await
    }
}

fn request(endpoint: &Endpoint, outgoing: Outgoing) -> Result<Request<Full<Bytes>>, HttpError> {
    let default_port = if endpoint.secure { 443 } else { 80 };
    let host = match endpoint.port {
        port if port == default_port => endpoint.host.clone(),
        port => format!("{}:{port}", endpoint.host),
    };
    let body = serde_json::to_vec(&*outgoing.body)
        .map_err(|error| HttpError::Connect(error.to_string()))?;
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(endpoint.target(&outgoing.path))
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream, application/json")
        .header(ACCEPT_ENCODING, "identity")
        .header(USER_AGENT, AGENT);
    for (name, value) in outgoing.headers {
        request = request.header(name, value);
    }
    request
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| HttpError::Connect(error.to_string()))
}

/// A header whose value is not shown.
pub(super) fn secret(name: HeaderName, value: &str) -> Result<(HeaderName, HeaderValue), Fault> {
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| Fault::new(ErrorKind::Config, "the key is no header value"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

async fn secure(
    endpoint: &Endpoint,
    stream: TcpStream,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + 'static, HttpError> {
    let failed = |error: &dyn std::fmt::Display| HttpError::Connect(error.to_string());
    let config = TLS.clone().ok_or_else(|| failed(&"no TLS versions"))?;
    let name =
        ServerName::try_from(endpoint.bare_host().to_owned()).map_err(|error| failed(&error))?;
    TlsConnector::from(config)
        .connect(name, stream)
        .await
        .map_err(|error| failed(&error))
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Answer, HttpError> {
    let broken = |error: hyper::Error| HttpError::Broken(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let connection = Connection(tokio::spawn(async move {
        // How the connection ends is seen by whoever reads the answer.
        let _ = connection.await;
    }));
    let response = sender.send_request(request).await.map_err(broken)?;
    let (head, body) = response.into_parts();
    Ok(Answer {
        response: Response::from_parts(head, ()),
        body,
        _connection: connection,
    })
}

impl Answer {
    /// The next bytes of the body, or `None` at its end. Dropping the future loses nothing.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(HttpError::Broken(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// The body up to its end or to `limit` bytes.
    pub(super) async fn upto(&mut self, limit: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while let Ok(Some(bytes)) = self.chunk().await {
            all.extend_from_slice(&bytes);
            if all.len() >= limit {
                all.truncate(limit);
                break;
            }
        }
        all
    }
}

async fn within<T>(period: Duration, future: impl Future<Output = T>) -> Result<T, HttpError> {
    timeout(period, pin!(future))
        .await
        .map_err(|_| HttpError::Slow(period))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_taken_apart() {
        let local = Endpoint::parse("http://127.0.0.1:8123/v1/").unwrap();
        assert_eq!(
            (local.secure, local.port, local.path.as_str()),
            (false, 8123, "/v1")
        );

        let remote = Endpoint::parse("https://api.example.com/v1").unwrap();
        assert_eq!((remote.secure, remote.port), (true, 443));

        let v6 = Endpoint::parse("http://[::1]:80").unwrap();
        assert_eq!((v6.bare_host(), v6.path.as_str()), ("::1", ""));
    }

    #[test]
    fn the_query_of_a_base_url_is_joined_to_every_request() {
        let azure = Endpoint::parse("https://x.test/openai?api-version=2024-10-21").unwrap();
        assert_eq!(
            azure.target("/chat/completions"),
            "/openai/chat/completions?api-version=2024-10-21"
        );
        assert_eq!(
            azure.target("/m?alt=sse"),
            "/openai/m?alt=sse&api-version=2024-10-21"
        );
        let plain = Endpoint::parse("https://x.test/v1").unwrap();
        assert_eq!(plain.target("/m?alt=sse"), "/v1/m?alt=sse");
    }

    #[test]
    fn what_is_no_http_url_is_refused() {
        for text in ["", "/v1", "localhost:80/v1", "ftp://a/b", "not a url"] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
    }
}
