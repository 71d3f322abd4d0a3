//! The built-in plugin `story`: one runtime that has a model write the next part of the story.

use std::sync::Arc;

use turnwire_spec::covel::vocabulary::Stage;

use super::plugins::{AgentSpec, Manifest, Plugin, RuntimeBody, RuntimeSpec};

/// The plugin's id, and that of its runtime.
pub const STORY: &str = "story";

/// Model calls of one run at most, before the finalizer step.
const MAX_STEPS: u32 = 8;

const INSTRUCTIONS: &str = "You tell an interactive story. Answer what the player says or does with \
the next part of the story, in prose. Use tools only for what has to be remembered or announced.";

/// The plugin.
pub struct Story {
    manifest: Manifest,
}

impl Story {
    /// The plugin with its one runtime.
    #[must_use]
    pub fn new() -> Self {
        let runtime = RuntimeSpec {
            id: STORY.into(),
            plugin_id: STORY.into(),
            kind: STORY.to_owned(),
            stage: Some(Stage::Narrative),
            required: true,
            concealed: false,
            body: RuntimeBody::Agent(AgentSpec {
                slot: STORY.to_owned(),
                instructions: INSTRUCTIONS.to_owned(),
                max_steps: MAX_STEPS,
                streams: true,
                segmented: false,
                deadline: None,
            }),
        };
        let manifest = Manifest {
            id: STORY.into(),
            name: "Story".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            runtimes: vec![Arc::new(runtime)],
            hooks: Vec::new(),
            tools: Vec::new(),
        };
        Self { manifest }
    }
}

impl Default for Story {
    fn default() -> Self {
        Self::new()
    }
}

impl Plugin for Story {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}
