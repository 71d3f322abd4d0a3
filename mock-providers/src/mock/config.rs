//! How a mock behaves.

use std::sync::Arc;

use crate::journal::JournalLimits;
use crate::script::Reply;
use crate::tap::Tap;

/// How a mock behaves.
#[derive(Clone, Debug)]
pub struct MockConfig {
    /// Made ids, signatures and jitter derive from this.
    pub seed: u64,
    /// What a request gets that no rule takes.
    pub unmatched: Unmatched,
    /// What happens with requests that break the service's rules.
    pub verify: Verify,
    /// Keys that are accepted; none means that no key is asked for.
    pub keys: Vec<String>,
    /// Limit of a request's body in bytes; more is answered with 413 before it was all read.
    pub max_body: usize,
    /// How much of the journal is kept.
    pub journal: JournalLimits,
    /// Ids in the model lists.
    pub models: Vec<String>,
    /// Limit of connections that are open at the same time; more wait.
    pub max_connections: usize,
    /// Who is told of every byte.
    pub tap: Option<Arc<dyn Tap>>,
}

impl Default for MockConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            unmatched: Unmatched::default(),
            verify: Verify::default(),
            keys: Vec::new(),
            max_body: 64 << 20,
            journal: JournalLimits::default(),
            models: ["mock-model", "gpt-5.2", "claude-opus-4-6", "gemini-3-pro"]
                .map(str::to_owned)
                .to_vec(),
            max_connections: 1_024,
            tap: None,
        }
    }
}

/// What happens with requests that break the service's rules.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Verify {
    /// They are answered with the service's own error, and journalled.
    #[default]
    Refuse,
    /// They are journalled.
    Note,
    /// Nobody looks.
    Off,
}

/// What a request gets that no rule takes.
#[derive(Clone, Debug, Default)]
pub enum Unmatched {
    /// A 400 in the wire's own form that names the nearest rule and what the request misses.
    #[default]
    Strict,
    /// This reply.
    Reply(Box<Reply>),
}

impl Unmatched {
    /// Answers with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Reply(Box::new(Reply::text(text)))
    }
}
