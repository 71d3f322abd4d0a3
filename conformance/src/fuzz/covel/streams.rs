//! The model's rules about what comes on a connection: everything from where it began, once, in order, and nothing
//! else.

use std::collections::BTreeSet;

use super::{
    AUDITOR,
    model::{Due, History, number_of},
};
use crate::{
    checks::{Check, check},
    transcript::{
        Transcript,
        views::covel::{Subscription, is_diagnostic},
    },
    verdict::{Evidence, Findings},
};

/// The rules of this file.
pub const CHECKS: &[Check] = &[
    check!("COV-OVW-023", a_connection_gets_no_event_of_another_session),
    check!("COV-OVW-023", every_stored_value_is_announced_once),
    check!("COV-SUB-028", nothing_is_lost_or_doubled_on_a_connection),
    check!("COV-SUB-033", every_stored_value_has_a_number),
    check!("COV-SUB-090", an_epoch_ends_only_with_a_reason),
    check!("COV-SUB-090", an_epoch_never_comes_back),
];

/// COV-OVW-023: an event that announces a value of another session, or names another session, is not what was missed.
fn a_connection_gets_no_event_of_another_session(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        let owner = |number: u64| {
            let stored = history.stored.iter().find(|value| value.number == number);
            stored.map(|value| value.session.as_str())
        };
        for subscription in &history.subscriptions {
            for (_, frame) in subscription.events() {
                let named = frame.member("sessionId").and_then(|id| id.as_str());
                let value = frame.json.as_ref().and_then(number_of).and_then(owner);
                let stranger = [named, value]
                    .into_iter()
                    .flatten()
                    .any(|session| session != subscription.session);
                findings.judge(stranger.then(|| {
                    let expected = format!("events of session {}", subscription.session);
                    subscription.stream.evidence(frame, expected, frame.text())
                }));
            }
        }
    })
}

/// Where the events of a connection begin: after this seq of its epoch. `None` when that is open, or it was reset.
fn beginning(history: &History<'_>, subscription: &Subscription<'_>) -> Option<(String, u64)> {
    let now = subscription.connected_cursor()?;
    match history.due(subscription) {
        Due::Nothing => Some((now.epoch, now.seq)),
        Due::Replay(seq) => Some((now.epoch, seq)),
        Due::Reset(..) | Due::AnyReset => Some((now.epoch, now.seq)),
        Due::Open => None,
    }
}

/// COV-SUB-028: from where a connection began to the newest event that it got, it got every event of its topics that
/// anybody saw, each once, and none from before. Diagnostic events are not replayed.
fn nothing_is_lost_or_doubled_on_a_connection(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        for subscription in &history.subscriptions {
            let Some((epoch, from)) = beginning(history, subscription) else {
                continue;
            };
            let now = subscription.connected_cursor().map_or(0, |now| now.seq);
            let events = subscription.events();
            let got: Vec<u64> = events
                .iter()
                .filter(|(id, _)| id.epoch == epoch)
                .map(|(id, _)| id.seq)
                .collect();
            let Some(newest) = got.iter().max().copied() else {
                continue;
            };
            let selects = |topic: Option<&str>| {
                subscription.all_topics()
                    || topic.is_some_and(|topic| subscription.topics.iter().any(|t| t == topic))
            };
            let log = history.logs.get(&subscription.session);
            let wanted = log.into_iter().flatten().filter(|((of, seq), event)| {
                *of == epoch
                    && *seq > from
                    && *seq <= newest
                    && !(is_diagnostic(&event.event_type) && *seq <= now)
                    && selects(event.json.get("topic").and_then(|topic| topic.as_str()))
            });
            let wanted: BTreeSet<u64> = wanted.map(|((_, seq), _)| *seq).collect();
            findings.judge(
                difference(&wanted, &got, from).map(|(expected, found)| {
                    subscription.stream.exchange.evidence(expected, found)
                }),
            );
        }
    })
}

/// What is wrong with what was got, when something is.
fn difference(wanted: &BTreeSet<u64>, got: &[u64], from: u64) -> Option<(String, String)> {
    let mut seen = BTreeSet::new();
    let doubled: Vec<u64> = got
        .iter()
        .copied()
        .filter(|seq| !seen.insert(*seq))
        .collect();
    let lost: Vec<&u64> = wanted.iter().filter(|seq| !seen.contains(seq)).collect();
    let early: Vec<&u64> = seen.iter().filter(|seq| **seq <= from).collect();
    if doubled.is_empty() && lost.is_empty() && early.is_empty() {
        return None;
    }
    Some((
        format!("every event after seq {from}, each once: {wanted:?}"),
        format!("lost {lost:?}, doubled {doubled:?}, from before {early:?}"),
    ))
}

/// COV-OVW-023: the auditor, who subscribes from before the first event of the epoch, gets an event for each value that
/// was stored in that epoch, once.
fn every_stored_value_is_announced_once(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        let auditors = history.subscriptions.iter().filter(|subscription| {
            subscription.stream.exchange.label == AUDITOR && !subscription.broke_off
        });
        for auditor in auditors {
            let opened = auditor.stream.exchange.opened;
            if !matches!(history.due(auditor), Due::Replay(0)) {
                continue;
            }
            let numbers: Vec<u64> = auditor
                .events()
                .iter()
                .filter_map(|(_, frame)| number_of(frame.json.as_ref()?))
                .collect();
            let began = history.epoch_began(&auditor.session, opened);
            for value in history.stored_between(&auditor.session, began, opened) {
                let times = numbers
                    .iter()
                    .filter(|number| **number == value.number)
                    .count();
                findings.judge((times != 1).then(|| {
                    let expected = format!("one event for the stored value {}", value.number);
                    let got = format!("{times} of them");
                    auditor.stream.exchange.evidence(expected, got)
                }));
            }
        }
    })
}

/// COV-SUB-033: each stored value is an event, so `system.connected` names at least as many as were stored in its
/// epoch.
fn every_stored_value_has_a_number(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        for subscription in &history.subscriptions {
            let (Some(now), Some(frame)) =
                (subscription.connected_cursor(), subscription.connected())
            else {
                continue;
            };
            let opened = subscription.stream.exchange.opened;
            let began = history.epoch_began(&subscription.session, frame.at);
            let stored = history
                .stored_between(&subscription.session, began, opened)
                .count();
            findings.judge(((now.seq as usize) < stored).then(|| {
                let expected = format!("seq {stored} or greater, after {stored} stored values");
                subscription.stream.evidence(frame, expected, frame.text())
            }));
        }
    })
}

/// COV-SUB-090: while one process runs and no publish is lost, all connections of a session see one epoch. A case is
/// short and its sessions are few, so nothing else can have cleared the state.
fn an_epoch_ends_only_with_a_reason(transcript: &Transcript) -> Findings {
    each_pair(
        transcript,
        |history, (earlier, old), (later, new), findings| {
            let (from, to) = (earlier.stream.exchange.opened, later.stream.exchange.opened);
            let reason = history.life(from) != history.life(to)
                || history.may_have_lost(&later.session, from, to);
            if !reason {
                findings.judge((old != new).then(|| {
                    let expected = format!("epoch {old:?}, as before");
                    later.stream.exchange.evidence(expected, new.clone())
                }));
            }
        },
    )
}

/// COV-SUB-090: an epoch that was over, because a connection has seen another one since, does not come back.
fn an_epoch_never_comes_back(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        let mut over: BTreeSet<(String, String)> = BTreeSet::new();
        let mut current: Vec<(String, String)> = Vec::new();
        for subscription in &history.subscriptions {
            let Some(now) = subscription.connected_cursor() else {
                continue;
            };
            let here = (subscription.session.clone(), now.epoch);
            let back = over.contains(&here);
            findings.judge(back.then(|| {
                let got = here.1.clone();
                subscription
                    .stream
                    .exchange
                    .evidence("an epoch that is not over", got)
            }));
            let (ended, stays) = current
                .drain(..)
                .partition(|known| known.0 == here.0 && known.1 != here.1);
            current = stays;
            let ended: Vec<(String, String)> = ended;
            over.extend(ended);
            current.push(here);
        }
    })
}

/// Judges each connection with the one before it of the same session; both with their epochs.
fn each_pair(
    transcript: &Transcript,
    judge: impl Fn(
        &History<'_>,
        (&Subscription<'_>, String),
        (&Subscription<'_>, String),
        &mut Findings,
    ),
) -> Findings {
    History::judge(transcript, |history, findings| {
        for (place, later) in history.subscriptions.iter().enumerate() {
            let Some(new) = later.connected_cursor() else {
                continue;
            };
            let before = history.subscriptions[..place].iter().rev();
            let same = before.filter(|earlier| earlier.session == later.session);
            let earlier = same
                .filter_map(|earlier| Some((earlier, earlier.connected_cursor()?)))
                .next();
            if let Some((earlier, old)) = earlier {
                judge(history, (earlier, old.epoch), (later, new.epoch), findings);
            }
        }
    })
}

/// Evidence at an exchange, for rules of other files.
pub(super) fn at(subscription: &Subscription<'_>, expected: String, got: String) -> Evidence {
    subscription.stream.exchange.evidence(expected, got)
}
