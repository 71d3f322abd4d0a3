//! What a connection with a cursor gets: replay, then live events, nothing lost and nothing twice.
//!
//! The measure is the session's log: what all subscribers of the transcript together saw
//! ([`covel::logs`]). A connection is judged only where the log covers it.

use std::collections::BTreeMap;

use turnwire_spec::cursor::CursorBuf;

use crate::{
    checks::Check,
    transcript::{
        End, Transcript,
        views::covel::{self, Log, Subscription, due_after},
    },
    verdict::{Evidence, Findings},
};

/// The checks of this file, in catalogue order.
pub const CHECKS: &[Check] = &[
    check!(timed "COV-OVW-023", reconnect_gets_exactly_what_it_missed),
    check!("COV-SUB-020", query_cursor_is_honoured),
    check!("COV-SUB-021", header_cursor_is_honoured),
    check!("COV-SUB-022", query_cursor_wins),
    check!("COV-SUB-023", replay_lacks_nothing),
    check!("COV-SUB-024", replay_holds_nothing_up_to_the_cursor),
    check!("COV-SUB-025", replay_is_in_order_each_once),
    check!("COV-SUB-026", replayed_frame_equals_the_live_one),
    check!("COV-SUB-027", replay_precedes_live_events),
    check!(timed "COV-SUB-028", nothing_lost_or_doubled_at_the_seam),
    check!("COV-SUB-029", newest_cursor_replays_nothing),
    check!("COV-SUB-031", no_cursor_no_replay),
    check!(timed "COV-SUB-033", connected_cursor_is_the_newest_id),
    check!(timed "COV-SUB-034", connected_cursor_counts_all_topics),
    check!(timed "COV-SUB-036", connected_cursor_can_be_continued),
    check!("COV-SUB-076", id_continues_right_after_itself),
    check!("COV-SUB-078", seq_rises),
];

/// A connection whose cursor can be continued: of the current epoch and not ahead of it.
struct Resumed<'s, 't> {
    subscription: &'s Subscription<'t>,
    cursor: CursorBuf,
    /// Newest event when the connection was opened, by `system.connected`.
    now: CursorBuf,
    /// Seqs of the log after the cursor, up to `now`.
    due: Vec<u64>,
    /// Seqs that were replayed, in the order received.
    got: Vec<u64>,
}

impl Resumed<'_, '_> {
    fn evidence(&self, expected: impl Into<String>, got: impl Into<String>) -> Evidence {
        self.subscription.stream.exchange.evidence(expected, got)
    }
}

/// The connections of a transcript that can be continued and were not reset, to all topics.
fn resumed<'s, 't>(
    subscriptions: &'s [Subscription<'t>],
    logs: &BTreeMap<String, Log>,
) -> Vec<Resumed<'s, 't>> {
    let read = |subscription: &'s Subscription<'t>| {
        let (cursor, now) = (subscription.cursor()?, subscription.connected_cursor()?);
        let current =
            cursor.epoch == now.epoch && cursor.seq <= now.seq && subscription.all_topics();
        let log = logs.get(&subscription.session)?;
        let due = due_after(log, &cursor, now.seq);
        let got: Vec<u64> = subscription
            .replayed()
            .iter()
            .map(|(id, _)| id.seq)
            .collect();
        let whole = !cut_short(subscription, &due, &got);
        (current && whole && subscription.resets().is_empty()).then_some(Resumed {
            subscription,
            cursor,
            now,
            due,
            got,
        })
    };
    subscriptions.iter().filter_map(read).collect()
}

/// Whether the connection ended in the middle of a replay that was right so far.
fn cut_short(subscription: &Subscription<'_>, due: &[u64], got: &[u64]) -> bool {
    let closed = matches!(
        subscription.stream.exchange.end,
        Some((_, End::ClosedByHarness))
    ) && !got.is_empty();
    let ended = closed || subscription.broke_off;
    ended && got.len() < due.len() && due.starts_with(got)
}

/// Runs a judgement over all connections that can be continued.
fn each_resumed(
    transcript: &Transcript,
    judge: impl Fn(&Resumed<'_, '_>, &mut Findings),
) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let logs = covel::logs(&subscriptions);
    let mut findings = Findings::none();
    for connection in resumed(&subscriptions, &logs) {
        judge(&connection, &mut findings);
    }
    findings
}

/// COV-OVW-023: a reconnect with a valid cursor gets exactly the events that it missed, before live ones.
fn reconnect_gets_exactly_what_it_missed(transcript: &Transcript) -> Findings {
    each_resumed(transcript, |connection, findings| {
        if !connection.due.is_empty() {
            let wrong = connection.got != connection.due;
            findings.judge(wrong.then(|| {
                connection.evidence(
                    format!("replay of seq {:?}", connection.due),
                    format!("{:?}", connection.got),
                )
            }));
        }
    })
}

/// COV-SUB-020: a cursor in the query parameter `lastEventId` is honoured: something is replayed when
/// something is due. That it is all of it is COV-SUB-023.
fn query_cursor_is_honoured(transcript: &Transcript) -> Findings {
    honoured(transcript, |subscription| {
        subscription.query_cursor.is_some() && subscription.header_cursor.is_none()
    })
}

/// COV-SUB-021: a cursor in the header `Last-Event-ID` is honoured.
fn header_cursor_is_honoured(transcript: &Transcript) -> Findings {
    honoured(transcript, |subscription| {
        subscription.header_cursor.is_some() && subscription.query_cursor.is_none()
    })
}

fn honoured(transcript: &Transcript, chosen: impl Fn(&Subscription<'_>) -> bool) -> Findings {
    each_resumed(transcript, |connection, findings| {
        if chosen(connection.subscription) && !connection.due.is_empty() {
            let ignored = connection.got.is_empty();
            findings.judge(ignored.then(|| {
                connection.evidence(
                    format!("a replay after {}", connection.cursor),
                    "nothing replayed",
                )
            }));
        }
    })
}

/// COV-SUB-022: when both are sent, the query parameter is used.
///
/// Judges connections with two different cursors: what is replayed fits the one in the query.
fn query_cursor_wins(transcript: &Transcript) -> Findings {
    each_resumed(transcript, |connection, findings| {
        let (query, header) = (
            &connection.subscription.query_cursor,
            &connection.subscription.header_cursor,
        );
        if query.is_some() && header.is_some() && query != header {
            let wrong = connection.got.first() != connection.due.first();
            findings.judge(wrong.then(|| {
                let expected = format!(
                    "a replay from {:?}, after the cursor in the query",
                    connection.due.first()
                );
                connection.evidence(expected, format!("{:?}", connection.got))
            }));
        }
    })
}

/// COV-SUB-023: every cached event after the cursor is replayed. Judges connections with a replay.
fn replay_lacks_nothing(transcript: &Transcript) -> Findings {
    each_resumed(transcript, |connection, findings| {
        if !connection.got.is_empty() {
            let missing: Vec<&u64> = connection
                .due
                .iter()
                .filter(|seq| !connection.got.contains(seq))
                .collect();
            findings.judge((!missing.is_empty()).then(|| {
                connection.evidence(
                    format!("replay of seq {:?}", connection.due),
                    format!("without {missing:?}"),
                )
            }));
        }
    })
}

/// COV-SUB-024: no event with the cursor's seq or a smaller one comes.
fn replay_holds_nothing_up_to_the_cursor(transcript: &Transcript) -> Findings {
    each_resumed(transcript, |connection, findings| {
        let early = connection
            .got
            .iter()
            .find(|seq| **seq <= connection.cursor.seq);
        findings.judge(early.map(|seq| {
            connection.evidence(
                format!("only events after seq {}", connection.cursor.seq),
                format!("seq {seq}"),
            )
        }));
    })
}

/// COV-SUB-025: the replay comes in ascending order of seq, each event once.
fn replay_is_in_order_each_once(transcript: &Transcript) -> Findings {
    each_resumed(transcript, |connection, findings| {
        if connection.got.len() > 1 {
            let wrong = connection.got.windows(2).any(|pair| pair[0] >= pair[1]);
            findings.judge(
                wrong.then(|| {
                    connection.evidence("seq that rises", format!("{:?}", connection.got))
                }),
            );
        }
    })
}

/// COV-SUB-026: a replayed event has the id, type and payload that it had live.
///
/// Compares event line, id line and data with what the first subscriber got that saw it.
fn replayed_frame_equals_the_live_one(transcript: &Transcript) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let logs = covel::logs(&subscriptions);
    let mut findings = Findings::none();
    for connection in resumed(&subscriptions, &logs) {
        for (id, frame) in connection.subscription.replayed() {
            let live = logs
                .get(&connection.subscription.session)
                .and_then(|log| log.get(&(id.epoch, id.seq)));
            let Some(live) =
                live.filter(|live| live.exchange != connection.subscription.stream.exchange.id)
            else {
                continue;
            };
            let same =
                live.event_type == frame.event_type() && Some(&live.json) == frame.json.as_ref();
            findings.judge((!same).then(|| {
                let got = frame.text();
                connection.subscription.stream.evidence(
                    frame,
                    String::from_utf8_lossy(&live.bytes),
                    got,
                )
            }));
        }
    }
    findings
}

/// COV-SUB-027: no live event precedes a replayed one.
///
/// Judges connections that got both: after the first event newer than `system.connected`'s cursor, no event up
/// to that cursor comes.
fn replay_precedes_live_events(transcript: &Transcript) -> Findings {
    each_resumed(transcript, |connection, findings| {
        let events = connection.subscription.events();
        let is_live =
            |id: &CursorBuf| id.epoch == connection.now.epoch && id.seq > connection.now.seq;
        let Some(first_live) = events.iter().position(|(id, _)| is_live(id)) else {
            return;
        };
        if connection.got.is_empty() {
            return;
        }
        let late = events[first_live..].iter().find(|(id, _)| !is_live(id));
        findings.judge(late.map(|(id, frame)| {
            let expected = format!("replayed events before seq {}", events[first_live].0.seq);
            connection
                .subscription
                .stream
                .evidence(frame, expected, format!("seq {}", id.seq))
        }));
    })
}

/// COV-SUB-028: an event that is emitted during the replay is delivered exactly once.
///
/// Judges connections that got live events: from the cursor to the newest event received, each event of the log
/// comes once.
fn nothing_lost_or_doubled_at_the_seam(transcript: &Transcript) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let logs = covel::logs(&subscriptions);
    let mut findings = Findings::none();
    for connection in resumed(&subscriptions, &logs) {
        let mut got: Vec<u64> = connection
            .subscription
            .events()
            .iter()
            .map(|(id, _)| id.seq)
            .collect();
        got.sort_unstable();
        let Some(&last) = got.last().filter(|last| **last > connection.now.seq) else {
            continue;
        };
        let Some(log) = logs.get(&connection.subscription.session) else {
            continue;
        };
        // Diagnostic events are live only, so nobody owes them.
        let live_only = |seq: &u64| {
            let event = log.get(&(connection.now.epoch.clone(), *seq));
            event.is_some_and(|event| covel::is_diagnostic(&event.event_type))
        };
        got.retain(|seq| !live_only(seq));
        let due = due_after(log, &connection.cursor, last);
        findings.judge(
            (got != due)
                .then(|| connection.evidence(difference(&due, &got).0, difference(&due, &got).1)),
        );
    }
    findings
}

fn difference(due: &[u64], got: &[u64]) -> (String, String) {
    let lost: Vec<&u64> = due.iter().filter(|seq| !got.contains(seq)).collect();
    let doubled: Vec<u64> = got
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
        .collect();
    (
        format!("{} events, each once", due.len()),
        format!("lost seq {lost:?}, doubled seq {doubled:?}"),
    )
}

/// COV-SUB-029: a cursor that equals the newest id is continued without a replay and without a reset.
fn newest_cursor_replays_nothing(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for subscription in covel::subscriptions(transcript) {
        let newest = subscription
            .cursor()
            .is_some_and(|cursor| subscription.connected_cursor() == Some(cursor));
        if newest {
            let stray = subscription
                .replayed()
                .into_iter()
                .map(|(_, frame)| frame)
                .chain(subscription.answering_resets())
                .next();
            findings.judge(stray.map(|frame| {
                subscription
                    .stream
                    .evidence(frame, "neither a replay nor a reset", frame.text())
            }));
        }
    }
    findings
}

/// COV-SUB-031: a connection without a cursor gets neither older events nor a cursor's reset.
fn no_cursor_no_replay(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for subscription in covel::subscriptions(transcript) {
        let (None, Some(_)) = (subscription.cursor_text(), subscription.connected()) else {
            continue;
        };
        if subscription.is_ambiguous() {
            continue;
        }
        let resets = subscription.answering_resets();
        let stray = subscription
            .replayed()
            .into_iter()
            .map(|(_, frame)| frame)
            .chain(resets)
            .next();
        findings.judge(stray.map(|frame| {
            subscription
                .stream
                .evidence(frame, "live events only", frame.text())
        }));
    }
    findings
}

/// COV-SUB-033: `system.connected` names the newest id of the session. Judges connections to all topics.
fn connected_cursor_is_the_newest_id(transcript: &Transcript) -> Findings {
    connected_cursors(transcript, |subscription| subscription.all_topics())
}

/// COV-SUB-034: the newest id counts the events of all topics. Judges connections to some topics.
fn connected_cursor_counts_all_topics(transcript: &Transcript) -> Findings {
    connected_cursors(transcript, |subscription| !subscription.all_topics())
}

/// The cursor is at least the newest id that a subscriber to all topics had before the connection was opened,
/// and, when one is connected at that time, at most the newest that it has ever seen.
fn connected_cursors(
    transcript: &Transcript,
    chosen: impl Fn(&Subscription<'_>) -> bool,
) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let mut findings = Findings::none();
    for subscription in subscriptions
        .iter()
        .filter(|subscription| chosen(subscription))
    {
        let opened = subscription.stream.exchange.opened;
        let seen: Vec<(CursorBuf, std::time::Duration)> = subscriptions
            .iter()
            .filter(|other| other.session == subscription.session && other.all_topics())
            .flat_map(|other| {
                other
                    .events()
                    .into_iter()
                    .map(|(id, frame)| (id, frame.at))
                    .collect::<Vec<_>>()
            })
            .collect();
        let before = seen
            .iter()
            .filter(|(_, at)| *at <= opened)
            .max_by_key(|(_, at)| *at)
            .map(|(id, _)| id);
        let (Some(before), Some(frame)) = (before, subscription.connected()) else {
            continue;
        };
        let Some(cursor) = subscription.connected_cursor() else {
            continue;
        };
        if cursor.epoch != before.epoch {
            continue;
        }
        let newest = seen
            .iter()
            .filter(|(id, _)| id.epoch == before.epoch)
            .map(|(id, _)| id.seq)
            .max();
        let newest = newest.filter(|_| {
            covel::watched(
                &subscriptions,
                &subscription.session,
                subscription.stream.exchange.opened,
                frame.at,
            )
        });
        let right = cursor.seq >= before.seq && newest.is_none_or(|newest| cursor.seq <= newest);
        findings.judge((!right).then(|| {
            subscription
                .stream
                .evidence(frame, format!("cursor {before} or newer"), frame.text())
        }));
    }
    findings
}

/// COV-SUB-036: the cursor of an earlier `system.connected` can be continued: no reset, and the events since.
fn connected_cursor_can_be_continued(transcript: &Transcript) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let logs = covel::logs(&subscriptions);
    let mut findings = Findings::none();
    for subscription in subscriptions
        .iter()
        .filter(|subscription| subscription.all_topics())
    {
        let opened = subscription.stream.exchange.opened;
        let told = |other: &&Subscription<'_>| {
            let cursor = other
                .connected()
                .and_then(|frame| frame.member("cursor")?.as_str());
            other.session == subscription.session
                && other.stream.exchange.opened < opened
                && cursor == subscription.cursor_text()
        };
        let (Some(cursor), Some(now)) = (subscription.cursor(), subscription.connected_cursor())
        else {
            continue;
        };
        let overtaken = subscription.was_reset_for("gap"); // which is COV-SUB-121's matter
        let was_told = subscriptions.iter().any(|other| told(&other));
        if !was_told || cursor.epoch != now.epoch || overtaken {
            continue;
        }
        let due = logs
            .get(&subscription.session)
            .map(|log| due_after(log, &cursor, now.seq))
            .unwrap_or_default();
        let got: Vec<u64> = subscription
            .replayed()
            .iter()
            .map(|(id, _)| id.seq)
            .collect();
        let whole = got == due || cut_short(subscription, &due, &got);
        let right = whole && subscription.answering_resets().is_empty();
        findings.judge((!right).then(|| {
            let got = format!("seq {got:?}, {} resets", subscription.resets().len());
            subscription
                .stream
                .exchange
                .evidence(format!("seq {due:?} and no reset"), got)
        }));
    }
    findings
}

/// COV-SUB-076: the id of any event, sent back unchanged, continues right after that event.
///
/// Judges connections whose cursor is the id of a logged event that has a successor.
fn id_continues_right_after_itself(transcript: &Transcript) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let logs = covel::logs(&subscriptions);
    let mut findings = Findings::none();
    for subscription in subscriptions
        .iter()
        .filter(|subscription| subscription.all_topics())
    {
        let (Some(cursor), Some(now)) = (subscription.cursor(), subscription.connected_cursor())
        else {
            continue;
        };
        let Some(log) = logs.get(&subscription.session) else {
            continue;
        };
        if cursor.epoch != now.epoch || !log.contains_key(&(cursor.epoch.clone(), cursor.seq)) {
            continue;
        }
        let Some(&successor) = due_after(log, &cursor, now.seq).first() else {
            continue;
        };
        if subscription.was_reset_for("gap") {
            continue; // the buffer has moved past it, which is COV-SUB-121's matter
        }
        let first = subscription.replayed().first().map(|(id, _)| id.seq);
        if first.is_none() && subscription.broke_off {
            continue;
        }
        findings.judge((first != Some(successor)).then(|| {
            subscription
                .stream
                .exchange
                .evidence(format!("first event seq {successor}"), format!("{first:?}"))
        }));
    }
    findings
}

/// COV-SUB-078: while the epoch stays, each event of a connection has a greater seq than the one before.
fn seq_rises(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for subscription in covel::subscriptions(transcript) {
        for pair in subscription.events().windows(2) {
            let [(before, _), (after, frame)] = pair else {
                continue;
            };
            if before.epoch == after.epoch {
                let wrong = after.seq <= before.seq;
                findings.judge(wrong.then(|| {
                    subscription.stream.evidence(
                        frame,
                        format!("seq after {}", before.seq),
                        format!("seq {}", after.seq),
                    )
                }));
            }
        }
    }
    findings
}
