//! An open socket: what it sends, and what came, in the order in which it came.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncWriteExt, ReadHalf, WriteHalf},
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_util::task::AbortOnDropHandle;

use super::frames::{Assembler, FrameError, FrameReader, Whole, frame_bytes, message_bytes};
use crate::{
    drivers::{DriveError, http::Switched},
    transcript::{
        End, ExchangeId, Fact, Side, WsFrame,
        cut::{self, CutAt},
        record::Recorder,
    },
};

type Io = TokioIo<Upgraded>;

/// A message or control frame of the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The frame.
    pub frame: WsFrame,
    /// The JSON of a text.
    pub json: Option<Value>,
}

impl Seen {
    /// The member `type`, when it has JSON with one.
    pub fn kind(&self) -> Option<&str> {
        self.json.as_ref()?.get("type")?.as_str()
    }

    /// The value at a JSON pointer.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        self.json.as_ref()?.pointer(pointer)
    }

    /// The text at a JSON pointer.
    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.pointer(pointer)?.as_str()
    }
}

/// How a socket is read.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Pings are answered.
    pub answers_pings: bool,
    /// It is read from the beginning; otherwise from [`WebSocket::read_on`] on.
    pub reads: bool,
    /// Where it breaks off.
    pub cut: Option<CutAt>,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            answers_pings: true,
            reads: true,
            cut: None,
        }
    }
}

/// An open socket. It is read in the background; dropping it cuts the connection.
#[derive(Debug)]
pub struct WebSocket {
    shared: Arc<Shared>,
    /// How many messages the scenario has looked at.
    looked: usize,
    arrived: watch::Receiver<usize>,
    _reader: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Shared {
    /// Which end this is.
    us: Side,
    request: String,
    exchange: ExchangeId,
    recorder: Recorder,
    seen: Mutex<Vec<Seen>>,
    arrivals: watch::Sender<usize>,
    reading: watch::Sender<bool>,
    ended: AtomicBool,
    closing: AtomicBool,
    writer: tokio::sync::Mutex<WriteHalf<Io>>,
    write_within: Duration,
}

impl WebSocket {
    pub(super) fn start(
        us: Side,
        switched: Switched,
        habits: Habits,
        write_within: Duration,
    ) -> Self {
        let (reader, writer) = tokio::io::split(switched.io);
        let (arrivals, arrived) = watch::channel(0);
        let shared = Arc::new(Shared {
            us,
            request: switched.request,
            exchange: switched.exchange,
            recorder: switched.recorder,
            seen: Mutex::default(),
            arrivals,
            reading: watch::channel(habits.reads).0,
            ended: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            writer: tokio::sync::Mutex::new(writer),
            write_within,
        });
        let task = tokio::spawn(read(Arc::clone(&shared), reader, habits));
        Self {
            shared,
            looked: 0,
            arrived,
            _reader: AbortOnDropHandle::new(task),
        }
    }

    /// Number of its exchange in the transcript.
    pub fn exchange(&self) -> ExchangeId {
        self.shared.exchange
    }

    /// Sends JSON as a text message.
    ///
    /// # Errors
    ///
    /// As [`WebSocket::send_message`].
    pub async fn send(&self, json: &Value) -> Result<(), DriveError> {
        self.send_message(WsFrame::Text(json.to_string())).await
    }

    /// Sends a text message.
    ///
    /// # Errors
    ///
    /// As [`WebSocket::send_message`].
    pub async fn send_text(&self, text: &str) -> Result<(), DriveError> {
        self.send_message(WsFrame::Text(text.to_owned())).await
    }

    /// Sends a message or a control frame.
    ///
    /// # Errors
    ///
    /// [`DriveError::NoResponse`] when the connection is gone, or the target does not read.
    pub async fn send_message(&self, message: WsFrame) -> Result<(), DriveError> {
        self.shared.send(message).await
    }

    /// Sends a text message in so many frames.
    ///
    /// # Errors
    ///
    /// As [`WebSocket::send_message`].
    pub async fn send_in_fragments(&self, text: &str, fragments: usize) -> Result<(), DriveError> {
        let size = text.len().div_ceil(fragments.max(1)).max(1);
        let pieces: Vec<_> = text.as_bytes().chunks(size).collect();
        let mut bytes = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            let opcode = if index == 0 {
                Data::Text
            } else {
                Data::Continue
            };
            let last = index + 1 == pieces.len();
            let piece = Bytes::copy_from_slice(piece);
            bytes.extend(frame_bytes(
                last,
                OpCode::Data(opcode),
                piece,
                self.shared.masked(),
            ));
        }
        self.shared
            .tell(self.shared.us, WsFrame::Text(text.to_owned()));
        self.shared
            .note(&format!("sent in {} frames", pieces.len()));
        self.shared.write(&bytes).await
    }

    /// Sends bytes as a text message, whether or not they are a text. The transcript has them as a binary message.
    ///
    /// # Errors
    ///
    /// As [`WebSocket::send_message`].
    pub async fn send_as_text(&self, bytes: Bytes) -> Result<(), DriveError> {
        self.shared
            .tell(self.shared.us, WsFrame::Binary(bytes.clone()));
        self.shared.note("sent as text");
        let frame = frame_bytes(true, OpCode::Data(Data::Text), bytes, self.shared.masked());
        self.shared.write(&frame).await
    }

    /// Sends bytes as they are, in these pieces, whatever they are. The transcript has `shown` in their place.
    ///
    /// # Errors
    ///
    /// As [`WebSocket::send_message`].
    pub async fn send_raw(&self, shown: WsFrame, pieces: &[&[u8]]) -> Result<(), DriveError> {
        self.shared.tell(self.shared.us, shown);
        for piece in pieces {
            self.shared.write(piece).await?;
        }
        Ok(())
    }

    /// Waits for the next message that `wanted` takes, among those that were not looked at yet. What comes before
    /// it counts as looked at. `None` when it does not come in time, or the connection ends before; then nothing
    /// counts as looked at.
    pub async fn wait_for(
        &mut self,
        within: Duration,
        mut wanted: impl FnMut(&Seen) -> bool,
    ) -> Option<Seen> {
        let until = Instant::now() + within;
        let mut next = self.looked;
        loop {
            // Told before the list is read, so that an arrival in between is not missed.
            let ended = self.shared.ended.load(Ordering::Acquire);
            self.arrived.mark_unchanged();
            while let Some(seen) = self.shared.nth(next) {
                next += 1;
                if wanted(&seen) {
                    self.looked = next;
                    return Some(seen);
                }
            }
            if ended {
                return None;
            }
            match timeout_at(until, self.arrived.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return None,
            }
        }
    }

    /// Waits for the next message of a kind; see [`WebSocket::wait_for`].
    pub async fn wait_for_kind(&mut self, kind: &str, within: Duration) -> Option<Seen> {
        self.wait_for(within, |seen| seen.kind() == Some(kind))
            .await
    }

    /// Waits for the next message of a kind that the scenario stands on.
    ///
    /// # Errors
    ///
    /// [`DriveError::Unexpected`] when it does not come.
    pub async fn need(&mut self, kind: &str, within: Duration) -> Result<Seen, DriveError> {
        self.need_that(kind, within, |seen| seen.kind() == Some(kind))
            .await
    }

    /// Waits for a message that the scenario stands on; `what` says in words which.
    ///
    /// # Errors
    ///
    /// [`DriveError::Unexpected`] when it does not come.
    pub async fn need_that(
        &mut self,
        what: &str,
        within: Duration,
        wanted: impl FnMut(&Seen) -> bool,
    ) -> Result<Seen, DriveError> {
        let before = self.looked;
        match self.wait_for(within, wanted).await {
            Some(seen) => Ok(seen),
            None => Err(DriveError::Unexpected {
                request: self.shared.request.clone(),
                expected: format!("{what} within {within:?}"),
                got: self.shared.kinds_from(before),
            }),
        }
    }

    /// Waits until what came so far is enough, whatever was looked at; whether it is.
    pub async fn wait_until(
        &mut self,
        within: Duration,
        mut enough: impl FnMut(&[Seen]) -> bool,
    ) -> bool {
        let until = Instant::now() + within;
        loop {
            // Told before the list is read, so that an arrival in between is not missed.
            let ended = self.shared.ended.load(Ordering::Acquire);
            self.arrived.mark_unchanged();
            if enough(&self.shared.lock()) {
                return true;
            }
            if ended || timeout_at(until, self.arrived.changed()).await.is_err() {
                return false;
            }
        }
    }

    /// Everything that came so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.lock().clone()
    }

    /// What came from this place on, counted from 0.
    pub fn since(&self, place: usize) -> Vec<Seen> {
        self.shared.lock().iter().skip(place).cloned().collect()
    }

    /// Whether the connection has ended.
    pub fn has_ended(&self) -> bool {
        self.shared.ended.load(Ordering::Acquire)
    }

    /// Counts everything that came so far as looked at.
    pub fn skip(&mut self) {
        self.looked = self.shared.lock().len();
    }

    /// Reads on, after [`Open::slow`](super::Open::slow) or [`WebSocket::stop_reading`].
    pub fn read_on(&self) {
        self.shared.reading.send_replace(true);
    }

    /// Reads nothing until [`WebSocket::read_on`].
    pub fn stop_reading(&self) {
        self.shared.reading.send_replace(false);
    }

    /// Waits until the connection has ended; false when it has not in time.
    pub async fn wait_end(&mut self, within: Duration) -> bool {
        let until = Instant::now() + within;
        while !self.shared.ended.load(Ordering::Acquire) {
            match timeout_at(until, self.arrived.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => break,
            }
        }
        self.shared.ended.load(Ordering::Acquire)
    }

    /// Closes in good order: sends a close frame with this code and waits for the target's end.
    pub async fn close(mut self, code: u16, within: Duration) {
        let frame = WsFrame::Close(Some((code, String::new())));
        // A target that has gone meanwhile has ended the socket all the same.
        if self.shared.send(frame).await.is_ok() {
            self.wait_end(within).await;
        }
    }

    /// Ends what we send, without a close frame; what comes is still read until the other side ends too.
    pub async fn hang_up(&self) {
        let mut writer = self.shared.writer.lock().await;
        // A connection that is gone has ended all the same.
        let _ = writer.shutdown().await;
    }

    /// Cuts the connection without a close frame.
    pub fn cut(self) {}
}

impl Drop for WebSocket {
    fn drop(&mut self) {
        self.shared.end(End::ClosedByHarness);
    }
}

impl Shared {
    fn masked(&self) -> bool {
        self.us == Side::Client
    }

    fn them(&self) -> Side {
        match self.us {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nth(&self, index: usize) -> Option<Seen> {
        self.lock().get(index).cloned()
    }

    fn kinds_from(&self, index: usize) -> String {
        let seen = self.lock();
        let kinds: Vec<_> = seen
            .iter()
            .skip(index)
            .map(|seen| seen.kind().unwrap_or("(no type)"))
            .collect();
        if kinds.is_empty() {
            "nothing".to_owned()
        } else {
            kinds.join(", ")
        }
    }

    fn tell(&self, from: Side, frame: WsFrame) -> bool {
        self.recorder.tell(Fact::WebSocket {
            exchange: self.exchange,
            from,
            frame,
        })
    }

    fn note(&self, text: &str) {
        let text = format!("#{}: {text}", self.exchange.0);
        self.recorder.tell(Fact::Note(text));
    }

    /// Records the end, once.
    fn end(&self, how: End) {
        if !self.ended.swap(true, Ordering::AcqRel) {
            self.recorder.tell(Fact::End {
                exchange: self.exchange,
                how,
            });
        }
        self.arrivals.send_modify(|count| *count += 1);
    }

    async fn send(&self, message: WsFrame) -> Result<(), DriveError> {
        if self.ended.load(Ordering::Acquire) {
            return Err(self.gone("the connection has ended"));
        }
        let bytes = message_bytes(&message, self.masked());
        if matches!(message, WsFrame::Close(_)) {
            self.closing.store(true, Ordering::Release);
        }
        self.tell(self.us, message);
        self.write(&bytes).await
    }

    async fn write(&self, bytes: &[u8]) -> Result<(), DriveError> {
        let writing = async {
            let mut writer = self.writer.lock().await;
            writer.write_all(bytes).await?;
            writer.flush().await
        };
        match timeout(self.write_within, writing).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.gone(&error.to_string())),
            Err(_) => Err(self.gone("the target does not read")),
        }
    }

    fn gone(&self, why: &str) -> DriveError {
        DriveError::NoResponse {
            request: self.request.clone(),
            why: why.to_owned(),
        }
    }

    /// Keeps what came, and gives it to whoever waits.
    fn take(&self, whole: Whole) -> bool {
        let json = match &whole.message {
            WsFrame::Text(text) => serde_json::from_str(text).ok(),
            _ => None,
        };
        let fits = self.tell(self.them(), whole.message.clone());
        if whole.fragments > 1 {
            self.note(&format!("came in {} frames", whole.fragments));
        }
        if whole.not_utf8 {
            self.note("came as text and is no UTF-8");
        }
        self.lock().push(Seen {
            frame: whole.message,
            json,
        });
        self.arrivals.send_modify(|count| *count += 1);
        fits
    }
}

/// Reads until the connection ends.
async fn read(shared: Arc<Shared>, half: ReadHalf<Io>, habits: Habits) {
    let (mut reader, mut assembler) = (FrameReader::new(half), Assembler::default());
    let mut reading = shared.reading.subscribe();
    let (mut closed, mut cut) = (false, habits.cut);
    let how = loop {
        // The sender is part of `shared`, so it lives as long as this task.
        let _ = reading.wait_for(|on| *on).await;
        if let Some(CutAt { frames: 0, bytes }) = cut {
            // A connection that broke before that has ended all the same.
            let _ = reader.begin(bytes as usize).await;
            shared.recorder.tell(cut::note(shared.exchange));
            break End::ClosedByHarness;
        }
        let next = tokio::select! {
            next = reader.next() => next,
            _ = reading.wait_for(|on| !*on) => continue,
        };
        let frame = match next {
            Ok(Some(frame)) => frame,
            Ok(None) if closed => break End::Complete,
            Ok(None) => break End::Broken("no close frame before the end".to_owned()),
            Err(_) if closed => break End::Complete,
            Err(FrameError::TooLong) => break End::TooLarge,
            Err(error) => break End::Broken(error.to_string()),
        };
        let whole = match assembler.push(frame) {
            Ok(None) => continue,
            Ok(Some(whole)) => whole,
            Err(FrameError::TooLong) => break End::TooLarge,
            Err(error) => break End::Broken(error.to_string()),
        };
        let message = whole.message.clone();
        if !shared.take(whole) {
            break End::TooLarge;
        }
        if let Some(at) = cut.as_mut().filter(|_| matches!(message, WsFrame::Text(_))) {
            at.frames -= 1;
        }
        closed |= answer(&shared, message, habits.answers_pings).await;
    };
    let is_ours = how == End::ClosedByHarness;
    shared.end(how);
    if is_ours {
        // The target learns of it when it writes, or by this.
        let _ = shared.writer.lock().await.shutdown().await;
    }
}

/// Answers a ping, and a close that the scenario did not begin. Returns whether the frame was a close.
async fn answer(shared: &Shared, message: WsFrame, answers_pings: bool) -> bool {
    match message {
        WsFrame::Ping(payload) if answers_pings => {
            // What cannot be written is told when the connection ends.
            let _ = shared.send(WsFrame::Pong(payload)).await;
            false
        }
        WsFrame::Close(code) => {
            if !shared.closing.swap(true, Ordering::AcqRel) {
                let _ = shared.send(WsFrame::Close(code)).await;
            }
            true
        }
        _ => false,
    }
}
