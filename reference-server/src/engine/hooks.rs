//! The hook pipeline: plugins look at what the engine is about to do, change it, or stop it.
//!
//! [`run`] is the whole pipeline: it calls the hooks of one event in order, hands each what the one
//! before it left, and tells what happened as [`HookReport`]s, which the caller turns into
//! `hook.fired`, `hook.rewrote` and `hook.aborted`.
//!
//! Source: seed 000, lines 40, 66-73 and 1235-1237.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::ids::{PluginId, RuntimeId, SessionId, TurnId};

/// When a hook runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HookEvent {
    /// Before the first runtime of a turn. Target: `{input, context}`; `context` is what the model
    /// is told besides its instructions. An abort vetoes the turn.
    TurnStart,
    /// Before a runtime's first start. Target: `{context}`. An abort fails the runtime.
    PreRuntime,
    /// When a runtime has really ended. Target: `{output}`. An abort fails the runtime.
    PostRuntime,
    /// Before one proposal is written. Target: the proposal. An abort drops the proposal.
    PreStateCommit,
}

impl HookEvent {
    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TurnStart => "TurnStart",
            Self::PreRuntime => "PreRuntime",
            Self::PostRuntime => "PostRuntime",
            Self::PreStateCommit => "PreStateCommit",
        }
    }

    /// What its target is.
    #[must_use]
    pub const fn target_type(self) -> &'static str {
        match self {
            Self::TurnStart => "turn",
            Self::PreRuntime | Self::PostRuntime => "runtime",
            Self::PreStateCommit => "proposal",
        }
    }
}

/// One hook of a plugin.
#[async_trait]
pub trait Hook: Send + Sync + 'static {
    /// Its name, unique within the plugin.
    fn name(&self) -> &str;

    /// When it runs.
    fn event(&self) -> HookEvent;

    /// Looks at the target and decides.
    async fn run(&self, call: HookCall<'_>) -> HookOutcome;
}

/// What a hook sees.
#[derive(Clone, Copy, Debug)]
pub struct HookCall<'a> {
    /// The session.
    pub session_id: &'a SessionId,
    /// The turn.
    pub turn_id: &'a TurnId,
    /// The runtime, when the event is about one.
    pub runtime_id: Option<&'a RuntimeId>,
    /// What the event is about, as the hooks before left it.
    pub target: &'a Value,
    /// The settings of the hook's plugin, as of the start of the execution.
    pub settings: &'a Value,
}

/// What a hook decides.
#[derive(Clone, Debug, PartialEq)]
pub enum HookOutcome {
    /// Go on unchanged.
    Continue,
    /// Go on with this target instead.
    Rewrite(Value),
    /// Stop, for this reason.
    Abort(String),
}

/// A hook with the plugin that registered it.
#[derive(Clone)]
pub struct BoundHook {
    /// The plugin.
    pub plugin_id: PluginId,
    /// The hook.
    pub hook: Arc<dyn Hook>,
}

/// The hooks of one execution, and the settings that they run with: both as of its start.
#[derive(Clone, Default)]
pub struct HookScope {
    /// The hooks, in order.
    pub hooks: Vec<BoundHook>,
    /// The settings by plugin; null for a plugin without settings.
    pub settings: BTreeMap<PluginId, Value>,
}

impl HookScope {
    /// This scope without the hooks of plugins that are not among `active`.
    ///
    /// The list only filters: a plugin that was not recorded here does not come in by it
    /// (COV-HOST-040, COV-HOST-041).
    #[must_use]
    pub fn narrowed(&self, active: &[PluginId]) -> Self {
        let hooks = self
            .hooks
            .iter()
            .filter(|bound| active.contains(&bound.plugin_id))
            .cloned()
            .collect();
        Self {
            hooks,
            settings: self.settings.clone(),
        }
    }
}

impl std::fmt::Debug for HookScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self
            .hooks
            .iter()
            .map(|bound| format!("{}/{}", bound.plugin_id, bound.hook.name()));
        f.debug_list().entries(names).finish()
    }
}

/// What one hook did.
#[derive(Clone, Debug, PartialEq)]
pub struct HookReport {
    /// The plugin that registered it.
    pub plugin_id: PluginId,
    /// Its name.
    pub hook: String,
    /// What it did.
    pub effect: HookEffect,
}

/// The effect of one hook.
#[derive(Clone, Debug, PartialEq)]
pub enum HookEffect {
    /// None.
    Fired,
    /// It changed the target.
    Rewrote {
        /// `{before, after}`.
        diff: Value,
    },
    /// It stopped what was about to happen.
    Aborted {
        /// Why.
        reason: String,
    },
}

/// What came out of the hooks of one event.
#[derive(Clone, Debug, PartialEq)]
pub struct Piped {
    /// The target as the last hook left it.
    pub target: Value,
    /// Why a hook stopped it, when one did. Later hooks did not run then.
    pub aborted: Option<String>,
    /// What each hook did, in order.
    pub reports: Vec<HookReport>,
}

/// Calls the hooks of one event of `scope`, in order.
pub async fn run(scope: &HookScope, event: HookEvent, about: HookCall<'_>) -> Piped {
    let mut piped = Piped {
        target: about.target.clone(),
        aborted: None,
        reports: Vec::new(),
    };
    for bound in scope
        .hooks
        .iter()
        .filter(|bound| bound.hook.event() == event)
    {
        let settings = scope.settings.get(&bound.plugin_id).unwrap_or(&Value::Null);
        let call = HookCall {
            target: &piped.target,
            settings,
            ..about
        };
        let effect = match bound.hook.run(call).await {
            HookOutcome::Continue => HookEffect::Fired,
            HookOutcome::Rewrite(after) => {
                let before = std::mem::replace(&mut piped.target, after);
                HookEffect::Rewrote {
                    diff: json!({ "before": before, "after": piped.target }),
                }
            }
            HookOutcome::Abort(reason) => HookEffect::Aborted { reason },
        };
        if let HookEffect::Aborted { reason } = &effect {
            piped.aborted = Some(reason.clone());
        }
        piped.reports.push(HookReport {
            plugin_id: bound.plugin_id.clone(),
            hook: bound.hook.name().to_owned(),
            effect,
        });
        if piped.aborted.is_some() {
            break;
        }
    }
    piped
}
