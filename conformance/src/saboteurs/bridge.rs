//! The way of messages between the two sides of a channel, through a rewriter.
//!
//! ```text
//! client --> read --> [rewriter.to_server] --> queue --> write --> server
//! client <-- write <-- queue <-- [rewriter.to_client] <-- read <-- server
//! ```
//!
//! Each direction has one reader and one writer; the writer also keeps the delays, so that order stays. Queues
//! are short, so a slow reader on one side slows the other side down. The way ends when both sides have ended,
//! when one breaks, or when the rewriter says so.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use super::{
    channel::{Act, ChannelInfo, ChannelKind, Message, MessageRewriter, OutMessage, Outlet},
    proxy::ProxyError,
    saboteur::{RequestInfo, Saboteur},
};
use crate::{
    drivers::websocket::frames::{Assembler, FrameReader, message_bytes},
    transcript::Side,
};

/// Messages that wait to be written in one direction.
const WAITING: usize = 64;

/// Longest line, in bytes; a longer one breaks the channel.
const MAX_LINE: usize = 64 << 20;

/// How long the last messages may take to be written, once a side has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A connection that a channel runs over.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

/// Asks a saboteur for the rewriter of a channel. With one, gives what [`Bridge::run`] takes.
pub fn open(
    saboteur: &dyn Saboteur,
    kind: ChannelKind,
    request: RequestInfo,
    number: u64,
    scale: f64,
) -> Option<Bridge> {
    let (sender, outside) = mpsc::unbounded_channel();
    let info = ChannelInfo {
        kind,
        request,
        number,
        outlet: Outlet(sender),
    };
    let rewriter = saboteur.channel(&info)?;
    Some(Bridge {
        kind,
        rewriter: Arc::new(Mutex::new(rewriter)),
        outside,
        scale,
    })
}

/// A channel whose messages are rewritten.
pub struct Bridge {
    kind: ChannelKind,
    rewriter: Arc<Mutex<Box<dyn MessageRewriter>>>,
    outside: mpsc::UnboundedReceiver<(Side, OutMessage)>,
    scale: f64,
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Bridge {
    /// Leads messages between the two connections until one of them ends.
    pub async fn run(self, client: impl Io, server: impl Io) {
        let (from_client, to_client) = tokio::io::split(client);
        let (from_server, to_server) = tokio::io::split(server);
        let (client_queue, for_client) = mpsc::channel(WAITING);
        let (server_queue, for_server) = mpsc::channel(WAITING);
        let queues = Queues {
            client: client_queue,
            server: server_queue,
        };
        let Self {
            kind,
            rewriter,
            mut outside,
            scale,
        } = self;
        let up = Direction {
            kind,
            from: Side::Client,
            rewriter: Arc::clone(&rewriter),
            queues: queues.clone(),
        };
        let down = Direction {
            kind,
            from: Side::Server,
            rewriter,
            queues: queues.clone(),
        };
        let mut writers = JoinSet::new();
        writers.spawn(write(kind, false, to_client, for_client, scale));
        writers.spawn(write(kind, true, to_server, for_server, scale));
        let injecting = async {
            while let Some((side, message)) = outside.recv().await {
                queues.put(side, message).await;
            }
            // Nobody is left who could send; the channel goes on.
            std::future::pending::<()>().await;
        };
        let mut readers = JoinSet::new();
        readers.spawn(up.run(from_client));
        readers.spawn(down.run(from_server));
        tokio::select! {
            _ = readers.join_next() => {}
            _ = writers.join_next() => {}
            () = injecting => {}
        }
        // One side is done: the other gets what waits, and its end.
        readers.shutdown().await;
        drop(queues);
        let finish = async { while writers.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST_WORDS, finish).await;
    }
}

/// Where messages wait to be written.
#[derive(Clone)]
struct Queues {
    client: mpsc::Sender<OutMessage>,
    server: mpsc::Sender<OutMessage>,
}

impl Queues {
    async fn put(&self, to: Side, message: OutMessage) {
        let queue = match to {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        // A writer that has gone ends the channel; its messages go nowhere.
        let _ = queue.send(message).await;
    }
}

struct Direction {
    kind: ChannelKind,
    from: Side,
    rewriter: Arc<Mutex<Box<dyn MessageRewriter>>>,
    queues: Queues,
}

impl Direction {
    /// Reads to the end of one side.
    async fn run(self, from: impl AsyncRead + Unpin) {
        match self.kind {
            ChannelKind::WebSocket => self.frames(from).await,
            ChannelKind::Lines => self.lines(from).await,
        }
    }

    async fn frames(self, from: impl AsyncRead + Unpin) {
        let (mut reader, mut assembler) = (FrameReader::new(from), Assembler::default());
        while let Ok(Some(frame)) = reader.next().await {
            match assembler.push(frame) {
                Ok(None) => {}
                Ok(Some(whole)) => self.pass(whole.message.into()).await,
                Err(_) => return,
            }
        }
    }

    async fn lines(self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = BytesMut::new();
        while from.read_buf(&mut buffer).await.unwrap_or_default() > 0 {
            while let Some(end) = memchr::memchr(b'\n', &buffer) {
                let line = buffer.split_to(end + 1);
                self.pass(line_message(&line[..end])).await;
            }
            if buffer.len() > MAX_LINE {
                return;
            }
        }
        self.pass(Message::Close(None)).await;
    }

    async fn pass(&self, message: Message) {
        let outs = {
            let mut rewriter = self.rewriter.lock().unwrap_or_else(PoisonError::into_inner);
            match self.from {
                Side::Client => rewriter.to_server(message),
                Side::Server => rewriter.to_client(message),
            }
        };
        let (ahead, back) = match self.from {
            Side::Client => (Side::Server, Side::Client),
            Side::Server => (Side::Client, Side::Server),
        };
        for out in outs {
            match out.act {
                Act::Answer(message) => {
                    let message = OutMessage::send(message).after(out.delay);
                    self.queues.put(back, message).await;
                }
                Act::Send(_) => self.queues.put(ahead, out).await,
                Act::Close(_) | Act::Cut => {
                    self.queues.put(back, out.clone()).await;
                    self.queues.put(ahead, out).await;
                }
            }
        }
    }
}

fn line_message(line: &[u8]) -> Message {
    match std::str::from_utf8(line) {
        Ok(text) => Message::Text(text.to_owned()),
        Err(_) => Message::Binary(Bytes::copy_from_slice(line)),
    }
}

/// Writes what is queued, until the queue ends, the connection breaks, or the channel is closed.
async fn write(
    kind: ChannelKind,
    masked: bool,
    mut to: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<OutMessage>,
    scale: f64,
) {
    while let Some(OutMessage { delay, act }) = queue.recv().await {
        if !delay.is_zero() {
            let time = Duration::try_from_secs_f64(delay.as_secs_f64() * scale);
            sleep(time.unwrap_or_default()).await;
        }
        let (message, last) = match act {
            Act::Send(message) | Act::Answer(message) => (message, false),
            Act::Close(code) => (Message::Close(Some((code, String::new()))), true),
            Act::Cut => return,
        };
        let is_end = kind == ChannelKind::Lines && matches!(message, Message::Close(_));
        if !is_end {
            let bytes = encode(kind, message, masked);
            let written = async {
                to.write_all(&bytes).await?;
                to.flush().await
            };
            if written.await.is_err() {
                return;
            }
        }
        if last || is_end {
            break;
        }
    }
    let _ = to.shutdown().await;
}

fn encode(kind: ChannelKind, message: Message, masked: bool) -> Vec<u8> {
    match (kind, message) {
        (ChannelKind::WebSocket, message) => message_bytes(&message.into(), masked),
        (ChannelKind::Lines, Message::Text(text)) => (text + "\n").into_bytes(),
        (ChannelKind::Lines, Message::Binary(bytes)) => {
            let mut line = bytes.to_vec();
            line.push(b'\n');
            line
        }
        (ChannelKind::Lines, _) => Vec::new(),
    }
}

/// A proxy for channels of lines over a loopback socket. It stops when it is dropped.
#[derive(Debug)]
pub struct LineProxy {
    address: std::net::SocketAddr,
    accepting: AbortHandle,
}

impl LineProxy {
    /// Starts a proxy in front of a peer that listens at `upstream`, `HOST:PORT`. Times of the saboteur are
    /// multiplied with `time_scale`.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Bind`] when there is no port.
    pub async fn start(
        upstream: &str,
        saboteur: Arc<dyn Saboteur>,
        time_scale: f64,
    ) -> Result<Self, ProxyError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let upstream = upstream.to_owned();
        let accepting = tokio::spawn(async move {
            let (mut connections, mut number) = (JoinSet::new(), 0);
            while let Ok((client, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let (saboteur, upstream) = (Arc::clone(&saboteur), upstream.clone());
                connections.spawn(async move {
                    if let Ok(server) = TcpStream::connect(upstream).await {
                        lines(saboteur.as_ref(), number, time_scale, client, server).await;
                    }
                });
                number += 1;
            }
        });
        Ok(Self {
            address,
            accepting: accepting.abort_handle(),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> std::net::SocketAddr {
        self.address
    }
}

impl Drop for LineProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Leads lines between a client and a server, through the saboteur when it wants to, until one of them ends.
pub async fn lines(
    saboteur: &dyn Saboteur,
    number: u64,
    scale: f64,
    mut client: impl Io,
    mut server: impl Io,
) {
    let request = RequestInfo::default();
    match open(saboteur, ChannelKind::Lines, request, number, scale) {
        Some(bridge) => bridge.run(client, server).await,
        None => {
            // How it ended shows on both sides.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        }
    }
}

#[cfg(test)]
mod tests;
