//! The mock without sockets: scripts, state, journal, and the choice of a reply.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use turnwire_spec::llm::Wire;

use crate::faults::{self, Plan};
use crate::ids::Ids;
use crate::journal::{
    Journal, JournalEntry, JournalLimits, Outcome, Progress, Record, RuleUse, Violation, millis,
};
use crate::matching::{self, Facts, Talk};
use crate::script::{ErrorReply, Reply, Rule, Script};
use crate::wires::{self, Context, Response, Route};

/// The time in every answer, Unix seconds (2026-01-01T00:00:00Z): answers are the same in every run.
pub(crate) const CREATED: u64 = 1_767_225_600;

/// How a mock behaves.
#[derive(Clone, Debug)]
pub struct MockConfig {
    /// Made ids and jitter derive from this.
    pub seed: u64,
    /// What a request gets that no rule takes.
    pub unmatched: Unmatched,
    /// Limit of a request's body in bytes; more is answered with 413 before it was all read.
    pub max_body: usize,
    /// How much of the journal is kept.
    pub journal: JournalLimits,
    /// Ids in the model lists.
    pub models: Vec<String>,
    /// Limit of connections that are open at the same time; more wait.
    pub max_connections: usize,
}

impl Default for MockConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            unmatched: Unmatched::default(),
            max_body: 64 << 20,
            journal: JournalLimits::default(),
            models: ["mock-model", "gpt-5.2", "claude-opus-4-6", "gemini-3-pro"]
                .map(str::to_owned)
                .to_vec(),
            max_connections: 1_024,
        }
    }
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

/// A loaded script.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ScriptId(u64);

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
    scripts: Vec<Loaded>,
    next_script: u64,
    unmatched: u64,
    journal: Journal,
}

#[derive(Debug)]
struct Loaded {
    id: ScriptId,
    name: String,
    rules: Vec<(Arc<Rule>, u64)>,
    vars: BTreeMap<String, String>,
}

/// The rule that answers, and where it is.
struct Chosen {
    rule: Arc<Rule>,
    reply: usize,
    used: RuleUse,
}

/// A reply that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(std::borrow::Cow<'static, str>, String)>,
    pub(crate) stream: bool,
    pub(crate) content_length: Option<u64>,
    pub(crate) plan: Plan,
    pub(crate) ticket: Ticket,
}

/// A running reply's place in the journal. Dropped before its end, it says that the client went away.
#[derive(Debug)]
pub(crate) struct Ticket {
    mock: Mock,
    progress: Arc<Progress>,
}

impl Ticket {
    pub(crate) fn sent(&self, bytes: usize) {
        self.progress.sent(bytes);
    }

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
        let script = script.into();
        let mut state = self.state();
        let id = ScriptId(state.next_script);
        state.next_script += 1;
        state.scripts.push(Loaded {
            id,
            name: script.name,
            rules: script
                .rules
                .into_iter()
                .map(|rule| (Arc::new(rule), 0))
                .collect(),
            vars: script.state,
        });
        id
    }

    /// Adds one rule as a script of its own.
    pub fn push(&self, rule: Rule) -> ScriptId {
        self.load(rule)
    }

    /// Takes a script away; says whether it was there. Replies that have begun go on.
    pub fn unload(&self, id: ScriptId) -> bool {
        let mut state = self.state();
        let before = state.scripts.len();
        state.scripts.retain(|script| script.id != id);
        state.scripts.len() < before
    }

    /// Forgets scripts, state, journal and gates. Numbers in the journal go on.
    pub fn reset(&self) {
        let mut state = self.state();
        state.scripts.clear();
        state.unmatched = 0;
        state.journal.clear();
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
        let now = self.elapsed();
        self.state().journal.entries(now)
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

    /// Waits until the journal meets a condition, and returns it.
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
        self.inner
            .changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Chooses a reply and plans it.
    pub(crate) fn answer(&self, parts: Parts, body: Bytes) -> Planned {
        match wires::route(parts.method.as_str(), parts.uri.path()) {
            Route::Generate(wire) => self.generate(wire, parts, body),
            Route::Models(wire, id) => self.models(wire, id.as_deref(), parts),
            Route::Unknown => self.unknown_path(parts, body),
        }
    }

    fn generate(&self, wire: Wire, parts: Parts, bytes: Bytes) -> Planned {
        let body: Value = match serde_json::from_slice(&bytes) {
            Ok(body) => body,
            Err(error) => {
                let error = ErrorReply::new(400).message(format!(
                    "We could not parse the JSON body of your request: {error}."
                ));
                return self.fixed_error(wire, error, parts, bytes);
            }
        };
        let facts = Facts {
            wire,
            method: parts.method.as_str(),
            path: parts.uri.path(),
            headers: &parts.headers,
            body: &body,
            talk: wires::read(wire, &body),
        };
        let chosen = self.choose(&facts);
        let fallback;
        let (reply, used, ids) = match &chosen {
            Ok(chosen) => {
                let used = &chosen.used;
                let owner = format!("{}/{}", used.script, used.rule);
                let ids = Ids::new(self.inner.config.seed, &owner, used.nth);
                (&chosen.rule.replies[chosen.reply], Some(used.clone()), ids)
            }
            Err(nth) => {
                fallback = self.fallback(&facts);
                (&fallback, None, Ids::new(self.inner.config.seed, "", *nth))
            }
        };
        let mut context = Context {
            wire,
            talk: &facts.talk,
            request: &body,
            created: CREATED,
            ids,
        };
        let response = wires::write(&reply.body, &mut context);
        let ids = context.ids;
        let (model, stream) = (facts.talk.model.clone().into_owned(), facts.talk.stream);
        let record = Incoming {
            wire: Some(wire),
            parts,
            body: bytes,
            model,
            stream,
            rule: used,
        };
        self.plan(response, Some(reply), record, ids)
    }

    /// Finds the rule that answers and counts its use; otherwise counts the request as unmatched.
    fn choose(&self, facts: &Facts<'_>) -> Result<Chosen, u64> {
        let mut state = self.state();
        let mut best: Option<(i32, usize, usize, usize)> = None;
        for (at, script) in state.scripts.iter().enumerate() {
            for (place, (rule, used)) in script.rules.iter().enumerate() {
                if best.is_some_and(|(priority, ..)| rule.priority <= priority) {
                    continue;
                }
                if let Some(reply) = rule.nth_reply(*used)
                    && matching::matches(&rule.when, facts, &script.vars)
                {
                    best = Some((rule.priority, at, place, reply));
                }
            }
        }
        let Some((_, at, place, reply)) = best else {
            let nth = state.unmatched;
            state.unmatched += 1;
            return Err(nth);
        };
        let script = &mut state.scripts[at];
        let (rule, used) = &mut script.rules[place];
        let nth = *used;
        *used += 1;
        let rule = rule.clone();
        for (name, value) in &rule.replies[reply].set {
            script.vars.insert(name.clone(), value.clone());
        }
        let used = RuleUse {
            script: script.name.clone(),
            rule: rule_name(&rule, place),
            nth,
        };
        Ok(Chosen { rule, reply, used })
    }

    fn fallback(&self, facts: &Facts<'_>) -> Reply {
        match &self.inner.config.unmatched {
            Unmatched::Reply(reply) => (**reply).clone(),
            Unmatched::Strict => ErrorReply::new(400)
                .code("turnwire_no_rule")
                .message(self.nearest(facts))
                .into(),
        }
    }

    /// Says why no rule takes a request: the rule with the fewest missed conditions, and those.
    fn nearest(&self, facts: &Facts<'_>) -> String {
        let state = self.state();
        let all = state.scripts.iter().flat_map(|script| {
            script
                .rules
                .iter()
                .enumerate()
                .map(move |(place, (rule, used))| {
                    let missed = matching::mismatches(&rule.when, facts, &script.vars);
                    (script, place, rule, *used, missed)
                })
        });
        let nearest = all.min_by_key(|(_, _, rule, used, missed)| {
            missed.len() + usize::from(rule.nth_reply(*used).is_none())
        });
        let Some((script, place, rule, used, missed)) = nearest else {
            return "turnwire mock: no script is loaded".to_owned();
        };
        let mut text = format!(
            "turnwire mock: no rule takes this request; the nearest is rule {:?} of script {:?}",
            rule_name(rule, place),
            script.name
        );
        if rule.nth_reply(used).is_none() {
            let _ = write!(text, "; it is used up ({used} times)");
        }
        for miss in missed {
            let _ = write!(
                text,
                "; {}: wanted {}, got {}",
                miss.condition, miss.wanted, miss.got
            );
        }
        text
    }

    fn fixed_error(&self, wire: Wire, error: ErrorReply, parts: Parts, body: Bytes) -> Planned {
        let talk = Talk::default();
        let ids = Ids::new(self.inner.config.seed, "error", 0);
        let mut context = Context {
            wire,
            talk: &talk,
            request: &Value::Null,
            created: CREATED,
            ids,
        };
        let response = wires::write_error(&error, &mut context);
        let ids = context.ids;
        self.plan(
            response,
            None,
            Incoming::plain(Some(wire), parts, body),
            ids,
        )
    }

    /// The answer to a body above the limit.
    pub(crate) fn too_large(&self, parts: Parts) -> Planned {
        let wire = match wires::route(parts.method.as_str(), parts.uri.path()) {
            Route::Generate(wire) | Route::Models(wire, _) => wire,
            Route::Unknown => Wire::OpenaiChat,
        };
        self.fixed_error(wire, ErrorReply::new(413), parts, Bytes::new())
    }

    fn unknown_path(&self, parts: Parts, body: Bytes) -> Planned {
        let error = ErrorReply::new(404).code("unknown_url").message(format!(
            "Unknown request URL: {} {}. Please check the URL for typos.",
            parts.method,
            parts.uri.path()
        ));
        self.fixed_error(Wire::OpenaiChat, error, parts, body)
    }

    fn models(&self, wire: Wire, id: Option<&str>, parts: Parts) -> Planned {
        let models = &self.inner.config.models;
        match wires::openai_chat::models(models, id, CREATED) {
            Some(response) => {
                let ids = Ids::new(self.inner.config.seed, "models", 0);
                self.plan(
                    response,
                    None,
                    Incoming::plain(Some(wire), parts, Bytes::new()),
                    ids,
                )
            }
            None => {
                let id = id.unwrap_or_default();
                let error = ErrorReply::new(404)
                    .message(format!("The model '{id}' does not exist"))
                    .param("model");
                self.fixed_error(wire, error, parts, Bytes::new())
            }
        }
    }

    fn plan(
        &self,
        response: Response,
        reply: Option<&Reply>,
        incoming: Incoming,
        mut ids: Ids,
    ) -> Planned {
        let progress = Arc::new(Progress::default());
        let ticket = Ticket {
            mock: self.clone(),
            progress: progress.clone(),
        };
        self.record(incoming, response.status, progress);
        let Response {
            status,
            mut headers,
            stream,
            body,
        } = response;
        let default = Reply::default();
        let reply = reply.unwrap_or(&default);
        for (name, value) in &reply.headers {
            wires::set_header(&mut headers, name, value.clone());
        }
        let plan = faults::plan(body, stream, &reply.timing, &reply.faults, &mut ids);
        let content_length = reply.faults.content_length;
        Planned {
            status,
            headers,
            stream,
            content_length,
            plan,
            ticket,
        }
    }

    fn record(&self, incoming: Incoming, status: u16, progress: Arc<Progress>) {
        let at = self.elapsed();
        let mut state = self.state();
        let seq = state.journal.number();
        tracing::debug!(
            seq,
            status,
            at_ms = millis(at),
            path = incoming.parts.uri.path(),
            "request"
        );
        let record = Record {
            seq,
            at,
            wire: incoming.wire,
            method: incoming.parts.method,
            uri: incoming.parts.uri,
            headers: incoming.parts.headers,
            body: incoming.body,
            model: incoming.model,
            stream: incoming.stream,
            rule: incoming.rule,
            status,
            violations: Vec::<Violation>::new(),
            progress,
        };
        state.journal.push(record, self.inner.config.journal);
        drop(state);
        self.changed();
    }
}

fn rule_name(rule: &Rule, place: usize) -> String {
    if rule.name.is_empty() {
        format!("#{place}")
    } else {
        rule.name.clone()
    }
}

/// A request on its way into the journal.
struct Incoming {
    wire: Option<Wire>,
    parts: Parts,
    body: Bytes,
    model: String,
    stream: bool,
    rule: Option<RuleUse>,
}

impl Incoming {
    fn plain(wire: Option<Wire>, parts: Parts, body: Bytes) -> Self {
        Self {
            wire,
            parts,
            body,
            model: String::new(),
            stream: false,
            rule: None,
        }
    }
}
