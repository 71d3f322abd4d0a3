//! The sockets and timers of a Covel client.
//!
//! [`run`] feeds a [`Core`] and does what it says. Everything that happens comes through one channel, so the core
//! sees one thing after the other.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, header};
use serde_json::Value;
use tokio::{sync::mpsc, task::AbortHandle, time::sleep};
use turnwire_spec::sse::{Decoder, Limits};

use super::{
    inputs::{Command, Input, Person},
    shown::Shown,
    visits::Visits,
};
use crate::http::{HttpError, Response, send};

/// Where the server is, and who asks.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Base URL, without a slash at its end.
    pub url: String,
    /// The owner's token of the session.
    pub token: Option<String>,
    /// Factor of all periods; 1 is real time.
    pub time_scale: f64,
    /// Base URL of the client's own store, when it keeps its data itself: `PUT` and `GET` of JSON.
    pub store: Option<String>,
}

/// Bytes of an answer that are read.
const ANSWER_AT_MOST: usize = 64 << 20;

/// Runs a client until the person has gone; tells what is shown after everything that happened.
pub async fn run(server: Server, mut person: mpsc::Receiver<Person>, mut show: impl FnMut(&Shown)) {
    let (happens, mut happened) = mpsc::channel(256);
    let mut edge = Edge {
        server,
        happens,
        streams: BTreeMap::new(),
    };
    let mut client = Visits::new(page_id(), edge.server.store.is_some());
    loop {
        let input = tokio::select! {
            doing = person.recv() => match doing {
                Some(doing) => Input::Person(doing),
                None => return,
            },
            Some(input) = happened.recv() => input,
        };
        let mut commands = VecDeque::from(client.handle(input));
        while let Some(command) = commands.pop_front() {
            edge.obey(command);
        }
        show(client.shown());
    }
}

/// Tells pages apart: requests of one have no id of another's.
pub fn page_id() -> String {
    static PAGES: AtomicU64 = AtomicU64::new(0);
    let page = PAGES.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{page}", std::process::id())
}

struct Edge {
    server: Server,
    happens: mpsc::Sender<Input>,
    /// The open streams, by number.
    streams: BTreeMap<u64, Task>,
}

/// Ended when it is dropped.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Edge {
    fn obey(&mut self, command: Command) {
        let (server, happens) = (self.server.clone(), self.happens.clone());
        match command {
            Command::Get(number, ask, path) => {
                tokio::spawn(async move {
                    let answer = server.json(Method::GET, &server.at(&path), None).await;
                    let _ = happens.send(Input::Answer(number, ask, answer)).await;
                });
            }
            Command::Recall(number, ask, path) => {
                tokio::spawn(async move {
                    let answer = match &server.store {
                        Some(store) => {
                            let url = format!("{store}{path}");
                            server.json(Method::GET, &url, None).await
                        }
                        None => None,
                    };
                    let _ = happens.send(Input::Answer(number, ask, answer)).await;
                });
            }
            Command::Fetch(number, url) => {
                tokio::spawn(async move {
                    let answer = server.fetch(&url).await;
                    let _ = happens.send(Input::Fetched(number, answer)).await;
                });
            }
            Command::Post(path, body) => {
                tokio::spawn(async move {
                    let url = server.at(&path);
                    server.json(Method::POST, &url, Some(&body)).await;
                });
            }
            Command::Call(number, path, body) => {
                tokio::spawn(async move {
                    let url = server.at(&path);
                    let answer = server.json(Method::POST, &url, Some(&body)).await;
                    let _ = happens.send(Input::Called(number, answer)).await;
                });
            }
            Command::Keep(number, path, body) => {
                tokio::spawn(async move {
                    let kept = server.keep(&path, &body).await;
                    let _ = happens.send(Input::Kept(number, kept)).await;
                });
            }
            Command::Load(id, path) => {
                tokio::spawn(async move {
                    let answer = server
                        .ask(Method::GET, &server.at(&path), None, "*/*")
                        .await;
                    let loaded = answer.is_some_and(|answer| answer.status.is_success());
                    let _ = happens.send(Input::Loaded(id, loaded)).await;
                });
            }
            Command::Subscribe(number, path) => {
                let task = tokio::spawn(subscribe(server, number, path, happens));
                self.stream(number, task.abort_handle());
            }
            Command::Act(number, body) => {
                let task = tokio::spawn(act(server, number, body, happens));
                self.stream(number, task.abort_handle());
            }
            Command::End(number) => drop(self.streams.remove(&number)),
            Command::Pause(number, timer, time) => {
                tokio::spawn(async move {
                    sleep(server.scaled(time).max(time)).await;
                    let _ = happens.send(Input::Timer(number, timer)).await;
                });
            }
            Command::Wait(number, timer, time) => {
                tokio::spawn(async move {
                    sleep(server.scaled(time)).await;
                    let _ = happens.send(Input::Timer(number, timer)).await;
                });
            }
        }
    }
}

impl Edge {
    /// Keeps a stream until it is to be ended. Those that are over are forgotten.
    fn stream(&mut self, number: u64, task: AbortHandle) {
        self.streams.retain(|_, open| !open.0.is_finished());
        self.streams.insert(number, Task(task));
    }
}

impl Server {
    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// The status of what is behind a URL; or the kind of error.
    async fn fetch(&self, url: &str) -> Result<u16, &'static str> {
        let url = if url.starts_with('/') {
            self.at(url)
        } else {
            url.to_owned()
        };
        let answer = send(&url, Request::get("/"), Bytes::new()).await;
        match answer {
            Ok(answer) => Ok(answer.status.as_u16()),
            Err(HttpError::Url(_)) => Err("UrlError"),
            Err(_) => Err("NetworkError"),
        }
    }

    fn scaled(&self, time: Duration) -> Duration {
        time.mul_f64(self.time_scale)
    }

    async fn ask(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
        accept: &str,
    ) -> Option<Response> {
        let mut request = Request::builder()
            .method(method)
            .header(header::ACCEPT, accept);
        if let Some(token) = &self.token {
            request = request.header("X-Session-Token", token);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        send(url, request, Bytes::from(body)).await.ok()
    }

    /// Puts something into the client's own store; whether it was taken.
    async fn keep(&self, path: &str, body: &Value) -> bool {
        let Some(store) = &self.store else {
            return false;
        };
        let request = Request::builder()
            .method(Method::PUT)
            .header(header::CONTENT_TYPE, "application/json");
        let body = Bytes::from(body.to_string());
        let answer = send(&format!("{store}{path}"), request, body).await;
        answer.is_ok_and(|answer| answer.status.is_success())
    }

    async fn json(&self, method: Method, url: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let answer = self.ask(method, url, body, "application/json").await?;
        let status = answer.status.as_u16();
        let body = answer.body(ANSWER_AT_MOST).await.ok()?;
        Some((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}

async fn subscribe(server: Server, number: u64, path: String, happens: mpsc::Sender<Input>) {
    let answer = server
        .ask(Method::GET, &server.at(&path), None, "text/event-stream")
        .await;
    let status = answer.as_ref().map(|answer| answer.status.as_u16());
    let Some(answer) = answer.filter(|answer| answer.status.as_u16() == 200) else {
        let _ = happens.send(Input::Unsubscribed(number, status)).await;
        return;
    };
    let _ = happens.send(Input::Subscribed(number)).await;
    let frame = |event: turnwire_spec::sse::Event<'_>, id: Option<&str>| {
        Input::Frame(
            number,
            event.event.to_owned(),
            event.data.to_owned(),
            id.map(str::to_owned),
        )
    };
    read(answer, &happens, frame).await;
    let _ = happens.send(Input::Unsubscribed(number, None)).await;
}

async fn act(server: Server, number: u64, body: Value, happens: mpsc::Sender<Input>) {
    let answer = server
        .ask(
            Method::POST,
            &server.at("/api/actions"),
            Some(&body),
            "text/event-stream",
        )
        .await;
    let status = answer.as_ref().map(|answer| answer.status.as_u16());
    let over = match answer.filter(|answer| answer.status.as_u16() == 200) {
        None => status,
        Some(answer) => {
            let _ = happens.send(Input::ActionTaken(number)).await;
            // COV-SUB-170: the envelope's type decides; whatever the frame is called.
            let frame = |event: turnwire_spec::sse::Event<'_>, _: Option<&str>| {
                Input::ActionFrame(number, event.data.to_owned())
            };
            read(answer, &happens, frame).await;
            None
        }
    };
    let _ = happens.send(Input::ActionOver(number, over)).await;
}

/// Hands on every event of a stream as soon as it is complete. The id is `None` where the event sets none.
async fn read(
    mut answer: Response,
    happens: &mpsc::Sender<Input>,
    input: impl Fn(turnwire_spec::sse::Event<'_>, Option<&str>) -> Input,
) {
    let mut decoder = Decoder::new(Limits::NONE);
    let mut last = String::new();
    while let Ok(Some(bytes)) = answer.chunk().await {
        let mut inputs = Vec::new();
        // Without limits there is no overflow.
        let _ = decoder.feed(&bytes, |event| {
            let id = (event.last_event_id != last).then_some(event.last_event_id);
            inputs.push(input(event, id));
            event.last_event_id.clone_into(&mut last);
        });
        for input in inputs {
            if happens.send(input).await.is_err() {
                return;
            }
        }
    }
}
