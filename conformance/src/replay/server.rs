//! The server side of a transcript, for a client to talk to.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Limited};
use hyper::{body::Incoming, server::conn::http1 as server, service::service_fn};
use hyper_util::rt::TokioIo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    Timing,
    play::{Played, exchanges},
    words::Words,
};
use crate::transcript::{End, Transcript, diff::alike::Ids, text::redact};

/// Longest body of a request, in bytes.
const MAX_BODY: usize = 64 << 20;

/// How long a piece waits for the requests that came before it in the transcript.
const PATIENCE: Duration = Duration::from_secs(10);

/// How it is played.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// How fast.
    pub timing: Timing,
    /// Whether a request has to be the recorded one: target and body, but for ids. Else method and path are enough.
    pub strict: bool,
}

/// What became of it.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayReport {
    /// Exchanges of the transcript.
    pub exchanges: usize,
    /// Those that the client asked for.
    pub served: usize,
    /// Request lines of those that it did not ask for, in the order of the transcript.
    pub missing: Vec<String>,
    /// Requests that the transcript does not have, each with what was nearest.
    pub unexpected: Vec<String>,
}

impl ReplayReport {
    /// Whether the client sent every recorded request and no other.
    pub fn complete(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty()
    }
}

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct ReplayServer {
    address: SocketAddr,
    state: Arc<State>,
    accepting: AbortHandle,
}

#[derive(Debug)]
struct State {
    exchanges: Vec<Played>,
    timing: Timing,
    strict: bool,
    progress: Mutex<Progress>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Places of the exchanges that were asked for.
    asked: BTreeSet<usize>,
    /// Those of them that are over.
    over: BTreeSet<usize>,
    ids: Ids,
    words: Words,
    unexpected: Vec<String>,
}

impl ReplayServer {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// When the address cannot be listened on.
    pub async fn start(transcript: &Transcript, options: ReplayOptions) -> std::io::Result<Self> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let exchanges = exchanges(transcript);
        let state = Arc::new(State {
            exchanges: exchanges
                .into_iter()
                .filter(|found| found.head.is_some())
                .collect(),
            timing: options.timing,
            strict: options.strict,
            progress: Mutex::default(),
            changed: watch::Sender::new(()),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self {
            address,
            state,
            accepting: accepting.abort_handle(),
        })
    }

    /// Where clients find it, `http://HOST:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until every exchange was asked for and is over.
    pub async fn finished(&self) {
        let all = self.state.exchanges.len();
        self.state.wait(|progress| progress.over.len() >= all).await;
    }

    /// What became of it so far.
    pub fn report(&self) -> ReplayReport {
        let progress = self.state.progress();
        let line = |played: &Played| {
            redact(&format!(
                "{} {}",
                played.request.method, played.request.target
            ))
        };
        let missing = self.state.exchanges.iter().enumerate();
        ReplayReport {
            exchanges: self.state.exchanges.len(),
            served: progress.asked.len(),
            missing: missing
                .filter(|(place, _)| !progress.asked.contains(place))
                .map(|(_, played)| line(played))
                .collect(),
            unexpected: progress.unexpected.clone(),
        }
    }
}

impl Drop for ReplayServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, Arc::clone(&state)));
            }
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { state.answer(request).await }
    });
    // How a connection ends is what the transcript says, or the client's affair.
    let _ = server::Builder::new()
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// A request as it came.
struct Asked {
    method: String,
    target: String,
    body: Bytes,
}

impl Asked {
    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

/// The client broke off before its request was whole, or the transcript has no such answer.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("the request is not whole")]
    Request,
    #[error("the connection breaks here, as the transcript says")]
    Cut,
}

impl State {
    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait(&self, ready: impl Fn(&Progress) -> bool) {
        let mut changes = self.changed.subscribe();
        loop {
            changes.mark_unchanged();
            if ready(&self.progress()) || changes.changed().await.is_err() {
                return;
            }
        }
    }

    async fn answer(
        self: Arc<Self>,
        incoming: http::Request<Incoming>,
    ) -> Result<http::Response<Replayed>, Unanswered> {
        let (parts, body) = incoming.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await;
        let target = parts
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let asked = Asked {
            method: parts.method.to_string(),
            target: target.to_owned(),
            body: body.map_err(|_| Unanswered::Request)?.to_bytes(),
        };
        let begun = Instant::now();
        let Some(place) = self.place(&asked) else {
            return Ok(self.unknown(&asked));
        };
        self.changed.send_replace(());
        let Some(played) = self.exchanges.get(place) else {
            return Err(Unanswered::Cut);
        };
        let Some(head) = &played.head else {
            return Err(Unanswered::Cut);
        };
        self.until(begun, head.after, head.opened_before).await;
        let words = self.progress().words.clone();
        let length = whole_length(played, &words);
        let mut response = http::Response::new(Replayed::start(
            Arc::clone(&self),
            place,
            begun,
            length.is_none(),
        ));
        *response.status_mut() = StatusCode::from_u16(head.what.status).unwrap_or(StatusCode::OK);
        for (name, value) in &head.what.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_str(&words.say_text(value));
            if let (Ok(name), Ok(value)) = (name, value)
                && !OWN.contains(&name)
            {
                response.headers_mut().append(name, value);
            }
        }
        if let Some(length) = length {
            response
                .headers_mut()
                .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        Ok(response)
    }

    /// Which exchange a request is, and what its ids stand for. Of equals the first that was not asked for; without
    /// strictness one that was, when there is no other.
    fn place(&self, asked: &Asked) -> Option<usize> {
        let mut progress = self.progress();
        let strict = self
            .exchanges
            .iter()
            .enumerate()
            .find_map(|(place, played)| {
                let mut ids = progress.ids.clone();
                let fits = !progress.asked.contains(&place) && is_the_same(played, asked, &mut ids);
                fits.then_some((place, ids))
            });
        let place = match strict {
            Some((place, ids)) => {
                progress.ids = ids;
                Some(place)
            }
            None if self.strict => None,
            None => {
                let like = |place: &usize| {
                    self.exchanges
                        .get(*place)
                        .is_some_and(|played| is_alike(played, asked, &progress.ids))
                };
                let all = 0..self.exchanges.len();
                let fresh = all
                    .clone()
                    .filter(|place| !progress.asked.contains(place))
                    .find(like);
                fresh.or_else(|| all.rev().find(like))
            }
        }?;
        let played = self.exchanges.get(place)?;
        progress.asked.insert(place);
        progress
            .words
            .learn_text(&played.request.target, &asked.target);
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
        if let (Some(recorded), Some(now)) = (json(&played.request.body), json(&asked.body)) {
            progress.words.learn_request(&recorded, &now);
        }
        Some(place)
    }

    fn unknown(&self, asked: &Asked) -> http::Response<Replayed> {
        let line = redact(&format!("{} {}", asked.method, asked.target));
        let mut progress = self.progress();
        let open = self.exchanges.iter().enumerate();
        let nearest = open
            .filter(|(place, _)| !progress.asked.contains(place))
            .map(|(_, played)| format!("{} {}", played.request.method, played.request.target))
            .max_by(|a, b| {
                let likeness = |text: &str| strsim::normalized_damerau_levenshtein(&line, text);
                likeness(a).total_cmp(&likeness(b))
            });
        let nearest = nearest.map_or_else(
            || "every exchange was asked for".to_owned(),
            |nearest| format!("nearest is {}", redact(&nearest)),
        );
        let words = format!("{line}: not in the transcript; {nearest}");
        progress.unexpected.push(words.clone());
        let mut response = http::Response::new(Replayed::words(&words));
        *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
        response
    }

    /// Waits until this long after the request, and until what came before in the transcript has come.
    async fn until(&self, begun: Instant, after: Duration, opened_before: usize) {
        let due = begun.checked_add(self.timing.of(after)).unwrap_or(begun);
        sleep_until(due).await;
        let came = self.wait(|progress| {
            (0..opened_before.min(self.exchanges.len()))
                .all(|place| progress.asked.contains(&place))
        });
        // A client that leaves a request out shall see the rest all the same.
        let _ = timeout(PATIENCE, came).await;
    }

    fn over(&self, place: usize) {
        self.progress().over.insert(place);
        self.changed.send_replace(());
    }
}

/// Headers that this server writes itself.
const OWN: [HeaderName; 4] = [
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
];

/// The length of the body, where it came to its end and was no stream.
fn whole_length(played: &Played, words: &Words) -> Option<usize> {
    let head = played.head.as_ref()?;
    let ended = matches!(
        played.end.as_ref().map(|end| &end.what),
        Some(End::Complete)
    );
    let stream = crate::transcript::is_event_stream(&head.what.headers);
    (ended && !stream).then(|| {
        played
            .body
            .iter()
            .map(|piece| words.say(&piece.what).len())
            .sum()
    })
}

/// Whether a request is the recorded one, but for ids.
fn is_the_same(played: &Played, asked: &Asked, ids: &mut Ids) -> bool {
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        crate::transcript::diff::canonical(&text)
    };
    played.request.method == asked.method
        && ids.alike(&played.request.target, &asked.target)
        && ids.alike(&text(&played.request.body), &text(&asked.body))
}

/// Whether a request has the recorded method and path.
fn is_alike(played: &Played, asked: &Asked, ids: &Ids) -> bool {
    let path = played.request.target.split('?').next().unwrap_or_default();
    played.request.method == asked.method && ids.clone().alike(path, asked.path())
}

/// A body as the transcript has it.
struct Replayed {
    pieces: mpsc::Receiver<Result<Bytes, ()>>,
    task: Option<AbortHandle>,
    over: Option<(Arc<State>, usize)>,
}

impl Replayed {
    fn start(state: Arc<State>, place: usize, begun: Instant, may_hang: bool) -> Self {
        let (sink, pieces) = mpsc::channel(1);
        let task = tokio::spawn(pour(Arc::clone(&state), place, begun, sink, may_hang));
        Self {
            pieces,
            task: Some(task.abort_handle()),
            over: Some((state, place)),
        }
    }

    fn words(text: &str) -> Self {
        let (sink, pieces) = mpsc::channel(1);
        // There is room for one.
        let _ = sink.try_send(Ok(Bytes::from(format!("{text}\n"))));
        Self {
            pieces,
            task: None,
            over: None,
        }
    }
}

impl Drop for Replayed {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        if let Some((state, place)) = self.over.take() {
            state.over(place);
        }
    }
}

async fn pour(
    state: Arc<State>,
    place: usize,
    begun: Instant,
    sink: mpsc::Sender<Result<Bytes, ()>>,
    may_hang: bool,
) {
    let Some(played) = state.exchanges.get(place) else {
        return;
    };
    for piece in &played.body {
        state.until(begun, piece.after, piece.opened_before).await;
        let words = state.progress().words.clone();
        if sink.send(Ok(words.say(&piece.what).into())).await.is_err() {
            return;
        }
    }
    match &played.end {
        Some(end) if matches!(end.what, End::Complete) => {
            state.until(begun, end.after, end.opened_before).await;
        }
        Some(end) if matches!(end.what, End::Broken(_) | End::NotHttp(_)) => {
            state.until(begun, end.after, end.opened_before).await;
            let _ = sink.send(Err(())).await;
        }
        // The client closed it, or nobody did.
        _ if may_hang => sink.closed().await,
        _ => {}
    }
}

impl Body for Replayed {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.pieces.poll_recv(context).map(|piece| {
            piece.map(|piece| match piece {
                Ok(bytes) => Ok(Frame::data(bytes)),
                Err(()) => Err(std::io::Error::other(Unanswered::Cut)),
            })
        })
    }
}
