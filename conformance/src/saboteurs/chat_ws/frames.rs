//! Frames of the server that are not what they were.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{each, is_numbered, kind, text};
use crate::{
    saboteurs::{Sabotage, channel::OutMessage, saboteur::Saboteur},
    transcript::Side,
};

/// The saboteurs of this file.
pub const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("CWS-020", one_counter_for_all_turns),
    Sabotage::new("CWS-034", replay_one_too_late),
    Sabotage::new("CWS-035", replay_repeats_a_frame),
    Sabotage::new("CWS-066", failed_turns_never_stop),
    Sabotage::new("CWS-071", chunks_hold_all_so_far),
    Sabotage::new("CWS-120", context_with_output),
];

fn changed(frame: &Value, pointer: &str, value: Value) -> Option<Vec<OutMessage>> {
    let mut frame = frame.clone();
    *frame.pointer_mut(pointer)? = value;
    Some(vec![OutMessage::json(&frame)])
}

fn number(frame: &Value, pointer: &str) -> i64 {
    frame
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// CWS-020: later turns of a session go on with the numbers of the first.
fn one_counter_for_all_turns() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut turns: BTreeMap<String, i64> = BTreeMap::new();
        move |from, frame: &Value| {
            if !is_numbered(from, frame) {
                return None;
            }
            let before = turns
                .entry(text(frame, "sessionId").to_owned())
                .or_default();
            let out = changed(
                frame,
                "/payload/seq",
                json!(number(frame, "/payload/seq") + *before),
            );
            if kind(frame) == "chat:complete" {
                *before += 1_000;
            }
            out
        }
    })
}

/// The number after the last one that a subscription with a replay names.
fn asked(from: Side, frame: &Value) -> Option<i64> {
    let wants = from == Side::Client
        && kind(frame) == "chat:subscribe"
        && frame.pointer("/payload/wantReplay") == Some(&json!(true));
    wants.then(|| {
        let last = frame.pointer("/payload/lastSeq").and_then(Value::as_i64);
        last.unwrap_or(-1) + 1
    })
}

/// CWS-034: the first frame of a replay is missing.
fn replay_one_too_late() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut first = None;
        move |from, frame: &Value| {
            first = asked(from, frame).or(first);
            let is_it = is_numbered(from, frame) && first == Some(number(frame, "/payload/seq"));
            is_it.then(|| {
                first = None;
                Vec::new()
            })
        }
    })
}

/// CWS-035: the second frame of a replay comes twice.
fn replay_repeats_a_frame() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut first: Option<i64> = None;
        move |from, frame: &Value| {
            first = asked(from, frame).or(first);
            let second = first.map(|first| first + 1);
            let is_it = is_numbered(from, frame) && second == Some(number(frame, "/payload/seq"));
            is_it.then(|| {
                first = None;
                vec![OutMessage::json(frame), OutMessage::json(frame)]
            })
        }
    })
}

/// CWS-066: the end of a failed turn is not announced.
fn failed_turns_never_stop() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut failed = String::new();
        move |from, frame: &Value| {
            if from != Side::Server {
                return None;
            }
            if kind(frame) == "chat:complete" {
                let success = frame.pointer("/payload/success") == Some(&json!(true));
                failed = if success {
                    String::new()
                } else {
                    text(frame, "sessionId").to_owned()
                };
            }
            let stops = kind(frame) == "chat:active"
                && frame.pointer("/payload/running") == Some(&json!(false));
            (stops && !failed.is_empty() && text(frame, "sessionId") == failed).then(Vec::new)
        }
    })
}

/// CWS-071: each chunk holds the text of its message so far.
fn chunks_hold_all_so_far() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut so_far: BTreeMap<String, String> = BTreeMap::new();
        move |from, frame: &Value| {
            if from != Side::Server {
                return None;
            }
            match kind(frame) {
                "chat:response" => {
                    let all = so_far.entry(text(frame, "jobId").to_owned()).or_default();
                    all.push_str(text(frame, "chunk"));
                    changed(frame, "/payload/chunk", json!(all))
                }
                "chat:message_boundary" => {
                    so_far.remove(text(frame, "jobId"));
                    None
                }
                _ => None,
            }
        }
    })
}

/// CWS-120: `contextTokens` holds the output too.
fn context_with_output() -> Arc<dyn Saboteur> {
    each(|_| {
        |from, frame: &Value| {
            let usage = "/payload/usage/contextTokens";
            let has = from == Side::Server && frame.pointer(usage).is_some();
            let sum = number(frame, usage) + number(frame, "/payload/usage/outputTokens");
            has.then(|| changed(frame, usage, json!(sum))).flatten()
        }
    })
}
