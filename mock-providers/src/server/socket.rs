//! A TCP stream that can be reset while hyper owns it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// Hyper's half of a stream; replies that break the connection hold another.
#[derive(Debug)]
pub(super) struct Socket {
    handle: Arc<Handle>,
}

/// What a reply can do to its connection.
#[derive(Debug)]
pub(super) struct Handle {
    stream: TcpStream,
    /// Nothing more is read: hyper closes the connection when it has written what it has.
    done: AtomicBool,
}

impl Handle {
    /// Makes the end of the connection a reset.
    pub(super) fn reset(&self) {
        if let Err(error) = self.stream.set_zero_linger() {
            tracing::debug!(%error, "cannot reset the connection");
        }
    }

    /// Ends the connection after the reply, without having announced it.
    pub(super) fn close_after(&self) {
        self.done.store(true, Ordering::Release);
    }

    /// Reads what there is, into memory that nobody has to clear first. After less than there is room for, the stream counts
    /// as empty until the system says otherwise: that saves asking it once more.
    fn read(&self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let mut read = false;
        let outcome = self.stream.try_io(Interest::READABLE, || {
            let room = buf.remaining();
            let count = self.stream.try_read_buf(buf)?;
            read = true;
            if (1..room).contains(&count) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(())
        });
        if read { Ok(()) } else { outcome }
    }

    /// Writes bytes past hyper.
    pub(super) async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Socket {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            handle: Arc::new(Handle {
                stream,
                done: AtomicBool::new(false),
            }),
        }
    }

    pub(super) fn handle(&self) -> Arc<Handle> {
        self.handle.clone()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.handle.done.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.handle.stream.poll_read_ready(cx))?;
            match self.handle.read(buf) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.handle.stream.poll_write_ready(cx))?;
            match self.handle.stream.try_write(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.handle.stream.poll_write_ready(cx))?;
            match self.handle.stream.try_write_vectored(bufs) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Nothing: dropping the last handle closes the stream, with a FIN or as it was told. A client
    /// that half-closed would otherwise see the end before a reset.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
