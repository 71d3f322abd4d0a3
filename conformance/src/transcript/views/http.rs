//! HTTP exchanges of a transcript: request, response head, body, end, and the label they belong to.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use turnwire_spec::llm;

use crate::{
    transcript::{End, ExchangeId, Fact, Request, ResponseHead, Transcript, header},
    verdict::Evidence,
};

/// One HTTP request and what came back.
#[derive(Clone, Debug)]
pub struct Exchange<'a> {
    /// Number in the transcript.
    pub id: ExchangeId,
    /// Newest label when the request was sent; empty when the scenario had set none.
    pub label: &'a str,
    /// The request.
    pub request: &'a Request,
    /// When it was sent.
    pub opened: Duration,
    /// The response head and when it came, if one came.
    pub head: Option<(Duration, &'a ResponseHead)>,
    /// Body chunks with their times.
    pub chunks: Vec<(Duration, &'a Bytes)>,
    /// How and when the exchange ended; `None` when it was open at the end of the transcript.
    pub end: Option<(Duration, &'a End)>,
}

/// All HTTP exchanges, in the order in which they were opened.
pub fn exchanges(transcript: &Transcript) -> Vec<Exchange<'_>> {
    let mut found = Vec::new();
    let mut place = BTreeMap::new();
    let mut label = "";
    for entry in &transcript.entries {
        match &entry.fact {
            Fact::Label(text) => label = text,
            Fact::Request { exchange, request } => {
                place.insert(*exchange, found.len());
                found.push(Exchange {
                    id: *exchange,
                    label,
                    request,
                    opened: entry.at,
                    head: None,
                    chunks: Vec::new(),
                    end: None,
                });
            }
            Fact::Response { exchange, head } => {
                with(&mut found, &place, *exchange, |e| {
                    e.head = Some((entry.at, head))
                });
            }
            Fact::Chunk { exchange, bytes } => {
                with(&mut found, &place, *exchange, |e| {
                    e.chunks.push((entry.at, bytes))
                });
            }
            Fact::End { exchange, how } => {
                with(&mut found, &place, *exchange, |e| {
                    e.end = Some((entry.at, how))
                });
            }
            _ => {}
        }
    }
    found
}

fn with<'a>(
    found: &mut [Exchange<'a>],
    place: &BTreeMap<ExchangeId, usize>,
    id: ExchangeId,
    change: impl FnOnce(&mut Exchange<'a>),
) {
    if let Some(exchange) = place.get(&id).and_then(|&index| found.get_mut(index)) {
        change(exchange);
    }
}

impl Exchange<'_> {
    /// As [`Request::path`].
    pub fn path(&self) -> &str {
        self.request.path()
    }

    /// As [`Request::is`].
    pub fn is(&self, method: &str, template: &str) -> bool {
        self.request.is(method, template)
    }

    /// As [`Request::segment`].
    pub fn segment(&self, template: &str, name: &str) -> Option<String> {
        self.request.segment(template, name)
    }

    /// As [`Request::query`].
    pub fn query(&self, name: &str) -> Option<String> {
        self.request.query(name)
    }

    /// As [`Request::header`].
    pub fn request_header(&self, name: &str) -> Option<&str> {
        self.request.header(name)
    }

    /// As [`Request::json`].
    pub fn request_json(&self) -> Option<Value> {
        self.request.json()
    }

    /// Status of the response, if one came.
    pub fn status(&self) -> Option<u16> {
        self.head.map(|(_, head)| head.status)
    }

    /// Value of a response header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.and_then(|(_, head)| header(&head.headers, name))
    }

    /// Media type of the response in lower case, without parameters.
    pub fn media_type(&self) -> Option<String> {
        self.header("content-type").map(|text| {
            text.split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase()
        })
    }

    /// The body as far as it was read.
    pub fn body(&self) -> Vec<u8> {
        self.chunks
            .iter()
            .flat_map(|(_, bytes)| bytes.iter().copied())
            .collect()
    }

    /// The body as JSON, when it is.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body()).ok()
    }

    /// Whether the response came to its proper end.
    pub fn complete(&self) -> bool {
        matches!(self.end, Some((_, End::Complete)))
    }

    /// Method and target, for people.
    pub fn request_line(&self) -> String {
        format!("{} {}", self.request.method, self.request.target)
    }

    /// Evidence at this exchange.
    pub fn evidence(&self, expected: impl Into<String>, got: impl Into<String>) -> Evidence {
        Evidence {
            exchange: Some(self.id),
            request: Some(self.request_line()),
            at: Some(self.head.map_or(self.opened, |(at, _)| at)),
            ..Evidence::new(expected, got)
        }
    }
}

/// Whether a path fits a template whose `:name` segments match any one non-empty segment.
pub fn path_matches(template: &str, path: &str) -> bool {
    let mut parts = template.split('/');
    let mut found = path.split('/');
    loop {
        match (parts.next(), found.next()) {
            (None, None) => return true,
            (Some(part), Some(text))
                if part == text || (part.starts_with(':') && !text.is_empty()) => {}
            _ => return false,
        }
    }
}

/// As [`path_matches`]; the templates of the model wires also fit behind the version that a service has in its base
/// URL, such as `/v1` or `/v1beta/openai`, which a run against that URL does not record and a recording does.
pub fn served_at(template: &str, path: &str) -> bool {
    let behind = || behind_version(path).is_some_and(|rest| path_matches(template, rest));
    path_matches(template, path) || (llm::PATHS.contains(&template) && behind())
}

/// What follows `/v1`, `/v1beta` or another version, and `/openai` where that comes next.
fn behind_version(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/v")?;
    let end = rest.find('/')?;
    let (version, rest) = rest.split_at(end);
    let is_version = version.starts_with(|first: char| first.is_ascii_digit());
    is_version.then(|| match rest.strip_prefix("/openai/") {
        // The slash stays.
        Some(_) => rest.get("/openai".len()..).unwrap_or(rest),
        None => rest,
    })
}

/// The segment of a path that stands where `template` has `:name`, percent-decoded.
pub fn path_segment(template: &str, path: &str, name: &str) -> Option<String> {
    template
        .split('/')
        .zip(path.split('/'))
        .find(|(part, _)| part.strip_prefix(':') == Some(name))
        .map(|(_, found)| percent_decode(found))
}

/// Whether a target's query has a parameter (`NAME`), or has it with this value (`NAME=VALUE`, not encoded).
pub fn query_has(target: &str, wanted: &str) -> bool {
    let (name, value) = wanted
        .split_once('=')
        .map_or((wanted, None), |(name, value)| (name, Some(value)));
    query_pairs(target).any(|(key, found)| key == name && value.is_none_or(|value| found == value))
}

/// Names and values of a target's query, percent-decoded, in order.
pub fn query_pairs(target: &str) -> impl Iterator<Item = (String, String)> + '_ {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decode(key), percent_decode(value))
        })
}

/// Decodes `%xx` and `+`; what is no valid escape stays as it is.
pub fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        let escaped = (byte == b'%')
            .then(|| bytes.get(index + 1..index + 3))
            .flatten();
        let value = escaped
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match value {
            Some(value) => {
                decoded.push(value);
                index += 3;
            }
            None => {
                decoded.push(if byte == b'+' { b' ' } else { byte });
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_a_wire_stands_behind_any_version_and_no_other_path_does() {
        for path in [
            "/chat/completions",
            "/v1/chat/completions",
            "/v1beta/openai/chat/completions",
        ] {
            assert!(served_at("/chat/completions", path), "{path}");
        }
        assert!(served_at("/models/:id", "/v1/models/mock"));
        for (template, path) in [
            ("/chat/completions", "/api/chat/completions"),
            ("/chat/completions", "/views/chat/completions"),
            ("/chat/completions", "/v1/more/chat/completions"),
            ("/api/health", "/v1/api/health"),
        ] {
            assert!(!served_at(template, path), "{path}");
        }
    }
}
