//! The types of the event table: what is known about one kind of event.
//!
//! The rows are in [`events`](super::events), the payloads in [`payloads`](super::payloads). Server, checks, schemas and
//! docs read the table; nobody keeps a second list.

use std::fmt;

use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::payloads::EventPayload;
use crate::words::words;

words! {
    /// A subject that a subscription can be limited to.
    ///
    /// Source: seed 000, line 659.
    "topic" enum Topic {
        /// Executions and their runtimes.
        Runtime = "runtime",
        /// Committed state that a player sees.
        State = "state",
        /// The game's own events and assets.
        Game = "game",
        /// Data and pauses of plugins.
        Plugin = "plugin",
        /// Snapshots and forks.
        Session = "session",
        /// Changes in the store.
        Store = "store",
        /// Messages of the server about itself.
        System = "system",
        /// Diagnostics of turns.
        Trace = "trace",
        /// Diagnostics of the hook pipeline.
        Hooks = "hooks",
        /// Progress of long-running jobs.
        Job = "job",
    }
}

/// The topics that a subscription accepts, in the order of the seed.
pub const SUBSCRIPTION_TOPICS: &[Topic] = Topic::ALL;

impl Topic {
    /// Whether events of this topic are diagnostics: sent live, never replayed.
    ///
    /// Source: seed 000, lines 1410-1412.
    #[must_use]
    pub const fn is_diagnostic(self) -> bool {
        matches!(self, Self::Trace | Self::Hooks)
    }
}

/// What is known about the topic of an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TopicRule {
    /// A source states it; checks may insist.
    Stated(Topic),
    /// The sources allow each of these; the first is ours.
    OneOf(&'static [Topic]),
    /// No source states it, so checks accept any; this one is ours.
    Ours(Topic),
    /// No source states it, and our server does not send the event to subscribers.
    Unstated,
}

impl TopicRule {
    /// The topic under which our own server sends the event, or `None` when it does not.
    #[must_use]
    pub const fn ours(self) -> Option<Topic> {
        match self {
            Self::Stated(topic) | Self::Ours(topic) => Some(topic),
            Self::OneOf([topic, ..]) => Some(*topic),
            Self::Unstated | Self::OneOf([]) => None,
        }
    }

    /// Whether a server that sends the event under `topic` can be right.
    #[must_use]
    pub fn accepts(self, topic: Topic) -> bool {
        match self {
            Self::Stated(stated) => stated == topic,
            Self::OneOf(allowed) => allowed.contains(&topic),
            Self::Ours(_) | Self::Unstated => true,
        }
    }
}

/// How an event reaches the stream of `POST /api/actions`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionStream {
    /// The request writes the frame itself, so the bus does not forward a second copy.
    Direct,
    /// The bus forwards it while the request holds the session.
    Forwarded,
    /// It never appears there.
    Never,
}

/// Where a row of a table comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// These lines of seed 000, both included, counted from 1.
    Seed(u32, u32),
    /// The public sources of the protocol; the seed does not state it.
    Public,
    /// Our own choice where every source is silent.
    Ours,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seed(from, to) if from == to => write!(f, "seed 000, line {from}"),
            Self::Seed(from, to) => write!(f, "seed 000, lines {from}-{to}"),
            Self::Public => f.write_str("public sources"),
            Self::Ours => f.write_str("ours"),
        }
    }
}

/// Makes the JSON Schema of a type.
pub type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// What is known about one kind of event.
#[derive(Clone, Copy, Debug)]
pub struct EventMeta {
    /// The `type` string on both streams.
    pub name: &'static str,
    /// Whether it is a member of the event union. A row that is not a member occurs only in stored
    /// traces, and never on a stream.
    pub member: bool,
    /// Its topic on the subscription stream.
    pub topic: TopicRule,
    /// How it reaches the action stream.
    pub action_stream: ActionStream,
    /// Whether it is written to the trace and shown by the trace API and the diagnostic topics only.
    pub trace_only: bool,
    /// One sentence on what it tells.
    pub doc: &'static str,
    /// Where it is described.
    pub source: Source,
    /// Makes the JSON Schema of its payload, as the type states it; see `schema::for_event`.
    pub payload_schema: MakeSchema,
}

impl EventMeta {
    /// Whether our server sends it to subscribers.
    #[must_use]
    pub fn on_subscription(&self) -> bool {
        self.member && self.topic.ours().is_some()
    }

    /// Whether it is a diagnostic: sent live, never replayed, kept in the trace.
    #[must_use]
    pub fn is_diagnostic(&self) -> bool {
        self.topic.ours().is_some_and(Topic::is_diagnostic)
    }

    /// A member of the union that is on no stream yet.
    pub(super) const fn new<P: EventPayload>(
        name: &'static str,
        source: Source,
        doc: &'static str,
    ) -> Self {
        // The table is a constant, so a slip in it does not compile.
        assert!(
            same(name, P::EVENT),
            "the payload type is for another event"
        );
        Self {
            name,
            member: true,
            topic: TopicRule::Unstated,
            action_stream: ActionStream::Never,
            trace_only: false,
            doc,
            source,
            payload_schema: P::json_schema,
        }
    }

    /// On the subscription under a topic that a source states.
    pub(super) const fn stated(mut self, topic: Topic) -> Self {
        self.topic = TopicRule::Stated(topic);
        self
    }

    /// On the subscription under a topic that is our choice.
    pub(super) const fn ours(mut self, topic: Topic) -> Self {
        self.topic = TopicRule::Ours(topic);
        self
    }

    /// On the subscription under one of several topics that the sources allow; the first is ours.
    pub(super) const fn one_of(mut self, topics: &'static [Topic]) -> Self {
        self.topic = TopicRule::OneOf(topics);
        self
    }

    /// Written to the action stream by the request.
    pub(super) const fn direct(mut self) -> Self {
        self.action_stream = ActionStream::Direct;
        self
    }

    /// Forwarded to the action stream by the bus.
    pub(super) const fn forwarded(mut self) -> Self {
        self.action_stream = ActionStream::Forwarded;
        self
    }

    /// Shown in traces and under the diagnostic topics only.
    pub(super) const fn trace_only(mut self) -> Self {
        self.trace_only = true;
        self
    }

    /// A row of the stored trace that is no member of the union.
    pub(super) const fn stored_row(mut self) -> Self {
        self.member = false;
        self.trace_only()
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_reads_back_from_its_name_in_text_and_json() {
        for &topic in SUBSCRIPTION_TOPICS {
            assert_eq!(topic.to_string().parse(), Ok(topic));
            assert_eq!(
                serde_json::to_string(&topic).unwrap(),
                format!("\"{topic}\"")
            );
        }
        let error = "Runtime".parse::<Topic>().unwrap_err();
        assert_eq!(error.to_string(), "unknown topic \"Runtime\"");
    }

    #[test]
    fn the_topics_stand_in_the_order_of_the_seed() {
        let names: Vec<_> = SUBSCRIPTION_TOPICS
            .iter()
            .map(|topic| topic.name())
            .collect();
        assert_eq!(
            names.join(" / "),
            "runtime / state / game / plugin / session / store / system / trace / hooks / job"
        );
    }

    #[test]
    fn a_topic_that_no_source_states_accuses_nobody() {
        assert!(TopicRule::Ours(Topic::Game).accepts(Topic::Job));
        assert!(TopicRule::Unstated.accepts(Topic::Job));
        assert!(!TopicRule::Stated(Topic::Game).accepts(Topic::Job));
        assert!(!TopicRule::OneOf(&[Topic::Hooks, Topic::Trace]).accepts(Topic::Job));
    }
}
