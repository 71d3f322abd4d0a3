//! What a connection must have heard: every durable event of each session that it subscribed to, once, from the first
//! one on, and nothing of any other session.
//!
//! The measure is the auditor, who subscribes when all is over: what it is told is what is stored. Events are compared by
//! what they say (turn, type, tool call, text), since an identity is the server's own affair.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use super::AUDITOR;
use crate::{
    checks::{Check, check},
    fuzz::is_case,
    transcript::{
        Fact, TargetFact, Transcript,
        views::{
            messages::Channel,
            session_update::{Update, asked, served, updates},
        },
    },
    verdict::Findings,
};

/// The rules of this file.
pub const CHECKS: &[Check] = &[
    check!("SUP-024", numbers_rise_evenly),
    check!(
        "SUP-026",
        nothing_comes_of_a_session_that_was_not_subscribed_to
    ),
    check!("SUP-031", a_connection_hears_each_durable_event_once),
    check!("SUP-032", what_has_passed_is_not_told_again),
    check!("SUP-042", who_stays_hears_everything),
];

/// What a durable event says.
type Said = (String, String, String, String);

fn said(update: &Update<'_>) -> Said {
    let of = |name: &str| update.event_text(name).to_owned();
    let content = of("content") + &of("result");
    (
        update.text("turn_id").to_owned(),
        update.kind().to_owned(),
        of("tool_call_id"),
        content,
    )
}

/// The durable events of turns that a connection was told of a session, in order.
fn durable(channel: &Channel<'_>, session: &str) -> Vec<Said> {
    told(channel, session)
        .into_iter()
        .map(|(_, it)| it)
        .collect()
}

/// The same, each with when it came.
fn told(channel: &Channel<'_>, session: &str) -> Vec<(Duration, Said)> {
    let ours = |update: &Update<'_>| {
        update.text("session_id") == session
            && update.text("durability") == "durable"
            && !update.text("turn_id").is_empty()
    };
    updates(channel)
        .iter()
        .filter(|it| ours(it))
        .map(|update| (update.message.at, said(update)))
        .collect()
}

/// The sessions that a connection subscribed to and was answered about, each with where that was.
fn subscribed<'c>(channel: &'c Channel<'c>) -> BTreeMap<&'c str, usize> {
    let mut found = BTreeMap::new();
    for subscribe in asked(channel, "session/subscribe") {
        if subscribe.result().is_some() {
            let at = subscribe.request.index;
            found.entry(subscribe.param("session_id")).or_insert(at);
        }
    }
    found
}

/// Runs a rule over the connections of a case; nothing for any other transcript.
fn each(
    transcript: &Transcript,
    judge: impl Fn(&[Channel<'_>], &Channel<'_>, &mut Findings),
) -> Findings {
    let mut findings = Findings::none();
    if is_case(transcript) {
        let channels = served(transcript);
        for channel in &channels {
            judge(&channels, channel, &mut findings);
        }
    }
    findings
}

/// SUP-024: the events of each connection are numbered as those of the first one, whatever others hear. Where numbers
/// begin and how far apart they are is open.
fn numbers_rise_evenly(transcript: &Transcript) -> Findings {
    each(transcript, |channels, channel, findings| {
        let Some((start, step)) = channels.iter().find_map(start_and_step) else {
            return;
        };
        let all = updates(channel);
        for (place, update) in (0_i128..).zip(&all) {
            let wrong = update.sequence() != Some(start + place * step);
            findings.judge(wrong.then(|| {
                let got = update.member("sequence");
                let got = got.map_or_else(|| "none".to_owned(), ToString::to_string);
                update.evidence(channel, format!("the sequence of event {}", place + 1), got)
            }));
        }
    })
}

/// The first number of a connection and the way to the next one, in millionths.
fn start_and_step(channel: &Channel<'_>) -> Option<(i128, i128)> {
    let all = updates(channel);
    let start = all.first()?.sequence()?;
    let step = all.get(1)?.sequence()? - start;
    Some((start, step))
}

/// SUP-026: an event names a session that the connection has subscribed to, or made.
fn nothing_comes_of_a_session_that_was_not_subscribed_to(transcript: &Transcript) -> Findings {
    each(transcript, |_, channel, findings| {
        let mut heard: BTreeSet<String> = subscribed(channel)
            .keys()
            .map(|id| (*id).to_owned())
            .collect();
        for subscribe in asked(channel, "session/subscribe") {
            heard.insert(subscribe.param("session_id").to_owned());
        }
        for made in asked(channel, "session/new") {
            heard.extend(
                made.given("session_id")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
        }
        for prompt in asked(channel, "session/prompt") {
            heard.insert(prompt.param("session_id").to_owned());
        }
        for update in updates(channel) {
            let session = update.text("session_id");
            let stranger = !session.is_empty() && !heard.contains(session);
            findings.judge(
                stranger
                    .then(|| update.evidence(channel, format!("a session of {heard:?}"), session)),
            );
        }
    })
}

/// What the auditor was told of a session, and when it asked.
fn audited(channels: &[Channel<'_>], session: &str) -> Option<(Duration, Vec<Said>)> {
    let auditor = channels.iter().rfind(|channel| channel.label == AUDITOR)?;
    let asked = auditor.messages.get(*subscribed(auditor).get(session)?)?;
    Some((asked.at, durable(auditor, session)))
}

/// SUP-031: from its subscription on a connection hears the durable events of the session in their order, each once,
/// from the first one of the session on. Where it ends, or the server does, the rest is missing.
fn a_connection_hears_each_durable_event_once(transcript: &Transcript) -> Findings {
    each(transcript, |channels, channel, findings| {
        for (session, at) in subscribed(channel) {
            let Some((audit, stored)) = audited(channels, session) else {
                continue;
            };
            let mut heard = told(channel, session);
            let known = heard.iter().skip(stored.len());
            let late = known.take_while(|(at, _)| *at <= audit).count();
            heard.truncate(stored.len() + late);
            let heard: Vec<Said> = heard.into_iter().map(|(_, it)| it).collect();
            let wrong = !stored.starts_with(&heard);
            findings.judge(wrong.then(|| {
                let place = heard
                    .iter()
                    .zip(&stored)
                    .position(|(one, other)| one != other);
                let place = place.unwrap_or(stored.len());
                let expected = format!("event {place}: {:?}", stored.get(place));
                let got = format!("{:?}, of {} events", heard.get(place), heard.len());
                match channel.messages.get(at) {
                    Some(request) => channel.evidence_at(request, expected, got),
                    None => crate::verdict::Evidence::new(expected, got),
                }
            }));
        }
    })
}

/// SUP-042: a client that is connected when all is over has heard all that is stored.
fn who_stays_hears_everything(transcript: &Transcript) -> Findings {
    let restarts = transcript.entries.iter().filter_map(|entry| {
        matches!(entry.fact, Fact::Target(TargetFact::Started { .. })).then_some(entry.at)
    });
    let begun = restarts.max().unwrap_or_default();
    each(transcript, |channels, channel, findings| {
        let Some(over) = channels.iter().rfind(|channel| channel.label == AUDITOR) else {
            return;
        };
        let stays = channel.opened >= begun && channel.until() >= over.until();
        if !stays || !channel.label.starts_with("client-") {
            return;
        }
        for (session, at) in subscribed(channel) {
            let Some((_, stored)) = audited(channels, session) else {
                continue;
            };
            let heard = durable(channel, session);
            findings.judge((heard.len() < stored.len()).then(|| {
                let expected = format!("all {} durable events", stored.len());
                let got = format!("{} of them; not {:?}", heard.len(), stored.get(heard.len()));
                match channel.messages.get(at) {
                    Some(request) => channel.evidence_at(request, expected, got),
                    None => crate::verdict::Evidence::new(expected, got),
                }
            }));
        }
    })
}

/// SUP-032: after the end of a turn no event of it comes that is for immediate display.
fn what_has_passed_is_not_told_again(transcript: &Transcript) -> Findings {
    each(transcript, |_, channel, findings| {
        let mut over = BTreeSet::new();
        for update in updates(channel) {
            let turn = update.text("turn_id");
            if update.text("durability") == "incremental" && !turn.is_empty() {
                let late = over.contains(turn);
                findings.judge(late.then(|| {
                    let expected = "no incremental event of a turn that is over";
                    update.evidence(channel, expected, update.kind())
                }));
            }
            if update.ends_turn() {
                over.insert(turn.to_owned());
            }
        }
    })
}
