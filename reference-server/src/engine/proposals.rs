//! What runtimes want to be written: proposals, which count only once their turn commits.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::{PluginId, RuntimeId};
use super::model::Object;
use super::tools::check_datum;

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
    /// A question to the player: a form, a choice or a confirmation.
    #[serde(rename = "interaction.request")]
    Ask {
        /// `{id, type, data, meta}`.
        block: Object,
    },
    /// A block that a runtime has drawn.
    #[serde(rename = "ui.render")]
    Render {
        /// The block; it has an `id`.
        block: Object,
        /// Where the block comes from.
        source: Value,
        /// How it is drawn.
        render: Value,
    },
    /// One character, new or changed.
    #[serde(rename = "character.upsert")]
    Character {
        /// The character; it has an `id`.
        character: Object,
    },
    /// The definition of the fields of characters.
    #[serde(rename = "character.schema.set")]
    CharacterSchema {
        /// The definition.
        schema: Object,
    },
}

impl Proposal {
    /// Why it cannot be written as it is, whoever made it.
    ///
    /// # Errors
    ///
    /// The reason: plugin data that [`check_datum`] refuses, or a block or character without an id.
    pub fn check(&self) -> Result<(), String> {
        let named = |what: &str, object: &Object| match object.get("id") {
            Some(Value::String(id)) if !id.is_empty() => Ok(()),
            _ => Err(format!("{what} has no id")),
        };
        match self {
            Self::Datum {
                namespace, value, ..
            } => check_datum(namespace, value),
            Self::Ask { block } | Self::Render { block, .. } => named("the block", block),
            Self::Character { character } => named("the character", character),
            Self::Event { .. } | Self::CharacterSchema { .. } => Ok(()),
        }
    }

    /// Its type, as `proposalType` names it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Event { .. } => "event.emit",
            Self::Datum { .. } => "plugin-data.set",
            Self::Ask { .. } => "interaction.request",
            Self::Render { .. } => "ui.render",
            Self::Character { .. } => "character.upsert",
            Self::CharacterSchema { .. } => "character.schema.set",
        }
    }
}

/// A proposal with its id and the runtime that made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
