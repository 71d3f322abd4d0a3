//! Diagnostics of sub-agents.
//!
//! Source: seed 000, lines 1306-1320.

use crate::covel::shape::{Ms, payload};
use crate::covel::vocabulary::StopReason;
use crate::words::words;

words! {
    /// Who cancelled a sub-agent. Source: seed 000, line 1314.
    "canceller" enum SubagentCancelledBy {
        /// The caller's execution.
        Parent = "parent",
        /// The player.
        Player = "player",
    }
}

words! {
    /// How the kernel attributes a sub-agent's fault. Source: seed 000, line 1314.
    "fault" enum SubagentFault {
        /// The sub-agent failed by itself.
        Runtime = "runtime",
        /// The sub-agent used up its own time.
        Timeout = "timeout",
    }
}

payload! {
    /// A sub-agent was found and starts.
    "subagent.started" struct SubagentStarted {
        /// The run; also the `runId` of its steps.
        subagent_call_id: String,
        /// The tool call or run that started it.
        parent_call_id: String,
        /// The runtime that started it.
        parent_runtime_id: String,
        /// The plugin of that runtime.
        parent_plugin_id: String,
        /// The sub-agent's runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The turn.
        turn_id: String,
    }
}

payload! {
    /// A sub-agent ended.
    "subagent.completed" struct SubagentCompleted {
        /// The run.
        #[serde(flatten)]
        run: SubagentStarted,
        /// How its tool loop ended.
        stop_reason: StopReason,
        /// How long it took.
        duration_ms: Ms,
        /// The sum over its steps.
        usage?: super::models::Usage,
    }
}

payload! {
    /// A sub-agent failed or was refused. A call that was refused before a provider was found has
    /// neither `runtimeId` nor `pluginId`.
    "subagent.failed" struct SubagentFailed {
        /// The run.
        subagent_call_id: String,
        /// The tool call or run that started it.
        parent_call_id: String,
        /// The runtime that started it.
        parent_runtime_id: String,
        /// The plugin of that runtime.
        parent_plugin_id: String,
        /// The turn.
        turn_id: String,
        /// What went wrong.
        code: String,
        /// Fixed text.
        error: String,
        /// How long it took.
        duration_ms: Ms,
        /// The sub-agent's runtime.
        runtime_id?: String,
        /// Its plugin.
        plugin_id?: String,
        /// How its tool loop ended.
        stop_reason?: StopReason,
        /// Who cancelled it.
        cancelled_by?: SubagentCancelledBy,
        /// How the kernel attributes the fault.
        fault?: SubagentFault,
    }
}

payload! {
    /// Writes of a sub-agent were dropped. Should never appear.
    "subagent.writes-dropped" struct SubagentWritesDropped {
        /// The run.
        #[serde(flatten)]
        run: SubagentStarted,
        /// How many.
        count: u64,
    }
}
