//! Faults and pauses of plugins.
//!
//! Source: seed 000, lines 326-343.

use crate::covel::shape::{payload, shape};
use crate::covel::vocabulary::{FaultClearedBy, FaultReason};

payload! {
    /// A plugin's own fault was counted. For the trace only.
    "plugin.fault.counted" struct PluginFaultCounted {
        /// The session.
        session_id: String,
        /// The plugin.
        plugin_id: String,
        /// Why.
        reason: FaultReason,
        /// How many in a row.
        consecutive_faults: u64,
    }
}

payload! {
    /// A plugin is paused.
    "plugin.fault.latched" struct PluginFaultLatched {
        /// The session.
        session_id: String,
        /// The plugin.
        plugin_id: String,
        /// Why.
        reason: FaultReason,
    }
}

payload! {
    /// A plugin is no longer paused.
    "plugin.fault.cleared" struct PluginFaultCleared {
        /// The session.
        session_id: String,
        /// The plugin.
        plugin_id: String,
        /// What ended the pause.
        by: FaultClearedBy,
    }
}

shape! {
    /// The pause of a plugin in lists and views; absent while it runs.
    ///
    /// Source: seed 000, line 341.
    struct PluginPause {
        /// Why.
        reason: FaultReason,
    }
}
