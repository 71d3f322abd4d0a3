//! The diagnostics of tool loops: steps, model calls, tool calls.
//!
//! Source: seed 000, lines 1223-1231 and 1242.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;
use turnwire_spec::covel::payloads::models::{
    LlmCalling, LlmResponded, OfferedTool, ProviderRequest, StepCompleted, StepNote, StepRetry,
    StepStarted, StepToolCall, ToolChoice, Usage,
};
use turnwire_spec::covel::payloads::state::DomainEventPreviewed;
use turnwire_spec::covel::payloads::tools::{ToolCalling, ToolCompleted, ToolFailed};
use turnwire_spec::covel::shape::{Always, Ms};
use turnwire_spec::covel::vocabulary::{StepNoteKind, StopReason, ToolSkipReason};
use turnwire_spec::time::format_ms;

use super::{Emission, Run};
use crate::engine::model::Object;
use crate::engine::tools::ToolError;
use crate::gateway::{ChatMessage, ModelReply, SentRequest, Target, ToolRequest, ToolSpec};

/// The approval of a tool that nobody has to be asked about.
const AUTO_ALLOWED: &str = "auto-allowed";
/// Who asked for the call.
const BY_MODEL: &str = "model";

/// Which step of a tool loop.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct StepFacts {
    /// Counts from 1.
    pub(in crate::engine) step: u32,
    /// Whether it asks for the final answer.
    pub(in crate::engine) finalizer: bool,
    /// Whether it asks to repair an invalid answer.
    pub(in crate::engine) repair: bool,
}

/// How one step of a tool loop ended.
#[derive(Debug, Default)]
pub(in crate::engine) struct StepEnd {
    pub(in crate::engine) duration_ms: u64,
    /// Why the model stopped and what it cost; absent when the step ended with an error.
    pub(in crate::engine) reply: Option<(String, Usage)>,
    /// The calls that were executed, with their success.
    pub(in crate::engine) tool_calls: Vec<(String, bool)>,
    /// The model calls that were tried again, with the reason.
    pub(in crate::engine) retries: Vec<(u32, String)>,
    pub(in crate::engine) notes: Vec<StepNoteKind>,
    /// Only on the step that ended the loop.
    pub(in crate::engine) stop: Option<StopReason>,
}

pub(in crate::engine) fn step_started(
    run: &Run,
    step: StepFacts,
    max_steps: u32,
    tool_count: usize,
) -> Emission {
    Emission::by(
        run,
        &StepStarted {
            runtime_id: run.runtime_id.to_string(),
            plugin_id: run.plugin_id.to_string(),
            turn_id: run.turn_id.to_string(),
            run_id: run.run_id.to_string(),
            step: step.step.into(),
            max_steps: max_steps.into(),
            tool_count: tool_count as u64,
            tool_choice: ToolChoice::Auto,
            finalizer: step.finalizer.then_some(Always),
            repair: step.repair.then_some(Always),
        },
    )
}

pub(in crate::engine) fn step_completed(run: &Run, step: StepFacts, end: &StepEnd) -> Emission {
    let call = |(name, success): &(String, bool)| StepToolCall {
        name: name.clone(),
        success: *success,
    };
    let retry = |(attempt, why): &(u32, String)| StepRetry {
        attempt: (*attempt).into(),
        reason: why.clone(),
    };
    let note = |kind: &StepNoteKind| StepNote {
        kind: *kind,
        count: None,
        ignored: None,
    };
    Emission::by(
        run,
        &StepCompleted {
            runtime_id: run.runtime_id.to_string(),
            plugin_id: run.plugin_id.to_string(),
            turn_id: run.turn_id.to_string(),
            run_id: run.run_id.to_string(),
            step: step.step.into(),
            duration_ms: Ms(end.duration_ms),
            finish_reason: end.reply.as_ref().map(|(finish, _)| finish.clone()),
            usage: end.reply.as_ref().map(|(_, usage)| usage.clone()),
            tool_calls: end.tool_calls.iter().map(call).collect(),
            retries: end.retries.iter().map(retry).collect(),
            notes: end.notes.iter().map(note).collect(),
            stop_reason: end.stop,
            finalizer: step.finalizer.then_some(Always),
            repair: step.repair.then_some(Always),
        },
    )
}

/// One model call as its trace tells it.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct LlmCall<'a> {
    pub(in crate::engine) slot: &'a str,
    pub(in crate::engine) target: &'a Target,
    pub(in crate::engine) messages: &'a [ChatMessage],
    pub(in crate::engine) tools: &'a [ToolSpec],
    /// Counts from 1.
    pub(in crate::engine) attempt: u32,
    /// When the call started.
    pub(in crate::engine) started_at: Timestamp,
    /// The same on the clock that requests are timed by.
    pub(in crate::engine) started: Instant,
    pub(in crate::engine) streaming: bool,
    /// The requests that were sent to the provider; nothing when nobody observed them.
    pub(in crate::engine) sent: &'a [SentRequest],
}

pub(in crate::engine) fn llm_calling(run: &Run, call: LlmCall<'_>) -> Emission {
    let offered = |tool: &ToolSpec| OfferedTool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        json_schema: tool.json_schema.clone(),
    };
    Emission::by(
        run,
        &LlmCalling {
            runtime_id: run.runtime_id.to_string(),
            plugin_id: run.plugin_id.to_string(),
            slot: call.slot.to_owned(),
            model: call.target.model.clone().unwrap_or_default(),
            provider: Some(call.target.provider.clone()),
            messages: call
                .messages
                .iter()
                .map(|message| json!(message.logical()))
                .collect(),
            tools: call.tools.iter().map(offered).collect(),
            attempt: call.attempt.into(),
            started_at: format_ms(call.started_at.as_millisecond()),
            queue_wait_ms: None,
            streaming: Some(call.streaming),
            response_format: None,
            defaults: None,
            max_output_tokens: None,
            provider_requests: (!call.sent.is_empty()).then(|| provider_requests(&call)),
        },
    )
}

/// What was sent, in order. A body that an earlier item has is told by the place of that item.
fn provider_requests(call: &LlmCall<'_>) -> Vec<ProviderRequest> {
    let item = |(at, sent): (usize, &SentRequest)| {
        let earlier = call.sent[..at]
            .iter()
            .position(|other| other.body == sent.body);
        let (body, complete) = sent.recorded();
        let after = sent.begun.saturating_duration_since(call.started);
        let begun = call
            .started_at
            .as_millisecond()
            .saturating_add_unsigned(millis(after));
        ProviderRequest {
            schema_version: if earlier.is_none() { 1 } else { 2 },
            provider: sent.target.provider.clone(),
            protocol: sent.wire.as_str().to_owned(),
            body: earlier.is_none().then_some(body),
            body_ref: earlier.map(|place| place as u64),
            complete,
            omitted_field_count: 0,
            started_at: format_ms(begun),
            duration_ms: Ms(millis(sent.took.unwrap_or_default())),
            transport_attempt: sent.transport_attempt.into(),
            status_code: sent.status.map(u64::from),
            failed: sent.failed().then_some(true),
        }
    };
    call.sent.iter().enumerate().map(item).collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(in crate::engine) fn llm_responded(
    run: &Run,
    attempt: u32,
    duration_ms: u64,
    reply: &ModelReply,
) -> Emission {
    let present = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let calls = reply
        .tool_calls
        .iter()
        .map(|call| json!(call))
        .collect::<Vec<_>>();
    Emission::by(
        run,
        &LlmResponded {
            text: present(&reply.text),
            reasoning_content: present(&reply.reasoning),
            tool_calls: (!calls.is_empty()).then_some(calls),
            usage: reply.usage.counted(),
            finish_reason: reply.finish.name().to_owned(),
            ..no_reply(run, attempt, duration_ms)
        },
    )
}

pub(in crate::engine) fn llm_failed(
    run: &Run,
    attempt: u32,
    duration_ms: u64,
    error: &str,
) -> Emission {
    Emission::by(
        run,
        &LlmResponded {
            finish_reason: "error".to_owned(),
            error: Some(error.to_owned()),
            ..no_reply(run, attempt, duration_ms)
        },
    )
}

fn no_reply(run: &Run, attempt: u32, duration_ms: u64) -> LlmResponded {
    LlmResponded {
        runtime_id: run.runtime_id.to_string(),
        plugin_id: run.plugin_id.to_string(),
        text: None,
        reasoning_content: None,
        tool_calls: None,
        usage: Usage::default(),
        finish_reason: String::new(),
        duration_ms: Ms(duration_ms),
        attempt: attempt.into(),
        error: None,
    }
}

pub(in crate::engine) fn tool_calling(
    run: &Run,
    call: &ToolRequest,
    arguments: &Value,
) -> Emission {
    Emission::by(run, &calling(run, call, arguments))
}

fn calling(run: &Run, call: &ToolRequest, arguments: &Value) -> ToolCalling {
    ToolCalling {
        runtime_id: run.runtime_id.to_string(),
        plugin_id: run.plugin_id.to_string(),
        tool_name: call.name.clone(),
        tool_call_id: call.id.clone(),
        label: call.name.clone(),
        arguments: arguments.clone(),
        source: BY_MODEL.into(),
        approval_status: AUTO_ALLOWED.to_owned(),
        skipped: None,
        skip_reason: None,
        duration_ms: None,
    }
}

pub(in crate::engine) fn tool_completed(
    run: &Run,
    call: &ToolRequest,
    output: &Value,
    duration_ms: u64,
) -> Emission {
    Emission::by(
        run,
        &ToolCompleted {
            runtime_id: run.runtime_id.to_string(),
            plugin_id: run.plugin_id.to_string(),
            tool_name: call.name.clone(),
            tool_call_id: call.id.clone(),
            label: call.name.clone(),
            result: output.to_string().into(),
            parsed_result: output.clone(),
            duration_ms: Ms(duration_ms),
            approval_status: AUTO_ALLOWED.to_owned(),
            success: Always,
        },
    )
}

pub(in crate::engine) fn tool_failed(
    run: &Run,
    call: &ToolRequest,
    error: &ToolError,
    duration_ms: u64,
) -> Emission {
    Emission::by(run, &failed(run, call, error, duration_ms))
}

fn failed(run: &Run, call: &ToolRequest, error: &ToolError, duration_ms: u64) -> ToolFailed {
    ToolFailed {
        runtime_id: run.runtime_id.to_string(),
        plugin_id: run.plugin_id.to_string(),
        tool_name: call.name.clone(),
        tool_call_id: call.id.clone(),
        label: call.name.clone(),
        code: error.code,
        error: error.message.clone(),
        hint: error.hint.clone(),
        details: None,
        duration_ms: Ms(duration_ms),
        approval_status: AUTO_ALLOWED.to_owned(),
        success: Always,
        skipped: None,
        skip_reason: None,
    }
}

/// The pair of events of a call that never ran, because the turn was stopped before it.
pub(in crate::engine) fn tool_skipped(
    run: &Run,
    call: &ToolRequest,
    arguments: &Value,
    error: &ToolError,
) -> [Emission; 2] {
    let (skipped, skip_reason) = (Some(Always), Some(ToolSkipReason::Aborted));
    let duration_ms = Some(Ms(0));
    let calling = ToolCalling {
        skipped,
        skip_reason,
        duration_ms,
        ..calling(run, call, arguments)
    };
    let failed = ToolFailed {
        skipped,
        skip_reason,
        ..failed(run, call, error, 0)
    };
    [Emission::by(run, &calling), Emission::by(run, &failed)]
}

pub(in crate::engine) fn domain_event_previewed(
    run: &Run,
    tool_call_id: &str,
    topic: &str,
    data: &Object,
) -> Emission {
    Emission::by(
        run,
        &DomainEventPreviewed {
            runtime_id: run.runtime_id.to_string(),
            plugin_id: run.plugin_id.to_string(),
            tool_call_id: tool_call_id.to_owned(),
            topic: topic.to_owned(),
            data: data.clone(),
        },
    )
}
