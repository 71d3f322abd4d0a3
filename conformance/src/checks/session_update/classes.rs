//! The two classes, and that incremental events come unchanged and at once.

use std::time::Duration;

use serde_json::Value;
use turnwire_spec::session_update::event;

use crate::{
    checks::Check,
    transcript::{
        Transcript, lateness,
        views::session_update::{played, served, updates},
    },
    verdict::Findings,
};

/// The checks of this file, in catalogue order.
pub const CHECKS: &[Check] = &[
    check!("SUP-002", events_are_what_the_kernel_produced),
    check!("SUP-010", assistant_delta_is_incremental),
    check!("SUP-011", tool_input_delta_is_incremental),
    check!("SUP-012", tool_progress_is_incremental),
    check!("SUP-013", deltas_come_while_the_model_speaks),
    check!("SUP-014", turn_started_is_durable),
    check!("SUP-015", assistant_message_completed_is_durable),
    check!("SUP-016", tool_requested_is_durable),
    check!("SUP-017", tool_result_is_durable),
    check!("SUP-018", terminal_states_are_durable),
    check!("SUP-044", a_tool_is_announced_before_it_ends),
];

/// SUP-002: the deltas of a scripted reply and the result of a scripted tool arrive one for one.
fn events_are_what_the_kernel_produced(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let mut findings = Findings::none();
    for played in played(&channels, transcript) {
        let updates = played.updates();
        if let Some(Value::Array(expected)) = played.script.get("deltas") {
            let deltas = updates
                .iter()
                .filter(|update| update.kind() == "assistant_delta");
            let got: Vec<Value> = deltas
                .map(|update| update.event("text").cloned().unwrap_or_default())
                .collect();
            findings.judge((got != *expected).then(|| {
                let expected = format!("the deltas {}", Value::from(expected.clone()));
                let at = played.prompt.request;
                played
                    .channel
                    .evidence_at(at, expected, Value::from(got).to_string())
            }));
        }
        if let Some(expected) = played.script.get("result") {
            for update in updates
                .iter()
                .filter(|update| update.kind() == "tool_result" && played.has_tool())
            {
                let got = serde_json::from_str::<Value>(update.event_text("result"));
                findings.judge((got.as_ref().ok() != Some(expected)).then(|| {
                    let expected = format!("the result {expected}");
                    update.evidence(played.channel, expected, update.event_text("result"))
                }));
            }
        }
    }
    findings
}

/// Judges the class of every event of one type. One without a class is another requirement's fault.
fn classed(transcript: &Transcript, wanted: impl Fn(&str, bool) -> bool) -> Findings {
    let mut findings = Findings::none();
    for channel in &served(transcript) {
        for update in updates(channel) {
            let found = update.text("durability");
            let terminal = update.ends_turn() || update.ends_task();
            if found.is_empty() || !wanted(update.kind(), terminal) {
                continue;
            }
            let stated = event(update.kind()).and_then(|meta| meta.class.demanded(terminal));
            let Some(stated) = stated else {
                continue;
            };
            let expected = format!("{} as durability of {}", stated.name(), update.kind());
            findings
                .judge((found != stated.name()).then(|| update.evidence(channel, expected, found)));
        }
    }
    findings
}

/// SUP-010.
fn assistant_delta_is_incremental(transcript: &Transcript) -> Findings {
    classed(transcript, |kind, _| kind == "assistant_delta")
}

/// SUP-011.
fn tool_input_delta_is_incremental(transcript: &Transcript) -> Findings {
    classed(transcript, |kind, _| kind == "tool_input_delta")
}

/// SUP-012.
fn tool_progress_is_incremental(transcript: &Transcript) -> Findings {
    classed(transcript, |kind, _| kind == "tool_progress")
}

/// SUP-014.
fn turn_started_is_durable(transcript: &Transcript) -> Findings {
    classed(transcript, |kind, _| kind == "turn_started")
}

/// SUP-015.
fn assistant_message_completed_is_durable(transcript: &Transcript) -> Findings {
    classed(transcript, |kind, _| kind == "assistant_message_completed")
}

/// SUP-016.
fn tool_requested_is_durable(transcript: &Transcript) -> Findings {
    classed(transcript, |kind, _| kind == "tool_requested")
}

/// SUP-017.
fn tool_result_is_durable(transcript: &Transcript) -> Findings {
    classed(transcript, |kind, _| kind == "tool_result")
}

/// SUP-018: for each outcome of a turn, and for the end of a task.
fn terminal_states_are_durable(transcript: &Transcript) -> Findings {
    classed(transcript, |_, terminal| terminal)
}

/// SUP-013: between the first delta and the completed message lies at least half the time in which the model spoke.
fn deltas_come_while_the_model_speaks(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let mut findings = Findings::none();
    for played in played(&channels, transcript) {
        let Some(spoke) = played.script["spokeMs"].as_u64().map(Duration::from_millis) else {
            continue;
        };
        let updates = played.updates();
        let first = updates.iter().find(|it| it.kind() == "assistant_delta");
        let last = updates
            .iter()
            .find(|it| it.kind() == "assistant_message_completed");
        let (Some(first), Some(last)) = (first, last) else {
            continue;
        };
        let (from, to) = (first.message.at, last.message.at);
        let late = lateness::between(transcript, from.saturating_sub(spoke), to);
        let between = to.saturating_sub(from) + late;
        findings.judge((between < spoke / 2).then(|| {
            let expected = format!("a delta at least {:?} before the message", spoke / 2);
            first.evidence(played.channel, expected, format!("{between:?} before"))
        }));
    }
    findings
}

/// SUP-044: `tool_requested` comes before `tool_result`, and as long before it as a scripted tool works, half of it
/// at least.
fn a_tool_is_announced_before_it_ends(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let mut findings = Findings::none();
    for played in played(&channels, transcript) {
        let works = played.script["workedMs"].as_u64();
        let works = works.filter(|_| played.has_tool()).unwrap_or_default();
        let works = Duration::from_millis(works);
        let updates = played.updates();
        for (place, result) in updates.iter().enumerate() {
            if result.kind() != "tool_result" {
                continue;
            }
            let call = result.event_text("tool_call_id");
            let requested = updates[..place]
                .iter()
                .rfind(|it| it.kind() == "tool_requested" && it.event_text("tool_call_id") == call);
            let Some(requested) = requested else {
                let expected = format!("tool_requested of {call} before its tool_result");
                findings.judge(Some(result.evidence(played.channel, expected, "none")));
                continue;
            };
            let (from, to) = (requested.message.at, result.message.at);
            let late = lateness::between(transcript, from.saturating_sub(works), to);
            let between = to.saturating_sub(from) + late;
            findings.judge((between < works / 2).then(|| {
                let expected = format!("tool_requested at least {:?} before", works / 2);
                requested.evidence(played.channel, expected, format!("{between:?} before"))
            }));
        }
    }
    findings
}
