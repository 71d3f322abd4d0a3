//! A scripted server of lines, for clients under test: it records what a client sends, answers the usual requests,
//! and says what a scenario tells it to.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpListener,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;
use turnwire_spec::session_update::RequestId;

use crate::{
    drivers::{DriveError, causes},
    transcript::{End, ExchangeId, Fact, Side, record::Recorder},
};

/// Bytes of one line that are taken from a client.
const MAX_LINE: u64 = 8 << 20;

/// Longest time that a client may take to take a line.
const TAKES_WITHIN: Duration = Duration::from_secs(5);

/// Requests whose ids are kept digit by digit.
const EXACT_IDS: usize = 256;

/// What the server answers to a request by itself; `None` for nothing.
pub type Answers = fn(&Value) -> Option<Value>;

/// A scripted server. Dropping it ends its connections.
#[derive(Debug)]
pub struct LineServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Shared {
    recorder: Recorder,
    answers: Answers,
    /// The newest connection.
    writer: tokio::sync::Mutex<Option<(ExchangeId, OwnedWriteHalf)>>,
    /// What clients sent, on all connections.
    heard: Mutex<Vec<Value>>,
    /// The ids of requests, newest last, whose number may be another one as a value; the newest are kept.
    exact: Mutex<VecDeque<RequestId>>,
    arrivals: watch::Sender<usize>,
    /// The next connection is closed as soon as it is there.
    refuses: AtomicBool,
}

impl LineServer {
    /// Listens on a free port of the loopback device.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when there is none.
    pub async fn start(recorder: Recorder, answers: Answers) -> Result<Self, DriveError> {
        let harness = |error: std::io::Error| DriveError::Harness(format!("no port: {error}"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(harness)?;
        let address = listener.local_addr().map_err(harness)?;
        let shared = Arc::new(Shared {
            recorder,
            answers,
            writer: tokio::sync::Mutex::new(None),
            heard: Mutex::default(),
            exact: Mutex::default(),
            arrivals: watch::channel(0).0,
            refuses: AtomicBool::new(false),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            _accepting: AbortOnDropHandle::new(accepting),
        })
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("tcp://{}", self.address)
    }

    /// How many requests came so far, for [`LineServer::wait_after`].
    pub fn heard(&self) -> usize {
        self.shared.heard().len()
    }

    /// Waits for a request that satisfies `wanted`, behind the first `after`; whether it comes.
    pub async fn wait_after(
        &self,
        after: usize,
        within: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> bool {
        let mut arrived = self.shared.arrivals.subscribe();
        let until = Instant::now() + within;
        loop {
            arrived.borrow_and_update();
            if self.shared.heard().iter().skip(after).any(&wanted) {
                return true;
            }
            if timeout_at(until, arrived.changed()).await.is_err() {
                return false;
            }
        }
    }

    /// The request at this place among all that come, counted from 0, once it is there.
    pub async fn request(&self, place: usize) -> Value {
        let mut arrived = self.shared.arrivals.subscribe();
        loop {
            arrived.borrow_and_update();
            if let Some(request) = self.shared.heard().get(place) {
                return request.clone();
            }
            if arrived.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Whether there is a connection.
    pub async fn is_open(&self) -> bool {
        self.shared.writer.lock().await.is_some()
    }

    /// Closes the next connection as soon as it is there.
    pub fn refuse_next(&self) {
        self.shared.refuses.store(true, Ordering::Relaxed);
    }

    /// Says a line on the newest connection. Nothing happens without one.
    pub async fn say(&self, line: &Value) {
        self.shared.say(line).await;
    }

    /// Sends bytes as they are on the newest connection, in these pieces. The transcript has them as a line.
    pub async fn say_raw(&self, pieces: &[&[u8]]) {
        let mut line = pieces.concat();
        line.pop_if(|last| *last == b'\n');
        self.shared.write(line.into(), pieces).await;
    }

    /// Ends the newest connection.
    pub async fn hang_up(&self) {
        if let Some((exchange, mut writer)) = self.shared.writer.lock().await.take() {
            let _ = writer.shutdown().await;
            self.shared.recorder.tell(Fact::End {
                exchange,
                how: End::ClosedByHarness,
            });
        }
    }
}

impl Shared {
    fn heard(&self) -> std::sync::MutexGuard<'_, Vec<Value>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, exchange: ExchangeId, from: Side, bytes: Bytes) {
        self.recorder.tell(Fact::Line {
            exchange,
            from,
            bytes,
        });
    }

    async fn say(&self, line: &Value) {
        let text = self.text_of(line);
        let ended = format!("{text}\n");
        self.write(text.into(), &[ended.as_bytes()]).await;
    }

    /// The text of a line; an answer has the id of its request as the client wrote it.
    fn text_of(&self, line: &Value) -> String {
        if let Value::Object(members) = line
            && let Some(id) = members.get("request_id").filter(|id| id.is_f64())
        {
            let exact = self.exact.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(asked) = exact.iter().rfind(|asked| asked.rounds_to(id)) {
                return asked.in_message(members);
            }
        }
        line.to_string()
    }

    /// Keeps the id of a request when it is a number that may lose digits.
    fn keep_id(&self, line: &[u8], json: &Value) {
        if json["request_id"].is_f64()
            && let Some(id) = RequestId::of(line)
        {
            let mut exact = self.exact.lock().unwrap_or_else(PoisonError::into_inner);
            if exact.len() == EXACT_IDS {
                exact.pop_front();
            }
            exact.push_back(id);
        }
    }

    /// Writes pieces one by one; `line` is what the transcript has.
    async fn write(&self, line: Bytes, pieces: &[&[u8]]) {
        let mut writer = self.writer.lock().await;
        if let Some((exchange, writer)) = writer.as_mut() {
            self.line(*exchange, Side::Server, line);
            for piece in pieces {
                // A client that does not read is told no more; its silence stands in the transcript.
                let _ = timeout(TAKES_WITHIN, writer.write_all(piece)).await;
            }
        }
    }

    async fn hear(&self, exchange: ExchangeId, bytes: Bytes) {
        let json: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        self.keep_id(&bytes, &json);
        self.line(exchange, Side::Client, bytes);
        let answer = (self.answers)(&json);
        self.heard().push(json);
        if let Some(answer) = answer {
            self.say(&answer).await;
        }
        self.arrivals.send_modify(|count| *count += 1);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        if shared.refuses.swap(false, Ordering::Relaxed) {
            continue;
        }
        // Without it, pieces would be sent together all the same.
        let _ = socket.set_nodelay(true);
        let exchange = shared.recorder.next_exchange();
        let (reader, writer) = socket.into_split();
        *shared.writer.lock().await = Some((exchange, writer));
        connections.spawn(read(reader, exchange, Arc::clone(&shared)));
    }
}

async fn read(reader: OwnedReadHalf, exchange: ExchangeId, shared: Arc<Shared>) {
    let mut reader = BufReader::new(reader);
    let how = loop {
        let mut line = Vec::new();
        let read = (&mut reader)
            .take(MAX_LINE + 1)
            .read_until(b'\n', &mut line)
            .await;
        match read {
            Ok(0) => break End::Complete,
            Ok(_) if line.last() != Some(&b'\n') => {
                break End::Broken("it ended within a line, or the line is too long".to_owned());
            }
            Ok(_) => {
                line.pop();
                shared.hear(exchange, line.into()).await;
            }
            Err(error) => break End::Broken(causes(&error)),
        }
    };
    let mut writer = shared.writer.lock().await;
    // A connection that the scenario has hung up has its end in the transcript.
    if writer.as_ref().is_some_and(|(open, _)| *open == exchange) {
        *writer = None;
        shared.recorder.tell(Fact::End { exchange, how });
    }
}
