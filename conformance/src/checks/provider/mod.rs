//! Checks of area `llm-provider`: what a server that speaks a provider's wire owes its clients.
//!
//! What a model says is not judged, only what holds whatever it says. Requests are found by the labels that
//! `scenarios::provider` sets; a request that was refused where it may be shows nothing.
//!
//! - this file: the checks that all wires share; [`answer`]: how each wire's answers are read;
//! - [`grammar`]: the order of events, one check or more a wire.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Check;
use crate::{
    scenarios::provider::{MARKERS, TOOL, trip_schema},
    schema,
    transcript::Transcript,
    verdict::Findings,
};

mod answer;
mod grammar;

use answer::{Anthropic, Chat, Gemini, Given, Read, Responses, given};

/// Of Chat Completions, on whatever service.
pub const COMPATIBLE: &[Check] = &[
    check!("LLM-PROV-005", streams_count_the_request_alike::<Chat>),
    check!("LLM-PROV-009", grammar::chat_role_comes_first),
    check!("LLM-PROV-010", grammar::chat_choices_finish_once),
    check!("LLM-PROV-011", grammar::chat_ends_with_done),
    check!("LLM-PROV-015", arguments_are_json::<Chat>),
    check!("LLM-PROV-016", call_ids_differ::<Chat>),
    check!("LLM-PROV-017", only_offered_tools_are_called::<Chat>),
    check!("LLM-PROV-020", the_limit_holds::<Chat>),
    check!("LLM-PROV-021", the_stop_sequence_stays_out::<Chat>),
    check!("LLM-PROV-022", the_schema_holds::<Chat>),
    check!(
        "LLM-PROV-030",
        parallel_answers_have_ids_of_their_own::<Chat>
    ),
    check!("LLM-PROV-031", parallel_answers_do_not_mix::<Chat>),
];

/// Of OpenAI's Chat Completions beside [`COMPATIBLE`]. On Gemini's endpoint, for one, the total of tokens may be more
/// than the sum.
pub const CHAT: &[Check] = &[
    check!("LLM-PROV-004", usage_adds_up::<Chat>),
    check!("LLM-PROV-012", grammar::chat_usage_chunk),
    check!("LLM-PROV-013", grammar::chat_no_usage_unasked),
    check!("LLM-PROV-014", grammar::chat_calls_open_whole),
    check!("LLM-PROV-018", calls_end_the_answer::<Chat>),
];

/// Of Responses.
pub const RESPONSES: &[Check] = &[
    check!("LLM-PROV-104", usage_adds_up::<Responses>),
    check!("LLM-PROV-105", streams_count_the_request_alike::<Responses>),
    check!("LLM-PROV-110", grammar::responses_count_from_zero),
    check!("LLM-PROV-112", grammar::responses_items_open_and_close),
    check!("LLM-PROV-113", grammar::responses_pieces_give_the_whole),
    check!("LLM-PROV-114", grammar::responses_end_repeats_the_items),
    check!("LLM-PROV-115", arguments_are_json::<Responses>),
    check!("LLM-PROV-116", call_ids_differ::<Responses>),
    check!("LLM-PROV-117", only_offered_tools_are_called::<Responses>),
    check!("LLM-PROV-120", the_limit_holds::<Responses>),
    check!("LLM-PROV-122", the_schema_holds::<Responses>),
    check!(
        "LLM-PROV-130",
        parallel_answers_have_ids_of_their_own::<Responses>
    ),
    check!("LLM-PROV-131", parallel_answers_do_not_mix::<Responses>),
    check!("LLM-PROV-135", the_count_is_that_of_the_answer::<Responses>),
];

/// Of Anthropic Messages.
pub const ANTHROPIC: &[Check] = &[
    check!("LLM-PROV-205", streams_count_the_request_alike::<Anthropic>),
    check!("LLM-PROV-211", grammar::anthropic_blocks_open_and_close),
    check!("LLM-PROV-212", grammar::anthropic_deltas_fit_their_block),
    check!("LLM-PROV-213", grammar::anthropic_usage_only_grows),
    check!("LLM-PROV-215", arguments_are_json::<Anthropic>),
    check!("LLM-PROV-216", call_ids_differ::<Anthropic>),
    check!("LLM-PROV-217", only_offered_tools_are_called::<Anthropic>),
    check!("LLM-PROV-218", calls_end_the_answer::<Anthropic>),
    check!("LLM-PROV-220", the_limit_holds::<Anthropic>),
    check!("LLM-PROV-221", the_stop_sequence_stays_out::<Anthropic>),
    check!("LLM-PROV-222", the_schema_holds::<Anthropic>),
    check!(
        "LLM-PROV-230",
        parallel_answers_have_ids_of_their_own::<Anthropic>
    ),
    check!("LLM-PROV-231", parallel_answers_do_not_mix::<Anthropic>),
    check!("LLM-PROV-235", the_count_is_that_of_the_answer::<Anthropic>),
];

/// Of Gemini.
pub const GEMINI: &[Check] = &[
    check!("LLM-PROV-304", usage_adds_up::<Gemini>),
    check!("LLM-PROV-305", streams_count_the_request_alike::<Gemini>),
    check!("LLM-PROV-309", grammar::gemini_finishes_once_at_the_end),
    check!("LLM-PROV-310", grammar::gemini_array_is_one_array),
    check!("LLM-PROV-311", grammar::gemini_usage_is_in_the_end),
    check!("LLM-PROV-317", only_offered_tools_are_called::<Gemini>),
    check!("LLM-PROV-318", calls_end_the_answer::<Gemini>),
    check!("LLM-PROV-320", the_limit_holds::<Gemini>),
    check!("LLM-PROV-321", the_stop_sequence_stays_out::<Gemini>),
    check!("LLM-PROV-322", the_schema_holds::<Gemini>),
    check!("LLM-PROV-331", parallel_answers_do_not_mix::<Gemini>),
    check!("LLM-PROV-335", the_count_is_that_of_the_answer::<Gemini>),
];

const PLAIN: &str = "provider-plain";
const STREAM: &str = "provider-stream";
const TOOLS: &[&str] = &["provider-tools", "provider-tools-stream"];

fn each<'a, R: Read>(
    transcript: &'a Transcript,
    labels: &[&str],
    judge: impl Fn(&Given<'a>) -> Option<(String, String)>,
) -> Findings {
    Findings::each(given::<R>(transcript, labels), |given| {
        let (expected, got) = judge(&given)?;
        Some(given.exchange.evidence(expected, got))
    })
}

/// The total is the sum of what was read and what was written.
///
/// Judges every answer that tells all three.
fn usage_adds_up<R: Read>(transcript: &Transcript) -> Findings {
    let all = [&[PLAIN, STREAM, "provider-max"], TOOLS].concat();
    let told = given::<R>(transcript, &all)
        .into_iter()
        .filter_map(|given| Some((given.answer.total?, given)));
    Findings::each(told, |((total, sum), given)| {
        (total != sum).then(|| {
            given
                .exchange
                .evidence(format!("a total of {sum} tokens"), total.to_string())
        })
    })
}

/// The same request costs the same tokens, streamed or not.
///
/// Judged where both told; what the answers cost may differ.
fn streams_count_the_request_alike<R: Read>(transcript: &Transcript) -> Findings {
    let plain = given::<R>(transcript, &[PLAIN])
        .into_iter()
        .find_map(|given| given.answer.input);
    let streamed = given::<R>(transcript, &[STREAM, "provider-array"])
        .into_iter()
        .filter_map(|given| Some((plain?, given.answer.input?, given)));
    Findings::each(streamed, |(plain, input, given)| {
        (plain != input).then(|| {
            given.exchange.evidence(
                format!("{plain} tokens of input, as for the plain answer"),
                input.to_string(),
            )
        })
    })
}

/// The pieces of the arguments of a call are together a JSON object.
fn arguments_are_json<R: Read>(transcript: &Transcript) -> Findings {
    let calls = given::<R>(transcript, TOOLS).into_iter().flat_map(|given| {
        let finished = given.answer.finish.as_deref() != Some(R::LENGTH);
        let calls = given.answer.calls.clone();
        calls
            .into_iter()
            .filter(move |_| finished)
            .map(move |call| (call, given.exchange.clone()))
    });
    Findings::each(calls, |(call, exchange)| {
        let object = serde_json::from_str::<serde_json::Map<String, Value>>(&call.arguments);
        object
            .err()
            .map(|_| exchange.evidence("arguments that are a JSON object", call.arguments))
    })
}

/// Every call of an answer has an id, and no two have the same.
fn call_ids_differ<R: Read>(transcript: &Transcript) -> Findings {
    let with_calls = given::<R>(transcript, TOOLS)
        .into_iter()
        .filter(|given| !given.answer.calls.is_empty() && R::CALL_IDS);
    Findings::each(with_calls, |given| {
        let ids: Vec<_> = given
            .answer
            .calls
            .iter()
            .map(|call| call.id.clone())
            .collect();
        let different: BTreeSet<_> = ids.iter().flatten().filter(|id| !id.is_empty()).collect();
        (different.len() < ids.len()).then(|| {
            given
                .exchange
                .evidence("a different id for each call", format!("{ids:?}"))
        })
    })
}

/// Only a tool that was offered is called.
fn only_offered_tools_are_called<R: Read>(transcript: &Transcript) -> Findings {
    let with_calls = given::<R>(transcript, TOOLS)
        .into_iter()
        .filter(|given| !given.answer.calls.is_empty());
    Findings::each(with_calls, |given| {
        let other = given
            .answer
            .calls
            .iter()
            .find(|call| call.name.as_deref() != Some(TOOL))?;
        Some(
            given
                .exchange
                .evidence(format!("calls of {TOOL:?}"), format!("{:?}", other.name)),
        )
    })
}

/// An answer with calls ends for the reason that the wire has for that.
fn calls_end_the_answer<R: Read>(transcript: &Transcript) -> Findings {
    let with_calls = given::<R>(transcript, TOOLS).into_iter().filter(|given| {
        !given.answer.calls.is_empty() && given.answer.finish.as_deref() != Some(R::LENGTH)
    });
    Findings::each(with_calls, |given| {
        let finish = given.answer.finish.as_deref();
        let right = finish.is_some_and(|finish| R::CALLS.contains(&finish));
        (!right).then(|| {
            given
                .exchange
                .evidence(R::CALLS.join(" or "), format!("{finish:?}"))
        })
    })
}

/// An answer has no more tokens than were asked for, and one that reached the limit says so.
fn the_limit_holds<R: Read>(transcript: &Transcript) -> Findings {
    each::<R>(
        transcript,
        &["provider-max", "provider-max-stream"],
        |given| {
            let (output, finish) = (given.answer.output?, given.answer.finish.as_deref());
            let limit = 16;
            if output > limit {
                return Some((format!("at most {limit} tokens"), output.to_string()));
            }
            (output == limit
                && finish != Some(R::LENGTH)
                && !R::STOP.contains(&finish.unwrap_or_default()))
            .then(|| (format!("{} at the limit", R::LENGTH), format!("{finish:?}")))
        },
    )
}

/// The text of an answer ends before the stop sequence.
fn the_stop_sequence_stays_out<R: Read>(transcript: &Transcript) -> Findings {
    each::<R>(
        transcript,
        &["provider-stop", "provider-stop-stream"],
        |given| {
            given.answer.text.contains('5').then(|| {
                (
                    "a text without the stop sequence \"5\"".to_owned(),
                    given.answer.text.clone(),
                )
            })
        },
    )
}

/// A finished answer to a request with a schema is JSON of that schema.
fn the_schema_holds<R: Read>(transcript: &Transcript) -> Findings {
    let finished = given::<R>(transcript, &["provider-schema"])
        .into_iter()
        .filter(|given| {
            given.answer.finish.as_deref() != Some(R::LENGTH) && !given.answer.text.is_empty()
        });
    let schema = trip_schema();
    Findings::each(finished, |given| {
        let fault = match serde_json::from_str::<Value>(&given.answer.text) {
            Ok(value) => schema::fault(&schema, &value)?,
            Err(error) => error.to_string(),
        };
        Some(given.exchange.evidence(
            format!("JSON of {}", json!(schema)),
            format!("{} ({fault})", given.answer.text),
        ))
    })
}

/// Answers that were given at the same time have ids of their own.
fn parallel_answers_have_ids_of_their_own<R: Read>(transcript: &Transcript) -> Findings {
    let mut seen = BTreeSet::new();
    Findings::each(given::<R>(transcript, &["provider-parallel"]), |given| {
        let id = given.answer.id.clone().unwrap_or_default();
        (!seen.insert(id.clone())).then(|| {
            given
                .exchange
                .evidence("an id that no other answer has", id)
        })
    })
}

/// An answer says no word that only another request had.
fn parallel_answers_do_not_mix<R: Read>(transcript: &Transcript) -> Findings {
    each::<R>(transcript, &["provider-parallel"], |given| {
        let asked = String::from_utf8_lossy(&given.exchange.request.body).into_owned();
        let foreign = MARKERS
            .iter()
            .find(|marker| given.answer.text.contains(**marker) && !asked.contains(**marker))?;
        Some((
            format!("nothing of another request ({foreign})"),
            given.answer.text.clone(),
        ))
    })
}

/// The tokens that were counted beforehand are those that the answer tells of its request.
fn the_count_is_that_of_the_answer<R: Read>(transcript: &Transcript) -> Findings {
    let counted = crate::transcript::views::http::exchanges(transcript)
        .into_iter()
        .filter(|exchange| exchange.label == "provider-count" && exchange.status() == Some(200))
        .find_map(|exchange| {
            let body = exchange.json()?;
            let names = ["input_tokens", "totalTokens"];
            let count = names.iter().find_map(|name| body[name].as_u64())?;
            Some((count, exchange))
        });
    let told = given::<R>(transcript, &["provider-counted"])
        .into_iter()
        .find_map(|given| given.answer.input);
    Findings::each(counted.zip(told), |((count, exchange), told)| {
        (count != told).then(|| {
            exchange.evidence(
                format!("{told} tokens, as the answer tells"),
                count.to_string(),
            )
        })
    })
}
