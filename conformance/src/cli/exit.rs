//! How the process ends: exit codes, and the one error of all commands.
//!
//! An error is one line that says what is wrong and what to do. A wrong target is no error: it is a verdict.

/// Conformant, or nothing to judge went wrong.
pub const CONFORMANT: u8 = 0;
/// A requirement failed, or one that had to be exercised was not.
pub const FAILED: u8 = 1;
/// Wrong usage or configuration: an unknown name, a malformed profile, a file that cannot be read.
pub const USAGE: u8 = 2;
/// The target could not be reached, or the harness itself failed. Also when the run was interrupted.
pub const HARNESS: u8 = 3;
/// Nothing that happened could show any requirement, right or wrong.
pub const NOTHING: u8 = 4;

/// Why a command could not do its work.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CliError {
    /// The command line or a file that it names is wrong.
    #[error("{0}")]
    Usage(String),
    /// The target could not be reached or started.
    #[error("{what}; {remedy}")]
    Target {
        /// What happened.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// The harness could not do its part.
    #[error("{0}")]
    Harness(String),
    /// Ctrl-C, or a request to terminate.
    #[error("interrupted")]
    Interrupted,
    /// Standard output was closed by whoever reads it.
    #[error("standard output was closed")]
    OutputClosed,
}

impl CliError {
    /// The exit code that tells it apart.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            Self::Target { .. } | Self::Harness(_) | Self::Interrupted => HARNESS,
            Self::OutputClosed => CONFORMANT,
        }
    }

    /// A file could not be read or written.
    pub fn file(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Usage(format!("cannot {doing} {}: {error}", path.display()))
    }
}
