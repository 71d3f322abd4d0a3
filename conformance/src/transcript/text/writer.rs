//! Writes a transcript as text, such that the reader gives the same transcript back.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    time::Duration,
};

use super::{
    VERSION,
    numbers::Numbers,
    pattern::Pattern,
    redact::{Redactor, Replaced},
    template::{default_type, is_stream},
    wire::write_duration,
};
use crate::transcript::{
    End, ExchangeId, Fact, Header, Request, ResponseHead, Side, TargetFact, Transcript, WsFrame,
};

/// Writes a transcript; secrets, and the values of `names`, become placeholders.
pub(super) fn write(transcript: &Transcript, names: &[(String, String)]) -> String {
    writer(transcript, names).out
}

/// As [`write`], with what was replaced.
pub(super) fn write_reporting(
    transcript: &Transcript,
    names: &[(String, String)],
) -> (String, Vec<Replaced>) {
    let writer = writer(transcript, names);
    let replaced = writer.redactor.report(&writer.out, names);
    (writer.out, replaced)
}

fn writer(transcript: &Transcript, names: &[(String, String)]) -> Writer {
    let mut writer = Writer {
        out: String::new(),
        numbers: Numbers::default(),
        crowded: crowded(transcript),
        redactor: Redactor::of(transcript, names),
        streams: BTreeMap::new(),
        at: Duration::ZERO,
    };
    writer.header(&transcript.header);
    let bodies = first_chunks(transcript);
    let mut before = None;
    for (index, (entry, body)) in transcript.entries.iter().zip(bodies).enumerate() {
        writer.parting(before, &entry.fact, entry.at);
        let body = body
            .map(|(index, bytes)| writer.redactor.chunk(index, bytes))
            .unwrap_or_default();
        writer.fact(index, &entry.fact, &body);
        before = Some(&entry.fact);
    }
    writer
}

struct Writer {
    out: String,
    numbers: Numbers,
    /// Exchanges that interleave with others: all their lines are numbered.
    crowded: BTreeSet<ExchangeId>,
    redactor: Redactor,
    streams: BTreeMap<ExchangeId, bool>,
    at: Duration,
}

impl Writer {
    fn header(&mut self, header: &Header) {
        self.line(format_args!("twire {VERSION}"));
        for (key, value) in [("suite", &header.suite), ("scenario", &header.scenario)] {
            if !value.is_empty() {
                self.line(format_args!(
                    "{key}: {}",
                    bare(&Pattern::literal(value.as_str()), &[])
                ));
            }
        }
        let ids: Vec<String> = header
            .requirements
            .iter()
            .map(|id| bare(&Pattern::literal(id.as_str()), &[' ', ',']))
            .collect();
        if !ids.is_empty() {
            self.line(format_args!("requirements: {}", ids.join(" ")));
        }
        if header.time_scale != 1.0 {
            self.line(format_args!("scale: {}", header.time_scale));
        }
        if header.started_ms != 0 {
            self.line(format_args!("started: {}", started(header.started_ms)));
        }
        if !header.lost.is_empty() {
            let words: Vec<&str> = header.lost.iter().map(|lost| lost.word()).collect();
            self.line(format_args!("lost: {}", words.join(" ")));
        }
        for note in &header.notes {
            let note = self.redactor.text(note.as_bytes());
            self.marked("#", &note);
        }
    }

    /// Writes what stands between two facts: an empty line, a time line, or both.
    fn parting(&mut self, before: Option<&Fact>, fact: &Fact, at: Duration) {
        let opens = matches!(fact, Fact::Request { .. } | Fact::Label(_));
        let again = matches!(
            (before, fact),
            (Some(Fact::Chunk { .. }), Fact::Chunk { .. })
        );
        let passed = at.saturating_sub(self.at);
        if before.is_none() || opens || (again && passed.is_zero()) {
            self.out.push('\n');
        }
        // A time line ends the header, whose notes would take a first note in.
        if !passed.is_zero() || (before.is_none() && matches!(fact, Fact::Note(_))) {
            self.line(format_args!("@+{}", write_duration(passed)));
            self.at = at;
        }
    }

    fn fact(&mut self, index: usize, fact: &Fact, body: &Pattern) {
        match fact {
            Fact::Note(note) => self.marked("#", &self.redactor.text(note.as_bytes())),
            Fact::Label(label) => self.marked("label", &self.redactor.text(label.as_bytes())),
            Fact::Target(TargetFact::Started { variant }) => {
                self.marked("target started", &self.redactor.text(variant.as_bytes()));
            }
            Fact::Target(TargetFact::Stopped) => self.line(format_args!("target stopped")),
            Fact::Target(TargetFact::Killed) => self.line(format_args!("target killed")),
            Fact::State(value) => {
                self.marked("state", &self.redactor.text(value.to_string().as_bytes()))
            }
            Fact::Request { exchange, request } => self.request(*exchange, request),
            Fact::Response { exchange, head } => self.head(*exchange, head, body),
            Fact::Chunk { exchange, bytes } => {
                self.chunk(*exchange, &self.redactor.chunk(index, bytes))
            }
            Fact::WebSocket {
                exchange,
                from,
                frame,
            } => self.web_socket(*exchange, *from, frame),
            Fact::Line {
                exchange,
                from,
                bytes,
            } => {
                let number = self.number(*exchange, false);
                self.marked(
                    &format!("{}{number}$", arrow(*from)),
                    &self.redactor.text(bytes),
                );
            }
            Fact::End { exchange, how } => self.end(*exchange, how),
        }
    }

    fn request(&mut self, exchange: ExchangeId, request: &Request) {
        let mark = if self.numbers.requested(exchange) {
            "!"
        } else {
            ""
        };
        let number = self.number(exchange, true);
        self.numbers.request(exchange);
        let method = bare(&Pattern::literal(request.method.as_str()), &[' ']);
        let target = bare(&self.redactor.target(&request.target), &[' ']);
        let space = if target.is_empty() { "" } else { " " };
        self.line(format_args!(">{number}{mark} {method}{space}{target}"));
        let body = self.redactor.text(&request.body);
        self.headers(&format!(">{number}:"), &request.headers, &body);
        if !body.is_empty() {
            self.body(&format!(">{number}"), &body, is_stream(&request.headers));
        }
    }

    fn head(&mut self, exchange: ExchangeId, head: &ResponseHead, body: &Pattern) {
        let mark = if self.numbers.answered(exchange) {
            "!"
        } else {
            ""
        };
        let number = self.number(exchange, false);
        self.numbers.answer(exchange);
        self.line(format_args!("<{number}{mark} {}", head.status));
        self.headers(&format!("<{number}:"), &head.headers, body);
        self.streams.insert(exchange, is_stream(&head.headers));
    }

    fn headers(&mut self, start: &str, headers: &[(String, String)], body: &Pattern) {
        let shown = default_type(&body.lower());
        let default = match (headers, shown) {
            ([], None) => true,
            ([(name, value)], Some(shown)) => name == "content-type" && value == shown,
            _ => false,
        };
        if default {
            return;
        }
        if headers.is_empty() {
            self.line(format_args!("{start}"));
        }
        for (name, value) in headers {
            let written = bare(&Pattern::literal(name.as_str()), &[':']);
            self.marked(
                &format!("{start} {written}:"),
                &self.redactor.header(name, value),
            );
        }
    }

    fn chunk(&mut self, exchange: ExchangeId, bytes: &Pattern) {
        let mark = if self.numbers.answered(exchange) {
            ""
        } else {
            "|"
        };
        let number = self.number(exchange, false);
        let stream = self.streams.get(&exchange).copied().unwrap_or_default();
        self.body(&format!("<{number}{mark}"), bytes, stream);
    }

    fn body(&mut self, start: &str, bytes: &Pattern, stream: bool) {
        let mut lines = bytes.lines();
        // The part after the last line feed: no line of its own, or one without a line feed.
        let rest = if stream { lines.pop() } else { None };
        for line in &lines {
            self.marked(start, line);
        }
        match rest {
            Some(rest) if !rest.is_empty() || lines.is_empty() => {
                self.line(format_args!("{start} {}\\", rest.encode()));
            }
            _ => {}
        }
    }

    fn web_socket(&mut self, exchange: ExchangeId, from: Side, frame: &WsFrame) {
        let start = format!("{}{}~", arrow(from), self.number(exchange, false));
        let text = |text: &str| self.redactor.text(text.as_bytes());
        let (kind, payload) = match frame {
            WsFrame::Text(payload) => ("text".to_owned(), text(payload)),
            WsFrame::Binary(payload) => ("binary".to_owned(), self.redactor.text(payload)),
            WsFrame::Ping(payload) => ("ping".to_owned(), self.redactor.text(payload)),
            WsFrame::Pong(payload) => ("pong".to_owned(), self.redactor.text(payload)),
            WsFrame::Close(None) => ("close".to_owned(), Pattern::default()),
            WsFrame::Close(Some((code, reason))) => (format!("close {code}"), text(reason)),
        };
        self.marked(&format!("{start} {kind}"), &payload);
    }

    fn end(&mut self, exchange: ExchangeId, how: &End) {
        let number = self.number(exchange, false);
        let space = if number.is_empty() { "" } else { " " };
        let (kind, words) = match how {
            End::Complete => ("complete", ""),
            End::ClosedByHarness => ("closed-by-harness", ""),
            End::TimedOut => ("timed-out", ""),
            End::TooLarge => ("too-large", ""),
            End::Broken(words) => ("broken", words.as_str()),
            End::NotConnected(words) => ("not-connected", words.as_str()),
            End::NotHttp(words) => ("not-http", words.as_str()),
        };
        self.marked(
            &format!("end {number}{space}{kind}"),
            &self.redactor.text(words.as_bytes()),
        );
    }

    /// The number that lines of this exchange need, or nothing. Notes the exchange as the current one.
    fn number(&mut self, exchange: ExchangeId, opens: bool) -> String {
        let implied = if opens {
            self.numbers.next()
        } else {
            self.numbers.current()
        };
        let needed = self.crowded.contains(&exchange) || implied != Some(exchange);
        self.numbers.touch(exchange);
        if needed {
            exchange.0.to_string()
        } else {
            String::new()
        }
    }

    /// Writes a start and, after a space, a pattern; only the start when the pattern is empty.
    fn marked(&mut self, start: &str, pattern: &Pattern) {
        let space = if pattern.is_empty() { "" } else { " " };
        let line = pattern.encode();
        self.line(format_args!("{start}{space}{line}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(line);
        self.out.push('\n');
    }
}

fn arrow(from: Side) -> char {
    match from {
        Side::Client => '>',
        Side::Server => '<',
    }
}

/// A pattern as a line on which these characters, and a space in front, are escaped.
fn bare(pattern: &Pattern, escaped: &[char]) -> String {
    let mut text = String::new();
    for (index, c) in pattern.encode().char_indices() {
        if escaped.contains(&c) || (index == 0 && c == ' ') {
            text.push_str(&format!("\\x{:02x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text
}

fn started(millis: i64) -> String {
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => millis.to_string(),
    }
}

/// For each entry that is a head: the first chunk of its body and that chunk's index.
fn first_chunks(transcript: &Transcript) -> Vec<Option<(usize, &bytes::Bytes)>> {
    let mut next = BTreeMap::new();
    let mut found = Vec::with_capacity(transcript.entries.len());
    for (index, entry) in transcript.entries.iter().enumerate().rev() {
        let mut first = None;
        match &entry.fact {
            Fact::Chunk { exchange, bytes } => {
                next.insert(*exchange, (index, bytes));
            }
            Fact::Response { exchange, .. } => first = next.remove(exchange),
            _ => {}
        }
        found.push(first);
    }
    found.reverse();
    found
}

/// The exchanges between whose first and last fact lies a fact of another exchange, and those others.
fn crowded(transcript: &Transcript) -> BTreeSet<ExchangeId> {
    let mut spans: BTreeMap<ExchangeId, (usize, usize)> = BTreeMap::new();
    for (index, entry) in transcript.entries.iter().enumerate() {
        if let Some(exchange) = entry.fact.exchange() {
            spans.entry(exchange).or_insert((index, index)).1 = index;
        }
    }
    let mut spans: Vec<_> = spans
        .into_iter()
        .map(|(exchange, (first, last))| (first, last, exchange))
        .collect();
    spans.sort_unstable();
    let mut crowded = BTreeSet::new();
    let mut reach: Option<(usize, ExchangeId)> = None;
    for (first, last, exchange) in spans {
        // Spans that reach as far as this one overlap each other, so they are in already.
        if let Some((end, other)) = reach.filter(|(end, _)| first < *end) {
            crowded.extend([exchange, other]);
            reach = Some(if last > end {
                (last, exchange)
            } else {
                (end, other)
            });
        } else {
            reach = Some((last, exchange));
        }
    }
    crowded
}
