//! The connection to the service that is recorded.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Why the service cannot be called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The URL is none that can be called.
    #[error("{0:?} is no http or https URL with a host")]
    Url(String),
    /// The host cannot be reached.
    #[error("cannot connect to {host}: {source}")]
    Connect {
        /// Host and port.
        host: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The service broke off before it answered.
    #[error("no answer from {host}: {source}")]
    Answer {
        /// Host and port.
        host: String,
        /// What went wrong.
        source: hyper::Error,
    },
    /// The service cannot be reached, or does not answer, for too long.
    #[error("{host} {what} within {} s", .within.as_secs_f64())]
    Slow {
        /// Host and port.
        host: String,
        /// What did not happen: `cannot be reached`, `did not answer`.
        what: &'static str,
        /// The limit.
        within: Duration,
    },
    /// The certificates that are to be trusted are none.
    #[error("no certificates to trust: {0}")]
    Roots(String),
}

/// How long is waited for a service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Patience {
    /// For the connection, TLS included.
    pub connect: Duration,
    /// For the head of the answer, and then for each next piece of its body.
    pub idle: Duration,
}

impl Default for Patience {
    /// Models think for minutes before they answer what is not streamed.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(300),
        }
    }
}

/// A service.
pub(super) struct Upstream {
    host: String,
    port: u16,
    authority: String,
    prefix: String,
    query: String,
    tls: Option<TlsConnector>,
    patience: Patience,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// The service at this URL; `roots` are certificates in PEM that are trusted beside the usual ones.
    pub(super) fn new(
        url: &str,
        roots: Option<&[u8]>,
        patience: Patience,
    ) -> Result<Self, UpstreamError> {
        let bad = || UpstreamError::Url(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let tls = match uri.scheme_str() {
            Some("https") => Some(connector(roots)?),
            Some("http") => None,
            _ => return Err(bad()),
        };
        let authority = uri.authority().ok_or_else(bad)?;
        Ok(Self {
            host: authority.host().to_owned(),
            port: authority
                .port_u16()
                .unwrap_or(if tls.is_some() { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            tls,
            patience,
        })
    }

    /// Host and port as the URL has them.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// The target of a request that asks the recorder for this path: with the path of the URL before it, and with the
    /// query of the URL behind its own.
    pub(super) fn target(&self, path: &str) -> String {
        let (prefix, query) = (&self.prefix, &self.query);
        match (query.is_empty(), path.contains('?')) {
            (true, _) => format!("{prefix}{path}"),
            (false, false) => format!("{prefix}{path}?{query}"),
            (false, true) => format!("{prefix}{path}&{query}"),
        }
    }

    /// How long a body may be silent.
    pub(super) fn idle(&self) -> Duration {
        self.patience.idle
    }

    /// Sends a request on a connection of its own.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let Patience { connect, idle } = self.patience;
        let stream = self
            .within(connect, "cannot be reached", self.connect())
            .await?;
        let answer = async {
            match stream {
                Stream::Plain(stream) => self.exchange(stream, request).await,
                Stream::Tls(stream) => self.exchange(*stream, request).await,
            }
        };
        self.within(idle, "did not answer", answer).await
    }

    async fn within<T>(
        &self,
        within: Duration,
        what: &'static str,
        doing: impl Future<Output = Result<T, UpstreamError>>,
    ) -> Result<T, UpstreamError> {
        let slow = |_| UpstreamError::Slow {
            host: self.authority.clone(),
            what,
            within,
        };
        tokio::time::timeout(within, doing).await.map_err(slow)?
    }

    async fn connect(&self) -> Result<Stream, UpstreamError> {
        let connect = |source| UpstreamError::Connect {
            host: self.authority.clone(),
            source,
        };
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, self.port))
            .await
            .map_err(connect)?;
        stream.set_nodelay(true).map_err(connect)?;
        let Some(tls) = &self.tls else {
            return Ok(Stream::Plain(stream));
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| connect(std::io::Error::other(error)))?;
        let stream = tls.connect(name, stream).await.map_err(connect)?;
        Ok(Stream::Tls(Box::new(stream)))
    }

    async fn exchange<S>(
        &self,
        stream: S,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, UpstreamError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let answer = |source| UpstreamError::Answer {
            host: self.authority.clone(),
            source,
        };
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(answer)?;
        // Ends with the response's body.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the service's connection ended");
            }
        });
        sender.send_request(request).await.map_err(answer)
    }
}

/// A connection to the service.
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

fn connector(more: Option<&[u8]>) -> Result<TlsConnector, UpstreamError> {
    let bad = |error: &dyn std::fmt::Display| UpstreamError::Roots(error.to_string());
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(more) = more {
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(more) {
            let certificate = certificate.map_err(|error| bad(&error))?;
            roots.add(certificate).map_err(|error| bad(&error))?;
        }
        if roots.len() == before {
            return Err(bad(&"there is no CERTIFICATE section in this PEM text"));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(url: &str) -> Result<Upstream, UpstreamError> {
        Upstream::new(url, None, Patience::default())
    }

    #[test]
    fn urls_are_taken_apart() {
        let service = upstream("https://api.example.com/v1/").unwrap();
        assert_eq!(
            (service.host.as_str(), service.port),
            ("api.example.com", 443)
        );
        assert_eq!(service.target("/models?limit=1"), "/v1/models?limit=1");
        let service = upstream("http://[::1]:8080").unwrap();
        assert_eq!((service.authority(), service.port), ("[::1]:8080", 8080));
        for bad in ["api.example.com", "ftp://x", "", "https://"] {
            assert!(upstream(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_query_of_the_url_goes_with_every_request() {
        let azure = upstream("https://x.test/openai/deployments/d?api-version=2024-10-21").unwrap();
        for (asked, target) in [
            (
                "/chat/completions",
                "/openai/deployments/d/chat/completions?api-version=2024-10-21",
            ),
            (
                "/models?limit=1",
                "/openai/deployments/d/models?limit=1&api-version=2024-10-21",
            ),
        ] {
            assert_eq!(azure.target(asked), target);
        }
    }

    #[test]
    fn what_is_no_certificate_is_not_trusted() {
        let with = |pem: &[u8]| Upstream::new("https://h", Some(pem), Patience::default());
        for bad in [
            "",
            "not PEM",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            let error = with(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("no certificates to trust: "), "{error}");
        }
    }
}
