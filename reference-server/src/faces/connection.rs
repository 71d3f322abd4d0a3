//! One TCP connection below HTTP: when its bytes are really with the kernel, and how to break it off.
//!
//! The HTTP library buffers what a response body yields. To write one frame at a time, and to know
//! how long that took, a face has to see the flushes below the library: [`WatchedIo`] counts them,
//! and [`Connection`] is the handle that each request of the connection carries.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A connection, as its requests see it. Clones are handles to the same connection.
#[derive(Clone, Debug)]
pub struct Connection {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    peer: SocketAddr,
    flushes: watch::Sender<u64>,
    aborted: CancellationToken,
    closed: CancellationToken,
}

impl Connection {
    /// A handle for the connection to this peer, and the socket that reports to it.
    #[must_use]
    pub fn watch(stream: TcpStream, peer: SocketAddr) -> (Self, WatchedIo) {
        let shared = Arc::new(Shared {
            peer,
            flushes: watch::Sender::new(0),
            aborted: CancellationToken::new(),
            closed: CancellationToken::new(),
        });
        let connection = Self { shared };
        let io = WatchedIo {
            stream,
            connection: connection.clone(),
        };
        (connection, io)
    }

    /// The address of the client.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.shared.peer
    }

    /// How often everything that was buffered has been handed to the kernel.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        *self.shared.flushes.borrow()
    }

    /// Follows [`flushes`](Self::flushes).
    #[must_use]
    pub fn follow_flushes(&self) -> watch::Receiver<u64> {
        self.shared.flushes.subscribe()
    }

    /// Breaks the connection off: nothing more is sent, not even what the kernel holds.
    pub fn abort(&self) {
        self.shared.aborted.cancel();
    }

    /// Returns when somebody breaks the connection off; whoever drives it drops it then.
    pub async fn aborted(&self) {
        self.shared.aborted.cancelled().await;
    }

    /// Returns when the socket is closed.
    pub async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }
}

/// A socket that tells its [`Connection`] about every flush, and about its end.
#[derive(Debug)]
pub struct WatchedIo {
    stream: TcpStream,
    connection: Connection,
}

impl Drop for WatchedIo {
    fn drop(&mut self) {
        if self.connection.shared.aborted.is_cancelled() {
            // A reset instead of an orderly end. Without it the kernel would go on sending.
            if let Err(error) = self.stream.set_zero_linger() {
                tracing::debug!(%error, "an aborted connection ends in good order");
            }
        }
        self.connection.shared.closed.cancel();
    }
}

impl AsyncRead for WatchedIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for WatchedIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.connection
            .shared
            .flushes
            .send_modify(|flushes| *flushes += 1);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
