//! Diagnostics of tool calls, messages and blocks.
//!
//! Source: seed 000, lines 1223-1226, 1232-1233 and 1242-1244.

use serde_json::Value;

use crate::covel::shape::{False, Ms, Object, True, payload};
use crate::covel::vocabulary::{ToolErrorCode, ToolSkipReason};

payload! {
    /// A tool is about to be called, or its call is skipped.
    "tool.calling" struct ToolCalling {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The tool.
        tool_name: String,
        /// This call of it.
        tool_call_id: String,
        /// What it is called in lists.
        label: String,
        /// What it is called with.
        arguments: Value,
        /// Where the tool comes from.
        source: Value,
        /// How the call was approved.
        approval_status: String,
        /// The call never ran.
        skipped?: True,
        /// Why it never ran.
        skip_reason?: ToolSkipReason,
        /// 0, on a skipped call.
        duration_ms?: Ms,
    }
}

payload! {
    /// The result of a tool was accepted; its proposals may still fail to commit.
    "tool.completed" struct ToolCompleted {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The tool.
        tool_name: String,
        /// This call of it.
        tool_call_id: String,
        /// What it is called in lists.
        label: String,
        /// What it gave.
        result: Value,
        /// What it gave, read as JSON.
        parsed_result: Value,
        /// How long it took.
        duration_ms: Ms,
        /// How the call was approved.
        approval_status: String,
        /// `true`.
        success: True,
    }
}

payload! {
    /// A tool call failed, or never ran.
    "tool.failed" struct ToolFailed {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The tool.
        tool_name: String,
        /// This call of it.
        tool_call_id: String,
        /// What it is called in lists.
        label: String,
        /// What went wrong.
        code: ToolErrorCode,
        /// The full message.
        error: String,
        /// How to do better.
        hint?: String,
        /// More about it.
        details?: Value,
        /// How long it took; 0 on a skipped call.
        duration_ms: Ms,
        /// How the call was approved; `auto-allowed` on a skipped call.
        approval_status: String,
        /// `false`.
        success: False,
        /// The call never ran.
        skipped?: True,
        /// Why it never ran.
        skip_reason?: ToolSkipReason,
    }
}

payload! {
    /// The saved text of a runtime.
    "message.completed" struct MessageCompleted {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The text.
        content: String,
        /// Its length.
        len: u64,
        /// How many `narrative.delta` events the runtime produced.
        delta_count: u64,
    }
}

payload! {
    /// A runtime emitted a block.
    "block.emitted" struct BlockEmitted {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The proposal.
        proposal_id: String,
        /// Where the block comes from.
        source: Value,
        /// The block.
        block: Object,
    }
}
