//! The target profile, `turnwire.toml`: what the harness has to know about a target.

use std::{collections::BTreeMap, time::Duration};

use crate::drivers::http::HttpLimits;

/// What the harness knows about a target.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Name for reports.
    pub name: String,
    /// Factor that the target multiplies the protocol's periods with; 1 is real time.
    pub time_scale: f64,
    /// What the target can do: declared present, declared absent; what is not mentioned is unknown.
    pub capabilities: BTreeMap<String, bool>,
    /// Plugins that new sessions are created with.
    pub session_plugins: Vec<String>,
    /// Plugin that answers the fixture actions.
    pub fixture_plugin: String,
    /// Operator token, for targets that ask for one when a session is created.
    pub operator_token: Option<String>,
    /// How long the harness waits and how much it takes.
    pub limits: Limits,
}

/// How long the harness waits and how much it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Of the HTTP client.
    pub http: HttpLimits,
    /// Shortest wait for something that ought to come, however short its scaled period is.
    pub patience: Duration,
    /// For one scenario.
    pub scenario: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            http: HttpLimits::default(),
            patience: Duration::from_secs(2),
            scenario: Duration::from_secs(60),
        }
    }
}

impl Profile {
    /// The reference server as it comes.
    pub fn reference() -> Self {
        Self {
            name: "reference".to_owned(),
            time_scale: 0.01,
            capabilities: BTreeMap::new(),
            session_plugins: vec!["story".to_owned(), "turnwire-fixtures".to_owned()],
            fixture_plugin: "turnwire-fixtures".to_owned(),
            operator_token: None,
            limits: Limits::default(),
        }
    }
}
