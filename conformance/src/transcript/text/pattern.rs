//! One line of text that stands for bytes: escapes and placeholders.

use std::{fmt, str};

/// Name of the placeholder that matches without binding.
pub(super) const ANY: &str = "_";

/// What one line stands for: bytes, with holes where placeholders are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Pattern {
    /// The parts in order; bytes are not empty.
    pub pieces: Vec<Piece>,
}

/// A part of a [`Pattern`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The placeholder with this name.
    Hole(String),
}

impl Pattern {
    /// A pattern without holes.
    pub fn literal(bytes: impl Into<Vec<u8>>) -> Self {
        let mut pattern = Self::default();
        pattern.push_bytes(&bytes.into());
        pattern
    }

    /// Reads the escapes and placeholders of a line.
    pub fn decode(line: &str) -> Self {
        let mut pattern = Self::default();
        let mut rest = line;
        while let Some(index) = rest.find(['\\', '{']) {
            let (plain, special) = rest.split_at(index);
            pattern.push_bytes(plain.as_bytes());
            rest = if let Some((byte, after)) = escape(special) {
                pattern.push_bytes(&[byte]);
                after
            } else if let Some((name, after)) = placeholder(special) {
                pattern.push_hole(name);
                after
            } else {
                pattern.push_bytes(&special.as_bytes()[..1]);
                &special[1..]
            };
        }
        pattern.push_bytes(rest.as_bytes());
        pattern
    }

    /// Writes the pattern as one line.
    pub fn encode(&self) -> String {
        let mut line = String::new();
        for (index, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Hole(name) => hole(&mut line, name),
                Piece::Bytes(bytes) => {
                    encode_bytes(&mut line, bytes, index + 1 == self.pieces.len())
                }
            }
        }
        line
    }

    /// The bytes, with placeholders as they are written.
    pub fn lower(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(part) => bytes.extend_from_slice(part),
                Piece::Hole(name) => bytes.extend_from_slice(format!("{{{{{name}}}}}").as_bytes()),
            }
        }
        bytes
    }

    /// Whether it stands for no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Appends bytes.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some(Piece::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(Piece::Bytes(bytes.to_vec())),
        }
    }

    /// Appends a placeholder.
    pub fn push_hole(&mut self, name: &str) {
        self.pieces.push(Piece::Hole(name.to_owned()));
    }

    /// Appends another pattern.
    pub fn append(&mut self, other: &Self) {
        for piece in &other.pieces {
            match piece {
                Piece::Bytes(bytes) => self.push_bytes(bytes),
                Piece::Hole(name) => self.push_hole(name),
            }
        }
    }

    /// Splits at line feeds; there is one part more than line feeds.
    pub fn lines(&self) -> Vec<Self> {
        let mut lines = Vec::new();
        let mut line = Self::default();
        for piece in &self.pieces {
            match piece {
                Piece::Hole(name) => line.push_hole(name),
                Piece::Bytes(bytes) => {
                    for (index, part) in bytes.split(|&byte| byte == b'\n').enumerate() {
                        if index > 0 {
                            lines.push(std::mem::take(&mut line));
                        }
                        line.push_bytes(part);
                    }
                }
            }
        }
        lines.push(line);
        lines
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.encode())
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self::literal(text)
    }
}

/// Reads `\xHH` at the start of `text`.
fn escape(text: &str) -> Option<(u8, &str)> {
    let digits = text.strip_prefix("\\x")?.get(..2)?;
    let valid = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = valid
        .then(|| u8::from_str_radix(digits, 16).ok())
        .flatten()?;
    Some((byte, &text[4..]))
}

/// Reads `{{name}}` at the start of `text`.
fn placeholder(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("{{")?;
    let end = inner.find(|c| !is_name_char(c)).unwrap_or(inner.len());
    let (name, after) = inner.split_at(end);
    let after = after.strip_prefix("}}")?;
    let named = name == ANY || name.starts_with(|c: char| c.is_ascii_alphabetic());
    named.then_some((name, after))
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

fn hole(line: &mut String, name: &str) {
    line.push_str("{{");
    line.push_str(name);
    line.push_str("}}");
}

/// Writes bytes so that [`Pattern::decode`] reads the same bytes; `ends` when the line ends with them.
fn encode_bytes(line: &mut String, bytes: &[u8], ends: bool) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (text, bad) = valid_prefix(rest);
        let (valid, after) = rest.split_at(text.len());
        encode_text(line, text, ends && after.is_empty());
        let (bad, after) = after.split_at(bad.min(after.len()));
        bad.iter().for_each(|&byte| hex(line, byte));
        debug_assert!(valid.len() + bad.len() > 0);
        rest = after;
    }
}

/// The longest prefix that is UTF-8, and how many bytes after it are not.
fn valid_prefix(bytes: &[u8]) -> (&str, usize) {
    match str::from_utf8(bytes) {
        Ok(text) => (text, 0),
        Err(error) => {
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            (
                str::from_utf8(valid).unwrap_or_default(),
                error.error_len().unwrap_or(rest.len()),
            )
        }
    }
}

fn encode_text(line: &mut String, text: &str, ends: bool) {
    for (index, c) in text.char_indices() {
        let here = &text[index..];
        let at_end = ends && here.len() == c.len_utf8();
        let escaped = match c {
            ' ' => at_end,
            '\\' => at_end || escape(here).is_some(),
            '{' => placeholder(here).is_some(),
            _ => is_invisible(c),
        };
        if escaped {
            here.as_bytes()[..c.len_utf8()]
                .iter()
                .for_each(|&byte| hex(line, byte));
        } else {
            line.push(c);
        }
    }
}

fn hex(line: &mut String, byte: u8) {
    line.push_str(&format!("\\x{byte:02x}"));
}

/// Characters that a reader of a diff would not see, or that would move what he sees.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        )
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}
