//! What a saboteur is to the proxy.
//!
//! A [`Saboteur`] is asked three things of every request: what the target gets to see of it, whether the
//! target is asked at all, and what becomes of the response. A stream is changed frame by frame by a
//! [`FrameRewriter`], one for each response. All have defaults that change nothing.
//!
//! Nothing here does I/O or reads a clock: a rewriter says what happens next in an [`Out`], and the proxy
//! does it. All times are those of the protocol, before scaling.

use std::{collections::VecDeque, ops::Deref, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use turnwire_spec::{catalogue::rule::StreamKind, sse::Frame};

use super::channel::{ChannelInfo, MessageRewriter};

use crate::transcript::{Request, ResponseHead, views::stream::kind_of_request};

/// One deliberate fault. It serves many connections at once; what it remembers is behind a lock.
pub trait Saboteur: Send + Sync {
    /// Changes the request before the target sees it. `info` stays as the harness sent it.
    fn request(&self, info: &RequestInfo, request: &mut Request) {
        let _ = (info, request);
    }

    /// Answers in place of the target, which then never sees the request.
    fn answer(&self, info: &RequestInfo) -> Option<Answer> {
        let _ = info;
        None
    }

    /// Changes the response head before it is sent, and says how the body is treated.
    fn response(&self, info: &RequestInfo, head: &mut ResponseHead) -> Treatment {
        let _ = (info, head);
        Treatment::pass()
    }

    /// A message channel opens. With a rewriter, its messages are rewritten; without one it passes untouched.
    fn channel(&self, info: &ChannelInfo) -> Option<Box<dyn MessageRewriter>> {
        let _ = info;
        None
    }

    /// Requests that the peer gets besides this one, as if a faulty testee had sent them too.
    fn more(&self, info: &RequestInfo) -> Vec<More> {
        let _ = info;
        Vec::new()
    }

    /// Changes what a testee reports. Null takes the report away: then the testee never says anything.
    fn report(&self, report: &mut Value) {
        let _ = report;
    }
}

/// The saboteur that breaks nothing.
#[derive(Clone, Copy, Debug)]
pub struct Conformant;

impl Saboteur for Conformant {}

/// A request that a testee did not send.
#[derive(Clone, Debug)]
pub struct More {
    /// How long after the one that provoked it, before scaling.
    pub after: Duration,
    /// The request.
    pub request: Request,
}

/// A request as the harness sent it.
#[derive(Clone, Debug, Default)]
pub struct RequestInfo {
    /// The request.
    pub request: Request,
    /// Its position among the requests of this proxy, from 0.
    pub number: u64,
}

impl Deref for RequestInfo {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.request
    }
}

impl RequestInfo {
    /// A query parameter, or else a member of the JSON body.
    pub fn parameter(&self, name: &str) -> Option<Value> {
        self.query(name)
            .map(Value::from)
            .or_else(|| self.json()?.get(name).cloned())
    }

    /// Which of the protocol's streams it opens.
    pub fn stream(&self) -> Option<StreamKind> {
        kind_of_request(&self.request.method, self.path())
    }

    /// The session that it names, in the query, the body, or the path after `sessions`.
    pub fn session(&self) -> Option<String> {
        let named = self
            .parameter("sessionId")
            .and_then(|value| value.as_str().map(str::to_owned));
        named.or_else(|| {
            let mut parts = self
                .path()
                .split('/')
                .skip_while(|part| *part != "sessions")
                .skip(1);
            parts
                .next()
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
        })
    }
}

/// A whole answer in place of the target's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Status and headers.
    pub head: ResponseHead,
    /// Body.
    pub body: Bytes,
    /// Keeps the response open after the body.
    pub hold_open: bool,
}

impl Answer {
    /// An answer with this status and body; the content type is that of JSON when the body is JSON.
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok();
        let media = if is_json {
            "application/json"
        } else {
            "text/plain; charset=utf-8"
        };
        let headers = if body.is_empty() {
            Vec::new()
        } else {
            vec![("content-type".to_owned(), media.to_owned())]
        };
        Self {
            head: ResponseHead { status, headers },
            body,
            hold_open: false,
        }
    }

    /// With a header, which replaces one of the same name.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        set_header(&mut self.head.headers, name, value);
        self
    }
}

/// Sets a header to one value.
pub fn set_header(headers: &mut Vec<(String, String)>, name: &str, value: &str) {
    drop_header(headers, name);
    headers.push((name.to_owned(), value.to_owned()));
}

/// Removes a header, ignoring case.
pub fn drop_header(headers: &mut Vec<(String, String)>, name: &str) {
    headers.retain(|(key, _)| !key.eq_ignore_ascii_case(name));
}

/// What becomes of a response body.
#[derive(Debug, Default)]
pub struct Treatment {
    /// How its bytes change.
    pub edit: Edit,
    /// The response, head included, is held back for so long.
    pub delay: Duration,
    /// The body is held back until its end and sent in one piece.
    pub buffer: bool,
    /// The response stays open after its end.
    pub hold_open: bool,
    /// The connection is cut after this many body bytes.
    pub cut_after: Option<u64>,
}

/// How the bytes of a body change.
#[derive(Default)]
pub enum Edit {
    /// Not at all.
    #[default]
    Pass,
    /// As a whole, once all of it is there.
    Whole(Box<dyn FnOnce(Vec<u8>) -> Vec<u8> + Send>),
    /// Frame by frame.
    Frames(Box<dyn FrameRewriter>),
}

impl std::fmt::Debug for Edit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pass => "Pass",
            Self::Whole(_) => "Whole",
            Self::Frames(_) => "Frames",
        })
    }
}

impl Treatment {
    /// The body stays as it is.
    pub fn pass() -> Self {
        Self::default()
    }

    /// The body is replaced by what the function makes of it.
    pub fn whole(change: impl FnOnce(Vec<u8>) -> Vec<u8> + Send + 'static) -> Self {
        Self {
            edit: Edit::Whole(Box::new(change)),
            ..Self::default()
        }
    }

    /// The JSON of the body is changed; a body that is none stays as it is.
    pub fn json(change: impl FnOnce(&mut Value) + Send + 'static) -> Self {
        Self::whole(move |body| match serde_json::from_slice(&body) {
            Ok(mut document) => {
                change(&mut document);
                document.to_string().into_bytes()
            }
            Err(_) => body,
        })
    }

    /// The body is an event stream, rewritten frame by frame.
    pub fn frames(rewriter: impl FrameRewriter + 'static) -> Self {
        Self {
            edit: Edit::Frames(Box::new(rewriter)),
            ..Self::default()
        }
    }

    /// The body is an event stream; the function says what becomes of each frame.
    pub fn each_frame(change: impl FnMut(&Frame, &mut Out) + Send + 'static) -> Self {
        Self::frames(Each(change))
    }
}

/// Rewrites one event stream. It sees complete frames only; what is not complete at the end passes as it is.
pub trait FrameRewriter: Send {
    /// The stream is open; nothing has come yet.
    fn open(&mut self, out: &mut Out) {
        let _ = out;
    }

    /// The target sent a frame (an event, or comments). By default it passes.
    fn frame(&mut self, frame: &Frame, out: &mut Out) {
        out.pass(frame);
    }

    /// When [`FrameRewriter::tick`] is wanted, on the clock of [`Out::elapsed`]. Asked again after each call.
    fn wake(&self) -> Option<Duration> {
        None
    }

    /// The time of [`FrameRewriter::wake`] has come.
    fn tick(&mut self, out: &mut Out) {
        let _ = out;
    }

    /// The target ended the stream cleanly; so will the proxy after this.
    fn end(&mut self, out: &mut Out) {
        let _ = out;
    }
}

struct Each<F>(F);

impl<F: FnMut(&Frame, &mut Out) + Send> FrameRewriter for Each<F> {
    fn frame(&mut self, frame: &Frame, out: &mut Out) {
        (self.0)(frame, out);
    }
}

/// What happens next on a stream, in order.
#[derive(Debug, Default)]
pub struct Out {
    elapsed: Duration,
    pub(super) steps: VecDeque<Step>,
}

/// One thing that happens on a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// These bytes are sent.
    Send(Bytes),
    /// Everything waits for so long, before scaling.
    Wait(Duration),
    /// The stream ends cleanly.
    End,
    /// The connection is cut.
    Cut,
}

impl Out {
    /// Nothing happens yet; `elapsed` is what [`Out::elapsed`] tells.
    pub fn at(elapsed: Duration) -> Self {
        Self {
            elapsed,
            steps: VecDeque::new(),
        }
    }

    /// Time since the stream was opened, before scaling.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Sends a frame as it is.
    pub fn pass(&mut self, frame: &Frame) {
        self.send(frame.to_bytes());
    }

    /// Sends bytes, such as whole frames with their blank lines.
    pub fn send(&mut self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.steps.push_back(Step::Send(bytes));
        }
    }

    /// Holds back what follows for so long, before scaling.
    pub fn wait(&mut self, time: Duration) {
        self.steps.push_back(Step::Wait(time));
    }

    /// Ends the stream cleanly, to the harness and to the target.
    pub fn end(&mut self) {
        self.steps.push_back(Step::End);
    }

    /// Cuts the connection in the middle of the response.
    pub fn cut(&mut self) {
        self.steps.push_back(Step::Cut);
    }

    /// What was sent so far, for tests of rewriters: bytes, with `<wait 5ms>`, `<end>` and `<cut>` between.
    pub fn transcript(&self) -> String {
        let text = |step: &Step| match step {
            Step::Send(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Step::Wait(time) => format!("<wait {time:?}>"),
            Step::End => "<end>".to_owned(),
            Step::Cut => "<cut>".to_owned(),
        };
        self.steps.iter().map(text).collect()
    }
}
