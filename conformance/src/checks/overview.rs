//! Checks of area `covel-overview` that need more than a rule.

use std::time::Duration;

use serde_json::Value;
use turnwire_spec::covel::events::event;

use super::Check;
use crate::{
    transcript::{
        Transcript, har, lateness,
        views::{
            covel,
            http::{Exchange, exchanges},
        },
    },
    verdict::Findings,
};

/// The checks of this area, in catalogue order.
pub const CHECKS: &[Check] = &[
    check!("COV-OVW-003", events_come_on_the_two_streams_only),
    check!("COV-OVW-005", queries_change_nothing),
    check!(timed "COV-OVW-006", frames_come_while_the_turn_runs),
];

/// COV-OVW-003: no JSON answer holds an event of one of the two streams.
///
/// Looks for objects that are a whole `SseEnvelope` or `ProtocolEvent`. The trace queries are left out: what
/// they list are records of events. Judges every JSON answer.
fn events_come_on_the_two_streams_only(transcript: &Transcript) -> Findings {
    let answers = exchanges(transcript)
        .into_iter()
        .filter(|exchange| !exchange.path().starts_with("/api/traces"));
    Findings::each(
        answers.filter_map(|exchange| Some((exchange.json()?, exchange))),
        |(json, exchange)| {
            let found = find_event(&json)?;
            Some(exchange.evidence("no event outside the two streams", found.to_string()))
        },
    )
}

fn find_event(value: &Value) -> Option<&Value> {
    match value {
        Value::Object(members) if is_stream_event(value) || members.is_empty() => {
            is_stream_event(value).then_some(value)
        }
        Value::Object(members) => members.values().find_map(find_event),
        Value::Array(items) => items.iter().find_map(find_event),
        _ => None,
    }
}

fn is_stream_event(value: &Value) -> bool {
    let known = value
        .get("type")
        .and_then(Value::as_str)
        .is_some_and(|name| event(name).is_some());
    let envelope = value.get("requestId").is_some() && value.get("seq").is_some();
    let numbered = value
        .get("id")
        .and_then(Value::as_str)
        .is_some_and(|id| covel::cursor(id).is_some());
    known && value.get("payload").is_some() && (envelope || numbered)
}

/// COV-OVW-005: what the queries before and after a round of queries answer is the same.
///
/// Compares the answers under `view-before` and `view-after` path by path.
fn queries_change_nothing(transcript: &Transcript) -> Findings {
    let all = exchanges(transcript);
    let labelled = |label: &'static str| all.iter().filter(move |exchange| exchange.label == label);
    let pairs = labelled("view-before").filter_map(|before| {
        let after = labelled("view-after").find(|after| after.path() == before.path())?;
        Some((before, after))
    });
    Findings::each(pairs, |(before, after)| {
        let (old, new) = (before.json(), after.json());
        (old != new).then(|| after.evidence(shown(before, &old), shown(after, &new)))
    })
}

fn shown(exchange: &Exchange<'_>, json: &Option<Value>) -> String {
    json.as_ref().map_or_else(
        || String::from_utf8_lossy(&exchange.body()).into_owned(),
        Value::to_string,
    )
}

/// COV-OVW-006: the first frame of an action stream can be read before the turn has ended.
///
/// Judges action streams whose `execution.completed` says that the execution took [`LONG_ENOUGH`]: their first
/// frame came at least half that time before their last. Subscriptions are judged by having a frame at all
/// while whoever asked, not the target, ends them; one that was left at once shows nothing.
fn frames_come_while_the_turn_runs(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    let long_enough = if har::is_imported(&transcript.header) {
        LONG_ENOUGH_FOR_A_BROWSER
    } else {
        LONG_ENOUGH
    };
    for action in covel::actions(transcript) {
        let Some(last) = action
            .events()
            .rfind(|frame| frame.event_type() == "execution.completed")
        else {
            continue;
        };
        let took = last
            .pointer("/payload/durationMs")
            .and_then(Value::as_f64)
            .unwrap_or_default();
        let took = Duration::from_secs_f64((took / 1000.0).clamp(0.0, 3600.0));
        let Some(first) = action.events().next() else {
            continue;
        };
        if took < long_enough {
            continue;
        }
        let late = lateness::between(transcript, first.at.saturating_sub(took), last.at);
        let between = last.at.saturating_sub(first.at) + late;
        findings.judge((between < took / 2).then(|| {
            let expected = format!("the first frame at least {:?} before the last", took / 2);
            action.evidence(first, expected, format!("{between:?} before"))
        }));
    }
    for subscription in covel::subscriptions(transcript) {
        if !subscription.stream.ended_by_target()
            && subscription.stream.exchange.status() == Some(200)
            && !left_at_once(&subscription.stream.exchange)
        {
            let empty = subscription.stream.frames.is_empty() && !subscription.broke_off;
            findings.judge(empty.then(|| {
                subscription
                    .stream
                    .exchange
                    .evidence("a frame while it is open", "none")
            }));
        }
    }
    findings
}

/// Whether whoever asked left so soon after the head that no frame need have come.
fn left_at_once(exchange: &Exchange<'_>) -> bool {
    let (Some((head, _)), Some((end, _))) = (exchange.head, exchange.end) else {
        return false;
    };
    end.saturating_sub(head) < AT_ONCE
}

/// A subscription that was left within this time does not show whether frames were held back.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Turns shorter than this do not show whether frames were held back.
const LONG_ENOUGH: Duration = Duration::from_millis(40);
/// The same in what a browser noted, which may have been busy.
const LONG_ENOUGH_FOR_A_BROWSER: Duration = Duration::from_secs(2);
