//! The connection to the service that is recorded.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

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
}

/// A service.
pub(super) struct Upstream {
    host: String,
    port: u16,
    authority: String,
    prefix: String,
    tls: Option<TlsConnector>,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    pub(super) fn new(url: &str) -> Result<Self, UpstreamError> {
        let bad = || UpstreamError::Url(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let tls = match uri.scheme_str() {
            Some("https") => Some(connector().map_err(|_| bad())?),
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
            tls,
        })
    }

    /// Host and port as the URL has them.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// The path of the URL, without a slash at the end.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Sends a request on a connection of its own.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let connect = |source| UpstreamError::Connect {
            host: self.authority.clone(),
            source,
        };
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, self.port))
            .await
            .map_err(connect)?;
        stream.set_nodelay(true).map_err(connect)?;
        match &self.tls {
            None => self.exchange(stream, request).await,
            Some(tls) => {
                let name = ServerName::try_from(host.to_owned())
                    .map_err(|error| connect(std::io::Error::other(error)))?;
                let stream = tls.connect(name, stream).await.map_err(connect)?;
                self.exchange(stream, request).await
            }
        }
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

fn connector() -> Result<TlsConnector, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let upstream = Upstream::new("https://api.example.com/v1/").unwrap();
        assert_eq!(
            (upstream.host.as_str(), upstream.port),
            ("api.example.com", 443)
        );
        assert_eq!(upstream.prefix(), "/v1");
        let upstream = Upstream::new("http://[::1]:8080").unwrap();
        assert_eq!((upstream.authority(), upstream.port), ("[::1]:8080", 8080));
        for bad in ["api.example.com", "ftp://x", "", "https://"] {
            assert!(Upstream::new(bad).is_err(), "{bad:?}");
        }
    }
}
