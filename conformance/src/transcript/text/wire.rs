//! The outer form of one line: arrows, numbers and marks; durations. Knows nothing of what came before.

use std::time::Duration;

use super::ParseError;
use crate::transcript::{ExchangeId, Side};

/// One line with its place, and how far it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan<'a> {
    /// The whole line.
    full: &'a str,
    /// What is not yet read.
    pub(super) rest: &'a str,
    /// Number of the line, from 1.
    pub(super) line: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(line: usize, full: &'a str) -> Self {
        Self {
            full,
            rest: full,
            line,
        }
    }

    /// The scan of a part of what is not yet read.
    pub(super) fn at(self, rest: &'a str) -> Self {
        Self { rest, ..self }
    }

    /// The error at what is not yet read.
    pub(super) fn error(&self, expected: impl Into<String>) -> ParseError {
        let read = self.full.len() - self.rest.len();
        let column = self.full.get(..read).unwrap_or_default().chars().count() + 1;
        ParseError {
            line: self.line,
            column,
            expected: expected.into(),
            got: quote(self.rest),
        }
    }

    /// Reads a character if it is there.
    pub(super) fn take(&mut self, c: char) -> bool {
        self.rest
            .strip_prefix(c)
            .inspect(|rest| self.rest = rest)
            .is_some()
    }

    /// Reads the digits that are there.
    pub(super) fn digits(&mut self) -> &'a str {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(self.rest.len());
        self.advance(end)
    }

    /// Reads up to the next space.
    pub(super) fn word(&mut self) -> &'a str {
        let end = self.rest.find(' ').unwrap_or(self.rest.len());
        self.advance(end)
    }

    /// Reads a decimal number.
    pub(super) fn number<T: std::str::FromStr>(&mut self, expected: &str) -> Result<T, ParseError> {
        let start = *self;
        self.digits().parse().map_err(|_| start.error(expected))
    }

    /// Reads the space that parts what follows, if anything follows; else the text is empty.
    pub(super) fn content(&mut self, expected: &str) -> Result<&'a str, ParseError> {
        if self.rest.is_empty() || self.take(' ') {
            return Ok(std::mem::take(&mut self.rest));
        }
        Err(self.error(expected))
    }

    /// Asks for the end of the line; spaces do not count.
    pub(super) fn end(&self) -> Result<(), ParseError> {
        if self.rest.trim().is_empty() {
            Ok(())
        } else {
            Err(self.error("the end of the line"))
        }
    }

    fn advance(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }
}

/// What was found, for an error: quoted, and cut to a readable length.
fn quote(found: &str) -> String {
    const SHOWN: usize = 40;
    if found.is_empty() {
        return "the end of the line".to_owned();
    }
    match found.char_indices().nth(SHOWN) {
        None => format!("{found:?}"),
        Some((cut, _)) => format!("{:?}…", &found[..cut]),
    }
}

/// Who sent a line, of which exchange it is, and what kind it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    pub(super) from: Side,
    pub(super) number: Option<ExchangeId>,
    pub(super) mark: Mark,
}

/// The kind of a line that begins with an arrow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mark {
    /// None: what is due.
    Plain,
    /// `!`: a request or a head.
    Start,
    /// `|`: body.
    Body,
    /// `:`: a header.
    Header,
    /// `~`: a WebSocket frame.
    WebSocket,
    /// `$`: a line of a channel.
    Line,
}

/// Reads arrow, number and mark; the scan then stands before the content.
pub(super) fn arrow(scan: &mut Scan<'_>) -> Result<Arrow, ParseError> {
    let from = if scan.take('>') {
        Side::Client
    } else {
        Side::Server
    };
    if from == Side::Server && !scan.take('<') {
        return Err(scan.error("`>` or `<`"));
    }
    let number = exchange(scan)?;
    let marks = [
        ('!', Mark::Start),
        ('|', Mark::Body),
        (':', Mark::Header),
        ('~', Mark::WebSocket),
        ('$', Mark::Line),
    ];
    let mark = marks
        .iter()
        .find(|(c, _)| scan.take(*c))
        .map_or(Mark::Plain, |(_, mark)| *mark);
    if !scan.rest.is_empty() && !scan.rest.starts_with(' ') {
        return Err(scan.error("a space, an exchange number, or one of `:`, `~`, `$`, `!`, `|`"));
    }
    Ok(Arrow { from, number, mark })
}

/// Reads an exchange number, if one is there.
pub(super) fn exchange(scan: &mut Scan<'_>) -> Result<Option<ExchangeId>, ParseError> {
    if !scan.rest.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(None);
    }
    scan.number("an exchange number below 4294967296")
        .map(|number| Some(ExchangeId(number)))
}

/// Reads `12.345ms` up to the end of the line.
pub(super) fn duration(scan: &mut Scan<'_>) -> Result<Duration, ParseError> {
    const EXPECTED: &str = "a duration such as `12.345ms`, `30s` or `7us`";
    let start = *scan;
    let whole = scan.digits();
    let fraction = if scan.take('.') { scan.digits() } else { "" };
    let nanos: u64 = match scan.rest.trim_end() {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(start.error(EXPECTED)),
    };
    let whole: u64 = whole.parse().map_err(|_| start.error(EXPECTED))?;
    let total = whole
        .checked_mul(nanos)
        .and_then(|total| total.checked_add(part(fraction, nanos)));
    total
        .map(Duration::from_nanos)
        .ok_or_else(|| start.error("a duration below 584 years"))
}

/// The digits after the point, in units of which `unit` make one; what is below one is cut off.
fn part(fraction: &str, unit: u64) -> u64 {
    let (sum, _) = fraction
        .bytes()
        .fold((0, unit / 10), |(sum, weight), digit| {
            (
                sum + u64::from(digit.saturating_sub(b'0')) * weight,
                weight / 10,
            )
        });
    sum
}

/// Writes a duration in milliseconds, with as many digits as it takes.
pub(super) fn write_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let nanos = duration.subsec_nanos() % 1_000_000;
    let fraction = format!("{nanos:06}");
    match fraction.trim_end_matches('0') {
        "" => format!("{millis}ms"),
        digits => format!("{millis}.{digits}ms"),
    }
}
