//! A parsed file, with its placeholders and groups; and what it becomes as a transcript.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;

use super::{ParseError, pattern::Pattern};
pub(super) use crate::transcript::is_event_stream as is_stream;
use crate::transcript::{
    End, Entry, ExchangeId, Fact, Header, Request, ResponseHead, Side, TargetFact, Transcript,
    WsFrame,
};

/// A transcript as it is written: facts whose texts may hold placeholders, and unordered groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// Where it comes from.
    pub header: Header,
    pub(super) blocks: Vec<Block>,
}

/// One fact as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    /// Its first line, from 1.
    pub(super) line: usize,
    /// Offset from the start.
    pub(super) at: Duration,
    /// Number of the unordered group that it stands in.
    pub(super) group: Option<usize>,
    pub(super) kind: Kind,
}

/// What a block says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Note(Pattern),
    Label(Pattern),
    Started(Pattern),
    Stopped,
    Killed,
    State(Pattern),
    Request {
        exchange: ExchangeId,
        method: Pattern,
        target: Pattern,
        headers: Headers,
        body: Vec<BodyLine>,
    },
    Head {
        exchange: ExchangeId,
        status: u16,
        headers: Headers,
    },
    Body {
        exchange: ExchangeId,
        lines: Vec<BodyLine>,
    },
    WebSocket {
        exchange: ExchangeId,
        from: Side,
        frame: Frame,
    },
    Line {
        exchange: ExchangeId,
        from: Side,
        text: Pattern,
    },
    End {
        exchange: ExchangeId,
        how: Ending,
    },
}

/// Header lines as written; `None` when there are none and the default holds.
pub(super) type Headers = Option<Vec<(Pattern, Pattern)>>;

/// A body line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BodyLine {
    /// Its place in the file, from 1.
    pub(super) line: usize,
    pub(super) text: Pattern,
    /// A `\` at its end took its line feed away.
    pub(super) joined: bool,
}

/// A WebSocket frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Frame {
    Text(Pattern),
    Binary(Pattern),
    Ping(Pattern),
    Pong(Pattern),
    Close(Option<(u16, Pattern)>),
}

/// How an exchange ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    Complete,
    ClosedByHarness,
    TimedOut,
    TooLarge,
    Broken(Pattern),
    NotConnected(Pattern),
    NotHttp(Pattern),
}

impl Template {
    /// The transcript that it is, placeholders as they are written.
    ///
    /// # Errors
    ///
    /// [`ParseError`] where a text would have to be UTF-8 or JSON and is not.
    pub fn lower(&self) -> Result<Transcript, ParseError> {
        let mut streams = BTreeMap::new();
        let bodies = self.first_bodies();
        let entries = self.blocks.iter().zip(bodies).map(|(block, body)| {
            let fact = fact(block, body, &mut streams)?;
            Ok(Entry { at: block.at, fact })
        });
        Ok(Transcript {
            header: self.header.clone(),
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// For each block that is a head: the lines of the first chunk of its body; else nothing.
    pub(super) fn first_bodies(&self) -> Vec<&[BodyLine]> {
        let mut next: BTreeMap<ExchangeId, &[BodyLine]> = BTreeMap::new();
        let mut found: Vec<&[BodyLine]> = Vec::with_capacity(self.blocks.len());
        for block in self.blocks.iter().rev() {
            let mut first: &[BodyLine] = &[];
            match &block.kind {
                Kind::Body { exchange, lines } => {
                    next.insert(*exchange, lines);
                }
                Kind::Head { exchange, .. } => first = next.remove(exchange).unwrap_or_default(),
                _ => {}
            }
            found.push(first);
        }
        found.reverse();
        found
    }
}

fn fact(
    block: &Block,
    body: &[BodyLine],
    streams: &mut BTreeMap<ExchangeId, bool>,
) -> Result<Fact, ParseError> {
    let text = |pattern: &Pattern| utf8(block.line, pattern);
    let raw = |pattern: &Pattern| Bytes::from(pattern.lower());
    Ok(match &block.kind {
        Kind::Note(note) => Fact::Note(text(note)?),
        Kind::Label(label) => Fact::Label(text(label)?),
        Kind::Started(variant) => Fact::Target(TargetFact::Started {
            variant: text(variant)?,
        }),
        Kind::Stopped => Fact::Target(TargetFact::Stopped),
        Kind::Killed => Fact::Target(TargetFact::Killed),
        Kind::State(json) => Fact::State(parse_json(block.line, &text(json)?)?),
        Kind::Request {
            exchange,
            method,
            target,
            headers,
            body: lines,
        } => {
            let headers = lower_headers(block.line, headers_or_default(headers, lines))?;
            let body = join(lines, is_stream(&headers)).lower().into();
            let request = Request {
                method: text(method)?,
                target: text(target)?,
                headers,
                body,
            };
            Fact::Request {
                exchange: *exchange,
                request,
            }
        }
        Kind::Head {
            exchange,
            status,
            headers,
        } => {
            let headers = lower_headers(block.line, headers_or_default(headers, body))?;
            streams.insert(*exchange, is_stream(&headers));
            Fact::Response {
                exchange: *exchange,
                head: ResponseHead {
                    status: *status,
                    headers,
                },
            }
        }
        Kind::Body { exchange, lines } => {
            let stream = streams.get(exchange).copied().unwrap_or_default();
            Fact::Chunk {
                exchange: *exchange,
                bytes: join(lines, stream).lower().into(),
            }
        }
        Kind::WebSocket {
            exchange,
            from,
            frame,
        } => {
            let frame = match frame {
                Frame::Text(payload) => WsFrame::Text(text(payload)?),
                Frame::Binary(payload) => WsFrame::Binary(raw(payload)),
                Frame::Ping(payload) => WsFrame::Ping(raw(payload)),
                Frame::Pong(payload) => WsFrame::Pong(raw(payload)),
                Frame::Close(None) => WsFrame::Close(None),
                Frame::Close(Some((code, reason))) => WsFrame::Close(Some((*code, text(reason)?))),
            };
            Fact::WebSocket {
                exchange: *exchange,
                from: *from,
                frame,
            }
        }
        Kind::Line {
            exchange,
            from,
            text,
        } => Fact::Line {
            exchange: *exchange,
            from: *from,
            bytes: raw(text),
        },
        Kind::End { exchange, how } => {
            let how = match how {
                Ending::Complete => End::Complete,
                Ending::ClosedByHarness => End::ClosedByHarness,
                Ending::TimedOut => End::TimedOut,
                Ending::TooLarge => End::TooLarge,
                Ending::Broken(words) => End::Broken(text(words)?),
                Ending::NotConnected(words) => End::NotConnected(text(words)?),
                Ending::NotHttp(words) => End::NotHttp(text(words)?),
            };
            Fact::End {
                exchange: *exchange,
                how,
            }
        }
    })
}

/// The bytes of body lines: in an event stream each line has its line feed, elsewhere lines are parted by them.
pub(super) fn join(lines: &[BodyLine], stream: bool) -> Pattern {
    let mut body = Pattern::default();
    for (index, line) in lines.iter().enumerate() {
        body.append(&line.text);
        if !line.joined && (stream || index + 1 < lines.len()) {
            body.push_bytes(b"\n");
        }
    }
    body
}

/// The content type that a body shows by its first line.
pub(super) fn default_type(first_line: &[u8]) -> Option<&'static str> {
    const FIELDS: [&[u8]; 5] = [b"event:", b"data:", b"id:", b"retry:", b":"];
    if FIELDS.iter().any(|field| first_line.starts_with(field)) {
        return Some("text/event-stream");
    }
    matches!(first_line.first(), Some(b'{' | b'[')).then_some("application/json")
}

/// The header lines of a message, those included that it has by default because of its body.
pub(super) fn headers_or_default(headers: &Headers, body: &[BodyLine]) -> Vec<(Pattern, Pattern)> {
    headers.clone().unwrap_or_else(|| default_headers(body))
}

fn default_headers(body: &[BodyLine]) -> Vec<(Pattern, Pattern)> {
    let first = body
        .first()
        .map(|line| line.text.lower())
        .unwrap_or_default();
    default_type(&first)
        .map(|value| ("content-type".into(), value.into()))
        .into_iter()
        .collect()
}

fn lower_headers(
    line: usize,
    headers: Vec<(Pattern, Pattern)>,
) -> Result<Vec<(String, String)>, ParseError> {
    headers
        .iter()
        .map(|(name, value)| Ok((utf8(line, name)?, utf8(line, value)?)))
        .collect()
}

fn utf8(line: usize, pattern: &Pattern) -> Result<String, ParseError> {
    String::from_utf8(pattern.lower()).map_err(|error| {
        let got = format!("{:?}", String::from_utf8_lossy(error.as_bytes()));
        ParseError {
            line,
            column: 1,
            expected: "text in UTF-8".to_owned(),
            got,
        }
    })
}

fn parse_json(line: usize, text: &str) -> Result<serde_json::Value, ParseError> {
    serde_json::from_str(text).map_err(|error| ParseError {
        line,
        column: "state ".len() + error.column(),
        expected: "one JSON value".to_owned(),
        got: error.to_string(),
    })
}
