//! Diagnostics of the hook pipeline.
//!
//! Source: seed 000, lines 1235-1237.

use serde_json::Value;

use crate::covel::shape::payload;

payload! {
    /// A hook ran.
    "hook.fired" struct HookFired {
        /// What the hook was asked about.
        event: String,
        /// The hook.
        hook_name: String,
        /// The plugin that registered it.
        plugin_id: String,
        /// The runtime that it was asked about.
        runtime_id?: String,
        /// The thing that it was asked about.
        target_id?: String,
        /// The type of that thing.
        target_type: String,
        /// The type of the proposal.
        proposal_type?: String,
    }
}

payload! {
    /// A hook aborted what it was asked about.
    "hook.aborted" struct HookAborted {
        /// What the hook was asked about.
        event: String,
        /// The hook.
        hook_name: String,
        /// The plugin that registered it.
        plugin_id: String,
        /// The runtime that it was asked about.
        runtime_id?: String,
        /// The thing that it was asked about.
        target_id?: String,
        /// Why.
        reason: String,
        /// The type of the proposal.
        proposal_type?: String,
    }
}

payload! {
    /// A hook rewrote what it was asked about.
    "hook.rewrote" struct HookRewrote {
        /// What the hook was asked about.
        event: String,
        /// The hook.
        hook_name: String,
        /// The plugin that registered it.
        plugin_id: String,
        /// The runtime that it was asked about.
        runtime_id?: String,
        /// The thing that it was asked about.
        target_id?: String,
        /// What changed.
        diff?: Value,
        /// The type of the proposal.
        proposal_type?: String,
    }
}
