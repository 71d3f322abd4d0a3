//! Answers the model requests that a shared server relays to a page, with a model on the player's own machine.
//!
//! ```text
//! relay stream ---> request ---> local model ---> pieces ---> batches of at most 256 KiB ---> POST .../chunk, .../end
//!              ---> cancel ---> nothing more is read or sent; a post that is under way may finish
//! ```
//!
//! A batch goes out when it is full, when 50 ms have passed since its first byte (or since the answer to the post
//! before it), or when the model has said everything. One post of an answer is under way at a time; answers do not
//! wait for one another. A 204 says that bytes were taken and nothing else, so nothing is shown because of it.
//!
//! Source: seed 000, lines 639 and 784-788.

use std::{collections::BTreeMap, future::pending, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, header};
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Sleep, sleep},
};
use turnwire_spec::{
    covel::limits::{RECONNECT_FIRST, RECONNECT_MAX, RELAY_BATCH, RELAY_POST_BYTES},
    sse::{Decoder, Limits},
};

use crate::http::{Response, send};

/// A page that relays.
#[derive(Clone, Debug)]
pub struct Page {
    /// Base URL of the server, without a slash at its end.
    pub server: String,
    /// Base URL of the local model; the path of a request is put behind it.
    pub local_model: String,
    /// The page's own channel id, the same for every connection of it.
    pub channel: String,
    /// Factor of the waits between connections. The 50 ms of a batch are not scaled.
    pub time_scale: f64,
}

/// A model request that the server has relayed.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Relayed {
    request_id: String,
    method: String,
    path: String,
    #[serde(default)]
    body: Value,
}

/// Relays as long as it is polled, connecting again whenever the stream has ended.
pub async fn run(page: Page) {
    let page = Arc::new(page);
    // Whoever stops polling this ends them too.
    let mut transfers = JoinSet::new();
    let mut wait = RECONNECT_FIRST;
    loop {
        let request = Request::builder()
            .header(header::ACCEPT, "text/event-stream")
            .header("X-Model-Relay", &page.channel);
        let url = format!("{}/api/model-relay/stream", page.server);
        if let Ok(stream) = send(&url, request, Bytes::new()).await
            && stream.status == http::StatusCode::OK
        {
            wait = RECONNECT_FIRST;
            listen(&page, stream, &mut transfers).await;
        }
        sleep(wait.mul_f64(page.time_scale)).await;
        wait = (wait * 2).min(RECONNECT_MAX);
    }
}

/// Follows one stream to its end.
async fn listen(page: &Arc<Page>, mut stream: Response, transfers: &mut JoinSet<()>) {
    let mut decoder = Decoder::new(Limits::NONE);
    let mut open: BTreeMap<String, watch::Sender<bool>> = BTreeMap::new();
    while let Ok(Some(bytes)) = stream.chunk().await {
        let mut events = Vec::new();
        // Without limits there is no overflow.
        let _ = decoder.feed(&bytes, |event| {
            events.push((event.event.to_owned(), event.data.to_owned()));
        });
        for (kind, data) in events {
            match kind.as_str() {
                "request" => {
                    if let Ok(relayed) = serde_json::from_str::<Relayed>(&data) {
                        open.retain(|_, cancel| !cancel.is_closed());
                        let (cancel, cancelled) = watch::channel(false);
                        open.insert(relayed.request_id.clone(), cancel);
                        while transfers.try_join_next().is_some() {}
                        transfers.spawn(transfer(Arc::clone(page), relayed, cancelled));
                    }
                }
                "cancel" => {
                    let asked: Value = serde_json::from_str(&data).unwrap_or_default();
                    let id = asked["requestId"].as_str().unwrap_or_default();
                    if let Some(cancel) = open.remove(id) {
                        let _ = cancel.send(true);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Asks the local model and posts what it says, until it has said everything or the request is taken back.
async fn transfer(page: Arc<Page>, relayed: Relayed, mut cancelled: watch::Receiver<bool>) {
    let mut watching = cancelled.clone();
    let asked = ask(&page, &relayed);
    let answer = tokio::select! {
        biased;
        () = cancellation(&mut watching) => return,
        answer = asked => answer,
    };
    let Some(mut answer) = answer else {
        post(&page, &relayed.request_id, "error", Bytes::new()).await;
        return;
    };
    let mut batch = Batch::default();
    loop {
        tokio::select! {
            biased;
            () = cancellation(&mut cancelled) => break,
            taken = under_way(&mut batch.posting) => {
                batch.posting = None;
                if !taken {
                    return;
                }
            }
            piece = answer.chunk(), if batch.has_room() => match piece {
                Ok(Some(piece)) => batch.waiting.extend_from_slice(&piece),
                Ok(None) => batch.whole = true,
                Err(_) => {
                    post(&page, &relayed.request_id, "error", Bytes::new()).await;
                    return;
                }
            },
            () = over(&mut batch.window) => batch.due = true,
        }
        if *cancelled.borrow() {
            break;
        }
        if let Some(bytes) = batch.next() {
            let (page, id) = (Arc::clone(&page), relayed.request_id.clone());
            let posting = async move { post(&page, &id, "chunk", bytes).await };
            batch.posting = Some(Box::pin(posting));
        }
        if batch.is_done() {
            post(&page, &relayed.request_id, "end", Bytes::new()).await;
            return;
        }
    }
    // It was taken back. A post that is under way may finish; nothing follows from it.
    if let Some(posting) = batch.posting {
        posting.await;
    }
}

type Posting = Pin<Box<dyn Future<Output = bool> + Send>>;

/// What is read and not posted yet.
#[derive(Default)]
struct Batch {
    waiting: Vec<u8>,
    /// The model has said everything.
    whole: bool,
    /// The post that is under way; whether it was taken.
    posting: Option<Posting>,
    /// Runs while bytes wait and no post is under way.
    window: Option<Pin<Box<Sleep>>>,
    due: bool,
}

impl Batch {
    fn has_room(&self) -> bool {
        !self.whole && self.waiting.len() < RELAY_POST_BYTES
    }

    /// The bytes that are to be posted now.
    fn next(&mut self) -> Option<Bytes> {
        if self.posting.is_some() || self.waiting.is_empty() {
            return None;
        }
        if !(self.due || self.whole || self.waiting.len() >= RELAY_POST_BYTES) {
            self.window
                .get_or_insert_with(|| Box::pin(sleep(RELAY_BATCH)));
            return None;
        }
        self.window = None;
        self.due = false;
        let length = self.waiting.len().min(RELAY_POST_BYTES);
        Some(self.waiting.drain(..length).collect())
    }

    fn is_done(&self) -> bool {
        self.whole && self.waiting.is_empty() && self.posting.is_none()
    }
}

async fn cancellation(cancelled: &mut watch::Receiver<bool>) {
    if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
        // Nobody can cancel any more: the stream is gone, and the answer is still wanted.
        pending().await
    }
}

async fn under_way(posting: &mut Option<Posting>) -> bool {
    match posting {
        Some(posting) => posting.await,
        None => pending().await,
    }
}

async fn over(window: &mut Option<Pin<Box<Sleep>>>) {
    match window {
        Some(window) => {
            window.await;
        }
        None => pending().await,
    }
}

/// Longest wait for the head of the local model's answer; models think long.
const MODEL_WITHIN: Duration = Duration::from_secs(600);

async fn ask(page: &Page, relayed: &Relayed) -> Option<Response> {
    let method = Method::from_bytes(relayed.method.as_bytes()).ok()?;
    let request = Request::builder()
        .method(method)
        .header(header::CONTENT_TYPE, "application/json");
    let url = format!("{}{}", page.local_model, relayed.path);
    let body = Bytes::from(relayed.body.to_string());
    let answer = tokio::time::timeout(MODEL_WITHIN, send(&url, request, body)).await;
    answer.ok()?.ok()
}

/// Posts a part of an answer; whether it was taken.
async fn post(page: &Page, id: &str, part: &str, bytes: Bytes) -> bool {
    let request = Request::builder()
        .method(Method::POST)
        .header(header::CONTENT_TYPE, "application/octet-stream");
    let url = format!("{}/api/model-relay/requests/{id}/{part}", page.server);
    let answer = send(&url, request, bytes).await;
    answer.is_ok_and(|answer| answer.status.is_success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_wait_for_their_window_and_not_for_more_bytes() {
        let mut batch = Batch::default();
        batch.waiting.extend_from_slice(b"ab");
        assert_eq!(batch.next(), None);
        over(&mut batch.window).await;
        batch.due = true;
        assert_eq!(batch.next().as_deref(), Some(&b"ab"[..]));
    }

    #[tokio::test]
    async fn a_full_batch_goes_at_once_and_is_no_larger_than_a_post() {
        let mut batch = Batch::default();
        batch.waiting.resize(RELAY_POST_BYTES + 1, 7);
        assert!(!batch.has_room());
        let bytes = batch.next().map(|bytes| bytes.len());
        assert_eq!(bytes, Some(RELAY_POST_BYTES));
        assert_eq!(batch.waiting.len(), 1);
    }

    #[tokio::test]
    async fn nothing_goes_while_a_post_is_under_way() {
        let mut batch = Batch {
            posting: Some(Box::pin(pending())),
            due: true,
            whole: true,
            ..Batch::default()
        };
        batch.waiting.push(1);
        assert_eq!(batch.next(), None);
        assert!(!batch.is_done());
    }
}
