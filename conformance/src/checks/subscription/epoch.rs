//! Epochs, resets and replay states: when a cursor is gone, and what is said about it.

use std::time::Duration;

use turnwire_spec::cursor::CursorBuf;

use crate::{
    checks::Check,
    transcript::{
        Fact, TargetFact, Transcript,
        views::{
            covel::{self, Subscription},
            http::exchanges,
        },
    },
    verdict::Findings,
};

/// The checks of this file, in catalogue order.
pub const CHECKS: &[Check] = &[
    check!("COV-SUB-030", unbridgeable_cursor_gets_a_reset),
    check!(timed "COV-SUB-079", seq_counts_one_session),
    check!(timed "COV-SUB-080", connections_at_a_time_share_the_epoch),
    check!(timed "COV-SUB-081", restart_makes_a_new_epoch),
    check!(timed "COV-SUB-082", rebuilt_state_has_a_new_epoch),
    check!("COV-SUB-085", cursor_of_a_gone_epoch_is_not_continued),
    check!(timed "COV-SUB-090", epoch_stays_while_connected),
    check!(timed "COV-SUB-095", cleared_state_says_so),
    check!("COV-SUB-100", reset_comes_in_place_of_a_replay),
    check!(timed "COV-SUB-109", reset_names_the_current_epoch),
    check!(timed "COV-SUB-112", reset_names_the_newest_seq),
    check!(timed "COV-SUB-180", least_recently_used_goes_first),
];

/// COV-SUB-030: a cursor that cannot be bridged gets `system.reset`.
///
/// Judges connections whose cursor does not parse, or has another epoch than `system.connected`, or is ahead.
fn unbridgeable_cursor_gets_a_reset(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for subscription in covel::subscriptions(transcript) {
        let (Some(text), Some(now)) = (subscription.cursor_text(), subscription.connected_cursor())
        else {
            continue;
        };
        let bridgeable = subscription
            .cursor()
            .is_some_and(|cursor| cursor.epoch == now.epoch && cursor.seq <= now.seq);
        if !bridgeable {
            let missing = subscription.resets().is_empty();
            if missing && subscription.broke_off {
                continue;
            }
            findings.judge(missing.then(|| {
                subscription
                    .stream
                    .exchange
                    .evidence(format!("system.reset for cursor {text:?} at {now}"), "none")
            }));
        }
    }
    findings
}

/// COV-SUB-079: events of other sessions use up no numbers.
///
/// Judges two neighbouring events of a connection between which the harness made at least twenty successful
/// writes in other sessions: the seq rose by less than that.
fn seq_counts_one_session(transcript: &Transcript) -> Findings {
    const PATH: &str = "/api/sessions/:id/plugin-data/:plugin/:ns/:key";
    const ENOUGH: usize = 20;
    let all = exchanges(transcript);
    let writes: Vec<(Duration, String)> = all
        .iter()
        .filter(|exchange| exchange.is("PUT", PATH) && exchange.status() == Some(200))
        .filter_map(|exchange| Some((exchange.opened, exchange.segment(PATH, "id")?)))
        .collect();
    let mut findings = Findings::none();
    for subscription in covel::subscriptions(transcript) {
        for pair in subscription.events().windows(2) {
            let [(before, earlier), (after, later)] = pair else {
                continue;
            };
            let between = writes.iter().filter(|(at, session)| {
                *session != subscription.session && *at > earlier.at && *at < later.at
            });
            let elsewhere = between.count();
            if elsewhere >= ENOUGH && before.epoch == after.epoch {
                let rose = after.seq.saturating_sub(before.seq);
                findings.judge((rose >= elsewhere as u64).then(|| {
                    let expected = format!("a rise below the {elsewhere} events of other sessions");
                    subscription
                        .stream
                        .evidence(later, expected, format!("a rise of {rose}"))
                }));
            }
        }
    }
    findings
}

/// COV-SUB-080: connections of one session that are open at the same time see the same epoch.
fn connections_at_a_time_share_the_epoch(transcript: &Transcript) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let mut findings = Findings::none();
    for (index, later) in subscriptions.iter().enumerate() {
        for earlier in &subscriptions[..index] {
            let (Some(a), Some(b)) = (earlier.connected_cursor(), later.connected_cursor()) else {
                continue;
            };
            let undisturbed = earlier.resets().is_empty() && later.resets().is_empty();
            if earlier.session == later.session && open_together(earlier, later) && undisturbed {
                findings.judge((a.epoch != b.epoch).then(|| {
                    later
                        .stream
                        .exchange
                        .evidence(format!("epoch {:?}", a.epoch), format!("{:?}", b.epoch))
                }));
            }
        }
    }
    findings
}

fn open_together(earlier: &Subscription<'_>, later: &Subscription<'_>) -> bool {
    let end = earlier
        .stream
        .exchange
        .end
        .map_or(Duration::MAX, |(at, _)| at);
    later
        .stream
        .frames
        .first()
        .is_some_and(|frame| frame.at < end)
}

/// Times at which the target was stopped or killed.
fn restarts(transcript: &Transcript) -> Vec<Duration> {
    let gone = |fact: &Fact| matches!(fact, Fact::Target(TargetFact::Stopped | TargetFact::Killed));
    transcript
        .entries
        .iter()
        .filter(|entry| gone(&entry.fact))
        .map(|entry| entry.at)
        .collect()
}

/// Times at which a publish was told to fail, which renews the epoch unseen when nobody is connected.
fn losses(transcript: &Transcript) -> Vec<Duration> {
    let ordered = exchanges(transcript).into_iter().filter(|exchange| {
        let order = exchange
            .request_json()
            .filter(|_| exchange.request.method == "POST");
        order.is_some_and(|order| order["action"] == "fail-publish")
    });
    ordered.map(|exchange| exchange.opened).collect()
}

/// COV-SUB-081: after a restart of the process the epoch of a session is another.
fn restart_makes_a_new_epoch(transcript: &Transcript) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let mut findings = Findings::none();
    for restart in restarts(transcript) {
        for later in subscriptions
            .iter()
            .filter(|later| later.stream.exchange.opened > restart)
        {
            let same_session = |earlier: &&Subscription<'_>| {
                earlier.session == later.session && earlier.stream.exchange.opened < restart
            };
            let Some(now) = later.connected_cursor() else {
                continue;
            };
            for old in subscriptions
                .iter()
                .filter(same_session)
                .filter_map(Subscription::connected_cursor)
            {
                let same = old.epoch == now.epoch;
                findings.judge(same.then(|| {
                    later.stream.exchange.evidence(
                        format!("another epoch than {:?}", old.epoch),
                        now.to_string(),
                    )
                }));
            }
        }
    }
    findings
}

/// COV-SUB-082: a replay state that was cleared and built again has a new epoch.
///
/// A state whose newest seq fell below a cursor that it had issued was cleared; its epoch must not be the
/// cursor's then. Judges reconnects under `after-pressure`, whatever became of the state.
fn rebuilt_state_has_a_new_epoch(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for subscription in under(transcript, "after-pressure") {
        let (Some(old), Some(now)) = (subscription.cursor(), subscription.connected_cursor())
        else {
            continue;
        };
        let rebuilt = now.seq < old.seq || !subscription.resets().is_empty();
        if rebuilt {
            findings.judge((old.epoch == now.epoch).then(|| {
                subscription.stream.exchange.evidence(
                    format!("another epoch than {:?}", old.epoch),
                    now.to_string(),
                )
            }));
        }
    }
    findings
}

fn under<'t>(transcript: &'t Transcript, label: &str) -> Vec<Subscription<'t>> {
    covel::subscriptions(transcript)
        .into_iter()
        .filter(|s| s.stream.exchange.label == label)
        .collect()
}

/// COV-SUB-085: a cursor of another than the current epoch is never continued, whatever its seq.
fn cursor_of_a_gone_epoch_is_not_continued(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for subscription in covel::subscriptions(transcript) {
        let (Some(cursor), Some(now)) = (subscription.cursor(), subscription.connected_cursor())
        else {
            continue;
        };
        if cursor.epoch != now.epoch {
            let (resets, replayed) = (subscription.resets().len(), subscription.replayed().len());
            let continued = (resets == 0 && !subscription.broke_off) || replayed > 0;
            findings.judge(continued.then(|| {
                let got = format!("{resets} resets, {replayed} events replayed");
                subscription
                    .stream
                    .exchange
                    .evidence("a reset and no replay", got)
            }));
        }
    }
    findings
}

/// COV-SUB-090: the epoch of a connection's ids stays as long as no reset is sent.
fn epoch_stays_while_connected(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for subscription in covel::subscriptions(transcript)
        .iter()
        .filter(|s| s.resets().is_empty())
    {
        let Some(connected) = subscription.connected_cursor() else {
            continue;
        };
        for (id, frame) in subscription.events() {
            let changed = id.epoch != connected.epoch;
            findings.judge(changed.then(|| {
                subscription.stream.evidence(
                    frame,
                    format!("epoch {:?}", connected.epoch),
                    id.to_string(),
                )
            }));
        }
    }
    findings
}

/// COV-SUB-095: the old cursor of a released state is continued, or answered with `epoch-change`.
///
/// Judges reconnects under `after-pressure`. That the reason is right is COV-SUB-118.
fn cleared_state_says_so(transcript: &Transcript) -> Findings {
    Findings::each(under(transcript, "after-pressure"), |subscription| {
        let silent = subscription.resets().is_empty() && subscription.replayed().is_empty();
        silent.then(|| {
            subscription
                .stream
                .exchange
                .evidence("a replay or a reset", "neither")
        })
    })
}

/// COV-SUB-100: with a reset in answer to a cursor nothing is replayed.
fn reset_comes_in_place_of_a_replay(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for subscription in covel::subscriptions(transcript) {
        let (Some(_), Some(reset)) = (
            subscription.cursor_text(),
            subscription.answering_resets().first().copied(),
        ) else {
            continue;
        };
        let early = subscription
            .stream
            .events()
            .find(|frame| frame.index < reset.index && !frame.event_type().starts_with("system."));
        findings.judge(early.map(|frame| {
            subscription
                .stream
                .evidence(frame, "the reset and no replay", frame.text())
        }));
    }
    findings
}

/// COV-SUB-109: the epoch of a reset is the one that later ids have.
///
/// Compared with the next connection of the session that is opened after it, unless the target was restarted, a publish was lost, or
/// that connection's own cursor was answered with a reset for another new epoch in between.
fn reset_names_the_current_epoch(transcript: &Transcript) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let (restarts, losses) = (restarts(transcript), losses(transcript));
    let mut findings = Findings::none();
    for subscription in &subscriptions {
        for reset in subscription.resets() {
            let Some(epoch) = reset.member("epoch").and_then(|epoch| epoch.as_str()) else {
                continue;
            };
            let later = |id: &CursorBuf, at: Duration| at > reset.at && !id.epoch.is_empty();
            let own = subscription
                .events()
                .into_iter()
                .map(|(id, frame)| (id, frame.at));
            let others = subscriptions
                .iter()
                .filter(|other| other.session == subscription.session);
            let connected =
                others.filter_map(|other| Some((other.connected_cursor()?, other.connected()?.at)));
            let next = own
                .chain(connected)
                .filter(|(id, at)| later(id, *at))
                .min_by_key(|(_, at)| *at);
            let Some((next, at)) = next else { continue };
            if restarts
                .iter()
                .chain(&losses)
                .any(|change| (reset.at..at).contains(change))
            {
                continue;
            }
            findings.judge((next.epoch != epoch).then(|| {
                subscription.stream.evidence(
                    reset,
                    format!("epoch {:?}, as in the next id", next.epoch),
                    reset.text(),
                )
            }));
        }
    }
    findings
}

/// COV-SUB-112: `latestSeq` of a reset is the newest seq of the epoch.
///
/// Judges resets that answer a cursor, against a subscriber to all topics: not older than what had arrived there
/// before the connection was opened and, when one is connected at that time, not newer than what it ever saw.
fn reset_names_the_newest_seq(transcript: &Transcript) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let mut findings = Findings::none();
    for subscription in subscriptions
        .iter()
        .filter(|subscription| subscription.cursor_text().is_some())
    {
        let Some(reset) = subscription.resets().first().copied() else {
            continue;
        };
        let (Some(epoch), Some(latest)) = (
            reset.member("epoch").and_then(|epoch| epoch.as_str()),
            reset.member("latestSeq").and_then(|seq| seq.as_i64()),
        ) else {
            continue;
        };
        let watchers = subscriptions
            .iter()
            .filter(|other| other.session == subscription.session && other.all_topics());
        let seen: Vec<(u64, Duration)> = watchers
            .flat_map(|other| {
                other
                    .events()
                    .into_iter()
                    .map(|(id, frame)| (id, frame.at))
                    .collect::<Vec<_>>()
            })
            .filter(|(id, _)| id.epoch == epoch)
            .map(|(id, at)| (id.seq, at))
            .collect();
        let before = seen
            .iter()
            .filter(|(_, at)| *at <= subscription.stream.exchange.opened)
            .map(|(seq, _)| *seq)
            .max();
        let newest = seen.iter().map(|(seq, _)| *seq).max();
        if let (Some(before), Some(newest)) = (before, newest) {
            let watched = covel::watched(
                &subscriptions,
                &subscription.session,
                subscription.stream.exchange.opened,
                reset.at,
            );
            let fits = |latest| latest >= before && (!watched || latest <= newest);
            let right = u64::try_from(latest).is_ok_and(fits);
            findings.judge((!right).then(|| {
                subscription.stream.evidence(
                    reset,
                    format!("latestSeq {before} or newer"),
                    reset.text(),
                )
            }));
        }
    }
    findings
}

/// COV-SUB-180: under pressure the state that was used least recently goes first.
///
/// One more session than the target holds costs at most the least recently used one: the session that was used
/// again just before keeps its state. Judged when one of the two old sessions lost its state.
fn least_recently_used_goes_first(transcript: &Transcript) -> Findings {
    let lost = |label| {
        under(transcript, label)
            .first()
            .map(|subscription| !subscription.resets().is_empty())
    };
    let (Some(recent), Some(old)) = (lost("recently-used"), lost("least-recently-used")) else {
        return Findings::none();
    };
    let mut findings = Findings::none();
    if recent || old {
        let exchange = under(transcript, "recently-used")
            .into_iter()
            .next()
            .map(|s| s.stream.exchange);
        findings.judge(
            exchange.filter(|_| recent).map(|exchange| {
                exchange.evidence("the session used last continued", "system.reset")
            }),
        );
    }
    findings
}
