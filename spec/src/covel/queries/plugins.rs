//! Plugins of a session, their data, and the answers of plugin RPC and approvals.
//!
//! Source: seed 000, lines 341, 966-1064 and 1079-1081.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::covel::payloads::plugins::PluginPause;
use crate::covel::shape::{Ms, Object, True, shape};
use crate::covel::vocabulary::{ApprovalScope, Decision, RuntimeStatus};
use crate::words::words;

shape! {
    /// The answer of `GET /api/sessions/:id/plugins`.
    ///
    /// Source: seed 000, line 1079; the shape of an item is open.
    struct SessionPlugins {
        /// The active ones.
        active: Vec<Value>,
        /// The ones that could be active.
        available: Vec<Value>,
    }
}

shape! {
    /// A plugin in the session view. `paused` is the seed's, the rest is public.
    struct SnapshotPlugin {
        /// The plugin.
        id: String,
        /// What it is called in lists.
        display_name?: String,
        /// Whether it is active.
        active?: bool,
        /// When it runs.
        stage?: String,
        /// Why it is paused; only while it is.
        paused?: PluginPause,
    }
}

shape! {
    /// The answer of switching a plugin on or off. Source: seed 000, lines 967-968.
    struct PluginSwitched {
        /// `true`.
        ok: True,
        /// The plugins that are active now.
        active_plugin_ids: Vec<String>,
    }
}

shape! {
    /// A row of plugin data. Public.
    struct PluginDataRow {
        /// The namespace of the row.
        namespace?: String,
        /// The key of the row.
        key: String,
        /// Its public value.
        value: Value,
        /// When it was written: ISO 8601, UTC.
        updated_at?: String,
    }
}

shape! {
    /// The answer of writing a row. Public.
    struct PluginDataWritten {
        /// `true`.
        ok: True,
        /// The namespace of the row.
        namespace: String,
        /// The key of the row.
        key: String,
    }
}

words! {
    /// How a plugin RPC that was not refused stands.
    ///
    /// Source: seed 000, lines 1017-1019. That the member is called `status` is ours.
    "RPC status" enum RpcStatus {
        /// It is done.
        Ok = "ok",
        /// The player must approve it first.
        ApprovalRequired = "approval-required",
        /// It goes on in the background.
        Accepted = "accepted",
    }
}

/// The answer of `POST /api/sessions/:id/plugin-rpc` that is no refusal.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RpcAnswer {
    /// 202: the player must approve it first.
    ApprovalRequired(ApprovalRequired),
    /// 202: it goes on in the background.
    Accepted(RpcAccepted),
    /// 200: it ran as a runtime.
    Ran(RpcRan),
    /// 200: it is done.
    Done(RpcDone),
}

shape! {
    /// An action or a command is done.
    struct RpcDone {
        /// `ok`.
        status?: RpcStatus,
        /// What it gave.
        result?: Value,
        /// The environment of a command. Public.
        environment?: Value,
    }
}

shape! {
    /// A runtime has run. Public but for the status.
    struct RpcRan {
        /// `ok`.
        status?: RpcStatus,
        /// The turn.
        turn_id: String,
        /// What each runtime gave.
        runtime_results: Vec<RpcRuntimeResult>,
        /// How long it took.
        duration_ms?: Ms,
    }
}

shape! {
    /// What one runtime of an RPC gave. Public.
    struct RpcRuntimeResult {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id?: String,
        /// How it ended.
        status: RuntimeStatus,
        /// How long it took.
        duration_ms?: Ms,
        /// What it gave.
        output?: Value,
    }
}

shape! {
    /// A runtime goes on in the background. Source: seed 000, line 1019.
    struct RpcAccepted {
        /// `accepted`.
        status?: RpcStatus,
        /// The job.
        job_id: String,
        /// `true`. Public.
        pending?: bool,
        /// The turn.
        turn_id: String,
        /// The runtime. Public.
        runtime_id?: String,
        /// `prompt`, when a follower is expected. Public.
        phase?: String,
    }
}

shape! {
    /// A job that an event queued. Public.
    struct DeferredJob {
        /// The job.
        job_id: String,
        /// Its runtime.
        runtime_id: String,
    }
}

shape! {
    /// The player must approve a call first; also an answer of `POST /api/actions`.
    ///
    /// Source: seed 000, lines 1018 and 1028-1044; the members are public.
    struct ApprovalRequired {
        /// `approval-required`.
        status?: RpcStatus,
        /// The approval.
        approval_id: String,
        /// What is asked for.
        pending: ApprovalPending,
    }
}

shape! {
    /// A call that waits for the player's approval. Public.
    struct ApprovalPending {
        /// The approval.
        approval_id: String,
        /// The session.
        session_id?: String,
        /// The plugin.
        plugin_id: String,
        /// The action, `covel:plugin-server-code` or `runtime:<name>`.
        action: String,
        /// What it would be called with.
        payload?: Value,
        /// How far the plugin is trusted.
        trust_level?: String,
        /// When it was asked for: ISO 8601, UTC.
        requested_at?: String,
        /// What to tell the player.
        description?: String,
    }
}

shape! {
    /// The answer of a decision. Source: seed 000, line 1051.
    struct Decided {
        /// `true`.
        ok: True,
        /// What was decided.
        decision: Decision,
        /// For how long.
        scope: ApprovalScope,
        /// What was asked for.
        pending: Value,
        /// The runtimes that could not be loaded. Public.
        runtime_load_errors?: Vec<Object>,
    }
}
