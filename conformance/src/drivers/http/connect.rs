//! TCP and TLS connections, and the few that wait to be used again.

use std::{
    io,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpSocket, TcpStream, lookup_host},
    task::AbortHandle,
    time::Instant,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName},
};

use super::{BaseUrl, call::HyperRequest};
use crate::drivers::causes;

/// A connection that was unused for this long is not used again: the target may be closing it just now.
const REUSE_WITHIN: Duration = Duration::from_secs(1);
/// Unused connections that are kept at most.
const KEPT: usize = 16;

/// Opens connections, and keeps those that plain requests have done with.
#[derive(Debug, Default)]
pub struct Connector {
    kept: Mutex<Vec<(Connection, Instant)>>,
}

/// One HTTP/1.1 connection. Dropping it closes the socket.
#[derive(Debug)]
pub struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Connector {
    /// Opens a connection; `receive_buffer` bytes of kernel buffer when given; heads of at most `max_head` bytes.
    ///
    /// # Errors
    ///
    /// With the transport's words: name not found, refused, TLS failed.
    pub async fn open(
        &self,
        base: &BaseUrl,
        receive_buffer: Option<u32>,
        max_head: usize,
    ) -> Result<Connection, String> {
        let tcp = dial(base, receive_buffer)
            .await
            .map_err(|error| error.to_string())?;
        tcp.set_nodelay(true).map_err(|error| error.to_string())?;
        if base.tls {
            let name =
                ServerName::try_from(base.host.clone()).map_err(|error| error.to_string())?;
            let tls = TlsConnector::from(tls_config()?)
                .connect(name, tcp)
                .await
                .map_err(|error| causes(&error))?;
            Connection::start(tls, max_head).await
        } else {
            Connection::start(tcp, max_head).await
        }
    }

    /// A connection that was used just now and is still open.
    pub fn reuse(&self) -> Option<Connection> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(connection, since)| {
            since.elapsed() < REUSE_WITHIN && !connection.sender.is_closed()
        });
        let index = kept
            .iter()
            .rposition(|(connection, _)| connection.sender.is_ready())?;
        Some(kept.swap_remove(index).0)
    }

    /// Keeps a connection whose last answer was read completely.
    pub fn keep(&self, connection: Connection) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push((connection, Instant::now()));
        }
    }

    /// Closes all that are kept.
    pub fn forget(&self) {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

impl Connection {
    async fn start<S>(stream: S, max_head: usize) -> Result<Self, String>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(max_head.max(8 << 10));
        let (sender, driver) = builder
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| causes(&error))?;
        let task = tokio::spawn(async move {
            // What goes wrong here is also told to whoever waits for the response or its body.
            let _ = driver.with_upgrades().await;
        });
        Ok(Self {
            sender,
            driver: task.abort_handle(),
        })
    }

    /// Sends a request and waits for the response head.
    pub(super) async fn send(
        &mut self,
        request: HyperRequest,
    ) -> hyper::Result<hyper::Response<Incoming>> {
        self.sender.send_request(request).await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A connection to `base`, with TLS where its scheme asks for it.
///
/// # Errors
///
/// With the transport's words: name not found, refused, TLS failed.
pub(crate) async fn open_stream(base: &BaseUrl) -> Result<Box<dyn Stream>, String> {
    let tcp = dial(base, None).await.map_err(|error| error.to_string())?;
    tcp.set_nodelay(true).map_err(|error| error.to_string())?;
    if !base.tls {
        return Ok(Box::new(tcp));
    }
    let name = ServerName::try_from(base.host.clone()).map_err(|error| error.to_string())?;
    let tls = TlsConnector::from(tls_config()?).connect(name, tcp).await;
    Ok(Box::new(tls.map_err(|error| causes(&error))?))
}

/// A connection of any kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Tries all addresses of the host, in turn.
async fn dial(base: &BaseUrl, receive_buffer: Option<u32>) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in lookup_host((base.host.as_str(), base.port)).await? {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        match socket.connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Mozilla's roots, ring, HTTP/1.1 only.
fn tls_config() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let made = CONFIG.get_or_init(|| {
        let roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    });
    made.clone()
}
