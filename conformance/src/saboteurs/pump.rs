//! The way of one response body through the proxy.
//!
//! ```text
//! target --> Incoming --> [as it is | as a whole | frame by frame] --> Sink --> ProxyBody --> harness
//! ```
//!
//! A piece is passed on before the next one is read, so a slow harness slows the target down. The way ends
//! when the target ends, when the treatment says so, or when the harness has gone.

use std::{
    future::Future,
    ops::ControlFlow,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame as BodyFrame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};
use turnwire_spec::sse::{Frame, Limits, Recorder};

use super::saboteur::{Edit, FrameRewriter, Out, Step, Treatment};

/// Longest body that is changed as a whole, or held back, and longest frame that is rewritten, in bytes.
pub(super) const MAX_HELD: usize = 64 << 20;

/// A body that the proxy sends to the harness.
#[derive(Debug)]
pub(super) struct ProxyBody {
    pieces: mpsc::Receiver<Piece>,
    cutting: bool,
}

/// What happens to that body.
#[derive(Debug)]
enum Piece {
    /// Data or trailers.
    Frame(BodyFrame<Bytes>),
    /// The connection is to break.
    Cut,
}

/// The connection is broken on purpose.
#[derive(Debug, thiserror::Error)]
#[error("cut")]
pub(super) struct Broken;

impl Body for ProxyBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Broken>>> {
        if self.cutting {
            return Poll::Ready(Some(Err(Broken)));
        }
        match self.pieces.poll_recv(context) {
            Poll::Ready(Some(Piece::Frame(frame))) => Poll::Ready(Some(Ok(frame))),
            Poll::Ready(Some(Piece::Cut)) => {
                // Pending once, so that what was sent before is flushed.
                self.cutting = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Whether the way goes on. It breaks off when the harness has gone, or the body is at its end.
type Going = ControlFlow<()>;

/// The sending end of a [`ProxyBody`].
#[derive(Debug)]
pub(super) struct Sink {
    pieces: mpsc::Sender<Piece>,
    /// Bytes until the connection is cut.
    left: Option<u64>,
    /// What is held back until the end.
    held: Option<Vec<u8>>,
    hold_open: bool,
    scale: f64,
    opened: Instant,
}

/// A body, and the end that fills it, as a treatment asks for.
pub(super) fn body(treatment: &Treatment, scale: f64) -> (Sink, ProxyBody) {
    let (sender, receiver) = mpsc::channel(1);
    let sink = Sink {
        pieces: sender,
        left: treatment.cut_after,
        held: treatment.buffer.then(Vec::new),
        hold_open: treatment.hold_open,
        scale,
        opened: Instant::now(),
    };
    (
        sink,
        ProxyBody {
            pieces: receiver,
            cutting: false,
        },
    )
}

/// Leads the target's body to the sink.
pub(super) async fn pump(mut upstream: Incoming, edit: Edit, mut sink: Sink) {
    let going = match edit {
        Edit::Pass => pass(&mut upstream, &mut sink).await,
        Edit::Whole(change) => whole(&mut upstream, change, &mut sink).await,
        Edit::Frames(rewriter) => frames(&mut upstream, rewriter, &mut sink).await,
    };
    drop(upstream);
    if going.is_continue() {
        sink.finish().await;
    }
}

/// Sends a body that the target has no part in.
pub(super) async fn pour(body: Bytes, mut sink: Sink) {
    if sink.send(body).await.is_continue() {
        sink.finish().await;
    }
}

async fn pass(upstream: &mut Incoming, sink: &mut Sink) -> Going {
    while let Some(frame) = sink.unless_gone(upstream.frame()).await? {
        match frame {
            Ok(frame) => sink.frame(frame).await?,
            Err(_) => sink.cut().await?,
        }
    }
    Going::Continue(())
}

async fn whole(
    upstream: &mut Incoming,
    change: Box<dyn FnOnce(Vec<u8>) -> Vec<u8> + Send>,
    sink: &mut Sink,
) -> Going {
    let mut body = Vec::new();
    while let Some(frame) = sink.unless_gone(upstream.frame()).await? {
        match frame.map(BodyFrame::into_data) {
            Ok(Ok(data)) if body.len() + data.len() <= MAX_HELD => body.extend_from_slice(&data),
            Ok(Err(_trailers)) => {}
            Ok(Ok(_)) | Err(_) => sink.cut().await?,
        }
    }
    sink.send(change(body).into()).await
}

async fn frames(
    upstream: &mut Incoming,
    rewriter: Box<dyn FrameRewriter>,
    sink: &mut Sink,
) -> Going {
    let mut stream = Rewriting {
        rewriter,
        recorder: Recorder::new(Limits::bytes(MAX_HELD)),
        bom_sent: false,
    };
    sink.ask(|out| stream.rewriter.open(out)).await?;
    loop {
        let wake = stream.rewriter.wake();
        let next = tokio::select! {
            frame = upstream.frame() => frame,
            () = sink.until(wake) => {
                sink.ask(|out| stream.rewriter.tick(out)).await?;
                continue;
            }
            () = sink.gone() => return Going::Break(()),
        };
        match next {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    let complete = stream.recorder.feed(&data);
                    stream.rewrite(complete, sink).await?;
                }
            }
            Some(Err(_)) => {
                stream.finish(sink).await?;
                return sink.cut().await;
            }
            None => {
                stream.finish(sink).await?;
                return sink.ask(|out| stream.rewriter.end(out)).await;
            }
        }
    }
}

/// An event stream that is being rewritten.
struct Rewriting {
    rewriter: Box<dyn FrameRewriter>,
    recorder: Recorder,
    bom_sent: bool,
}

impl Rewriting {
    async fn rewrite(&mut self, complete: Vec<Frame>, sink: &mut Sink) -> Going {
        for frame in complete {
            self.open_with_bom(sink).await?;
            if frame.is_blank() || !frame.terminated {
                sink.send(frame.to_bytes().into()).await?;
            } else {
                sink.ask(|out| self.rewriter.frame(&frame, out)).await?;
            }
        }
        Going::Continue(())
    }

    /// What the target had begun passes as it is.
    async fn finish(&mut self, sink: &mut Sink) -> Going {
        let rest = self.recorder.finish().into_iter().collect();
        self.rewrite(rest, sink).await
    }

    async fn open_with_bom(&mut self, sink: &mut Sink) -> Going {
        if !self.recorder.bom() || self.bom_sent {
            return Going::Continue(());
        }
        self.bom_sent = true;
        sink.send(Bytes::from_static(b"\xef\xbb\xbf")).await
    }
}

impl Sink {
    /// Sends data.
    async fn send(&mut self, bytes: Bytes) -> Going {
        if bytes.is_empty() {
            Going::Continue(())
        } else {
            self.frame(BodyFrame::data(bytes)).await
        }
    }

    /// Sends a piece of the target's body as it is, as far as the connection may last.
    async fn frame(&mut self, frame: BodyFrame<Bytes>) -> Going {
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(trailers) => return self.put(Piece::Frame(trailers)).await,
        };
        if let Some(held) = &mut self.held {
            if held.len() + data.len() > MAX_HELD {
                return self.cut().await;
            }
            held.extend_from_slice(&data);
            return Going::Continue(());
        }
        self.limited(data).await
    }

    async fn limited(&mut self, mut data: Bytes) -> Going {
        let Some(left) = self.left else {
            return self.put(Piece::Frame(BodyFrame::data(data))).await;
        };
        let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
        let cut = length >= left;
        if cut {
            data.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        }
        self.left = Some(left.saturating_sub(length));
        if !data.is_empty() {
            self.put(Piece::Frame(BodyFrame::data(data))).await?;
        }
        if cut {
            self.cut().await
        } else {
            Going::Continue(())
        }
    }

    async fn put(&mut self, piece: Piece) -> Going {
        match self.pieces.send(piece).await {
            Ok(()) => Going::Continue(()),
            Err(_) => Going::Break(()),
        }
    }

    /// Breaks the connection.
    async fn cut(&mut self) -> Going {
        self.put(Piece::Cut).await?;
        Going::Break(())
    }

    /// The target's end: what was held back goes out, and the response ends or stays open.
    async fn finish(mut self) {
        if let Some(held) = self.held.take()
            && !held.is_empty()
            && self.limited(held.into()).await.is_break()
        {
            return;
        }
        if self.hold_open {
            self.gone().await;
        }
    }

    /// The harness has gone.
    async fn gone(&self) {
        self.pieces.closed().await;
    }

    /// What a future gives, unless the harness goes before.
    async fn unless_gone<T>(&self, future: impl Future<Output = T>) -> ControlFlow<(), T> {
        tokio::select! {
            value = future => ControlFlow::Continue(value),
            () = self.gone() => ControlFlow::Break(()),
        }
    }

    /// Waits for a time on the clock of the rewriter; for ever without one.
    async fn until(&self, wake: Option<Duration>) {
        match wake.and_then(|wake| self.opened.checked_add(self.scaled(wake))) {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn scaled(&self, time: Duration) -> Duration {
        Duration::try_from_secs_f64(time.as_secs_f64() * self.scale).unwrap_or(Duration::MAX)
    }

    fn elapsed(&self) -> Duration {
        let unscaled = self.opened.elapsed().as_secs_f64() / self.scale;
        Duration::try_from_secs_f64(unscaled).unwrap_or(Duration::MAX)
    }

    /// Asks the rewriter what happens, and does it.
    async fn ask(&mut self, ask: impl FnOnce(&mut Out)) -> Going {
        let mut out = Out::at(self.elapsed());
        ask(&mut out);
        for step in out.steps {
            match step {
                Step::Send(bytes) => self.send(bytes).await?,
                Step::Wait(time) => self.unless_gone(sleep(self.scaled(time))).await?,
                Step::Cut => return self.cut().await,
                Step::End => {
                    self.end_now().await;
                    return Going::Break(());
                }
            }
        }
        Going::Continue(())
    }

    /// Ends before the target does; the caller lets go of the target afterwards.
    async fn end_now(&mut self) {
        if let Some(held) = self.held.take()
            && !held.is_empty()
        {
            let _ = self.limited(held.into()).await;
        }
    }
}
