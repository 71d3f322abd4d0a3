//! A client of the DevTools protocol: commands, and events of sessions, over one WebSocket.
//!
//! Every command has an id and gets one answer; every page that was attached to has a session, whose events go
//! to whoever listens to it. A listener that falls behind by [`WAITING`] events hears no more of them.
//!
//! Source: <https://chromedevtools.github.io/devtools-protocol/>

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::WebSocketConfig},
};
use tokio_util::task::AbortOnDropHandle;

use super::BrowserError;

/// Longest message of Chromium that is taken, in bytes: bodies of responses come in one.
const MAX_MESSAGE: usize = 256 << 20;
/// Events of one session, and commands, that wait to be taken.
const WAITING: usize = 8192;
/// Longest wait for the answer of a command; a busy machine takes its time.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// What happens in a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    /// Such as `Network.dataReceived`.
    pub(super) method: String,
    /// What belongs to it.
    pub(super) params: Value,
}

/// A connection to Chromium; clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Cdp {
    shared: Arc<Shared>,
    _carrying: Arc<AbortOnDropHandle<()>>,
}

type Answer = Result<Value, String>;

#[derive(Debug)]
struct Shared {
    to: mpsc::Sender<String>,
    next: AtomicU64,
    gone: AtomicBool,
    calls: Mutex<BTreeMap<u64, oneshot::Sender<Answer>>>,
    sessions: Mutex<BTreeMap<String, mpsc::Sender<Event>>>,
}

impl Cdp {
    /// Connects to a Chromium that listens on this port of the loopback device.
    ///
    /// # Errors
    ///
    /// In words.
    pub(super) async fn connect(port: u16, path: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        let url = format!("ws://127.0.0.1:{port}{path}");
        let opened = tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await;
        let (socket, _) = opened.map_err(|error| error.to_string())?;
        let (to, commands) = mpsc::channel(WAITING);
        let shared = Arc::new(Shared {
            to,
            next: AtomicU64::new(1),
            gone: AtomicBool::new(false),
            calls: Mutex::default(),
            sessions: Mutex::default(),
        });
        let carrying = tokio::spawn(carry(socket, commands, Arc::clone(&shared)));
        Ok(Self {
            shared,
            _carrying: Arc::new(AbortOnDropHandle::new(carrying)),
        })
    }

    /// Whether the connection has ended.
    pub(super) fn is_gone(&self) -> bool {
        // Also with the runtime in which it was carried.
        self.shared.gone.load(Ordering::Acquire) || self.shared.to.is_closed()
    }

    /// Gives a command and waits for its answer; without a session, to the browser itself.
    ///
    /// # Errors
    ///
    /// When Chromium refuses it, does not answer, or is gone.
    pub(super) async fn call(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, BrowserError> {
        let (tell, answer) = oneshot::channel();
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.shared.calls).insert(id, tell);
        let listed = Listed(&self.shared, id);
        let asked = async {
            let sent = self.shared.to.send(command(id, session, method, &params));
            sent.await.map_err(|_| BrowserError::Gone)?;
            if self.is_gone() {
                return Err(BrowserError::Gone);
            }
            answer.await.map_err(|_| BrowserError::Gone)
        };
        let answered = timeout(ANSWERS_WITHIN, asked).await;
        drop(listed);
        match answered {
            Err(_) => Err(BrowserError::Silent {
                method: method.to_owned(),
                waited: ANSWERS_WITHIN,
            }),
            Ok(answer) => answer?.map_err(|why| BrowserError::Refused {
                method: method.to_owned(),
                why,
            }),
        }
    }

    /// Gives a command whose answer nobody needs. Lost when too much waits or the connection is gone.
    pub(super) fn tell(&self, session: Option<&str>, method: &str, params: &Value) {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let _ = self
            .shared
            .to
            .try_send(command(id, session, method, params));
    }

    /// The events of a session from now on; they end with the session or the connection.
    pub(super) fn listen(&self, session: &str) -> mpsc::Receiver<Event> {
        let (tell, events) = mpsc::channel(WAITING);
        if !self.is_gone() {
            lock(&self.shared.sessions).insert(session.to_owned(), tell);
        }
        events
    }

    /// Nobody listens to this session any more.
    pub(super) fn leave(&self, session: &str) {
        lock(&self.shared.sessions).remove(session);
    }
}

/// A call that nobody waits for any more leaves the list.
struct Listed<'a>(&'a Shared, u64);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        lock(&self.0.calls).remove(&self.1);
    }
}

fn command(id: u64, session: Option<&str>, method: &str, params: &Value) -> String {
    let mut command = json!({ "id": id, "method": method, "params": params });
    if let Some(session) = session {
        command["sessionId"] = session.into();
    }
    command.to_string()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries commands and messages until the connection ends.
async fn carry(
    mut socket: WebSocketStream<TcpStream>,
    mut commands: mpsc::Receiver<String>,
    shared: Arc<Shared>,
) {
    loop {
        let going_on = tokio::select! {
            command = commands.recv() => match command {
                Some(command) => socket.send(Message::text(command)).await.is_ok(),
                None => false,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    shared.take(text.as_str());
                    true
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => false,
                Some(Ok(_)) => true,
            },
        };
        if !going_on {
            break;
        }
    }
    shared.gone.store(true, Ordering::Release);
    lock(&shared.calls).clear();
    lock(&shared.sessions).clear();
}

impl Shared {
    /// Gives an answer or an event to whoever waits for it.
    fn take(&self, text: &str) {
        let Ok(mut message) = serde_json::from_str::<Value>(text) else {
            return;
        };
        if let Some(id) = message["id"].as_u64() {
            let answer = match message["error"]["message"].as_str() {
                Some(why) => Err(why.to_owned()),
                None => Ok(message["result"].take()),
            };
            if let Some(waiting) = lock(&self.calls).remove(&id) {
                // Whoever asked may have given up.
                let _ = waiting.send(answer);
            }
            return;
        }
        let (Some(session), Some(method)) = (
            message["sessionId"].as_str().map(str::to_owned),
            message["method"].as_str().map(str::to_owned),
        ) else {
            return;
        };
        let event = Event {
            method,
            params: message["params"].take(),
        };
        let mut sessions = lock(&self.sessions);
        let gone = sessions
            .get(&session)
            .is_some_and(|listener| listener.try_send(event).is_err());
        if gone {
            sessions.remove(&session);
        }
    }
}
