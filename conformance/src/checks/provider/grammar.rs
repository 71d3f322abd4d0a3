//! The order of events in the streams of each wire.
//!
//! Judged are streams under the labels of [`STREAMS`], which the server ended by itself.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    transcript::{
        Transcript,
        views::{
            http::exchanges,
            stream::{Stream, StreamFrame, streams},
        },
    },
    verdict::{Evidence, Findings},
};

/// Labels of complete streams.
const STREAMS: &[&str] = &[
    "provider-stream",
    "provider-stream-bare",
    "provider-tools-stream",
    "provider-max-stream",
    "provider-stop-stream",
    "provider-parallel",
];

/// The streams that ended by themselves.
fn complete<'a>(transcript: &'a Transcript, labels: &[&str]) -> Vec<Stream<'a>> {
    let mut found = streams(transcript);
    found.retain(|stream| {
        labels.contains(&stream.exchange.label)
            && stream.exchange.status() == Some(200)
            && stream.ended_by_target()
    });
    found
}

/// Judges each stream by a function that gives the first fault: the frame, what was expected, and what was there.
fn each(
    transcript: &Transcript,
    labels: &[&str],
    judge: impl Fn(&Stream<'_>) -> Option<Evidence>,
) -> Findings {
    Findings::each(complete(transcript, labels), |stream| judge(&stream))
}

/// The frames with their JSON.
fn documents<'s>(stream: &'s Stream<'_>) -> impl Iterator<Item = (&'s StreamFrame, &'s Value)> {
    stream
        .events()
        .filter_map(|frame| Some((frame, frame.json.as_ref()?)))
}

fn choices(document: &Value) -> impl Iterator<Item = &Value> {
    document["choices"].as_array().into_iter().flatten()
}

/// LLM-PROV-009: the first piece of a choice names the role.
pub(super) fn chat_role_comes_first(transcript: &Transcript) -> Findings {
    each(transcript, STREAMS, |stream| {
        let (frame, choice) = documents(stream)
            .find_map(|(frame, document)| Some((frame, choices(document).next()?.clone())))?;
        (choice["delta"]["role"] != "assistant")
            .then(|| stream.evidence(frame, "role \"assistant\" in the first piece", frame.text()))
    })
}

/// LLM-PROV-010: every choice gets one finish reason, and no piece after it.
pub(super) fn chat_choices_finish_once(transcript: &Transcript) -> Findings {
    each(transcript, STREAMS, |stream| {
        let (mut seen, mut finished) = (BTreeSet::new(), BTreeSet::new());
        for (frame, document) in documents(stream) {
            for choice in choices(document) {
                let index = choice["index"].as_u64().unwrap_or_default();
                seen.insert(index);
                if finished.contains(&index) {
                    return Some(stream.evidence(
                        frame,
                        "nothing of a choice after its finish reason",
                        frame.text(),
                    ));
                }
                if choice["finish_reason"].is_string() {
                    finished.insert(index);
                }
            }
        }
        (seen.is_empty() || seen != finished).then(|| {
            stream.exchange.evidence(
                "a finish reason for every choice",
                format!("choices {seen:?}, finished {finished:?}"),
            )
        })
    })
}

/// LLM-PROV-011: the last event is `[DONE]`, and there is one.
pub(super) fn chat_ends_with_done(transcript: &Transcript) -> Findings {
    each(transcript, STREAMS, |stream| {
        let is_done = |frame: &&StreamFrame| frame.frame.data().as_deref() == Some("[DONE]");
        let last = stream.events().next_back();
        let right =
            stream.events().filter(is_done).count() == 1 && last.is_some_and(|last| is_done(&last));
        (!right).then(|| {
            let got = last.map_or_else(|| "no event".to_owned(), StreamFrame::text);
            stream
                .exchange
                .evidence("one [DONE], as the last event", got)
        })
    })
}

/// LLM-PROV-012: a stream that was asked for usage tells it in one chunk without choices, behind all others.
pub(super) fn chat_usage_chunk(transcript: &Transcript) -> Findings {
    let labels = STREAMS
        .iter()
        .copied()
        .filter(|label| *label != "provider-stream-bare")
        .collect::<Vec<_>>();
    each(transcript, &labels, |stream| {
        let last = documents(stream).last();
        let right = last
            .is_some_and(|(_, last)| last["usage"].is_object() && choices(last).next().is_none());
        (!right).then(|| {
            let got = last.map_or_else(|| "no chunk".to_owned(), |(frame, _)| frame.text());
            stream
                .exchange
                .evidence("a last chunk with usage and no choices", got)
        })
    })
}

/// LLM-PROV-013: a stream that was not asked for usage has no chunk without choices that tells it.
pub(super) fn chat_no_usage_unasked(transcript: &Transcript) -> Findings {
    each(transcript, &["provider-stream-bare"], |stream| {
        let (frame, _) = documents(stream)
            .find(|(_, chunk)| chunk["usage"].is_object() && choices(chunk).next().is_none())?;
        Some(stream.evidence(frame, "no usage chunk without include_usage", frame.text()))
    })
}

/// LLM-PROV-014: the first piece of a call has its id, its type and its name; indexes rise from 0.
pub(super) fn chat_calls_open_whole(transcript: &Transcript) -> Findings {
    let with_calls = complete(transcript, &["provider-tools-stream"])
        .into_iter()
        .filter(|stream| {
            documents(stream).any(|(_, chunk)| {
                choices(chunk).any(|choice| choice["delta"]["tool_calls"][0].is_object())
            })
        });
    Findings::each(with_calls, |stream| {
        let mut opened = 0;
        for (frame, chunk) in documents(&stream) {
            let pieces = choices(chunk).flat_map(|choice| {
                choice["delta"]["tool_calls"]
                    .as_array()
                    .into_iter()
                    .flatten()
            });
            for piece in pieces {
                let index = piece["index"].as_u64().unwrap_or(u64::MAX);
                let whole = piece["id"].is_string()
                    && piece["type"].is_string()
                    && piece["function"]["name"].is_string();
                if index > opened || (index == opened && !whole) {
                    let expected = format!("call {opened} to open next, with id, type and name");
                    return Some(stream.evidence(frame, expected, frame.text()));
                }
                opened = opened.max(index.saturating_add(1));
            }
        }
        None
    })
}

/// LLM-PROV-110: the sequence numbers of a stream are 0, 1, 2 and so on.
pub(super) fn responses_count_from_zero(transcript: &Transcript) -> Findings {
    each(transcript, STREAMS, |stream| {
        let (_, (frame, _)) = (0..)
            .zip(documents(stream))
            .find(|(number, (_, document))| document["sequence_number"] != *number)?;
        Some(stream.evidence(frame, "sequence numbers that count up from 0", frame.text()))
    })
}

/// LLM-PROV-112: output indexes rise from 0, every item that is added is done, and pieces belong to an open item.
pub(super) fn responses_items_open_and_close(transcript: &Transcript) -> Findings {
    each(transcript, STREAMS, |stream| {
        let (mut next, mut open) = (0, BTreeMap::new());
        for (frame, event) in documents(stream) {
            let Some(index) = event["output_index"].as_u64() else {
                continue;
            };
            let fault = |expected: &str| Some(stream.evidence(frame, expected, frame.text()));
            match event["type"].as_str() {
                Some("response.output_item.added") => {
                    if index != next {
                        return fault("the next output index");
                    }
                    next += 1;
                    open.insert(index, event["item"]["id"].clone());
                }
                Some("response.output_item.done") => {
                    if open.remove(&index).is_none() {
                        return fault("an item that was added and is not done yet");
                    }
                }
                _ => match open.get(&index) {
                    None => return fault("an item that is open"),
                    Some(id) if event["item_id"].is_string() && event["item_id"] != *id => {
                        return fault("the id of the item at this index");
                    }
                    Some(_) => {}
                },
            }
        }
        (!open.is_empty()).then(|| {
            stream.exchange.evidence(
                "every item done",
                format!("still open: {:?}", open.keys().collect::<Vec<_>>()),
            )
        })
    })
}

/// LLM-PROV-113: the pieces of a text or of arguments give what their `done` event says.
pub(super) fn responses_pieces_give_the_whole(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for stream in complete(transcript, STREAMS) {
        let mut pieces: BTreeMap<String, String> = BTreeMap::new();
        for (frame, event) in documents(&stream) {
            let kind = event["type"].as_str().unwrap_or_default();
            let place = format!("{}/{}", event["output_index"], event["content_index"]);
            if let Some(kind) = kind.strip_suffix(".delta") {
                let so_far = pieces.entry(format!("{kind}/{place}")).or_default();
                so_far.push_str(event["delta"].as_str().unwrap_or_default());
            }
            let whole = match kind {
                "response.output_text.done" => &event["text"],
                "response.function_call_arguments.done" => &event["arguments"],
                _ => continue,
            };
            let kind = kind.strip_suffix(".done").unwrap_or_default();
            let given = pieces
                .remove(&format!("{kind}/{place}"))
                .unwrap_or_default();
            findings.judge((whole.as_str() != Some(&given)).then(|| {
                stream.evidence(
                    frame,
                    format!("what the pieces gave: {given:?}"),
                    whole.to_string(),
                )
            }));
        }
    }
    findings
}

/// LLM-PROV-114: the last event's response has the items that the stream finished, in order.
pub(super) fn responses_end_repeats_the_items(transcript: &Transcript) -> Findings {
    each(transcript, STREAMS, |stream| {
        let done: Vec<&Value> = documents(stream)
            .filter(|(_, event)| event["type"] == "response.output_item.done")
            .map(|(_, event)| &event["item"]["id"])
            .collect();
        let (frame, last) = documents(stream)
            .filter(|(_, event)| {
                matches!(
                    event["type"].as_str(),
                    Some("response.completed" | "response.incomplete")
                )
            })
            .last()?;
        let listed: Vec<&Value> = last["response"]["output"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| &item["id"])
            .collect();
        let (mut sorted, mut found) = (done.clone(), listed.clone());
        for ids in [&mut sorted, &mut found] {
            ids.sort_by_key(|id| id.to_string());
        }
        (sorted != found)
            .then(|| stream.evidence(frame, format!("the items {done:?}"), format!("{listed:?}")))
    })
}

/// LLM-PROV-211: indexes of blocks rise from 0, and every block that starts stops before the end of the message.
pub(super) fn anthropic_blocks_open_and_close(transcript: &Transcript) -> Findings {
    each(transcript, STREAMS, |stream| {
        let (mut next, mut open) = (0, BTreeSet::new());
        for (frame, event) in documents(stream) {
            let index = event["index"].as_u64().unwrap_or(u64::MAX);
            let right = match event["type"].as_str() {
                Some("content_block_start") => {
                    let expected = index == next;
                    next += 1;
                    open.insert(index);
                    expected
                }
                Some("content_block_delta") => open.contains(&index),
                Some("content_block_stop") => open.remove(&index),
                Some("message_delta" | "message_stop") => open.is_empty(),
                _ => true,
            };
            if !right {
                let expected = format!("blocks in order, {next} next, open {open:?}");
                return Some(stream.evidence(frame, expected, frame.text()));
            }
        }
        None
    })
}

/// LLM-PROV-212: the pieces of a block are of the block's own kind.
pub(super) fn anthropic_deltas_fit_their_block(transcript: &Transcript) -> Findings {
    const FIT: &[(&str, &[&str])] = &[
        ("text", &["text_delta", "citations_delta"]),
        ("thinking", &["thinking_delta", "signature_delta"]),
        ("tool_use", &["input_json_delta"]),
        ("server_tool_use", &["input_json_delta"]),
    ];
    each(transcript, STREAMS, |stream| {
        let mut kinds = BTreeMap::new();
        for (frame, event) in documents(stream) {
            let index = event["index"].as_u64().unwrap_or(u64::MAX);
            if event["type"] == "content_block_start" {
                kinds.insert(
                    index,
                    event["content_block"]["type"].as_str().unwrap_or_default(),
                );
            }
            let delta = event["delta"]["type"].as_str();
            let fit = kinds
                .get(&index)
                .and_then(|kind| FIT.iter().find(|(other, _)| other == kind));
            if let (Some(delta), Some((kind, fit))) = (delta, fit)
                && !fit.contains(&delta)
            {
                return Some(stream.evidence(
                    frame,
                    format!("a piece of a {kind} block"),
                    frame.text(),
                ));
            }
        }
        None
    })
}

/// LLM-PROV-213: the counts of output tokens are running totals, which never fall.
pub(super) fn anthropic_usage_only_grows(transcript: &Transcript) -> Findings {
    each(transcript, STREAMS, |stream| {
        let mut most = 0;
        for (frame, event) in documents(stream) {
            let told = event
                .pointer("/usage/output_tokens")
                .or_else(|| event.pointer("/message/usage/output_tokens"));
            if let Some(told) = told.and_then(Value::as_u64) {
                if told < most {
                    return Some(stream.evidence(
                        frame,
                        format!("at least {most} output tokens"),
                        frame.text(),
                    ));
                }
                most = told;
            }
        }
        None
    })
}

/// LLM-PROV-309: one piece has a finish reason, and no piece with content comes after it.
pub(super) fn gemini_finishes_once_at_the_end(transcript: &Transcript) -> Findings {
    each(transcript, STREAMS, |stream| {
        let mut finished = false;
        for (frame, piece) in documents(stream) {
            let candidate = &piece["candidates"][0];
            if finished && !candidate.is_null() {
                return Some(stream.evidence(
                    frame,
                    "no candidate after the finish reason",
                    frame.text(),
                ));
            }
            finished |= candidate["finishReason"].is_string()
                || piece["promptFeedback"]["blockReason"].is_string();
        }
        (!finished).then(|| {
            stream
                .exchange
                .evidence("a piece with a finish reason", "none")
        })
    })
}

/// LLM-PROV-310: without `alt=sse` the body of a stream is one JSON array of pieces, the last with a finish reason.
pub(super) fn gemini_array_is_one_array(transcript: &Transcript) -> Findings {
    let arrays = exchanges(transcript)
        .into_iter()
        .filter(|exchange| exchange.label == "provider-array" && exchange.status() == Some(200));
    Findings::each(arrays, |exchange| {
        let body = exchange.json();
        let pieces = body.as_ref().and_then(Value::as_array);
        let finished = |piece: &&Value| piece["candidates"][0]["finishReason"].is_string();
        let right = pieces.is_some_and(|pieces| pieces.iter().any(|piece| finished(&piece)));
        (!right).then(|| {
            let got = String::from_utf8_lossy(&exchange.body()).into_owned();
            exchange.evidence("a JSON array of pieces with a finish reason", got)
        })
    })
}

/// LLM-PROV-311: the last piece tells the usage.
pub(super) fn gemini_usage_is_in_the_end(transcript: &Transcript) -> Findings {
    each(transcript, STREAMS, |stream| {
        let (frame, last) = documents(stream).last()?;
        (!last["usageMetadata"]["promptTokenCount"].is_u64())
            .then(|| stream.evidence(frame, "usageMetadata in the last piece", frame.text()))
    })
}
