//! The one wrapper of every event.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    checks::Check,
    transcript::{
        End, Side, Transcript,
        views::{
            messages::{Channel, Content},
            session_update::{Update, played, served, updates},
        },
    },
    verdict::{Evidence, Findings},
};

/// The checks of this file, in catalogue order.
pub const CHECKS: &[Check] = &[
    check!("SUP-001", events_travel_in_one_wrapper),
    check!("SUP-004", updates_have_a_sequence),
    check!("SUP-005", updates_have_a_durability),
    check!("SUP-006", updates_name_their_session),
    check!("SUP-007", updates_name_their_turn),
    check!("SUP-033", sequence_rises_in_send_order),
    check!("SUP-036", events_have_an_id_of_their_own),
    check!("SUP-040", an_event_id_is_no_other_id),
];

/// Judges every event of every connection.
fn each(
    transcript: &Transcript,
    judge: impl Fn(&Channel<'_>, &Update<'_>) -> Option<Evidence>,
) -> Findings {
    let mut findings = Findings::none();
    for channel in &served(transcript) {
        for update in updates(channel) {
            findings.judge(judge(channel, &update));
        }
    }
    findings
}

/// SUP-001: whatever the server sends besides responses is a `session/update` with an event in it. A line without JSON is
/// none; a blank one is nothing, and one that broke off with its connection says nothing.
fn events_travel_in_one_wrapper(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in &served(transcript) {
        let last = channel.from(Side::Server).last().map(|last| last.index);
        let is_whole = matches!(channel.end, Some((_, End::Complete)) | None);
        for message in channel.from(Side::Server) {
            let Content::Line(bytes) = &message.content else {
                continue;
            };
            let says = message.json.is_none() && !bytes.iter().all(u8::is_ascii_whitespace);
            if says && (is_whole || Some(message.index) != last) {
                let expected = "JSON: an event with method session/update, or a response";
                findings.judge(Some(channel.evidence_at(message, expected, message.show())));
            }
        }
    }
    let wrapped = wrapped(transcript);
    findings.judged += wrapped.judged;
    findings.faults.extend(wrapped.faults);
    findings
}

/// Judges what has JSON.
fn wrapped(transcript: &Transcript) -> Findings {
    each(transcript, |channel, update| {
        let wrapped = update.text("kind") == "event"
            && update.text("method") == "session/update"
            && update.member("event").is_some_and(Value::is_object);
        let expected = "an event with method session/update";
        (!wrapped).then(|| update.evidence(channel, expected, update.message.show()))
    })
}

/// SUP-004: `sequence` is there, and a number.
fn updates_have_a_sequence(transcript: &Transcript) -> Findings {
    each(transcript, |channel, update| {
        let found = update.member("sequence");
        let got = found.map_or_else(|| "none".to_owned(), Value::to_string);
        (!found.is_some_and(Value::is_number))
            .then(|| update.evidence(channel, "a number as sequence", got))
    })
}

/// SUP-005: `durability` is there, and one of two words.
fn updates_have_a_durability(transcript: &Transcript) -> Findings {
    each(transcript, |channel, update| {
        let classed = matches!(update.text("durability"), "durable" | "incremental");
        let got = update.member("durability");
        let got = got.map_or_else(|| "none".to_owned(), Value::to_string);
        let expected = "durable or incremental as durability";
        (!classed).then(|| update.evidence(channel, expected, got))
    })
}

/// SUP-006: `session_id` is the session in which the turn of the event ran, or that the event itself names.
fn updates_name_their_session(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let ran: BTreeMap<&str, &str> = played(&channels, transcript)
        .iter()
        .map(|played| (played.turn(), played.prompt.param("session_id")))
        .collect();
    each(transcript, |channel, update| {
        let turn = match update.text("turn_id") {
            "" => update.origin(),
            turn => turn,
        };
        let expected = ran.get(turn).copied();
        let named = update.text("session_id");
        let right = update.member("session_id").is_some_and(Value::is_string)
            && expected.is_none_or(|session| session == named);
        let expected = expected.unwrap_or("a session");
        (!right).then(|| update.evidence(channel, format!("session_id {expected}"), named))
    })
}

/// SUP-007: `turn_id` is there; the end of a turn names one that has begun, or that a prompt was answered with.
///
/// What is about a task has an empty one (SUP-019).
fn updates_name_their_turn(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let all: Vec<_> = channels.iter().flat_map(|it| updates(it)).collect();
    let begun = all.iter().filter(|update| update.kind() == "turn_started");
    let mut known: Vec<&str> = begun.map(|update| update.text("turn_id")).collect();
    known.extend(
        played(&channels, transcript)
            .iter()
            .map(|played| played.turn()),
    );
    each(transcript, |channel, update| {
        let found = update.member("turn_id").and_then(Value::as_str);
        let about_task = update.kind().starts_with("task");
        let unfinished = !update.ends_turn();
        let right = match found {
            None => false,
            Some("") => about_task,
            Some(turn) => about_task || unfinished || known.contains(&turn),
        };
        let got = found.unwrap_or("none");
        (!right).then(|| update.evidence(channel, "turn_id of the turn that runs", got))
    })
}

/// SUP-033: on one connection each number is greater than the one before. Events without one are left out.
fn sequence_rises_in_send_order(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in &served(transcript) {
        let mut last: Option<f64> = None;
        for update in updates(channel) {
            let Some(number) = update.sequence() else {
                continue;
            };
            if let Some(last) = last {
                let expected = || format!("a sequence above {last}");
                findings.judge(
                    (number <= last)
                        .then(|| update.evidence(channel, expected(), number.to_string())),
                );
            }
            last = Some(number);
        }
    }
    findings
}

/// SUP-036: every event has an id, and two events with one id are the same event.
fn events_have_an_id_of_their_own(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let mut first: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut findings = Findings::none();
    for channel in &channels {
        for update in updates(channel) {
            let Some(event) = update.member("event") else {
                continue;
            };
            let id = update.id();
            let fault = if id.is_empty() {
                Some(("an event_id", "none".to_owned()))
            } else {
                let other = *first.entry(id).or_insert(event);
                (what(other) != what(event)).then(|| {
                    (
                        "an event_id that no other event has",
                        format!("{id}: {other}"),
                    )
                })
            };
            findings.judge(fault.map(|(expected, got)| update.evidence(channel, expected, got)));
        }
    }
    findings
}

/// What makes two deliveries the same event: its type, and the turn, tool or task that it is about.
fn what(event: &Value) -> (&Value, &Value, &Value, &Value, &Value) {
    static NOTHING: Value = Value::Null;
    let member = |name: &str| event.get(name).unwrap_or(&NOTHING);
    let task = |name: &str| event.pointer(name).unwrap_or(&NOTHING);
    (
        member("type"),
        member("turn_id"),
        member("tool_call_id"),
        task("/task/task_id"),
        task("/task/status"),
    )
}

/// SUP-040: an event's id is not that of its session or turn, and does not stand in their place.
fn an_event_id_is_no_other_id(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in &served(transcript) {
        for update in updates(channel) {
            let (id, session, turn) = (
                update.id(),
                update.text("session_id"),
                update.text("turn_id"),
            );
            if id.is_empty() || session.is_empty() {
                continue;
            }
            let taken = id == session || id == turn || id == update.origin();
            findings.judge(taken.then(|| {
                update.evidence(channel, "an event_id that is no session or turn id", id)
            }));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::text;

    fn faults(lines: &str) -> usize {
        let hello = "{\"kind\":\"request\",\"request_id\":1,\"method\":\"initialize\"}";
        let text = format!("twire 1\nsuite: session-update\n\n>1$ {hello}\n{lines}\n");
        let transcript = text::parse(&text).unwrap();
        events_travel_in_one_wrapper(&transcript).faults.len()
    }

    #[test]
    fn a_line_that_is_no_json_is_no_event() {
        assert_eq!(faults("<1$ Listening on 4711\nend 1 complete"), 1);
        assert_eq!(faults("<1$ {\"kind\":\nend 1 broken reset"), 0);
        assert_eq!(
            faults("<1$ {\"kind\":\n<1$ {\"kind\":\nend 1 broken reset"),
            1
        );
    }
}
