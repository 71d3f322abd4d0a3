//! Recording traffic between a client and a server that neither of them notices.
//!
//! ```text
//! client --> proxy --> server          client --> wrapper --> child
//!              |                                    |
//!              v                                    v
//!            tape                                 tape --> text, secrets replaced
//! ```
//!
//! - [`tape`]: what is kept, within a bound;
//! - [`proxy`]: a reverse proxy for HTTP, event streams and WebSockets;
//! - [`body`]: bodies that are passed on and kept; [`websocket`]: frames read from a connection that is passed on;
//! - [`upstream`]: connections to the server;
//! - [`stdio`]: a wrapper around a program that speaks lines on its standard input and output.
//!
//! A piece is passed on in the same poll in which it arrives; recording it costs a lock and no copy. Nothing is
//! changed on the way but the headers of one hop, `host`, and `accept-encoding`, which becomes `identity` so that
//! what is recorded can be read. Secrets are replaced where the recording becomes text, before anything is
//! written anywhere.

use crate::{
    offline::detect,
    transcript::{
        Transcript,
        text::{Replaced, write_reporting},
    },
};

#[cfg(test)]
mod acceptance;
mod body;
pub mod proxy;
pub mod stdio;
pub mod tape;
#[cfg(test)]
mod tests;
mod upstream;
mod websocket;

pub use proxy::{RecordError, RecordOptions, RecordingProxy};
pub use tape::Tape;

/// A recording as a file, and what was replaced in it.
#[derive(Clone, Debug)]
pub struct Written {
    /// The text form.
    pub text: String,
    /// Each secret by its placeholder.
    pub replaced: Vec<Replaced>,
}

/// The recording as text. Without a suite in its header it gets the one that its traffic belongs to. The values
/// of `known` are secrets wherever they stand, under these names.
pub fn written(mut transcript: Transcript, known: &[(String, String)]) -> Written {
    if transcript.header.suite.is_empty()
        && let Some(suite) = detect(&transcript)
    {
        suite.name().clone_into(&mut transcript.header.suite);
    }
    let (text, replaced) = write_reporting(&transcript, known);
    Written { text, replaced }
}
