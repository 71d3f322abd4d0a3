//! The server side of a WebSocket or of a channel of lines.
//!
//! Two things go on at a time: what the client says is held against the transcript, and what the server said is
//! said again, each piece once the client has done what it had done by then. Pings are answered, and a close.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::Mutex,
    time::timeout,
};

use super::state::{Heard, State};
use crate::{
    drivers::websocket::frames::{Assembler, FrameReader, message_bytes},
    replay::said::Said,
    transcript::{End, WsFrame},
};

/// Longest line that is taken from a client, in bytes.
const MAX_LINE: u64 = 16 << 20;

/// How long a client may take to take a message, and to end a connection that we have ended.
const TAKES_WITHIN: Duration = Duration::from_secs(10);

/// Longest reason of a close frame, in bytes. Source: RFC 6455, section 5.5.
const MAX_REASON: usize = 123;

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Speech {
    /// Frames of WebSocket.
    Frames,
    /// Lines.
    Lines,
}

/// Why the client is not listened to any more.
enum Ended {
    /// It sends nothing more.
    Input,
    /// It closed, or was refused.
    Talk,
}

/// How the server's part is over.
enum Last {
    /// It ends the connection in good order.
    Ends,
    /// It breaks it off.
    Cuts,
    /// The client ends it, or nobody does.
    Stays,
}

/// Plays the channel at this place over a connection, until either side ends it.
pub(super) async fn converse<R, W>(state: Arc<State>, place: usize, speech: Speech, from: R, to: W)
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    let mouth = Mouth {
        to: Mutex::new(to),
        speech,
        closed: AtomicBool::new(false),
    };
    let mut ear = Ear::new(speech, from);
    {
        let mut hearing = std::pin::pin!(hear(&state, place, &mut ear, &mouth));
        let mut speaking = std::pin::pin!(speak(&state, place, &mouth));
        let last = tokio::select! {
            ended = &mut hearing => Err(ended),
            last = &mut speaking => Ok(last),
        };
        match last {
            // The input of a program may end before it has said everything.
            Err(Ended::Input) if speech == Speech::Lines => {
                state.nothing_more(place);
                speaking.await;
            }
            Err(_) | Ok(Last::Cuts) => {}
            Ok(Last::Stays) => {
                hearing.await;
            }
            Ok(Last::Ends) => {
                // The client answers a close with its own; the end of what we say it answers with its own end.
                if speech == Speech::Lines {
                    mouth.end().await;
                }
                let _ = timeout(TAKES_WITHIN, hearing).await;
            }
        }
    }
    mouth.end().await;
    state.over(place);
}

/// Listens until the client ends the connection, or is refused.
async fn hear<R, W>(state: &State, place: usize, ear: &mut Ear<R>, mouth: &Mouth<W>) -> Ended
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    while let Some(said) = ear.next().await {
        match &said {
            Said::Frame(WsFrame::Ping(payload)) => {
                let pong = Said::Frame(WsFrame::Pong(payload.clone()));
                if !mouth.say(&pong).await {
                    return Ended::Talk;
                }
            }
            Said::Frame(WsFrame::Pong(_)) => {}
            Said::Frame(WsFrame::Close(code)) => {
                state.heard(place, &said);
                let recorded = state.close_at(place);
                let answer = recorded.unwrap_or_else(|| WsFrame::Close(code.clone()));
                mouth.say(&Said::Frame(answer)).await;
                return Ended::Talk;
            }
            _ => {
                if let Heard::Refused(why) = state.heard(place, &said) {
                    mouth.refuse(&why).await;
                    return Ended::Talk;
                }
            }
        }
    }
    Ended::Input
}

/// Says what the server said.
async fn speak<W>(state: &State, place: usize, mouth: &Mouth<W>) -> Last
where
    W: AsyncWrite + Send + Unpin,
{
    let Some(played) = state.script.exchanges.get(place) else {
        return Last::Cuts;
    };
    for piece in &played.said {
        state.until(piece).await;
        let said = piece.what.in_words(&state.words());
        if !mouth.say(&said).await {
            return Last::Cuts;
        }
    }
    let Some(end) = &played.end else {
        return Last::Stays;
    };
    match end.what {
        End::Complete => {
            state.until(end).await;
            Last::Ends
        }
        End::Broken(_) | End::NotHttp(_) => {
            state.until(end).await;
            Last::Cuts
        }
        _ => Last::Stays,
    }
}

/// Where what is said goes to.
struct Mouth<W> {
    to: Mutex<W>,
    speech: Speech,
    /// A close was said; there is one of each side. Source: RFC 6455, section 5.5.1.
    closed: AtomicBool,
}

impl<W: AsyncWrite + Send + Unpin> Mouth<W> {
    /// Whether it could be said.
    async fn say(&self, said: &Said) -> bool {
        let closes = matches!(said, Said::Frame(WsFrame::Close(_)));
        if closes && self.closed.swap(true, Ordering::Relaxed) {
            return true;
        }
        let bytes = match said {
            Said::Frame(frame) => message_bytes(frame, false),
            Said::Line(line) => [line.as_ref(), b"\n"].concat(),
        };
        let saying = async {
            let mut to = self.to.lock().await;
            to.write_all(&bytes).await?;
            to.flush().await
        };
        matches!(timeout(TAKES_WITHIN, saying).await, Ok(Ok(())))
    }

    /// Says that nothing more will be said, and why, where the protocol has room for it.
    async fn refuse(&self, why: &str) {
        if self.speech == Speech::Lines {
            return;
        }
        let mut reason = why.to_owned();
        while reason.len() > MAX_REASON {
            reason.pop();
        }
        // 1008: a message against the policy of the endpoint. Source: RFC 6455, section 7.4.1.
        let close = WsFrame::Close(Some((1008, reason)));
        self.say(&Said::Frame(close)).await;
    }

    async fn end(&self) {
        // What the client does not see any more is no fault.
        let _ = timeout(TAKES_WITHIN, async {
            self.to.lock().await.shutdown().await
        })
        .await;
    }
}

/// Where what the client says comes from.
enum Ear<R> {
    Frames(FrameReader<R>, Assembler),
    Lines(BufReader<R>),
}

impl<R: AsyncRead + Send + Unpin> Ear<R> {
    fn new(speech: Speech, from: R) -> Self {
        match speech {
            Speech::Frames => Self::Frames(FrameReader::new(from), Assembler::default()),
            Speech::Lines => Self::Lines(BufReader::new(from)),
        }
    }

    /// What comes next; `None` when nothing more can be read.
    async fn next(&mut self) -> Option<Said> {
        match self {
            Self::Frames(frames, assembler) => loop {
                let frame = frames.next().await.ok().flatten()?;
                if let Some(whole) = assembler.push(frame).ok()? {
                    return Some(Said::Frame(whole.message));
                }
            },
            Self::Lines(lines) => {
                let mut line = Vec::new();
                let mut bounded = lines.take(MAX_LINE);
                let read = bounded.read_until(b'\n', &mut line).await.ok()?;
                if read == 0 || (line.last() != Some(&b'\n') && bounded.limit() == 0) {
                    return None;
                }
                if line.last() == Some(&b'\n') {
                    line.pop();
                }
                Some(Said::Line(Bytes::from(line)))
            }
        }
    }
}
