//! Cuts a stream into [`Frame`]s, whole or as its chunks arrive.
//!
//! Both ways give the same frames, however the stream was cut. A frame is complete when its last
//! byte is known, so one that ends in a CR waits for the next byte: an LF would belong to it. Who
//! waits for an event rather than for its bytes uses the decoder, which does not wait.
//!
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>

use bytes::Bytes;
use memchr::{memchr, memchr2};

use super::bom::{BOM, BomState};
use super::frame::parse_retry;
use super::{Frame, Frames, Limits, Line, LineKind, Terminator, Violation, ViolationKind};

/// Reads a whole stream, for example a recorded response body.
pub fn frames(bytes: &[u8]) -> Frames {
    let mut recorder = Recorder::new(Limits::NONE);
    let mut frames = recorder.feed(bytes);
    frames.extend(recorder.finish());
    Frames {
        bom: recorder.bom(),
        frames,
    }
}

/// Reads a stream chunk by chunk, cut anywhere, even inside a character or between CR and LF.
///
/// It holds the frame that is under way and nothing else. Of a frame beyond its [`Limits`] it keeps
/// what fits, counts the rest in `omitted`, and reports [`ViolationKind::LimitExceeded`].
#[derive(Debug)]
pub struct Recorder {
    limits: Limits,
    start: BomState,
    bom: bool,
    /// The terminator of the stream's first line, once known.
    usual: Option<Terminator>,
    frame: Frame,
    /// Bytes of the frame's lines so far, without terminators, kept or not.
    used: usize,
    /// A limit was reported for the frame under way.
    limit_reported: bool,
    line: PartialLine,
}

/// The line that is under way.
#[derive(Debug, Default)]
struct PartialLine {
    /// In bytes from the start of the stream.
    offset: usize,
    /// Reused from line to line.
    kept: Vec<u8>,
    omitted: usize,
    /// Its CR has come; whether an LF follows is not known yet.
    after_cr: bool,
}

impl Recorder {
    /// A recorder at the start of a stream.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            start: BomState::Open(0),
            bom: false,
            usual: None,
            frame: empty_frame(0),
            used: 0,
            limit_reported: false,
            line: PartialLine::default(),
        }
    }

    /// Takes the next chunk; gives the frames that are now complete.
    pub fn feed(&mut self, chunk: &[u8]) -> Vec<Frame> {
        let opening = self.start.feed(chunk);
        if opening.found {
            self.bom = true;
            self.line.offset = BOM.len();
            self.frame = empty_frame(BOM.len());
        }
        self.append(opening.held_back);
        self.feed_lines(&chunk[opening.consumed..])
    }

    /// Ends the stream; gives the last frame, when there is one under way.
    ///
    /// The recorder is then at the end of the stream: feeding it more makes no sense.
    pub fn finish(&mut self) -> Option<Frame> {
        let held_back = self.start.finish();
        self.append(held_back);
        let complete = if self.line.after_cr {
            self.end_line(Terminator::Cr)
        } else {
            None
        };
        if complete.is_some() {
            return complete;
        }
        if self.line.len() > 0 {
            self.end_line(Terminator::None);
        }
        if self.frame.lines.is_empty() && self.frame.omitted == 0 {
            return None;
        }
        self.report(self.line.offset, ViolationKind::UnterminatedTail);
        Some(self.take_frame())
    }

    /// Whether the stream opened with a byte order mark.
    pub fn bom(&self) -> bool {
        self.bom
    }

    fn feed_lines(&mut self, mut rest: &[u8]) -> Vec<Frame> {
        let mut complete = Vec::new();
        while let Some(&next) = rest.first() {
            if self.line.after_cr {
                let terminator = if next == b'\n' {
                    Terminator::CrLf
                } else {
                    Terminator::Cr
                };
                complete.extend(self.end_line(terminator));
                rest = &rest[usize::from(next == b'\n')..];
                continue;
            }
            let end = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
            self.append(&rest[..end]);
            match rest.get(end) {
                None => break,
                Some(b'\n') => complete.extend(self.end_line(Terminator::Lf)),
                Some(_) => self.line.after_cr = true,
            }
            rest = &rest[end + 1..];
        }
        complete
    }

    /// Adds to the line under way, as far as the limits allow.
    fn append(&mut self, bytes: &[u8]) {
        let (room, limit) = self.limits.room(self.used);
        let kept = bytes.len().min(room.saturating_sub(self.line.len()));
        self.line.kept.extend_from_slice(&bytes[..kept]);
        self.line.omitted += bytes.len() - kept;
        if kept < bytes.len() && !self.limit_reported {
            self.limit_reported = true;
            self.report(self.line.offset + room, ViolationKind::LimitExceeded(limit));
        }
    }

    fn end_line(&mut self, terminator: Terminator) -> Option<Frame> {
        let line = self.line.take(terminator);
        self.used = self.used.saturating_add(line.raw.len() + line.omitted);
        self.frame.end = line.end();
        self.judge_terminator(&line);
        if line.raw.is_empty() && line.omitted > 0 {
            self.frame.omitted += line.omitted + terminator.bytes().len();
            return None;
        }
        self.judge_content(&line);
        self.frame.omitted += line.omitted;
        let blank = line.kind == LineKind::Blank;
        self.frame.lines.push(line);
        self.frame.terminated = blank;
        blank.then(|| self.take_frame())
    }

    fn take_frame(&mut self) -> Frame {
        self.used = 0;
        self.limit_reported = false;
        let next = empty_frame(self.frame.end);
        let mut frame = std::mem::replace(&mut self.frame, next);
        frame.violations.sort_by_key(|violation| violation.offset);
        frame
    }

    fn judge_terminator(&mut self, line: &Line) {
        if line.terminator == Terminator::None {
            return;
        }
        let usual = *self.usual.get_or_insert(line.terminator);
        let kind = ViolationKind::MixedLineEndings;
        if line.terminator != usual && self.frame.violations.iter().all(|v| v.kind != kind) {
            self.report(line.content_end(), kind);
        }
    }

    fn judge_content(&mut self, line: &Line) {
        if let Some(at) = invalid_utf8(line) {
            self.report(line.offset + at, ViolationKind::InvalidUtf8);
        }
        let LineKind::Field { value, .. } = &line.kind else {
            return;
        };
        if line.omitted > 0 {
            return; // What is missing could be the rest of the name.
        }
        let value_at = line.offset + value.start;
        match line.name().unwrap_or_default() {
            b"data" | b"event" => {}
            b"id" => {
                if let Some(nul) = memchr(0, line.value_bytes()) {
                    self.report(value_at + nul, ViolationKind::NulInId);
                }
            }
            b"retry" => {
                if parse_retry(line.value_bytes()).is_none() {
                    self.report(value_at, ViolationKind::BadRetry);
                }
            }
            name if name.starts_with(BOM) => self.report(line.offset, ViolationKind::BomInside),
            _ => self.report(line.offset, ViolationKind::UnknownField),
        }
    }

    fn report(&mut self, offset: usize, kind: ViolationKind) {
        self.frame.violations.push(Violation { offset, kind });
    }
}

impl PartialLine {
    fn len(&self) -> usize {
        self.kept.len() + self.omitted
    }

    /// The line, now that its end is known; what remains is the start of the next one.
    fn take(&mut self, terminator: Terminator) -> Line {
        let raw = Bytes::copy_from_slice(&self.kept);
        let line = Line::new(self.offset, raw, terminator, self.omitted);
        self.kept.clear();
        self.offset = line.end();
        self.omitted = 0;
        self.after_cr = false;
        line
    }
}

fn empty_frame(start: usize) -> Frame {
    Frame {
        start,
        end: start,
        lines: Vec::new(),
        terminated: false,
        omitted: 0,
        violations: Vec::new(),
    }
}

/// Where the line's first byte that is no UTF-8 stands. A character that the limits cut is none.
fn invalid_utf8(line: &Line) -> Option<usize> {
    let error = str::from_utf8(&line.raw).err()?;
    let cut_by_us = line.omitted > 0 && error.error_len().is_none();
    (!cut_by_us).then_some(error.valid_up_to())
}
