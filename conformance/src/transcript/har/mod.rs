//! Import of a HAR file, as the network panels of Chromium and Firefox export it.
//!
//! - [`place`]: JSON with the path of every value, so that an error names its place;
//! - [`entry`]: one entry of the file, read but not yet judged;
//! - [`facts`]: an entry as facts of a transcript.
//!
//! A HAR file keeps less than a transcript. What is lost is said twice: in words in the header's notes, and as
//! [`Lost`], because what cannot be seen without it is not judged:
//!
//! - when the pieces of a body arrived. A body is one piece with the time of its end, unless the browser kept the
//!   times of the events (`_eventSourceMessages`);
//! - the bytes of an `EventSource`, of which Chromium keeps the events only: frames are put together again, an
//!   `id` line only where the id changed, comments and `retry` not at all;
//! - bytes that are no text, unless they are in base64; content and transfer codings; the interim responses;
//!   headers that the browser holds back (Chromium leaves cookies and `authorization` out by default).
//!
//! Exchange N of the transcript is `log.entries[N-1]`. Placeholders are not looked for.
//!
//! Source: <http://www.softwareishard.com/blog/har-12-spec/>; the members with an underscore are Chromium's.

use serde_json::Value;

use super::{Entry, Header, Lost, Transcript};

mod entry;
mod facts;
mod place;
#[cfg(test)]
mod tests;

use place::At;

/// File name extension of HAR files.
pub const EXTENSION: &str = "har";

/// Entries that are read at most.
pub const MAX_ENTRIES: usize = 100_000;

/// How the first note of an imported transcript begins.
pub const IMPORTED: &str = "imported from a HAR file";

/// Whether a transcript came from a browser, which notes when it got around to a piece and not when that came.
pub fn is_imported(header: &Header) -> bool {
    header.notes.iter().any(|note| note.starts_with(IMPORTED))
}

/// Why a text is no HAR file, and where.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HarError {
    /// It is no JSON.
    #[error("{line}:{column}: expected JSON, got {got}")]
    Json {
        /// Line in the text, from 1.
        line: usize,
        /// Column in that line, from 1.
        column: usize,
        /// The parser's words.
        got: String,
    },
    /// A value is not what the format asks for.
    #[error("{path}: expected {expected}, got {got}")]
    Value {
        /// Path of the value, such as `log.entries[3].request.method`.
        path: String,
        /// What the format asks for.
        expected: String,
        /// What stands there.
        got: String,
    },
}

impl HarError {
    /// The error as `FILE:LINE:COLUMN: ...` or `FILE: PATH: ...`.
    pub fn in_file(&self, file: impl std::fmt::Display) -> String {
        match self {
            Self::Json { .. } => format!("{file}:{self}"),
            Self::Value { .. } => format!("{file}: {self}"),
        }
    }
}

/// Whether a text looks like JSON and so cannot be a transcript in the text form.
pub fn looks_like_json(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'['))
}

/// Reads a HAR file. Suite, scenario and time scale stay empty: the file does not know them.
///
/// # Errors
///
/// [`HarError`] at the first place that is not as the format says.
pub fn parse(text: &[u8]) -> Result<Transcript, HarError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let file: Value = serde_json::from_slice(text).map_err(|error| HarError::Json {
        line: error.line(),
        column: error.column(),
        got: error.to_string(),
    })?;
    let log = At::root(&file).member("log")?;
    let list = log.member("entries")?.items()?;
    if list.len() > MAX_ENTRIES {
        let expected = format!("at most {MAX_ENTRIES} entries");
        return Err(log.member("entries")?.error(&expected));
    }
    let mut losses = facts::Losses::default();
    let mut entries: Vec<(entry::HarEntry, u32)> = Vec::with_capacity(list.len());
    for (at, number) in list.iter().zip(1..) {
        match entry::inner(at) {
            Some(scheme) => losses.never_sent(scheme),
            None => entries.push((entry::read(at)?, number)),
        }
    }
    let started = entries.iter().map(|(entry, _)| entry.started);
    let zero = started.min().unwrap_or(0);
    let mut timed: Vec<Entry> = entries
        .iter()
        .map(|(entry, number)| (entry, *number))
        .flat_map(|(entry, number)| facts::of(entry, number, zero, &mut losses))
        .collect();
    timed.sort_by_key(|entry| entry.at);
    Ok(Transcript {
        header: header(&log, zero, &losses),
        entries: timed,
    })
}

fn header(log: &At<'_>, zero: i64, losses: &facts::Losses) -> Header {
    let creator = log.optional("creator");
    let word = |name| {
        let text = creator.as_ref()?.optional(name)?;
        text.value.as_str().map(str::to_owned)
    };
    let by: Vec<String> = ["name", "version"].into_iter().filter_map(word).collect();
    let mut notes = vec![if by.is_empty() {
        IMPORTED.to_owned()
    } else {
        format!("{IMPORTED} by {}", by.join(" "))
    }];
    notes.extend(losses.notes());
    Header {
        started_ms: zero / 1000,
        lost: Lost::ALL
            .into_iter()
            .filter(|lost| losses.lost(*lost))
            .collect(),
        notes,
        ..Header::default()
    }
}
