//! One HTTP request to a provider: connect, send, read what comes, each within its time.
//!
//! Every call has its own connection, which dies with the answer, so that dropping an answer cuts
//! the call off at the provider too. Redirects are not followed.

use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::GatewayTimeouts;

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
    path: String,
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
        })
    }

    /// The host as TCP and TLS want it: an IPv6 address without its brackets.
    fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

/// Why no answer came, or why it broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("the provider was silent for {0:?}")]
    Silent(Duration),
    #[error("the provider could not be reached: {0}")]
    Connect(String),
    #[error("the connection to the provider broke: {0}")]
    Broken(String),
    #[error("the provider's answer exceeds {0} bytes")]
    TooLarge(usize),
}

/// An answer whose body is still coming.
pub(super) struct Answer {
    pub(super) response: Response<()>,
    body: Incoming,
    timeouts: GatewayTimeouts,
    begun: bool,
    _connection: Connection,
}

/// The task that drives a connection; ends with this value.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends one JSON request and waits for the head of the answer.
pub(super) async fn post(
    endpoint: &Endpoint,
    path: &str,
    key: Option<&str>,
    body: Bytes,
    timeouts: GatewayTimeouts,
) -> Result<Answer, HttpError> {
    let request = request(endpoint, path, key, body)?;
    let stream = within(
        timeouts.connect,
        TcpStream::connect((endpoint.bare_host(), endpoint.port)),
    )
    .await?
    .map_err(|error| HttpError::Connect(error.to_string()))?;
    // Without it a request in two segments waits for an acknowledgement.
    let _ = stream.set_nodelay(true);
    if endpoint.secure {
        let stream = within(timeouts.connect, secure(endpoint, stream)).await??;
        send(stream, request, timeouts).await
    } else {
        send(stream, request, timeouts).await
    }
}

fn request(
    endpoint: &Endpoint,
    path: &str,
    key: Option<&str>,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, HttpError> {
    let default_port = if endpoint.secure { 443 } else { 80 };
    let host = match endpoint.port {
        port if port == default_port => endpoint.host.clone(),
        port => format!("{}:{port}", endpoint.host),
    };
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("{}{path}", endpoint.path))
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream, application/json")
        .header(USER_AGENT, AGENT);
    if let Some(key) = key {
        let value = HeaderValue::try_from(format!("Bearer {key}"));
        let mut value =
            value.map_err(|_| HttpError::Connect("the key is no header value".to_owned()))?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    request
        .body(Full::new(body))
        .map_err(|error| HttpError::Connect(error.to_string()))
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
    timeouts: GatewayTimeouts,
) -> Result<Answer, HttpError> {
    let broken = |error: hyper::Error| HttpError::Broken(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let connection = Connection(tokio::spawn(async move {
        // How the connection ends is seen by whoever reads the answer.
        let _ = connection.await;
    }));
    let response = within(timeouts.first, sender.send_request(request))
        .await?
        .map_err(broken)?;
    let (head, body) = response.into_parts();
    Ok(Answer {
        response: Response::from_parts(head, ()),
        body,
        timeouts,
        begun: false,
        _connection: connection,
    })
}

impl Answer {
    /// The next bytes of the body, or `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let patience = if self.begun {
            self.timeouts.idle
        } else {
            self.timeouts.first
        };
        loop {
            match within(patience, self.body.frame()).await? {
                None => return Ok(None),
                Some(Err(error)) => return Err(HttpError::Broken(error.to_string())),
                Some(Ok(frame)) => {
                    self.begun = true;
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// The whole body, when it has at most `limit` bytes.
    pub(super) async fn whole(&mut self, limit: usize) -> Result<Vec<u8>, HttpError> {
        let mut all = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            if all.len() + bytes.len() > limit {
                return Err(HttpError::TooLarge(limit));
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }
}

async fn within<T>(period: Duration, future: impl Future<Output = T>) -> Result<T, HttpError> {
    timeout(period, pin!(future))
        .await
        .map_err(|_| HttpError::Silent(period))
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
    fn what_is_no_http_url_is_refused() {
        for text in ["", "/v1", "localhost:80/v1", "ftp://a/b", "not a url"] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
    }
}
