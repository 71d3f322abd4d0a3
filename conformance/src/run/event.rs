//! What is told while a run goes on: the one event type between running and reporting.

use std::time::Duration;

use super::Outcome;

/// Something happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// These scenarios are to be played, in this order or another.
    Started {
        /// Suite name.
        suite: String,
        /// Scenario names.
        scenarios: Vec<String>,
        /// Requirements that get a verdict.
        requirements: usize,
    },
    /// More scenarios are to be played, because requirements were still not exercised.
    More {
        /// Scenario names.
        scenarios: Vec<String>,
    },
    /// The first instance of the target is up and answers; others follow untold.
    TargetUp {
        /// Variant of the profile.
        variant: String,
        /// Where it is reached.
        url: String,
        /// Time since the run began.
        took: Duration,
    },
    /// A scenario begins.
    ScenarioStarted {
        /// Its name.
        name: String,
    },
    /// A scenario waits, because the target asks it to.
    ScenarioWaits {
        /// Its name.
        name: String,
        /// For what, and for how long.
        what: String,
    },
    /// A scenario is over; it is judged when all of its round are.
    ScenarioFinished {
        /// Its name.
        name: String,
        /// Time that it took.
        took: Duration,
        /// Why it could not be played to its end.
        problem: Option<String>,
    },
    /// The transcript of a scenario was judged.
    ScenarioJudged {
        /// Its name.
        name: String,
        /// Faults that the checks found in it.
        faults: usize,
    },
    /// A scenario is left out.
    ScenarioSkipped {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// The run is over.
    Finished {
        /// How it ended.
        outcome: Outcome,
        /// Time that it took.
        took: Duration,
    },
}
