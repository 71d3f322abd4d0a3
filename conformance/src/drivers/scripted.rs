//! A server that does exactly what a scenario says: every byte, every cut, every pause.
//!
//! It is the harness's end of a conversation with a client under test. Each request that arrives becomes a
//! [`Conversation`], which the scenario takes with [`ScriptedServer::next`] and answers piece by piece; what a
//! scenario does not care about is answered by [`ScriptedServer::answer_by`]. Every connection carries one
//! request, so that what becomes of a connection is what becomes of its answer.
//!
//! Recorded are the requests as they came and the answers as they were sent. An answer that the scenario broke
//! off ends as [`End::ClosedByHarness`], one that the client left as [`End::Broken`].

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;

use super::DriveError;
use crate::transcript::{End, ExchangeId, Fact, Request, ResponseHead, header, record::Recorder};

/// Longest request head and longest request body that are read, in bytes.
const REQUEST_AT_MOST: usize = 8 << 20;

/// Connections at a time; more wait to be accepted.
const CONNECTIONS: usize = 256;

/// A pause between two pieces, so that they arrive as two.
const BETWEEN_PIECES: Duration = Duration::from_micros(700);

/// Answers what the scenario does not take; `None` leaves the request to the scenario.
pub type AnswerBy = dyn Fn(&Request) -> Option<Reply> + Send + Sync;

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Status and headers.
    pub head: ResponseHead,
    /// Body.
    pub body: Bytes,
}

impl Reply {
    /// A JSON answer.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self {
            head: head(status, "application/json"),
            body: Bytes::from(body.to_string()),
        }
    }

    /// An answer without content.
    pub fn empty(status: u16) -> Self {
        Self {
            head: head(status, ""),
            body: Bytes::new(),
        }
    }
}

/// A head with a content type, unless that is empty.
pub fn head(status: u16, content_type: &str) -> ResponseHead {
    let typed =
        (!content_type.is_empty()).then(|| ("content-type".to_owned(), content_type.to_owned()));
    ResponseHead {
        status,
        headers: typed.into_iter().collect(),
    }
}

/// A running server. Dropping it closes every connection.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: AbortOnDropHandle<()>,
}

struct Shared {
    recorder: Recorder,
    answer_by: Mutex<Option<Arc<AnswerBy>>>,
    waiting: Mutex<VecDeque<Conversation>>,
    arrived: Notify,
    /// Requests so far.
    arrivals: AtomicUsize,
    /// Connections so far on which something else than HTTP/1 came.
    strangers: AtomicUsize,
    /// Whether nobody can reach the server.
    offline: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl ScriptedServer {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when there is none.
    pub async fn start(recorder: Recorder) -> Result<Self, DriveError> {
        Self::listen((Ipv4Addr::LOCALHOST, 0).into(), recorder).await
    }

    /// Listens on this address.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when that is not possible.
    pub async fn listen(address: SocketAddr, recorder: Recorder) -> Result<Self, DriveError> {
        let harness = |error: std::io::Error| {
            DriveError::Harness(format!("cannot listen on {address}: {error}"))
        };
        let listener = TcpListener::bind(address).await.map_err(harness)?;
        let address = listener.local_addr().map_err(harness)?;
        let shared = Arc::new(Shared {
            recorder,
            answer_by: Mutex::default(),
            waiting: Mutex::default(),
            arrived: Notify::new(),
            arrivals: AtomicUsize::new(0),
            strangers: AtomicUsize::new(0),
            offline: AtomicBool::new(false),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            _accepting: AbortOnDropHandle::new(accepting),
        })
    }

    /// `http://HOST:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets a function answer requests that arrive from now on.
    pub fn answer_by(&self, answer: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) {
        *lock(&self.shared.answer_by) = Some(Arc::new(answer));
    }

    /// The oldest request that is wanted and that nobody has answered, waiting for it so long.
    pub async fn next(
        &self,
        wanted: impl Fn(&Request) -> bool,
        within: Duration,
    ) -> Option<Conversation> {
        let until = Instant::now() + within;
        loop {
            let arrived = self.shared.arrived.notified();
            let found = {
                let mut waiting = lock(&self.shared.waiting);
                let place = waiting.iter().position(|one| wanted(&one.request));
                place.and_then(|place| waiting.remove(place))
            };
            if found.is_some() {
                return found;
            }
            if timeout_at(until, arrived).await.is_err() {
                return None;
            }
        }
    }

    /// How many requests have arrived.
    pub fn arrivals(&self) -> usize {
        self.shared.arrivals.load(Ordering::Relaxed)
    }

    /// On how many connections something else than HTTP/1 came, such as TLS or HTTP/2.
    pub fn strangers(&self) -> usize {
        self.shared.strangers.load(Ordering::Relaxed)
    }

    /// From now on every connection is reset, as without a network; so are the requests that wait. Nothing of it is
    /// recorded as a request. Conversations that were taken go on until they are cut.
    pub async fn go_offline(&self) {
        self.shared.offline.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut *lock(&self.shared.waiting));
        for conversation in waiting {
            conversation.cut().await;
        }
    }

    /// Connections are taken again.
    pub fn go_online(&self) {
        self.shared.offline.store(false, Ordering::Release);
    }

    /// Closes the requests that nobody took.
    pub fn dismiss(&self) {
        lock(&self.shared.waiting).clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS {
            let _ = connections.join_next().await;
        }
        if let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve(stream, Arc::clone(&shared)));
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let (mut reader, writer) = stream.into_split();
    let Some(Arrived { request, chunks }) = read_request(&mut reader, &shared.strangers).await
    else {
        return;
    };
    if shared.offline.load(Ordering::Acquire) {
        let _ = writer.as_ref().set_zero_linger();
        // Dropped, it would end the stream in good order first.
        return writer.forget();
    }
    shared.arrivals.fetch_add(1, Ordering::Relaxed);
    let exchange = shared.recorder.next_exchange();
    shared.recorder.tell(Fact::Request {
        exchange,
        request: request.clone(),
    });
    let answer = lock(&shared.answer_by).clone();
    let reply = answer.and_then(|answer| answer(&request));
    let mut conversation =
        Conversation::new(exchange, request, reader, writer, shared.recorder.clone());
    conversation.chunks = chunks;
    match reply {
        Some(reply) => conversation.reply(reply).await,
        None => {
            lock(&shared.waiting).push_back(conversation);
            shared.arrived.notify_waiters();
        }
    }
}

/// A request, and how it may be answered.
struct Arrived {
    request: Request,
    /// Whether a streamed answer comes in chunks. HTTP/1.0 knows none: there the stream ends with its connection.
    chunks: bool,
}

/// The request, or nothing when the client left or spoke no HTTP, which is counted.
async fn read_request(reader: &mut OwnedReadHalf, strangers: &AtomicUsize) -> Option<Arrived> {
    let mut bytes = Vec::new();
    let (mut arrived, head_length) = loop {
        let Some(parsed) = parse_head(&bytes) else {
            strangers.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        if let Some(found) = parsed {
            break found;
        }
        if bytes.len() > REQUEST_AT_MOST || reader.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let headers = &arrived.request.headers;
    let length = header(headers, "content-length").and_then(|text| text.parse().ok());
    let length: usize = length.unwrap_or(0);
    let chunked = header(headers, "transfer-encoding").is_some();
    let mut body = bytes.split_off(head_length);
    loop {
        let whole = if chunked {
            dechunk(&body)
        } else {
            body.get(..length).map(<[u8]>::to_vec)
        };
        if let Some(whole) = whole {
            arrived.request.body = Bytes::from(whole);
            return Some(arrived);
        }
        if body.len() > REQUEST_AT_MOST || reader.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
}

/// The head of a request and its length; `Some(None)` when there is more to come, `None` when it is no HTTP.
fn parse_head(bytes: &[u8]) -> Option<Option<(Arrived, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut parsed = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = parsed.parse(bytes).ok()? else {
        return Some(None);
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: origin_form(parsed.path.unwrap_or_default()).to_owned(),
        headers: parsed
            .headers
            .iter()
            .map(|header| (header.name.to_ascii_lowercase(), text(header.value)))
            .collect(),
        body: Bytes::new(),
    };
    let chunks = parsed.version != Some(0);
    Some(Some((Arrived { request, chunks }, length)))
}

/// Path and query of a request target. A client may name the whole URL, as to a proxy, and every server takes that.
///
/// Source: RFC 9112, section 3.2.2.
fn origin_form(target: &str) -> &str {
    let Some((_, after)) = target
        .split_once("://")
        .filter(|_| !target.starts_with('/'))
    else {
        return target;
    };
    after.find('/').map_or("/", |place| &after[place..])
}

/// A chunked body, when all of it is there.
fn dechunk(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let line_end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let digits = std::str::from_utf8(&bytes[..line_end]).ok()?;
        let digits = digits.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(digits, 16).ok()?;
        bytes = &bytes[line_end + 2..];
        whole.extend_from_slice(bytes.get(..length)?);
        bytes = bytes.get(length + 2..)?;
        if length == 0 {
            return Some(whole);
        }
    }
}

/// A request that arrived, and the connection on which it is answered.
#[derive(Debug)]
pub struct Conversation {
    /// The request.
    pub request: Request,
    exchange: ExchangeId,
    recorder: Recorder,
    /// Absent once the connection is broken off.
    writer: Option<OwnedWriteHalf>,
    gone: watch::Receiver<bool>,
    watching: AbortOnDropHandle<()>,
    over: bool,
    /// Whether a streamed answer comes in chunks.
    chunks: bool,
}

impl Conversation {
    fn new(
        exchange: ExchangeId,
        request: Request,
        mut reader: OwnedReadHalf,
        writer: OwnedWriteHalf,
        recorder: Recorder,
    ) -> Self {
        let (tell, gone) = watch::channel(false);
        let watching = tokio::spawn(async move {
            let mut rest = [0; 1024];
            while matches!(reader.read(&mut rest).await, Ok(length) if length > 0) {}
            let _ = tell.send(true);
        });
        Self {
            request,
            exchange,
            recorder,
            writer: Some(writer),
            gone,
            watching: AbortOnDropHandle::new(watching),
            over: false,
            chunks: true,
        }
    }

    /// Its number in the transcript.
    pub fn exchange(&self) -> ExchangeId {
        self.exchange
    }

    /// Whether the client has closed the connection.
    pub fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    /// Waits so long for the client to close the connection; whether it did.
    pub async fn left(&mut self, within: Duration) -> bool {
        let left = tokio::time::timeout(within, self.gone.wait_for(|gone| *gone)).await;
        left.is_ok()
    }

    /// Answers whole.
    pub async fn reply(&mut self, reply: Reply) {
        let length = ("content-length".to_owned(), reply.body.len().to_string());
        self.write_head(&reply.head, Some(&length)).await;
        if !reply.body.is_empty() {
            self.record(Fact::Chunk {
                exchange: self.exchange,
                bytes: reply.body.clone(),
            });
        }
        self.record(Fact::End {
            exchange: self.exchange,
            how: End::Complete,
        });
        self.over = true;
        self.write(&reply.body).await;
        if let Some(writer) = &mut self.writer {
            let _ = writer.shutdown().await;
        }
    }

    /// Opens a streamed answer.
    pub async fn open(&mut self, head: &ResponseHead) {
        let chunked = ("transfer-encoding".to_owned(), "chunked".to_owned());
        let framing = self.chunks.then_some(&chunked);
        self.write_head(head, framing).await;
    }

    /// Opens an event stream.
    pub async fn open_events(&mut self) {
        self.open(&head(200, "text/event-stream")).await;
    }

    /// Sends a piece of a streamed answer, which arrives by itself.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = Bytes::copy_from_slice(bytes.as_ref());
        if bytes.is_empty() {
            return;
        }
        let mut chunk = Vec::new();
        if self.chunks {
            chunk.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
        }
        chunk.extend_from_slice(&bytes);
        if self.chunks {
            chunk.extend_from_slice(b"\r\n");
        }
        self.record(Fact::Chunk {
            exchange: self.exchange,
            bytes,
        });
        self.write(&chunk).await;
        tokio::time::sleep(BETWEEN_PIECES).await;
    }

    /// Ends a streamed answer properly.
    pub async fn finish(mut self) {
        // Recorded first: what the client reports of the end comes after it.
        let how = match self.how_it_ended() {
            End::ClosedByHarness => End::Complete,
            left => left,
        };
        self.record(Fact::End {
            exchange: self.exchange,
            how,
        });
        self.over = true;
        if self.chunks {
            self.write(b"0\r\n\r\n").await;
        }
        if let Some(writer) = &mut self.writer {
            let _ = writer.shutdown().await;
        }
    }

    /// Breaks the connection off, with a reset, in the middle of the answer or before it.
    pub async fn cut(mut self) {
        self.over = true;
        self.recorder.tell(Fact::End {
            exchange: self.exchange,
            how: End::ClosedByHarness,
        });
        // What was sent is delivered before the reset.
        tokio::time::sleep(BETWEEN_PIECES).await;
        self.watching.abort();
        let _ = (&mut self.watching).await;
        if let Some(writer) = self.writer.take() {
            let _ = writer.as_ref().set_zero_linger();
            // Dropped, it would end the stream in good order first.
            writer.forget();
        }
    }

    /// Ends the record of it here, and leaves the connection as it is until this is dropped: what the client would
    /// make of the end of a conversation that is over anyhow is nobody's concern.
    pub fn ends_here(&mut self) {
        if self.over {
            return;
        }
        let how = self.how_it_ended();
        self.record(Fact::End {
            exchange: self.exchange,
            how,
        });
        self.over = true;
    }

    fn how_it_ended(&self) -> End {
        if self.is_gone() {
            End::Broken("the client closed the connection".to_owned())
        } else {
            End::ClosedByHarness
        }
    }

    async fn write_head(&mut self, head: &ResponseHead, framing: Option<&(String, String)>) {
        self.record(Fact::Response {
            exchange: self.exchange,
            head: head.clone(),
        });
        let mut text = format!("HTTP/1.1 {} {}\r\n", head.status, reason(head.status));
        let framing = framing.filter(|_| !matches!(head.status, 204 | 304));
        let close = ("connection".to_owned(), "close".to_owned());
        let headers = head.headers.iter().chain(framing).chain([&close]);
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        self.write(text.as_bytes()).await;
    }

    /// A client that has gone is told by the watching half.
    async fn write(&mut self, bytes: &[u8]) {
        if let Some(writer) = &mut self.writer {
            let _ = writer.write_all(bytes).await;
        }
    }

    fn record(&mut self, fact: Fact) {
        if !self.over {
            self.recorder.tell(fact);
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.ends_here();
    }
}

fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("Status")
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::transcript::Header;

    const SOON: Duration = Duration::from_secs(5);

    async fn ask(server: &ScriptedServer, text: &str) -> TcpStream {
        let mut client = TcpStream::connect(server.address).await.unwrap();
        client.write_all(text.as_bytes()).await.unwrap();
        client
    }

    #[tokio::test]
    async fn a_stream_arrives_as_it_was_cut_and_breaks_where_the_scenario_says() {
        let recorder = Recorder::new(Header::default());
        let server = ScriptedServer::start(recorder.clone()).await.unwrap();
        let mut client = ask(&server, "GET /x HTTP/1.1\r\nhost: h\r\n\r\n").await;
        let mut asked = server
            .next(|request| request.target == "/x", SOON)
            .await
            .unwrap();
        asked.open_events().await;
        asked.send(b"data: a").await;
        asked.cut().await;

        let mut got = Vec::new();
        let ended = client.read_to_end(&mut got).await;
        let got = String::from_utf8(got).unwrap();
        assert!(got.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"));
        assert!(got.ends_with("7\r\ndata: a\r\n"), "{got}");
        assert!(ended.is_err(), "a reset, no end");
        let last = recorder.transcript().entries.pop().unwrap().fact;
        assert!(matches!(
            last,
            Fact::End {
                how: End::ClosedByHarness,
                ..
            }
        ));
    }

    #[tokio::test]
    async fn without_a_network_nothing_arrives_and_what_waits_is_reset() {
        let recorder = Recorder::new(Header::default());
        let server = ScriptedServer::start(recorder.clone()).await.unwrap();
        let mut waiting = ask(&server, "GET /waits HTTP/1.1\r\n\r\n").await;
        while server.arrivals() == 0 {
            tokio::task::yield_now().await;
        }
        server.go_offline().await;
        assert!(waiting.read_u8().await.is_err());
        let mut late = ask(&server, "GET /late HTTP/1.1\r\n\r\n").await;
        assert!(late.read_u8().await.is_err());
        server.go_online();
        let _back = ask(&server, "GET /back HTTP/1.1\r\n\r\n").await;
        let asked = server.next(|_| true, SOON).await.unwrap();
        assert_eq!(asked.request.target, "/back");
        assert_eq!(server.arrivals(), 2, "the late one did not arrive");
    }

    #[tokio::test]
    async fn a_body_in_chunks_is_put_together() {
        let server = ScriptedServer::start(Recorder::new(Header::default()))
            .await
            .unwrap();
        server.answer_by(|request| (request.method == "GET").then(|| Reply::empty(204)));
        let _client = ask(
            &server,
            "POST /y HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        )
        .await;
        let mut asked = server.next(|_| true, SOON).await.unwrap();
        assert_eq!(&asked.request.body[..], b"abc");
        asked.reply(Reply::empty(200)).await;

        let mut other = ask(&server, "GET /z HTTP/1.1\r\n\r\n").await;
        let mut got = String::new();
        other.read_to_string(&mut got).await.unwrap();
        assert_eq!(got, "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    }

    #[tokio::test]
    async fn a_client_of_http_1_0_gets_a_stream_without_chunks() {
        let recorder = Recorder::new(Header::default());
        let server = ScriptedServer::start(recorder).await.unwrap();
        let mut client = ask(&server, "GET /x HTTP/1.0\r\n\r\n").await;
        let mut asked = server.next(|_| true, SOON).await.unwrap();
        asked.open_events().await;
        asked.send(b"data: a\n\n").await;
        asked.finish().await;
        let mut got = String::new();
        client.read_to_string(&mut got).await.unwrap();
        assert!(!got.contains("transfer-encoding"), "{got}");
        assert!(
            got.ends_with("connection: close\r\n\r\ndata: a\n\n"),
            "{got}"
        );
    }

    #[tokio::test]
    async fn a_request_may_name_the_whole_url() {
        let recorder = Recorder::new(Header::default());
        let server = ScriptedServer::start(recorder).await.unwrap();
        for (target, path) in [
            ("http://h:1/x?a=b://c", "/x?a=b://c"),
            ("http://h:1", "/"),
            ("/x?to=http://h/y", "/x?to=http://h/y"),
        ] {
            let head = format!("GET {target} HTTP/1.1\r\nhost: h\r\n\r\n");
            let _client = ask(&server, &head).await;
            let asked = server.next(|_| true, SOON).await.unwrap();
            assert_eq!(asked.request.target, path);
        }
    }

    #[tokio::test]
    async fn who_speaks_no_http_is_counted_and_no_request() {
        let recorder = Recorder::new(Header::default());
        let server = ScriptedServer::start(recorder).await.unwrap();
        let mut tls = ask(&server, "\u{16}\u{3}\u{1}\r\n\r\n").await;
        let mut rest = Vec::new();
        let _ = tls.read_to_end(&mut rest).await;
        assert_eq!((server.strangers(), server.arrivals()), (1, 0));
    }
}
