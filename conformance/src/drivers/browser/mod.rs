//! Web pages in headless Chromium, over the DevTools protocol.
//!
//! - [`find`]: where Chromium is;
//! - [`chromium`]: a running Chromium with a profile of its own, gone when it is dropped;
//! - `cdp`: commands and events of the DevTools protocol;
//! - [`page`]: what is opened: files, which are served from the origin of the server under their feet, or a URL;
//! - [`tab`]: one page in a context of its own: what happens to it, and what is said to it;
//! - [`har`]: what went over the network of a page, as a HAR file.
//!
//! What a page reports means nothing here; it is a client under test like any other, see
//! [`testee`](super::testee). Every wait has a limit. Nothing is left behind: no process, no folder.
//!
//! Source: <https://chromedevtools.github.io/devtools-protocol/tot/>

use std::time::Duration;

use super::DriveError;

mod cdp;
pub mod chromium;
pub mod find;
pub mod har;
pub mod page;
pub mod tab;
pub use chromium::Browser;
pub use page::Page;
pub use tab::Tab;

/// Why a page could not be run.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// There is no Chromium where it was looked for.
    #[error(
        "no Chromium at {0}; install it (Debian: apt-get install chromium), or say where it is with \
         --chromium PATH or the variable CHROMIUM"
    )]
    NotFound(String),
    /// Chromium did not start, or did not listen.
    #[error("Chromium did not start: {why}")]
    NotStarted {
        /// What happened.
        why: String,
        /// Last lines of its output, oldest first.
        output: Vec<String>,
    },
    /// The connection to Chromium has ended.
    #[error("Chromium is gone")]
    Gone,
    /// Chromium did not answer a command in time.
    #[error("Chromium did not answer {method} within {waited:?}")]
    Silent {
        /// The command.
        method: String,
        /// How long the harness waited.
        waited: Duration,
    },
    /// Chromium refused a command.
    #[error("Chromium refused {method}: {why}")]
    Refused {
        /// The command.
        method: String,
        /// Its words.
        why: String,
    },
    /// The page is neither a readable file or folder nor a URL, or does not open.
    #[error("page {page}: {why}")]
    Page {
        /// As it was given.
        page: String,
        /// What is wrong.
        why: String,
    },
}

impl From<BrowserError> for DriveError {
    fn from(error: BrowserError) -> Self {
        let why = error.to_string();
        let output = match error {
            BrowserError::NotStarted { output, .. } => output,
            BrowserError::NotFound(_) | BrowserError::Page { .. } => Vec::new(),
            BrowserError::Gone | BrowserError::Silent { .. } | BrowserError::Refused { .. } => {
                return Self::Harness(why);
            }
        };
        Self::NotStarted { why, output }
    }
}
