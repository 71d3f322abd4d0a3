//! A recording client of line protocols, over a socket.
//!
//! A [`LineChannel`] writes lines and reads lines in the background; both go into the transcript as
//! [`Fact::Line`]s. A program that speaks on its standard input and output is reached the same way: [`stdio`]
//! gives each connection a process of its own. [`server`] is the other end, for clients under test.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpSocket, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    DriveError, causes,
    http::{BaseUrl, HttpLimits},
};
use crate::transcript::{
    End, ExchangeId, Fact, Side,
    cut::{self, CutAt},
    record::Recorder,
};

pub mod server;
pub mod stdio;
#[cfg(test)]
mod tests;

/// Bytes of one line that are read; a longer one ends the channel.
const MAX_LINE: usize = 32 << 20;

/// How a channel is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open {
    /// Size of the receive buffer in bytes, for a reader that will not read.
    pub receive_buffer: Option<u32>,
    /// Nothing is read until [`LineChannel::read_on`].
    pub unread: bool,
}

/// An open channel. It is read in the background; dropping it closes the connection.
#[derive(Debug)]
pub struct LineChannel {
    shared: Arc<Shared>,
    /// How many lines the scenario has looked at.
    looked: usize,
    arrived: watch::Receiver<usize>,
    _reader: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Shared {
    url: String,
    exchange: ExchangeId,
    recorder: Recorder,
    /// The JSON of what came; null for a line that has none.
    seen: Mutex<Seen>,
    arrivals: watch::Sender<usize>,
    reading: watch::Sender<bool>,
    /// Where it is to break off.
    cut: Mutex<Option<CutAt>>,
    writer: tokio::sync::Mutex<OwnedWriteHalf>,
    write_within: Duration,
}

#[derive(Debug, Default)]
struct Seen {
    lines: Vec<Value>,
    ended: bool,
}

impl LineChannel {
    /// Connects to `tcp://HOST:PORT`.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotConnected`], and [`DriveError::Harness`] when there is no socket.
    pub async fn open(
        url: &BaseUrl,
        recorder: Recorder,
        limits: HttpLimits,
        how: Open,
    ) -> Result<Self, DriveError> {
        let stream = connect(url, limits.connect, how.receive_buffer).await?;
        let (reader, writer) = stream.into_split();
        let (arrivals, arrived) = watch::channel(0);
        let shared = Arc::new(Shared {
            url: url.to_string(),
            exchange: recorder.next_exchange(),
            recorder,
            seen: Mutex::default(),
            arrivals,
            reading: watch::channel(!how.unread).0,
            cut: Mutex::default(),
            writer: tokio::sync::Mutex::new(writer),
            write_within: limits.idle,
        });
        let task = tokio::spawn(read(Arc::clone(&shared), reader));
        Ok(Self {
            shared,
            looked: 0,
            arrived,
            _reader: AbortOnDropHandle::new(task),
        })
    }

    /// Number of its exchange in the transcript.
    pub fn exchange(&self) -> ExchangeId {
        self.shared.exchange
    }

    /// Sends JSON as a line.
    ///
    /// # Errors
    ///
    /// As [`LineChannel::send_line`].
    pub async fn send(&self, json: &Value) -> Result<(), DriveError> {
        self.send_line(json.to_string().into()).await
    }

    /// Sends a line of any bytes but LF.
    ///
    /// # Errors
    ///
    /// [`DriveError::NoResponse`] when the connection does not take it.
    pub async fn send_line(&self, line: Bytes) -> Result<(), DriveError> {
        let shared = &self.shared;
        let mut writer = shared.writer.lock().await;
        shared.recorder.tell(Fact::Line {
            exchange: shared.exchange,
            from: Side::Client,
            bytes: line.clone(),
        });
        let written = timeout(shared.write_within, async {
            writer.write_all(&line).await?;
            writer.write_all(b"\n").await
        });
        let why = match written.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => causes(&error),
            Err(_) => format!("it takes no line within {:?}", shared.write_within),
        };
        Err(DriveError::NoResponse {
            request: format!("a line to {}", shared.url),
            why,
        })
    }

    /// The next line that satisfies `wanted`, among those that no earlier wait has looked at; `None` when none
    /// comes in time, or the channel ends.
    pub async fn wait(
        &mut self,
        within: Duration,
        mut wanted: impl FnMut(&Value) -> bool,
    ) -> Option<Value> {
        let until = Instant::now() + within;
        loop {
            self.arrived.borrow_and_update();
            let ended = {
                let seen = self.shared.seen();
                // What is not looked at here is what comes after this look, told of or not.
                let unseen = seen.lines.get(self.looked..).unwrap_or_default();
                if let Some(at) = unseen.iter().position(&mut wanted) {
                    self.looked += at + 1;
                    return unseen.get(at).cloned();
                }
                self.looked = seen.lines.len();
                seen.ended
            };
            if ended || timeout_at(until, self.arrived.changed()).await.is_err() {
                return None;
            }
        }
    }

    /// Waits until what has come so far is enough, whatever was looked at; whether it is.
    pub async fn wait_until(
        &mut self,
        within: Duration,
        mut enough: impl FnMut(&[Value]) -> bool,
    ) -> bool {
        let until = Instant::now() + within;
        loop {
            self.arrived.borrow_and_update();
            let (fits, ended) = {
                let seen = self.shared.seen();
                (enough(&seen.lines), seen.ended)
            };
            if fits {
                return true;
            }
            if ended || timeout_at(until, self.arrived.changed()).await.is_err() {
                return false;
            }
        }
    }

    /// Everything that has come so far.
    pub fn lines(&self) -> Vec<Value> {
        self.shared.seen().lines.clone()
    }

    /// Waits until the target ends the channel; whether it does.
    pub async fn wait_end(&mut self, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            self.arrived.borrow_and_update();
            if self.shared.seen().ended {
                return true;
            }
            if timeout_at(until, self.arrived.changed()).await.is_err() {
                return false;
            }
        }
    }

    /// Ends what we send; what comes is still read until the other side ends too.
    pub async fn hang_up(&self) {
        // A connection that is gone has ended all the same.
        let _ = self.shared.writer.lock().await.shutdown().await;
    }

    /// Reads nothing until [`LineChannel::read_on`].
    pub fn stop_reading(&self) {
        self.shared.reading.send_replace(false);
    }

    /// Reads on: a channel that was opened unread, or that [stopped](LineChannel::stop_reading).
    pub fn read_on(&self) {
        self.shared.reading.send_replace(true);
    }

    /// Breaks the connection off after so many more lines of the target, and bytes of the next one. To be called while
    /// no line is under way.
    pub fn cut(&self, at: CutAt) {
        *self.shared.place_of_cut() = Some(at);
    }

    /// Whether the channel has ended.
    pub fn has_ended(&self) -> bool {
        self.shared.seen().ended
    }

    /// Closes the connection.
    pub async fn close(self) {
        let _ = self.shared.writer.lock().await.shutdown().await;
        self.shared.end(End::ClosedByHarness);
    }
}

impl Drop for LineChannel {
    fn drop(&mut self) {
        self.shared.end(End::ClosedByHarness);
    }
}

impl Shared {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place_of_cut(&self) -> std::sync::MutexGuard<'_, Option<CutAt>> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the place is reached where it is to break off; these bytes have come after the last line.
    fn is_cut(&self, coming: &[u8]) -> bool {
        self.place_of_cut().is_some_and(|at| {
            let bytes = usize::try_from(at.bytes).unwrap_or(usize::MAX);
            at.frames == 0 && (coming.len() >= bytes || coming.contains(&b'\n'))
        })
    }

    fn hear(&self, line: Bytes) {
        if let Some(at) = self.place_of_cut().as_mut() {
            at.frames = at.frames.saturating_sub(1);
        }
        let json = serde_json::from_slice(&line).unwrap_or_default();
        self.recorder.tell(Fact::Line {
            exchange: self.exchange,
            from: Side::Server,
            bytes: line,
        });
        self.seen().lines.push(json);
        self.arrivals.send_modify(|count| *count += 1);
    }

    /// Tells the end, once.
    fn end(&self, how: End) {
        if !std::mem::replace(&mut self.seen().ended, true) {
            self.recorder.tell(Fact::End {
                exchange: self.exchange,
                how,
            });
        }
        self.arrivals.send_modify(|_| {});
    }
}

async fn connect(
    url: &BaseUrl,
    within: Duration,
    receive_buffer: Option<u32>,
) -> Result<TcpStream, DriveError> {
    let not_connected = |why: String| DriveError::NotConnected {
        url: url.to_string(),
        why,
    };
    let harness = |error: std::io::Error| DriveError::Harness(format!("no socket: {error}"));
    let connecting = async {
        let found = tokio::net::lookup_host((url.host.as_str(), url.port)).await;
        let mut last = "it has no address".to_owned();
        for address in found.map_err(|error| not_connected(causes(&error)))? {
            let socket = if address.is_ipv4() {
                TcpSocket::new_v4()
            } else {
                TcpSocket::new_v6()
            };
            let socket = socket.map_err(harness)?;
            if let Some(size) = receive_buffer {
                socket.set_recv_buffer_size(size).map_err(harness)?;
            }
            match socket.connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = causes(&error),
            }
        }
        Err(not_connected(last))
    };
    let stream = timeout(within, connecting)
        .await
        .unwrap_or_else(|_| Err(not_connected(format!("not within {within:?}"))))?;
    // Without it small lines wait for each other; a socket that refuses works all the same.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Reads lines until the connection ends.
async fn read(shared: Arc<Shared>, mut reader: OwnedReadHalf) {
    let mut reading = shared.reading.subscribe();
    let mut buffer = BytesMut::with_capacity(64 * 1024);
    let end = loop {
        while let Some(at) = buffer.iter().position(|byte| *byte == b'\n') {
            if shared.is_cut(&buffer) {
                break;
            }
            let mut line = buffer.split_to(at + 1).freeze();
            line.truncate(at);
            if line.last() == Some(&b'\r') {
                line.truncate(at - 1);
            }
            shared.hear(line);
        }
        if shared.is_cut(&buffer) {
            shared.recorder.tell(cut::note(shared.exchange));
            // A connection that is gone has ended all the same.
            let _ = shared.writer.lock().await.shutdown().await;
            break End::ClosedByHarness;
        }
        if buffer.len() > MAX_LINE {
            break End::TooLarge;
        }
        if reading.wait_for(|reads| *reads).await.is_err() {
            return;
        }
        let read = tokio::select! {
            read = reader.read_buf(&mut buffer) => read,
            _ = reading.wait_for(|reads| !*reads) => continue,
        };
        match read {
            Ok(0) if buffer.is_empty() => break End::Complete,
            Ok(0) => {
                shared.hear(buffer.split().freeze());
                break End::Broken("it ended within a line".to_owned());
            }
            Ok(_) => {}
            Err(error) => break End::Broken(causes(&error)),
        }
    };
    shared.end(end);
}
