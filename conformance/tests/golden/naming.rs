//! A live transcript as a template.
//!
//! An id gets a placeholder with its own prefix (`{{session-1}}`), the same one wherever it stands. Times and
//! durations get one for each place, because two that are equal may be so by accident; in the frame of an event
//! that comes again byte for byte they are the same ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value;
use turnwire::transcript::{
    End, Entry, ExchangeId, Fact, TargetFact, Transcript, WsFrame,
    diff::{
        IGNORED_HEADERS,
        volatile::{Kind, Token, tokens},
    },
    is_event_stream, text,
};

/// The day on which all golden files happen, Unix milliseconds: 2026-01-01T00:00:00Z.
const STARTED_MS: i64 = 1_767_225_600_000;

/// What stands around a name until the file is written: characters that no protocol uses.
const OPEN: char = '\u{e000}';
const CLOSE: char = '\u{e001}';

/// What stands before a number of seconds that depends on when it is said.
const WAIT: &str = "try again in ";

/// The text of the golden file.
pub(crate) fn template(live: &Transcript) -> String {
    let mut transcript = cleaned(live);
    let mut names = Names {
        chosen: transcript.entries.iter().filter_map(chosen).collect(),
        ..Names::default()
    };
    transcript.header.started_ms = STARTED_MS;
    let mut at = Duration::ZERO;
    for entry in &mut transcript.entries {
        // Whole milliseconds are enough for readers, and the order is kept.
        at = at.max(Duration::from_millis(
            u64::try_from(entry.at.as_millis()).unwrap_or(u64::MAX),
        ));
        entry.at = at;
        names.fact(&mut entry.fact);
    }
    let pairs: Vec<(String, String)> = names
        .used
        .iter()
        .map(|name| (format!("{OPEN}{name}{CLOSE}"), name.clone()))
        .collect();
    text::write_template(&transcript, &pairs)
}

/// The transcript without what one run has and the next does not: headers of one connection, remarks of the
/// harness about itself, chunk boundaries and heartbeats between other frames.
pub(crate) fn cleaned(live: &Transcript) -> Transcript {
    let mut cleaned = Transcript {
        header: live.header.clone(),
        entries: Vec::new(),
    };
    let mut streams: BTreeMap<ExchangeId, Pieces> = BTreeMap::new();
    let mut channels = BTreeSet::new();
    let keeps_beats = live.header.time_scale < 1.0;
    for entry in &live.entries {
        let mut fact = entry.fact.clone();
        match &mut fact {
            Fact::Note(note) if note.starts_with("harness late") => continue,
            Fact::Target(TargetFact::Started { .. }) if cleaned.entries.is_empty() => continue,
            Fact::Request { request, .. } => request.headers.retain(|(name, _)| tells(name)),
            Fact::Line { exchange, .. } => {
                channels.insert(*exchange);
            }
            Fact::Response { exchange, head } => {
                let stream = is_event_stream(&head.headers);
                streams.insert(
                    *exchange,
                    Pieces {
                        stream,
                        open: Vec::new(),
                    },
                );
                head.headers.retain(|(name, _)| tells(name));
            }
            Fact::Chunk { exchange, bytes } => {
                let pieces = streams.entry(*exchange).or_default();
                pieces.open.extend_from_slice(bytes);
                for piece in pieces.whole(keeps_beats) {
                    let exchange = *exchange;
                    cleaned.entries.push(Entry {
                        at: entry.at,
                        fact: Fact::Chunk {
                            exchange,
                            bytes: piece,
                        },
                    });
                }
                continue;
            }
            Fact::End { exchange, how } => {
                let rest = streams
                    .remove(exchange)
                    .map(|pieces| pieces.open)
                    .unwrap_or_default();
                if !rest.is_empty() {
                    let exchange = *exchange;
                    cleaned.entries.push(Entry {
                        at: entry.at,
                        fact: Fact::Chunk {
                            exchange,
                            bytes: rest.into(),
                        },
                    });
                }
                if channels.contains(exchange) {
                    // The server closes what we close, sometimes before it is seen that we did.
                    *how = End::ClosedByHarness;
                }
                if let End::Broken(words) = how {
                    // The words are the system's own.
                    "the connection broke".clone_into(words);
                }
            }
            _ => {}
        }
        cleaned.entries.push(Entry { at: entry.at, fact });
    }
    cleaned
}

fn tells(header: &str) -> bool {
    header != "user-agent" && (!IGNORED_HEADERS.contains(&header))
}

/// The body of a response on its way into pieces: frames of a stream, or the whole.
#[derive(Default)]
struct Pieces {
    stream: bool,
    open: Vec<u8>,
}

impl Pieces {
    fn whole(&mut self, keeps_beats: bool) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        while let Some(end) = self.stream.then(|| find_blank_line(&self.open)).flatten() {
            let frame: Vec<u8> = self.open.drain(..end).collect();
            let text = String::from_utf8_lossy(&frame);
            let beat =
                text.lines().any(|line| line == "event: system.heartbeat") || text.starts_with(':');
            if keeps_beats || !beat {
                pieces.push(frame.into());
            }
        }
        pieces
    }
}

fn find_blank_line(bytes: &[u8]) -> Option<usize> {
    let found = |pattern: &[u8]| {
        bytes
            .windows(pattern.len())
            .position(|at| at == pattern)
            .map(|at| at + pattern.len())
    };
    match (found(b"\n\n"), found(b"\r\n\r\n")) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The id that a client made up for its request; a scenario's own are the same in every run.
fn chosen(entry: &Entry) -> Option<String> {
    let Fact::Request { request, .. } = &entry.fact else {
        return None;
    };
    let body: Value = serde_json::from_slice(&request.body).ok()?;
    let id = body.get("requestId")?.as_str()?;
    id.starts_with("turnwire-").then(|| id.to_owned())
}

/// A part of a text that gets a placeholder.
struct Place<'t> {
    start: usize,
    end: usize,
    what: What<'t>,
}

enum What<'t> {
    /// Told by what it looks like.
    Token(Token<'t>),
    /// An id that a client made up.
    Chosen(&'t str),
    /// Seconds.
    Wait,
}

#[derive(Default)]
struct Names {
    /// Ids that clients made up.
    chosen: BTreeSet<String>,
    /// Placeholder of an id.
    ids: BTreeMap<String, String>,
    /// How many there are of each kind.
    counts: BTreeMap<String, usize>,
    /// Texts that were seen before, with their placeholders.
    seen: BTreeMap<String, String>,
    used: Vec<String>,
}

impl Names {
    fn fact(&mut self, fact: &mut Fact) {
        match fact {
            Fact::Request { request, .. } => {
                request.target = self.text(&request.target);
                for (name, value) in &mut request.headers {
                    if !is_secret(name) {
                        *value = self.text(value);
                    }
                }
                request.body = self.bytes(&request.body);
            }
            Fact::Response { head, .. } => {
                for (name, value) in &mut head.headers {
                    // One that counts down, and not one that a script says.
                    let counts = name == "retry-after" && head.status == 429 && value.len() > 1;
                    *value = if counts {
                        self.marked(&What::Wait)
                    } else {
                        self.text(value)
                    };
                }
            }
            Fact::Chunk { bytes, .. } | Fact::Line { bytes, .. } => *bytes = self.bytes(bytes),
            Fact::WebSocket {
                frame: WsFrame::Text(text),
                ..
            }
            | Fact::Note(text) => *text = self.text(text),
            _ => {}
        }
    }

    fn bytes(&mut self, bytes: &Bytes) -> Bytes {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text(text).into(),
            Err(_) => bytes.clone(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        // An event keeps its id wherever it is told; whatever else is equal may be so by accident.
        let event = text.lines().any(|line| line.starts_with("id: "));
        if let Some(known) = self.seen.get(text).filter(|_| event) {
            return known.clone();
        }
        let mut named = String::new();
        let mut from = 0;
        for place in self.places(text) {
            named.push_str(&text[from..place.start]);
            named.push_str(&self.marked(&place.what));
            from = place.end;
        }
        named.push_str(&text[from..]);
        self.seen.insert(text.to_owned(), named.clone());
        named
    }

    /// The parts that get placeholders, in order and without overlap.
    fn places<'t>(&self, text: &'t str) -> Vec<Place<'t>> {
        // A secret is the writer's affair, which knows it by its place.
        let tokens = tokens(text)
            .into_iter()
            .filter(|token| token.kind != Kind::Placeholder && !follows_secret(text, token));
        let mut places: Vec<_> = tokens
            .map(|token| Place {
                start: token.start,
                end: token.end(),
                what: What::Token(token),
            })
            .collect();
        for id in &self.chosen {
            places.extend(text.match_indices(id.as_str()).map(|(start, found)| Place {
                start,
                end: start + found.len(),
                what: What::Chosen(found),
            }));
        }
        places.extend(text.match_indices(WAIT).map(|(at, _)| {
            let start = at + WAIT.len();
            let digits = text[start..].bytes().take_while(u8::is_ascii_digit);
            Place {
                start,
                end: start + digits.count(),
                what: What::Wait,
            }
        }));
        places.sort_by_key(|place| (place.start, std::cmp::Reverse(place.end)));
        let mut end = 0;
        places.retain(|place| {
            let fits = place.start >= end && place.end > place.start;
            if fits {
                end = place.end;
            }
            fits
        });
        places
    }

    fn marked(&mut self, what: &What<'_>) -> String {
        let name = match what {
            What::Token(token) => self.name(token),
            What::Wait => self.fresh("s-"),
            What::Chosen(id) => match self.ids.get(*id) {
                Some(known) => known.clone(),
                None => {
                    let name = self.fresh("request-");
                    self.ids.insert((*id).to_owned(), name.clone());
                    name
                }
            },
        };
        format!("{OPEN}{name}{CLOSE}")
    }

    fn name(&mut self, token: &Token<'_>) -> String {
        let kind = match token.kind {
            Kind::Time if token.text.contains('T') => "time",
            Kind::Time => "unix",
            Kind::Duration => "ms",
            Kind::Port => "port",
            Kind::Id | Kind::Placeholder => return self.id(token),
        };
        self.fresh(&format!("{kind}-"))
    }

    fn id(&mut self, token: &Token<'_>) -> String {
        if let Some(known) = self.ids.get(token.text) {
            return known.clone();
        }
        let prefix = token.prefix();
        let base = if prefix.is_empty() {
            match token.text {
                text if text.len() == 36 && text.matches('-').count() == 4 => "uuid-".to_owned(),
                text if text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                    format!("hex{}-", text.len())
                }
                _ => "id-".to_owned(),
            }
        } else {
            // The separator is part of what the id looks like.
            token.text[..=prefix.len()].to_owned()
        };
        let base = if base.starts_with(|c: char| c.is_ascii_alphabetic()) {
            base
        } else {
            format!("id-{base}")
        };
        let name = self.fresh(&base);
        self.ids.insert(token.text.to_owned(), name.clone());
        name
    }

    fn fresh(&mut self, base: &str) -> String {
        let count = self.counts.entry(base.to_owned()).or_default();
        *count += 1;
        let name = format!("{base}{count}");
        self.used.push(name.clone());
        name
    }
}

fn is_secret(header: &str) -> bool {
    [
        "authorization",
        "x-session-token",
        "x-api-key",
        "x-goog-api-key",
        "x-operator-token",
    ]
    .contains(&header)
}

/// Whether the token is the value of a member or parameter that the writer replaces.
fn follows_secret(text: &str, token: &Token<'_>) -> bool {
    let before = &text[..token.start];
    ["\"ownerToken\":\"", "\"ownerToken\": \"", "session_token="]
        .iter()
        .any(|place| before.ends_with(place))
}
