//! What runtimes want to be written: proposals, which count only once their turn commits.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::{PluginId, RuntimeId};
use super::model::Object;

/// One wish of a runtime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Proposal {
    /// A business event of the game.
    #[serde(rename = "event.emit")]
    Event {
        /// The plugin that emits it.
        plugin_id: PluginId,
        /// Its topic, in the game's words.
        topic: String,
        /// What it says.
        data: Object,
    },
    /// One row of plugin data.
    #[serde(rename = "plugin-data.set")]
    Datum {
        /// The plugin that owns it.
        plugin_id: PluginId,
        /// Its namespace.
        namespace: String,
        /// The key.
        key: String,
        /// The value.
        value: Value,
    },
}

impl Proposal {
    /// Its type, as `proposalType` names it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Event { .. } => "event.emit",
            Self::Datum { .. } => "plugin-data.set",
        }
    }
}

/// A proposal with its id and the runtime that made it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingProposal {
    /// Its id.
    pub id: String,
    /// The plugin of the runtime.
    pub plugin_id: PluginId,
    /// The runtime.
    pub runtime_id: RuntimeId,
    /// What it wants.
    pub proposal: Proposal,
}
