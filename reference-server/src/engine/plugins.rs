//! What a plugin brings: runtimes, hooks, tools, actions and commands.
//!
//! Plugins are Rust values that are built in; there is no loading. A [`Registry`] holds those that a
//! server has, and a session uses the ones that are active in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use turnwire_spec::covel::vocabulary::Stage;

use super::hooks::Hook;
use super::ids::{PluginId, RuntimeId};
use super::jobs::JobRun;
use super::model::Session;
use super::proposals::Proposal;
use super::tools::Tool;
use super::{Engine, EngineError};

/// A built-in plugin.
#[async_trait]
pub trait Plugin: Send + Sync + 'static {
    /// What it brings.
    fn manifest(&self) -> &Manifest;

    /// Runs one of its actions (`plugin-rpc`, kind `action`), outside any turn.
    ///
    /// # Errors
    ///
    /// [`ActionError`] when there is no such action, the payload does not fit, or the engine refuses.
    async fn action(&self, call: ActionCall<'_>) -> Result<Value, ActionError> {
        Err(ActionError::Unknown(call.action.to_owned()))
    }

    /// Whether a session in which it is active keeps a snapshot of itself after each commit.
    fn captures(&self) -> bool {
        false
    }

    /// The slash commands that it declares, in the order in which they are listed.
    fn commands(&self) -> &[CommandSpec] {
        &[]
    }

    /// Runs one of its commands (`plugin-rpc`, kind `command`), outside any turn. The arguments fit what the command
    /// declares.
    ///
    /// # Errors
    ///
    /// [`ActionError`] when the handler fails or the engine refuses.
    async fn command(&self, call: CommandCall<'_>) -> Result<Value, ActionError> {
        Err(ActionError::Unknown(call.name.to_owned()))
    }

    /// Does one of its background jobs, from the start. Dropped when the job is cancelled or the
    /// server shuts down; after an orderly shutdown the next process calls it again.
    ///
    /// # Errors
    ///
    /// What went wrong, for the log; clients read a fixed text.
    async fn job(&self, run: JobRun<'_>) -> Result<Value, String> {
        Err(format!("plugin {} does no jobs", run.job().plugin_id))
    }
}

/// What a plugin brings.
pub struct Manifest {
    /// Its id.
    pub id: PluginId,
    /// What a person calls it.
    pub name: String,
    /// Its version; setups are bound to it.
    pub version: String,
    /// Its runtimes, in the order in which they run within a stage.
    pub runtimes: Vec<Arc<RuntimeSpec>>,
    /// Its hooks, in the order in which they run within an event.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// The tools that it adds to every agent runtime of the session.
    pub tools: Vec<Arc<dyn Tool>>,
}

/// One call of an action.
pub struct ActionCall<'a> {
    /// The engine, for what the action does.
    pub engine: &'a Engine,
    /// The session as it was when the call was admitted.
    pub session: &'a Session,
    /// Which action.
    pub action: &'a str,
    /// What it was given; null when nothing.
    pub payload: Value,
}

/// A slash command as its plugin declares it.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// The command itself, without the slash; its id is `<pluginId>:<name>`.
    pub name: &'static str,
    /// What it takes, in the order in which it is typed.
    pub arguments: &'static [ArgumentSpec],
}

/// One argument of a slash command: a text without white space.
#[derive(Clone, Debug)]
pub struct ArgumentSpec {
    /// Its name.
    pub name: &'static str,
    /// Whether the command needs it.
    pub required: bool,
    /// Whether a text is one.
    pub fits: fn(&str) -> bool,
}

/// One call of a slash command.
pub struct CommandCall<'a> {
    /// The session as it was when the call was admitted.
    pub session: &'a Session,
    /// Which command, without the slash.
    pub name: &'a str,
    /// Its arguments by name, each a string.
    pub args: &'a super::model::Object,
}

/// Why an action or a command did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActionError {
    /// The plugin has no action of this name.
    #[error("unknown action {0:?}")]
    Unknown(String),
    /// The payload does not fit the action.
    #[error("invalid payload: {0}")]
    Payload(String),
    /// The plugin's own handler failed, for this reason. It goes to the log and the trace, not to the caller.
    #[error("{0}")]
    Thrown(String),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// One runtime as its plugin declares it.
pub struct RuntimeSpec {
    /// Its id.
    pub id: RuntimeId,
    /// The plugin that it belongs to.
    pub plugin_id: PluginId,
    /// The output kind: `story`, `plugin`, `system`.
    pub kind: String,
    /// When it runs; `None` for event and manual runtimes.
    pub stage: Option<Stage>,
    /// Whether the turn fails with it.
    pub required: bool,
    /// Whether what it reads and writes stays out of its diagnostics (`io.concealed`).
    pub concealed: bool,
    /// What it does.
    pub body: RuntimeBody,
}

impl RuntimeSpec {
    /// What a person reads in a list of steps: `<pluginId>/<kind>`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}/{}", self.plugin_id, self.kind)
    }
}

/// What a runtime does when it runs.
pub enum RuntimeBody {
    /// Asks a model, in a loop with tools.
    Agent(AgentSpec),
    /// Runs a function of the plugin.
    Function(Arc<dyn Function>),
}

/// How an agent runtime asks its model.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// The model role that it asks for; the gateway resolves it.
    pub slot: String,
    /// What the model is told first.
    pub instructions: String,
    /// Model calls at most, `>= 1`; the finalizer step comes on top.
    pub max_steps: u32,
    /// Whether text goes to the player while it is written.
    pub streams: bool,
    /// Whether the model writes a segmented story, of which the player reads the texts.
    pub segmented: bool,
    /// How long one run may take; no limit when absent.
    pub deadline: Option<Duration>,
}

/// The handler of a function runtime.
#[async_trait]
pub trait Function: Send + Sync + 'static {
    /// Runs once within a turn.
    ///
    /// # Errors
    ///
    /// The text of what went wrong; the runtime fails with it.
    async fn run(&self, call: FunctionCall<'_>) -> Result<FunctionOutput, String>;
}

/// What a function runtime sees.
pub struct FunctionCall<'a> {
    /// The session as of the start of the turn.
    pub session: &'a Session,
    /// What the player said; empty in a turn without player input.
    pub input: &'a str,
    /// What it suspended with, and the answer to that; absent in a run that begins.
    pub resumed: Option<Answered<'a>>,
}

/// What a run reads that goes on from a suspension.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// What it kept when it suspended.
    pub kept: &'a Value,
    /// The answer, which fits the schema that it asked for.
    pub data: &'a Value,
}

/// What a function runtime gives.
#[derive(Clone, Debug, Default)]
pub struct FunctionOutput {
    /// Its result.
    pub output: Value,
    /// What it wants to be written when the turn commits.
    pub proposals: Vec<Proposal>,
    /// Operations beside the story, each of several writes that stand or fall together: one whose
    /// writes are refused is dropped, and the turn commits all the same.
    pub operations: Vec<Vec<Proposal>>,
    /// Waits for the player instead of ending: nothing of the run is written before the answer.
    pub suspends: Option<Suspends>,
}

/// What a run waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspends {
    /// The question, for people.
    pub reason: String,
    /// JSON Schema of the answer.
    pub resume_schema: Value,
    /// What the run gets back with the answer.
    pub keeps: Value,
}

/// The plugins that a server has.
#[derive(Clone, Default)]
pub struct Registry {
    plugins: BTreeMap<PluginId, Arc<dyn Plugin>>,
}

impl Registry {
    /// No plugins.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// These and one more. A plugin of the same id is replaced.
    #[must_use]
    pub fn with(mut self, plugin: Arc<dyn Plugin>) -> Self {
        self.plugins.insert(plugin.manifest().id.clone(), plugin);
        self
    }

    /// The plugin of this id.
    #[must_use]
    pub fn plugin(&self, id: &PluginId) -> Option<&Arc<dyn Plugin>> {
        self.plugins.get(id)
    }

    /// All plugins, by id.
    pub fn plugins(&self) -> impl Iterator<Item = &Arc<dyn Plugin>> {
        self.plugins.values()
    }

    /// The active ones among these ids, in their order; unknown ids are left out.
    pub fn active<'a>(&'a self, ids: &'a [PluginId]) -> impl Iterator<Item = &'a Arc<dyn Plugin>> {
        ids.iter().filter_map(|id| self.plugins.get(id))
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.plugins.keys()).finish()
    }
}
