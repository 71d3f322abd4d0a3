//! Plugin data and assets.
//!
//! Source: seed 000, lines 300-326 and 477-496.

use serde_json::Value;

use crate::covel::shape::{Object, payload, shape};
use crate::covel::vocabulary::DataOperation;

payload! {
    /// Persisted data of a plugin changed. There are no other members.
    ///
    /// Source: seed 000, lines 303-315.
    #[serde(deny_unknown_fields)]
    "plugin-data.changed" struct PluginDataChanged {
        /// The plugin.
        plugin_id: String,
        /// Each row that changed.
        changes: Vec<DataChange>,
    }
}

shape! {
    /// A change of one row.
    #[schemars(extend(
        "if" = { "properties": { "operation": { "const": "delete" } } },
        "then" = { "properties": { "value": { "const": null } } },
    ))]
    struct DataChange {
        /// The namespace of the row.
        namespace: String,
        /// The key of the row.
        key: String,
        /// The whole public value; null when the row is gone.
        value: Value,
        /// What happened.
        operation: DataOperation,
    }
}

payload! {
    /// How far the generation of an asset is.
    ///
    /// Source: seed 000, lines 487-494.
    "asset.progress" struct AssetProgress {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The turn.
        turn_id: String,
        /// The asset.
        asset_id?: String,
        /// What is being done.
        phase: String,
        /// How far, from 0 to 100.
        #[schemars(range(min = 0, max = 100))]
        percent?: f64,
        /// What kind of asset.
        modality?: String,
        /// What to tell the player.
        message?: String,
        /// More about it.
        meta?: Object,
    }
}

payload! {
    /// An asset is complete and committed.
    "asset.generated" struct AssetGenerated {
        /// The committed proposal.
        proposal_id: String,
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The asset.
        asset: Asset,
    }
}

shape! {
    /// A committed asset. The seed names its type only; these members come from what it is made of.
    ///
    /// Source: seed 000, lines 481-485.
    struct Asset {
        /// A reference into the media store.
        r#ref: Value,
        /// What kind of asset: image, audio, video, file or another.
        modality: String,
        /// More about it.
        meta?: Object,
    }
}
