//! Bodies that are passed on and kept.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use turnwire_spec::secrets::{of_header, replaced};

use super::Tape;
use crate::{
    drivers::causes,
    transcript::{End, ExchangeId, Fact},
};

/// Bytes of a request body that are waited for before it is sent on; of a longer one the rest streams through
/// and is not kept.
pub(super) const KEPT: usize = 8 << 20;

/// A request body on its way to the server.
pub(super) enum Sent {
    /// All of it.
    Whole(Full<Bytes>),
    /// What was kept of it, then the rest as it comes.
    Rest(Option<Bytes>, Incoming),
}

/// Reads a request body: what is kept of it, the body to send, and whether that is more.
///
/// # Errors
///
/// When the client leaves before it is whole: how many bytes had come, and the transport's words.
pub(super) async fn read(mut body: Incoming) -> Result<(Bytes, Sent, bool), (usize, hyper::Error)> {
    let mut kept = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| (kept.len(), error))?;
        if let Ok(data) = frame.into_data() {
            kept.extend_from_slice(&data);
        }
        if kept.len() > KEPT {
            let bytes = Bytes::from(kept);
            return Ok((bytes.clone(), Sent::Rest(Some(bytes), body), true));
        }
    }
    let bytes = Bytes::from(kept);
    Ok((bytes.clone(), Sent::Whole(Full::new(bytes)), false))
}

impl Body for Sent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Whole(whole) => Pin::new(whole)
                .poll_frame(context)
                .map_err(|never| match never {}),
            Self::Rest(first, rest) => match first.take() {
                Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None => Pin::new(rest).poll_frame(context),
            },
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Rest(None, rest) => rest.size_hint(),
            Self::Rest(Some(first), rest) => {
                let more = u64::try_from(first.len()).unwrap_or(u64::MAX);
                let mut hint = SizeHint::new();
                hint.set_lower(rest.size_hint().lower().saturating_add(more));
                if let Some(upper) = rest.size_hint().upper() {
                    hint.set_upper(upper.saturating_add(more));
                }
                hint
            }
        }
    }
}

/// The end of an exchange, which is told once: when it is known, or else when nobody waits for it any more.
#[derive(Debug)]
pub(super) struct Ending {
    tape: Tape,
    exchange: ExchangeId,
    told: bool,
}

impl Ending {
    pub(super) fn new(tape: Tape, exchange: ExchangeId) -> Self {
        Self {
            tape,
            exchange,
            told: false,
        }
    }

    pub(super) fn tell(&mut self, how: End) {
        if !self.told {
            self.told = true;
            let exchange = self.exchange;
            self.tape.tell(Fact::End { exchange, how });
        }
    }

    /// Trailers have no place in a transcript but a comment.
    fn trailers(&self, trailers: &HeaderMap) {
        for (name, value) in trailers {
            let shown = replaced(&text(value), &of_header(name.as_str(), &text(value)), "...");
            self.tape.tell(Fact::Note(format!(
                "trailer of exchange {}: {name}: {shown}",
                self.exchange.0
            )));
        }
    }

    pub(super) fn exchange(&self) -> ExchangeId {
        self.exchange
    }

    pub(super) fn tape(&self) -> &Tape {
        &self.tape
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // The client left, or the recording was stopped.
        self.tell(End::ClosedByHarness);
    }
}

/// A response body on its way to the client.
pub(super) enum Passed {
    /// The server's, recorded as it passes; its bytes are kept or not.
    Recorded {
        /// What the server sends.
        inner: Incoming,
        /// The end, which is told in any case.
        ending: Ending,
        /// Whether the bytes are kept.
        kept: bool,
    },
    /// A few words of our own, which are not recorded.
    Own(Full<Bytes>),
}

impl Passed {
    pub(super) fn words(text: String) -> Self {
        Self::Own(Full::new(Bytes::from(text)))
    }

    pub(super) fn nothing() -> Self {
        Self::Own(Full::default())
    }
}

impl Body for Passed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let (inner, ending, kept) = match self.get_mut() {
            Self::Own(own) => {
                return Pin::new(own)
                    .poll_frame(context)
                    .map_err(|never| match never {});
            }
            Self::Recorded {
                inner,
                ending,
                kept,
            } => (inner, ending, *kept),
        };
        let polled = Pin::new(&mut *inner).poll_frame(context);
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(bytes) = frame.data_ref().filter(|bytes| kept && !bytes.is_empty()) {
                    ending.tape().tell(Fact::Chunk {
                        exchange: ending.exchange(),
                        bytes: bytes.clone(),
                    });
                }
                if let Some(trailers) = frame.trailers_ref() {
                    ending.trailers(trailers);
                }
                // Hyper does not poll again after trailers, or after the last byte of a body with a length.
                if frame.is_trailers() || inner.is_end_stream() {
                    ending.tell(End::Complete);
                }
            }
            Poll::Ready(Some(Err(error))) => ending.tell(End::Broken(causes(error))),
            Poll::Ready(None) => ending.tell(End::Complete),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Recorded { inner, .. } => inner.is_end_stream(),
            Self::Own(own) => own.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Recorded { inner, .. } => inner.size_hint(),
            Self::Own(own) => own.size_hint(),
        }
    }
}

/// A header's value as text. Bytes that are no UTF-8 are the characters with these numbers, so that none is lost.
pub(super) fn text(value: &HeaderValue) -> String {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    }
}
