//! The life of executions and runtimes, and what they tell the player.
//!
//! Source: seed 000, lines 120-187 and 1270-1276.

use serde_json::{Value, json};
use turnwire_spec::covel::payloads::execution::{
    ErrorOccurred, ExecutionCompleted, ExecutionStarted, RecoveryScope, RuntimeCompleted,
    RuntimeFailed, RuntimeSkipped, RuntimeStarted,
};
use turnwire_spec::covel::payloads::internals::{FunctionCompleted, FunctionExecuting};
use turnwire_spec::covel::payloads::narrative::{NarrativeCompleted, NarrativeDelta, Segment};
use turnwire_spec::covel::payloads::tools::MessageCompleted;
use turnwire_spec::covel::shape::{Always, Ms};
use turnwire_spec::covel::vocabulary::{RuntimeStatus, StopReason};

use super::{Emission, Run};
use crate::engine::model::{Message, Object};
use crate::engine::outcome::{Failure, Terminal};
use crate::engine::plugins::RuntimeSpec;

/// What a client reads in place of the error of a concealed runtime.
const CONCEALED_ERROR: &str = "The runtime failed";

pub(in crate::engine) fn execution_started(runtime_count: usize) -> Emission {
    Emission::new(&ExecutionStarted {
        runtime_count: runtime_count as u64,
        status: None,
        recovery: RecoveryScope::default(),
    })
}

pub(in crate::engine) fn execution_completed(end: &Terminal) -> Emission {
    Emission::new(&ExecutionCompleted {
        runtime_count: end.runtime_count as u64,
        result_count: end.result_count as u64,
        duration_ms: Ms(end.duration_ms),
        committed: end.committed,
        error: end.error.clone(),
        abort_reason: end.abort_reason.clone(),
        resync: end.resync.then_some(Always),
        recovery: RecoveryScope::default(),
    })
}

pub(in crate::engine) fn error_occurred(message: &str, code: Option<&str>) -> Emission {
    Emission::new(&ErrorOccurred {
        message: message.to_owned(),
        code: code.map(str::to_owned),
        details: None,
    })
}

pub(in crate::engine) fn runtime_started(run: &Run, spec: &RuntimeSpec, resumed: bool) -> Emission {
    Emission::by(
        run,
        &RuntimeStarted {
            runtime_id: run.runtime_id.to_string(),
            plugin_id: run.plugin_id.to_string(),
            kind: spec.kind.clone(),
            turn_id: run.turn_id.to_string(),
            run_id: run.run_id.to_string(),
            label: spec.label(),
            stage: spec.stage,
            resumed: resumed.then_some(Always),
            recovery: RecoveryScope::default(),
        },
    )
}

/// `status` is that of a run that ended well, or that of one that suspended.
pub(in crate::engine) fn runtime_completed(
    run: &Run,
    status: RuntimeStatus,
    duration_ms: u64,
    stop_reason: Option<StopReason>,
) -> Emission {
    Emission::by(
        run,
        &RuntimeCompleted {
            runtime_id: run.runtime_id.to_string(),
            plugin_id: run.plugin_id.to_string(),
            turn_id: run.turn_id.to_string(),
            run_id: run.run_id.to_string(),
            status,
            duration_ms: Ms(duration_ms),
            stop_reason,
            recovery: RecoveryScope::default(),
        },
    )
}

pub(in crate::engine) fn runtime_failed(
    run: &Run,
    duration_ms: u64,
    failure: &Failure,
    stop_reason: Option<StopReason>,
) -> Emission {
    Emission::by(
        run,
        &RuntimeFailed {
            runtime_id: run.runtime_id.to_string(),
            plugin_id: run.plugin_id.to_string(),
            turn_id: run.turn_id.to_string(),
            run_id: run.run_id.to_string(),
            status: RuntimeStatus::Failed,
            duration_ms: Ms(duration_ms),
            error: if run.concealed {
                CONCEALED_ERROR.to_owned()
            } else {
                failure.error.clone()
            },
            error_kind: failure.kind.map(|kind| kind.name().to_owned()),
            failure_target: failure.target.clone(),
            stop_reason,
            recovery: RecoveryScope::default(),
        },
    )
}

/// The handler of a function runtime starts.
pub(in crate::engine) fn function_executing(run: &Run) -> Emission {
    Emission::by(run, &FunctionExecuting(function_facts(run)))
}

/// The handler of a function runtime ended, with this status.
pub(in crate::engine) fn function_completed(
    run: &Run,
    duration_ms: u64,
    status: RuntimeStatus,
) -> Emission {
    let mut facts = function_facts(run);
    facts.insert("status".to_owned(), json!(status));
    facts.insert("durationMs".to_owned(), duration_ms.into());
    Emission::by(run, &FunctionCompleted(facts))
}

fn function_facts(run: &Run) -> Object {
    let ids = [
        ("runtimeId", run.runtime_id.to_string()),
        ("pluginId", run.plugin_id.to_string()),
        ("turnId", run.turn_id.to_string()),
        ("runId", run.run_id.to_string()),
    ];
    ids.into_iter()
        .map(|(name, id)| (name.to_owned(), id.into()))
        .collect()
}

/// `reason` is one of the `SKIPPED_` words of the vocabulary.
pub(in crate::engine) fn runtime_skipped(spec: &RuntimeSpec, reason: &str) -> Emission {
    Emission::of(
        &spec.plugin_id,
        &spec.id,
        &RuntimeSkipped {
            reason: reason.to_owned(),
            runtime_id: Some(spec.id.to_string()),
            plugin_id: Some(spec.plugin_id.to_string()),
            turn_id: None,
            run_id: None,
            status: Some(RuntimeStatus::Skipped.to_string()),
            duration_ms: None,
            recovery: RecoveryScope::default(),
        },
    )
}

/// A segmented story names the paragraph of the text.
pub(in crate::engine) fn narrative_delta(
    run: &Run,
    kind: &str,
    delta: &str,
    segment: Option<Segment>,
) -> Emission {
    let delta = NarrativeDelta {
        segment,
        ..delta_of(run, kind, delta)
    };
    Emission::by(run, &delta)
}

/// The text that this runtime streamed so far is void.
pub(in crate::engine) fn narrative_reset(run: &Run, kind: &str) -> Emission {
    Emission::by(
        run,
        &NarrativeDelta {
            reset: Some(Always),
            ..delta_of(run, kind, "")
        },
    )
}

fn delta_of(run: &Run, kind: &str, delta: &str) -> NarrativeDelta {
    NarrativeDelta {
        runtime_id: run.runtime_id.to_string(),
        plugin_id: run.plugin_id.to_string(),
        kind: kind.to_owned(),
        delta: delta.to_owned(),
        reset: None,
        segment: None,
    }
}

pub(in crate::engine) fn narrative_completed(run: &Run, kind: &str, message: &Message) -> Emission {
    let segments = message.segments.as_ref().and_then(Value::as_array);
    let speakers = unresolved(segments.map(Vec::as_slice).unwrap_or_default());
    Emission::by(
        run,
        &NarrativeCompleted {
            content: message.content.clone(),
            kind: kind.to_owned(),
            message_id: message.id.to_string(),
            runtime_id: run.runtime_id.to_string(),
            plugin_id: run.plugin_id.to_string(),
            segments: segments.cloned(),
            unresolved_speakers: (!speakers.is_empty()).then_some(speakers),
        },
    )
}

/// The speakers that are no character, each once, in the order in which they first speak: all of them, because the
/// plugins of this server have no characters.
fn unresolved(segments: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for segment in segments {
        let name = segment.get("speaker").and_then(Value::as_str);
        if let Some(name) = name.filter(|name| !names.iter().any(|known| known == name)) {
            names.push(name.to_owned());
        }
    }
    names
}

pub(in crate::engine) fn message_completed(run: &Run, content: &str, delta_count: u64) -> Emission {
    Emission::by(
        run,
        &MessageCompleted {
            runtime_id: run.runtime_id.to_string(),
            plugin_id: run.plugin_id.to_string(),
            content: content.to_owned(),
            len: content.chars().count() as u64,
            delta_count,
        },
    )
}
