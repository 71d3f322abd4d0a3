//! The model relay: hands model requests that the server cannot send itself to a client's page, which
//! answers them. It belongs to no session and is no part of the event bus.
//!
//! `GET /api/model-relay/stream` carries the named events `ready`, `request` and `cancel`, and a
//! comment every 15 seconds; the page answers with `POST /api/model-relay/requests/:id/<part>`.
//!
//! The seed leaves the payloads open. Ours: `ready {channel}`, `request {requestId, method, path,
//! body}`, `cancel {requestId}`; the parts of an answer are `chunk` (bytes), `end` and `error`.
//!
//! Source: seed 000, lines 639 and 784-790.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};
use turnwire_spec::covel::limits::{self, RELAY_POST_BYTES};

use super::Covel;
use super::errors::ApiError;
use super::frames;
use crate::engine::ports::Ids;
use crate::faces::connection::Connection;
use crate::faces::http_stream;
use crate::faces::writer::{FrameQueue, WriteLimits};

/// Messages that wait for one page; more than that are dropped, and their requests with them.
const WAITING_MESSAGES: usize = 64;
/// Requests that may be open at a time.
const OPEN_REQUESTS: usize = 1024;
/// Characters of a channel id.
const CHANNEL_CHARS: usize = 128;

/// Why a request cannot be relayed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RelayError {
    /// No page listens.
    #[error("no page listens on the model relay")]
    NobodyListens,
    /// Too many requests are open.
    #[error("too many relayed requests are open")]
    Busy,
}

/// The relay of one process.
pub struct Relay {
    ids: Arc<dyn Ids>,
    state: Mutex<Relayed>,
}

#[derive(Default)]
struct Relayed {
    /// The pages that listen, in the order in which they came.
    pages: Vec<Page>,
    /// The open requests and the page that each went to.
    open: HashMap<String, u64>,
    next: u64,
}

struct Page {
    number: u64,
    channel: String,
    messages: mpsc::Sender<Message>,
}

/// What a page is told.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Message {
    #[serde(rename_all = "camelCase")]
    Request {
        request_id: String,
        method: &'static str,
        path: String,
        body: Value,
    },
    #[serde(rename_all = "camelCase")]
    Cancel { request_id: String },
}

impl Message {
    const fn name(&self) -> &'static str {
        match self {
            Self::Request { .. } => "request",
            Self::Cancel { .. } => "cancel",
        }
    }
}

#[derive(Serialize)]
struct Ready<'a> {
    channel: &'a str,
}

impl Relay {
    /// A relay that nobody listens to yet.
    #[must_use]
    pub fn new(ids: Arc<dyn Ids>) -> Self {
        Self {
            ids,
            state: Mutex::default(),
        }
    }

    /// Sends a model request to the page of this channel, or without one to the page that came last.
    /// Returns its id.
    ///
    /// # Errors
    ///
    /// [`RelayError`] when no page listens or takes more, or too many requests are open.
    pub fn request(
        &self,
        channel: Option<&str>,
        path: &str,
        body: Value,
    ) -> Result<String, RelayError> {
        let mut state = self.state();
        if state.open.len() >= OPEN_REQUESTS {
            return Err(RelayError::Busy);
        }
        let is_meant = |page: &&Page| channel.is_none_or(|channel| channel == page.channel);
        let page = state
            .pages
            .iter()
            .rev()
            .find(is_meant)
            .ok_or(RelayError::NobodyListens)?;
        let request_id = self.ids.id("relay");
        let message = Message::Request {
            request_id: request_id.clone(),
            method: "POST",
            path: path.to_owned(),
            body,
        };
        page.messages
            .try_send(message)
            .map_err(|_| RelayError::Busy)?;
        let number = page.number;
        state.open.insert(request_id.clone(), number);
        Ok(request_id)
    }

    /// Calls a request off. Nothing happens when it is not open any more.
    pub fn cancel(&self, request_id: &str) {
        let mut state = self.state();
        let Some(number) = state.open.remove(request_id) else {
            return;
        };
        let message = Message::Cancel {
            request_id: request_id.to_owned(),
        };
        let page = state.pages.iter().find(|page| page.number == number);
        if page.is_some_and(|page| page.messages.try_send(message).is_err()) {
            tracing::debug!(
                request_id,
                "a page is not told that its request was called off"
            );
        }
    }

    /// Whether a request is open; a final part of an answer closes it.
    fn answer(&self, request_id: &str, is_final: bool) -> bool {
        let mut state = self.state();
        if is_final {
            state.open.remove(request_id).is_some()
        } else {
            state.open.contains_key(request_id)
        }
    }

    fn join(self: &Arc<Self>, channel: &str) -> (Seat, mpsc::Receiver<Message>) {
        let (messages, receiver) = mpsc::channel(WAITING_MESSAGES);
        let mut state = self.state();
        state.next += 1;
        let number = state.next;
        state.pages.push(Page {
            number,
            channel: channel.to_owned(),
            messages,
        });
        (
            Seat {
                relay: Arc::clone(self),
                number,
            },
            receiver,
        )
    }

    fn state(&self) -> MutexGuard<'_, Relayed> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A page's place on the relay; its open requests end with it.
struct Seat {
    relay: Arc<Relay>,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.relay.state();
        state.pages.retain(|page| page.number != self.number);
        state.open.retain(|_, number| *number != self.number);
    }
}

/// Opens the relay stream.
pub(super) async fn stream(
    State(face): State<Arc<Covel>>,
    Extension(connection): Extension<Connection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let channel = headers
        .get("x-model-relay")
        .and_then(|value| value.to_str().ok())
        .filter(|channel| (1..=CHANNEL_CHARS).contains(&channel.len()))
        .ok_or_else(|| ApiError::bad("relay_channel_required", "X-Model-Relay names no channel"))?;
    let (queue, response) = http_stream::open(&connection, WriteLimits::at(face.scale));
    let (seat, messages) = face.relay.join(channel);
    let ready = frames::relay("ready", &Ready { channel });
    let every = face.scale.scale(limits::RELAY_COMMENT_EVERY);
    let stopping = face.stopping.clone();
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = stopping.cancelled() => {}
            () = serve(&queue, ready, messages, every) => {}
        }
        drop(seat);
        queue.finish().await;
    });
    Ok(response)
}

async fn serve(
    queue: &FrameQueue,
    ready: bytes::Bytes,
    mut messages: mpsc::Receiver<Message>,
    every: Duration,
) {
    let mut comments = interval_at(Instant::now() + every, every);
    let mut frame = ready;
    while queue.push(frame).is_ok() {
        frame = tokio::select! {
            _ = queue.ended() => return,
            _ = comments.tick() => frames::comment("keep"),
            message = messages.recv() => match message {
                Some(message) => frames::relay(message.name(), &message),
                None => return,
            },
        };
    }
}

/// Takes one part of an answer: 204 acknowledges its bytes.
pub(super) async fn answer(
    State(face): State<Arc<Covel>>,
    Path((request_id, part)): Path<(String, String)>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let is_final = match part.as_str() {
        "chunk" => false,
        "end" | "error" => true,
        _ => return Err(ApiError::no_route(&part)),
    };
    Limited::new(body, RELAY_POST_BYTES)
        .collect()
        .await
        .map_err(|error| {
            if error.is::<LengthLimitError>() {
                ApiError::too_large()
            } else {
                ApiError::invalid(format!("the body broke off: {error}"))
            }
        })?;
    if face.relay.answer(&request_id, is_final) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        let error = format!("no open relayed request {request_id:?}");
        Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "relay_request_not_found",
            error,
        ))
    }
}
