//! The two classes, and that incremental events come unchanged and at once.

use std::time::Duration;

use serde_json::Value;
use turnwire_spec::session_update::event;

use crate::{
    checks::Check,
    transcript::{
        Transcript, lateness,
        views::session_update::{Asked, Played, Update, asked, played, served, updates},
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

/// SUP-002: the deltas of a scripted reply, its whole text, and the arguments and the result of a scripted tool arrive as
/// they are.
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
        for (kind, member, scripted) in [
            ("assistant_message_completed", "content", "says"),
            ("tool_requested", "arguments", "arguments"),
        ] {
            let Some(expected) = played.script.get(scripted) else {
                continue;
            };
            // Names of members are open: what is not there is not compared.
            let told = updates.iter().filter(|update| update.kind() == kind);
            for (update, got) in told.filter_map(|it| Some((it, it.event(member)?))) {
                let expected = format!("the {member} {expected}");
                let other = Some(got) != played.script.get(scripted);
                findings.judge(
                    other.then(|| update.evidence(played.channel, expected, got.to_string())),
                );
            }
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

/// SUP-014. A turn that is over has begun.
fn turn_started_is_durable(transcript: &Transcript) -> Findings {
    let findings = classed(transcript, |kind, _| kind == "turn_started");
    with_lacking(findings, transcript, "turn_started", |updates| {
        has(updates, "turn_started")
    })
}

/// SUP-015. A turn that gave an answer, and whose text came piece by piece, has its whole text too.
fn assistant_message_completed_is_durable(transcript: &Transcript) -> Findings {
    const KIND: &str = "assistant_message_completed";
    let findings = classed(transcript, |kind, _| kind == KIND);
    with_lacking(findings, transcript, KIND, |updates| {
        let is_text =
            |it: &Update<'_>| it.kind() == "assistant_delta" && !it.event_text("text").is_empty();
        let speaks = updates.iter().any(is_text) && has(updates, "turn_completed");
        !speaks || has(updates, KIND)
    })
}

/// SUP-016.
fn tool_requested_is_durable(transcript: &Transcript) -> Findings {
    classed(transcript, |kind, _| kind == "tool_requested")
}

/// SUP-017. A tool that was asked for in a turn that gave an answer has a result.
fn tool_result_is_durable(transcript: &Transcript) -> Findings {
    const KIND: &str = "tool_result";
    let findings = classed(transcript, |kind, _| kind == KIND);
    with_lacking(
        findings,
        transcript,
        "a tool_result for each tool_requested",
        |updates| {
            let call = |it: &Update<'_>| it.event_text("tool_call_id").to_owned();
            let of = |kind| updates.iter().filter(move |it| it.kind() == kind).map(call);
            let results: Vec<_> = of(KIND).collect();
            !has(updates, "turn_completed")
                || of("tool_requested").all(|call| results.contains(&call))
        },
    )
}

/// SUP-018: for each outcome of a turn, and for the end of a task. A turn whose prompt was answered has to have one.
fn terminal_states_are_durable(transcript: &Transcript) -> Findings {
    let findings = classed(transcript, |_, terminal| terminal);
    with_lacking(findings, transcript, "a terminal event", |updates| {
        updates.iter().any(Update::ends_turn)
    })
}

/// The findings, with a fault for each turn that is over and whose events are not these. Who leaves a kind of events out
/// would otherwise be judged by the others alone.
fn with_lacking(
    mut findings: Findings,
    transcript: &Transcript,
    what: &str,
    is_there: impl Fn(&[Update<'_>]) -> bool,
) -> Findings {
    let channels = served(transcript);
    for played in played(&channels, transcript)
        .iter()
        .filter(|it| is_over(it))
    {
        let updates = played.updates();
        if !is_there(&updates) {
            let expected = format!("{what} of turn {}", played.turn());
            let kinds: Vec<_> = updates.iter().map(Update::kind).collect();
            let got = format!("its events: {}", kinds.join(", "));
            let at = played.prompt.request;
            findings.judge(Some(played.channel.evidence_at(at, expected, got)));
        }
    }
    findings
}

fn has(updates: &[Update<'_>], kind: &str) -> bool {
    updates.iter().any(|update| update.kind() == kind)
}

/// Whether all events of a turn are due on its own connection: it had subscribed to the session, and something that
/// it asked after the prompt's answer was answered too.
fn is_over(played: &Played<'_>) -> bool {
    let answered = |asked: &Asked<'_>| asked.response.map(|response| response.index);
    let (prompt, Some(over)) = (played.prompt.request.index, answered(&played.prompt)) else {
        return false;
    };
    let session = played.prompt.param("session_id");
    let subscribed = asked(played.channel, "session/subscribe")
        .iter()
        .any(|it| it.param("session_id") == session && answered(it).is_some_and(|at| at < prompt));
    let later = asked(played.channel, "");
    subscribed
        && later
            .iter()
            .any(|it| it.request.index > over && answered(it).is_some())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::text;

    /// Four turns: two that give an answer, one that fails, one that is cancelled.
    const TURNS: &str = include_str!("../../../../golden/session-update/turns.twire");

    #[test]
    fn what_a_turn_lacks_that_every_turn_has_is_a_fault_of_the_server() {
        type Case = (fn(&Transcript) -> Findings, &'static str, usize);
        let cases: [Case; 6] = [
            (terminal_states_are_durable, "turn_completed", 2),
            (terminal_states_are_durable, "turn_failed", 1),
            (terminal_states_are_durable, "turn_cancelled", 1),
            (turn_started_is_durable, "turn_started", 4),
            (
                assistant_message_completed_is_durable,
                "assistant_message_completed",
                2,
            ),
            (tool_result_is_durable, "tool_result", 1),
        ];
        for (check, event, faults) in cases {
            let whole = check(&text::parse(TURNS).unwrap());
            assert!(
                whole.judged > 0 && whole.faults.is_empty(),
                "{event}: {whole:?}"
            );
            let event = format!("\"type\":\"{event}\"");
            let lines = TURNS.lines().filter(|line| !line.contains(&event));
            let text: Vec<_> = lines.collect();
            let without = check(&text::parse(&text.join("\n")).unwrap());
            assert_eq!(without.faults.len(), faults, "{event}");
        }
    }

    #[test]
    fn what_the_model_said_and_asked_for_is_told_unchanged() {
        let check = events_are_what_the_kernel_produced;
        assert!(check(&text::parse(TURNS).unwrap()).faults.is_empty());
        for (event, from, to) in [
            (
                "assistant_message_completed",
                "\"content\":\"",
                "\"content\":\"So: ",
            ),
            (
                "tool_requested",
                "\"arguments\":{",
                "\"arguments\":{\"more\":1,",
            ),
        ] {
            let event = format!("\"type\":\"{event}\"");
            let lines = TURNS.lines().map(|line| match line.contains(&event) {
                true => line.replace(from, to),
                false => line.to_owned(),
            });
            let changed = lines.collect::<Vec<_>>().join("\n");
            let findings = check(&text::parse(&changed).unwrap());
            assert!(!findings.faults.is_empty(), "{event}");
        }
    }

    #[test]
    fn nothing_is_due_of_a_turn_after_whose_answer_the_recording_ends() {
        let answer = TURNS
            .lines()
            .position(|line| line.contains("\"turn_id\":\"turn-") && line.contains("\"response\""));
        let cut = TURNS.lines().take(answer.unwrap() + 1);
        let cut: Vec<_> = cut
            .filter(|line| !line.contains("turn_completed"))
            .collect();
        let findings = terminal_states_are_durable(&text::parse(&cut.join("\n")).unwrap());
        assert!(findings.faults.is_empty(), "{findings:?}");
    }
}
