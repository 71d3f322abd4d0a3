//! A small client of the chat protocol, as a testee in the harness's own process.
//!
//! [`Screen`] is the client proper: it takes the frames of a server and holds what a person would see. [`Client`]
//! keeps one socket for all chats, opens it again when it is lost, and pings on it. The rest takes steps
//! (`docs/src/chat-ws.md` has them) and reports the screen.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};
use turnwire_spec::chat_ws::limits;

use crate::drivers::{
    DriveError,
    target::Pending,
    testee::{About, LaunchTestee, Said, Testee},
};

/// Starts the client.
#[derive(Clone, Copy, Debug)]
pub struct OwnClient;

/// Its name in reports.
const NAME: &str = "turnwire chat-ws client";

impl LaunchTestee for OwnClient {
    fn start(&self) -> Pending<'_, Result<Testee, DriveError>> {
        let version = env!("CARGO_PKG_VERSION");
        let said = json!({ "ready": true, "name": NAME, "version": version });
        let about = About::read(&said).unwrap_or_default();
        Box::pin(async move { Ok(Testee::in_process(about, serve)) })
    }

    fn in_process(&self) -> bool {
        true
    }
}

/// What a person sees, chat by chat.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Screen {
    chats: BTreeMap<String, Chat>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Chat {
    bubbles: Vec<Bubble>,
    tools: Vec<Tool>,
    notices: Vec<Shown>,
    queued: Option<String>,
    running: bool,
    #[serde(skip)]
    slug: String,
    #[serde(skip)]
    job: Option<String>,
    /// The highest number of the present turn; -1 before its first frame.
    #[serde(skip)]
    last_seq: i64,
    /// Whether text goes into the last bubble.
    #[serde(skip)]
    open: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Bubble {
    role: &'static str,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    tool_use_id: String,
    tool_name: String,
    pending: bool,
    is_error: bool,
    output: String,
}

/// A notice, with the control that it offers.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Shown {
    kind: &'static str,
    text: String,
    /// Whether it offers to go on, or to try again.
    retry: bool,
    #[serde(skip)]
    timestamp: String,
}

/// What the screen asks of the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// The transcript of this chat is to be read again.
    Transcript(String),
}

impl Screen {
    /// Takes one frame of the server. Kinds that nobody knows are passed over.
    pub fn take(&mut self, frame: &Value) -> Option<Wish> {
        let payload = &frame["payload"];
        let text = |name: &str| payload[name].as_str().unwrap_or_default();
        let session = text("sessionId").to_owned();
        if session.is_empty() {
            return None;
        }
        let chat = self.chats.entry(session.clone()).or_default();
        if let Some(slug) = payload["projectSlug"].as_str() {
            slug.clone_into(&mut chat.slug);
        }
        if let Some(seq) = payload["seq"].as_i64() {
            chat.last_seq = chat.last_seq.max(seq);
        }
        match frame["type"].as_str().unwrap_or_default() {
            "chat:active" => chat.status(payload),
            "chat:response" => chat.write(text("chunk")),
            // Text after it goes into a bubble of its own (CWS-082).
            "chat:message_boundary" => chat.open = false,
            "chat:tool_start" => chat.tools.push(Tool {
                tool_use_id: text("toolUseId").to_owned(),
                tool_name: text("toolName").to_owned(),
                pending: true,
                is_error: false,
                output: String::new(),
            }),
            "chat:tool_call" => chat.finish_tool(payload),
            "chat:complete" => chat.open = false,
            "chat:queued_flushed" => {
                // With a text it is a bubble of the user; in any case the local copy is stale (CWS-098, CWS-099).
                chat.queued = None;
                if let Some(said) = payload["text"].as_str() {
                    chat.said(said);
                }
            }
            "chat:killed_task" => chat.killed(text("summary"), text("timestamp")),
            "chat:notice" => chat.notices.push(Shown {
                kind: "notice",
                text: payload["notice"]["message"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                retry: payload["notice"]["retryable"] == true,
                timestamp: String::new(),
            }),
            "chat:resync" => return Some(Wish::Transcript(session)),
            _ => {}
        }
        None
    }

    /// Shows a transcript in place of what was there.
    fn rehydrate(&mut self, session: &str, transcript: &Value) {
        let chat = self.chats.entry(session.to_owned()).or_default();
        let items = transcript["items"].as_array().cloned().unwrap_or_default();
        chat.open = false;
        chat.bubbles = items
            .iter()
            .filter_map(|item| {
                let role = match item["role"].as_str()? {
                    "user" => "user",
                    "assistant" => "assistant",
                    _ => return None,
                };
                let text = item["content"].as_str()?.to_owned();
                Some(Bubble { role, text })
            })
            .collect();
    }
}

impl Chat {
    fn status(&mut self, payload: &Value) {
        let running = payload["running"] == true;
        if running && !self.running {
            self.last_seq = -1;
        }
        self.running = running;
        self.job = payload["jobId"].as_str().map(str::to_owned);
    }

    fn write(&mut self, chunk: &str) {
        match self.bubbles.last_mut().filter(|_| self.open) {
            Some(bubble) => bubble.text.push_str(chunk),
            None => self.bubbles.push(Bubble {
                role: "assistant",
                text: chunk.to_owned(),
            }),
        }
        self.open = true;
    }

    fn said(&mut self, text: &str) {
        self.open = false;
        self.bubbles.push(Bubble {
            role: "user",
            text: text.to_owned(),
        });
    }

    /// The row of a tool is completed; a result without one gets its own (CWS-079).
    fn finish_tool(&mut self, payload: &Value) {
        let text = |name: &str| payload[name].as_str().unwrap_or_default().to_owned();
        let done = Tool {
            tool_use_id: text("toolUseId"),
            tool_name: text("toolName"),
            pending: false,
            is_error: payload["isError"] == true,
            output: text("output"),
        };
        let row = self
            .tools
            .iter_mut()
            .find(|row| row.pending && row.tool_use_id == done.tool_use_id);
        match row {
            Some(row) => *row = done,
            None => self.tools.push(done),
        }
    }

    /// A killed task is shown once, however often it is told (CWS-105).
    fn killed(&mut self, summary: &str, timestamp: &str) {
        let known = |shown: &Shown| shown.kind == "killed-task" && shown.timestamp == timestamp;
        if !self.notices.iter().any(known) {
            self.notices.push(Shown {
                kind: "killed-task",
                text: summary.to_owned(),
                retry: true,
                timestamp: timestamp.to_owned(),
            });
        }
    }
}

type Socket = WebSocketStream<TcpStream>;

/// The client with its socket.
#[derive(Debug, Default)]
struct Client {
    screen: Screen,
    /// `host:port` and path of the server; nothing before the first step.
    server: Option<(String, String)>,
    /// Path of a transcript, with `{session}`.
    transcripts: String,
    scale: f64,
    socket: Option<Socket>,
    next_ping: Option<Instant>,
    reconnect: Option<(Instant, Duration)>,
    /// The chat that is in front.
    shown: Option<String>,
}

async fn serve(mut lines: mpsc::Receiver<Bytes>, say: mpsc::Sender<Said>) {
    let mut client = Client {
        scale: 1.0,
        ..Client::default()
    };
    loop {
        tokio::select! {
            line = lines.recv() => {
                let Some(line) = line else { return };
                let step: Value = serde_json::from_slice(&line).unwrap_or_default();
                client.step(&step).await;
                let report = json!({ "step": step["step"], "state": client.state() });
                if say.send(Said::Line(report.to_string().into())).await.is_err() {
                    return;
                }
            }
            () = client.work() => {}
        }
    }
}

impl Client {
    fn state(&self) -> Value {
        let mut state = json!(self.screen);
        state["connected"] = json!(self.socket.is_some());
        state
    }

    fn scaled(&self, time: Duration) -> Duration {
        time.mul_f64(self.scale)
    }

    /// Waits for the next thing that the client does by itself, and does it.
    async fn work(&mut self) {
        let never = std::future::pending::<()>;
        let (ping, reconnect) = (self.next_ping, self.reconnect);
        let received = async {
            match &mut self.socket {
                Some(socket) => socket.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = received => match message {
                Some(Ok(Message::Text(text))) => {
                    let frame: Value = serde_json::from_str(text.as_str()).unwrap_or_default();
                    if let Some(Wish::Transcript(session)) = self.screen.take(&frame) {
                        self.rehydrate(&session).await;
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => self.lost(),
                Some(Ok(_)) => {}
            },
            () = async { match ping { Some(at) => sleep_until(at).await, None => never().await } } => {
                self.next_ping = ping.map(|at| at + self.scaled(limits::CLIENT_PING_EVERY));
                self.send(&json!({ "type": "ping" })).await;
            }
            () = async { match reconnect { Some((at, _)) => sleep_until(at).await, None => never().await } } => {
                self.connect().await;
            }
        }
    }

    /// The socket is gone: it is opened again, at first soon, then later and later.
    fn lost(&mut self) {
        self.socket = None;
        self.next_ping = None;
        let delay = match self.reconnect {
            Some((_, delay)) => (delay * 2).min(limits::RECONNECT_MAX),
            None => limits::RECONNECT_FIRST,
        };
        self.reconnect = Some((Instant::now() + self.scaled(delay), delay));
    }

    /// Opens the socket and attaches it to every chat that is known; with a replay where a turn was running.
    async fn connect(&mut self) {
        let Some((host, path)) = self.server.clone() else {
            return;
        };
        let opening = async {
            let stream = TcpStream::connect(&host).await.ok()?;
            client_async(format!("ws://{host}{path}"), stream)
                .await
                .ok()
        };
        let opened = timeout(Duration::from_secs(5), opening)
            .await
            .ok()
            .flatten();
        let Some((socket, _)) = opened else {
            return self.lost();
        };
        self.socket = Some(socket);
        self.reconnect = None;
        self.next_ping = Some(Instant::now() + self.scaled(limits::CLIENT_PING_EVERY));
        let chats: Vec<_> = self
            .screen
            .chats
            .iter()
            .map(|(session, chat)| {
                let mut payload = self.place(session);
                payload["wantReplay"] = json!(chat.running);
                if chat.running {
                    payload["lastSeq"] = json!(chat.last_seq);
                }
                json!({ "type": "chat:subscribe", "payload": payload })
            })
            .collect();
        for frame in chats {
            self.send(&frame).await;
        }
    }

    async fn send(&mut self, frame: &Value) {
        let Some(socket) = &mut self.socket else {
            return;
        };
        if socket.send(Message::text(frame.to_string())).await.is_err() {
            self.lost();
        }
    }

    /// The members that name a chat.
    fn place(&self, session: &str) -> Value {
        let slug = self
            .screen
            .chats
            .get(session)
            .map_or("", |chat| chat.slug.as_str());
        json!({ "projectSlug": slug, "target": slug, "sessionId": session })
    }

    /// Reads the transcript of a chat again and shows it (CWS-093).
    async fn rehydrate(&mut self, session: &str) {
        let Some((host, _)) = self.server.clone() else {
            return;
        };
        let path = self.transcripts.replace("{session}", session);
        let read = timeout(Duration::from_secs(5), get(&host, &path)).await;
        if let Ok(Some(transcript)) = read {
            self.screen.rehydrate(session, &transcript);
        }
    }

    /// Does one step.
    async fn step(&mut self, step: &Value) {
        let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
        let shown = self.shown.clone().unwrap_or_default();
        match step["step"].as_str().unwrap_or_default() {
            // A new conversation: what the last one left is forgotten.
            "connect" => {
                *self = Self::default();
                let url = text("url");
                let rest = url.strip_prefix("ws://").unwrap_or(&url);
                let (host, path) = rest.split_once('/').unwrap_or((rest, "ws"));
                self.server = Some((host.to_owned(), format!("/{path}")));
                self.transcripts = text("transcripts");
                self.scale = step["timeScale"].as_f64().unwrap_or(1.0);
                self.connect().await;
            }
            "open" => {
                let session = text("sessionId");
                let chat = self.screen.chats.entry(session.clone()).or_default();
                chat.slug = text("projectSlug");
                chat.last_seq = -1;
                let payload = self.place(&session);
                self.shown = Some(session);
                self.send(&json!({ "type": "chat:subscribe", "payload": payload }))
                    .await;
            }
            "say" => self.say(step).await,
            "command" => {
                let mut payload = self.place(&shown);
                payload["command"] = step["text"].clone();
                self.send(&json!({ "type": "chat:command", "payload": payload }))
                    .await;
            }
            "stop" => {
                let job = self
                    .screen
                    .chats
                    .get(&shown)
                    .and_then(|chat| chat.job.clone());
                let payload = json!({ "jobId": job });
                self.send(&json!({ "type": "chat:cancel", "payload": payload }))
                    .await;
            }
            "queue" => self.queue(&shown, step["text"].as_str()).await,
            "continue" => {
                let payload = self.place(&shown);
                self.send(&json!({ "type": "chat:continue", "payload": payload }))
                    .await;
            }
            _ => {}
        }
    }

    /// Says something in the chat in front, or in a new one.
    async fn say(&mut self, step: &Value) {
        let mut payload = match self.shown.clone().filter(|_| step["new"] != true) {
            Some(session) => {
                if let Some(chat) = self.screen.chats.get_mut(&session) {
                    chat.said(step["text"].as_str().unwrap_or_default());
                    chat.last_seq = -1;
                }
                self.place(&session)
            }
            None => json!({
                "projectSlug": step["projectSlug"], "target": step["projectSlug"], "sessionId": null,
            }),
        };
        payload["message"] = step["text"].clone();
        if let Some(model) = step["model"].as_str() {
            payload["model"] = json!(model);
        }
        self.send(&json!({ "type": "chat:send", "payload": payload }))
            .await;
    }

    async fn queue(&mut self, session: &str, text: Option<&str>) {
        if let Some(chat) = self.screen.chats.get_mut(session) {
            chat.queued = text.map(str::to_owned);
        }
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let mut payload = self.place(session);
        payload["text"] = json!(text);
        payload["ts"] = json!(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        self.send(&json!({ "type": "chat:set_queue", "payload": payload }))
            .await;
    }
}

/// Asks for a JSON document.
async fn get(host: &str, path: &str) -> Option<Value> {
    let stream = TcpStream::connect(host).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .ok()?;
    let connection = tokio::spawn(async move {
        // Its end is the end of the answer, which is read below.
        let _ = connection.await;
    });
    let request = http::Request::get(path)
        .header("host", host)
        .body(Empty::<Bytes>::new())
        .ok()?;
    let response = sender.send_request(request).await.ok()?;
    let body = response.into_body().collect().await.ok()?.to_bytes();
    connection.abort();
    serde_json::from_slice(&body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: &str, payload: Value) -> Value {
        let mut payload = payload;
        payload["sessionId"] = json!("s");
        json!({ "type": kind, "payload": payload })
    }

    fn seen(frames: &[Value]) -> Value {
        let mut screen = Screen::default();
        for frame in frames {
            screen.take(frame);
        }
        json!(screen)["chats"]["s"].clone()
    }

    #[test]
    fn text_after_a_boundary_is_a_bubble_of_its_own() {
        let chunk = |text: &str| frame("chat:response", json!({ "chunk": text }));
        let shown = seen(&[
            chunk("a"),
            chunk("b"),
            frame("chat:message_boundary", json!({})),
            chunk("c"),
        ]);
        let texts: Vec<_> = shown["bubbles"]
            .as_array()
            .unwrap()
            .iter()
            .map(|bubble| bubble["text"].as_str().unwrap())
            .collect();
        assert_eq!(texts, ["ab", "c"]);
    }

    #[test]
    fn a_result_completes_its_row_and_an_orphan_gets_one() {
        let start = frame(
            "chat:tool_start",
            json!({ "toolUseId": "t", "toolName": "Read" }),
        );
        let end = |id: &str| {
            frame(
                "chat:tool_call",
                json!({ "toolUseId": id, "toolName": "Read", "output": "x", "isError": false }),
            )
        };
        let shown = seen(&[start, end("t"), end("u")]);
        let rows = shown["tools"].as_array().unwrap();
        assert_eq!(rows.len(), 2);
        assert!(rows.iter().all(|row| row["pending"] == false));
    }

    #[test]
    fn a_killed_task_is_shown_once_and_a_flushed_queue_said_once() {
        let killed = |at: &str| {
            frame(
                "chat:killed_task",
                json!({ "summary": "x", "timestamp": at }),
            )
        };
        let flushed = frame("chat:queued_flushed", json!({ "text": "q" }));
        let shown = seen(&[killed("1"), killed("1"), killed("2"), flushed]);
        assert_eq!(shown["notices"].as_array().unwrap().len(), 2);
        assert_eq!(shown["bubbles"], json!([{ "role": "user", "text": "q" }]));
        assert_eq!(shown["queued"], Value::Null);
    }
}
