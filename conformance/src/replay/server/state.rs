//! What was asked for and said so far, and what it is in the transcript.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::{body::Incoming, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_util::sync::CancellationToken;

use super::{
    ReplayReport,
    body::Replayed,
    channel::{Speech, converse},
};
use crate::{
    replay::{
        Timing,
        play::{Piece, Played, Script},
        said::Said,
        words::Words,
    },
    transcript::{
        End, Request, ResponseHead, WsFrame,
        diff::{alike::Ids, body_changes},
        text::redact,
    },
};

/// Longest body of a request, in bytes.
const MAX_BODY: usize = 64 << 20;

/// Without strictness, how long a piece waits for what the client did before it in the transcript.
const PATIENCE: Duration = Duration::from_secs(10);

/// What all connections share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) script: Script,
    timing: Timing,
    strict: bool,
    progress: Mutex<Progress>,
    changed: watch::Sender<()>,
    /// Conversations end when the server stops.
    pub(super) stopping: CancellationToken,
}

#[derive(Debug, Default)]
struct Progress {
    /// Places of the exchanges that were asked for.
    asked: BTreeSet<usize>,
    /// Those of them that are over.
    over: BTreeSet<usize>,
    /// When each act was done, or not waited for any more.
    acted: Vec<Option<Instant>>,
    /// Acts that were done.
    done: BTreeSet<usize>,
    ids: Ids,
    words: Words,
    unexpected: Vec<String>,
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

    /// The request line as it may be shown.
    fn line(&self) -> String {
        redact(&format!("{} {}", self.method, self.target))
    }
}

/// The client broke off before its request was whole, or the transcript has no such answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    #[error("the request is not whole")]
    Request,
    #[error("the connection breaks here, as the transcript says")]
    Cut,
}

/// What became of something that a client said.
#[derive(Debug)]
pub(super) enum Heard {
    /// It stands in the transcript, or does no harm.
    Taken,
    /// It does not; nothing more is said to this client.
    Refused(String),
}

/// What a client needs to switch to WebSocket.
struct Switch {
    key: Option<HeaderValue>,
    upgrade: Option<OnUpgrade>,
}

impl State {
    pub(super) fn new(script: Script, timing: Timing, strict: bool) -> Self {
        let progress = Progress {
            acted: vec![None; script.acts.len()],
            ..Progress::default()
        };
        Self {
            script,
            timing,
            strict,
            progress: Mutex::new(progress),
            changed: watch::Sender::new(()),
            stopping: CancellationToken::new(),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
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

    /// Waits until every exchange was asked for and is over.
    pub(super) async fn finished(&self) {
        let all = self.script.exchanges.len();
        self.wait(|progress| progress.over.len() >= all).await;
    }

    /// What stands for what by now.
    pub(super) fn words(&self) -> Words {
        self.progress().words.clone()
    }

    /// Notes that the exchange at this place is over. A close that has not come by then does not come.
    pub(super) fn over(&self, place: usize) {
        let mut progress = self.progress();
        progress.over.insert(place);
        for (number, said) in self.script.said_at(place) {
            if said.is_close() {
                progress.happened(number);
            }
        }
        drop(progress);
        self.changed.send_replace(());
    }

    /// Notes that the client will say nothing more on the channel at this place.
    pub(super) fn nothing_more(&self, place: usize) {
        let mut progress = self.progress();
        for (number, _) in self.script.said_at(place) {
            progress.happened(number);
        }
        drop(progress);
        self.changed.send_replace(());
    }

    /// Waits until the client has done what it had done before this piece, and as long as it took then.
    pub(super) async fn until<T>(&self, piece: &Piece<T>) {
        let came = self.wait(|progress| {
            let before = progress.acted.iter().take(piece.acts_before);
            before.into_iter().all(Option::is_some)
        });
        if self.strict {
            came.await;
        } else if timeout(PATIENCE, came).await.is_err() {
            // A client that leaves something out shall see the rest all the same.
            let mut progress = self.progress();
            (0..piece.acts_before).for_each(|act| progress.happened(act));
            drop(progress);
            self.changed.send_replace(());
        }
        let last = piece.acts_before.checked_sub(1);
        let since = last.and_then(|last| self.progress().acted.get(last).copied().flatten());
        let since = since.unwrap_or_else(Instant::now);
        let due = since.checked_add(self.timing.of(piece.after));
        sleep_until(due.unwrap_or(since)).await;
    }

    /// Answers a request.
    pub(super) async fn answer(
        self: Arc<Self>,
        mut incoming: http::Request<Incoming>,
    ) -> Result<http::Response<Replayed>, Unanswered> {
        let switch = Switch {
            upgrade: incoming.extensions_mut().remove::<OnUpgrade>(),
            key: incoming.headers().get(header::SEC_WEBSOCKET_KEY).cloned(),
        };
        let (parts, body) = incoming.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await;
        let target = parts
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let mut asked = Asked {
            method: parts.method.to_string(),
            target: target.to_owned(),
            body: Bytes::new(),
        };
        match body {
            Ok(body) => asked.body = body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Ok(self.too_long(&asked)),
            Err(_) => return Err(Unanswered::Request),
        }
        let Some(place) = self.place(&asked) else {
            return Ok(self.unknown(&asked));
        };
        self.changed.send_replace(());
        let Some(played) = self.script.exchanges.get(place) else {
            return Err(Unanswered::Cut);
        };
        let Some(head) = &played.head else {
            return Err(Unanswered::Cut);
        };
        self.until(head).await;
        if head.what.status == StatusCode::SWITCHING_PROTOCOLS.as_u16() {
            return Ok(Arc::clone(&self).switch(place, &head.what, switch));
        }
        let words = self.words();
        let length = announced(&asked, &head.what).or_else(|| whole_length(played, &words));
        let body = Replayed::start(Arc::clone(&self), place, length.is_none());
        let mut response = response(&head.what, &words, body);
        let bodiless = matches!(head.what.status, 204 | 304);
        if let Some(length) = length.filter(|_| !bodiless) {
            response
                .headers_mut()
                .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        Ok(response)
    }

    /// Goes on as a WebSocket.
    fn switch(
        self: Arc<Self>,
        place: usize,
        head: &ResponseHead,
        switch: Switch,
    ) -> http::Response<Replayed> {
        let (Some(key), Some(upgrade)) = (switch.key, switch.upgrade) else {
            self.over(place);
            let words = "the transcript has a WebSocket here";
            let mut response = http::Response::new(Replayed::words(words));
            *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
            return response;
        };
        let mut response = response(head, &self.words(), Replayed::nothing());
        let headers = response.headers_mut();
        let own = [
            (header::UPGRADE, "websocket".to_owned()),
            (header::CONNECTION, "upgrade".to_owned()),
            (
                header::SEC_WEBSOCKET_ACCEPT,
                derive_accept_key(key.as_bytes()),
            ),
        ];
        for (name, value) in own {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
        let stopping = self.stopping.clone();
        tokio::spawn(async move {
            let talking = async {
                match upgrade.await {
                    Ok(io) => {
                        let (from, to) = tokio::io::split(TokioIo::new(io));
                        converse(self, place, Speech::Frames, from, to).await;
                    }
                    Err(_) => self.over(place),
                }
            };
            stopping.run_until_cancelled(talking).await;
        });
        response
    }

    /// Takes the next channel of lines for a client that has connected.
    pub(super) fn connect(&self) -> Option<usize> {
        let mut progress = self.progress();
        let mut all = self.script.exchanges.iter().enumerate();
        let next =
            all.find(|(place, played)| played.request.is_none() && !progress.asked.contains(place));
        let Some((place, played)) = next else {
            let words = "a connection: the transcript has no more channels of lines".to_owned();
            progress.unexpected.push(words);
            return None;
        };
        progress.asked.insert(place);
        progress.happened(played.opened_by);
        drop(progress);
        self.changed.send_replace(());
        Some(place)
    }

    /// The close frame that the server sent on the channel at this place.
    pub(super) fn close_at(&self, place: usize) -> Option<WsFrame> {
        let played = self.script.exchanges.get(place)?;
        played.said.iter().find_map(|piece| match &piece.what {
            Said::Frame(close @ WsFrame::Close(_)) => Some(close.clone()),
            _ => None,
        })
    }

    /// Holds something that a client said against the transcript. With strictness it has to be what came next, but
    /// for ids; else it is the first of its kind that has not been said, and one that has been said does no harm.
    pub(super) fn heard(&self, place: usize, said: &Said) -> Heard {
        let mut progress = self.progress();
        let open: Vec<(usize, &Said)> = self
            .script
            .said_at(place)
            .filter(|(number, _)| !progress.done.contains(number))
            .collect();
        let considered = if self.strict && !said.is_close() {
            open.iter().take(1)
        } else {
            open.iter().take(usize::MAX)
        };
        let same = considered.copied().find_map(|(number, recorded)| {
            let mut ids = progress.ids.clone();
            let fits = recorded.label() == said.label()
                && (said.is_close() || ids.alike(&recorded.canonical(), &said.canonical()));
            fits.then_some((number, recorded, ids))
        });
        let found = match same {
            Some((number, recorded, ids)) => {
                progress.ids = ids;
                Some((number, recorded))
            }
            None if self.strict => None,
            None => {
                let kind = said.label();
                open.iter()
                    .copied()
                    .find(|(_, recorded)| recorded.label() == kind)
            }
        };
        if let Some((number, recorded)) = found {
            progress.done.insert(number);
            progress.happened(number);
            match (recorded.json(), said.json()) {
                (Some(recorded), Some(now)) => progress.words.learn_request(&recorded, &now),
                _ => progress.words.learn_text(
                    recorded.text().unwrap_or_default(),
                    said.text().unwrap_or_default(),
                ),
            }
            drop(progress);
            self.changed.send_replace(());
            return Heard::Taken;
        }
        let known = !self.strict && {
            let kind = said.label();
            self.script
                .said_at(place)
                .any(|(_, recorded)| recorded.label() == kind)
        };
        if known || said.is_close() {
            return Heard::Taken;
        }
        let next = open.first().map_or_else(
            || "nothing more was said".to_owned(),
            |(_, recorded)| format!("next is {}", recorded.shown()),
        );
        let words = redact(&format!("{}: not in the transcript; {next}", said.shown()));
        progress.unexpected.push(words.clone());
        if self.strict {
            Heard::Refused(words)
        } else {
            Heard::Taken
        }
    }

    /// Which exchange a request is, and what its ids stand for. Of equals the first that was not asked for; without
    /// strictness one that was, when there is no other.
    fn place(&self, asked: &Asked) -> Option<usize> {
        let mut progress = self.progress();
        let requests = || {
            let all = self.script.exchanges.iter().enumerate();
            all.filter_map(|(place, played)| Some((place, played.request.as_ref()?)))
        };
        let strict = requests().find_map(|(place, request)| {
            let mut ids = progress.ids.clone();
            let fits = !progress.asked.contains(&place) && is_the_same(request, asked, &mut ids);
            fits.then_some((place, ids))
        });
        let place = match strict {
            Some((place, ids)) => {
                progress.ids = ids;
                Some(place)
            }
            None if self.strict => None,
            None => {
                let like: Vec<usize> = requests()
                    .filter(|(_, request)| is_alike(request, asked, &progress.ids))
                    .map(|(place, _)| place)
                    .collect();
                let fresh = like.iter().find(|place| !progress.asked.contains(place));
                fresh.or(like.last()).copied()
            }
        }?;
        let played = self.script.exchanges.get(place)?;
        let request = played.request.as_ref()?;
        progress.asked.insert(place);
        progress.done.insert(played.opened_by);
        progress.happened(played.opened_by);
        progress.words.learn_text(&request.target, &asked.target);
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
        if let (Some(recorded), Some(now)) = (json(&request.body), json(&asked.body)) {
            progress.words.learn_request(&recorded, &now);
        }
        Some(place)
    }

    fn unknown(&self, asked: &Asked) -> http::Response<Replayed> {
        let line = asked.line();
        let progress = self.progress();
        let open = self.script.exchanges.iter().enumerate();
        let nearest = open
            .filter(|(place, _)| !progress.asked.contains(place))
            .filter_map(|(_, played)| played.request.as_ref())
            .max_by(|a, b| {
                let likeness = |request: &Request| {
                    let text = format!("{} {}", request.method, request.target);
                    strsim::normalized_damerau_levenshtein(&line, &text)
                };
                likeness(a).total_cmp(&likeness(b))
            });
        let nearest = nearest.map_or_else(
            || "every exchange was asked for".to_owned(),
            |nearest| {
                let named = redact(&format!("{} {}", nearest.method, nearest.target));
                let body = difference(nearest, asked, &progress.ids);
                format!("nearest is {named}{}", body.unwrap_or_default())
            },
        );
        drop(progress);
        let words = format!("{line}: not in the transcript; {nearest}");
        self.refused(words, StatusCode::NOT_IMPLEMENTED)
    }

    fn too_long(&self, asked: &Asked) -> http::Response<Replayed> {
        let most = MAX_BODY >> 20;
        let words = format!("{}: its body is longer than {most} MiB", asked.line());
        self.refused(words, StatusCode::PAYLOAD_TOO_LARGE)
    }

    /// Notes a request that the transcript does not have.
    fn refused(&self, words: String, status: StatusCode) -> http::Response<Replayed> {
        let mut response = http::Response::new(Replayed::words(&words));
        *response.status_mut() = status;
        self.progress().unexpected.push(words);
        response
    }

    /// What became of it so far.
    pub(super) fn report(&self) -> ReplayReport {
        let progress = self.progress();
        let messages = self
            .script
            .acts
            .iter()
            .enumerate()
            .filter_map(|(number, act)| {
                let said = act.said.as_ref().filter(|said| !said.is_close())?;
                Some((number, act.place, said))
            });
        let (mut count, mut heard) = (0, 0);
        let mut missing: Vec<String> = Vec::new();
        for (place, played) in self.script.exchanges.iter().enumerate() {
            if !progress.asked.contains(&place) {
                missing.push(redact(&name(played)));
            }
        }
        for (number, place, said) in messages {
            count += 1;
            if progress.done.contains(&number) {
                heard += 1;
            } else if let Some(played) = self.script.exchanges.get(place)
                && progress.asked.contains(&place)
            {
                missing.push(redact(&format!("{}: {}", name(played), said.shown())));
            }
        }
        ReplayReport {
            exchanges: self.script.exchanges.len(),
            served: progress.asked.len(),
            messages: count,
            heard,
            missing,
            unexpected: progress.unexpected.clone(),
        }
    }
}

impl Progress {
    /// Notes that an act was done, or is not waited for any more.
    fn happened(&mut self, act: usize) {
        if let Some(when) = self.acted.get_mut(act) {
            when.get_or_insert_with(Instant::now);
        }
    }
}

/// An exchange in a report.
fn name(played: &Played) -> String {
    match &played.request {
        Some(request) => format!("{} {}", request.method, request.target),
        None => format!("channel {}", played.id.0),
    }
}

/// A response with the headers of the transcript.
fn response(head: &ResponseHead, words: &Words, body: Replayed) -> http::Response<Replayed> {
    let mut response = http::Response::new(body);
    *response.status_mut() = StatusCode::from_u16(head.status).unwrap_or(StatusCode::OK);
    for (name, value) in &head.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_str(&words.say_text(value));
        if let (Ok(name), Ok(value)) = (name, value)
            && !OWN.contains(&name)
        {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// Headers that this server writes itself.
const OWN: [HeaderName; 6] = [
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::SEC_WEBSOCKET_ACCEPT,
    header::SEC_WEBSOCKET_EXTENSIONS,
];

/// The length that the answer to `HEAD` announces.
fn announced(asked: &Asked, head: &ResponseHead) -> Option<usize> {
    let length = crate::transcript::header(&head.headers, "content-length")?;
    length.parse().ok().filter(|_| asked.method == "HEAD")
}

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
fn is_the_same(recorded: &Request, asked: &Asked, ids: &mut Ids) -> bool {
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        crate::transcript::diff::canonical(&text)
    };
    recorded.method == asked.method
        && ids.alike(&recorded.target, &asked.target)
        && ids.alike(&text(&recorded.body), &text(&asked.body))
}

/// What the body of a request has that the recorded one with the same line has not.
fn difference(recorded: &Request, asked: &Asked, ids: &Ids) -> Option<String> {
    let alike =
        recorded.method == asked.method && ids.clone().alike(&recorded.target, &asked.target);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let changes = body_changes(&text(&recorded.body), &text(&asked.body), ids);
    let change = changes.first().filter(|_| alike)?;
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let (was, is) = (value(&change.a), value(&change.b));
    let at = Some(change.at.as_str()).filter(|at| !at.is_empty());
    let words = format!(
        ", whose body has {}{} {was} and not {is}",
        at.unwrap_or_default(),
        if at.is_some() { ":" } else { "" }
    );
    Some(redact(&words.replace("  ", " ")))
}

/// Whether a request has the recorded method and path.
fn is_alike(recorded: &Request, asked: &Asked, ids: &Ids) -> bool {
    let path = recorded.target.split('?').next().unwrap_or_default();
    recorded.method == asked.method && ids.clone().alike(path, asked.path())
}
