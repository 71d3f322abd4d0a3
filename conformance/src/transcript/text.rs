//! The text form of a transcript, `*.twire`: diffable, lossless, commentable.
//!
//! ```text
//! twire 1
//! suite: covel-sse
//! scenario: resume-foreign-epoch
//! requirements: COV-SUB-102
//! scale: 0.01
//! started: 2026-07-26T12:00:00.000Z
//! # Lines before the first fact that begin with `#` are the header's notes.
//!
//! label foreign-epoch
//! @+1.25ms
//! > GET /api/events/stream?lastEventId=gone:7
//! >: x-session-token: {{secret-1}}
//! @+3ms
//! < 200
//! <: content-type: text/event-stream
//! @+0.4ms
//! < event: system.reset
//! < data: {"reason":"epoch-change","cursor":"e2:41"}
//! <
//! end complete
//! ```
//!
//! Everything but the wire lines may be left out: without a version line it is version 1, without an `@` line
//! a fact has the time of the one before, and a head without header lines has the content type that its body
//! shows. What [`write`] writes, [`parse`] reads back as the same transcript, byte for byte, except secrets.
//!
//! # Grammar
//!
//! A file is UTF-8, one item a line, the first three lines of the grammar only before the first fact:
//!
//! ```text
//! file       = [ "twire 1" ] *( setting / comment / empty ) *( time / comment / empty / fact / group )
//! setting    = "suite:" TEXT / "scenario:" TEXT / "requirements:" *ID / "scale:" NUMBER
//!            / "started:" ( RFC 3339 time / Unix milliseconds ) / "lost:" *( "times" / "bytes" )
//! comment    = "#" [ " " TEXT ]                       ; kept: a note of the header, later a note fact
//! time       = "@+" DURATION / "@" DURATION           ; since the fact before / since the start
//! DURATION   = digits [ "." digits ] ( "us" / "ms" / "s" )
//! group      = "unordered {" ... "}"                  ; see `matches`; no facts of their own
//!
//! fact       = request / head / body / websocket / line / end / label / target / state
//! request    = ">" [N] ["!"] " " METHOD [ " " TARGET ] *header *( ">" [N] ["|"] [ " " BODY ] )
//! head       = "<" [N] ["!"] " " STATUS [ " " reason ] *header
//! header     = ( ">" / "<" ) [N] ":" [ " " NAME ":" [ " " VALUE ] ]     ; ">:" alone: no headers at all
//! body       = 1*( "<" [N] ["|"] [ " " BODY ] )       ; one chunk as it arrived
//! websocket  = arrow [N] "~ " ( "text" / "binary" / "ping" / "pong" ) [ " " PAYLOAD ]
//!            / arrow [N] "~ close" [ " " CODE [ " " REASON ] ]
//! line       = arrow [N] "$" [ " " BYTES ]            ; a line on a stdio or socket channel
//! end        = "end " [ N " " ] ( "complete" / "closed-by-harness" / "timed-out" / "too-large"
//!            / "broken" [ " " WORDS ] / "not-connected" [ " " WORDS ] / "not-http" [ " " WORDS ] )
//! label      = "label" [ " " TEXT ]
//! target     = "target started " VARIANT / "target stopped" / "target killed"
//! state      = "state " JSON
//! arrow      = ">" / "<"                              ; from the client / from the server
//! ```
//!
//! - **Exchange numbers.** `N` is the exchange. A request without one opens the next exchange; any other line
//!   without one belongs to the exchange of the line before. [`write`] numbers lines only where exchanges
//!   interleave.
//! - **Where a fact ends.** A fact ends at an empty line, an `@` line, a comment, or a line of another kind.
//!   So `>` directly below a request is its body and below an empty line a new request; `<` is a head until the
//!   exchange has one, then body. `!` says "request or head all the same", `|` "body all the same".
//! - **Line feeds.** In an event stream (content type `text/event-stream`) each body line stands for itself
//!   and its line feed. In any other body a line feed stands between two lines and none after the last.
//!   A `\` at the end of a body line takes its line feed away.
//! - **Escapes.** `\xHH` is one byte; any other `\` is itself, so that JSON stays as it is. Bytes that are no
//!   text, invisible characters, trailing spaces, a `\` that would read as an escape, and the first brace of
//!   what would read as a placeholder are written so.
//! - **Content type by default.** A head without header lines has `content-type: text/event-stream` when its
//!   body begins with a line of an event stream, `application/json` when it begins with `{` or `[`, else none.
//! - **Placeholders.** `{{name}}` (a letter, then letters, digits, `.`, `_`, `-`) stands for text without a
//!   quote or a line feed. [`matches()`] binds it at its first sight and asks for the same text later;
//!   `{{_}}` matches without binding. [`parse`] leaves placeholders as they are written.
//! - **Secrets.** [`write`] replaces session tokens, `Authorization`, cookies and API keys by `{{secret-N}}`,
//!   the same secret by the same number. Lengths in headers stay as they were.
//!
//! Parts: [`pattern`] (one line and its escapes), [`template`] (a parsed file), [`reader`], [`writer`],
//! [`redact`] and [`turnwire_spec::secrets`] (secrets), [`matching`], [`example`].
//!
//! # Versions
//!
//! `1`: the first.

use std::fmt;

use turnwire_spec::secrets;

use super::Transcript;

mod example;
mod matching;
mod numbers;
mod pattern;
mod reader;
mod redact;
mod template;
mod wire;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use matching::outline::{Outline, Unit};
pub use matching::{Bindings, Mismatch};
pub use pattern::{Pattern, Piece};
pub use redact::Replaced;
pub use template::Template;

/// Version of the text form that [`write`] writes and [`parse`] reads.
pub const VERSION: u32 = 1;

/// File name extension of the text form.
pub const EXTENSION: &str = "twire";

/// Why a text is no transcript, and where.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{line}:{column}: expected {expected}, got {got}")]
pub struct ParseError {
    /// Line in the text, from 1.
    pub line: usize,
    /// Column in that line in characters, from 1.
    pub column: usize,
    /// What the grammar allows there.
    pub expected: String,
    /// What stands there instead.
    pub got: String,
}

impl ParseError {
    /// The error as `FILE:LINE:COLUMN: ...`.
    pub fn in_file(&self, file: impl fmt::Display) -> String {
        format!("{file}:{self}")
    }
}

/// Reads a transcript. Placeholders stay in it as they are written; groups leave no trace.
///
/// # Errors
///
/// [`ParseError`] at the first line that the grammar does not allow.
pub fn parse(text: &str) -> Result<Transcript, ParseError> {
    Template::parse(text)?.lower()
}

/// Writes a transcript, secrets replaced by placeholders.
pub fn write(transcript: &Transcript) -> String {
    writer::write(transcript, &[])
}

/// Writes a transcript as a template: secrets and each of the `names`' values replaced by placeholders.
///
/// `names` are pairs of a value, as it stands on the wire, and the placeholder's name. Longer values win.
pub fn write_template(transcript: &Transcript, names: &[(String, String)]) -> String {
    writer::write(transcript, names)
}

/// Writes a transcript, and says what was replaced. The values of `known` are secrets wherever they stand, under
/// these names.
pub fn write_reporting(
    transcript: &Transcript,
    known: &[(String, String)],
) -> (String, Vec<Replaced>) {
    writer::write_reporting(transcript, known)
}

/// Hides the secrets of transcripts in what is shown of them, such as a difference or a piece of evidence: also where a
/// secret does not stand at a place that tells it, and where it was cut off.
#[derive(Debug)]
pub struct Hider(redact::Redactor);

impl Hider {
    /// Looks through these transcripts.
    pub fn of<'t>(transcripts: impl IntoIterator<Item = &'t Transcript>) -> Self {
        Self(redact::Redactor::of_all(transcripts))
    }

    /// The text without secrets.
    pub fn hide(&self, text: &str) -> String {
        let hidden = self.0.text(text.as_bytes()).lower();
        let hidden = String::from_utf8_lossy(&hidden).into_owned();
        // What is left at such a place was cut off.
        let mut cut = secrets::of_text(hidden.as_bytes());
        cut.retain(|secret| {
            let value = hidden.get(secret.range.clone()).unwrap_or_default();
            !value.starts_with("{{")
        });
        secrets::replaced(&hidden, &cut, "{{secret}}")
    }
}

/// Replaces the secrets of a text that stands by itself, such as a request line or a piece of JSON.
pub fn redact(text: &str) -> String {
    String::from_utf8_lossy(&redact::Redactor::alone(text).lower()).into_owned()
}

/// Whether a transcript is what a template (a golden file) describes.
///
/// Labels, target facts, states and the opening of exchanges have the order of the template, and nothing else
/// is among them. Each exchange has the template's request, the header lines that the template lists (others
/// may be there), body and end; the frames of an event stream are compared one by one. Times, notes, chunk
/// boundaries and the order of facts of different exchanges are not compared. Within `unordered { ... }` frames
/// of one stream, and openings of exchanges, come in any order. What a template does not end may end anyhow.
///
/// # Errors
///
/// [`Mismatch`] with the first line of the template that is not met; also when `expected` does not parse.
pub fn matches(expected: &str, actual: &Transcript) -> Result<Bindings, Mismatch> {
    Template::parse(expected)
        .map_err(Mismatch::from)?
        .matches(actual)
}

impl std::str::FromStr for Transcript {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text)
    }
}
