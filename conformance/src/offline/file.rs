//! A file of traffic: a transcript in the text form, or a HAR file.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

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
    /// It is a folder without files of traffic.
    #[error("{0} is a folder without a .twire or .har file")]
    Nothing(String),
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

/// What stands for standard input in place of a path.
pub const STANDARD_INPUT: &str = "-";

/// The files that these paths stand for: a folder stands for the `.twire` and `.har` files in it, in the order of
/// their names.
///
/// # Errors
///
/// [`FileError::Unreadable`] for a folder that cannot be read, [`FileError::Nothing`] for one without such files.
pub fn expanded(paths: &[PathBuf]) -> Result<Vec<PathBuf>, FileError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(within(path)?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn within(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let unreadable = |error| FileError::Unreadable {
        file: folder.display().to_string(),
        error,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let traffic = path
            .extension()
            .is_some_and(|kind| kind == "twire" || kind == "har");
        if traffic && path.is_file() {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(FileError::Nothing(folder.display().to_string()));
    }
    files.sort();
    Ok(files)
}

fn bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    let read = if path.as_os_str() == STANDARD_INPUT {
        limited(io::stdin().lock(), MAX_BYTES)
    } else {
        File::open(path).and_then(|file| limited(file, MAX_BYTES))
    };
    let bytes = read.map_err(|error| FileError::Unreadable {
        file: path.display().to_string(),
        error,
    })?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= MAX_BYTES) {
        Ok(bytes)
    } else {
        Err(FileError::TooLarge(path.display().to_string()))
    }
}

/// Reads one byte more than may be, at most: of a device or a pipe nobody knows the length before.
fn limited(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_read_to_the_limit_and_one_byte_more() {
        assert_eq!(limited(io::repeat(b'x'), 10).unwrap().len(), 11);
        assert_eq!(limited(&b"abc"[..], 10).unwrap(), b"abc");
    }

    #[test]
    fn a_folder_stands_for_the_files_of_traffic_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let nothing = expanded(&[folder.path().to_owned()]).unwrap_err();
        assert!(
            nothing
                .to_string()
                .ends_with("is a folder without a .twire or .har file")
        );
        for name in ["b.twire", "a.har", "report.json"] {
            fs::write(path(name), "").unwrap();
        }
        let paths = [PathBuf::from("-"), folder.path().to_owned()];
        let found = expanded(&paths).unwrap();
        assert_eq!(found, [PathBuf::from("-"), path("a.har"), path("b.twire")]);
    }
}
