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
/// Judges connections that were opened under `quiet`, from their third event on: each step is the first one.
fn sequence_is_counted_per_connection(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in served(transcript).iter().filter(|it| it.label == "quiet") {
        let numbered: Vec<_> = updates(channel)
            .into_iter()
            .filter_map(|update| Some((update, update.sequence()?)))
            .collect();
        let steps: Vec<_> = numbered
            .windows(2)
            .map(|pair| (pair[1].0, pair[1].1 - pair[0].1))
            .collect();
        let Some((_, first)) = steps.first().copied() else {
            continue;
        };
        for (update, step) in &steps[1..] {
            let expected = format!("a step of {first} to the next sequence");
            let other = (step - first).abs() > f64::EPSILON;
            findings.judge(other.then(|| update.evidence(channel, expected, step.to_string())));
        }
    }
    findings
}

/// SUP-034: the first number of every connection is the first number of the first one.
fn sequence_starts_anew_with_a_connection(transcript: &Transcript) -> Findings {
    let channels = served(transcript);
    let firsts: Vec<_> = channels
        .iter()
        .filter_map(|channel| {
            let update = updates(channel).first().copied()?;
            Some((channel, update, update.sequence()?))
        })
        .collect();
    let Some((_, _, start)) = firsts.first().copied() else {
        return Findings::none();
    };
    Findings::each(&firsts[1..], |(channel, update, number)| {
        let other = (number - start).abs() > f64::EPSILON;
        let expected = format!("sequence {start}, as on a fresh connection");
        other.then(|| update.evidence(channel, expected, number.to_string()))
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
