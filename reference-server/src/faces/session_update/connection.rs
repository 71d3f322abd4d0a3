//! One connection: reads requests, works on them side by side, writes what the outbox holds.
//!
//! ```text
//!   lines ──> request ──> task of its own ──> response ─┐
//!                                                       ├──> outbox ──> writer
//!   bus ──> happening ──> event of a subscription ──────┘
//! ```
//!
//! It ends with its input, with `shutdown`, when its reader does not keep up, or with the server. What becomes of
//! the turns that it began is decided by [`AtEnd`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwire_spec::session_update::limits::{REQUESTS_AT_ONCE, WRITE_WITHIN};
use turnwire_spec::session_update::{ErrorType, RequestId};

use super::SessionUpdate;
use super::errors::Refusal;
use super::lines::{Line, Lines};
use super::methods;
use super::outbox::{End, Outbox};
use super::requests::{self, Asked};
use super::subscriptions::Subscriptions;
use crate::engine::ids::SessionId;

/// Longest time that turns may take to stop at the end of a connection.
const TURNS_WITHIN: Duration = Duration::from_secs(10);

/// What the end of the input means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AtEnd {
    /// The connection is over; its turns go on.
    Leave,
    /// Nobody can come back: the turns that it began are stopped, and their last events written.
    Stop,
}

/// How far the end of the server has come.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// What waits is written, then the connection ends.
    pub draining: CancellationToken,
    /// The connection ends where it stands.
    pub killed: CancellationToken,
}

/// What the requests of one connection share.
pub(super) struct Client {
    pub(super) face: Arc<SessionUpdate>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) subscriptions: Subscriptions,
    pub(super) prompts: Prompts,
    ready: AtomicBool,
    stopping: AtomicBool,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
}

/// Serves one connection to its end.
pub async fn serve<R, W>(face: Arc<SessionUpdate>, input: R, output: W, at_end: AtEnd, ends: Ends)
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let within = face.scale.scale_io(WRITE_WITHIN);
    let client = Arc::new(Client {
        face,
        outbox: Arc::new(Outbox::default()),
        subscriptions: Subscriptions::default(),
        prompts: Prompts::default(),
        ready: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        places: Arc::new(Semaphore::new(REQUESTS_AT_ONCE)),
        tasks: TaskTracker::new(),
    });
    let reading = async {
        tokio::select! {
            () = client.read(input) => {
                if at_end == AtEnd::Stop {
                    client.stop_turns().await;
                }
            }
            () = ends.draining.cancelled() => {}
        }
        client.outbox.close();
    };
    let writing = write(&client.outbox, output, within);
    let (mut reading, mut writing) = (std::pin::pin!(reading), std::pin::pin!(writing));
    let mut is_read = false;
    // The reader waits for its peer, so the end of the writer ends both.
    loop {
        tokio::select! {
            biased;
            () = ends.killed.cancelled() => break,
            () = &mut writing => break,
            () = &mut reading, if !is_read => is_read = true,
        }
    }
    client.outbox.close();
    client.subscriptions.clear().await;
}

/// Writes what the outbox holds until its end, or until the peer does not take it.
async fn write(outbox: &Outbox, mut output: impl AsyncWrite + Unpin, within: Duration) {
    loop {
        match outbox.batch().await {
            Ok(batch) => {
                let written = timeout(within, async {
                    output.write_all(&batch).await?;
                    output.flush().await
                });
                if !matches!(written.await, Ok(Ok(()))) {
                    outbox.overflow();
                    return;
                }
            }
            Err(End::Closed) => {
                let _ = timeout(within, output.shutdown()).await;
                return;
            }
            Err(End::Overflow) => {
                tracing::debug!("a connection did not keep up and was closed");
                return;
            }
        }
    }
}

impl Client {
    /// Takes requests until the input or the connection ends.
    async fn read(self: &Arc<Self>, input: impl AsyncRead + Unpin) {
        let mut lines = Lines::new(input);
        while let Some(line) = lines.next().await {
            let asked = match line {
                Line::Whole(line) => requests::read(&line),
                Line::TooLong => {
                    let refusal = Refusal::new(ErrorType::ParseError, "the line is too long");
                    Err((RequestId::null(), refusal))
                }
            };
            match asked {
                Err((id, refusal)) => self.outbox.put(refusal.response(&id)),
                Ok(asked) if asked.method == "shutdown" && self.may(&asked.method).is_ok() => {
                    self.shut_down(&asked).await;
                    return;
                }
                Ok(asked) => self.begin(asked).await,
            }
        }
    }

    /// Begins to work on a request. `initialize` is done before the next line is read.
    async fn begin(self: &Arc<Self>, asked: Asked) {
        if let Err(refusal) = self.may(&asked.method) {
            self.outbox.put(refusal.response(&asked.id));
            return;
        }
        if asked.method == "initialize" {
            self.answer(&asked).await;
            self.ready.store(true, Ordering::SeqCst);
            return;
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let message = format!("{REQUESTS_AT_ONCE} requests are under way");
            let refusal = Refusal::new(ErrorType::ServerBusy, message);
            self.outbox.put(refusal.response(&asked.id));
            return;
        };
        let client = Arc::clone(self);
        self.tasks.spawn(async move {
            client.answer(&asked).await;
            drop(place);
        });
    }

    async fn answer(&self, asked: &Asked) {
        let line = match methods::call(self, asked).await {
            Ok(result) => methods::response(&asked.id, &result),
            Err(refusal) => refusal.response(&asked.id),
        };
        self.outbox.put(line);
    }

    /// Whether a method is open to the client now.
    fn may(&self, method: &str) -> Result<(), Refusal> {
        if self.stopping.load(Ordering::SeqCst) {
            let message = "the connection is going down";
            return Err(Refusal::new(ErrorType::ServerStopping, message));
        }
        let always = matches!(method, "initialize" | "ping");
        if always || self.ready.load(Ordering::SeqCst) {
            return Ok(());
        }
        let message = "initialize has to come first";
        Err(Refusal::new(ErrorType::ServerNotReady, message))
    }

    /// `shutdown`: the turns of this connection are stopped, every other request is answered, then this one.
    async fn shut_down(&self, asked: &Asked) {
        self.stop_turns().await;
        let result = json!({ "ok": true });
        self.outbox.put(methods::response(&asked.id, &result));
    }

    /// Stops the turns that this connection began, and waits until its requests are answered.
    async fn stop_turns(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for session in self.prompts.sessions() {
            // An error means that the turn has ended by itself meanwhile.
            let _ = self.face.engine.abort(&session).await;
        }
        self.tasks.close();
        if timeout(TURNS_WITHIN, self.tasks.wait()).await.is_err() {
            tracing::warn!("requests were still under way at the end of a connection");
        }
    }
}

/// The sessions whose turns this connection waits for.
#[derive(Debug, Default)]
pub(super) struct Prompts(Arc<Mutex<Vec<SessionId>>>);

impl Prompts {
    /// Lists a session until the value is dropped.
    pub(super) fn enter(&self, session: &SessionId) -> Prompting {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.push(session.clone());
        Prompting {
            sessions: Arc::clone(&self.0),
            session: session.clone(),
        }
    }

    fn sessions(&self) -> Vec<SessionId> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// One turn that the connection waits for.
pub(super) struct Prompting {
    sessions: Arc<Mutex<Vec<SessionId>>>,
    session: SessionId,
}

impl Drop for Prompting {
    fn drop(&mut self) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = sessions.iter().position(|other| *other == self.session) {
            sessions.remove(place);
        }
    }
}
