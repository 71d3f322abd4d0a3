//! A small client of the chat protocol, as a testee in the harness's own process.
//!
//! [`Screen`] is the client proper: it takes the frames of a server and holds what a person would see. [`Client`]
//! keeps one socket for all chats, opens it again when it is lost, and pings on it. The rest takes steps
//! (`docs/src/chat-ws.md` has them) and reports the screen.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
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

mod screen;

pub use screen::{Screen, Wish};

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
        // What came is worked off to its end: half a transcript, or some of the subscriptions, would be lost for good.
        let step = tokio::select! {
            line = lines.recv() => line,
            came = client.next() => {
                client.take(came).await;
                continue;
            }
        };
        let Some(step) = step else { return };
        let step: Value = serde_json::from_slice(&step).unwrap_or_default();
        client.step(&step).await;
        let report = json!({ "step": step["step"], "state": client.state() });
        if say
            .send(Said::Line(report.to_string().into()))
            .await
            .is_err()
        {
            return;
        }
    }
}

/// What a client waits for besides steps.
#[derive(Debug)]
enum Came {
    /// A frame.
    Frame(Value),
    /// A message that says nothing here.
    Nothing,
    /// The end of the socket.
    End,
    /// The time of a ping.
    Ping,
    /// The time to open the socket again.
    Reconnect,
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

    /// Waits for the next thing that the client does something about by itself. Nothing is lost when it is not waited
    /// for to the end.
    async fn next(&mut self) -> Came {
        async fn until(at: Option<Instant>) {
            match at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        }
        let reconnect = self.reconnect.map(|(at, _)| at);
        let received = async {
            match &mut self.socket {
                Some(socket) => socket.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = received => match message {
                Some(Ok(Message::Text(text))) => {
                    Came::Frame(serde_json::from_str(text.as_str()).unwrap_or_default())
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => Came::End,
                Some(Ok(_)) => Came::Nothing,
            },
            () = until(self.next_ping) => Came::Ping,
            () = until(reconnect) => Came::Reconnect,
        }
    }

    async fn take(&mut self, came: Came) {
        match came {
            Came::Frame(frame) => {
                if let Some(Wish::Transcript(session)) = self.screen.take(&frame) {
                    self.rehydrate(&session).await;
                }
            }
            Came::Nothing => {}
            Came::End => self.lost(),
            Came::Ping => {
                let ping = |at: Instant| at + self.scaled(limits::CLIENT_PING_EVERY);
                self.next_ping = self.next_ping.map(ping);
                self.send(&json!({ "type": "ping" })).await;
            }
            Came::Reconnect => self.connect().await,
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
