//! Puts answers together, event by event or whole, without I/O.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::item::Item;
use crate::gateway::continuation::{Origin, THINK};
use crate::gateway::draft::{TOOL_CALLS, ready, settled};
use crate::gateway::error::ErrorKind;
use crate::gateway::json::{count, filled, items};
use crate::gateway::read::{Progress, Reader};
use crate::gateway::refusal::{self, Fault};
use crate::gateway::reply::{FinishReason, ModelEvent, ModelReply, TokenUsage};

/// Items of one answer.
const ITEMS: usize = 4_096;

/// An answer while it comes in.
pub(super) struct Answer {
    origin: Origin,
    taken: BTreeSet<String>,
    items: BTreeMap<u64, Item>,
    calls: usize,
    /// The response at its end.
    response: Option<Value>,
    /// The newest numbered event, to tell one that was sent twice.
    last: Option<Value>,
}

impl Answer {
    pub(super) fn new(origin: Origin, taken: BTreeSet<String>) -> Self {
        Self {
            origin,
            taken,
            items: BTreeMap::new(),
            calls: 0,
            response: None,
            last: None,
        }
    }

    /// The item that an event is about: that of its place, else that of its id, else the newest.
    fn place(&self, event: &Value) -> u64 {
        let by_id = || {
            let id = filled(&event["item_id"]).or_else(|| filled(&event["item"]["id"]))?;
            let mut items = self.items.iter();
            items.find_map(|(at, item)| (item.id() == Some(id)).then_some(*at))
        };
        let newest = || self.items.keys().next_back().copied();
        count(&event["output_index"])
            .or_else(by_id)
            .or_else(newest)
            .unwrap_or(0)
    }

    fn item(&mut self, at: u64) -> Result<&mut Item, Fault> {
        if self.items.len() >= ITEMS && !self.items.contains_key(&at) {
            return Err(Fault::bad("the answer has too many items"));
        }
        Ok(self.items.entry(at).or_default())
    }

    fn opened(&mut self, event: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let by_place = count(&event["output_index"]);
        // Without a place it is the next one.
        let at =
            by_place.unwrap_or_else(|| self.items.keys().next_back().map_or(0, |last| last + 1));
        self.item(at)?.open(&event["item"]);
        self.number(at, out)
    }

    fn number(&mut self, at: u64, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if self.calls >= TOOL_CALLS {
            return Err(Fault::bad("the answer has too many tool calls"));
        }
        let number = self.calls;
        if self.item(at)?.number(number, out) {
            self.calls += 1;
        }
        Ok(())
    }

    fn done(&mut self, at: u64, item: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.item(at)?.done(item, out)?;
        self.number(at, out)?;
        let item = self.item(at)?;
        if item.is_call() {
            item.take_arguments(out);
        }
        Ok(())
    }

    /// The response at its end: what no event told is taken from it.
    fn ended(&mut self, response: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let output = items(&response["output"]);
        // Places may have gaps in a stream; the response has none.
        let places: Vec<u64> = if self.items.len() == output.len() {
            self.items.keys().copied().collect()
        } else {
            (0..).take(output.len()).collect()
        };
        for (at, item) in places.into_iter().zip(output) {
            if !self.items.get(&at).is_some_and(Item::is_done) {
                self.done(at, item, out)?;
            }
        }
        if self.response.is_none() {
            self.response = Some(response.clone());
        }
        Ok(())
    }

    fn repeats(&mut self, event: &Value) -> bool {
        if event["sequence_number"].is_null() {
            return false;
        }
        let same = self.last.as_ref() == Some(event);
        if !same {
            self.last = Some(event.clone());
        }
        same
    }

    fn piece(&mut self, kind: &str, event: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let at = self.place(event);
        let part = count(&event["content_index"]).unwrap_or(0);
        let summary = count(&event["summary_index"]).unwrap_or(0);
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let item = self.item(at)?;
        match kind {
            "response.output_text.delta" => item.say(part, text("delta"), out),
            "response.output_text.done" => item.said(part, text("text"), out),
            "response.refusal.delta" => item.refuse(part, text("delta")),
            "response.refusal.done" => item.refused(part, text("refusal")),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                item.write(text("delta"), out)
            }
            "response.function_call_arguments.done" => {
                item.written(text("arguments"), out);
                Ok(())
            }
            "response.custom_tool_call_input.done" => {
                item.written(text("input"), out);
                Ok(())
            }
            "response.reasoning_summary_text.delta" => item.summarize(summary, text("delta"), out),
            "response.reasoning_summary_text.done" => item.summarized(summary, text("text"), out),
            "response.reasoning_text.delta" => item.think(part, text("delta"), out),
            _ => item.thought(part, text("text"), out),
        }
    }
}

/// The events that fill items.
const PIECES: &[&str] = &[
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.delta",
    "response.custom_tool_call_input.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.delta",
    "response.reasoning_text.done",
];

impl Reader for Answer {
    fn event(&mut self, event: &Value, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault> {
        if let Some(fault) = refusal::in_answer(event) {
            return Err(fault);
        }
        if self.repeats(event) {
            return Ok(Progress::More);
        }
        let response = &event["response"];
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" => self.opened(event, out)?,
            "response.output_item.done" => {
                let at = self.place(event);
                self.done(at, &event["item"], out)?;
                self.item(at)?.close();
            }
            "response.completed" | "response.incomplete" => {
                self.ended(response, out)?;
                return Ok(Progress::Over);
            }
            "response.failed" | "response.cancelled" => return Err(failure(response)),
            kind if PIECES.contains(&kind) => self.piece(kind, event, out)?,
            _ => {}
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, answer: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if matches!(answer["status"].as_str(), Some("failed" | "cancelled")) {
            return Err(failure(answer));
        }
        if !answer["output"].is_array() {
            return Err(Fault::bad("the answer has no output"));
        }
        self.ended(answer, out)
    }

    fn is_complete(&self) -> bool {
        self.response.is_some()
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<ModelReply, Fault> {
        let Some(response) = self.response.take() else {
            return Err(Fault::cut());
        };
        for item in self.items.values_mut() {
            item.end(out)?;
        }
        let joined = |of: fn(&Item) -> String| -> String { self.items.values().map(of).collect() };
        let refusal = joined(Item::refusal);
        let finish = finish_of(&response, !refusal.is_empty());
        let calls = self.items.values().filter(|item| item.is_call());
        let tool_calls = ready(calls.map(Item::draft), &finish, &self.taken);
        let finish = settled(finish, &tool_calls);

        let reasoning = thinking(self.items.values());
        let mut record = self.origin.record();
        let tagged = self.items.values().any(Item::is_tagged);
        record.source = if tagged {
            Some(THINK.to_owned())
        } else {
            (!reasoning.is_empty()).then(|| "summary".to_owned())
        };
        record.entries = self.items.values().filter_map(Item::entry).collect();
        record.signed = record
            .entries
            .iter()
            .any(|item| !item["encrypted_content"].is_null());
        let kept = response["store"] != false;
        Ok(ModelReply {
            stored: filled(&response["id"]).filter(|_| kept).map(str::to_owned),
            text: joined(Item::text),
            reasoning,
            refusal: (!refusal.is_empty()).then_some(refusal),
            usage: usage_of(&response["usage"]),
            continuation: (!record.entries.is_empty())
                .then(|| record.seal())
                .flatten(),
            tool_calls,
            finish,
            ..ModelReply::default()
        })
    }
}

/// All thinking, item by item.
fn thinking<'a>(items: impl Iterator<Item = &'a Item>) -> String {
    let texts = items.map(Item::thinking).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n\n")
}

fn failure(response: &Value) -> Fault {
    if response["error"].is_object() {
        return refusal::of_error(response);
    }
    let status = response["status"].as_str().unwrap_or("failed");
    Fault::new(ErrorKind::Unavailable, format!("the response is {status}"))
}

fn finish_of(response: &Value, refused: bool) -> FinishReason {
    let incomplete =
        response["status"] == "incomplete" || response["incomplete_details"].is_object();
    match response["incomplete_details"]["reason"].as_str() {
        _ if refused => FinishReason::ContentFilter,
        _ if !incomplete => FinishReason::Stop,
        Some("max_output_tokens") | None => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}

/// What was cached is inside the input, thinking inside the output.
fn usage_of(usage: &Value) -> TokenUsage {
    let input = &usage["input_tokens_details"];
    let output = count(&usage["output_tokens"]);
    let reasoning = count(&usage["output_tokens_details"]["reasoning_tokens"]);
    TokenUsage {
        input_tokens: count(&usage["input_tokens"]),
        output_tokens: output,
        cached_input_tokens: count(&input["cached_tokens"]),
        cache_write_input_tokens: count(&input["cache_write_tokens"]),
        reasoning_tokens: reasoning.map(|one| output.map_or(one, |output| one.min(output))),
        total_tokens: count(&usage["total_tokens"]),
    }
}
