//! What a trace tells of time, and text that comes while its model still writes.

use serde_json::Value;
use turnwire_spec::catalogue::rule::StreamKind;

use crate::{
    checks::Check,
    transcript::{
        Transcript,
        views::{
            http::{Exchange, exchanges},
            stream::streams_of,
        },
    },
    verdict::Findings,
};

/// The checks of this area.
pub const CHECKS: &[Check] = &[
    check!(timed "COV-TRACE-097", text_comes_while_the_model_still_writes),
    check!("COV-TRACE-114", events_are_told_in_the_order_of_time),
    check!("COV-TRACE-129", rows_are_saved_after_their_request_began),
];

/// Label of a turn whose model stops in the middle of its text, and of what is asked before it goes on.
const HELD: &str = "held-traced";
const WHILE_HELD: &str = "read-while-held";

/// COV-TRACE-114: sorted by `eventOrder`, the events of one answer are in the order of their times.
///
/// Judges answers in which two events have both.
fn events_are_told_in_the_order_of_time(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for (exchange, events) in traces(transcript) {
        let mut times: Vec<(u64, String)> = events.iter().filter_map(place_and_time).collect();
        if times.len() < 2 {
            continue;
        }
        times.sort_by_key(|(order, _)| *order);
        // Times have one form, ISO 8601 in UTC with milliseconds, so that texts compare like times.
        let back = times.windows(2).find(|pair| pair[1].1 < pair[0].1);
        findings.judge(back.map(|pair| {
            let got = format!("{} after {}", pair[1].1, pair[0].1);
            exchange.evidence("times that do not decrease by eventOrder", got)
        }));
    }
    findings
}

fn place_and_time(event: &Value) -> Option<(u64, String)> {
    let order = event.get("eventOrder")?.as_u64()?;
    Some((order, text(event, "/timestamp")?.to_owned()))
}

/// COV-TRACE-129: the `timestamp` of an `llm.calling` is when it was saved, and so not before its `startedAt`.
fn rows_are_saved_after_their_request_began(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for (exchange, events) in traces(transcript) {
        let calls = events
            .iter()
            .filter(|event| text(event, "/type") == Some("llm.calling"));
        for event in calls {
            let times = text(event, "/timestamp").zip(text(event, "/payload/startedAt"));
            let Some((saved, started)) = times else {
                continue;
            };
            findings.judge(
                (saved < started)
                    .then(|| exchange.evidence(format!("a timestamp from {started} on"), saved)),
            );
        }
    }
    findings
}

/// COV-TRACE-097: pieces of the text are there while its model still writes.
///
/// Judges turns whose model stopped in the middle of its text until something else was asked for: by then the
/// beginning has come. A stream that broke off on its way shows nothing.
fn text_comes_while_the_model_still_writes(transcript: &Transcript) -> Findings {
    let asked = exchanges(transcript)
        .into_iter()
        .find(|exchange| exchange.label == WHILE_HELD);
    let Some(asked) = asked else {
        return Findings::none();
    };
    let held = streams_of(transcript, StreamKind::Action)
        .into_iter()
        .filter(|stream| stream.exchange.label == HELD && stream.exchange.opened < asked.opened)
        .filter(|stream| stream.ended_by_target());
    Findings::each(held, |stream| {
        let early = stream
            .events()
            .any(|frame| frame.event_type() == "narrative.delta" && frame.at < asked.opened);
        (!early).then(|| {
            let expected = "a narrative.delta before the model went on";
            stream.exchange.evidence(expected, "none")
        })
    })
}

/// The events of each answer of the trace endpoint.
fn traces(transcript: &Transcript) -> impl Iterator<Item = (Exchange<'_>, Vec<Value>)> {
    exchanges(transcript).into_iter().filter_map(|exchange| {
        if !exchange.is("GET", "/api/traces/:id") || exchange.status() != Some(200) {
            return None;
        }
        let Value::Array(events) = exchange.json()?.get_mut("events")?.take() else {
            return None;
        };
        Some((exchange, events))
    })
}

fn text<'a>(event: &'a Value, pointer: &str) -> Option<&'a str> {
    event.pointer(pointer)?.as_str()
}
