//! Plugin RPC, approvals and suspensions.
//!
//! Source: seed 000, lines 970-1064.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::covel::limits::COMMAND_CHARS;
use crate::covel::shape::{Object, shape};
use crate::covel::vocabulary::{ApprovalScope, Decision};

/// The body of `POST /api/sessions/:id/plugin-rpc`. `kind` alone decides; members of another kind are
/// refused.
///
/// Source: seed 000, lines 982-1014; the kind `event` is public.
#[derive(Clone, Debug, Deserialize, PartialEq, schemars::JsonSchema, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[serde(deny_unknown_fields)]
pub enum PluginRpc {
    /// Runs an action of a plugin.
    Action {
        /// The plugin.
        #[schemars(length(min = 1))]
        plugin_id: String,
        /// The action.
        #[schemars(length(min = 1))]
        action: String,
        /// What it is called with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<Value>,
    },
    /// Runs a runtime of a plugin.
    Runtime {
        /// The plugin.
        #[schemars(length(min = 1))]
        plugin_id: String,
        /// The runtime.
        #[schemars(length(min = 1))]
        runtime_id: String,
        /// What it is called with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<Value>,
        /// It runs in the background, and a follower is expected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expects_background_follower: Option<bool>,
        /// The committed turn in which it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_from_turn_id: Option<String>,
    },
    /// Runs a slash command of a plugin. It has exactly one of `input` and `args`.
    #[schemars(extend("oneOf" = [{ "required": ["input"] }, { "required": ["args"] }]))]
    Command {
        /// The command.
        #[schemars(length(min = 1))]
        command_id: String,
        /// The command line.
        #[schemars(length(min = 1, max = COMMAND_CHARS))]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        /// The arguments, at most 10,000 characters as JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Object>,
    },
    /// Emits an event that the plugin declares. Public.
    Event {
        /// The plugin.
        #[schemars(length(min = 1))]
        plugin_id: String,
        /// The topic, as the plugin declares it.
        #[schemars(length(min = 1))]
        topic: String,
        /// What it tells.
        payload: Object,
    },
}

shape! {
    /// The body of `POST /api/approvals/:approvalId/decision`.
    ///
    /// Source: seed 000, lines 1052-1062.
    struct ApprovalDecision {
        /// Whether it may run.
        decision: Decision,
        /// For how long; `once` when absent.
        scope?: ApprovalScope,
    }
}

shape! {
    /// The body of `POST /api/sessions/:id/suspensions/:suspensionId/resume`. Public.
    struct Resume {
        /// The answer, in the form of the suspension's `resumeSchema`.
        data: Value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kind_alone_decides_and_members_of_another_kind_are_refused() {
        let action = json!({ "kind": "action", "pluginId": "p", "action": "a" });
        assert!(matches!(
            PluginRpc::deserialize(&action),
            Ok(PluginRpc::Action { .. })
        ));
        let mixed = json!({ "kind": "action", "pluginId": "p", "action": "a", "runtimeId": "r" });
        let error = PluginRpc::deserialize(&mixed).unwrap_err().to_string();
        assert!(error.starts_with("unknown field `runtimeId`"), "{error}");
        assert!(PluginRpc::deserialize(&json!({ "pluginId": "p", "action": "a" })).is_err());
    }
}
