//! A golden file as an example of what it describes: each placeholder stands for something that it matches.

use std::{collections::BTreeMap, time::Duration};

use super::{
    pattern::{ANY, Pattern, Piece},
    template::{Ending, Frame, Kind, Template},
};

impl Template {
    /// The same template with its placeholders filled in, by their names: `time…` is the wall clock of its fact,
    /// `ms…` a short duration, `unix…` Unix seconds, `port…` a port, `uuid…` a UUID, `hexN…` N hexadecimal
    /// digits, `secret…` and `_` stay as they are written, and any other stands for its own name.
    #[must_use]
    pub fn example(&self) -> Self {
        let started = self.header.started_ms;
        let mut example = self.clone();
        let mut filler = Filler {
            started,
            at: Duration::ZERO,
            values: BTreeMap::new(),
        };
        for block in &mut example.blocks {
            filler.at = block.at;
            filler.kind(&mut block.kind);
        }
        example
    }
}

struct Filler {
    started: i64,
    at: Duration,
    /// A placeholder stands for one thing, wherever it is.
    values: BTreeMap<String, String>,
}

impl Filler {
    fn kind(&mut self, kind: &mut Kind) {
        match kind {
            Kind::Note(text) | Kind::Label(text) | Kind::Started(text) | Kind::State(text) => {
                self.fill(text);
            }
            Kind::Request {
                method,
                target,
                headers,
                body,
                ..
            } => {
                self.fill(method);
                self.fill(target);
                for (_, value) in headers.iter_mut().flatten() {
                    self.fill(value);
                }
                body.iter_mut().for_each(|line| self.fill(&mut line.text));
            }
            Kind::Head { headers, .. } => {
                for (_, value) in headers.iter_mut().flatten() {
                    self.fill(value);
                }
            }
            Kind::Body { lines, .. } => {
                lines.iter_mut().for_each(|line| self.fill(&mut line.text));
            }
            Kind::WebSocket { frame, .. } => match frame {
                Frame::Text(text)
                | Frame::Binary(text)
                | Frame::Ping(text)
                | Frame::Pong(text)
                | Frame::Close(Some((_, text))) => self.fill(text),
                Frame::Close(None) => {}
            },
            Kind::Line { text, .. } => self.fill(text),
            Kind::End { how, .. } => match how {
                Ending::Broken(text) | Ending::NotConnected(text) | Ending::NotHttp(text) => {
                    self.fill(text);
                }
                Ending::Complete
                | Ending::ClosedByHarness
                | Ending::TimedOut
                | Ending::TooLarge => {}
            },
            Kind::Stopped | Kind::Killed => {}
        }
    }

    fn fill(&mut self, pattern: &mut Pattern) {
        let mut filled = Pattern::default();
        for piece in &pattern.pieces {
            match piece {
                Piece::Bytes(bytes) => filled.push_bytes(bytes),
                Piece::Hole(name) => {
                    let known = self.values.get(name).cloned();
                    match known.or_else(|| self.value(name)) {
                        Some(value) => {
                            filled.push_bytes(value.as_bytes());
                            self.values.insert(name.clone(), value);
                        }
                        None => filled.push_hole(name),
                    }
                }
            }
        }
        *pattern = filled;
    }

    fn value(&self, name: &str) -> Option<String> {
        let word = name.split('-').next().unwrap_or_default();
        let digits = word
            .strip_prefix("hex")
            .and_then(|count| count.parse().ok());
        match (word, digits) {
            (ANY | "secret", _) => None,
            ("time", _) => Some(self.clock()),
            ("ms", _) => Some("1".to_owned()),
            ("unix", _) => Some((self.now_ms() / 1000).to_string()),
            ("port", _) => Some("8080".to_owned()),
            ("uuid", _) => {
                let hex = hex(name, 32);
                let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
                Some(format!(
                    "{}-{}-4{}-a{}-{}",
                    part(0, 8),
                    part(8, 12),
                    part(13, 16),
                    part(17, 20),
                    part(20, 32)
                ))
            }
            (_, Some(digits)) => Some(hex(name, usize::min(digits, 1024))),
            _ => Some(name.to_owned()),
        }
    }

    fn now_ms(&self) -> i64 {
        let passed = i64::try_from(self.at.as_millis()).unwrap_or(i64::MAX);
        self.started.saturating_add(passed)
    }

    fn clock(&self) -> String {
        let now = jiff::Timestamp::from_millisecond(self.now_ms()).unwrap_or_default();
        format!("{now:.3}")
    }
}

/// So many hexadecimal digits that depend on the name and nothing else (FNV-1a, step by step).
fn hex(name: &str, digits: usize) -> String {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut step = |byte: u8| {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        state
    };
    for byte in name.bytes() {
        step(byte);
    }
    let mut text = String::new();
    while text.len() < digits {
        text.push_str(&format!("{:016x}", step(0)));
    }
    text.truncate(digits);
    text
}
