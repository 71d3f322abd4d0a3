//! The one wrapper of every event.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    checks::Check,
    transcript::{
        End, Side, Transcript,
        views::{
            messages::{Channel, Content},
            session_update::{Played, Update, played, served, updates},
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

/// SUP-007: `turn_id` is there; the end of a turn names one that has begun, or that a prompt was answered with, and so
/// does what comes while one runs. Two prompts have two turns.
///
/// What is about a task has an empty one (SUP-019).
fn updates_name_their_turn(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let played = played(&channels, transcript);
    let all: Vec<_> = channels.iter().flat_map(|it| updates(it)).collect();
    let lived = all.iter().filter(|update| update.kind() == "turn_started");
    let mut known: Vec<&str> = lived.map(|update| update.text("turn_id")).collect();
    known.extend(played.iter().map(Played::turn));
    let mut findings = Findings::none();
    for channel in &channels {
        // The turn of each session that has begun on this connection, and not ended.
        let mut running: BTreeMap<&str, &str> = BTreeMap::new();
        for update in updates(channel) {
            let found = update.member("turn_id").and_then(Value::as_str);
            let session = update.text("session_id");
            let about_task = update.kind().starts_with("task");
            let is_due = update.ends_turn() || running.contains_key(session);
            let right = match found {
                None => false,
                Some("") => about_task,
                Some(turn) => about_task || !is_due || known.contains(&turn),
            };
            let got = found.unwrap_or("none");
            let expected = "turn_id of the turn that runs";
            findings.judge((!right).then(|| update.evidence(channel, expected, got)));
            if update.ends_turn() {
                running.remove(session);
            } else if update.kind() == "turn_started" {
                running.insert(session, update.text("turn_id"));
            }
        }
    }
    let mut answered: Vec<&str> = Vec::new();
    for played in played.iter().filter(|it| !it.resumes()) {
        if answered.contains(&played.turn()) {
            let expected = "a turn that no other prompt was answered with";
            let at = played.prompt.request;
            let fault = played.channel.evidence_at(at, expected, played.turn());
            findings.judge(Some(fault));
        }
        answered.push(played.turn());
    }
    findings
}

/// SUP-033: on one connection each number is greater than the one before. Events without one are left out.
fn sequence_rises_in_send_order(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in &served(transcript) {
        let all = updates(channel);
        let numbered: Vec<_> = all
            .iter()
            .filter_map(|update| Some((update, update.sequence()?)))
            .collect();
        for pair in numbered.windows(2) {
            let ((before, last), (update, number)) = (pair[0], pair[1]);
            let shown = |update: &Update<'_>| {
                update
                    .member("sequence")
                    .map(Value::to_string)
                    .unwrap_or_default()
            };
            let expected = || format!("a sequence above {}", shown(before));
            findings.judge(
                (number <= last).then(|| update.evidence(channel, expected(), shown(update))),
            );
        }
    }
    findings
}

/// SUP-036: every event has an id, and two events with one id are the same event. What passes is told once, so on one
/// connection it is the same only when all of it is.
fn events_have_an_id_of_their_own(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let mut first: BTreeMap<&str, (usize, &Value)> = BTreeMap::new();
    let mut findings = Findings::none();
    for (place, channel) in channels.iter().enumerate() {
        for update in updates(channel) {
            let Some(event) = update.member("event") else {
                continue;
            };
            let id = update.id();
            let fault = if id.is_empty() {
                Some(("an event_id", "none".to_owned()))
            } else {
                let (where_first, other) = *first.entry(id).or_insert((place, event));
                let passes = update.text("durability") == "incremental" && where_first == place;
                let differs = what(other) != what(event) || passes && other != event;
                differs.then(|| {
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

    /// Two turns of one session, and what is told in them.
    const TURNS: &str = include_str!("../../../../golden/session-update/turns.twire");

    /// The faults of a check in the conversation with these lines changed.
    fn changed(check: fn(&Transcript) -> Findings, change: impl Fn(&str) -> String) -> usize {
        let lines: Vec<_> = TURNS.lines().map(change).collect();
        check(&text::parse(&lines.join("\n")).unwrap()).faults.len()
    }

    /// The text behind this one, to the next quote.
    fn quoted<'l>(line: &'l str, before: &str) -> Option<&'l str> {
        line.split_once(before)?.1.split('"').next()
    }

    #[test]
    fn numbers_beyond_the_integers_of_floats_are_told_apart() {
        let check = sequence_rises_in_send_order;
        let numbers = |step: u64| {
            move |line: &str| match line.split_once("\"sequence\":") {
                None => line.to_owned(),
                Some((before, rest)) => {
                    let (number, after) = rest.split_once(',').unwrap();
                    let number = 9_007_199_254_740_993 + step * number.parse::<u64>().unwrap();
                    format!("{before}\"sequence\":{number},{after}")
                }
            }
        };
        assert_eq!(changed(check, numbers(1)), 0);
        assert!(changed(check, numbers(0)) > 0);
    }

    #[test]
    fn pieces_of_a_text_that_share_an_id_are_told_apart() {
        let check = events_have_an_id_of_their_own;
        assert_eq!(changed(check, str::to_owned), 0);
        let shared = changed(check, |line| match quoted(line, "\"event_id\":\"") {
            Some(id) if line.contains("\"type\":\"assistant_delta\"") => line.replace(id, "d-1"),
            _ => line.to_owned(),
        });
        assert!(shared > 0);
    }

    #[test]
    fn a_turn_has_an_id_of_its_own_and_its_events_have_it() {
        let check = updates_name_their_turn;
        assert_eq!(changed(check, str::to_owned), 0);
        let mut turns: Vec<_> = TURNS
            .lines()
            .filter_map(|line| quoted(line, "\"turn_id\":\"turn-"))
            .collect();
        turns.dedup();
        let one = changed(check, |line| {
            turns
                .iter()
                .fold(line.to_owned(), |line, turn| line.replace(turn, "1"))
        });
        assert!(one > 0, "all turns have one id");
        let stray = changed(check, |line| match quoted(line, "\"turn_id\":\"") {
            Some(turn) if line.contains("\"type\":\"tool_result\"") => line.replace(turn, "t"),
            _ => line.to_owned(),
        });
        assert_eq!(stray, 1, "a result of no turn");
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
