//! Reads a text into a [`Template`], line by line.

use std::time::Duration;

use super::{
    ParseError, VERSION,
    numbers::Numbers,
    pattern::Pattern,
    template::{Block, BodyLine, Ending, Frame, Kind, Template},
    wire::{self, Arrow, Mark, Scan},
};
use crate::transcript::{ExchangeId, Header, Lost, Side};

const SETTINGS: &str = "`suite:`, `scenario:`, `requirements:`, `scale:`, `started:` or `lost:`";
const ITEMS: &str = "`>`, `<`, `@`, `#`, `label`, `target`, `state`, `end`, `unordered {` or `}`";

impl Template {
    /// Reads a text, placeholders and groups included.
    ///
    /// # Errors
    ///
    /// [`ParseError`] at the first line that the grammar does not allow.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader::default();
        let mut last = 0;
        for (index, line) in text
            .strip_prefix('\u{feff}')
            .unwrap_or(text)
            .split('\n')
            .enumerate()
        {
            last = index + 1;
            reader.read(Scan::new(last, line.strip_suffix('\r').unwrap_or(line)))?;
        }
        match reader.group {
            Some(_) => Err(Scan::new(last, "").error("`}` that closes the group")),
            None => Ok(Self {
                header: reader.header,
                blocks: reader.blocks,
            }),
        }
    }
}

/// What is read so far.
#[derive(Debug, Default)]
struct Reader {
    header: Header,
    /// The settings that were read.
    settings: Vec<String>,
    /// Whether something came after which no setting may stand.
    started: bool,
    blocks: Vec<Block>,
    /// Whether the last block can take more lines.
    open: bool,
    at: Duration,
    numbers: Numbers,
    group: Option<usize>,
    groups: usize,
}

impl Reader {
    fn read(&mut self, mut scan: Scan<'_>) -> Result<(), ParseError> {
        match scan.rest.chars().next() {
            Some('>' | '<') => {
                self.started = true;
                let arrow = wire::arrow(&mut scan)?;
                return self.wire(arrow, scan);
            }
            Some('@') => self.time(scan)?,
            Some('#') => self.comment(scan)?,
            _ if scan.rest.trim().is_empty() => {}
            _ if !self.started && self.setting(scan)? => {}
            _ => {
                self.started = true;
                self.word(scan)?;
            }
        }
        self.open = false;
        Ok(())
    }

    fn push(&mut self, line: usize, kind: Kind) {
        self.started = true;
        self.open = true;
        self.blocks.push(Block {
            line,
            at: self.at,
            group: self.group,
            kind,
        });
    }

    /// The last block, when it can take more lines.
    fn open_block(&mut self) -> Option<&mut Kind> {
        if self.open {
            self.blocks.last_mut().map(|block| &mut block.kind)
        } else {
            None
        }
    }

    fn time(&mut self, mut scan: Scan<'_>) -> Result<(), ParseError> {
        scan.take('@');
        let start = scan;
        let base = if scan.take('+') {
            self.at
        } else {
            Duration::ZERO
        };
        let at = base.checked_add(wire::duration(&mut scan)?);
        let at = at.filter(|at| u64::try_from(at.as_nanos()).is_ok());
        let at = at.ok_or_else(|| start.error("a time within 584 years"))?;
        if at < self.at {
            let expected = format!("a time not before {}", wire::write_duration(self.at));
            return Err(start.error(expected));
        }
        self.at = at;
        self.started = true;
        Ok(())
    }

    fn comment(&mut self, mut scan: Scan<'_>) -> Result<(), ParseError> {
        scan.take('#');
        scan.take(' ');
        if self.started {
            self.push(scan.line, Kind::Note(Pattern::decode(scan.rest)));
        } else {
            let note = text(scan)?;
            self.header.notes.push(note);
        }
        Ok(())
    }

    /// Reads a line of the header; false when it is none.
    fn setting(&mut self, mut scan: Scan<'_>) -> Result<bool, ParseError> {
        let start = scan;
        let key_end = scan.rest.find([' ', ':']).unwrap_or(scan.rest.len());
        let (key, rest) = scan.rest.split_at(key_end);
        scan.rest = rest;
        if key == "twire" {
            return self.version(scan).map(|()| true);
        }
        if !scan.take(':') {
            return Ok(false);
        }
        if self.settings.iter().any(|known| known == key) {
            return Err(start.error(format!("`{key}:` only once")));
        }
        scan.rest = scan.rest.trim();
        match key {
            "suite" => self.header.suite = text(scan)?,
            "scenario" => self.header.scenario = text(scan)?,
            "requirements" => {
                let ids = scan.rest.split([' ', ',']).filter(|id| !id.is_empty());
                self.header.requirements =
                    ids.map(|id| text(scan.at(id))).collect::<Result<_, _>>()?;
            }
            "scale" => self.header.time_scale = scale(scan)?,
            "started" => self.header.started_ms = started(scan)?,
            "lost" => self.header.lost = lost(scan)?,
            _ => return Err(start.error(SETTINGS)),
        }
        self.settings.push(key.to_owned());
        Ok(true)
    }

    fn version(&mut self, mut scan: Scan<'_>) -> Result<(), ParseError> {
        let first = self.settings.is_empty();
        scan.take(' ');
        if !first || scan.rest.trim() != VERSION.to_string() {
            return Err(scan.error(format!("version {VERSION}, once and first")));
        }
        self.settings.push("twire".to_owned());
        Ok(())
    }

    /// Reads a line that begins with a word.
    fn word(&mut self, mut scan: Scan<'_>) -> Result<(), ParseError> {
        let start = scan;
        match scan.word() {
            "label" => {
                let label = Pattern::decode(scan.content("a label")?);
                self.push(scan.line, Kind::Label(label));
            }
            "state" => {
                let state = Pattern::decode(scan.content("one JSON value")?);
                self.push(scan.line, Kind::State(state));
            }
            "target" => self.target(scan)?,
            "end" => self.end(scan)?,
            "unordered" => self.open_group(scan)?,
            "}" => {
                scan.end()?;
                self.group
                    .take()
                    .ok_or_else(|| start.error("`unordered {` before `}`"))?;
            }
            _ => return Err(start.error(ITEMS)),
        }
        Ok(())
    }

    fn open_group(&mut self, mut scan: Scan<'_>) -> Result<(), ParseError> {
        scan.take(' ');
        if self.group.is_some() {
            return Err(scan.error("no group within a group"));
        }
        if !scan.take('{') {
            return Err(scan.error("`{`"));
        }
        scan.end()?;
        self.group = Some(self.groups);
        self.groups += 1;
        Ok(())
    }

    fn target(&mut self, mut scan: Scan<'_>) -> Result<(), ParseError> {
        scan.take(' ');
        let start = scan;
        let kind = match scan.word() {
            "started" => Kind::Started(Pattern::decode(scan.content("a variant")?)),
            "stopped" => Kind::Stopped,
            "killed" => Kind::Killed,
            _ => return Err(start.error("`started VARIANT`, `stopped` or `killed`")),
        };
        if !matches!(kind, Kind::Started(_)) {
            scan.end()?;
        }
        self.push(scan.line, kind);
        Ok(())
    }

    fn end(&mut self, mut scan: Scan<'_>) -> Result<(), ParseError> {
        scan.take(' ');
        let number = wire::exchange(&mut scan)?;
        if number.is_some() {
            scan.take(' ');
        }
        let exchange = self.exchange(number, &scan)?;
        let start = scan;
        let kind = scan.word();
        let words = |scan: &mut Scan<'_>| scan.content("words").map(Pattern::decode);
        let how = match kind {
            "complete" => Ending::Complete,
            "closed-by-harness" => Ending::ClosedByHarness,
            "timed-out" => Ending::TimedOut,
            "too-large" => Ending::TooLarge,
            "broken" => Ending::Broken(words(&mut scan)?),
            "not-connected" => Ending::NotConnected(words(&mut scan)?),
            "not-http" => Ending::NotHttp(words(&mut scan)?),
            _ => {
                let kinds = "`complete`, `broken`, `closed-by-harness`, `timed-out`, `too-large`, `not-connected` or \
                             `not-http`";
                return Err(start.error(kinds));
            }
        };
        scan.end()?;
        self.numbers.touch(exchange);
        self.push(scan.line, Kind::End { exchange, how });
        Ok(())
    }

    /// The exchange that a line belongs to that opens none.
    fn exchange(
        &self,
        number: Option<ExchangeId>,
        scan: &Scan<'_>,
    ) -> Result<ExchangeId, ParseError> {
        let exchange = number.or_else(|| self.numbers.current());
        exchange.ok_or_else(|| scan.error("a request or an exchange number before this line"))
    }

    /// Reads a line that begins with an arrow.
    fn wire(&mut self, arrow: Arrow, scan: Scan<'_>) -> Result<(), ParseError> {
        match (arrow.mark, arrow.from) {
            (Mark::Header, _) => self.header_line(arrow, scan),
            (Mark::WebSocket, _) => self.web_socket(arrow, scan),
            (Mark::Line, _) => self.channel_line(arrow, scan),
            (Mark::Start, Side::Client) => self.request(arrow, scan),
            (Mark::Body, Side::Client) => self.request_body(arrow, scan),
            (Mark::Plain, Side::Client) => {
                let continues = matches!(self.open_block(), Some(Kind::Request { exchange, .. })
                    if arrow.number.is_none_or(|number| number == *exchange));
                if continues {
                    self.request_body(arrow, scan)
                } else {
                    self.request(arrow, scan)
                }
            }
            (Mark::Start, Side::Server) => self.head(arrow, scan),
            (Mark::Body, Side::Server) => self.body(arrow, scan),
            (Mark::Plain, Side::Server) => {
                let exchange = self.exchange(arrow.number, &scan)?;
                if self.numbers.answered(exchange) {
                    self.body(arrow, scan)
                } else {
                    self.head(arrow, scan)
                }
            }
        }
    }

    fn request(&mut self, arrow: Arrow, mut scan: Scan<'_>) -> Result<(), ParseError> {
        let exchange = arrow.number.or_else(|| self.numbers.next());
        let exchange = exchange.ok_or_else(|| scan.error("an exchange number"))?;
        if arrow.mark == Mark::Plain && self.numbers.requested(exchange) {
            let expected = format!(
                "a new exchange number, as {} has its request (or `!`)",
                exchange.0
            );
            return Err(scan.error(expected));
        }
        scan.take(' ');
        let start = scan;
        let method = scan.word();
        if method.is_empty() {
            return Err(start.error("a method, such as `> GET /path`"));
        }
        scan.take(' ');
        let target = scan.word();
        scan.end()?;
        self.numbers.request(exchange);
        self.push(
            scan.line,
            Kind::Request {
                exchange,
                method: Pattern::decode(method),
                target: Pattern::decode(target),
                headers: None,
                body: Vec::new(),
            },
        );
        Ok(())
    }

    fn request_body(&mut self, arrow: Arrow, mut scan: Scan<'_>) -> Result<(), ParseError> {
        let error = scan.error("a request right above its body");
        let line = body_line(&mut scan)?;
        match self.open_block() {
            Some(Kind::Request { exchange, body, .. })
                if arrow.number.is_none_or(|number| number == *exchange) =>
            {
                body.push(line);
                Ok(())
            }
            _ => Err(error),
        }
    }

    fn head(&mut self, arrow: Arrow, mut scan: Scan<'_>) -> Result<(), ParseError> {
        let exchange = self.exchange(arrow.number, &scan)?;
        scan.take(' ');
        let status = scan.number("a status, such as `< 200` (body lines come after it)")?;
        scan.content("the end of the line")?;
        self.numbers.answer(exchange);
        self.push(
            scan.line,
            Kind::Head {
                exchange,
                status,
                headers: None,
            },
        );
        Ok(())
    }

    fn body(&mut self, arrow: Arrow, mut scan: Scan<'_>) -> Result<(), ParseError> {
        let exchange = self.exchange(arrow.number, &scan)?;
        let line = body_line(&mut scan)?;
        match self.open_block() {
            Some(Kind::Body {
                exchange: open,
                lines,
            }) if *open == exchange => lines.push(line),
            _ => {
                self.numbers.touch(exchange);
                self.push(
                    scan.line,
                    Kind::Body {
                        exchange,
                        lines: vec![line],
                    },
                );
            }
        }
        Ok(())
    }

    fn header_line(&mut self, arrow: Arrow, mut scan: Scan<'_>) -> Result<(), ParseError> {
        let error = scan.error("a request or head right above its headers");
        let (found, headers) = match (self.open_block(), arrow.from) {
            (
                Some(Kind::Request {
                    exchange,
                    headers,
                    body,
                    ..
                }),
                Side::Client,
            ) if body.is_empty() => (*exchange, headers),
            (
                Some(Kind::Head {
                    exchange, headers, ..
                }),
                Side::Server,
            ) => (*exchange, headers),
            _ => return Err(error),
        };
        if arrow.number.is_some_and(|number| number != found) {
            return Err(error);
        }
        let headers = headers.get_or_insert_default();
        if scan.rest.is_empty() {
            return Ok(());
        }
        scan.take(' ');
        let Some((name, value)) = scan.rest.split_once(':') else {
            return Err(scan.error("`NAME: VALUE`"));
        };
        let value = value.strip_prefix(' ').unwrap_or(value);
        headers.push((Pattern::decode(name), Pattern::decode(value)));
        Ok(())
    }

    fn web_socket(&mut self, arrow: Arrow, mut scan: Scan<'_>) -> Result<(), ParseError> {
        let exchange = self.exchange(arrow.number, &scan)?;
        scan.take(' ');
        let start = scan;
        let kind = scan.word();
        let payload = |scan: &mut Scan<'_>| scan.content("the payload").map(Pattern::decode);
        let frame = match kind {
            "text" => Frame::Text(payload(&mut scan)?),
            "binary" => Frame::Binary(payload(&mut scan)?),
            "ping" => Frame::Ping(payload(&mut scan)?),
            "pong" => Frame::Pong(payload(&mut scan)?),
            "close" if scan.rest.is_empty() => Frame::Close(None),
            "close" => {
                scan.take(' ');
                let code = scan.number("a close code")?;
                Frame::Close(Some((code, payload(&mut scan)?)))
            }
            _ => return Err(start.error("`text`, `binary`, `ping`, `pong` or `close`")),
        };
        self.numbers.touch(exchange);
        self.push(
            scan.line,
            Kind::WebSocket {
                exchange,
                from: arrow.from,
                frame,
            },
        );
        Ok(())
    }

    fn channel_line(&mut self, arrow: Arrow, mut scan: Scan<'_>) -> Result<(), ParseError> {
        let exchange = arrow
            .number
            .or_else(|| self.numbers.current())
            .unwrap_or(ExchangeId(1));
        let text = Pattern::decode(scan.content("a line")?);
        self.numbers.touch(exchange);
        self.push(
            scan.line,
            Kind::Line {
                exchange,
                from: arrow.from,
                text,
            },
        );
        Ok(())
    }
}

fn body_line(scan: &mut Scan<'_>) -> Result<BodyLine, ParseError> {
    let content = scan.content("a space before the body")?;
    let (content, joined) = match content.strip_suffix('\\') {
        Some(content) => (content, true),
        None => (content, false),
    };
    Ok(BodyLine {
        line: scan.line,
        text: Pattern::decode(content),
        joined,
    })
}

/// The rest of a line as text.
fn text(scan: Scan<'_>) -> Result<String, ParseError> {
    String::from_utf8(Pattern::decode(scan.rest).lower()).map_err(|_| scan.error("text in UTF-8"))
}

fn scale(scan: Scan<'_>) -> Result<f64, ParseError> {
    let number = scan
        .rest
        .parse()
        .ok()
        .filter(|scale: &f64| scale.is_finite());
    number.ok_or_else(|| scan.error("a number, such as 0.01"))
}

fn lost(scan: Scan<'_>) -> Result<Vec<Lost>, ParseError> {
    let words = scan.rest.split([' ', ',']).filter(|word| !word.is_empty());
    let known = |word: &str| Lost::ALL.into_iter().find(|lost| lost.word() == word);
    words
        .map(|word| known(word).ok_or_else(|| scan.at(word).error("`times` or `bytes`")))
        .collect()
}

fn started(scan: Scan<'_>) -> Result<i64, ParseError> {
    let millis = || scan.rest.parse::<i64>().ok();
    let time = || {
        scan.rest
            .parse::<jiff::Timestamp>()
            .ok()
            .map(jiff::Timestamp::as_millisecond)
    };
    millis()
        .or_else(time)
        .ok_or_else(|| scan.error("a time such as 2026-07-26T12:00:00.000Z, or Unix milliseconds"))
}
