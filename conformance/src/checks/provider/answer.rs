//! Answers of providers, read alike for all wires, plain or streamed.
//!
//! Reading is lenient: what is not there is `None`, and whether that is a fault is for a check to say. The text
//! of a stream is what its pieces give together.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::transcript::{
    Transcript,
    views::{
        http::{Exchange, exchanges},
        stream::{Stream, streams},
    },
};

/// How a wire's answers are read.
pub(super) trait Read {
    /// A whole answer.
    fn plain(body: &Value) -> Answer;
    /// The events of a stream.
    fn stream(events: &[Value]) -> Answer;
    /// The reasons for which an answer with calls may end.
    const CALLS: &'static [&'static str];
    /// The reason when the token limit was reached.
    const LENGTH: &'static str;
    /// The reasons when a stop sequence came up.
    const STOP: &'static [&'static str];
    /// Whether calls have ids.
    const CALL_IDS: bool = true;
}

/// What a provider answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) id: Option<String>,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Option<String>,
    /// Tokens of the request, cached ones included.
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    /// What the wire says as the total, and what it ought to be.
    pub(super) total: Option<(u64, u64)>,
}

/// A call of an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    /// As text; a wire that carries an object gives its JSON.
    pub(super) arguments: String,
}

/// An answer with its exchange.
pub(super) struct Given<'a> {
    pub(super) exchange: Exchange<'a>,
    pub(super) answer: Answer,
}

/// Successful answers under these labels, plain and streamed, in order.
pub(super) fn given<'a, R: Read>(transcript: &'a Transcript, labels: &[&str]) -> Vec<Given<'a>> {
    let mut open = streams(transcript);
    let wanted = exchanges(transcript).into_iter().filter(|exchange| {
        labels.contains(&exchange.label) && exchange.status() == Some(200) && exchange.complete()
    });
    wanted
        .filter_map(|exchange| {
            let place = open
                .iter()
                .position(|stream| stream.exchange.id == exchange.id);
            let answer = match place.map(|place| open.swap_remove(place)) {
                Some(stream) => R::stream(&events(&stream)),
                None => R::plain(&exchange.json()?),
            };
            Some(Given { exchange, answer })
        })
        .collect()
}

/// The JSON events of a stream.
pub(super) fn events(stream: &Stream<'_>) -> Vec<Value> {
    stream
        .events()
        .filter_map(|frame| frame.json.clone())
        .collect()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn push(into: &mut String, value: &Value) {
    into.push_str(value.as_str().unwrap_or_default());
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Chat Completions.
pub(super) struct Chat;

impl Chat {
    /// The call that a piece belongs to: that of its index, unless it has another id. Gemini's endpoint gives every
    /// call the index 0, or none.
    fn call_of<'a>(piece: &Value, calls: &'a mut Vec<(u64, Call)>) -> &'a mut Call {
        let index = piece["index"].as_u64().unwrap_or_default();
        let id = piece["id"].as_str();
        let is_of = |(other, call): &(u64, Call)| {
            *other == index && (id.is_none() || call.id.is_none() || call.id.as_deref() == id)
        };
        let at = calls.iter().rposition(is_of).unwrap_or_else(|| {
            calls.push((index, Call::default()));
            calls.len() - 1
        });
        &mut calls[at].1
    }

    fn usage(answer: &mut Answer, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        answer.input = usage["prompt_tokens"].as_u64();
        answer.output = usage["completion_tokens"].as_u64();
        answer.total = total(&usage["total_tokens"], [answer.input, answer.output]);
    }
}

/// The total as it was told, and the sum of the parts.
fn total(told: &Value, parts: [Option<u64>; 2]) -> Option<(u64, u64)> {
    let [input, output] = parts;
    Some((told.as_u64()?, input?.saturating_add(output?)))
}

impl Read for Chat {
    const CALLS: &'static [&'static str] = &["tool_calls", "stop"];
    const LENGTH: &'static str = "length";
    const STOP: &'static [&'static str] = &["stop"];

    fn plain(body: &Value) -> Answer {
        let choice = &body["choices"][0];
        let message = &choice["message"];
        let mut answer = Answer {
            id: text(&body["id"]),
            text: text(&message["content"]).unwrap_or_default(),
            finish: text(&choice["finish_reason"]),
            ..Answer::default()
        };
        answer.calls = items(&message["tool_calls"])
            .map(|call| Call {
                id: text(&call["id"]),
                name: text(&call["function"]["name"]),
                arguments: text(&call["function"]["arguments"]).unwrap_or_default(),
            })
            .collect();
        Self::usage(&mut answer, &body["usage"]);
        answer
    }

    fn stream(events: &[Value]) -> Answer {
        let mut answer = Answer::default();
        let mut calls: Vec<(u64, Call)> = Vec::new();
        for event in events {
            answer.id = answer.id.or_else(|| text(&event["id"]));
            Self::usage(&mut answer, &event["usage"]);
            for choice in items(&event["choices"]).filter(|choice| choice["index"] == 0) {
                push(&mut answer.text, &choice["delta"]["content"]);
                answer.finish = answer.finish.or_else(|| text(&choice["finish_reason"]));
                for piece in items(&choice["delta"]["tool_calls"]) {
                    let call = Self::call_of(piece, &mut calls);
                    call.id = call.id.take().or_else(|| text(&piece["id"]));
                    call.name = call
                        .name
                        .take()
                        .or_else(|| text(&piece["function"]["name"]));
                    push(&mut call.arguments, &piece["function"]["arguments"]);
                }
            }
        }
        calls.sort_by_key(|(index, _)| *index);
        answer.calls = calls.into_iter().map(|(_, call)| call).collect();
        answer
    }
}

/// Responses.
pub(super) struct Responses;

impl Read for Responses {
    const CALLS: &'static [&'static str] = &["completed"];
    const LENGTH: &'static str = "max_output_tokens";
    const STOP: &'static [&'static str] = &["completed"];

    fn plain(body: &Value) -> Answer {
        let mut answer = Answer {
            id: text(&body["id"]),
            finish: text(&body["incomplete_details"]["reason"]).or_else(|| text(&body["status"])),
            ..Answer::default()
        };
        for item in items(&body["output"]) {
            match item["type"].as_str() {
                Some("message") => {
                    items(&item["content"]).for_each(|part| push(&mut answer.text, &part["text"]));
                }
                Some("function_call") => answer.calls.push(Call {
                    id: text(&item["call_id"]),
                    name: text(&item["name"]),
                    arguments: text(&item["arguments"]).unwrap_or_default(),
                }),
                _ => {}
            }
        }
        let usage = &body["usage"];
        answer.input = usage["input_tokens"].as_u64();
        answer.output = usage["output_tokens"].as_u64();
        answer.total = total(&usage["total_tokens"], [answer.input, answer.output]);
        answer
    }

    fn stream(events: &[Value]) -> Answer {
        let last = events.iter().rfind(|event| event["response"].is_object());
        let mut answer = Self::plain(last.map_or(&Value::Null, |event| &event["response"]));
        // What the pieces give, not what the last event repeats.
        answer.text.clear();
        let mut calls: BTreeMap<u64, Call> = BTreeMap::new();
        for event in events {
            let place = event["output_index"].as_u64().unwrap_or_default();
            match event["type"].as_str() {
                Some("response.output_text.delta") => push(&mut answer.text, &event["delta"]),
                Some("response.output_item.added") if event["item"]["type"] == "function_call" => {
                    let call = Call {
                        id: text(&event["item"]["call_id"]),
                        name: text(&event["item"]["name"]),
                        arguments: String::new(),
                    };
                    calls.insert(place, call);
                }
                Some("response.function_call_arguments.delta") => {
                    push(
                        &mut calls.entry(place).or_default().arguments,
                        &event["delta"],
                    );
                }
                _ => {}
            }
        }
        answer.calls = calls.into_values().collect();
        answer
    }
}

/// Anthropic Messages.
pub(super) struct Anthropic;

impl Anthropic {
    fn usage(answer: &mut Answer, usage: &Value) {
        let parts = [
            "input_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        ];
        if usage["input_tokens"].is_u64() {
            answer.input = Some(parts.iter().filter_map(|name| usage[name].as_u64()).sum());
        }
        answer.output = usage["output_tokens"].as_u64().or(answer.output);
    }
}

impl Read for Anthropic {
    const CALLS: &'static [&'static str] = &["tool_use"];
    const LENGTH: &'static str = "max_tokens";
    const STOP: &'static [&'static str] = &["stop_sequence"];

    fn plain(body: &Value) -> Answer {
        let mut answer = Answer {
            id: text(&body["id"]),
            finish: text(&body["stop_reason"]),
            ..Answer::default()
        };
        for block in items(&body["content"]) {
            match block["type"].as_str() {
                Some("text") => push(&mut answer.text, &block["text"]),
                Some("tool_use") => answer.calls.push(Call {
                    id: text(&block["id"]),
                    name: text(&block["name"]),
                    arguments: block["input"].to_string(),
                }),
                _ => {}
            }
        }
        Self::usage(&mut answer, &body["usage"]);
        answer
    }

    fn stream(events: &[Value]) -> Answer {
        let mut answer = Answer::default();
        let mut calls: BTreeMap<u64, Call> = BTreeMap::new();
        for event in events {
            let place = event["index"].as_u64().unwrap_or_default();
            match event["type"].as_str() {
                Some("message_start") => {
                    answer.id = text(&event["message"]["id"]);
                    Self::usage(&mut answer, &event["message"]["usage"]);
                }
                Some("content_block_start") if event["content_block"]["type"] == "tool_use" => {
                    let call = Call {
                        id: text(&event["content_block"]["id"]),
                        name: text(&event["content_block"]["name"]),
                        arguments: String::new(),
                    };
                    calls.insert(place, call);
                }
                Some("content_block_delta") => {
                    push(&mut answer.text, &event["delta"]["text"]);
                    if let Some(call) = calls.get_mut(&place) {
                        push(&mut call.arguments, &event["delta"]["partial_json"]);
                    }
                }
                Some("message_delta") => {
                    answer.finish = text(&event["delta"]["stop_reason"]).or(answer.finish);
                    Self::usage(&mut answer, &event["usage"]);
                }
                _ => {}
            }
        }
        answer.calls = calls.into_values().collect();
        for call in &mut answer.calls {
            // No piece at all means no argument.
            if call.arguments.is_empty() {
                call.arguments.push_str("{}");
            }
        }
        answer
    }
}

/// Gemini.
pub(super) struct Gemini;

impl Read for Gemini {
    const CALLS: &'static [&'static str] = &["STOP"];
    const LENGTH: &'static str = "MAX_TOKENS";
    const STOP: &'static [&'static str] = &["STOP"];
    const CALL_IDS: bool = false;

    fn plain(body: &Value) -> Answer {
        match body {
            // Without `alt=sse` a stream is an array of pieces.
            Value::Array(pieces) => Self::stream(pieces),
            whole => Self::stream(std::slice::from_ref(whole)),
        }
    }

    fn stream(events: &[Value]) -> Answer {
        let mut answer = Answer::default();
        for event in events {
            answer.id = answer.id.or_else(|| text(&event["responseId"]));
            let candidate = &event["candidates"][0];
            answer.finish = text(&candidate["finishReason"]).or(answer.finish);
            for part in items(&candidate["content"]["parts"]) {
                if part["thought"] != true {
                    push(&mut answer.text, &part["text"]);
                }
                if let Some(call) = part.get("functionCall") {
                    answer.calls.push(Call {
                        id: text(&call["id"]),
                        name: text(&call["name"]),
                        arguments: call.get("args").map_or("{}".to_owned(), Value::to_string),
                    });
                }
            }
            let usage = &event["usageMetadata"];
            let part = |name: &str| usage[name].as_u64();
            if let Some(input) = part("promptTokenCount") {
                let output = part("candidatesTokenCount").unwrap_or_default()
                    + part("thoughtsTokenCount").unwrap_or_default();
                answer.input = Some(input);
                answer.output = Some(output);
                let input = input + part("toolUsePromptTokenCount").unwrap_or_default();
                answer.total = total(&usage["totalTokenCount"], [Some(input), Some(output)]);
            }
        }
        answer
    }
}
