//! The cases that an adapter was put through: what is true of each, the exchange, and the report.

use std::time::Duration;

use serde_json::Value;

use crate::transcript::{ExchangeId, Fact, Side, Transcript};

/// One case as it was played.
#[derive(Clone, Debug)]
pub struct Played<'a> {
    /// Its id.
    pub id: String,
    /// What is true of it, as JSON.
    pub truth: &'a Value,
    /// When it began.
    pub begun: Duration,
    /// The last request that the adapter made, with its request line.
    pub exchange: Option<(ExchangeId, String)>,
    /// The report and when it came.
    pub report: Option<(Duration, Value)>,
    /// How the adapter ended, when it did so before it reported.
    pub over: Option<String>,
}

impl Played<'_> {
    /// Whether the adapter cannot express the case.
    pub fn unsupported(&self) -> bool {
        let report = self.report.as_ref();
        report.is_some_and(|(_, report)| !report["unsupported"].is_null())
    }
}

/// The line in which the adapter said that it is ready; one that is started again says the same.
pub fn ready(transcript: &Transcript) -> Option<Value> {
    transcript
        .entries
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::Line {
                from: Side::Client,
                bytes,
                ..
            } => serde_json::from_slice::<Value>(bytes).ok(),
            _ => None,
        })
        .find(|line| line["ready"] == true)
}

/// The cases of a transcript, in the order in which they were played.
pub fn played(transcript: &Transcript) -> Vec<Played<'_>> {
    let mut found: Vec<Played<'_>> = Vec::new();
    let mut channel = None;
    for entry in &transcript.entries {
        match &entry.fact {
            Fact::State(state) => {
                let Some(id) = state["case"].as_str().filter(|_| state["truth"].is_array()) else {
                    continue;
                };
                found.push(Played {
                    id: id.to_owned(),
                    truth: &state["truth"],
                    begun: entry.at,
                    exchange: None,
                    report: None,
                    over: None,
                });
            }
            Fact::Request { exchange, request } => {
                if let Some(case) = found.last_mut() {
                    let line = format!("{} {}", request.method, request.target);
                    case.exchange = Some((*exchange, line));
                }
            }
            Fact::Line {
                from: Side::Client,
                bytes,
                ..
            } => {
                let report = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
                if let Some(case) = found.last_mut().filter(|case| report["case"] == *case.id) {
                    case.report = Some((entry.at, report));
                }
            }
            Fact::Line { exchange, .. } => channel = Some(*exchange),
            Fact::End { exchange, how } if channel == Some(*exchange) => {
                if let Some(case) = found.last_mut().filter(|case| case.report.is_none()) {
                    case.over = Some(how.to_string());
                }
            }
            _ => {}
        }
    }
    found
}
