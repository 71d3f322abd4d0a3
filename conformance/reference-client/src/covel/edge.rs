//! The sockets and timers of a Covel client.
//!
//! [`run`] feeds a [`Core`] and does what it says. Everything that happens comes through one channel, so the core
//! sees one thing after the other.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, header};
use serde_json::Value;
use tokio::{sync::mpsc, task::AbortHandle, time::sleep};
use turnwire_spec::sse::{Decoder, Limits};

use super::core::{Command, Core, Input, Person};
use crate::http::{Response, send};

/// Where the server is, and who asks.
#[derive(Clone, Debug)]
pub struct Server {
    /// Base URL, without a slash at its end.
    pub url: String,
    /// The owner's token of the session.
    pub token: Option<String>,
    /// Factor of all periods; 1 is real time.
    pub time_scale: f64,
    /// Base URL of the client's own store, when it keeps its data itself.
    pub store: Option<String>,
}

/// Bytes of an answer that are read.
const ANSWER_AT_MOST: usize = 64 << 20;

/// Runs a client until the person has gone; tells what is shown after everything that happened.
pub async fn run(server: Server, mut person: mpsc::Receiver<Person>, mut show: impl FnMut(&Core)) {
    let (happens, mut happened) = mpsc::channel(256);
    let mut edge = Edge {
        server,
        happens,
        subscription: None,
        action: None,
    };
    let mut core = Core::new(page_id(), edge.server.store.is_some());
    loop {
        let input = tokio::select! {
            doing = person.recv() => match doing {
                Some(doing) => Input::Person(doing),
                None => return,
            },
            Some(input) = happened.recv() => input,
        };
        let mut commands = VecDeque::from(core.handle(input));
        while let Some(command) = commands.pop_front() {
            edge.obey(command);
        }
        show(&core);
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
    subscription: Option<Task>,
    action: Option<Task>,
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
                    let answer = server.json(Method::GET, &path, None).await;
                    let _ = happens.send(Input::Answer(number, ask, answer)).await;
                });
            }
            Command::Post(path, body) => {
                tokio::spawn(async move {
                    server.json(Method::POST, &path, Some(&body)).await;
                });
            }
            Command::Call(number, path, body) => {
                tokio::spawn(async move {
                    let answer = server.json(Method::POST, &path, Some(&body)).await;
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
                    let answer = server.ask(Method::GET, &path, None, "*/*").await;
                    let loaded = answer.is_some_and(|answer| answer.status.is_success());
                    let _ = happens.send(Input::Loaded(id, loaded)).await;
                });
            }
            Command::Subscribe(number, path) => {
                let task = tokio::spawn(subscribe(server, number, path, happens));
                self.subscription = Some(Task(task.abort_handle()));
            }
            Command::Unsubscribe => self.subscription = None,
            Command::Act(number, body) => {
                let task = tokio::spawn(act(server, number, body, happens));
                self.action = Some(Task(task.abort_handle()));
            }
            Command::Forget => self.action = None,
            Command::Pause(number, timer, time) => {
                tokio::spawn(async move {
                    sleep(time).await;
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

impl Server {
    fn scaled(&self, time: Duration) -> Duration {
        time.mul_f64(self.time_scale)
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
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
        send(&format!("{}{path}", self.url), request, Bytes::from(body))
            .await
            .ok()
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

    async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let answer = self.ask(method, path, body, "application/json").await?;
        let status = answer.status.as_u16();
        let body = answer.body(ANSWER_AT_MOST).await.ok()?;
        Some((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}

async fn subscribe(server: Server, number: u64, path: String, happens: mpsc::Sender<Input>) {
    let answer = server
        .ask(Method::GET, &path, None, "text/event-stream")
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
            "/api/actions",
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
