//! The model's rules about what a cursor is answered with: a replay or a reset, and which.

use serde_json::Value;
use turnwire_spec::covel::limits::REPLAY_EVENTS;

use super::model::{AHEAD, Due, History, OTHER_EPOCH, OVERTAKEN, UNREADABLE};
use crate::{
    checks::{Check, check},
    transcript::{
        Transcript,
        views::{
            covel::{Subscription, is_diagnostic},
            stream::StreamFrame,
        },
    },
    verdict::Findings,
};

/// The rules of this file.
pub const CHECKS: &[Check] = &[
    check!("COV-SUB-023", a_cursor_that_can_be_continued_is),
    check!("COV-SUB-030", a_cursor_that_cannot_be_continued_is_reset),
    check!("COV-SUB-031", without_a_cursor_there_is_no_reset),
    check!("COV-SUB-109", a_reset_names_the_epoch_of_its_connection),
    check!("COV-SUB-110", a_reset_names_the_oldest_event),
    check!("COV-SUB-112", a_reset_names_the_newest_event),
    check!("COV-SUB-117", another_epoch_is_the_reason),
    check!("COV-SUB-120", an_unreadable_cursor_counts_as_another_epoch),
    check!("COV-SUB-121", an_overtaken_cursor_is_a_gap),
    check!("COV-SUB-122", a_cursor_ahead_is_a_gap),
    check!("COV-SUB-128", a_lost_publish_is_told),
];

/// The first reset of a connection that answers a cursor.
fn answer<'s>(subscription: &'s Subscription<'_>) -> Option<(&'s StreamFrame, &'s str)> {
    subscription.resets().into_iter().find_map(|reset| {
        let reason = reset.member("reason")?.as_str()?;
        matches!(reason, "gap" | "epoch-change").then_some((reset, reason))
    })
}

/// COV-SUB-023: a cursor of the present epoch that is not ahead of it, and that a buffer of the public size cannot have
/// moved past, is continued and not reset.
fn a_cursor_that_can_be_continued_is(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        for subscription in &history.subscriptions {
            if let Due::Replay(seq) = history.due(subscription) {
                let reset = answer(subscription);
                findings.judge(reset.map(|(frame, _)| {
                    let expected = format!("what came after seq {seq}, and no reset");
                    subscription.stream.evidence(frame, expected, frame.text())
                }));
            }
        }
    })
}

/// COV-SUB-030: any other cursor is answered with a reset, unless the connection broke off before.
fn a_cursor_that_cannot_be_continued_is_reset(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        for subscription in &history.subscriptions {
            let due = history.due(subscription);
            if !matches!(due, Due::Reset(..) | Due::AnyReset) || subscription.broke_off {
                continue;
            }
            let missing = subscription.resets().is_empty();
            findings.judge(missing.then(|| {
                let asked = subscription.cursor_text().unwrap_or_default();
                let expected = format!("system.reset for cursor {asked:?}");
                subscription.stream.exchange.evidence(expected, "none")
            }));
        }
    })
}

/// COV-SUB-031: a connection without a cursor is not reset for one.
fn without_a_cursor_there_is_no_reset(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        for subscription in &history.subscriptions {
            if history.due(subscription) == Due::Nothing {
                findings.judge(answer(subscription).map(|(frame, _)| {
                    let expected = "no reset for a cursor that was not sent";
                    subscription.stream.evidence(frame, expected, frame.text())
                }));
            }
        }
    })
}

/// COV-SUB-117: the epoch of the cursor is another than that of `system.connected`.
fn another_epoch_is_the_reason(transcript: &Transcript) -> Findings {
    has_reason(transcript, OTHER_EPOCH)
}

/// COV-SUB-120: a text that is no cursor.
fn an_unreadable_cursor_counts_as_another_epoch(transcript: &Transcript) -> Findings {
    has_reason(transcript, UNREADABLE)
}

/// COV-SUB-121: more events came after the cursor than a buffer of the public size holds.
fn an_overtaken_cursor_is_a_gap(transcript: &Transcript) -> Findings {
    has_reason(transcript, OVERTAKEN)
}

/// COV-SUB-122: the seq of the cursor is greater than that of `system.connected`.
fn a_cursor_ahead_is_a_gap(transcript: &Transcript) -> Findings {
    has_reason(transcript, AHEAD)
}

fn has_reason(transcript: &Transcript, requirement: &str) -> Findings {
    History::judge(transcript, |history, findings| {
        for subscription in &history.subscriptions {
            let (Due::Reset(reason, id), Some((frame, given))) =
                (history.due(subscription), answer(subscription))
            else {
                continue;
            };
            if id == requirement {
                findings.judge((given != reason).then(|| {
                    let asked = subscription.cursor_text().unwrap_or_default();
                    let expected = format!("reason {reason:?} for cursor {asked:?}");
                    subscription.stream.evidence(frame, expected, frame.text())
                }));
            }
        }
    })
}

/// The resets that answer a cursor, each with its connection.
fn each_answer(history: &History<'_>, mut judge: impl FnMut(&Subscription<'_>, &StreamFrame)) {
    for subscription in &history.subscriptions {
        if let Some((frame, _)) = answer(subscription) {
            judge(subscription, frame);
        }
    }
}

/// COV-SUB-109: a reset that answers a cursor names the epoch that `system.connected` named a moment before.
fn a_reset_names_the_epoch_of_its_connection(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        each_answer(history, |subscription, frame| {
            let Some(now) = subscription.connected_cursor() else {
                return;
            };
            let named = frame.member("epoch").and_then(Value::as_str);
            findings.judge((named != Some(now.epoch.as_str())).then(|| {
                let expected = format!("epoch {:?}, as in system.connected", now.epoch);
                subscription.stream.evidence(frame, expected, frame.text())
            }));
        });
    })
}

/// COV-SUB-112: `latestSeq` is that of `system.connected`, or newer, and `cursor` says the same.
fn a_reset_names_the_newest_event(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        each_answer(history, |subscription, frame| {
            let (Some(now), Some(latest)) = (
                subscription.connected_cursor(),
                frame.member("latestSeq").and_then(Value::as_u64),
            ) else {
                return;
            };
            findings.judge((latest < now.seq).then(|| {
                let expected = format!("latestSeq {} or newer", now.seq);
                subscription.stream.evidence(frame, expected, frame.text())
            }));
        });
    })
}

/// COV-SUB-110: as long as the buffer cannot have moved on, its oldest event is the first one of the epoch that is kept.
fn a_reset_names_the_oldest_event(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        each_answer(history, |subscription, frame| {
            let member = |name: &str| frame.member(name).and_then(Value::as_u64);
            let (Some(oldest), Some(latest), Some(epoch)) = (
                member("oldestSeq"),
                member("latestSeq"),
                frame.member("epoch").and_then(Value::as_str),
            ) else {
                return;
            };
            let Some(log) = history.logs.get(&subscription.session) else {
                return;
            };
            let kept = log
                .iter()
                .find(|((of, _), event)| of == epoch && !is_diagnostic(&event.event_type));
            let first = kept.map(|((_, seq), _)| *seq).filter(|seq| *seq <= latest);
            if let Some(first) = first.filter(|_| latest <= REPLAY_EVENTS as u64) {
                let wrong = oldest == 0 || oldest > first;
                findings.judge(wrong.then(|| {
                    let expected = format!("oldestSeq {first} or older");
                    subscription.stream.evidence(frame, expected, frame.text())
                }));
            }
        });
    })
}

/// COV-SUB-128: a connection that is there when a turn is committed whose publish fails is told so.
///
/// Only a publish that was told to fail by a request that was accepted counts, and the turn that was played next, to
/// its end.
fn a_lost_publish_is_told(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        for (session, told, over) in history.lost_turns() {
            for subscription in &history.subscriptions {
                let exchange = &subscription.stream.exchange;
                let there = subscription.connected().is_some_and(|it| it.at < told)
                    && exchange.end.is_none_or(|(end, _)| end > told)
                    && history.life(exchange.opened) == history.life(over);
                if subscription.session != session || !there || subscription.broke_off {
                    continue;
                }
                let is_told = subscription.resets().into_iter().any(|reset| {
                    let reason = reset.member("reason").and_then(Value::as_str);
                    reset.at > told && reason == Some("publish-failed")
                });
                findings.judge((!is_told).then(|| {
                    let expected = "system.reset with reason publish-failed";
                    exchange.evidence(expected, "none")
                }));
            }
        }
    })
}
