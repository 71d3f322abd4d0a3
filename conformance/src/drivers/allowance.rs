//! The time that a scenario gets beyond its limit: periods of the protocol that it has to sit out, and what a target asks
//! it to wait.
//!
//! A limit ends what hangs. A heartbeat that comes every 30 s is no hanging, so whoever waits on purpose says so here
//! before it does; whoever holds the scenario to its limit reads it.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

/// What was given so far.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Given {
    /// The time, in all.
    pub time: Duration,
    /// What the target asks for, one text a wait, for people who look on.
    pub asked: Vec<String>,
}

/// The allowance of one scenario. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Allowance {
    given: Arc<watch::Sender<Given>>,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            given: Arc::new(watch::Sender::new(Given::default())),
        }
    }
}

impl Allowance {
    /// Gives so much more time.
    pub fn give(&self, time: Duration) {
        self.given
            .send_modify(|given| given.time = given.time.saturating_add(time));
    }

    /// Gives so much more time because the target asks for it, in these words.
    pub fn ask(&self, time: Duration, words: String) {
        self.given.send_modify(|given| {
            given.time = given.time.saturating_add(time);
            given.asked.push(words);
        });
    }

    /// Follows what is given.
    pub fn follow(&self) -> watch::Receiver<Given> {
        self.given.subscribe()
    }
}
