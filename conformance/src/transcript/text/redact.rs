//! Finds secrets, and what else is to become a placeholder, in the facts of a transcript.
//!
//! A secret is known by its place: a header, a query parameter or a JSON member of a certain name. Its value,
//! when it is long enough to be no accident, is then replaced wherever it stands, also across chunks.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memmem;

use super::pattern::{Pattern, Piece};
use crate::transcript::{ExchangeId, Fact, Transcript, WsFrame};

/// Headers whose whole value is secret.
const HEADERS: &[&str] = &[
    "x-session-token",
    "x-operator-token",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-auth-token",
];
/// Headers whose value is a scheme and a secret.
const SCHEME_HEADERS: &[&str] = &["authorization", "proxy-authorization"];
/// Headers that hold `name=value` pairs whose values are secret.
const COOKIE_HEADERS: &[&str] = &["cookie", "set-cookie"];
/// Query parameters whose value is secret.
const PARAMETERS: &[&str] = &[
    "session_token",
    "access_token",
    "api_key",
    "apikey",
    "ownerToken",
    "token",
];
/// Members of JSON objects whose string value is secret.
const MEMBERS: &[&str] = &[
    "ownerToken",
    "sessionToken",
    "session_token",
    "accessToken",
    "access_token",
    "apiKey",
    "api_key",
];
/// Shortest secret that is replaced in other places than its own, in bytes.
const TELLING: usize = 8;

/// Names of placeholders by the values that they stand for.
#[derive(Debug, Default)]
pub(super) struct Redactor {
    secrets: BTreeMap<Vec<u8>, String>,
    /// Names of the secrets' placeholders.
    taken: BTreeSet<String>,
    /// Finds what is replaced wherever it stands; its patterns are those of `found`.
    finder: Option<AhoCorasick>,
    /// Names of the finder's patterns.
    found: Vec<String>,
    /// Chunks that hold something to replace, by their index among the entries.
    chunks: BTreeMap<usize, Pattern>,
}

/// What is replaced: a range of bytes, and the placeholder's name.
type Cut = (Range<usize>, String);

impl Redactor {
    /// Looks through a transcript. `names` are values and the placeholders that stand for them.
    pub(super) fn of(transcript: &Transcript, names: &[(String, String)]) -> Self {
        let mut redactor = Self::default();
        let bodies = bodies(transcript);
        redactor.collect(transcript, &bodies);
        redactor.look_for(names);
        for body in bodies.values() {
            redactor.cut_chunks(body);
        }
        redactor
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str, value: &str) -> Pattern {
        self.pattern(value.as_bytes(), header_secrets(name, value))
    }

    /// A request target.
    pub(super) fn target(&self, target: &str) -> Pattern {
        self.pattern(target.as_bytes(), target_secrets(target))
    }

    /// Any other text.
    pub(super) fn text(&self, bytes: &[u8]) -> Pattern {
        self.pattern(bytes, member_secrets(bytes))
    }

    /// The chunk with this index among the entries.
    pub(super) fn chunk(&self, index: usize, bytes: &[u8]) -> Pattern {
        self.chunks
            .get(&index)
            .cloned()
            .unwrap_or_else(|| Pattern::literal(bytes))
    }

    /// Redacts a text that stands by itself, such as a request line.
    pub(super) fn alone(text: &str) -> Pattern {
        let mut redactor = Self::default();
        let secrets = [target_secrets(text), member_secrets(text.as_bytes())].concat();
        redactor.learn(text.as_bytes(), &secrets);
        redactor.pattern(text.as_bytes(), secrets)
    }

    /// Makes the finder of the secrets that are telling, and of other values with their names.
    fn look_for(&mut self, names: &[(String, String)]) {
        let telling = self
            .secrets
            .iter()
            .filter(|(value, _)| value.len() >= TELLING);
        let telling = telling.map(|(value, name)| (value.as_slice(), name));
        let named = names.iter().filter(|(value, _)| !value.is_empty());
        let named = named.map(|(value, name)| (value.as_bytes(), name));
        let (values, names): (Vec<&[u8]>, Vec<&String>) = telling.chain(named).unzip();
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(values);
        // It fails on more bytes of patterns than any transcript holds.
        self.finder = finder.ok().filter(|_| !names.is_empty());
        self.found = names.into_iter().cloned().collect();
    }

    fn collect(&mut self, transcript: &Transcript, bodies: &BTreeMap<ExchangeId, Body>) {
        for (index, entry) in transcript.entries.iter().enumerate() {
            match &entry.fact {
                Fact::Request { request, .. } => {
                    self.learn_headers(&request.headers);
                    self.learn(request.target.as_bytes(), &target_secrets(&request.target));
                    self.learn(&request.body, &member_secrets(&request.body));
                }
                Fact::Response { head, .. } => self.learn_headers(&head.headers),
                Fact::Chunk { exchange, .. } => {
                    let body = bodies
                        .get(exchange)
                        .filter(|body| body.chunks.first().is_some_and(|c| c.0 == index));
                    if let Some(body) = body {
                        self.learn(&body.bytes, &member_secrets(&body.bytes));
                    }
                }
                Fact::WebSocket {
                    frame: WsFrame::Text(text),
                    ..
                } => {
                    self.learn(text.as_bytes(), &member_secrets(text.as_bytes()));
                }
                Fact::Line { bytes, .. } => self.learn(bytes, &member_secrets(bytes)),
                Fact::State(value) => {
                    let text = value.to_string();
                    self.learn(text.as_bytes(), &member_secrets(text.as_bytes()));
                }
                _ => {}
            }
        }
    }

    fn learn_headers(&mut self, headers: &[(String, String)]) {
        for (name, value) in headers {
            self.learn(value.as_bytes(), &header_secrets(name, value));
        }
    }

    fn learn(&mut self, bytes: &[u8], secrets: &[Range<usize>]) {
        for value in secrets.iter().filter_map(|range| bytes.get(range.clone())) {
            if self.secrets.contains_key(value) {
                continue;
            }
            let name = written_placeholder(value).unwrap_or_else(|| self.free_name());
            self.taken.insert(name.clone());
            self.secrets.insert(value.to_vec(), name);
        }
    }

    fn free_name(&self) -> String {
        let numbers = self.secrets.len() + 1..;
        let mut names = numbers.map(|number| format!("secret-{number}"));
        names
            .find(|name| !self.taken.contains(name))
            .unwrap_or_default()
    }

    fn cut_chunks(&mut self, body: &Body) {
        let cuts = self.cuts(&body.bytes, member_secrets(&body.bytes));
        let mut cuts = cuts.as_slice();
        for (index, range) in &body.chunks {
            while let [(cut, _), later @ ..] = cuts
                && cut.end <= range.start
            {
                cuts = later;
            }
            if cuts.first().is_some_and(|(cut, _)| cut.start < range.end) {
                self.chunks
                    .insert(*index, apply(&body.bytes, range.clone(), cuts));
            }
        }
    }

    fn pattern(&self, bytes: &[u8], secrets: Vec<Range<usize>>) -> Pattern {
        apply(bytes, 0..bytes.len(), &self.cuts(bytes, secrets))
    }

    /// All that is replaced in these bytes, in order and without overlap.
    fn cuts(&self, bytes: &[u8], secrets: Vec<Range<usize>>) -> Vec<Cut> {
        let placed = secrets.into_iter().filter_map(|range| {
            let name = self.secrets.get(bytes.get(range.clone())?)?;
            Some((range, name.clone()))
        });
        let found = self
            .finder
            .iter()
            .flat_map(|finder| finder.find_iter(bytes))
            .filter_map(|found| {
                let name = self.found.get(found.pattern().as_usize())?;
                Some((found.range(), name.clone()))
            });
        let mut cuts: Vec<Cut> = placed.chain(found).collect();
        cuts.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut end = 0;
        cuts.retain(|(range, _)| {
            let free = range.start >= end;
            end = if free { range.end } else { end };
            free
        });
        cuts
    }
}

/// The bytes of `range` with the cuts replaced; a cut that began before the range only loses its bytes.
fn apply(bytes: &[u8], range: Range<usize>, cuts: &[Cut]) -> Pattern {
    let mut pattern = Pattern::default();
    let mut from = range.start;
    for (cut, name) in cuts.iter().take_while(|(cut, _)| cut.start < range.end) {
        if cut.start >= range.start {
            pattern.push_bytes(bytes.get(from..cut.start).unwrap_or_default());
            pattern.push_hole(name);
        }
        from = from.max(cut.end.min(range.end));
    }
    pattern.push_bytes(bytes.get(from..range.end).unwrap_or_default());
    pattern
}

/// A whole response body, and where its chunks lie in it.
#[derive(Debug, Default)]
struct Body {
    bytes: Vec<u8>,
    chunks: Vec<(usize, Range<usize>)>,
}

fn bodies(transcript: &Transcript) -> BTreeMap<ExchangeId, Body> {
    let mut bodies: BTreeMap<ExchangeId, Body> = BTreeMap::new();
    for (index, entry) in transcript.entries.iter().enumerate() {
        if let Fact::Chunk { exchange, bytes } = &entry.fact {
            let body = bodies.entry(*exchange).or_default();
            let start = body.bytes.len();
            body.bytes.extend_from_slice(bytes);
            body.chunks.push((index, start..body.bytes.len()));
        }
    }
    bodies
}

/// The name, when a value is a placeholder already.
fn written_placeholder(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    match Pattern::decode(text).pieces.as_slice() {
        [Piece::Hole(name)] => Some(name.clone()),
        _ => None,
    }
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn header_secrets(name: &str, value: &str) -> Vec<Range<usize>> {
    let all = 0..value.len();
    let found = if is_one_of(name, HEADERS) {
        vec![all]
    } else if is_one_of(name, SCHEME_HEADERS) {
        let secret = value.find(' ').map_or(0, |space| space + 1);
        std::iter::once(secret..value.len()).collect()
    } else if is_one_of(name, COOKIE_HEADERS) {
        let pairs = if name.eq_ignore_ascii_case("set-cookie") {
            1
        } else {
            usize::MAX
        };
        values(value, 0, &[';'])
            .take(pairs)
            .map(|(_, range)| range)
            .collect()
    } else {
        Vec::new()
    };
    found
        .into_iter()
        .filter(|range| !range.is_empty())
        .collect()
}

fn target_secrets(target: &str) -> Vec<Range<usize>> {
    let Some(query) = target.find('?') else {
        return Vec::new();
    };
    // Gemini takes its API key as `key`; elsewhere a `key` is no secret.
    let gemini = target.contains("/v1beta/");
    values(target, query + 1, &['&'])
        .filter(|(name, _)| is_one_of(name, PARAMETERS) || (gemini && *name == "key"))
        .map(|(_, range)| range)
        .filter(|range| !range.is_empty())
        .collect()
}

/// Names, and ranges of the values, of the `name=value` pairs of a text from an offset on.
fn values<'a>(
    text: &'a str,
    from: usize,
    parted_by: &'a [char],
) -> impl Iterator<Item = (&'a str, Range<usize>)> {
    let rest = text.get(from..).unwrap_or_default();
    let mut start = from;
    rest.split(parted_by).filter_map(move |pair| {
        let at = start;
        start += pair.len() + 1;
        let equals = pair.find('=')?;
        Some((pair.get(..equals)?.trim(), at + equals + 1..at + pair.len()))
    })
}

/// Ranges of the string values of secret members, wherever JSON stands in these bytes.
fn member_secrets(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = MEMBERS
        .iter()
        .flat_map(|member| {
            let quoted = format!("\"{member}\"");
            let starts: Vec<usize> = memmem::find_iter(bytes, &quoted)
                .map(|at| at + quoted.len())
                .collect();
            starts.into_iter().filter_map(|at| string_value(bytes, at))
        })
        .filter(|range| !range.is_empty())
        .collect();
    found.sort_by_key(|range| range.start);
    found
}

/// Range of the string after the colon at `at`, without its quotes.
fn string_value(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let skip_space = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    };
    let colon = skip_space(at);
    let quote = skip_space((bytes.get(colon) == Some(&b':')).then_some(colon + 1)?);
    let start = (bytes.get(quote) == Some(&b'"')).then_some(quote + 1)?;
    let mut end = start;
    loop {
        match bytes.get(end)? {
            b'"' => return Some(start..end),
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
}
