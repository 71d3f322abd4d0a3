//! Puts answers together, block by block or whole, without I/O.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::gateway::continuation::Origin;
use crate::gateway::draft::{
    CallDraft, TOOL_CALLS, Text, bounded, opening_of, piece_of, ready, settled,
};
use crate::gateway::json::{count, filled, index, items};
use crate::gateway::read::{Progress, Reader};
use crate::gateway::refusal::{self, Fault};
use crate::gateway::reply::{FinishReason, ModelEvent, ModelReply, TokenUsage};

/// Blocks of one answer.
const BLOCKS: usize = 4_096;

/// An answer while it comes in.
pub(super) struct Answer {
    origin: Origin,
    taken: BTreeSet<String>,
    id: Option<Value>,
    blocks: BTreeMap<i64, Block>,
    /// Places of the calls' blocks, in the order in which they began.
    calls: Vec<i64>,
    usage: Map<String, Value>,
    stop_reason: Option<String>,
    details: Value,
    stopped: bool,
}

/// A block while it comes in.
#[derive(Debug, Default)]
struct Block {
    /// As it began, and for blocks that are not put together here as it is.
    start: Value,
    text: Text,
    signature: String,
    /// Pieces of the arguments.
    input: String,
}

impl Block {
    fn kind(&self) -> &str {
        self.start["type"].as_str().unwrap_or_default()
    }

    /// What the model wrote as arguments: the pieces, or what the block began with.
    fn arguments(&self) -> String {
        let given = &self.start["input"];
        let is_given = given.as_object().is_none_or(|input| !input.is_empty()) && !given.is_null();
        match self.input.trim() {
            "" if is_given => given.to_string(),
            _ => self.input.clone(),
        }
    }

    /// As it goes back.
    fn entry(&self) -> Value {
        match self.kind() {
            "text" => json!({ "type": "text", "text": self.text.0 }),
            "thinking" => json!({
                "type": "thinking",
                "thinking": self.text.0,
                "signature": self.signature,
            }),
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let mut entry = self.start.clone();
                let arguments = self.arguments();
                let parsed = serde_json::from_str::<Value>(&arguments);
                entry["input"] = parsed
                    .ok()
                    .filter(Value::is_object)
                    .unwrap_or_else(|| json!({}));
                entry
            }
            _ => self.start.clone(),
        }
    }
}

impl Answer {
    pub(super) fn new(origin: Origin, taken: BTreeSet<String>) -> Self {
        Self {
            origin,
            taken,
            id: None,
            blocks: BTreeMap::new(),
            calls: Vec::new(),
            usage: Map::new(),
            stop_reason: None,
            details: Value::Null,
            stopped: false,
        }
    }

    /// Takes the last value of each count that is one; counts are totals, never increments.
    fn count(&mut self, usage: &Value) {
        for (name, value) in usage.as_object().into_iter().flatten() {
            if !value.is_null() {
                self.usage.insert(name.clone(), value.clone());
            }
        }
    }

    fn begin(&mut self, message: &Value) -> Result<(), Fault> {
        let id = &message["id"];
        match &self.id {
            Some(known) if known != id => {
                return Err(Fault::bad("the answer holds a second message"));
            }
            _ => self.id = Some(id.clone()),
        }
        self.count(&message["usage"]);
        Ok(())
    }

    fn open(&mut self, at: i64, block: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if self.blocks.contains_key(&at) {
            return Ok(());
        }
        if self.blocks.len() >= BLOCKS || self.calls.len() >= TOOL_CALLS {
            return Err(Fault::bad("the answer has too many blocks"));
        }
        let mut opened = Block {
            start: block.clone(),
            ..Block::default()
        };
        match opened.kind() {
            "text" => opened
                .text
                .say(block["text"].as_str().unwrap_or_default(), out)?,
            "thinking" => {
                opened
                    .text
                    .think(block["thinking"].as_str().unwrap_or_default(), out)?;
                block["signature"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut opened.signature);
            }
            "tool_use" => {
                let (id, name) = (filled(&block["id"]), filled(&block["name"]));
                out.push(opening_of(self.calls.len(), id, name));
                self.calls.push(at);
            }
            _ => {}
        }
        self.blocks.insert(at, opened);
        Ok(())
    }

    fn delta(&mut self, at: i64, delta: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let kind = delta["type"].as_str().unwrap_or_default();
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        let known = [
            "text_delta",
            "thinking_delta",
            "signature_delta",
            "input_json_delta",
        ];
        if !known.contains(&kind) {
            return Ok(());
        }
        let Some(block) = self.blocks.get_mut(&at) else {
            return Err(Fault::bad("the answer fills a block that it never began"));
        };
        match kind {
            "text_delta" => block.text.say(text("text"), out),
            "thinking_delta" => block.text.think(text("thinking"), out),
            // A signature comes whole; of several the last one counts.
            "signature_delta" => {
                text("signature").clone_into(&mut block.signature);
                Ok(())
            }
            _ => {
                let piece = text("partial_json");
                bounded(block.input.len() + piece.len())?;
                block.input.push_str(piece);
                if let Some(call) = self.calls.iter().position(|call| *call == at) {
                    out.push(piece_of(call, piece));
                }
                Ok(())
            }
        }
    }

    fn change(&mut self, change: &Value) {
        if let (None, Some(reason)) = (&self.stop_reason, filled(&change["stop_reason"])) {
            self.stop_reason = Some(reason.to_owned());
        }
        if change["stop_details"].is_object() {
            self.details = change["stop_details"].clone();
        }
    }

    fn joined(&self, kind: &str) -> String {
        let blocks = self.blocks.values().filter(|block| block.kind() == kind);
        blocks.map(|block| block.text.0.as_str()).collect()
    }
}

impl Reader for Answer {
    fn event(&mut self, event: &Value, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault> {
        if let Some(fault) = refusal::in_answer(event) {
            return Err(fault);
        }
        let at = index(&event["index"]).unwrap_or(0);
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.begin(&event["message"])?,
            "content_block_start" => self.open(at, &event["content_block"], out)?,
            "content_block_delta" => self.delta(at, &event["delta"], out)?,
            "message_delta" => {
                self.change(&event["delta"]);
                self.count(&event["usage"]);
            }
            "message_stop" => {
                self.stopped = true;
                return Ok(Progress::Over);
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, answer: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if !answer["content"].is_array() {
            return Err(Fault::bad("the answer has no content"));
        }
        self.count(&answer["usage"]);
        for (at, block) in (0..).zip(items(&answer["content"])) {
            self.open(at, block, out)?;
            if let Some(call) = self.calls.iter().position(|call| *call == at) {
                let input = self
                    .blocks
                    .get(&at)
                    .map(Block::arguments)
                    .unwrap_or_default();
                out.push(piece_of(call, &input));
            }
        }
        self.change(answer);
        self.stopped = true;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.stopped && self.stop_reason.is_some()
    }

    fn finish(&mut self, _out: &mut Vec<ModelEvent>) -> Result<ModelReply, Fault> {
        let reason = match self.stop_reason.take() {
            Some(reason) if self.stopped => reason,
            _ => return Err(Fault::cut()),
        };
        let finish = finish_of(&reason);
        let drafts = self.calls.iter().filter_map(|at| self.blocks.get(at));
        let drafts = drafts.map(|block| CallDraft {
            id: filled(&block.start["id"]).map(str::to_owned),
            name: filled(&block.start["name"]).unwrap_or_default().to_owned(),
            arguments: block.arguments(),
        });
        let tool_calls = ready(drafts, &finish, &self.taken);
        let finish = settled(finish, &tool_calls);

        let reasoning = self.joined("thinking");
        let mut record = self.origin.record();
        record.source = (!reasoning.is_empty()).then(|| "thinking".to_owned());
        record.entries = self.blocks.values().map(Block::entry).collect();
        record.signed = self
            .blocks
            .values()
            .any(|block| !block.signature.is_empty());
        let text = self.joined("text");
        // What was said before a refusal is no answer.
        let refused = reason == "refusal";
        let explanation = filled(&self.details["explanation"]).map(str::to_owned);
        Ok(ModelReply {
            refusal: refused.then(|| explanation.unwrap_or_else(|| text.clone())),
            text: if refused { String::new() } else { text },
            reasoning,
            usage: usage_of(&self.usage),
            continuation: (!refused).then(|| record.seal()).flatten(),
            tool_calls: if refused { Vec::new() } else { tool_calls },
            finish,
            ..ModelReply::default()
        })
    }
}

/// The whole input is what was not cached and both cache counts; the output holds thinking.
fn usage_of(usage: &Map<String, Value>) -> TokenUsage {
    let of = |name: &str| usage.get(name).and_then(count);
    let (read, write) = (
        of("cache_read_input_tokens"),
        of("cache_creation_input_tokens"),
    );
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    let output = of("output_tokens");
    let details = usage.get("output_tokens_details");
    let thinking = details.and_then(|details| count(&details["thinking_tokens"]));
    TokenUsage {
        input_tokens: of("input_tokens").map(|input| input.saturating_add(cached)),
        output_tokens: output,
        cached_input_tokens: read,
        cache_write_input_tokens: write,
        reasoning_tokens: thinking
            .map(|thinking| output.map_or(thinking, |output| thinking.min(output))),
        total_tokens: None,
    }
}

fn finish_of(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}
