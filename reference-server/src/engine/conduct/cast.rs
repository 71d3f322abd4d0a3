//! Who takes part in a turn: the runtimes, tools and hooks of the active plugins.

use std::sync::Arc;

use turnwire_spec::covel::vocabulary::Stage;

use super::Conduct;
use crate::engine::Engine;
use crate::engine::hooks::{BoundHook, HookScope};
use crate::engine::model::{Session, SetupState};
use crate::engine::plugins::RuntimeSpec;
use crate::engine::tools::{self, Tool};

impl Conduct {
    /// The runtimes of one turn, by stage: the pending setups, or the main loop.
    pub(super) fn runtimes(&self, session: &Session, setup: bool) -> Vec<Arc<RuntimeSpec>> {
        let active = self.engine.inner.registry.active(&session.active_plugins);
        let mut runtimes: Vec<_> = active
            .flat_map(|plugin| plugin.manifest().runtimes.iter())
            .filter(|runtime| match runtime.stage {
                None => false,
                Some(Stage::Setup) => setup && is_pending(session, runtime),
                Some(_) => !setup,
            })
            .cloned()
            .collect();
        runtimes.sort_by_key(|runtime| runtime.stage);
        runtimes
    }
}

impl Engine {
    /// The tools of agent runtimes: the built-in ones, and those of the active plugins.
    pub(in crate::engine) fn tools_of(&self, session: &Session) -> Vec<Arc<dyn Tool>> {
        let mut tools = tools::built_in();
        let active = self.inner.registry.active(&session.active_plugins);
        tools.extend(
            active
                .flat_map(|plugin| plugin.manifest().tools.iter())
                .cloned(),
        );
        tools
    }

    /// The hooks of the active plugins.
    pub(in crate::engine) fn hooks_of(&self, session: &Session) -> HookScope {
        let active = self.inner.registry.active(&session.active_plugins);
        let bound = active.flat_map(|plugin| {
            let manifest = plugin.manifest();
            manifest.hooks.iter().map(|hook| BoundHook {
                plugin_id: manifest.id.clone(),
                hook: Arc::clone(hook),
            })
        });
        HookScope {
            hooks: bound.collect(),
            ..HookScope::default()
        }
    }
}

fn is_pending(session: &Session, runtime: &RuntimeSpec) -> bool {
    session
        .setup_runtimes
        .get(&runtime.id)
        .is_some_and(|setup| setup.state == SetupState::Pending)
}
