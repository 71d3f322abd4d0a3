//! What comes after a reconnect, and what is stored.

use serde_json::{Value, json};

use crate::{
    checks::Check,
    transcript::{
        Transcript,
        views::{
            messages::Channel,
            session_update::{
                Asked, Played, Rebuilt, Update, asked, played, rebuilt, served, updates,
            },
        },
    },
    verdict::Findings,
};

/// The checks of this file, in catalogue order.
pub const CHECKS: &[Check] = &[
    check!("SUP-009", rebuilt_events_use_the_wrapper),
    check!("SUP-028", messages_are_stored),
    check!("SUP-029", tool_records_are_stored),
    check!("SUP-030", turn_states_are_stored),
    check!("SUP-031", a_turn_is_rebuilt_from_its_facts),
    check!("SUP-032", incremental_events_are_not_rebuilt),
    check!("SUP-042", what_is_durable_can_be_had_again),
    check!("SUP-047", a_tool_result_can_be_read_when_it_is_told),
];

/// SUP-009: after a subscription to a session with finished turns, events of them come in the wrapper of live ones.
fn rebuilt_events_use_the_wrapper(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let mut findings = Findings::none();
    for rebuilt in rebuilt(&channels) {
        let wrapped = rebuilt.updates.iter().find(|update| {
            update.text("method") == "session/update" && update.member("event").is_some()
        });
        findings.judge(wrapped.is_none().then(|| {
            let got = rebuilt.subscribe.response;
            let got = got.map_or_else(|| "nothing".to_owned(), |got| got.show().into_owned());
            let expected = "the rebuilt events, each as a session/update";
            let at = rebuilt.subscribe.request;
            rebuilt.channel.evidence_at(at, expected, got)
        }));
    }
    findings
}

/// The events of finished turns that were seen live, on connections that were no reconnects.
fn live<'c>(channels: &'c [Channel<'c>], session: &str) -> Vec<Update<'c>> {
    let first = channels.iter().filter(|it| !it.label.starts_with("re"));
    let all: Vec<_> = first.flat_map(|channel| updates(channel)).collect();
    let over = |turn: &str| {
        all.iter()
            .any(|update| update.ends_turn() && update.text("turn_id") == turn)
    };
    let ours = |update: &&Update<'c>| {
        let turn = update.text("turn_id");
        update.text("session_id") == session
            && if turn.is_empty() {
                update.ends_task()
            } else {
                over(turn)
            }
    };
    all.iter().filter(ours).copied().collect()
}

/// What an event says, without what belongs to the delivery.
fn content(update: &Update<'_>) -> Value {
    let mut event = update.member("event").cloned().unwrap_or_default();
    if let Some(members) = event.as_object_mut() {
        for name in ["ts", "event_id"] {
            members.remove(name);
        }
    }
    json!({ "turn_id": update.text("turn_id"), "event": event })
}

/// SUP-042: every event that was marked durable comes again, with the same type and content.
fn what_is_durable_can_be_had_again(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let mut findings = Findings::none();
    for rebuilt in rebuilt(&channels) {
        let again: Vec<Value> = rebuilt.updates.iter().map(content).collect();
        let marked = live(&channels, rebuilt.session)
            .into_iter()
            .filter(|update| update.text("durability") == "durable");
        for update in marked {
            let wanted = content(&update);
            findings.judge((!again.contains(&wanted)).then(|| {
                let expected = format!("{} again after the reconnect: {wanted}", update.kind());
                let at = rebuilt.subscribe.request;
                rebuilt.channel.evidence_at(at, expected, kinds(&rebuilt))
            }));
        }
    }
    findings
}

fn kinds(rebuilt: &Rebuilt<'_>) -> String {
    let kinds: Vec<_> = rebuilt.updates.iter().map(Update::kind).collect();
    format!("rebuilt: {}", kinds.join(", "))
}

/// SUP-032: what is rebuilt holds no delta and no progress.
fn incremental_events_are_not_rebuilt(transcript: &Transcript) -> Findings {
    const PASSING: [&str; 3] = ["assistant_delta", "tool_input_delta", "tool_progress"];
    let channels = served(transcript);
    let mut findings = Findings::none();
    for rebuilt in rebuilt(&channels) {
        for update in &rebuilt.updates {
            let passing = PASSING.contains(&update.kind());
            findings.judge(passing.then(|| {
                let expected = "durable events only";
                update.evidence(rebuilt.channel, expected, update.kind())
            }));
        }
    }
    findings
}

/// SUP-031: of a finished turn with a tool call, the start, the request, the result, the message and the end come
/// again after the server was restarted, and they say what is stored.
fn a_turn_is_rebuilt_from_its_facts(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let tool_turns: Vec<&str> = played(&channels, transcript)
        .iter()
        .filter(|played| played.script.get("result").is_some() && played.has_tool())
        .map(|played| played.turn())
        .collect();
    let mut findings = Findings::none();
    let restarts = rebuilt(&channels)
        .into_iter()
        .filter(|it| it.subscribe.request.label == "restarted");
    for rebuilt in restarts {
        let stored = stored(rebuilt.channel);
        for turn in &tool_turns {
            for kind in [
                "turn_started",
                "tool_requested",
                "tool_result",
                "assistant_message_completed",
                "turn_completed",
            ] {
                let found = rebuilt
                    .updates
                    .iter()
                    .find(|update| update.kind() == kind && update.text("turn_id") == *turn);
                let fault = match found {
                    None => Some("none".to_owned()),
                    Some(update) => unlike(update, stored.as_ref()),
                };
                findings.judge(fault.map(|got| {
                    let expected = format!("{kind} of turn {turn}, as it is stored");
                    let at = rebuilt.subscribe.request;
                    rebuilt.channel.evidence_at(at, expected, got)
                }));
            }
        }
    }
    findings
}

/// How an event differs from what is stored, where that can be told.
fn unlike(update: &Update<'_>, stored: Option<&Asked<'_>>) -> Option<String> {
    let (list, member, at, is_it): (_, _, _, fn(&Value, &Update<'_>) -> bool) = match update.kind()
    {
        "tool_result" => ("tools", "result", "result", |record, update| {
            record["tool_call_id"] == update.event_text("tool_call_id")
        }),
        "assistant_message_completed" => ("messages", "content", "content", |message, _| {
            message["role"] == "assistant"
        }),
        _ => return None,
    };
    let rows = stored?.given(list)?.as_array()?;
    let mut ours = rows.iter().filter(|row| {
        is_it(row, update)
            && row["turn_id"]
                .as_str()
                .is_none_or(|turn| turn == update.text("turn_id"))
    });
    let told = update.event(at)?;
    (!ours.any(|row| row.get(member) == Some(told)))
        .then(|| format!("{told}, which is not among the stored {list}"))
}

/// The first answer that tells what is stored.
fn stored<'c>(channel: &'c Channel<'c>) -> Option<Asked<'c>> {
    asked(channel, "session/replay")
        .into_iter()
        .find(|asked| asked.result().is_some())
}

/// The answers that tell what is stored after a restart.
fn stored_after_restart<'c>(
    channels: &'c [Channel<'c>],
    list: &str,
) -> Vec<(&'c Channel<'c>, Asked<'c>, &'c [Value])> {
    let mut found = Vec::new();
    for channel in channels.iter().filter(|it| it.label == "restarted") {
        if let Some(asked) = stored(channel)
            && let Some(rows) = asked.given(list).and_then(Value::as_array)
        {
            found.push((channel, asked, rows.as_slice()));
        }
    }
    found
}

/// SUP-028: the user's and the assistant's texts of scripted turns are stored in full.
fn messages_are_stored(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let played = played(&channels, transcript);
    let mut findings = Findings::none();
    for (channel, asked, messages) in stored_after_restart(&channels, "messages") {
        let has = |role: &str, text: &str| {
            messages
                .iter()
                .any(|message| message["role"] == role && message["content"] == text)
        };
        let says = |it: &&Played<'_>| it.script["says"].is_string();
        let able = |it: &&Played<'_>| !it.is_to_call() || it.has_tool();
        for played in played.iter().filter(says).filter(able) {
            let said = played.script["says"].as_str().unwrap_or_default();
            for (role, text) in [("user", played.prompt.param("input")), ("assistant", said)] {
                findings.judge((!has(role, text)).then(|| {
                    let expected = format!("a stored message of the {role}: {text}");
                    let got = Value::from(messages.to_vec()).to_string();
                    channel.evidence_at(asked.request, expected, got)
                }));
            }
        }
    }
    findings
}

/// SUP-029: the record of a scripted tool call is stored with its arguments and its result.
fn tool_records_are_stored(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let played = played(&channels, transcript);
    let mut findings = Findings::none();
    for (channel, asked, tools) in stored_after_restart(&channels, "tools") {
        for played in &played {
            let Some(result) = played.script.get("result").filter(|_| played.has_tool()) else {
                continue;
            };
            let is_it = |record: &Value| {
                let given = record["result"].as_str().unwrap_or_default();
                record["arguments"] == played.script["arguments"]
                    && serde_json::from_str::<Value>(given).is_ok_and(|given| given == *result)
            };
            findings.judge((!tools.iter().any(is_it)).then(|| {
                let arguments = &played.script["arguments"];
                let expected = format!("a tool record with {arguments} and {result}");
                let got = Value::from(tools.to_vec()).to_string();
                channel.evidence_at(asked.request, expected, got)
            }));
        }
    }
    findings
}

/// SUP-030: the terminal state of each turn is stored; after a restart each is there, and before nothing else is stored
/// than was told.
fn turn_states_are_stored(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let ends: Vec<_> = channels
        .iter()
        .filter(|it| !it.label.starts_with("re"))
        .flat_map(|channel| updates(channel))
        .filter(|update| update.ends_turn())
        .collect();
    let mut findings = Findings::none();
    for (channel, asked, turns) in stored_after_restart(&channels, "turns") {
        for end in &ends {
            let wanted = end.kind().trim_start_matches("turn_");
            let has = turns
                .iter()
                .any(|turn| turn["turn_id"] == end.text("turn_id") && turn["status"] == wanted);
            findings.judge((!has).then(|| {
                let expected = format!("turn {} stored as {wanted}", end.text("turn_id"));
                let got = Value::from(turns.to_vec()).to_string();
                channel.evidence_at(asked.request, expected, got)
            }));
        }
    }
    for channel in &channels {
        for read in asked(channel, "session/replay") {
            let told = updates(channel).into_iter().filter(|update| {
                update.ends_turn()
                    && update.message.index < read.request.index
                    && update.text("session_id") == read.param("session_id")
            });
            for end in told {
                findings.judge(contradicted(&end, &read).map(|got| {
                    let expected = format!("turn {} stored as {}", end.text("turn_id"), end.kind());
                    channel.evidence_at(read.request, expected, got)
                }));
            }
        }
    }
    findings
}

/// Another end of a turn than the one that was told, when that is stored.
fn contradicted(end: &Update<'_>, read: &Asked<'_>) -> Option<String> {
    let turns = read.given("turns")?.as_array()?;
    let stored = turns
        .iter()
        .find(|turn| turn["turn_id"] == end.text("turn_id"))?;
    let status = stored["status"].as_str()?;
    let is_end = ["completed", "failed", "cancelled"].contains(&status);
    (is_end && end.kind() != format!("turn_{status}")).then(|| stored.to_string())
}

/// SUP-047: what is stored, read when `tool_result` has come and before the turn ends, has that result.
fn a_tool_result_can_be_read_when_it_is_told(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in &served(transcript) {
        for read in asked(channel, "session/replay") {
            if read.request.label != "read-at-once" {
                continue;
            }
            let told = updates(channel).into_iter().rfind(|update| {
                update.kind() == "tool_result" && update.message.index < read.request.index
            });
            let rows = read.given("tools").and_then(Value::as_array);
            let (Some(told), Some(rows)) = (told, rows) else {
                continue;
            };
            let has = rows.iter().any(|row| {
                row["tool_call_id"] == told.event_text("tool_call_id")
                    && row.get("result") == told.event("result")
                    && row["status"] == told.event_text("status")
            });
            findings.judge((!has).then(|| {
                let expected = format!("a stored record with {}", told.event_text("result"));
                let got = Value::from(rows.clone()).to_string();
                channel.evidence_at(read.request, expected, got)
            }));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::text;

    /// The conversation with a restart.
    const RESTART: &str = include_str!("../../../../golden/session-update/restart.twire");

    /// The same with a server that offers its model no tools: what the model calls is not called.
    fn without_tools() -> Transcript {
        let lines = RESTART
            .lines()
            .filter(|line| !line.contains("\"type\":\"tool_"));
        let lines = lines.map(|line| {
            if line.starts_with("state ") {
                return line.to_owned();
            }
            let tools = line.find("\"tools\":[").zip(line.find("],\"turn"));
            let line = match tools {
                Some((from, to)) => format!("{}\"tools\":[{}", &line[..from], &line[to..]),
                None => line.to_owned(),
            };
            line.replace("Two files.", "")
        });
        text::parse(&lines.collect::<Vec<_>>().join("\n")).unwrap()
    }

    #[test]
    fn nothing_is_due_of_a_session_whose_prompts_were_not_answered() {
        let answers = |line: &&str| !line.contains("\"request_id\":\"r-4\",\"result\"");
        let events = |line: &&str| !line.contains("\"kind\":\"event\"");
        let of = |lines: Vec<&str>| {
            rebuilt_events_use_the_wrapper(&text::parse(&lines.join("\n")).unwrap())
        };
        let silent = of(RESTART.lines().filter(events).filter(answers).collect());
        assert_eq!(
            (silent.judged, silent.faults.len()),
            (1, 1),
            "r-5 was answered"
        );
        let answers =
            |line: &&str| answers(line) && !line.contains("\"request_id\":\"r-5\",\"result\"");
        let silent = of(RESTART.lines().filter(events).filter(answers).collect());
        assert_eq!((silent.judged, silent.faults.len()), (0, 0));
    }

    #[test]
    fn an_end_that_was_told_is_stored_as_it_was_told() {
        const TURNS: &str = include_str!("../../../../golden/session-update/turns.twire");
        let of = |text: &str| turn_states_are_stored(&text::parse(text).unwrap());
        assert!(of(TURNS).judged >= 4 && of(TURNS).faults.is_empty());
        let told = of(&TURNS.replace("turn_cancelled", "turn_completed"));
        assert_eq!(told.faults.len(), 1);
        let runs = of(&TURNS.replace("\"status\":\"cancelled\"", "\"status\":\"running\""));
        assert!(runs.faults.is_empty(), "it may be stored a little later");
    }

    #[test]
    fn a_server_without_tools_is_judged_by_what_it_has() {
        let rules = [
            messages_are_stored,
            tool_records_are_stored,
            a_turn_is_rebuilt_from_its_facts,
        ];
        let whole = text::parse(RESTART).unwrap();
        for rule in rules {
            assert!(rule(&whole).judged > 0 && rule(&whole).faults.is_empty());
            assert!(rule(&without_tools()).faults.is_empty());
        }
    }
}
