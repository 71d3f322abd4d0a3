//! Executes the `rule` of a catalogue entry.
//!
//! [`judge`] takes any rule; [`judge_reading`] does the same on a transcript that was read before. Each
//! kind of rule has a file, each demand in it one small function:
//!
//! - [`frames`]: demands on single frames; [`responses`]: on HTTP responses; [`streams`]: on whole streams;
//! - [`outcome`]: on what a testee reports; [`asked`]: on what a client asks for; [`said`]: on what an
//!   adapter lets the user say; [`waits`]: on how long it waits before it asks again;
//! - [`messages`]: on single messages of a WebSocket or a channel of lines, and on their answers; [`channels`]: on
//!   whole channels, and on what a client reports of itself;
//! - [`relate`]: on values that two places of a conversation tell, and [`pairs`], on frames that belong together;
//! - [`source`]: the places that an equality names; [`sound`]: whether a rule can be executed at all.
//!
//! What the fields mean stands in [`turnwire_spec::catalogue::rule`]. Three things hold for all of them:
//! only complete frames are judged; what the harness itself cut off is nobody's fault; and an observation
//! counts as judged when at least one demand could be decided on it.

use turnwire_spec::catalogue::rule::Rule;

use crate::{
    transcript::{
        Transcript,
        views::{http::Exchange, reading::Reading, stream::type_matches},
    },
    verdict::{Evidence, Findings},
};

mod asked;
mod channels;
mod frames;
mod messages;
mod outcome;
mod pairs;
mod relate;
mod responses;
mod said;
mod shown;
pub mod sound;
mod source;
mod streams;
#[cfg(test)]
mod tests;
mod waits;

/// Judges one transcript by one rule.
pub fn judge(rule: &Rule, transcript: &Transcript) -> Findings {
    judge_reading(rule, &Reading::new(transcript))
}

/// Judges a transcript that was read before, such as for another rule.
pub fn judge_reading(rule: &Rule, reading: &Reading<'_>) -> Findings {
    match rule {
        Rule::Frames(rule) => frames::judge(rule, reading),
        Rule::Responses(rule) => responses::judge(rule, reading),
        Rule::Streams(rule) => streams::judge(rule, reading),
        Rule::Outcome(rule) => outcome::judge(rule, reading.transcript()),
        Rule::Messages(rule) => messages::judge(rule, reading),
        Rule::Answers(rule) => messages::judge_answers(rule, reading),
        Rule::Channels(rule) => channels::judge(rule, reading),
        Rule::States(rule) => channels::judge_states(rule, reading),
        Rule::Asked(rule) => asked::judge(rule, reading),
        Rule::Said(rule) => said::judge(rule, reading.transcript()),
        Rule::Waits(rule) => waits::judge(rule, reading.transcript()),
        Rule::Relate(rule) => relate::judge(rule, reading),
        Rule::Pairs(rule) => pairs::judge(rule, reading),
        Rule::All(rules) => rules.iter().fold(Findings::none(), |mut findings, rule| {
            findings.merge(judge_reading(rule, reading));
            findings
        }),
    }
}

/// What one demand says of one observation.
#[derive(Debug, PartialEq)]
enum Demand {
    /// It cannot be decided here.
    Open,
    /// It holds.
    Met,
    /// It does not.
    Broken(Evidence),
}

impl Demand {
    /// Met, or broken as `evidence` tells.
    fn check(met: bool, evidence: impl FnOnce() -> Evidence) -> Self {
        if met {
            Self::Met
        } else {
            Self::Broken(evidence())
        }
    }
}

/// Adds one observation: judged when any demand was decided.
fn note(findings: &mut Findings, demands: impl IntoIterator<Item = Demand>) {
    let mut decided = false;
    for demand in demands {
        match demand {
            Demand::Open => continue,
            Demand::Met => {}
            Demand::Broken(evidence) => findings.faults.push(evidence),
        }
        decided = true;
    }
    findings.judged += usize::from(decided);
}

/// Whether the exchange was opened under the label that a rule asks for.
fn labelled(wanted: Option<&str>, exchange: &Exchange<'_>) -> bool {
    wanted.is_none_or(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => exchange.label.starts_with(prefix),
        None => exchange.label == pattern,
    })
}

/// Whether a frame type is asked for: in `types` (or those are empty) and not in `not_types`.
fn type_selected(types: &[String], not_types: &[String], name: &str) -> bool {
    (types.is_empty() || type_matches(types, name)) && !type_matches(not_types, name)
}

/// A list for people: `a, b or c`.
fn one_of<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [only] => only.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", first.join(", "), last.as_ref())
        }
    }
}
