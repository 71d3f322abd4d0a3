//! The mock without sockets: scripts, state, journal, and what to answer.
//!
//! - `choose`: the rule that takes a request, or why none does.
//! - `judge`: what the service's rules say about it.
//! - `answer`: from a request to a reply that is ready to be sent.
//! - `config`: how a mock behaves.
//!
//! [`Mock`] is a handle: clones share everything. One lock guards the state; it is held while a rule
//! is chosen and while the journal is written, and never while anything is sent.

mod answer;
mod choose;
mod config;
mod judge;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::journal::{Journal, JournalEntry, Outcome, Progress};
use crate::script::{Rule, Script};
use crate::verify::Memory;
use crate::wires::Made;
use crate::wires::openai_responses::Stored;

pub(crate) use answer::{Hijack, Planned, Wanted};
pub use choose::ScriptId;
use choose::Scripts;
pub use config::{MockConfig, Unmatched, Verify};

/// The time in every answer, Unix seconds (2026-01-01T00:00:00Z): answers are the same in every run.
pub(crate) const CREATED: u64 = 1_767_225_600;

/// Answers of the Responses wire that are kept; the oldest is forgotten first.
const STORED: usize = 256;

/// Items whose thinking is remembered; the oldest is forgotten first.
const REMEMBERED: usize = 1_024;

/// A mock: handles to one share everything.
#[derive(Clone, Debug)]
pub struct Mock {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: MockConfig,
    started: Instant,
    state: Mutex<State>,
    /// Names of open gates; waiting replies watch it.
    gates: watch::Sender<BTreeSet<Arc<str>>>,
    /// Counts changes of the journal.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    scripts: Scripts,
    journal: Journal,
    stored: VecDeque<(String, Arc<Stored>)>,
    /// Items that were sent, each with the thinking that came with it.
    thinking: VecDeque<(String, Vec<String>)>,
    /// Answers so far that no script gave.
    unscripted: u64,
}

/// A loaded script, for listing.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct LoadedScript {
    /// Its id.
    pub id: ScriptId,
    /// Its name.
    pub name: String,
    /// Its rules, each with the times that it answered.
    pub rules: Vec<(String, u64)>,
}

/// A running reply's place in the journal. Dropped before its end, it says that the client went away.
#[derive(Debug)]
pub(crate) struct Ticket {
    mock: Mock,
    progress: Arc<Progress>,
}

impl Ticket {
    /// Says how many bytes there are to send.
    fn begins(&self, whole: usize) {
        self.progress.begins(whole);
    }

    /// Counts bytes that were handed to the connection.
    pub(crate) fn sent(&self, bytes: usize) {
        if self.progress.sent(bytes) {
            self.mock.changed();
        }
    }

    /// Ends the reply; only the first call counts.
    pub(crate) fn end(&self, outcome: Outcome) {
        if self.progress.outcome() == Outcome::Running {
            self.progress.end(outcome, self.mock.elapsed());
            self.mock.changed();
        }
    }

    /// Returns when the gate is open.
    pub(crate) fn gate(&self, name: Arc<str>) -> impl Future<Output = ()> + Send + 'static {
        let mut gates = self.mock.inner.gates.subscribe();
        async move {
            // The sender lives as long as the mock; when it is gone nothing has to wait any more.
            let _ = gates.wait_for(|open| open.contains(&name)).await;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.end(Outcome::ClientClosed);
    }
}

impl Mock {
    /// A mock without scripts.
    pub fn new(config: MockConfig) -> Self {
        Self {
            inner: Arc::new(Inner {
                config,
                started: Instant::now(),
                state: Mutex::default(),
                gates: watch::Sender::default(),
                changes: watch::Sender::default(),
            }),
        }
    }

    /// How it behaves.
    pub fn config(&self) -> &MockConfig {
        &self.inner.config
    }

    /// Adds a script; its rules come after those that are there.
    pub fn load(&self, script: impl Into<Script>) -> ScriptId {
        self.state().scripts.load(script.into())
    }

    /// Adds one rule as a script of its own.
    pub fn push(&self, rule: Rule) -> ScriptId {
        self.load(rule)
    }

    /// Takes a script away; says whether it was there. Replies that have begun go on.
    pub fn unload(&self, id: ScriptId) -> bool {
        self.state().scripts.unload(id)
    }

    /// The scripts that are loaded.
    pub fn scripts(&self) -> Vec<LoadedScript> {
        self.state().scripts.list()
    }

    /// Forgets scripts, state, stored answers, journal and gates. Numbers in the journal go on.
    pub fn reset(&self) {
        let mut state = self.state();
        state.scripts.clear();
        state.stored.clear();
        state.thinking.clear();
        state.journal.clear();
        state.unscripted = 0;
        drop(state);
        self.inner.gates.send_modify(BTreeSet::clear);
        self.changed();
    }

    /// Forgets the requests so far and keeps the scripts.
    pub fn clear_journal(&self) {
        self.state().journal.clear();
        self.changed();
    }

    /// The requests so far, oldest first.
    pub fn journal(&self) -> Vec<JournalEntry> {
        self.journal_since(0)
    }

    /// The requests from this number on, oldest first.
    pub fn journal_since(&self, seq: u64) -> Vec<JournalEntry> {
        let now = self.elapsed();
        self.state().journal.entries(seq, now)
    }

    /// Opens a gate for everything that waits for it or will.
    pub fn open(&self, gate: &str) {
        self.inner.gates.send_modify(|gates| {
            gates.insert(gate.into());
        });
    }

    /// Closes a gate again; what has passed it goes on.
    pub fn close(&self, gate: &str) {
        self.inner.gates.send_modify(|gates| {
            gates.remove(gate);
        });
    }

    /// Waits until the journal meets a condition, and returns it. The condition is asked when a
    /// request comes, when the first bytes of its reply are sent, and when the reply ends.
    pub async fn wait_for(
        &self,
        mut condition: impl FnMut(&[JournalEntry]) -> bool,
    ) -> Vec<JournalEntry> {
        let mut changes = self.inner.changes.subscribe();
        loop {
            let entries = self.journal();
            if condition(&entries) || changes.changed().await.is_err() {
                return entries;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics with the lock held, and every change is complete at every line.
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn elapsed(&self) -> Duration {
        self.inner.started.elapsed()
    }

    fn changed(&self) {
        // Most of the time nobody waits, and every request changes something three times.
        if self.inner.changes.receiver_count() == 0 {
            return;
        }
        self.inner
            .changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A ticket for a reply that is in no journal.
    pub(crate) fn untracked(&self) -> Ticket {
        Ticket {
            mock: self.clone(),
            progress: Arc::default(),
        }
    }

    /// Keeps what later requests are judged by.
    fn remember(&self, made: Made) {
        if !made.thinking.is_empty() {
            let mut state = self.state();
            state.thinking.extend(made.thinking);
            let surplus = state.thinking.len().saturating_sub(REMEMBERED);
            state.thinking.drain(..surplus);
        }
        if let Some(stored) = made.stored {
            self.store(stored);
        }
    }

    fn store(&self, stored: Stored) {
        let Some(id) = stored.response["id"].as_str().map(str::to_owned) else {
            return;
        };
        let mut state = self.state();
        state.stored.push_back((id, Arc::new(stored)));
        if state.stored.len() > STORED {
            state.stored.pop_front();
        }
    }

    fn stored(&self, id: &str) -> Option<Arc<Stored>> {
        let state = self.state();
        state
            .stored
            .iter()
            .rev()
            .find(|(other, _)| other == id)
            .map(|(_, stored)| stored.clone())
    }

    /// An item of a stored answer.
    fn stored_item(&self, id: &str) -> Option<serde_json::Value> {
        let state = self.state();
        let mut answers = state.stored.iter().rev();
        answers.find_map(|(_, stored)| {
            let output = stored.response["output"].as_array()?;
            output.iter().find(|item| item["id"] == id).cloned()
        })
    }

    /// Forgets a stored answer; says whether it was there.
    fn forget(&self, id: &str) -> bool {
        let mut state = self.state();
        let before = state.stored.len();
        state.stored.retain(|(other, _)| other != id);
        state.stored.len() < before
    }
}

impl Memory for Mock {
    fn made(&self, signature: &str) -> bool {
        self.state().scripts.made(signature)
    }

    fn thinking_of(&self, item: &str) -> Option<Vec<String>> {
        let state = self.state();
        let found = state.thinking.iter().rev().find(|(other, _)| other == item);
        found.map(|(_, thinking)| thinking.clone())
    }
}
