//! The payloads of the events that the engine sends, one small function each.
//!
//! Pure translation: facts in, payload out. Which topic an event has and which stream it reaches is
//! in [`turnwire_spec::covel::EVENTS`]; when it is sent is decided by the callers.
//!
//! Source: seed 000, lines 120-187, 313-326, 349-399, 628-633, 771-780 and 1215-1257.

use serde_json::{Value, json};

use super::hooks::{HookEffect, HookEvent, HookReport};
use super::ids::{MessageId, PluginId, RunId, RuntimeId, TurnId};
use super::model::{Job, JobState, Object, Source};
use super::outcome::{Failure, StepNote, StopReason, Terminal};
use super::plugins::{RuntimeSpec, Stage};
use super::proposals::{PendingProposal, Proposal};
use super::tools::ToolError;
use crate::gateway::{ChatMessage, ModelReply, Target, ToolRequest, ToolSpec, Usage};

/// What the approval of a built-in tool's call is: nobody is asked.
const AUTO_ALLOWED: &str = "auto-allowed";

/// One event before it has a time and a place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Emission {
    /// The name of a row of [`turnwire_spec::covel::EVENTS`].
    pub kind: &'static str,
    /// The runtime that causes it.
    pub source: Option<Source>,
    /// What there is to know.
    pub payload: Object,
}

impl Emission {
    fn new(kind: &'static str, payload: Value) -> Self {
        let payload = match payload {
            Value::Object(payload) => payload,
            other => Object::from_iter([("value".to_owned(), other)]),
        };
        Self {
            kind,
            source: None,
            payload,
        }
    }

    fn of(kind: &'static str, run: &Run, payload: Value) -> Self {
        let source = Source {
            plugin_id: run.plugin_id.clone(),
            runtime_id: run.runtime_id.clone(),
        };
        Self {
            source: Some(source),
            ..Self::new(kind, payload)
        }
    }

    /// Adds a member when there is a value for it.
    fn with<T: Into<Value>>(mut self, name: &str, value: Option<T>) -> Self {
        if let Some(value) = value {
            self.payload.insert(name.to_owned(), value.into());
        }
        self
    }

    /// Adds `name: true` when it holds; such members are never false.
    fn flag(self, name: &str, holds: bool) -> Self {
        self.with(name, holds.then_some(true))
    }
}

/// Which run of which runtime an event is about.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The runtime.
    pub runtime_id: RuntimeId,
    /// Its plugin.
    pub plugin_id: PluginId,
    /// The turn.
    pub turn_id: TurnId,
    /// The run.
    pub run_id: RunId,
}

pub(super) fn execution_started(runtime_count: usize) -> Emission {
    Emission::new(
        "execution.started",
        json!({ "runtimeCount": runtime_count }),
    )
}

pub(super) fn execution_completed(end: &Terminal) -> Emission {
    let payload = json!({
        "runtimeCount": end.runtime_count,
        "resultCount": end.result_count,
        "durationMs": end.duration_ms,
        "committed": end.committed,
    });
    Emission::new("execution.completed", payload)
        .with("error", end.error.clone())
        .with("abortReason", end.abort_reason.clone())
        .flag("resync", end.resync)
}

pub(super) fn error_occurred(message: &str, code: Option<&str>) -> Emission {
    Emission::new("error.occurred", json!({ "message": message })).with("code", code)
}

pub(super) fn runtime_started(run: &Run, spec: &RuntimeSpec) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "kind": spec.kind,
        "turnId": run.turn_id,
        "runId": run.run_id,
        "label": spec.label(),
    });
    Emission::of("runtime.started", run, payload).with("stage", spec.stage.map(Stage::name))
}

pub(super) fn runtime_completed(run: &Run, duration_ms: u64, stop: Option<StopReason>) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "turnId": run.turn_id,
        "runId": run.run_id,
        "status": "success",
        "durationMs": duration_ms,
    });
    Emission::of("runtime.completed", run, payload).with("stopReason", stop.map(StopReason::name))
}

pub(super) fn runtime_failed(
    run: &Run,
    duration_ms: u64,
    failure: &Failure,
    stop: Option<StopReason>,
) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "turnId": run.turn_id,
        "runId": run.run_id,
        "status": "failed",
        "durationMs": duration_ms,
        "error": failure.error,
    });
    let target = failure.target.as_ref().map(|target| json!(target));
    Emission::of("runtime.failed", run, payload)
        .with("errorKind", failure.kind.map(|kind| kind.name()))
        .with("failureTarget", target)
        .with("stopReason", stop.map(StopReason::name))
}

pub(super) fn runtime_skipped(spec: &RuntimeSpec, reason: &str) -> Emission {
    let payload = json!({
        "runtimeId": spec.id,
        "pluginId": spec.plugin_id,
        "status": "skipped",
        "reason": reason,
    });
    let source = Source {
        plugin_id: spec.plugin_id.clone(),
        runtime_id: spec.id.clone(),
    };
    Emission {
        source: Some(source),
        ..Emission::new("runtime.skipped", payload)
    }
}

pub(super) fn narrative_delta(run: &Run, kind: &str, delta: &str) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "kind": kind,
        "delta": delta,
    });
    Emission::of("narrative.delta", run, payload)
}

/// The text that this runtime streamed so far is void.
pub(super) fn narrative_reset(run: &Run, kind: &str) -> Emission {
    narrative_delta(run, kind, "").flag("reset", true)
}

pub(super) fn narrative_completed(
    run: &Run,
    kind: &str,
    content: &str,
    message_id: &MessageId,
) -> Emission {
    let payload = json!({
        "content": content,
        "kind": kind,
        "messageId": message_id,
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
    });
    Emission::of("narrative.completed", run, payload)
}

pub(super) fn message_completed(run: &Run, content: &str, delta_count: u64) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "content": content,
        "len": content.chars().count(),
        "deltaCount": delta_count,
    });
    Emission::of("message.completed", run, payload)
}

/// One step of a tool loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepFacts {
    /// Counts from 1.
    pub(super) step: u32,
    /// Whether it asks for the final answer.
    pub(super) finalizer: bool,
    /// Whether it asks to repair an invalid answer.
    pub(super) repair: bool,
}

pub(super) fn step_started(
    run: &Run,
    step: StepFacts,
    max_steps: u32,
    tool_count: usize,
) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "turnId": run.turn_id,
        "runId": run.run_id,
        "step": step.step,
        "maxSteps": max_steps,
        "toolCount": tool_count,
        "toolChoice": "auto",
    });
    Emission::of("step.started", run, payload)
        .flag("finalizer", step.finalizer)
        .flag("repair", step.repair)
}

/// How one step of a tool loop ended.
#[derive(Debug, Default)]
pub(super) struct StepEnd {
    pub(super) duration_ms: u64,
    /// Absent when the step ended with an error.
    pub(super) reply: Option<(String, Usage)>,
    /// The calls that were executed, with their success.
    pub(super) tool_calls: Vec<(String, bool)>,
    /// The model calls that were tried again, with the reason.
    pub(super) retries: Vec<(u32, String)>,
    pub(super) notes: Vec<StepNote>,
    /// Only on the step that ended the loop.
    pub(super) stop: Option<StopReason>,
}

pub(super) fn step_completed(run: &Run, step: StepFacts, end: &StepEnd) -> Emission {
    let calls = end
        .tool_calls
        .iter()
        .map(|(name, success)| json!({ "name": name, "success": success }));
    let retries = end
        .retries
        .iter()
        .map(|(attempt, why)| json!({ "attempt": attempt, "reason": why }));
    let notes = end.notes.iter().map(|note| json!({ "kind": note.name() }));
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "turnId": run.turn_id,
        "runId": run.run_id,
        "step": step.step,
        "durationMs": end.duration_ms,
        "toolCalls": calls.collect::<Vec<_>>(),
        "retries": retries.collect::<Vec<_>>(),
        "notes": notes.collect::<Vec<_>>(),
    });
    Emission::of("step.completed", run, payload)
        .with(
            "finishReason",
            end.reply.as_ref().map(|(finish, _)| finish.clone()),
        )
        .with(
            "usage",
            end.reply.as_ref().map(|(_, usage)| usage.to_json()),
        )
        .with("stopReason", end.stop.map(StopReason::name))
        .flag("finalizer", step.finalizer)
        .flag("repair", step.repair)
}

/// One model call as its trace tells it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LlmCall<'a> {
    pub(super) slot: &'a str,
    pub(super) target: &'a Target,
    pub(super) messages: &'a [ChatMessage],
    pub(super) tools: &'a [ToolSpec],
    /// Counts from 1.
    pub(super) attempt: u32,
    /// When the request to the provider starts.
    pub(super) started_at: &'a str,
    pub(super) streaming: bool,
}

pub(super) fn llm_calling(run: &Run, call: LlmCall<'_>) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "slot": call.slot,
        "model": call.target.model.as_deref().unwrap_or_default(),
        "provider": call.target.provider,
        "messages": call.messages,
        "tools": call.tools,
        "attempt": call.attempt,
        "startedAt": call.started_at,
        "streaming": call.streaming,
    });
    Emission::of("llm.calling", run, payload)
}

pub(super) fn llm_responded(
    run: &Run,
    attempt: u32,
    duration_ms: u64,
    reply: &ModelReply,
) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "usage": reply.usage.to_json(),
        "finishReason": reply.finish.name(),
        "durationMs": duration_ms,
        "attempt": attempt,
    });
    let calls = (!reply.tool_calls.is_empty()).then(|| json!(reply.tool_calls));
    Emission::of("llm.responded", run, payload)
        .with("text", (!reply.text.is_empty()).then(|| reply.text.clone()))
        .with(
            "reasoningContent",
            (!reply.reasoning.is_empty()).then(|| reply.reasoning.clone()),
        )
        .with("toolCalls", calls)
}

pub(super) fn llm_failed(run: &Run, attempt: u32, duration_ms: u64, error: &str) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "usage": Usage::default().to_json(),
        "finishReason": "error",
        "durationMs": duration_ms,
        "attempt": attempt,
        "error": error,
    });
    Emission::of("llm.responded", run, payload)
}

pub(super) fn tool_calling(run: &Run, call: &ToolRequest, arguments: &Value) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "toolName": call.name,
        "toolCallId": call.id,
        "label": call.name,
        "arguments": arguments,
        "source": "model",
        "approvalStatus": AUTO_ALLOWED,
    });
    Emission::of("tool.calling", run, payload)
}

pub(super) fn tool_completed(
    run: &Run,
    call: &ToolRequest,
    output: &Value,
    duration_ms: u64,
) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "toolName": call.name,
        "toolCallId": call.id,
        "label": call.name,
        "result": output.to_string(),
        "parsedResult": output,
        "durationMs": duration_ms,
        "approvalStatus": AUTO_ALLOWED,
        "success": true,
    });
    Emission::of("tool.completed", run, payload)
}

pub(super) fn tool_failed(
    run: &Run,
    call: &ToolRequest,
    error: &ToolError,
    duration_ms: u64,
) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "toolName": call.name,
        "toolCallId": call.id,
        "label": call.name,
        "code": error.code.name(),
        "error": error.message,
        "durationMs": duration_ms,
        "approvalStatus": AUTO_ALLOWED,
        "success": false,
    });
    Emission::of("tool.failed", run, payload).with("hint", error.hint.clone())
}

/// The pair of events of a call that never ran.
///
/// Source: seed 000, line 1242.
pub(super) fn tool_skipped(
    run: &Run,
    call: &ToolRequest,
    arguments: &Value,
    error: &ToolError,
) -> [Emission; 2] {
    let skip = |event: Emission| {
        event
            .with("skipped", Some(true))
            .with("skipReason", Some("aborted"))
            .with("durationMs", Some(0))
    };
    [
        skip(tool_calling(run, call, arguments)),
        skip(tool_failed(run, call, error, 0)),
    ]
}

pub(super) fn domain_event_previewed(
    run: &Run,
    tool_call_id: &str,
    topic: &str,
    data: &Object,
) -> Emission {
    let payload = json!({
        "runtimeId": run.runtime_id,
        "pluginId": run.plugin_id,
        "toolCallId": tool_call_id,
        "topic": topic,
        "data": data,
    });
    Emission::of("domain-event.previewed", run, payload)
}

/// What one hook did: `hook.fired`, then what came of it.
pub(super) fn hook(
    event: HookEvent,
    runtime: Option<&RuntimeId>,
    proposal: Option<&PendingProposal>,
    report: &HookReport,
) -> Vec<Emission> {
    let about = |kind: &'static str, mut members: Object| {
        members.insert("event".into(), event.name().into());
        members.insert("hookName".into(), report.hook.clone().into());
        members.insert("pluginId".into(), report.plugin_id.clone().into());
        Emission::new(kind, Value::Object(members))
            .with("runtimeId", runtime.cloned())
            .with("targetId", proposal.map(|proposal| proposal.id.clone()))
            .with(
                "proposalType",
                proposal.map(|proposal| proposal.proposal.kind()),
            )
    };
    let member = |name: &str, value: Value| Object::from_iter([(name.to_owned(), value)]);
    let fired = about(
        "hook.fired",
        member("targetType", event.target_type().into()),
    );
    match &report.effect {
        HookEffect::Fired => vec![fired],
        HookEffect::Rewrote { diff } => {
            vec![fired, about("hook.rewrote", member("diff", diff.clone()))]
        }
        HookEffect::Aborted { reason } => {
            vec![
                fired,
                about("hook.aborted", member("reason", reason.clone().into())),
            ]
        }
    }
}

pub(super) fn proposal_failed(pending: &PendingProposal, error: &str) -> Emission {
    let payload = json!({
        "proposalId": pending.id,
        "proposalType": pending.proposal.kind(),
        "runtimeId": pending.runtime_id,
        "pluginId": pending.plugin_id,
        "error": error,
    });
    Emission::new("proposal.failed", payload)
}

pub(super) fn event_emitted(plugin: &PluginId, topic: &str, data: &Object) -> Emission {
    let payload = json!({ "topic": topic, "data": data, "pluginId": plugin });
    Emission::new("event.emitted", payload)
}

/// One change of plugin data.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) namespace: String,
    pub(super) key: String,
    /// `None` when the row was removed.
    pub(super) value: Option<Value>,
}

pub(super) fn plugin_data_changed(plugin: &PluginId, changes: &[Change]) -> Emission {
    let changes = changes.iter().map(|change| {
        json!({
            "namespace": change.namespace,
            "key": change.key,
            "value": change.value,
            "operation": if change.value.is_some() { "set" } else { "delete" },
        })
    });
    let payload = json!({ "pluginId": plugin, "changes": changes.collect::<Vec<_>>() });
    Emission::new("plugin-data.changed", payload)
}

/// The events that a commit of these proposals announces, in order; changes of one plugin's data
/// that stand together are one event.
pub(super) fn of_proposals<'a>(
    proposals: impl IntoIterator<Item = &'a PendingProposal>,
) -> Vec<Emission> {
    let mut events = Vec::new();
    let mut changed: Option<(PluginId, Vec<Change>)> = None;
    let flush = |changed: &mut Option<(PluginId, Vec<Change>)>, events: &mut Vec<Emission>| {
        if let Some((plugin, changes)) = changed.take() {
            events.push(plugin_data_changed(&plugin, &changes));
        }
    };
    for pending in proposals {
        match &pending.proposal {
            Proposal::Event {
                plugin_id,
                topic,
                data,
            } => {
                flush(&mut changed, &mut events);
                events.push(event_emitted(plugin_id, topic, data));
            }
            Proposal::Datum {
                plugin_id,
                namespace,
                key,
                value,
            } => {
                if changed
                    .as_ref()
                    .is_some_and(|(plugin, _)| plugin != plugin_id)
                {
                    flush(&mut changed, &mut events);
                }
                let change = Change {
                    namespace: namespace.clone(),
                    key: key.clone(),
                    value: Some(value.clone()),
                };
                changed
                    .get_or_insert_with(|| (plugin_id.clone(), Vec::new()))
                    .1
                    .push(change);
            }
        }
    }
    flush(&mut changed, &mut events);
    events
}

pub(super) fn commit_fanout_failed(errors: &[String], total: usize) -> Emission {
    let payload = json!({ "failedCount": errors.len(), "totalCount": total, "errors": errors });
    Emission::new("commit.fanout.failed", payload)
}

/// The latest state of a job. `reported` is whether its worker reports progress.
pub(super) fn job_status_updated(job: &Job, created_at: &str) -> Emission {
    let payload = json!({
        "sessionId": job.session_id,
        "progressScopeId": job.id,
        "pluginId": job.plugin_id,
        "runtimeId": job.runtime_id,
        "jobId": job.id,
        "state": public_state(job),
        "sequence": job.sequence,
        "createdAt": created_at,
    });
    let mut data = Object::new();
    data.insert("durableStatus".into(), job.state.name().into());
    if let Some(turn) = &job.source_turn_id {
        data.insert("originTurnId".into(), turn.clone().into());
    }
    if let Some(error) = &job.error {
        data.insert("error".into(), error.clone().into());
    }
    let source = Source {
        plugin_id: job.plugin_id.clone(),
        runtime_id: job.runtime_id.clone(),
    };
    let event = Emission {
        source: Some(source),
        ..Emission::new("job-status.updated", payload)
    };
    event
        .with("progress", job.progress)
        .with("message", job.message.clone())
        .with("data", Some(Value::Object(data)))
}

/// The state that clients see: a running job that has reported is in progress.
fn public_state(job: &Job) -> &'static str {
    match job.state {
        JobState::Queued => "queued",
        JobState::Running if job.progress.is_some() => "progress",
        JobState::Running => "running",
        JobState::Succeeded => "succeeded",
        JobState::Failed | JobState::Orphaned => "failed",
        JobState::Cancelled => "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use turnwire_spec::covel::event;

    use super::*;

    fn datum(plugin: &str, key: &str) -> PendingProposal {
        PendingProposal {
            id: format!("p-{key}"),
            plugin_id: plugin.into(),
            runtime_id: "story".into(),
            proposal: Proposal::Datum {
                plugin_id: plugin.into(),
                namespace: "n".into(),
                key: key.into(),
                value: json!(1),
            },
        }
    }

    fn emitted(topic: &str) -> PendingProposal {
        PendingProposal {
            id: "p".into(),
            plugin_id: "story".into(),
            runtime_id: "story".into(),
            proposal: Proposal::Event {
                plugin_id: "story".into(),
                topic: topic.into(),
                data: Object::new(),
            },
        }
    }

    #[test]
    fn changes_of_one_plugin_that_stand_together_are_one_event() {
        let proposals = [
            datum("a", "1"),
            datum("a", "2"),
            datum("b", "3"),
            emitted("bell"),
            datum("b", "4"),
        ];

        let events = of_proposals(&proposals);

        let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
        let data = "plugin-data.changed";
        assert_eq!(kinds, [data, data, "event.emitted", data]);
        assert_eq!(events[0].payload["changes"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_removed_row_is_told_with_a_null_value() {
        let change = Change {
            namespace: "n".into(),
            key: "k".into(),
            value: None,
        };

        let event = plugin_data_changed(&"codex".into(), &[change]);

        let expected =
            json!([{ "namespace": "n", "key": "k", "value": null, "operation": "delete" }]);
        assert_eq!(event.payload["changes"], expected);
    }

    #[test]
    fn a_hook_that_aborts_is_told_by_two_events() {
        let report = HookReport {
            plugin_id: "guard".into(),
            hook: "veto".into(),
            effect: HookEffect::Aborted {
                reason: "no".into(),
            },
        };

        let events = hook(HookEvent::TurnStart, None, None, &report);

        assert_eq!(events[0].kind, "hook.fired");
        assert_eq!(events[0].payload["targetType"], "turn");
        assert_eq!(events[1].kind, "hook.aborted");
        assert_eq!(events[1].payload["reason"], "no");
    }

    #[test]
    fn a_flag_that_does_not_hold_is_absent() {
        let run = Run {
            runtime_id: "story".into(),
            plugin_id: "story".into(),
            turn_id: "t".into(),
            run_id: "r".into(),
        };

        assert!(
            !narrative_delta(&run, "story", "x")
                .payload
                .contains_key("reset")
        );
        assert_eq!(narrative_reset(&run, "story").payload["reset"], true);
    }

    #[test]
    fn every_event_of_the_engine_has_a_row_in_the_table() {
        let source = include_str!("events.rs");
        let named = source
            .split("Emission::new(\"")
            .chain(source.split("Emission::of(\""))
            .skip(1);
        let mut count = 0;
        for rest in named {
            let name = rest.split('"').next().unwrap();
            if name.contains('.') && name.len() < 40 {
                assert!(event(name).is_some(), "{name}");
                count += 1;
            }
        }
        assert!(count > 20, "{count}");
    }
}
