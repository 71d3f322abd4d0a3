//! Who hears what, and how each connection counts.

use serde_json::Value;

use crate::{
    checks::Check,
    transcript::{
        Side, Transcript,
        views::{
            messages::{Channel, Message},
            session_update::{Update, asked, played, served, updates},
        },
    },
    verdict::Findings,
};

/// The checks of this file, in catalogue order.
pub const CHECKS: &[Check] = &[
    check!("SUP-008", everybody_gets_the_same_wrapper),
    check!("SUP-024", sequence_is_counted_per_connection),
    check!("SUP-025", nothing_comes_without_a_subscription),
    check!("SUP-026", nothing_comes_of_another_session),
    check!("SUP-034", sequence_starts_anew_with_a_connection),
    check!("SUP-037", one_event_has_one_id_everywhere),
];

/// Pairs of the same event on two connections that both heard a turn live from its start to its end: the n-th
/// event of the turn on each.
fn pairs<'c>(channels: &'c [Channel<'c>]) -> Vec<(Update<'c>, &'c Channel<'c>, Update<'c>)> {
    let mut pairs = Vec::new();
    let heard: Vec<_> = channels.iter().map(updates).collect();
    for (place, first) in channels.iter().enumerate() {
        for (second, theirs) in channels.iter().zip(&heard).skip(place + 1) {
            for turn in whole_turns(&heard[place]) {
                let of_turn = |all: &[Update<'c>]| -> Vec<Update<'c>> {
                    let ours = all.iter().filter(|update| update.text("turn_id") == turn);
                    ours.copied().collect()
                };
                let (ours, theirs) = (of_turn(&heard[place]), of_turn(theirs));
                // A turn that was rebuilt on either is another matter.
                let live = |channel: &Channel<'_>| !channel.label.starts_with("re");
                let from_start = |channel: &Channel<'_>, of: &[Update<'_>]| {
                    let begins = of.first().map(|update| update.message.index);
                    let session = of.first().map_or("", |update| update.text("session_id"));
                    begins.is_some_and(|begins| begins >= rebuilt_until(channel, session))
                };
                let both = from_start(first, &ours) && from_start(second, &theirs);
                if live(first) && live(second) && both {
                    pairs.extend(ours.into_iter().zip(theirs).map(|(a, b)| (a, second, b)));
                }
            }
        }
    }
    pairs
}

/// Where the answer to a connection's subscription to a session stands: what comes before it may be rebuilt.
fn rebuilt_until(channel: &Channel<'_>, session: &str) -> usize {
    let subscribes = asked(channel, "session/subscribe").into_iter();
    subscribes
        .filter(|subscribe| subscribe.param("session_id") == session)
        .map(|subscribe| {
            subscribe
                .response
                .map_or(usize::MAX, |response| response.index)
        })
        .max()
        .unwrap_or_default()
}

/// The turns that were heard from start to end.
fn whole_turns<'c>(heard: &[Update<'c>]) -> Vec<&'c str> {
    let started = heard.iter().filter(|it| it.kind() == "turn_started");
    let ended = |turn: &str| {
        heard
            .iter()
            .any(|it| it.ends_turn() && it.text("turn_id") == turn)
    };
    started
        .map(|it| it.text("turn_id"))
        .filter(|turn| ended(turn))
        .collect()
}

/// SUP-008: apart from the sequence, and from the event's id, which SUP-037 is about, both get the same.
fn everybody_gets_the_same_wrapper(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    Findings::each(pairs(&channels), |(first, channel, second)| {
        let (one, two) = (plain(first.message), plain(second.message));
        (one != two).then(|| second.evidence(channel, one.to_string(), two.to_string()))
    })
}

fn plain(message: &Message<'_>) -> Value {
    let mut json = message.json.as_deref().cloned().unwrap_or_default();
    if let Some(members) = json.as_object_mut() {
        members.remove("sequence");
        if let Some(Value::Object(event)) = members.get_mut("event") {
            event.remove("event_id");
        }
    }
    json
}

/// SUP-037: the durable events of a turn have the same id on both.
fn one_event_has_one_id_everywhere(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let durable = pairs(&channels).into_iter().filter(|(first, _, second)| {
        first.text("durability") == "durable" && first.kind() == second.kind()
    });
    Findings::each(durable, |(first, channel, second)| {
        let expected = format!("event_id {}", first.id());
        (first.id() != second.id()).then(|| second.evidence(channel, expected, second.id()))
    })
}

/// SUP-024: the numbers of a connection that hears little go on evenly while another one hears much.
///
/// Judges connections that were opened under `quiet`, from their third event on: each step is the first one. A server
/// may number its responses too, so what it sent on the connection itself may count.
fn sequence_is_counted_per_connection(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in served(transcript).iter().filter(|it| it.label == "quiet") {
        let numbered = numbered(channel);
        let steps: Vec<_> = numbered
            .windows(2)
            .map(|pair| (pair[1].0, pair[1].1 - pair[0].1, pair[1].2 - pair[0].2))
            .collect();
        let Some((_, first, sent)) = steps.first().copied() else {
            continue;
        };
        for (update, step, passed) in &steps[1..] {
            let counts_all = step * i128::from(sent) == first * i128::from(*passed);
            let other = *step != first && !counts_all;
            findings.judge(other.then(|| {
                let expected = format!("a step of {} to the next sequence", shown(first));
                update.evidence(channel, expected, shown(*step))
            }));
        }
    }
    findings
}

/// The numbered events of a connection: the event, its number, and how many messages the server had sent on the
/// connection by then, this one included.
fn numbered<'c>(channel: &'c Channel<'c>) -> Vec<(Update<'c>, i128, u32)> {
    let found = updates(channel).into_iter().filter_map(|update| {
        let index = update.message.index;
        let sent = channel
            .from(Side::Server)
            .take_while(|it| it.index <= index);
        let sent = u32::try_from(sent.count()).unwrap_or(u32::MAX);
        Some((update, update.sequence()?, sent))
    });
    found.collect()
}

/// A number as it is written, from its millionths.
fn shown(millionths: i128) -> String {
    let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
    match rest {
        0 => whole.to_string(),
        rest => format!("{whole} and {rest} millionths"),
    }
}

/// SUP-034: the first number of every connection is the first number of the first one. A server may number its responses
/// too; then it is the first number of all that counts.
fn sequence_starts_anew_with_a_connection(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let all: Vec<_> = channels
        .iter()
        .map(|channel| (channel, numbered(channel)))
        .collect();
    let mut firsts = all
        .iter()
        .filter_map(|(channel, numbered)| Some((channel, *numbered.first()?)));
    let Some((_, (_, start, sent))) = firsts.next() else {
        return Findings::none();
    };
    // What one message counts, as two events in a row tell.
    let in_a_row = |pair: &[(Update<'_>, i128, u32)]| {
        (pair[1].2 == pair[0].2 + 1).then(|| pair[1].1 - pair[0].1)
    };
    let unit = all
        .iter()
        .find_map(|(_, numbered)| numbered.windows(2).find_map(in_a_row));
    Findings::each(firsts, |(channel, (update, number, passed))| {
        let more = i128::from(passed) - i128::from(sent);
        let counts_all = unit.is_some_and(|unit| number - start == unit * more);
        let expected = format!("sequence {}, as on a fresh connection", shown(start));
        let other = number != start && !counts_all;
        other.then(|| update.evidence(channel, expected, shown(number)))
    })
}

/// The sessions that a connection has asked to hear of, or made, before this message.
fn subscribed<'c>(channel: &'c Channel<'c>, before: usize) -> Vec<&'c str> {
    let mut sessions = Vec::new();
    let requests = asked(channel, "");
    for request in requests.iter().filter(|it| it.request.index < before) {
        let named = request.param("session_id");
        match request.request.text_at("/method") {
            Some("session/subscribe" | "session/prompt") => sessions.push(named),
            Some("session/new" | "session/open" | "session/switch" | "initialize") => {
                let made = request.given("session_id").and_then(Value::as_str);
                sessions.extend(made);
            }
            Some("session/unsubscribe") => {
                let answered = request.response.is_some_and(|it| it.index < before);
                if answered {
                    sessions.retain(|session| *session != named);
                }
            }
            _ => {}
        }
    }
    sessions
}

/// SUP-025: a connection without any subscription hears of no session, while another one does.
fn nothing_comes_without_a_subscription(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    if played(&channels, transcript).is_empty() {
        return Findings::none();
    }
    let deaf = channels
        .iter()
        .filter(|channel| subscribed(channel, usize::MAX).is_empty());
    let idle = deaf.filter(|channel| channel.from(Side::Client).count() > 1);
    let mut findings = Findings::none();
    for channel in idle {
        let heard = updates(channel)
            .into_iter()
            .find(|update| !update.text("session_id").is_empty());
        findings.judge(heard.map(|update| {
            let got = format!("{} of {}", update.kind(), update.text("session_id"));
            update.evidence(channel, "no event of any session", got)
        }));
    }
    findings
}

/// SUP-026: a connection hears of the sessions that it has subscribed to, and of no other.
fn nothing_comes_of_another_session(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in &served(transcript) {
        if subscribed(channel, usize::MAX).is_empty() {
            continue;
        }
        for update in updates(channel) {
            let session = update.text("session_id");
            if session.is_empty() {
                continue;
            }
            let ours = subscribed(channel, update.message.index);
            let expected = format!("events of {} only", ours.join(", "));
            findings.judge(
                (!ours.contains(&session)).then(|| update.evidence(channel, expected, session)),
            );
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::text;

    /// Two connections, the first of which is a quiet one; each line is a number that the server sends, or a response.
    fn judged(
        check: fn(&Transcript) -> Findings,
        quiet: &[Option<u32>],
        fresh: &[Option<u32>],
    ) -> usize {
        let mut lines = vec![
            "twire 1".to_owned(),
            "suite: session-update".to_owned(),
            String::new(),
        ];
        lines.push("label quiet".to_owned());
        for (id, told) in [(1, quiet), (2, fresh)] {
            lines.push(format!(
                r#">{id}$ {{"kind":"request","request_id":1,"method":"initialize"}}"#
            ));
            lines.extend(told.iter().map(|number| match number {
                None => format!(r#"<{id}$ {{"kind":"response","request_id":1,"result":{{}}}}"#),
                Some(number) => format!(
                    r#"<{id}$ {{"kind":"event","method":"session/update","sequence":{number},"event":{{"type":"x"}}}}"#
                ),
            }));
        }
        let transcript = text::parse(&(lines.join("\n") + "\n")).unwrap();
        check(&transcript).faults.len()
    }

    #[test]
    fn responses_may_count_and_other_connections_may_not() {
        let check = sequence_is_counted_per_connection;
        // 2 is a response's number, and 5.
        let all = [None, Some(1), Some(3), None, Some(6), Some(8)];
        assert_eq!(
            judged(check, &all, &[]),
            1,
            "a step of two without a response"
        );
        let all = [
            None,
            Some(2),
            Some(3),
            None,
            Some(5),
            Some(6),
            None,
            None,
            Some(9),
        ];
        assert_eq!(judged(check, &all, &[]), 0);
        let events = [None, Some(1), Some(2), None, Some(3), Some(4)];
        assert_eq!(judged(check, &events, &[]), 0);
        let shared = [None, Some(1), Some(2), Some(30), Some(31)];
        assert_eq!(judged(check, &shared, &[]), 1);
    }

    #[test]
    fn a_connection_starts_at_the_first_number_or_behind_its_responses() {
        let check = sequence_starts_anew_with_a_connection;
        let first = [None, None, Some(3), Some(4)];
        assert_eq!(judged(check, &first, &[None, Some(2)]), 0);
        assert_eq!(
            judged(check, &first, &[None, Some(3)]),
            0,
            "as on the first"
        );
        assert_eq!(judged(check, &first, &[None, Some(5)]), 1);
    }
}
