//! A file of traffic: a transcript in the text form, or a HAR file.

use std::path::Path;

use crate::transcript::{
    Transcript, har,
    text::{ParseError, Template},
};

/// Bytes of a file that are read at most.
pub const MAX_BYTES: u64 = 1 << 30;

/// What was read from a file.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path as it was given.
    pub name: String,
    /// Whether it is a HAR file.
    pub is_har: bool,
    /// What is in it.
    pub transcript: Transcript,
}

/// Why a file is no traffic that can be judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {file}: {error}")]
    Unreadable {
        /// The path as it was given.
        file: String,
        /// The system's words.
        error: std::io::Error,
    },
    /// It is longer than [`MAX_BYTES`].
    #[error("{0}: more than {MAX_BYTES} bytes are not read")]
    TooLarge(String),
    /// It is neither text nor JSON.
    #[error("{file}:{line}: expected text in UTF-8, got the byte 0x{byte:02x}")]
    NoText {
        /// The path as it was given.
        file: String,
        /// Line of the first byte that is none, from 1.
        line: usize,
        /// That byte.
        byte: u8,
    },
    /// It is no transcript.
    #[error("{}", .error.in_file(.file))]
    Transcript {
        /// The path as it was given.
        file: String,
        /// The place and what is wrong there.
        error: ParseError,
    },
    /// It is no HAR file.
    #[error("{}", .error.in_file(.file))]
    Har {
        /// The path as it was given.
        file: String,
        /// The place and what is wrong there.
        error: har::HarError,
    },
}

/// Reads a file. The placeholders of a golden file stand for examples of what they match, see
/// [`Template::example`].
///
/// # Errors
///
/// [`FileError`] with the place of what is wrong.
pub fn load(path: &Path) -> Result<Source, FileError> {
    read(&path.display().to_string(), &bytes(path)?)
}

/// Reads a file with its placeholders and groups.
///
/// # Errors
///
/// [`FileError`] with the place of what is wrong.
pub fn template(path: &Path) -> Result<Template, FileError> {
    Ok(parse(&path.display().to_string(), &bytes(path)?)?.0)
}

fn bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    let unreadable = |error| FileError::Unreadable {
        file: path.display().to_string(),
        error,
    };
    if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_BYTES {
        return Err(FileError::TooLarge(path.display().to_string()));
    }
    std::fs::read(path).map_err(unreadable)
}

/// Reads the bytes of a file with this name.
///
/// # Errors
///
/// [`FileError`] with the place of what is wrong.
pub fn read(name: &str, bytes: &[u8]) -> Result<Source, FileError> {
    let (template, is_har) = parse(name, bytes)?;
    let transcript = template.example().lower();
    Ok(Source {
        name: name.to_owned(),
        is_har,
        transcript: transcript.map_err(|error| FileError::Transcript {
            file: name.to_owned(),
            error,
        })?,
    })
}

/// The template, and whether the file is a HAR file.
fn parse(name: &str, bytes: &[u8]) -> Result<(Template, bool), FileError> {
    let file = name.to_owned();
    if har::looks_like_json(bytes) {
        let transcript = har::parse(bytes).map_err(|error| FileError::Har { file, error })?;
        return Ok((Template::of(&transcript), true));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| no_text(name, bytes, error))?;
    let template = Template::parse(text);
    let template = template.map_err(|error| FileError::Transcript { file, error })?;
    Ok((template, false))
}

fn no_text(name: &str, bytes: &[u8], error: std::str::Utf8Error) -> FileError {
    let (before, after) = bytes.split_at(error.valid_up_to());
    FileError::NoText {
        file: name.to_owned(),
        line: 1 + memchr::memchr_iter(b'\n', before).count(),
        byte: after.first().copied().unwrap_or_default(),
    }
}
