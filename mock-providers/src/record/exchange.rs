//! From a recorded exchange to a rule.
//!
//! Removed are: request headers, all of them; response headers that name an account, set a cookie or
//! belong to the connection; and, in what is kept of bodies, the keys that the requests carried and
//! everything that is a secret by its name or its form ([`turnwire_spec::secrets`]). A key that a model spells
//! out over several events of a stream is not found.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use serde_json::Value;
use tokio::time::Instant;
use turnwire_spec::secrets;

use super::tee::Chunk;
use crate::journal::SECRET;
use crate::script::{
    Cut, CutHow, Position, RawReply, Reply, Rule, Script, TextMatch, Timing, When,
};
use crate::wires;
use crate::wires::route::{Form, Route, Target, route};

/// One exchange.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    pub(super) head: http::response::Parts,
    pub(super) began: Instant,
    pub(super) chunks: Vec<Chunk>,
    pub(super) complete: bool,
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The script that says it again.
    pub script: Script,
    /// The secrets that were left out or replaced, by their places, in alphabetic order.
    pub replaced: Vec<Replaced>,
    /// Responses whose compression is not known here, as `POST /path: br`: they are kept as they came, and nobody
    /// has looked for secrets in them.
    pub opaque: Vec<String>,
    /// Requests whose answer had not ended; they are not in the script.
    pub running: usize,
    /// Exchanges for which there was no room; they are not in the script.
    pub dropped: usize,
}

/// Secrets of one kind of place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Replaced {
    /// What they were found by, such as `header authorization` or `API key (sk-...)`.
    pub place: String,
    /// How often one was left out or replaced.
    pub times: usize,
}

/// Shortest secret of a request that is looked for in texts, in bytes; a shorter one would be found by accident.
const TELLING: usize = 8;

/// Takes secrets out of texts, and counts them.
#[derive(Default)]
struct Scrubber {
    /// Values that requests carried, and their places; the longest first.
    values: Vec<(String, String)>,
    found: BTreeMap<String, usize>,
}

impl Scrubber {
    /// Knows the keys in the headers and queries of these requests; they are not kept.
    fn of<'a>(requests: impl Iterator<Item = &'a Parts>) -> Self {
        let mut scrubber = Self::default();
        for parts in requests {
            for (name, value) in &parts.headers {
                if let Ok(value) = value.to_str() {
                    scrubber.learn(value, secrets::of_header(name.as_str(), value));
                }
            }
            if let Some(query) = parts.uri.query() {
                scrubber.learn(query, secrets::of_service_query(query));
            }
        }
        scrubber.values.sort();
        scrubber.values.dedup_by(|one, other| one.0 == other.0);
        scrubber
            .values
            .sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        scrubber
    }

    fn learn(&mut self, text: &str, found: Vec<secrets::Secret>) {
        for secret in found {
            if let Some(value) = text
                .get(secret.range)
                .filter(|value| value.len() >= TELLING)
            {
                self.values.push((value.to_owned(), secret.place.clone()));
            }
            *self.found.entry(secret.place).or_default() += 1;
        }
    }

    /// The text without secrets.
    fn scrub(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (value, place) in &self.values {
            let times = text.matches(value.as_str()).count();
            if times > 0 {
                *self.found.entry(place.clone()).or_default() += times;
                text = text.replace(value.as_str(), SECRET);
            }
        }
        let places = secrets::of_text(text.as_bytes());
        let places: Vec<_> = places
            .into_iter()
            .filter(|secret| text.get(secret.range.clone()) != Some(SECRET))
            .collect();
        for secret in &places {
            *self.found.entry(secret.place.clone()).or_default() += 1;
        }
        secrets::replaced(&text, &places, SECRET)
    }

    fn replaced(self) -> Vec<Replaced> {
        let replaced = |(place, times)| Replaced { place, times };
        self.found.into_iter().map(replaced).collect()
    }
}

/// Response headers that are not kept.
const DROPPED: [&str; 15] = [
    "alt-svc",
    "anthropic-organization-id",
    "anthropic-workspace-id",
    "cf-ray",
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "openai-organization",
    "openai-project",
    "report-to",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "www-authenticate",
];

/// All exchanges as one script, in the order in which they ended. Bodies are taken from their compression as long as
/// they stay below `max_body` bytes.
pub(super) fn recording(
    upstream: &str,
    exchanges: &[Exchange],
    keep_timing: bool,
    max_body: usize,
) -> Recording {
    let mut scrubber = Scrubber::of(exchanges.iter().map(|exchange| &exchange.parts));
    let mut recording = Recording {
        script: Script::new(format!("recorded from {}", host(upstream))),
        ..Recording::default()
    };
    let rules = &mut recording.script.rules;
    for exchange in exchanges {
        let when = exchange.when(&mut scrubber);
        let body = exchange.plain_body(max_body);
        if let Err(encoding) = &body {
            let opaque = format!("{}: {encoding}", exchange.name(&mut scrubber));
            recording.opaque.push(opaque);
        }
        let reply = exchange.reply(body, keep_timing, &mut scrubber);
        match rules.iter_mut().find(|rule| rule.when == when) {
            Some(rule) => rule.replies.push(reply),
            None => {
                let name = exchange.name(&mut scrubber);
                rules.push(Rule::new(name).when(when).reply(reply));
            }
        }
    }
    recording.replaced = scrubber.replaced();
    recording
}

/// The host of a URL, without user and password.
fn host(url: &str) -> String {
    url.parse::<http::Uri>()
        .ok()
        .and_then(|uri| uri.host().map(str::to_owned))
        .unwrap_or_else(|| "an unknown host".to_owned())
}

impl Exchange {
    fn name(&self, scrubber: &mut Scrubber) -> String {
        let path = scrubber.scrub(self.parts.uri.path());
        format!("{} {path}", self.parts.method)
    }

    /// The conditions that a request like this one meets.
    fn when(&self, scrubber: &mut Scrubber) -> When {
        let uri = &self.parts.uri;
        let method = self.parts.method.as_str();
        let path = escaped(&scrubber.scrub(uri.path())).replace(SECRET, "*");
        let when = When::new().method(method).path(path);
        let target = match route(method, uri.path(), uri.query(), &self.parts.headers) {
            Route::Generate(target) => target,
            Route::Count(target) => Target {
                form: Form::Plain,
                ..target
            },
            _ => return when,
        };
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let talk = wires::read(&target, &body);
        let mut when = when
            .wire(target.wire)
            .model(escaped(&talk.model))
            .stream(talk.stream)
            .turn(talk.assistant_turns());
        if let Some(user) = talk.last_user().filter(|turn| !turn.text.is_empty()) {
            when = when.last_user(said(&user.text, scrubber));
        }
        when
    }

    /// The body without its compression.
    ///
    /// # Errors
    ///
    /// The compression, when it is none that is known here, or the body is not compressed so, or too large.
    fn plain_body(&self, max_body: usize) -> Result<Vec<u8>, String> {
        let body: Vec<u8> = self
            .chunks
            .iter()
            .flat_map(|(_, chunk)| chunk.to_vec())
            .collect();
        let encoding = self.head.headers.get(http::header::CONTENT_ENCODING);
        let encoding = encoding.map_or("", |value| value.to_str().unwrap_or("?"));
        let plain = match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => return Ok(body),
            "gzip" | "x-gzip" => self.inflated(flate2::read::MultiGzDecoder::new(&*body), max_body),
            "deflate" => self.inflated(flate2::read::ZlibDecoder::new(&*body), max_body),
            _ => None,
        };
        plain.ok_or_else(|| encoding.to_owned())
    }

    /// What a decoder gives; of a response that broke off, as far as it came.
    fn inflated(&self, decoder: impl Read, max_body: usize) -> Option<Vec<u8>> {
        let most = max_body as u64;
        let mut plain = Vec::new();
        let read = decoder.take(most + 1).read_to_end(&mut plain);
        ((read.is_ok() || !self.complete) && plain.len() <= max_body).then_some(plain)
    }

    /// The reply that says the same. `body` is an error when it is kept in its compression.
    fn reply(
        &self,
        body: Result<Vec<u8>, String>,
        keep_timing: bool,
        scrubber: &mut Scrubber,
    ) -> Reply {
        let mut raw = RawReply {
            status: self.head.status.as_u16(),
            ..RawReply::default()
        };
        for (name, value) in &self.head.headers {
            let name = name.as_str();
            let kept = !DROPPED.contains(&name) && !secrets::is_header(name);
            let kept = kept && (name != "content-encoding" || body.is_err());
            if let Ok(value) = value.to_str()
                && kept
            {
                raw.headers.insert(name.to_owned(), scrubber.scrub(value));
            }
        }
        let events = self
            .head
            .headers
            .get(http::header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        match body.map(String::from_utf8) {
            Ok(Ok(text)) if events => raw.body = split_events(&scrubber.scrub(&text)),
            Ok(Ok(text)) => raw.body = vec![scrubber.scrub(&text)],
            Ok(Err(error)) => raw.hex = hex(error.as_bytes()),
            Err(_) => {
                raw.hex = self.chunks.iter().map(|(_, chunk)| hex(chunk)).collect();
            }
        }
        let mut reply = Reply::from(raw);
        if keep_timing {
            reply = reply.timing(self.timing());
        }
        if !self.complete {
            reply.faults.cut = Some(Cut {
                after: Position::BytesFromEnd(0),
                how: CutHow::Close,
            });
        }
        reply
    }

    fn timing(&self) -> Timing {
        let times: Vec<Instant> = self.chunks.iter().map(|(at, _)| *at).collect();
        let (Some(first), Some(last)) = (times.first(), times.last()) else {
            return Timing::default();
        };
        let gaps = u32::try_from(times.len().saturating_sub(1))
            .unwrap_or(u32::MAX)
            .max(1);
        let rounded = |time: Duration| Duration::from_millis(time.as_millis() as u64);
        Timing {
            first_token: rounded(first.duration_since(self.began)),
            per_token: rounded(last.duration_since(*first) / gaps),
            ..Timing::default()
        }
    }
}

/// A glob that matches exactly this name: the characters that a glob reads otherwise become `?`.
fn escaped(name: &str) -> String {
    name.replace(['*', '?'], "?")
}

/// A condition for this text, which is not kept with a secret in it.
fn said(text: &str, scrubber: &mut Scrubber) -> TextMatch {
    let clean = scrubber.scrub(text);
    if clean == text {
        TextMatch::Equals(clean)
    } else {
        TextMatch::Glob(escaped(&clean).replace(SECRET, "*"))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The events of a stream, each with its empty line.
fn split_events(text: &str) -> Vec<String> {
    let mut events = Vec::new();
    let mut event = String::new();
    for line in text.split_inclusive('\n') {
        event.push_str(line);
        if line.trim_end_matches(['\r', '\n']).is_empty() {
            events.push(std::mem::take(&mut event));
        }
    }
    if !event.is_empty() {
        events.push(event);
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Parts {
        http::Request::get("/v1/x?%6bey=key-of-the-query")
            .header("x-custom-secret", "my-own-key")
            .header("authorization", "Bearer short")
            .body(())
            .unwrap()
            .into_parts()
            .0
    }

    #[test]
    fn what_requests_carried_and_what_looks_like_a_key_is_replaced_and_counted() {
        let parts = request();
        let mut scrubber = Scrubber::of(std::iter::once(&parts));
        for (text, clean) in [
            ("key my-own-key.", "key [secret]."),
            ("of the query: key-of-the-query", "of the query: [secret]"),
            ("in short", "in short"),
            (
                "Incorrect API key: sk-proj-abcdefghij0123456789",
                "Incorrect API key: [secret]",
            ),
            ("AIzaSyA0123456789abcdefghij", "[secret]"),
            (
                "ask-me-anything-about-it please",
                "ask-me-anything-about-it please",
            ),
            ("sk-short", "sk-short"),
            (r#"{"password":"x"}"#, r#"{"password":"[secret]"}"#),
        ] {
            assert_eq!(scrubber.scrub(text), clean);
        }
        let replaced: Vec<_> = scrubber
            .replaced()
            .into_iter()
            .map(|replaced| (replaced.place, replaced.times))
            .collect();
        let expected = [
            ("API key (AIza...)", 1),
            ("API key (sk-...)", 1),
            ("JSON member password", 1),
            ("header authorization", 1),
            ("header x-custom-secret", 2),
            ("query key", 2),
        ];
        assert_eq!(
            replaced,
            expected.map(|(place, times)| (place.to_owned(), times))
        );
    }

    #[test]
    fn a_stream_is_cut_at_its_events() {
        assert_eq!(split_events("a\n\nb\r\n\r\nc"), ["a\n\n", "b\r\n\r\n", "c"]);
        assert!(split_events("").is_empty());
    }
}
