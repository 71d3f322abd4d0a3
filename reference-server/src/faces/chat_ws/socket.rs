//! One socket from its opening to its end.
//!
//! ```text
//! client --> read --> requests --> engine
//! client <-- write <-- outbox <-- hub, requests
//!               ^-- protocol ping every 30 s; without a pong until the next one the socket is cut
//! ```
//!
//! Frames of one client are handled one after the other. A text that is no frame is answered and ends nothing;
//! what is no WebSocket message, or too long, ends the socket with a close code.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_util::sync::CancellationToken;
use turnwire_spec::chat_ws::{close, limits};

use super::Chat;
use super::hub::SocketId;
use super::outbox::Outbox;

/// How long a client may take to close after the server has, in real time.
const GOODBYE: Duration = Duration::from_secs(1);

/// Shortest time in which a pong may come, in real time: a scaled period may be as short as a machine's hiccup.
const PONG_AT_LEAST: Duration = Duration::from_secs(4);

/// Serves a socket to its end.
pub(super) async fn run<S>(face: Arc<Chat>, io: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let limits = WebSocketConfig::default()
        .max_message_size(Some(limits::MAX_MESSAGE_BYTES))
        .max_frame_size(Some(limits::MAX_MESSAGE_BYTES));
    let stream = WebSocketStream::from_raw_socket(io, Role::Server, Some(limits)).await;
    let (sink, stream) = stream.split();
    let cut = CancellationToken::new();
    let (outbox, queue) = Outbox::new(limits::MAX_WAITING_BYTES, cut.clone());
    let outbox = Arc::new(outbox);
    let id = face.hub.join(Arc::clone(&outbox));
    let answered = Arc::new(AtomicBool::new(true));
    let closing = CancellationToken::new();
    let writer = Writer {
        sink,
        queue,
        outbox: Arc::clone(&outbox),
        answered: Arc::clone(&answered),
        ping_every: face.scale.scale(limits::SERVER_PING_EVERY),
        closing: closing.clone(),
        told: face.told.clone(),
    };
    let reader = Reader {
        face: &face,
        id,
        outbox: &outbox,
        answered: &answered,
    };
    let both = async {
        let (goodbye, last_word) = tokio::sync::oneshot::channel();
        let reading = async {
            let code = reader.run(stream).await;
            // Nobody waits when the writer was the first to end.
            let _ = goodbye.send(code);
            closing.cancel();
        };
        let writing = writer.run(last_word);
        let mut writing = std::pin::pin!(writing);
        tokio::select! {
            () = reading => {
                // What is queued, and the close frame, may still go out.
                let _ = timeout(GOODBYE, writing).await;
            }
            () = &mut writing => {}
        }
    };
    tokio::select! {
        biased;
        () = face.life.killed.cancelled() => {}
        () = cut.cancelled() => tracing::debug!("a socket does not read and is cut"),
        () = both => {}
    }
    face.hub.leave(id);
}

/// The code with which a socket ends, when the server ends it.
type Ending = Option<u16>;

struct Reader<'a> {
    face: &'a Arc<Chat>,
    id: SocketId,
    outbox: &'a Outbox,
    answered: &'a AtomicBool,
}

impl Reader<'_> {
    /// Reads until the client has gone; the code, when the server ends the socket.
    async fn run<S>(&self, mut stream: SplitStream<WebSocketStream<S>>) -> Ending
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        while let Some(message) = stream.next().await {
            match message {
                Ok(Message::Text(text)) => self.frame(text.as_str()).await,
                Ok(Message::Binary(bytes)) => match std::str::from_utf8(&bytes) {
                    Ok(text) => self.frame(text).await,
                    Err(_) => self.frame("").await,
                },
                Ok(Message::Pong(_)) => self.answered.store(true, Ordering::Relaxed),
                // Pings and closes are answered by the library.
                Ok(_) => {}
                Err(error) => return code_of(&error),
            }
        }
        None
    }

    async fn frame(&self, text: &str) {
        self.face.take(self.id, self.outbox, text).await;
    }
}

fn code_of(error: &Error) -> Ending {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => Some(close::TOO_LARGE),
        Error::Utf8(_) => Some(close::INVALID_UTF8),
        Error::Protocol(_) => Some(close::PROTOCOL_ERROR),
        _ => None,
    }
}

struct Writer<S> {
    sink: SplitSink<WebSocketStream<S>, Message>,
    queue: mpsc::UnboundedReceiver<Utf8Bytes>,
    outbox: Arc<Outbox>,
    answered: Arc<AtomicBool>,
    ping_every: Duration,
    closing: CancellationToken,
    told: CancellationToken,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Writer<S> {
    /// Writes until the socket ends, or a ping stays without an answer.
    async fn run(mut self, last_word: tokio::sync::oneshot::Receiver<Ending>) {
        let mut pings = interval_at(Instant::now() + self.ping_every, self.ping_every);
        // When the first ping was sent that has no answer yet.
        let mut asked = Instant::now();
        loop {
            let written = tokio::select! {
                biased;
                () = self.closing.cancelled() => break,
                () = self.told.cancelled() => {
                    while let Ok(text) = self.queue.try_recv() {
                        if self.text(text).await.is_err() {
                            return;
                        }
                    }
                    self.close(close::GOING_AWAY).await;
                    // The client closes in turn, which ends the reader.
                    let _ = timeout(GOODBYE, self.closing.cancelled()).await;
                    return;
                }
                _ = pings.tick() => {
                    if self.answered.swap(false, Ordering::Relaxed) {
                        asked = Instant::now();
                    } else if asked.elapsed() >= self.ping_every.max(PONG_AT_LEAST) {
                        tracing::debug!("a socket does not answer pings and is cut");
                        return;
                    }
                    self.sink.send(Message::Ping(Default::default())).await
                }
                text = self.queue.recv() => match text {
                    Some(text) => self.text(text).await,
                    None => return,
                },
            };
            if written.is_err() {
                return;
            }
        }
        while let Ok(text) = self.queue.try_recv() {
            if self.text(text).await.is_err() {
                return;
            }
        }
        if let Ok(Some(code)) = last_word.await {
            self.close(code).await;
        } else {
            let _ = self.sink.close().await;
        }
    }

    async fn text(&mut self, text: Utf8Bytes) -> Result<(), Error> {
        let size = text.len();
        self.sink.send(Message::Text(text)).await?;
        self.outbox.written(size);
        Ok(())
    }

    async fn close(&mut self, code: u16) {
        let frame = CloseFrame {
            code: CloseCode::from(code),
            reason: Utf8Bytes::default(),
        };
        // The client may have gone meanwhile.
        let _ = self.sink.send(Message::Close(Some(frame))).await;
    }
}
