//! A template laid out for comparison: a spine, and the units of each exchange.

use std::collections::{BTreeMap, BTreeSet};

use crate::transcript::{
    End, ExchangeId, Fact, Side, TargetFact, Transcript, WsFrame,
    text::{
        pattern::Pattern,
        template::{
            self, Block, BodyLine, Ending, Frame, Headers, Kind, Template, headers_or_default, join,
        },
    },
};

/// What is compared as one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    /// Line of the file, from 1; 0 in what was no file.
    pub(crate) line: usize,
    /// Group within which it may change places.
    pub(crate) group: Option<usize>,
    /// Kind of the unit, such as `frame`; different kinds never match.
    pub(crate) what: String,
    pub(crate) text: Pattern,
    /// Headers that must be there.
    pub(crate) headers: Vec<(Pattern, Pattern)>,
    /// The exchange that this unit of the spine opens.
    pub(crate) opens: Option<ExchangeId>,
}

const END: &str = "end";
const EXCHANGE: &str = "exchange";

impl Unit {
    pub(crate) fn is_end(&self) -> bool {
        self.what == END
    }
}

/// A template, laid out.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// Labels, target facts, states and openings of exchanges.
    pub(crate) spine: Vec<Unit>,
    exchanges: BTreeMap<ExchangeId, Content>,
    pub(crate) last_line: usize,
}

/// What belongs to one exchange.
#[derive(Debug, Default)]
struct Content {
    units: Vec<Unit>,
    /// Group in which the exchange was opened: it parts exchanges, not what is in them.
    group: Option<usize>,
    stream: bool,
    body: Assembly,
}

impl Outline {
    pub(crate) fn of(template: &Template) -> Self {
        let mut outline = Self::default();
        let bodies = template.first_bodies();
        for (block, body) in template.blocks.iter().zip(bodies) {
            outline.last_line = block.line;
            match exchange_of(&block.kind) {
                None => outline.spine.extend(spine_unit(block)),
                Some(exchange) => outline.exchange_block(exchange, block, body),
            }
        }
        for content in outline.exchanges.values_mut() {
            content.flush();
        }
        outline
    }

    pub(crate) fn exchange(&self, exchange: ExchangeId) -> &[Unit] {
        self.exchanges
            .get(&exchange)
            .map(|content| content.units.as_slice())
            .unwrap_or_default()
    }

    /// Whether units like this one are compared: exchanges always, others when there are any here.
    pub(crate) fn asks_for(&self, unit: &Unit) -> bool {
        let family = |unit: &Unit| unit.what.split(' ').next().unwrap_or_default().to_owned();
        unit.opens.is_some() || self.spine.iter().any(|own| family(own) == family(unit))
    }

    fn exchange_block(&mut self, exchange: ExchangeId, block: &Block, body: &[BodyLine]) {
        let spine = &mut self.spine;
        let content = self.exchanges.entry(exchange).or_insert_with(|| {
            let text = match &block.kind {
                Kind::Request { method, target, .. } => request_line(method, target),
                _ => Pattern::default(),
            };
            spine.push(Unit {
                opens: Some(exchange),
                text,
                ..unit(block, block.group, EXCHANGE)
            });
            Content {
                group: block.group,
                ..Content::default()
            }
        });
        content.add(block, body);
    }
}

impl Content {
    fn add(&mut self, block: &Block, first_body: &[BodyLine]) {
        let group = block.group.filter(|_| block.group != self.group);
        if !matches!(block.kind, Kind::Body { .. }) {
            self.flush();
        }
        let unit = |what: &str| unit(block, group, what);
        match &block.kind {
            Kind::Request {
                method,
                target,
                headers,
                body,
                ..
            } => {
                let text = request_line(method, target);
                let asked = headers.clone().unwrap_or_default();
                self.units.push(Unit {
                    text,
                    headers: asked,
                    ..unit("request")
                });
                let text = join(body, is_stream(headers, body));
                self.units.push(Unit {
                    text,
                    ..unit("request body")
                });
            }
            Kind::Head {
                status, headers, ..
            } => {
                self.stream = is_stream(headers, first_body);
                let text = Pattern::literal(status.to_string());
                let headers = headers.clone().unwrap_or_default();
                self.units.push(Unit {
                    text,
                    headers,
                    ..unit("head")
                });
            }
            Kind::Body { lines, .. } => {
                let last = lines.len().saturating_sub(1);
                for (index, line) in lines.iter().enumerate() {
                    let feed = !line.joined && (self.stream || index < last);
                    self.body.add(line, feed, group);
                }
            }
            Kind::WebSocket { from, frame, .. } => {
                let (kind, text) = web_socket(frame);
                self.units.push(Unit {
                    text,
                    ..unit(&format!("WebSocket {kind} from the {}", side(*from)))
                });
            }
            Kind::Line { from, text, .. } => {
                self.units.push(Unit {
                    text: text.clone(),
                    ..unit(&format!("line from the {}", side(*from)))
                });
            }
            Kind::End { how, .. } => self.units.push(Unit {
                text: ending(how),
                ..unit(END)
            }),
            Kind::Note(_)
            | Kind::Label(_)
            | Kind::Started(_)
            | Kind::Stopped
            | Kind::Killed
            | Kind::State(_) => {}
        }
    }

    /// Turns the body that was collected into units.
    fn flush(&mut self) {
        let body = std::mem::take(&mut self.body);
        if body.lines.is_empty() {
            return;
        }
        if !self.stream {
            let mut whole = Unit {
                what: "body".to_owned(),
                ..Unit::default()
            };
            for (index, part) in body.lines.into_iter().enumerate() {
                if index == 0 {
                    (whole.line, whole.group) = (part.line, part.group);
                }
                whole.text.append(&part.text);
            }
            self.units.push(whole);
            return;
        }
        let mut frame = Unit {
            what: "frame".to_owned(),
            ..Unit::default()
        };
        for part in body.lines {
            if frame.text.is_empty() {
                (frame.line, frame.group) = (part.line, part.group);
            }
            frame.text.append(&part.text);
            if part.is_blank() {
                self.units.push(std::mem::replace(
                    &mut frame,
                    Unit {
                        what: "frame".to_owned(),
                        ..Unit::default()
                    },
                ));
            }
        }
        if !frame.text.is_empty() {
            self.units.push(frame);
        }
    }
}

/// A body, put together from its chunks and parted into its lines.
#[derive(Debug, Default)]
struct Assembly {
    lines: Vec<Part>,
    /// Whether the last line may go on.
    open: bool,
}

/// A line of a body with its line feed.
#[derive(Debug, Default)]
struct Part {
    line: usize,
    group: Option<usize>,
    text: Pattern,
}

impl Assembly {
    fn add(&mut self, line: &BodyLine, feed: bool, group: Option<usize>) {
        let mut text = line.text.clone();
        if feed {
            text.push_bytes(b"\n");
        }
        let pieces = text.lines();
        let last = pieces.len().saturating_sub(1);
        for (index, mut piece) in pieces.into_iter().enumerate() {
            if index < last {
                piece.push_bytes(b"\n");
            } else if piece.is_empty() {
                continue;
            }
            self.push(piece, line.line, group, index < last);
        }
    }

    fn push(&mut self, text: Pattern, line: usize, group: Option<usize>, complete: bool) {
        match self.lines.last_mut().filter(|_| self.open) {
            Some(part) => part.text.append(&text),
            None => self.lines.push(Part { line, group, text }),
        }
        self.open = !complete;
    }
}

impl Part {
    fn is_blank(&self) -> bool {
        matches!(self.text.lower().as_slice(), b"\n" | b"\r\n")
    }
}

impl Template {
    /// The same without these exchanges.
    #[must_use]
    pub fn without(&self, exchanges: &BTreeSet<ExchangeId>) -> Self {
        let mut template = self.clone();
        let stays = |block: &Block| {
            exchange_of(&block.kind).is_none_or(|exchange| !exchanges.contains(&exchange))
        };
        template.blocks.retain(stays);
        template
    }

    /// A transcript as a template without placeholders, bodies as they are.
    pub fn of(transcript: &Transcript) -> Self {
        let blocks = transcript.entries.iter().map(|entry| {
            let kind = lift(&entry.fact);
            Block {
                line: 0,
                at: entry.at,
                group: None,
                kind,
            }
        });
        Self {
            header: transcript.header.clone(),
            blocks: blocks.collect(),
        }
    }
}

fn lift(fact: &Fact) -> Kind {
    let text = |text: &str| Pattern::literal(text);
    let body = |bytes: &[u8]| {
        vec![BodyLine {
            line: 0,
            text: Pattern::literal(bytes),
            joined: true,
        }]
    };
    let headers = |headers: &[(String, String)]| {
        Some(headers.iter().map(|(n, v)| (text(n), text(v))).collect())
    };
    match fact {
        Fact::Note(note) => Kind::Note(text(note)),
        Fact::Label(label) => Kind::Label(text(label)),
        Fact::State(value) => Kind::State(text(&value.to_string())),
        Fact::Target(TargetFact::Started { variant }) => Kind::Started(text(variant)),
        Fact::Target(TargetFact::Stopped) => Kind::Stopped,
        Fact::Target(TargetFact::Killed) => Kind::Killed,
        Fact::Request { exchange, request } => Kind::Request {
            exchange: *exchange,
            method: text(&request.method),
            target: text(&request.target),
            headers: headers(&request.headers),
            body: body(&request.body),
        },
        Fact::Response { exchange, head } => Kind::Head {
            exchange: *exchange,
            status: head.status,
            headers: headers(&head.headers),
        },
        Fact::Chunk { exchange, bytes } => Kind::Body {
            exchange: *exchange,
            lines: body(bytes),
        },
        Fact::WebSocket {
            exchange,
            from,
            frame,
        } => {
            let frame = match frame {
                WsFrame::Text(payload) => Frame::Text(text(payload)),
                WsFrame::Binary(payload) => Frame::Binary(Pattern::literal(payload.as_ref())),
                WsFrame::Ping(payload) => Frame::Ping(Pattern::literal(payload.as_ref())),
                WsFrame::Pong(payload) => Frame::Pong(Pattern::literal(payload.as_ref())),
                WsFrame::Close(close) => {
                    Frame::Close(close.as_ref().map(|(code, reason)| (*code, text(reason))))
                }
            };
            Kind::WebSocket {
                exchange: *exchange,
                from: *from,
                frame,
            }
        }
        Fact::Line {
            exchange,
            from,
            bytes,
        } => Kind::Line {
            exchange: *exchange,
            from: *from,
            text: Pattern::literal(bytes.as_ref()),
        },
        Fact::End { exchange, how } => {
            let how = match how {
                End::Complete => Ending::Complete,
                End::ClosedByHarness => Ending::ClosedByHarness,
                End::TimedOut => Ending::TimedOut,
                End::TooLarge => Ending::TooLarge,
                End::Broken(words) => Ending::Broken(text(words)),
                End::NotConnected(words) => Ending::NotConnected(text(words)),
                End::NotHttp(words) => Ending::NotHttp(text(words)),
            };
            Kind::End {
                exchange: *exchange,
                how,
            }
        }
    }
}

fn unit(block: &Block, group: Option<usize>, what: &str) -> Unit {
    Unit {
        line: block.line,
        group,
        what: what.to_owned(),
        ..Unit::default()
    }
}

fn spine_unit(block: &Block) -> Option<Unit> {
    let (what, text) = match &block.kind {
        Kind::Label(label) => ("label", label.clone()),
        Kind::Started(variant) => ("target started", variant.clone()),
        Kind::Stopped => ("target stopped", Pattern::default()),
        Kind::Killed => ("target killed", Pattern::default()),
        Kind::State(value) => ("state", value.clone()),
        _ => return None,
    };
    Some(Unit {
        text,
        ..unit(block, block.group, what)
    })
}

fn request_line(method: &Pattern, target: &Pattern) -> Pattern {
    let mut line = method.clone();
    line.push_bytes(b" ");
    line.append(target);
    line
}

fn is_stream(headers: &Headers, body: &[BodyLine]) -> bool {
    let text = |pattern: &Pattern| String::from_utf8_lossy(&pattern.lower()).into_owned();
    let headers: Vec<(String, String)> = headers_or_default(headers, body)
        .iter()
        .map(|(name, value)| (text(name), text(value)))
        .collect();
    template::is_stream(&headers)
}

fn web_socket(frame: &Frame) -> (&'static str, Pattern) {
    match frame {
        Frame::Text(payload) => ("text", payload.clone()),
        Frame::Binary(payload) => ("binary message", payload.clone()),
        Frame::Ping(payload) => ("ping", payload.clone()),
        Frame::Pong(payload) => ("pong", payload.clone()),
        Frame::Close(None) => ("close", Pattern::default()),
        Frame::Close(Some((code, reason))) => {
            let mut text = Pattern::literal(format!("{code} "));
            text.append(reason);
            ("close", text)
        }
    }
}

fn ending(how: &Ending) -> Pattern {
    let (kind, words) = match how {
        Ending::Complete => ("complete", None),
        Ending::ClosedByHarness => ("closed-by-harness", None),
        Ending::TimedOut => ("timed-out", None),
        Ending::TooLarge => ("too-large", None),
        Ending::Broken(words) => ("broken ", Some(words)),
        Ending::NotConnected(words) => ("not-connected ", Some(words)),
        Ending::NotHttp(words) => ("not-http ", Some(words)),
    };
    let mut text = Pattern::literal(kind);
    if let Some(words) = words {
        text.append(words);
    }
    text
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

fn exchange_of(kind: &Kind) -> Option<ExchangeId> {
    match kind {
        Kind::Request { exchange, .. }
        | Kind::Head { exchange, .. }
        | Kind::Body { exchange, .. }
        | Kind::WebSocket { exchange, .. }
        | Kind::Line { exchange, .. }
        | Kind::End { exchange, .. } => Some(*exchange),
        Kind::Note(_)
        | Kind::Label(_)
        | Kind::Started(_)
        | Kind::Stopped
        | Kind::Killed
        | Kind::State(_) => None,
    }
}
