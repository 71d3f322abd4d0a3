//! Diagnostics that are written to the trace only: functions, fetches, context, commit, commands and
//! services.
//!
//! Source: seed 000, lines 619, 630, 778, 817-823, 1238-1248 and 1395-1399.

use serde_json::Value;

use crate::covel::shape::{Ms, Object, True, payload, shape, unpinned};
use crate::covel::vocabulary::{CommandSource, ServiceErrorCode};

unpinned! {
    /// The handler of a function runtime starts.
    "function.executing" struct FunctionExecuting;
    /// The handler of a function runtime ended.
    "function.completed" struct FunctionCompleted;
    /// A runtime calls a child runtime.
    "recursive.calling" struct RecursiveCalling;
    /// A child runtime ended.
    "recursive.completed" struct RecursiveCompleted;
    /// A child runtime failed, or was dropped (`code: "nested-suspension-dropped"`).
    "recursive.failed" struct RecursiveFailed;
}

shape! {
    /// What may be told about an HTTP call of a plugin's own wire: never a URL, a query or a key.
    ///
    /// There are no other members. Source: seed 000, line 820; the ids and the mark of a sub-agent or
    /// of hidden content are those of lines 833 and 1318.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    struct FetchFacts {
        /// The host.
        host?: String,
        /// The method.
        method?: String,
        /// The HTTP status.
        status?: u64,
        /// How long it took.
        duration_ms?: Ms,
        /// The runtime.
        runtime_id?: String,
        /// Its plugin.
        plugin_id?: String,
        /// The run of the sub-agent.
        subagent_call_id?: String,
        /// The call that started the sub-agent.
        parent_call_id?: String,
        /// The runtime that started the sub-agent.
        parent_runtime_id?: String,
        /// The runtime hides its content.
        concealed?: True,
    }
}

/// Declares an event whose payload is [`FetchFacts`].
macro_rules! fetch_events {
    ($($(#[$meta:meta])* $event:literal struct $name:ident;)+) => {
        $(
            $(#[$meta])*
            #[derive(
                Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize,
                schemars::JsonSchema,
            )]
            #[serde(transparent)]
            pub struct $name(pub FetchFacts);

            impl super::EventPayload for $name {
                const EVENT: &'static str = $event;
            }
        )+
    };
}

fetch_events! {
    /// A plugin's own wire calls a provider.
    "utils.fetch.calling" struct UtilsFetchCalling;
    /// A plugin's own wire was answered.
    "utils.fetch.responded" struct UtilsFetchResponded;
    /// A plugin's own wire failed.
    "utils.fetch.failed" struct UtilsFetchFailed;
}

payload! {
    /// Messages were left out of a prompt. The last four counts belong to requests of a tool loop.
    ///
    /// Source: seed 000, line 821.
    "context.pruned" struct ContextPruned {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// How many messages.
        pruned_message_count: u64,
        /// How many tool results were cut.
        truncated_tool_result_count?: u64,
        /// How many summaries were cut.
        truncated_summary_count?: u64,
        /// How many tool results were left out, in all.
        elided_tool_result_count?: u64,
        /// How many steps were collapsed, in all.
        collapsed_step_count?: u64,
    }
}

payload! {
    /// The history could not be compacted.
    "context.compaction.failed" struct ContextCompactionFailed {
        /// The plugin.
        plugin_id: String,
        /// Its extension.
        extension_id: String,
        /// Why.
        reason: String,
        /// How many times in a row.
        consecutive_failures: u64,
    }
}

payload! {
    /// A summary of the history was saved. A row of the stored trace.
    "context.compacted" struct ContextCompacted {
        /// The summary.
        summary_id: String,
        /// All summaries.
        summary_ids: Vec<String>,
        /// How many messages it stands for.
        messages_compacted: u64,
        /// How many tokens it saves.
        token_savings: i64,
        /// What it is about.
        focus_sections: Value,
        /// How many summaries went into it.
        summaries_merged: u64,
        /// Its tokens.
        summary_tokens: u64,
        /// The tokens of all summaries.
        total_summary_tokens: u64,
        /// Whether it was cut.
        summary_truncated: bool,
    }
}

payload! {
    /// Events of a committed turn could not be published.
    ///
    /// Source: seed 000, line 778.
    "commit.fanout.failed" struct CommitFanoutFailed {
        /// How many failed.
        failed_count: u64,
        /// How many there were.
        total_count: u64,
        /// Why.
        errors: Vec<Value>,
    }
}

payload! {
    /// A plugin command was invoked.
    "command.invoked" struct CommandInvoked {
        /// The invocation; also the trace and the turn of its events.
        invocation_id: String,
        /// The command.
        command_id: String,
        /// Its name.
        command: String,
        /// The plugin.
        plugin_id: String,
        /// The action that it runs.
        action: String,
        /// Where it was entered.
        source: CommandSource,
        /// The command line in its one form.
        canonical: String,
        /// The command line as entered.
        raw: String,
        /// Its words.
        argv: Vec<Value>,
        /// Its arguments.
        args: Object,
    }
}

payload! {
    /// A plugin command ended.
    "command.completed" struct CommandCompleted {
        /// The command.
        #[serde(flatten)]
        command: CommandInvoked,
        /// How long it took.
        duration_ms: Ms,
        /// What its result says of itself.
        result_ok?: bool,
    }
}

payload! {
    /// A plugin command failed.
    "command.failed" struct CommandFailed {
        /// The command.
        #[serde(flatten)]
        command: CommandInvoked,
        /// How long it took.
        duration_ms: Ms,
        /// Why.
        error: String,
    }
}

payload! {
    /// One plugin called a service of another. Neither input nor output is told.
    ///
    /// Source: seed 000, lines 1395-1399.
    "plugin.service.completed" struct PluginServiceCompleted {
        /// The call.
        call_id: String,
        /// The call that it is part of.
        parent_call_id?: String,
        /// The session.
        session_id: String,
        /// The turn.
        turn_id?: String,
        /// The runtime.
        runtime_id?: String,
        /// The tool call that made it.
        tool_call_id?: String,
        /// The plugin that called.
        caller_plugin_id: String,
        /// The plugin that served.
        provider_plugin_id: String,
        /// The service.
        name: String,
        /// Its contract.
        contract: String,
        /// How long it took, without the writing of traces.
        duration_ms: Ms,
        /// How it ended.
        outcome: String,
        /// Why it failed.
        error_code?: ServiceErrorCode,
        /// The extension that was called.
        extension?: ExtensionCall,
    }
}

shape! {
    /// An extension of a plugin, as the host registers it.
    struct ExtensionCall {
        /// Where it extends.
        point: String,
        /// Which extension.
        id: String,
        /// Its slot.
        slot?: String,
    }
}
