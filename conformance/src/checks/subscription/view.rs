//! The join of the session view and the subscription: `eventCursor`.

use std::time::Duration;

use serde_json::Value;
use turnwire_spec::cursor::CursorBuf;

use crate::{
    checks::Check,
    transcript::{
        Transcript,
        views::{
            covel::{self, Subscription},
            http::{Exchange, exchanges},
        },
    },
    verdict::Findings,
};

/// The checks of this file.
pub const CHECKS: &[Check] = &[
    check!(timed "COV-SUB-041", view_cursor_is_the_newest_id),
    check!(timed "COV-SUB-042", view_holds_what_its_cursor_covers),
    check!(timed "COV-SUB-044", events_after_the_view_are_replayed),
    check!("COV-SUB-172", view_cursor_is_accepted),
];

/// A view with its cursor.
struct View<'a> {
    exchange: Exchange<'a>,
    session: String,
    text: String,
    answered: Duration,
}

fn views(transcript: &Transcript) -> Vec<View<'_>> {
    const PATH: &str = "/api/sessions/:id/view";
    let good = exchanges(transcript)
        .into_iter()
        .filter(|e| e.is("GET", PATH) && e.status() == Some(200));
    good.filter_map(|exchange| {
        Some(View {
            session: exchange.segment(PATH, "id")?,
            text: exchange.json()?.get("eventCursor")?.as_str()?.to_owned(),
            answered: exchange.end?.0,
            exchange,
        })
    })
    .collect()
}

/// Newest id that one of these subscribers had received by then.
fn newest(watchers: &[&Subscription<'_>], by: Duration) -> Option<CursorBuf> {
    let seen = watchers.iter().flat_map(|watcher| watcher.events());
    seen.filter(|(_, frame)| frame.at <= by)
        .map(|(id, _)| id)
        .max_by_key(|id| id.seq)
}

fn watchers<'s, 't>(
    subscriptions: &'s [Subscription<'t>],
    session: &str,
) -> Vec<&'s Subscription<'t>> {
    subscriptions
        .iter()
        .filter(|subscription| subscription.session == session && subscription.all_topics())
        .collect()
}

/// COV-SUB-041: `eventCursor` is the newest id from before the view was read.
///
/// Judges views of sessions with a subscriber to all topics: the cursor is not older than what had arrived there
/// before the view was asked for and, when one is connected at that time, not newer than what had arrived a moment
/// after the answer.
fn view_cursor_is_the_newest_id(transcript: &Transcript) -> Findings {
    const MOMENT: Duration = Duration::from_millis(500);
    let subscriptions = covel::subscriptions(transcript);
    let mut findings = Findings::none();
    for view in views(transcript) {
        let watchers = watchers(&subscriptions, &view.session);
        let (Some(cursor), Some(before)) = (
            covel::cursor(&view.text),
            newest(&watchers, view.exchange.opened),
        ) else {
            continue;
        };
        let after = newest(&watchers, view.answered + MOMENT).unwrap_or_else(|| before.clone());
        if before.epoch != after.epoch || cursor.epoch != before.epoch {
            continue; // the state was renewed meanwhile: other requirements' matter
        }
        // What comes while nobody watches is newer than what the watchers had.
        let watched = covel::watched(
            &subscriptions,
            &view.session,
            view.exchange.opened,
            view.answered,
        );
        let right = cursor.seq >= before.seq && (!watched || cursor.seq <= after.seq);
        findings.judge((!right).then(|| {
            view.exchange.evidence(
                format!("eventCursor from {before} to {after}"),
                view.text.clone(),
            )
        }));
    }
    findings
}

/// COV-SUB-042: what events up to `eventCursor` announced is in the view.
///
/// An event of a turn is published after the turn's commit, so a view whose cursor covers the event holds the
/// messages of that turn. Judges each view against each covered event that names its turn and was followed by
/// that turn's messages in a later view.
fn view_holds_what_its_cursor_covers(transcript: &Transcript) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let logs = covel::logs(&subscriptions);
    let views = views(transcript);
    let committed: Vec<String> = views.last().map(turns_of).unwrap_or_default();
    let mut findings = Findings::none();
    for view in &views {
        let Some(cursor) = covel::cursor(&view.text) else {
            continue;
        };
        let turns = turns_of(view);
        let log = logs.get(&view.session).into_iter().flatten();
        let covered = log.filter(|((epoch, seq), event)| {
            *epoch == cursor.epoch
                && *seq <= cursor.seq
                && event.event_type == "plugin-data.changed"
        });
        for (_, event) in covered {
            let Some(turn) = event.json.get("turnId").and_then(Value::as_str) else {
                continue;
            };
            if committed.iter().any(|known| known == turn) {
                let missing = !turns.iter().any(|known| known == turn);
                findings.judge(missing.then(|| {
                    let expected = format!(
                        "messages of turn {turn}, which event {} announced",
                        event.id
                    );
                    view.exchange.evidence(
                        expected,
                        format!("eventCursor {}, messages of {turns:?}", view.text),
                    )
                }));
            }
        }
    }
    findings
}

fn turns_of(view: &View<'_>) -> Vec<String> {
    let json = view.exchange.json().unwrap_or_default();
    let messages = json
        .get("messages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    messages
        .filter_map(|message| message.get("turnId")?.as_str().map(str::to_owned))
        .collect()
}

/// COV-SUB-044: a first subscription with the view's `eventCursor` gets the events from after the view.
///
/// Judges subscriptions whose cursor is that of an earlier view, against what a subscriber to all topics saw.
fn events_after_the_view_are_replayed(transcript: &Transcript) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let logs = covel::logs(&subscriptions);
    let mut findings = Findings::none();
    let joined = joined(&subscriptions, &views(transcript));
    let whole = joined
        .into_iter()
        .filter(|(subscription, _)| subscription.all_topics());
    for (subscription, cursor) in whole {
        let (Some(now), Some(log)) = (
            subscription.connected_cursor(),
            logs.get(&subscription.session),
        ) else {
            continue;
        };
        let due = covel::due_after(log, &cursor, now.seq);
        let got: Vec<u64> = subscription
            .replayed()
            .iter()
            .map(|(id, _)| id.seq)
            .collect();
        let overtaken = subscription.was_reset_for("gap");
        if now.epoch == cursor.epoch && !due.is_empty() && !overtaken {
            let whole = got == due || (subscription.broke_off && due.starts_with(&got));
            findings.judge((!whole).then(|| {
                subscription
                    .stream
                    .exchange
                    .evidence(format!("replay of seq {due:?}"), format!("{got:?}"))
            }));
        }
    }
    findings
}

/// COV-SUB-172: `eventCursor` has the form of an event id, and a subscription with it gets no reset.
fn view_cursor_is_accepted(transcript: &Transcript) -> Findings {
    let subscriptions = covel::subscriptions(transcript);
    let views = views(transcript);
    let mut findings = Findings::each(&views, |view| {
        let readable = covel::cursor(&view.text).is_some();
        (!readable).then(|| {
            view.exchange
                .evidence("eventCursor of the form epoch:seq", view.text.clone())
        })
    });
    for (subscription, cursor) in joined(&subscriptions, &views) {
        if subscription
            .connected_cursor()
            .is_some_and(|now| now.epoch == cursor.epoch)
        {
            let reset = subscription.answering_resets().first().copied();
            if subscription.was_reset_for("gap") {
                continue; // more came than is kept, which is COV-SUB-121's matter
            }
            findings.judge(reset.map(|frame| {
                subscription
                    .stream
                    .evidence(frame, "no reset", frame.text())
            }));
        }
    }
    findings
}

/// Subscriptions that continue from the cursor of an earlier view of their session.
fn joined<'s, 't>(
    subscriptions: &'s [Subscription<'t>],
    views: &[View<'_>],
) -> Vec<(&'s Subscription<'t>, CursorBuf)> {
    let from_view = |subscription: &&Subscription<'_>| {
        views.iter().any(|view| {
            view.session == subscription.session
                && Some(view.text.as_str()) == subscription.cursor_text()
                && view.answered <= subscription.stream.exchange.opened
        })
    };
    subscriptions
        .iter()
        .filter(from_view)
        .filter_map(|s| Some((s, s.cursor()?)))
        .collect()
}
