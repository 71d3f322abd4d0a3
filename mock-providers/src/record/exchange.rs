//! From a recorded exchange to a rule.
//!
//! Removed are: request headers, all of them; response headers that name an account, set a cookie or
//! belong to the connection; and, in what is kept of bodies, the keys that the request carried and
//! everything that looks like a key.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use serde_json::Value;
use tokio::time::Instant;

use super::tee::Chunk;
use crate::journal::{SECRET, SECRET_HEADERS};
use crate::script::{
    Cut, CutHow, Position, RawReply, Reply, Rule, Script, TextMatch, Timing, When,
};
use crate::wires::route::{Form, Route, Target, route};
use crate::wires::{self, gemini::query_value};

/// One exchange.
#[derive(Debug)]
pub struct Exchange {
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    pub(super) head: http::response::Parts,
    pub(super) began: Instant,
    pub(super) chunks: Vec<Chunk>,
    pub(super) complete: bool,
    pub(super) secrets: Secrets,
}

/// What a request carried that must not be kept.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// Beginnings of keys, and how many characters follow at least.
const KEYS: [(&str, usize); 8] = [
    ("sk-", 16),
    ("AIza", 20),
    ("gsk_", 16),
    ("xai-", 16),
    ("ya29.", 16),
    ("hf_", 16),
    ("pplx-", 16),
    ("r8_", 16),
];

impl Secrets {
    /// The keys in a request's headers and query.
    pub fn of(parts: &Parts) -> Self {
        let headers = SECRET_HEADERS
            .iter()
            .flat_map(|name| parts.headers.get_all(*name));
        let in_headers = headers
            .filter_map(|value| value.to_str().ok())
            .map(|value| {
                // `Bearer KEY`: the key alone may be repeated in a text.
                value
                    .split_once(' ')
                    .map_or(value, |(_, key)| key)
                    .to_owned()
            });
        let in_query = ["key", "api_key", "access_token"]
            .into_iter()
            .filter_map(|name| query_value(parts.uri.query(), name).map(str::to_owned));
        Self(
            in_headers
                .chain(in_query)
                .filter(|secret| secret.len() >= 6)
                .collect(),
        )
    }

    /// The text without keys.
    pub fn scrub(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            text = text.replace(secret.as_str(), SECRET);
        }
        for (begin, least) in KEYS {
            text = without_keys(&text, begin, least);
        }
        text
    }
}

/// The text with everything replaced that begins so, at the start of a word, and is long enough.
fn without_keys(text: &str, begin: &str, least: usize) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(begin) {
        let (before, from) = rest.split_at(at);
        let in_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*');
        let tail = &from[begin.len()..];
        let length = tail.find(|c: char| !in_key(c)).unwrap_or(tail.len());
        let inside = before
            .chars()
            .last()
            .or_else(|| clean.chars().last())
            .is_some_and(in_key);
        clean.push_str(before);
        if length >= least && !inside {
            clean.push_str(SECRET);
        } else {
            clean.push_str(&from[..begin.len() + length]);
        }
        rest = &tail[length..];
    }
    clean.push_str(rest);
    clean
}

/// Response headers that are not kept.
const DROPPED: [&str; 16] = [
    "alt-svc",
    "anthropic-organization-id",
    "anthropic-workspace-id",
    "cf-ray",
    "connection",
    "content-encoding",
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

/// All exchanges as one script, in the order in which they ended.
pub fn script(upstream: &str, exchanges: &[Exchange], keep_timing: bool) -> Script {
    let mut script = Script::new(format!("recorded from {}", host(upstream)));
    for exchange in exchanges {
        let when = exchange.when();
        let reply = exchange.reply(keep_timing);
        match script.rules.iter_mut().find(|rule| rule.when == when) {
            Some(rule) => rule.replies.push(reply),
            None => {
                let rule = Rule::new(exchange.name()).when(when).reply(reply);
                script.rules.push(rule);
            }
        }
    }
    script
}

/// The host of a URL, without user and password.
fn host(url: &str) -> String {
    url.parse::<http::Uri>()
        .ok()
        .and_then(|uri| uri.host().map(str::to_owned))
        .unwrap_or_else(|| "an unknown host".to_owned())
}

impl Exchange {
    fn name(&self) -> String {
        format!("{} {}", self.parts.method, self.parts.uri.path())
    }

    /// The conditions that a request like this one meets.
    fn when(&self) -> When {
        let uri = &self.parts.uri;
        let method = self.parts.method.as_str();
        let when = When::new().method(method).path(escaped(uri.path()));
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
            when = when.last_user(TextMatch::Equals(self.secrets.scrub(&user.text)));
        }
        when
    }

    fn reply(&self, keep_timing: bool) -> Reply {
        let events = self
            .head
            .headers
            .get(http::header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        let bytes: Vec<u8> = self
            .chunks
            .iter()
            .flat_map(|(_, chunk)| chunk.to_vec())
            .collect();
        let mut raw = RawReply {
            status: self.head.status.as_u16(),
            ..RawReply::default()
        };
        for (name, value) in &self.head.headers {
            if let Ok(value) = value.to_str()
                && !DROPPED.contains(&name.as_str())
            {
                raw.headers
                    .insert(name.to_string(), self.secrets.scrub(value));
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) if events => raw.body = split_events(&self.secrets.scrub(&text)),
            Ok(text) => raw.body = vec![self.secrets.scrub(&text)],
            Err(error) => {
                raw.hex = error
                    .as_bytes()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
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

    #[test]
    fn keys_are_found_by_their_beginning() {
        let secrets = Secrets(vec!["my-own-key".into()]);
        for (text, clean) in [
            ("key my-own-key.", "key [secret]."),
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
            ("a sk-abcdefghij0123456789, b", "a [secret], b"),
        ] {
            assert_eq!(secrets.scrub(text), clean);
        }
    }

    #[test]
    fn a_stream_is_cut_at_its_events() {
        assert_eq!(split_events("a\n\nb\r\n\r\nc"), ["a\n\n", "b\r\n\r\n", "c"]);
        assert!(split_events("").is_empty());
    }
}
