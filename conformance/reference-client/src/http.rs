//! An HTTP/1.1 client over plain TCP, one connection a request, whose bodies are read as they arrive.
//!
//! Streams stay open for hours, so nothing here limits how long a body may take; only connecting and the
//! response head have limits. No TLS, no pooling, no cookies, and redirects are the caller's.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Why there is no (further) answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The URL is no `http://HOST[:PORT]/PATH`.
    #[error("{0:?} is no http:// URL")]
    Url(String),
    /// No connection.
    #[error("cannot connect to {host}: {why}")]
    NotConnected {
        /// Host and port.
        host: String,
        /// The system's words.
        why: String,
    },
    /// The request cannot be written down.
    #[error("impossible request: {0}")]
    Request(#[from] http::Error),
    /// The connection broke, or what came is no HTTP.
    #[error("the connection failed: {0}")]
    Broken(#[from] hyper::Error),
}

/// An answer whose body is still coming. Dropping it closes the connection.
#[derive(Debug)]
pub struct Response {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    body: Incoming,
    connection: tokio::task::JoinHandle<()>,
}

/// Sends a request and waits for the head of its answer.
///
/// # Errors
///
/// [`HttpError`] when there is no head: an impossible URL, no connection, or one that breaks.
pub async fn send(
    url: &str,
    request: http::request::Builder,
    body: Bytes,
) -> Result<Response, HttpError> {
    let uri: Uri = url.parse().map_err(|_| HttpError::Url(url.to_owned()))?;
    let (Some(host), true) = (uri.host(), uri.scheme_str() == Some("http")) else {
        return Err(HttpError::Url(url.to_owned()));
    };
    let authority = format!("{host}:{}", uri.port_u16().unwrap_or(80));
    let stream = connect(&authority).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(async move {
        // What breaks is told by the body.
        let _ = connection.await;
    });
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request: Request<Full<Bytes>> = request
        .uri(path)
        .header(header::HOST, &authority)
        .body(Full::new(body))?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    Ok(Response {
        status: head.status,
        headers: head.headers,
        body,
        connection,
    })
}

async fn connect(authority: &str) -> Result<TcpStream, HttpError> {
    let failed = |why: String| HttpError::NotConnected {
        host: authority.to_owned(),
        why,
    };
    let stream = timeout(CONNECT_WITHIN, TcpStream::connect(authority))
        .await
        .map_err(|_| failed(format!("no answer within {CONNECT_WITHIN:?}")))?
        .map_err(|error| failed(error.to_string()))?;
    // A request is one small write, which need not wait for more.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

impl Response {
    /// The value of a header, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The next piece of the body; `None` at its proper end.
    ///
    /// # Errors
    ///
    /// [`HttpError::Broken`] when the connection ends before the body does.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The whole body, as far as `limit` bytes; what is longer is cut off.
    ///
    /// # Errors
    ///
    /// As [`Response::chunk`].
    pub async fn body(mut self, limit: usize) -> Result<Vec<u8>, HttpError> {
        let mut whole = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            let room = limit - whole.len();
            whole.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if whole.len() == limit {
                break;
            }
        }
        Ok(whole)
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Resolves what a `Location` header says against the URL that was asked for.
pub fn resolve(url: &str, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let host_at = url.find("://").map_or(0, |at| at + 3);
    let path_at = url[host_at..]
        .find('/')
        .map_or(url.len(), |at| host_at + at);
    if location.starts_with('/') {
        return format!("{}{location}", &url[..path_at]);
    }
    let path = url[path_at..].split('?').next().unwrap_or_default();
    let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
    format!("{}{folder}{location}", &url[..path_at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_relative_to_the_url_that_was_asked_for() {
        let url = "http://127.0.0.1:1/a/b?c=d";
        assert_eq!(resolve(url, "/x"), "http://127.0.0.1:1/x");
        assert_eq!(resolve(url, "x"), "http://127.0.0.1:1/a/x");
        assert_eq!(resolve(url, "http://other/x"), "http://other/x");
        assert_eq!(resolve("http://127.0.0.1:1", "x"), "http://127.0.0.1:1/x");
    }
}
