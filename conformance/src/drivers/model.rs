//! The mock model provider that answers the target's model calls, as a scenario controls it.
//!
//! A rule belongs to a token: it answers calls whose last user message contains the token. The harness puts a
//! fresh token into what the player says, so scenarios that run side by side do not meet.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;

/// What the model says next, for one scenario.
#[derive(Clone, Debug, Default)]
pub struct Model {
    planned: Arc<Mutex<Vec<(String, Saying)>>>,
}

/// One planned reply of the model.
#[derive(Clone, Debug, PartialEq)]
enum Saying {
    Pieces {
        pieces: Vec<String>,
        between: Duration,
    },
    Calls {
        calls: Vec<(String, Value)>,
        then: String,
    },
    Fails {
        status: u16,
    },
    BreaksOff {
        text: String,
        after_events: usize,
    },
}

impl Model {
    /// Answers what contains `token` with this text, streamed word by word.
    pub fn says(&self, token: &str, text: &str) {
        self.says_in_pieces(token, &[text], Duration::ZERO);
    }

    /// Answers what contains `token` with these pieces, one event each, so far apart.
    pub fn says_in_pieces(&self, token: &str, pieces: &[&str], between: Duration) {
        let pieces = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        self.plan(token, Saying::Pieces { pieces, between });
    }

    /// Calls these tools (name and arguments) side by side, and says the text when their results are in.
    pub fn calls_then_says(&self, token: &str, calls: &[(&str, Value)], then: &str) {
        let calls = calls
            .iter()
            .map(|(name, arguments)| ((*name).to_owned(), arguments.clone()))
            .collect();
        self.plan(
            token,
            Saying::Calls {
                calls,
                then: then.to_owned(),
            },
        );
    }

    /// Answers what contains `token` with this error status.
    pub fn fails(&self, token: &str, status: u16) {
        self.plan(token, Saying::Fails { status });
    }

    /// Says so many events of the text, then closes the connection.
    pub fn breaks_off(&self, token: &str, text: &str, after_events: usize) {
        self.plan(
            token,
            Saying::BreaksOff {
                text: text.to_owned(),
                after_events,
            },
        );
    }

    fn plan(&self, token: &str, saying: Saying) {
        self.planned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((token.to_owned(), saying));
    }
}
