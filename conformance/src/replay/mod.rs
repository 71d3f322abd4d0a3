//! Playing a transcript to either side.
//!
//! - [`server`]: its server side, for a client to talk to;
//! - [`client`]: its client side, against a server, with a diff of what the server answers;
//! - [`play`]: a transcript as exchanges, and what has to happen before each piece; [`said`]: messages and lines;
//!   [`words`]: ids of the transcript and what they are now.
//!
//! Ids that the other side makes up are put in place of those of the transcript, wherever they stand. Nothing is
//! judged here.

use std::time::Duration;

pub mod client;
pub mod play;
pub mod said;
pub mod server;
#[cfg(test)]
mod tests;
pub mod words;

/// How much time passes between two facts of a transcript when it is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// As much as when it was recorded, times this factor.
    Scaled(f64),
    /// None: what comes next follows as soon as what came before has happened.
    None,
}

impl Timing {
    /// As long as this span is played.
    pub fn of(self, span: Duration) -> Duration {
        match self {
            Self::Scaled(factor) => {
                Duration::try_from_secs_f64(span.as_secs_f64() * factor).unwrap_or(Duration::MAX)
            }
            Self::None => Duration::ZERO,
        }
    }
}
