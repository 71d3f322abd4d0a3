//! Publishes that failed after a commit.

use serde_json::Value;

use crate::{
    checks::Check,
    transcript::{
        Transcript,
        views::{
            covel,
            http::{Exchange, exchanges},
        },
    },
    verdict::Findings,
};

/// The checks of this file.
pub const CHECKS: &[Check] = &[
    check!("COV-SUB-157", fanout_failure_tells_its_numbers),
    check!("COV-SUB-160", failed_publish_renews_the_epoch),
    check!("COV-SUB-190", fanout_failure_counts_what_failed),
    check!("COV-SUB-191", fanout_failure_describes_each),
];

/// COV-SUB-157: `commit.fanout.failed` has the integers `failedCount` and `totalCount`, and `errors`, not empty.
fn fanout_failure_tells_its_numbers(transcript: &Transcript) -> Findings {
    Findings::each(fanout_failures(transcript), |(exchange, payload)| {
        let counted = |name| payload.get(name).is_some_and(Value::is_u64);
        let described = payload
            .get("errors")
            .and_then(Value::as_array)
            .is_some_and(|errors| !errors.is_empty());
        let right = counted("failedCount") && counted("totalCount") && described;
        (!right)
            .then(|| exchange.evidence("failedCount, totalCount and errors", payload.to_string()))
    })
}

/// COV-SUB-190: `failedCount` is the number of publishes that failed, which the scenario has planned.
fn fanout_failure_counts_what_failed(transcript: &Transcript) -> Findings {
    let Some(planned) = planned(transcript, "/payload/nth") else {
        return Findings::none();
    };
    Findings::each(fanout_failures(transcript), |(exchange, payload)| {
        let counted = payload.get("failedCount").and_then(Value::as_u64);
        let right = counted == u64::try_from(planned.len()).ok();
        (!right).then(|| {
            exchange.evidence(
                format!("failedCount {}", planned.len()),
                payload.to_string(),
            )
        })
    })
}

/// COV-SUB-191: `errors` holds what went wrong in each failed publish: the messages that the scenario planned.
fn fanout_failure_describes_each(transcript: &Transcript) -> Findings {
    let Some(planned) = planned(transcript, "/payload/messages") else {
        return Findings::none();
    };
    Findings::each(fanout_failures(transcript), |(exchange, payload)| {
        let errors = payload
            .get("errors")
            .map(Value::to_string)
            .unwrap_or_default();
        let missing = planned
            .iter()
            .filter_map(Value::as_str)
            .find(|message| !errors.contains(message));
        missing
            .map(|message| exchange.evidence(format!("{message:?} in errors"), payload.to_string()))
    })
}

/// The payloads of `commit.fanout.failed` in the answers of trace queries, each with its exchange.
fn fanout_failures(transcript: &Transcript) -> Vec<(Exchange<'_>, Value)> {
    let traces = exchanges(transcript)
        .into_iter()
        .filter(|exchange| exchange.is("GET", "/api/traces/:id"));
    let mut found = Vec::new();
    for exchange in traces {
        let answer = exchange.json().unwrap_or_default();
        for event in answer
            .get("events")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if event.get("type").and_then(Value::as_str) == Some("commit.fanout.failed") {
                found.push((
                    exchange.clone(),
                    event.get("payload").cloned().unwrap_or_default(),
                ));
            }
        }
    }
    found
}

/// A list of what the fixture was asked to let fail.
fn planned(transcript: &Transcript, pointer: &str) -> Option<Vec<Value>> {
    let asked = exchanges(transcript)
        .into_iter()
        .filter_map(|exchange| exchange.request_json());
    let mut plans =
        asked.filter(|body| body.get("action").and_then(Value::as_str) == Some("fail-publish"));
    plans.find_map(|body| body.pointer(pointer)?.as_array().cloned())
}

/// COV-SUB-160: the reset after a failed publish names another epoch than the connection had, and a later
/// connection with a cursor of the old epoch gets a reset.
fn failed_publish_renews_the_epoch(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    let mut gone = Vec::new();
    for subscription in covel::subscriptions(transcript) {
        let Some(connected) = subscription.connected_cursor() else {
            continue;
        };
        for reset in subscription.resets() {
            if reset.member("reason").and_then(|reason| reason.as_str()) != Some("publish-failed") {
                continue;
            }
            let epoch = reset
                .member("epoch")
                .and_then(|epoch| epoch.as_str())
                .unwrap_or_default();
            let same = epoch == connected.epoch;
            findings.judge(same.then(|| {
                subscription
                    .stream
                    .evidence(reset, "a new epoch", reset.text())
            }));
            let of = (subscription.session.clone(), connected.epoch.clone());
            gone.push((of, reset.at));
        }
        let old = subscription
            .cursor()
            .map(|cursor| (subscription.session.clone(), cursor.epoch));
        let opened = subscription.stream.exchange.opened;
        let is_gone = |old| gone.iter().any(|(of, at)| *of == old && *at < opened);
        if old.is_some_and(is_gone) {
            let exchange = &subscription.stream.exchange;
            let missing = subscription.resets().is_empty() && !subscription.broke_off;
            findings.judge(
                missing.then(|| {
                    exchange.evidence("system.reset for a cursor of the old epoch", "none")
                }),
            );
        }
    }
    findings
}
