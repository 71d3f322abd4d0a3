//! The sockets and processes: how the harness reaches a target, and what it lets the target reach.
//!
//! - [`allowance`]: the time that a scenario gets beyond its limit;
//! - [`browser`]: web pages in headless Chromium;
//! - [`http`]: a recording HTTP/1.1 client: whole answers, event streams, slow readers;
//! - [`lines`]: a recording client, and a scripted server, of line protocols;
//! - [`target`]: the instance under test: in process, a command, or a URL;
//! - [`testee`]: programs under test that connect to the harness;
//! - [`model`]: the mock model provider that answers the target's calls; [`provider`]: the mock providers that
//!   an adapter under test calls, recorded;
//! - [`scripted`]: a server of the harness, for clients under test: exact bytes, exact cuts;
//! - [`websocket`]: a recording WebSocket client over `http`.
//!
//! Drivers record everything they see and judge nothing. Every wait has a limit and every buffer a bound,
//! because what is at the other end may be anything. [`DriveError`] says that something could not be found
//! out; a wrong answer is no error.

use std::time::Duration;

pub mod allowance;
pub mod browser;
pub mod http;
pub mod lines;
pub mod model;
mod process;
pub mod provider;
pub mod scripted;
pub mod target;
pub mod testee;
pub mod websocket;

/// Why a scenario could not go on, or a target could not be started.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// No connection to this address within the limit.
    #[error("cannot connect to {url}: {why}")]
    NotConnected {
        /// Base URL of the target.
        url: String,
        /// The transport's words.
        why: String,
    },
    /// What came back is not HTTP/1.1.
    #[error("{request}: the answer is not HTTP: {why}")]
    NotHttp {
        /// Method and target.
        request: String,
        /// The parser's words.
        why: String,
    },
    /// The connection ended before the response head was complete.
    #[error("{request}: the connection ended before the response head: {why}")]
    NoResponse {
        /// Method and target.
        request: String,
        /// The transport's words.
        why: String,
    },
    /// No response head within the limit.
    #[error("{request}: no response head within {waited:?}")]
    Silent {
        /// Method and target.
        request: String,
        /// How long the harness waited.
        waited: Duration,
    },
    /// The scenario cannot go on with this answer. The answer itself stands in the transcript.
    #[error("{request}: expected {expected}, got {got}")]
    Unexpected {
        /// Method and target.
        request: String,
        /// What the scenario needs.
        expected: String,
        /// What came.
        got: String,
    },
    /// The target cannot do this, as its profile stands; the scenario is left out for this reason.
    #[error("{what} is not possible: {why}")]
    NotPossible {
        /// What the scenario asked for, such as `restart`.
        what: String,
        /// What in the profile would make it possible.
        why: String,
    },
    /// The target did not start, or did not get ready.
    #[error("the target did not start: {why}")]
    NotStarted {
        /// What happened, and what to change.
        why: String,
        /// Last lines of its output, oldest first.
        output: Vec<String>,
    },
    /// The harness itself could not do its part: an impossible request, no free port, no mock provider.
    #[error("harness: {0}")]
    Harness(String),
}

/// Who has to act on a [`DriveError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Blame {
    /// The target under test.
    Target,
    /// The person who wrote the profile.
    Profile,
    /// The harness.
    Harness,
}

impl DriveError {
    /// Who has to act on it.
    pub fn blame(&self) -> Blame {
        match self {
            Self::NotConnected { .. }
            | Self::NotHttp { .. }
            | Self::NoResponse { .. }
            | Self::Silent { .. }
            | Self::Unexpected { .. } => Blame::Target,
            Self::NotPossible { .. } | Self::NotStarted { .. } => Blame::Profile,
            Self::Harness(_) => Blame::Harness,
        }
    }
}

/// An error with all its causes, in one line.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = cause.source();
    }
    text
}
