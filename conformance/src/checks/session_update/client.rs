//! What a client sends, and what it shows after each part of a conversation.
//!
//! The reports are those of the scenarios `client-turn` and `client-reconnect`. What a client does not report is
//! not judged: `notices` and `tools` are for clients that have them.

use serde_json::Value;

use crate::{
    checks::Check,
    scenarios::session_update::client::{A, B, CALL, CANCELLED, FAILS, TASK, TEXT_OF_B, arguments},
    transcript::{
        Side, Transcript,
        views::{
            session_update::fed,
            states::{State, states},
        },
    },
    verdict::{Evidence, Findings},
};

/// The checks of this file, in catalogue order.
pub const CHECKS: &[Check] = &[
    check!("SUP-003", a_client_listens_and_does_not_poll),
    check!("SUP-023", a_finished_turn_stays_finished),
    check!("SUP-035", sequence_is_no_cursor_for_a_client),
    check!("SUP-039", the_end_of_a_task_is_shown_once),
    check!("SUP-041", events_belong_to_the_turn_that_they_name),
    check!("SUP-043", a_client_reads_no_event_records),
    check!("SUP-045", a_tool_block_opens_when_it_is_requested),
    check!("SUP-046", a_tool_is_complete_with_its_result_only),
    check!("SUP-049", the_event_type_decides_a_life),
];

/// Judges the last report under each of these labels.
fn reports(
    transcript: &Transcript,
    labels: &[&str],
    mut judge: impl FnMut(&State<'_>) -> Option<Option<(String, String)>>,
) -> Findings {
    let mut findings = Findings::none();
    let told = states(transcript)
        .into_iter()
        .filter(|report| report.last && labels.contains(&report.label));
    for report in told {
        if let Some(fault) = judge(&report) {
            findings.judge(fault.map(|(expected, got)| Evidence {
                at: Some(report.at),
                ..Evidence::new(format!("after {}: {expected}", report.label), got)
            }));
        }
    }
    findings
}

/// What is shown of a turn.
fn turn<'s>(report: &State<'s>, id: &str) -> Option<&'s Value> {
    let turns = report.state["turns"].as_array()?;
    turns.iter().find(|turn| turn["turnId"] == id)
}

/// Judges the state of a turn that has to be shown: `status` or whatever `right` accepts.
fn status(
    report: &State<'_>,
    id: &str,
    expected: &str,
    right: impl Fn(&str) -> bool,
) -> Option<(String, String)> {
    let shown = turn(report, id);
    let found = shown.and_then(|turn| turn["status"].as_str());
    if found.is_some_and(right) {
        return None;
    }
    let got = shown.map_or_else(|| report.state.to_string(), Value::to_string);
    Some((format!("turn {id} {expected}"), got))
}

/// SUP-003: besides what opens a connection, a client asks for the same thing at most once while a turn is fed.
fn a_client_listens_and_does_not_poll(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in &fed(transcript) {
        let mut seen: Vec<&str> = Vec::new();
        for request in channel.from(Side::Client) {
            let method = request.text_at("/method").unwrap_or_default();
            let reads = !matches!(
                method,
                "initialize" | "ping" | "session/prompt" | "session/cancel"
            );
            let again = reads && seen.contains(&method);
            findings.judge(again.then(|| {
                channel.evidence_at(request, "no second read on a connection", request.show())
            }));
            seen.push(method);
        }
    }
    findings
}

/// SUP-023: after task updates the turn that the task comes from is shown as finished.
fn a_finished_turn_stays_finished(transcript: &Transcript) -> Findings {
    let labels = ["task-running", "task-ended-twice", "task-ended-again"];
    reports(transcript, &labels, |report| {
        Some(status(report, A, "not running", |found| found != "running"))
    })
}

/// SUP-035: after a reconnect with low numbers everything is shown, and no request holds a number as a position.
fn sequence_is_no_cursor_for_a_client(transcript: &Transcript) -> Findings {
    let mut findings = reports(transcript, &["reconnected"], |report| {
        Some(status(report, B, "completed", |found| found == "completed"))
    });
    for channel in &fed(transcript) {
        for request in channel.from(Side::Client) {
            let params = request.pointer("/params").map(Value::to_string);
            let named = params.is_some_and(|params| params.contains("sequence"));
            findings.judge(
                named.then(|| {
                    channel.evidence_at(request, "no sequence in a request", request.show())
                }),
            );
        }
    }
    findings
}

/// SUP-039: two deliveries with one id are one notice, another id is another notice.
fn the_end_of_a_task_is_shown_once(transcript: &Transcript) -> Findings {
    let labels = ["task-ended-twice", "task-ended-again"];
    reports(transcript, &labels, |report| {
        let notices = report.state["notices"].as_array()?;
        let expected = if report.label == "task-ended-twice" {
            1
        } else {
            2
        };
        let ours = notices.iter().filter(|notice| notice["taskId"] == TASK);
        let count = ours.count();
        Some((count != expected).then(|| {
            let got = Value::from(notices.clone()).to_string();
            (format!("{expected} notice(s) of {TASK}"), got)
        }))
    })
}

/// SUP-041: events whose ids look like another turn's are shown under their own turn.
fn events_belong_to_the_turn_that_they_name(transcript: &Transcript) -> Findings {
    reports(transcript, &["odd-ids"], |report| {
        let text =
            |id: &str| turn(report, id).map_or("", |turn| turn["text"].as_str().unwrap_or(""));
        let right = text(B).contains(TEXT_OF_B) && !text(A).contains(TEXT_OF_B);
        Some((!right).then(|| {
            let expected = format!("{TEXT_OF_B:?} in turn {B} alone");
            (expected, report.state.to_string())
        }))
    })
}

/// SUP-043: a client that starts afresh shows what the subscription brings, and asks for no event.
fn a_client_reads_no_event_records(transcript: &Transcript) -> Findings {
    let mut findings = reports(transcript, &["restarted"], |report| {
        Some(status(report, A, "completed", |found| found == "completed"))
    });
    for channel in &fed(transcript) {
        for request in channel.from(Side::Client) {
            let by_id = request.pointer("/params/event_id").is_some();
            let of_events = request
                .text_at("/method")
                .is_some_and(|method| method.contains("event"));
            findings.judge((by_id || of_events).then(|| {
                channel.evidence_at(request, "no request for an event record", request.show())
            }));
        }
    }
    findings
}

fn block<'s>(report: &State<'s>) -> Option<&'s Value> {
    let tools = turn(report, A)?["tools"].as_array()?;
    tools.iter().find(|tool| tool["callId"] == CALL)
}

/// SUP-045: the block of a tool is there when it is requested, with name and arguments, and pending.
fn a_tool_block_opens_when_it_is_requested(transcript: &Transcript) -> Findings {
    reports(transcript, &["tool-requested"], |report| {
        turn(report, A)?["tools"].as_array()?;
        let right = block(report).is_some_and(|tool| {
            tool["name"] == "search"
                && tool["arguments"] == arguments()
                && tool["status"] == "pending"
        });
        Some((!right).then(|| {
            let expected = format!("a pending block of search with {}", arguments());
            (expected, report.state.to_string())
        }))
    })
}

/// SUP-046: a tool that reports 100 percent is not complete; with its result it is.
fn a_tool_is_complete_with_its_result_only(transcript: &Transcript) -> Findings {
    reports(transcript, &["tool-progress", "tool-result"], |report| {
        let complete = block(report)?["status"] == "completed";
        let expected = report.label == "tool-result";
        let what = if expected {
            "a complete tool"
        } else {
            "a tool that is not complete"
        };
        Some((complete != expected).then(|| (what.to_owned(), report.state.to_string())))
    })
}

/// SUP-049: a durable event that is not terminal leaves the turn running; the terminal event ends it, each in its way.
fn the_event_type_decides_a_life(transcript: &Transcript) -> Findings {
    let labels = [
        "tool-requested",
        "turn-ended",
        "turn-failed",
        "turn-cancelled",
    ];
    reports(transcript, &labels, |report| {
        let (turn, expected) = match report.label {
            "tool-requested" => (A, "running"),
            "turn-ended" => (A, "completed"),
            "turn-failed" => (FAILS, "failed"),
            _ => (CANCELLED, "cancelled"),
        };
        Some(status(report, turn, expected, |found| found == expected))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::text;

    #[test]
    fn a_turn_that_failed_or_was_cancelled_is_not_shown_as_completed() {
        let faults = |label: &str, turn: &str, status: &str| {
            let text = format!(
                "twire 1\nsuite: session-update\n\n>1$ {{\"ready\":true}}\nlabel {label}\n\
                 state {{\"turns\":[{{\"turnId\":\"{turn}\",\"status\":\"{status}\"}}]}}\n"
            );
            the_event_type_decides_a_life(&text::parse(&text).unwrap())
                .faults
                .len()
        };
        for (label, turn, status) in [
            ("turn-failed", FAILS, "failed"),
            ("turn-cancelled", CANCELLED, "cancelled"),
        ] {
            assert_eq!(faults(label, turn, status), 0, "{label}");
            assert_eq!(faults(label, turn, "completed"), 1, "{label}");
            assert_eq!(
                faults(label, A, status),
                1,
                "{label}: the turn is not shown"
            );
        }
    }
}
