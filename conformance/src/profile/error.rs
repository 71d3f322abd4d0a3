//! What can be wrong with a profile.

use std::fmt;

/// Why there is no profile.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file cannot be read.
    #[error("cannot read the profile {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's words.
        why: String,
    },
    /// The file says something that no profile says.
    #[error("{path}:{line}:{column}: {problem}")]
    Wrong {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// What is wrong there.
        problem: Problem,
    },
}

/// What is wrong at one place of a profile.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// It is no TOML; with the parser's words.
    Syntax(String),
    /// No profile has this key here.
    UnknownKey {
        /// The key with the tables around it, `target.comand`.
        key: String,
        /// The key that is spelt most like it.
        nearest: Option<String>,
        /// All keys that could stand here.
        known: Vec<String>,
    },
    /// The value is of the wrong kind.
    WrongType {
        /// The key with the tables around it.
        key: String,
        /// What was expected.
        expected: &'static str,
        /// What stands there.
        got: &'static str,
    },
    /// A key is missing.
    Missing {
        /// The key with the tables around it.
        key: String,
        /// What it is for.
        expected: &'static str,
    },
    /// The value is of the right kind and makes no sense.
    BadValue {
        /// The key with the tables around it.
        key: String,
        /// What was expected, and what stands there.
        why: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(words) => write!(out, "no TOML: {words}"),
            Self::UnknownKey {
                key,
                nearest: Some(nearest),
                ..
            } => {
                write!(out, "unknown key {key:?}; did you mean {nearest:?}?")
            }
            Self::UnknownKey {
                key,
                nearest: None,
                known,
            } => {
                write!(
                    out,
                    "unknown key {key:?}; expected one of {}",
                    known.join(", ")
                )
            }
            Self::WrongType { key, expected, got } => {
                write!(out, "{key}: expected {expected}, got {got}")
            }
            Self::Missing { key, expected } => write!(out, "{key} is missing: {expected}"),
            Self::BadValue { key, why } => write!(out, "{key}: {why}"),
        }
    }
}
