//! A client that sees every byte, and a model without a network.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use turnwire_reference::gateway::{
    FinishReason, Gateway, GatewayError, ModelEvent, ModelReply, ModelRequest, ModelStream, Target,
    ToolRequest,
};
use turnwire_reference::{Config, Server};

/// Longest time that anything here is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A model that answers each call with the next of these pieces, and with "Rain falls." after them.
#[derive(Default)]
pub(crate) struct Model {
    replies: Mutex<VecDeque<Vec<Piece>>>,
}

#[derive(Clone)]
pub(crate) enum Piece {
    Text(&'static str),
    Tool(&'static str, Value),
    Pause(Duration),
}

impl Model {
    pub(crate) fn will_say(&self, pieces: impl IntoIterator<Item = Piece>) {
        self.replies
            .lock()
            .unwrap()
            .push_back(pieces.into_iter().collect());
    }
}

#[async_trait]
impl Gateway for Model {
    fn target(&self, _: &str) -> Target {
        Target {
            provider: "test".into(),
            model: Some("scripted".into()),
        }
    }

    async fn call(&self, _: ModelRequest) -> Result<Box<dyn ModelStream>, GatewayError> {
        let reply = self.replies.lock().unwrap().pop_front();
        let pieces = reply.unwrap_or_else(|| vec![Piece::Text("Rain "), Piece::Text("falls.")]);
        Ok(Box::new(Reading {
            pieces: pieces.into(),
            reply: ModelReply::default(),
            done: false,
        }))
    }
}

struct Reading {
    pieces: VecDeque<Piece>,
    reply: ModelReply,
    done: bool,
}

#[async_trait]
impl ModelStream for Reading {
    async fn next(&mut self) -> Option<Result<ModelEvent, GatewayError>> {
        loop {
            match self.pieces.pop_front() {
                Some(Piece::Text(text)) => {
                    self.reply.text.push_str(text);
                    return Some(Ok(ModelEvent::Text(text.to_owned())));
                }
                Some(Piece::Tool(name, arguments)) => {
                    self.reply.finish = FinishReason::ToolCalls;
                    self.reply.tool_calls.push(ToolRequest {
                        id: format!("call-{}", self.reply.tool_calls.len()),
                        name: name.to_owned(),
                        arguments: arguments.to_string(),
                    });
                }
                Some(Piece::Pause(time)) => tokio::time::sleep(time).await,
                None if self.done => return None,
                None => {
                    self.done = true;
                    return Some(Ok(ModelEvent::Done(Box::new(self.reply.clone()))));
                }
            }
        }
    }
}

/// A running server with its model.
pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) model: Arc<Model>,
    pub(crate) client: Client,
}

pub(crate) async fn rig(config: Config) -> Rig {
    let model = Arc::new(Model::default());
    let server = Server::start_with(config, model.clone()).await.unwrap();
    let client = Client {
        addr: server.addr(),
    };
    Rig {
        server,
        model,
        client,
    }
}

/// A server on default terms, a hundred times as fast.
pub(crate) async fn fast() -> Rig {
    rig(Config {
        time_scale: 0.01,
        ..Config::default()
    })
    .await
}

/// Talks to one server; each request has a connection of its own.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    pub(crate) addr: SocketAddr,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(other, _)| other.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

impl Client {
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask("POST", path, &[], Some(&body.to_string())).await
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let mut stream = self.open(method, path, headers, body).await;
        let mut body = String::new();
        while let Some(chunk) = stream.chunk().await {
            body.push_str(&chunk);
        }
        Answer {
            status: stream.status,
            head: stream.head,
            body,
        }
    }

    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Stream {
        let socket = TcpStream::connect(self.addr).await.unwrap();
        self.open_over(socket, method, path, headers, body).await
    }

    /// As `open`, with a receive buffer so small that the server notices when nobody reads.
    pub(crate) async fn open_narrow(&self, path: &str) -> Stream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let socket = socket.connect(self.addr).await.unwrap();
        self.open_over(socket, "GET", path, &[], None).await
    }

    async fn open_over(
        &self,
        mut socket: TcpStream,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Stream {
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&format!("Host: {}\r\n", self.addr));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            let length = body.len();
            request.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {length}\r\n"
            ));
        }
        request.push_str("\r\n");
        request.push_str(body.unwrap_or_default());
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut stream = Stream {
            socket,
            status: 0,
            head: String::new(),
            unread: Vec::new(),
            text: String::new(),
            is_over: false,
        };
        stream.read_head().await;
        stream
    }

    pub(crate) async fn session(&self) -> Value {
        self.session_with(json!({ "plugins": ["story", "turnwire-fixtures"] }))
            .await
    }

    pub(crate) async fn session_with(&self, body: Value) -> Value {
        let answer = self.post("/api/sessions", body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    /// The id of a new session.
    pub(crate) async fn session_id(&self) -> String {
        self.session().await["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn subscribe(&self, query: &str) -> Stream {
        let path = format!("/api/events/stream?{query}");
        let stream = self.open("GET", &path, &[], None).await;
        assert_eq!(stream.status, 200, "{}", stream.head);
        stream
    }

    pub(crate) async fn say(&self, session: &str, text: &str) -> Stream {
        let body = action(
            session,
            "rq-1",
            "submit_actions",
            json!({
                "actions": [{ "type": "say", "text": text }],
            }),
        );
        self.open("POST", "/api/actions", &[], Some(&body.to_string()))
            .await
    }

    /// Plays a turn to its end and returns its frames.
    pub(crate) async fn turn(&self, session: &str, text: &str) -> Vec<Value> {
        self.say(session, text)
            .await
            .rest()
            .await
            .iter()
            .map(Frame::json)
            .collect()
    }

    pub(crate) async fn rpc(&self, session: &str, action: &str, payload: Value) -> Answer {
        let path = format!("/api/sessions/{session}/plugin-rpc");
        let body = json!({
            "kind": "action", "pluginId": "turnwire-fixtures", "action": action, "payload": payload,
        });
        self.post(&path, body).await
    }

    pub(crate) async fn put_datum(&self, session: &str, key: &str, value: Value) {
        let path = format!("/api/sessions/{session}/plugin-data/codex/notes/{key}");
        let body = json!({ "value": value }).to_string();
        let answer = self.ask("PUT", &path, &[], Some(&body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

pub(crate) fn action(session: &str, request: &str, kind: &str, payload: Value) -> Value {
    json!({ "requestId": request, "sessionId": session, "type": kind, "payload": payload })
}

/// An answer that is still coming.
pub(crate) struct Stream {
    socket: TcpStream,
    pub(crate) status: u16,
    pub(crate) head: String,
    unread: Vec<u8>,
    /// What came and was no complete frame yet.
    text: String,
    /// Whether a body of known length was handed out.
    is_over: bool,
}

/// One frame, as it was on the wire.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Frame(pub(crate) String);

impl Frame {
    pub(crate) fn line(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.0.lines().find_map(|line| line.strip_prefix(&prefix))
    }

    pub(crate) fn event(&self) -> &str {
        self.line("event").unwrap_or_default()
    }

    pub(crate) fn id(&self) -> &str {
        self.line("id").unwrap_or_else(|| panic!("no id: {self:?}"))
    }

    pub(crate) fn seq(&self) -> u64 {
        self.id().rsplit_once(':').unwrap().1.parse().unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.line("data").unwrap()).unwrap()
    }
}

impl Stream {
    async fn read_head(&mut self) {
        let end = loop {
            if let Some(end) = find(&self.unread, b"\r\n\r\n") {
                break end;
            }
            assert!(
                self.fill().await,
                "no head: {:?}",
                String::from_utf8_lossy(&self.unread)
            );
        };
        self.head = String::from_utf8(self.unread.drain(..end + 4).collect()).unwrap();
        self.status = self.head.split(' ').nth(1).unwrap().parse().unwrap();
    }

    /// Reads more bytes; false at the end.
    async fn fill(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        let read = timeout(PATIENCE, self.socket.read(&mut buffer))
            .await
            .expect("nothing came");
        match read {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.unread.extend_from_slice(&buffer[..count]);
                true
            }
        }
    }

    /// The next chunk of the body as it was sent, or all of a body of known length. `None` at its
    /// end, in good order or not.
    pub(crate) async fn chunk(&mut self) -> Option<String> {
        if let Some(length) = header(&self.head, "content-length") {
            let length: usize = length.parse().unwrap();
            while !self.is_over && self.unread.len() < length {
                if !self.fill().await {
                    return None;
                }
            }
            let body: Vec<u8> = std::mem::take(&mut self.unread);
            let is_new = !std::mem::replace(&mut self.is_over, true);
            return (is_new && length > 0).then(|| String::from_utf8(body).unwrap());
        }
        if self.status == 204 {
            return None;
        }
        loop {
            if let Some(end) = find(&self.unread, b"\r\n") {
                let size = std::str::from_utf8(&self.unread[..end]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                let whole = end + 2 + size + 2;
                if self.unread.len() >= whole {
                    let chunk: Vec<u8> = self.unread.drain(..whole).collect();
                    let body = &chunk[end + 2..whole - 2];
                    return (size > 0).then(|| String::from_utf8(body.to_vec()).unwrap());
                }
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// The next frame; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let frame = self.text.drain(..end + 2).collect();
                return Some(Frame(frame));
            }
            let chunk = self.chunk().await?;
            self.text.push_str(&chunk);
        }
    }

    /// The next frame with this event name; those before it are dropped.
    pub(crate) async fn until(&mut self, event: &str) -> Frame {
        loop {
            let frame = self
                .next()
                .await
                .unwrap_or_else(|| panic!("no {event} came"));
            if frame.event() == event {
                return frame;
            }
        }
    }

    /// The next frame that is no heartbeat.
    pub(crate) async fn news(&mut self) -> Option<Frame> {
        loop {
            let frame = self.next().await?;
            if frame.event() != "system.heartbeat" {
                return Some(frame);
            }
        }
    }

    /// Whether nothing but heartbeats comes for a while.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        timeout(Duration::from_millis(300), self.news())
            .await
            .is_err()
    }

    /// All frames until the end of the stream.
    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// The types of these frames, in order.
pub(crate) fn types(frames: &[Value]) -> Vec<&str> {
    frames
        .iter()
        .map(|frame| frame["type"].as_str().unwrap())
        .collect()
}
