//! A reader of event streams that reconnects, as an `EventSource` does.
//!
//! ```text
//!                 200 and text/event-stream
//! Connecting ----------------------------------> Open
//!     ^  |  any other answer: Closed              |
//!     |  |  301, 302, 303, 307, 308: same again   | the stream ends or breaks,
//!     |  |  no answer: waits, same again          | or there was no answer
//!     +--------- waits the reconnection time <----+
//! ```
//!
//! [`Core`] holds what outlives a connection, the last event id and the reconnection time, and decides; [`read`]
//! does what it says. Cutting the stream into events is [`turnwire_spec::sse::Decoder`]'s.
//!
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html#sse-processing-model>

use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use turnwire_spec::sse::{Decoder, Event, Limits};

use crate::http::{Response, resolve, send};

/// Reconnection time until the stream sets another. The standard leaves it to the reader: "in the region of a
/// few seconds".
pub const RECONNECTION_TIME: Duration = Duration::from_secs(3);

/// Redirects that are followed for one connection. Source: <https://fetch.spec.whatwg.org/#concept-http-redirect-fetch>
pub const REDIRECTS: usize = 20;

/// Whether there is a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadyState {
    /// There is none, and one is being made or will be.
    Connecting,
    /// There is one.
    Open,
    /// There is none and will be none.
    Closed,
}

impl ReadyState {
    /// The word for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// What a reader tells.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// The connection's state changed.
    State(ReadyState),
    /// An event came.
    Event(Event<'a>),
}

/// What to do with an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// Read its body.
    Read,
    /// Ask there instead.
    Follow(String),
    /// Give up.
    Close,
}

/// What outlives a connection, and the decisions.
#[derive(Debug)]
pub struct Core {
    decoder: Decoder,
}

impl Default for Core {
    /// A reader that has read nothing.
    fn default() -> Self {
        Self {
            decoder: Decoder::new(Limits::NONE),
        }
    }
}

impl Core {
    /// What to do with an answer, by its status and headers. `redirects` is how many were followed for this
    /// connection.
    pub fn answer(
        &self,
        status: u16,
        content_type: Option<&str>,
        location: Option<&str>,
        redirects: usize,
    ) -> Step {
        match (status, location) {
            (200, _) if content_type.is_some_and(is_event_stream) => Step::Read,
            (301 | 302 | 303 | 307 | 308, Some(location)) if redirects < REDIRECTS => {
                Step::Follow(location.to_owned())
            }
            _ => Step::Close,
        }
    }

    /// Reads the next piece of the stream.
    pub fn chunk(&mut self, bytes: &[u8], event: impl FnMut(Event<'_>)) {
        // Without limits there is no overflow.
        let _ = self.decoder.feed(bytes, event);
    }

    /// The connection is gone: an event that was not complete is dropped. Says how long to wait.
    pub fn lost(&mut self) -> Duration {
        self.decoder.finish();
        self.decoder
            .reconnection_time()
            .map_or(RECONNECTION_TIME, Duration::from_millis)
    }

    /// The value of `Last-Event-ID`, when one is to be sent.
    pub fn last_event_id(&self) -> Option<&str> {
        Some(self.decoder.last_event_id()).filter(|id| !id.is_empty())
    }
}

fn is_event_stream(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}

/// Reads the stream at `url` until it is over for good.
pub async fn read(url: &str, mut tell: impl FnMut(Told<'_>)) {
    let mut core = Core::default();
    loop {
        match connect(&core, url).await {
            Connected::Stream(mut response) => {
                tell(Told::State(ReadyState::Open));
                while let Ok(Some(bytes)) = response.chunk().await {
                    core.chunk(&bytes, |event| tell(Told::Event(event)));
                }
            }
            Connected::Refused => return tell(Told::State(ReadyState::Closed)),
            Connected::Nothing => {}
        }
        tell(Told::State(ReadyState::Connecting));
        tokio::time::sleep(core.lost()).await;
    }
}

enum Connected {
    Stream(Box<Response>),
    Refused,
    Nothing,
}

async fn connect(core: &Core, url: &str) -> Connected {
    let mut url = url.to_owned();
    for redirects in 0.. {
        let Ok(response) = send(&url, request(core), Bytes::new()).await else {
            return Connected::Nothing;
        };
        let (kind, location) = (response.header("content-type"), response.header("location"));
        match core.answer(response.status.as_u16(), kind, location, redirects) {
            Step::Read => return Connected::Stream(Box::new(response)),
            Step::Follow(location) => url = resolve(&url, &location),
            Step::Close => return Connected::Refused,
        }
    }
    Connected::Refused
}

fn request(core: &Core) -> http::request::Builder {
    let request = Request::get("/")
        .header(header::ACCEPT, "text/event-stream")
        .header(header::CACHE_CONTROL, "no-store");
    match core.last_event_id() {
        Some(id) => request.header("Last-Event-ID", id.as_bytes()),
        None => request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_event_stream_is_read() {
        let core = Core::default();
        let answer = |status, kind| core.answer(status, kind, None, 0);
        assert_eq!(answer(200, Some("text/event-stream")), Step::Read);
        assert_eq!(
            answer(200, Some("Text/Event-Stream; charset=utf-8")),
            Step::Read
        );
        assert_eq!(answer(200, Some("text/event-stream-2")), Step::Close);
        assert_eq!(answer(200, None), Step::Close);
        assert_eq!(answer(204, Some("text/event-stream")), Step::Close);
        assert_eq!(answer(503, Some("text/event-stream")), Step::Close);
    }

    #[test]
    fn redirects_are_followed_but_not_for_ever() {
        let core = Core::default();
        assert_eq!(
            core.answer(307, None, Some("/x"), 0),
            Step::Follow("/x".to_owned())
        );
        assert_eq!(core.answer(307, None, Some("/x"), REDIRECTS), Step::Close);
        assert_eq!(core.answer(304, None, Some("/x"), 0), Step::Close);
    }

    #[test]
    fn a_lost_connection_takes_the_unfinished_event_with_it() {
        let mut core = Core::default();
        let mut seen = Vec::new();
        let mut feed = |core: &mut Core, bytes: &[u8]| {
            core.chunk(bytes, |event| seen.push(event.data.to_owned()))
        };
        feed(
            &mut core,
            b"retry: 40\nid: 1\ndata: a\n\nid: 2\ndata: lost\n",
        );
        assert_eq!(core.lost(), Duration::from_millis(40));
        assert_eq!(core.last_event_id(), Some("1"));
        feed(&mut core, b"\ndata: b\n\n");
        assert_eq!(seen, ["a", "b"]);
    }
}
