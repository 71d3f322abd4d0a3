//! Diagnostics of model calls and of the steps of tool loops.
//!
//! Source: seed 000, lines 1227-1231 and 1280-1304.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::covel::shape::{Ms, Object, True, payload, shape, text_or_null, unpinned};
use crate::covel::vocabulary::{StepNoteKind, StopReason};

payload! {
    /// A model is being called.
    "llm.calling" struct LlmCalling {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The role that the runtime asks for.
        slot: String,
        /// The model.
        model: String,
        /// The provider; null when no name is known.
        #[schemars(schema_with = "text_or_null")]
        provider?: String,
        /// The logical messages.
        messages: Vec<Value>,
        /// The tools that are offered.
        tools: Vec<OfferedTool>,
        /// The number of the attempt.
        attempt: u64,
        /// When the request to the provider began: ISO 8601, UTC.
        started_at: String,
        /// How long it waited for a free place; absent is not 0.
        queue_wait_ms?: Ms,
        /// Whether the answer is streamed.
        streaming?: bool,
        /// The structured output that is asked for.
        response_format?: Value,
        /// The generation settings.
        defaults?: Value,
        /// The greatest number of output tokens.
        max_output_tokens?: u64,
        /// The requests that were really sent.
        provider_requests?: Vec<ProviderRequest>,
    }
}

shape! {
    /// A tool as it is offered to a model. Source: seed 000, line 1294.
    struct OfferedTool {
        /// Its name.
        name: String,
        /// What it does.
        description: String,
        /// What arguments it takes.
        json_schema: Value,
    }
}

shape! {
    /// A request that was really sent to a provider.
    ///
    /// In version 1 it has a `body`; in version 2 a `bodyRef` to an earlier item of the same array
    /// that has the same body. Source: seed 000, lines 1283-1292.
    #[schemars(extend("oneOf" = [
        { "properties": { "schemaVersion": { "const": 1 } }, "required": ["body"] },
        { "properties": { "schemaVersion": { "const": 2 } }, "required": ["bodyRef"] },
    ]))]
    struct ProviderRequest {
        /// 1 or 2.
        schema_version: u64,
        /// The provider.
        provider: String,
        /// The wire.
        protocol: String,
        /// The JSON that was sent.
        body?: Value,
        /// The index of the earlier item that has the body.
        body_ref?: u64,
        /// Whether the body is whole.
        complete: bool,
        /// How many further settings are left out.
        omitted_field_count: u64,
        /// When it began: ISO 8601, UTC.
        started_at: String,
        /// How long it took until the response began.
        duration_ms: Ms,
        /// The number of the HTTP attempt, from 0.
        transport_attempt: u64,
        /// The HTTP status.
        status_code?: u64,
        /// Whether it failed.
        failed?: bool,
    }
}

payload! {
    /// A model call ended.
    "llm.responded" struct LlmResponded {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The text.
        text?: String,
        /// The thinking that may be shown.
        reasoning_content?: String,
        /// The tools that the model calls.
        tool_calls?: Vec<Value>,
        /// What it cost.
        usage: Usage,
        /// Why the model stopped.
        finish_reason: String,
        /// How long it took.
        duration_ms: Ms,
        /// The number of the attempt.
        attempt: u64,
        /// Why it failed.
        error?: String,
    }
}

shape! {
    /// The tokens of a model call.
    ///
    /// Source: seed 000, line 1228.
    #[derive(Default)]
    struct Usage {
        /// All input, cache reads and writes included.
        input_tokens: u64,
        /// All output.
        output_tokens: u64,
        /// The part of the input that was read from a cache.
        cached_input_tokens?: u64,
        /// The part of the input that was written to a cache.
        cache_write_input_tokens?: u64,
    }
}

payload! {
    /// A step of a tool loop is about to call the model.
    "step.started" struct StepStarted {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The turn.
        turn_id: String,
        /// This run of the runtime.
        run_id: String,
        /// The number of the step.
        step: u64,
        /// The greatest number of steps, at this step.
        max_steps: u64,
        /// How many tools are offered.
        tool_count: u64,
        /// Whether the model must call one.
        tool_choice: ToolChoice,
        /// It asks for the final answer, without tools.
        finalizer?: True,
        /// It repairs an output.
        repair?: True,
    }
}

/// Whether a model must call a tool.
#[derive(Clone, Debug, Deserialize, PartialEq, schemars::JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// It must call one.
    Required,
    /// It must call this one.
    #[serde(untagged)]
    Named {
        /// The tool.
        name: String,
    },
}

payload! {
    /// A step of a tool loop ended. Sent once for each step that started.
    "step.completed" struct StepCompleted {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The turn.
        turn_id: String,
        /// This run of the runtime.
        run_id: String,
        /// The number of the step.
        step: u64,
        /// How long it took.
        duration_ms: Ms,
        /// Why the model stopped.
        finish_reason?: String,
        /// What it cost; absent when the step ended with an error.
        usage?: Usage,
        /// The tools that were called, by name.
        tool_calls: Vec<StepToolCall>,
        /// The retries of the model call.
        retries: Vec<StepRetry>,
        /// What else happened.
        notes: Vec<StepNote>,
        /// How the loop ended; on the step that ended it.
        stop_reason?: StopReason,
        /// It asked for the final answer, without tools.
        finalizer?: True,
        /// It repaired an output.
        repair?: True,
    }
}

shape! {
    /// A tool call of a step.
    struct StepToolCall {
        /// The tool.
        name: String,
        /// Whether it went well.
        success: bool,
    }
}

shape! {
    /// A retry of a step's model call.
    struct StepRetry {
        /// The number of the attempt.
        attempt: u64,
        /// Why.
        reason: String,
    }
}

shape! {
    /// A note about a step; never a tool's name.
    struct StepNote {
        /// What happened.
        kind: StepNoteKind,
        /// How often.
        count?: u64,
        /// How much of it was ignored. The seed names the member only.
        ignored?: Value,
    }
}

unpinned! {
    /// A plugin calls a provider through the gateway.
    "gateway.calling" struct GatewayCalling;
    /// A plugin's provider call failed; may carry usage.
    "gateway.failed" struct GatewayFailed;
}

payload! {
    /// A plugin's provider call succeeded.
    "gateway.responded" struct GatewayResponded {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The gateway's method.
        method: String,
        /// Why the model stopped; text and object calls have it.
        finish_reason?: String,
        /// What it cost.
        usage?: Object,
        /// The thinking that may be shown.
        reasoning_content?: String,
        /// The model that answered, after fallback.
        model?: String,
        /// Its provider.
        provider?: String,
        /// How long it took.
        duration_ms: Ms,
    }
}
