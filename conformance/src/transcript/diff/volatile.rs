//! The parts of a text that differ from run to run.
//!
//! What an id looks like is a guess that suits the protocols here: a UUID, a word that ends in eight or more
//! hexadecimal digits (`session-1d6a8f75`), or sixteen or more letters and digits mixed (`chatcmpl-9aZ…`). A guess
//! too many does no harm: what is equal is equal.

/// A part of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Token<'a> {
    /// Its first byte.
    pub start: usize,
    /// What it is.
    pub kind: Kind,
    /// The text itself.
    pub text: &'a str,
}

/// What differs from run to run.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// RFC 3339, or Unix seconds or milliseconds.
    Time,
    /// A number of a member whose name says that it is a duration.
    Duration,
    /// A TCP port of the loopback device.
    Port,
    /// Somebody made it up.
    Id,
    /// `{{name}}`.
    Placeholder,
}

impl Token<'_> {
    /// The byte after its last one.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// The words in front of what was made up: `session` of `session-1d6a8f75`; empty when there are none.
    pub fn prefix(&self) -> &str {
        let cut = self.text.rfind(['-', '_']).filter(|_| !is_uuid(self.text));
        match (self.kind, cut) {
            (Kind::Id, Some(cut)) => self.text.get(..cut).unwrap_or_default(),
            _ => "",
        }
    }
}

/// All such parts, in order and without overlap.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let token = token_at(text, at);
        if let Some(token) = token {
            at = token.end();
            found.push(token);
        } else {
            at += skip(bytes, at);
        }
    }
    found
}

/// The text with each volatile part replaced by its kind.
pub fn shape(text: &str) -> String {
    let mut shape = String::with_capacity(text.len());
    let mut from = 0;
    for token in tokens(text) {
        shape.push_str(text.get(from..token.start).unwrap_or_default());
        shape.push('<');
        shape.push_str(match token.kind {
            Kind::Time => "time",
            Kind::Duration => "duration",
            Kind::Port => "port",
            Kind::Id => token.prefix(),
            Kind::Placeholder => "*",
        });
        shape.push('>');
        from = token.end();
    }
    shape.push_str(text.get(from..).unwrap_or_default());
    shape
}

/// How far it is to where the next token may begin: the end of this word, or the next character.
fn skip(bytes: &[u8], at: usize) -> usize {
    let word = word_len(bytes, at);
    if word > 0 {
        return word;
    }
    let rest = bytes.get(at + 1..).unwrap_or_default();
    1 + rest.iter().take_while(|byte| !byte.is_ascii()).count()
}

fn token_at(text: &str, at: usize) -> Option<Token<'_>> {
    let bytes = text.as_bytes();
    let token = |kind, length: usize| {
        Some(Token {
            start: at,
            kind,
            text: text.get(at..at + length)?,
        })
    };
    match bytes.get(at)? {
        b'{' => return token(Kind::Placeholder, placeholder(text.get(at..)?)?),
        byte if !byte.is_ascii_alphanumeric() => return None,
        _ => {}
    }
    if let Some(length) = rfc3339(&bytes[at..]) {
        return token(Kind::Time, length);
    }
    let word = word_len(bytes, at);
    let text_of = text.get(at..at + word)?;
    if text_of.bytes().all(|byte| byte.is_ascii_digit()) {
        let before = text.get(..at)?;
        let length = word + fraction(&bytes[at + word..]);
        return if is_duration(before) {
            token(Kind::Duration, length)
        } else if is_port(before) {
            token(Kind::Port, word)
        } else if is_unix_time(text_of) && length == word {
            token(Kind::Time, word)
        } else {
            None
        };
    }
    is_id(text_of).then(|| token(Kind::Id, word)).flatten()
}

fn word_len(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let word = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    rest.iter().take_while(word).count()
}

fn fraction(rest: &[u8]) -> usize {
    match rest {
        [b'.', digits @ ..] => {
            let count = digits
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            if count == 0 { 0 } else { count + 1 }
        }
        _ => 0,
    }
}

fn placeholder(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("{{")?;
    let name = inner
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        .count();
    (name > 0 && inner.get(name..)?.starts_with("}}")).then_some(name + 4)
}

/// Length of a time in RFC 3339 at the start.
fn rfc3339(bytes: &[u8]) -> Option<usize> {
    const FORM: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let head = bytes.get(..FORM.len())?;
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    };
    if !head.iter().zip(FORM).all(fits) {
        return None;
    }
    let rest = bytes.get(FORM.len()..)?;
    let part = fraction(rest);
    let zone = rest.get(part..)?;
    let zone = match zone {
        [b'Z', ..] => 1,
        [b'+' | b'-', hours @ ..] if hours.get(2) == Some(&b':') => 6,
        _ => 0,
    };
    Some(FORM.len() + part + zone.min(rest.len() - part))
}

/// Whether what comes is the value of a member such as `durationMs`.
fn is_duration(before: &str) -> bool {
    const ENDS: [&str; 6] = ["Ms", "_ms", "duration", "Duration", "elapsed", "latency"];
    let key = before.trim_end().strip_suffix(':').map(str::trim_end);
    let name = key.and_then(|key| key.strip_suffix('"'));
    name.is_some_and(|name| ENDS.iter().any(|end| name.ends_with(end)))
}

fn is_port(before: &str) -> bool {
    ["127.0.0.1:", "localhost:", "[::1]:"]
        .iter()
        .any(|host| before.ends_with(host))
}

/// Seconds or milliseconds of this century's second half of the 2010s and later.
fn is_unix_time(digits: &str) -> bool {
    matches!(digits.len(), 10 | 13) && matches!(digits.as_bytes().first(), Some(b'1' | b'2'))
}

fn is_id(word: &str) -> bool {
    if is_uuid(word) {
        return true;
    }
    let (prefix, last) = match word.rfind(['-', '_']) {
        Some(cut) => (&word[..cut], &word[cut + 1..]),
        None => ("", word),
    };
    let digits = last.bytes().filter(u8::is_ascii_digit).count();
    let letters = last.bytes().filter(u8::is_ascii_alphabetic).count();
    let hex = last
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    // A day, as in the names of models.
    let day = letters == 0 && digits == 8 && last.starts_with("20");
    if hex && last.len() >= 8 && !day {
        return (digits > 0 && letters > 0) || !prefix.is_empty();
    }
    last.len() >= 16 && letters > 0 && digits > 0
}

fn is_uuid(word: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let mut parts = word.split('-');
    lengths.iter().all(|length| {
        parts.next().is_some_and(|part| {
            part.len() == *length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    }) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_times_durations_and_ports_are_found_and_nothing_else() {
        let cases = [
            ("session-1d6a8f75", "<session>"),
            ("session-12345678/view", "<session>/view"),
            ("session-feeddbcc/view", "<session>/view"),
            ("epoch-ef1b329ba09e4d22a99517f086b75040:12", "<epoch>:12"),
            ("3f2504e0-4f89-41d3-9a0c-0305e82c3301", "<>"),
            ("chatcmpl-9aZ8bY7cX6dW5eV4", "<chatcmpl>"),
            ("at 2026-11-30T00:19:59.958Z.", "at <time>."),
            ("2026-11-30T00:19:59+02:00", "<time>"),
            (
                "{\"durationMs\": 12.5,\"n\":12}",
                "{\"durationMs\": <duration>,\"n\":12}",
            ),
            ("{\"created\":1785067200}", "{\"created\":<time>}"),
            ("http://127.0.0.1:34511/v1", "http://127.0.0.1:<port>/v1"),
            ("Bearer {{secret-1}}", "Bearer <*>"),
            ("claude-sonnet-20250514", "claude-sonnet-20250514"),
            ("tw-0000-connect-fresh-00001", "tw-0000-connect-fresh-00001"),
            ("plugin-data.changed", "plugin-data.changed"),
            ("né {a} 42", "né {a} 42"),
        ];
        for (text, expected) in cases {
            assert_eq!(shape(text), expected, "{text}");
        }
    }
}
