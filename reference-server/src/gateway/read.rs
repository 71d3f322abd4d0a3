//! From the bytes of an answer to the values that a wire reads.
//!
//! [`Body`] tells event streams from plain answers (services send one where the other was asked for),
//! takes them apart wherever they are cut, and hands each value to the wire's [`Reader`].
//!
//! Complete is what the wire's own marker says, never that the body has ended: a body that ends before it
//! is cut. An event without its empty line is read all the same, and bare JSON between events is looked at
//! for an error before the answer counts as cut.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde_json::Value;
use turnwire_spec::sse::{Decoder, Limits};

use super::error::ErrorKind;
use super::json;
use super::refusal::{self, Fault};
use super::reply::{ModelEvent, ModelReply};

/// Bytes of a plain answer, of one event of a stream, and of all text of an answer.
pub(super) const ANSWER_BYTES: usize = 32 << 20;
/// Bytes of the end of a stream that are kept to find a bare error there.
const TAIL_BYTES: usize = 64 << 10;
/// Bytes of an unreadable answer that its error shows.
const SHOWN_BYTES: usize = 120;
/// The literal that ends a stream of Chat Completions.
const DONE: &str = "[DONE]";

/// Whether more of an answer is to come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Progress {
    More,
    /// The wire's last event: nothing after it counts.
    Over,
}

/// Puts one answer of a wire together, without I/O.
pub(super) trait Reader: Send {
    /// Takes one event of a stream.
    fn event(&mut self, event: &Value, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault>;

    /// Takes a plain answer.
    fn whole(&mut self, answer: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault>;

    /// What `[DONE]` means.
    fn done(&self) -> Progress {
        Progress::More
    }

    /// Whether the answer is complete as it stands, though more may come.
    fn is_complete(&self) -> bool;

    /// The answer, or why it is none; what was held back goes to `out` first.
    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<ModelReply, Fault>;

    /// A member to add to the same request so that the answer goes on, when the service asks for that.
    fn go_on(&mut self) -> Option<(&'static str, Value)> {
        None
    }
}

/// What a body is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    /// Not known before its first bytes.
    Unknown,
    Events,
    Json,
}

/// A body that comes in.
pub(super) struct Body {
    form: Form,
    decoder: Decoder,
    /// A plain answer so far, or the start of something unknown.
    whole: Vec<u8>,
    /// The newest bytes of a stream.
    tail: Vec<u8>,
    unzip: Option<Unzip>,
}

impl Body {
    pub(super) fn new(headers: &HeaderMap) -> Self {
        let text = |name| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().trim().to_ascii_lowercase()
        };
        let content_type = text(CONTENT_TYPE);
        let form = if content_type.starts_with("text/event-stream") {
            Form::Events
        } else {
            Form::Unknown
        };
        Self {
            form,
            decoder: Decoder::new(Limits::bytes(ANSWER_BYTES)),
            whole: Vec::new(),
            tail: Vec::new(),
            unzip: text(CONTENT_ENCODING).contains("gzip").then(Unzip::default),
        }
    }

    /// Takes the next bytes.
    pub(super) fn feed(
        &mut self,
        bytes: &Bytes,
        reader: &mut dyn Reader,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Progress, Fault> {
        match &mut self.unzip {
            None => self.plain(bytes, reader, out),
            Some(unzip) => {
                let bytes = unzip.feed(bytes)?;
                self.plain(&bytes, reader, out)
            }
        }
    }

    fn plain(
        &mut self,
        bytes: &[u8],
        reader: &mut dyn Reader,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Progress, Fault> {
        if self.form == Form::Events {
            return self.events(bytes, reader, out);
        }
        if self.whole.len() + bytes.len() > ANSWER_BYTES {
            return Err(too_long());
        }
        self.whole.extend_from_slice(bytes);
        if self.form == Form::Unknown {
            self.form = sniff(&self.whole);
        }
        if self.form == Form::Events {
            let bytes = std::mem::take(&mut self.whole);
            return self.events(&bytes, reader, out);
        }
        Ok(Progress::More)
    }

    fn events(
        &mut self,
        bytes: &[u8],
        reader: &mut dyn Reader,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Progress, Fault> {
        self.tail.extend_from_slice(bytes);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        let mut events = self.decoder.events(bytes);
        while let Some(event) = events.next() {
            let event = event.map_err(|_| too_long())?;
            if take(event.data, reader, out)? == Progress::Over {
                return Ok(Progress::Over);
            }
        }
        Ok(Progress::More)
    }

    /// The body has ended by itself.
    pub(super) fn end(
        &mut self,
        reader: &mut dyn Reader,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        if self.form != Form::Events {
            return self.end_of_json(reader, out);
        }
        // Some services leave the last empty line out. What is no whole event then is no JSON either.
        let tail = std::mem::take(&mut self.tail);
        let complete = reader.is_complete();
        match self.events(b"\n\n", reader, out) {
            Ok(_) => {}
            Err(fault) if fault.kind == ErrorKind::BadAnswer => {
                if !complete {
                    return Err(Fault::cut());
                }
            }
            Err(fault) => return Err(fault),
        }
        match bare_error(&tail) {
            Some(fault) if !reader.is_complete() => Err(fault),
            _ => Ok(()),
        }
    }

    fn end_of_json(
        &mut self,
        reader: &mut dyn Reader,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let bytes = std::mem::take(&mut self.whole);
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(Fault::new(
                ErrorKind::Interrupted,
                "the provider's answer is empty",
            ));
        }
        match json::parse_bytes(&bytes) {
            Ok(answer) => whole(&answer, reader, out),
            Err(error) if error.is_eof() => Err(Fault::cut()),
            Err(_) => Err(unreadable(&bytes)),
        }
    }
}

/// One event's data.
fn take(data: &str, reader: &mut dyn Reader, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault> {
    let data = data.trim();
    if data.is_empty() {
        return Ok(Progress::More);
    }
    if data == DONE {
        return Ok(reader.done());
    }
    match json::parse(data) {
        Ok(event) => reader.event(&event, out),
        Err(_) => Err(unreadable(data.as_bytes())),
    }
}

/// A plain answer; a list is a stream of Gemini's, element by element.
fn whole(answer: &Value, reader: &mut dyn Reader, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
    if let Some(fault) = refusal::in_answer(answer) {
        return Err(fault);
    }
    let Some(events) = answer.as_array() else {
        return reader.whole(answer, out);
    };
    for event in events {
        if reader.event(event, out)? == Progress::Over {
            break;
        }
    }
    Ok(())
}

fn sniff(start: &[u8]) -> Form {
    const NAMES: [&[u8]; 5] = [b":", b"data", b"event", b"id", b"retry"];
    let start = start
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(start)
        .trim_ascii_start();
    let long_enough = start.len() >= 6 || start.contains(&b'\n');
    match start.first() {
        None => Form::Unknown,
        Some(b'{' | b'[') => Form::Json,
        Some(_) if NAMES.iter().any(|name| start.starts_with(name)) => Form::Events,
        Some(_) if long_enough => Form::Json,
        Some(_) => Form::Unknown,
    }
}

/// An error that stands bare, without `data:`, at the end of a stream.
fn bare_error(tail: &[u8]) -> Option<Fault> {
    let text = String::from_utf8_lossy(tail);
    let starts = text
        .match_indices(['{', '['])
        .filter(|(at, _)| *at == 0 || text[..*at].ends_with(['\n', '\r']));
    // One JSON text ends the body, so its beginning is the first line from which all the rest is JSON.
    starts
        .take(64)
        .find_map(|(at, _)| json::parse(text[at..].trim()).ok())
        .and_then(|value| refusal::in_answer(&value))
}

fn too_long() -> Fault {
    Fault::bad("the provider's answer is too long")
}

fn unreadable(bytes: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(bytes);
    let start: String = text.trim().chars().take(SHOWN_BYTES).collect();
    if start.starts_with('<') {
        return Fault::bad("unreadable answer from the provider: a page, not JSON");
    }
    Fault::bad(format!("unreadable answer from the provider: {start:?}"))
}

/// Takes gzip off a body, as far as it has come.
struct Unzip(flate2::write::MultiGzDecoder<Vec<u8>>);

impl Default for Unzip {
    fn default() -> Self {
        Self(flate2::write::MultiGzDecoder::new(Vec::new()))
    }
}

impl Unzip {
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Fault> {
        use std::io::Write as _;
        let broken = |_| Fault::bad("the provider's answer is no gzip");
        self.0.write_all(bytes).map_err(broken)?;
        self.0.flush().map_err(broken)?;
        Ok(std::mem::take(self.0.get_mut()))
    }
}
