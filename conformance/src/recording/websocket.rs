//! Reads WebSocket frames from a connection while its bytes are passed on as they are.
//!
//! Extensions are not negotiated through the proxy, so no frame is compressed. Fragments are put together: what is
//! recorded is a message, at the time at which it was complete.
//!
//! Source: RFC 6455, section 5.2.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::BytesMut;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use super::{Tape, body::Ending};
use crate::{
    drivers::websocket::frames::{Assembler, FrameError, take_frame},
    transcript::{End, ExchangeId, Fact, Side, WsFrame},
};

/// Passes bytes on between both sides until both have ended, and records the frames.
pub(super) async fn tunnel(client: OnUpgrade, server: OnUpgrade, mut ending: Ending) {
    let (client, server) = match tokio::join!(client, server) {
        (Ok(client), Ok(server)) => (TokioIo::new(client), TokioIo::new(server)),
        (Err(error), _) | (_, Err(error)) => {
            ending.tell(End::Broken(error.to_string()));
            return;
        }
    };
    let (from_client, to_client) = tokio::io::split(client);
    let (from_server, to_server) = tokio::io::split(server);
    let listener = |side| Listener::new(ending.tape().clone(), ending.exchange(), side);
    let (mut up, mut down) = (listener(Side::Client), listener(Side::Server));
    let client_left = AtomicBool::new(false);
    let (server_left, passed) = {
        let up = async {
            // That the client has gone shows in what it sent last.
            let _ = pass(from_client, to_server, &mut up).await;
            client_left.store(true, Ordering::Release);
        };
        let down = async {
            let passed = pass(from_server, to_client, &mut down).await;
            (!client_left.load(Ordering::Acquire), passed)
        };
        tokio::join!(up, down).1
    };
    ending.tell(match passed {
        Ok(()) if down.closed => End::Complete,
        _ if !server_left => End::ClosedByHarness,
        Ok(()) => End::Broken("no close frame before the end".to_owned()),
        Err(error) => End::Broken(error.to_string()),
    });
}

async fn pass(
    mut from: ReadHalf<TokioIo<Upgraded>>,
    mut to: WriteHalf<TokioIo<Upgraded>>,
    listener: &mut Listener,
) -> std::io::Result<()> {
    let mut buffer = BytesMut::with_capacity(16 << 10);
    loop {
        buffer.clear();
        if from.read_buf(&mut buffer).await? == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer).await?;
        to.flush().await?;
        listener.hear(&buffer);
    }
}

/// Reads the frames of one side.
struct Listener {
    tape: Tape,
    exchange: ExchangeId,
    side: Side,
    /// Bytes of a frame that is not yet whole.
    waiting: BytesMut,
    assembler: Assembler,
    /// Whether this side has sent a close frame.
    closed: bool,
    /// What passed is no frame, or too long to be kept: nothing more is read.
    lost: bool,
}

impl Listener {
    fn new(tape: Tape, exchange: ExchangeId, side: Side) -> Self {
        Self {
            tape,
            exchange,
            side,
            waiting: BytesMut::new(),
            assembler: Assembler::default(),
            closed: false,
            lost: false,
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        if self.lost {
            return;
        }
        self.waiting.extend_from_slice(bytes);
        if let Err(error) = self.read() {
            self.lost = true;
            self.waiting = BytesMut::new();
            let exchange = self.exchange.0;
            self.tape.tell(Fact::Note(format!(
                "exchange {exchange}: what follows from this side is not recorded: {error}"
            )));
        }
    }

    fn read(&mut self) -> Result<(), FrameError> {
        while let Some(frame) = take_frame(&mut self.waiting)? {
            if let Some(whole) = self.assembler.push(frame)? {
                self.closed |= matches!(whole.message, WsFrame::Close(_));
                self.tape.tell(Fact::WebSocket {
                    exchange: self.exchange,
                    from: self.side,
                    frame: whole.message,
                });
            }
        }
        Ok(())
    }
}
