//! Tasks, which outlive the turns that start them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    checks::Check,
    transcript::{
        Fact, Transcript,
        views::session_update::{Played, Update, played, served, updates},
    },
    verdict::Findings,
};

/// The checks of this file, in catalogue order.
pub const CHECKS: &[Check] = &[
    check!("SUP-019", task_updates_have_an_empty_turn_id),
    check!("SUP-020", task_updates_keep_their_origin),
    check!("SUP-021", task_updates_come_when_they_happen),
    check!("SUP-022", an_ended_turn_does_not_start_again),
    check!("SUP-038", the_end_of_a_task_has_one_id),
    check!("SUP-048", a_task_ends_after_its_turn),
];

/// SUP-019: `turn_id` of a task update is there, and empty.
fn task_updates_have_an_empty_turn_id(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in &served(transcript) {
        for update in updates(channel) {
            if update.kind() == "task_updated" {
                let found = update.member("turn_id").and_then(Value::as_str);
                findings.judge((found != Some("")).then(|| {
                    update.evidence(channel, "an empty turn_id", found.unwrap_or("none"))
                }));
            }
        }
    }
    findings
}

/// SUP-020: every update of a task names the turn that started it: the one whose `tool_result` tells the task's id,
/// or else the one that the first update names.
fn task_updates_keep_their_origin(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let mut origins: BTreeMap<&str, &str> = BTreeMap::new();
    let mut findings = Findings::none();
    for channel in &channels {
        for update in updates(channel) {
            if let Some(task) = update.task() {
                let started = starter(transcript, &channels, task.0);
                let origin = origins
                    .entry(task.0)
                    .or_insert_with(|| started.unwrap_or_else(|| update.origin()));
                let right = !update.origin().is_empty() && update.origin() == *origin;
                let expected = format!("origin_turn_id {origin}");
                findings
                    .judge((!right).then(|| update.evidence(channel, expected, update.origin())));
            }
        }
    }
    findings
}

/// The turn that was answered with this task by a tool.
fn starter<'c>(
    transcript: &'c Transcript,
    channels: &'c [crate::transcript::views::messages::Channel<'c>],
    task: &str,
) -> Option<&'c str> {
    let tells = |played: &Played<'c>| {
        let updates = played.updates();
        updates
            .iter()
            .any(|it| it.kind() == "tool_result" && it.event_text("result").contains(task))
    };
    let found = played(channels, transcript).into_iter().find(tells);
    found.map(|played| played.turn())
}

/// SUP-021: a task that goes on during a later turn, and ends before the one after that, is told at that time.
///
/// The scenario waits for a report before it lets the later turn end (label `turn-b`), and for the end of the task
/// before the next turn (label `turn-c`). At a slow server the task may end earlier: before the later turn, which then
/// shows nothing, or in it.
fn task_updates_come_when_they_happen(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let mut findings = Findings::none();
    let is_played = transcript
        .entries
        .iter()
        .any(|entry| entry.fact == Fact::Label("turn-c".to_owned()));
    let started = played(&channels, transcript)
        .into_iter()
        .filter(|it| is_played && it.script["startsTask"] == true && it.has_tool());
    for channel in started.map(|played| played.channel) {
        let all = updates(channel);
        let of_task = |update: &&Update<'_>| update.kind() == "task_updated";
        let came = |labels: &[&str], ends: bool| {
            let mut of_task = all.iter().filter(of_task);
            of_task.any(|it| labels.contains(&it.message.label) && (it.ends_task() || !ends))
        };
        // It reports before it ends, in whichever turn.
        let reports = all.iter().filter(of_task).any(|it| !it.ends_task());
        let during = reports && (came(&["turn-a"], true) || came(&["turn-b"], false));
        let after = came(&["turn-a", "turn-b", "after-b"], true);
        for (came, what) in [
            (during, "a task update while another turn runs"),
            (after, "the end of the task before the next turn"),
        ] {
            findings.judge((!came).then(|| channel.evidence(what, "none")));
        }
    }
    findings
}

/// SUP-022: on one connection no `turn_started` follows the end of its turn.
fn an_ended_turn_does_not_start_again(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in &served(transcript) {
        let all = updates(channel);
        let is_shown = all.iter().any(|update| update.kind() == "task_updated");
        let mut ended: Vec<&str> = Vec::new();
        for update in &all {
            let turn = update.text("turn_id");
            if update.ends_turn() {
                ended.push(turn);
            } else if update.kind() == "turn_started" && is_shown {
                findings.judge(
                    ended.contains(&turn).then(|| {
                        update.evidence(channel, "no start of a turn that has ended", turn)
                    }),
                );
            }
        }
    }
    findings
}

/// SUP-038: the end of a task has the same id wherever it is delivered. Judged from the second delivery on.
fn the_end_of_a_task_has_one_id(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let mut ids: BTreeMap<&str, &str> = BTreeMap::new();
    let mut findings = Findings::none();
    for channel in &channels {
        for update in updates(channel).into_iter().filter(Update::ends_task) {
            let Some((task, _)) = update.task() else {
                continue;
            };
            match ids.get(task) {
                None => {
                    ids.insert(task, update.id());
                }
                Some(first) => {
                    let expected = format!("event_id {first}");
                    let other = update.id() != *first;
                    findings.judge(other.then(|| update.evidence(channel, expected, update.id())));
                }
            }
        }
    }
    findings
}

/// SUP-048: a task that a scripted turn started, and that outlives it, is told to have ended.
fn a_task_ends_after_its_turn(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let mut findings = Findings::none();
    for played in played(&channels, transcript) {
        if played.script["startsTask"] != true || !played.has_tool() {
            continue;
        }
        let all = updates(played.channel);
        let over = all
            .iter()
            .position(|update| update.ends_turn() && update.text("turn_id") == played.turn());
        let Some(over) = over else { continue };
        let ended = all[over..]
            .iter()
            .any(|update| update.ends_task() && update.origin() == played.turn());
        findings.judge((!ended).then(|| {
            let expected = "the end of its task after the turn, with the turn as origin";
            all[over].evidence(played.channel, expected, "none")
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::text;

    /// A task of one turn that reports during the next and ends after it.
    const TASKS: &str = include_str!("../../../../golden/session-update/tasks.twire");

    fn faults(text: &str) -> usize {
        let findings = task_updates_come_when_they_happen(&text::parse(text).unwrap());
        assert_eq!(findings.judged, 2);
        findings.faults.len()
    }

    #[test]
    fn a_task_that_ends_in_the_later_turn_or_before_it_was_told_in_time() {
        assert_eq!(faults(TASKS), 0);
        let in_b = TASKS.replace("label after-b", "# the end comes while the turn goes on");
        assert_eq!(faults(&in_b), 0);
        let in_a = in_b.replace("label turn-b", "# the turn comes too late for the task");
        assert_eq!(faults(&in_a), 0);
    }

    #[test]
    fn what_is_withheld_until_the_next_turn_was_not_told_in_time() {
        let withheld = TASKS.replace("label after-b", "label turn-c");
        assert_eq!(faults(&withheld), 1, "the end comes in the next turn");
        let without = |what: &str| -> usize {
            let lines = TASKS.lines().filter(|line| !line.contains(what));
            faults(&lines.collect::<Vec<_>>().join("\n"))
        };
        assert_eq!(without("\"type\":\"task_updated\""), 2);
        let in_b = TASKS.replace("label after-b", "# the end comes while the turn goes on");
        let reports = |line: &&str| {
            !line.contains("\"type\":\"task_updated\"") || line.contains("\"status\":\"completed\"")
        };
        let ends_only: Vec<_> = in_b.lines().filter(reports).collect();
        assert_eq!(faults(&ends_only.join("\n")), 1, "it tells its end alone");
    }
}
