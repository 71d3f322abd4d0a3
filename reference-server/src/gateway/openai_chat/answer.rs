//! Puts answers together, chunk by chunk or whole, without I/O.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Dialect;
use super::calls::{Calls, entry};
use crate::gateway::continuation::{Origin, THINK};
use crate::gateway::draft::{Text, ready, settled};
use crate::gateway::error::ErrorKind;
use crate::gateway::json::{count, filled, index, items};
use crate::gateway::read::{Progress, Reader};
use crate::gateway::refusal::{self, Fault};
use crate::gateway::reply::{FinishReason, ModelEvent, ModelReply, TokenUsage};
use crate::gateway::think::{Said, ThinkSplitter};

/// The members that hold thinking. When several do, they hold the same.
const THINKING: [&str; 2] = ["reasoning_content", "reasoning"];

/// An answer while it comes in.
pub(super) struct Answer {
    origin: Origin,
    dialect: Dialect,
    taken: BTreeSet<String>,
    splitter: ThinkSplitter,
    /// The choice that is the answer.
    choice: Option<i64>,
    text: Text,
    thinking: Text,
    refusal: String,
    calls: Calls,
    /// A signature that came without a call.
    loose: Option<Value>,
    /// The member in which thinking came.
    source: Option<&'static str>,
    details: Vec<Value>,
    usage: Value,
    finish: Option<String>,
}

impl Answer {
    pub(super) fn new(origin: Origin, taken: BTreeSet<String>, dialect: Dialect) -> Self {
        let tags: &[&str] = match dialect {
            Dialect::Plain => &["think"],
            Dialect::Gemini => &["think", "thought"],
        };
        Self {
            origin,
            dialect,
            taken,
            splitter: ThinkSplitter::new(tags),
            choice: None,
            text: Text::default(),
            thinking: Text::default(),
            refusal: String::new(),
            calls: Calls::default(),
            loose: None,
            source: None,
            details: Vec::new(),
            usage: Value::Null,
            finish: None,
        }
    }

    fn count(&mut self, usage: &Value) {
        if usage.is_object() {
            self.usage = usage.clone();
        }
    }

    /// Takes a delta or a whole message.
    fn message(&mut self, message: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let google = &message["extra_content"]["google"];
        self.thinking_of(message, out)?;
        match &message["content"] {
            Value::String(text) if google["thought"] == true => {
                self.think("extra_content", text, out)?
            }
            Value::String(text) => self.say(text, out)?,
            parts => self.parts(items(parts), out)?,
        }
        if let Some(refusal) = filled(&message["refusal"]) {
            self.refusal.push_str(refusal);
        }
        for call in items(&message["tool_calls"]) {
            self.calls.take(call, out)?;
        }
        if message["function_call"].is_object() {
            let call = serde_json::json!({ "index": 0, "function": message["function_call"] });
            self.calls.take(&call, out)?;
        }
        if google["thought_signature"].is_string() {
            self.loose = Some(message["extra_content"].clone());
        }
        Ok(())
    }

    fn thinking_of(&mut self, message: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let details = items(&message["reasoning_details"]);
        self.details.extend_from_slice(details);
        let named = THINKING
            .iter()
            .find_map(|name| Some((*name, filled(&message[*name])?)));
        if let Some((name, text)) = named {
            return self.think(name, text, out);
        }
        for detail in details {
            let texts = [&detail["text"], &detail["summary"]];
            if let Some(text) = texts.into_iter().find_map(filled) {
                self.think("reasoning_details", text, out)?;
            }
        }
        Ok(())
    }

    fn think(
        &mut self,
        source: &'static str,
        text: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        if !text.is_empty() {
            self.source.get_or_insert(source);
        }
        self.thinking.think(text, out)
    }

    /// Content as a list: texts, and thinking with texts in it.
    fn parts(&mut self, parts: &[Value], out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        for part in parts {
            if let Some(text) = filled(&part["text"]) {
                self.say(text, out)?;
            }
            match &part["thinking"] {
                Value::String(text) => self.think("content", text, out)?,
                inner => {
                    for text in items(inner).iter().filter_map(|one| filled(&one["text"])) {
                        self.think("content", text, out)?;
                    }
                }
            }
            if let Some(refusal) = filled(&part["refusal"]) {
                self.refusal.push_str(refusal);
            }
        }
        Ok(())
    }

    fn say(&mut self, text: &str, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let said = self.splitter.push(text);
        self.hand_on(said, out)
    }

    fn hand_on(&mut self, said: Vec<Said>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        for piece in said {
            match piece {
                Said::Text(text) => self.text.say(&text, out)?,
                Said::Thinking(text) => self.thinking.think(&text, out)?,
            }
        }
        Ok(())
    }

    /// The choice that is the answer: the first that comes.
    fn choice<'a>(&mut self, choices: &'a Value) -> impl Iterator<Item = &'a Value> + use<'a> {
        let place = |choice: &Value| index(&choice["index"]).unwrap_or(0);
        let choices = items(choices);
        if let (None, Some(first)) = (self.choice, choices.first()) {
            self.choice = Some(place(first));
        }
        let ours = self.choice;
        choices
            .iter()
            .filter(move |choice| Some(place(choice)) == ours)
    }

    fn ended(&mut self, choice: &Value) {
        self.count(&choice["usage"]);
        if let (None, Some(reason)) = (&self.finish, filled(&choice["finish_reason"])) {
            self.finish = Some(reason.to_owned());
        }
    }
}

impl Reader for Answer {
    fn event(&mut self, event: &Value, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault> {
        if let Some(fault) = refusal::in_answer(event) {
            return Err(fault);
        }
        self.count(&event["usage"]);
        self.count(&event["x_groq"]["usage"]);
        for choice in self.choice(&event["choices"]) {
            // Beside a delta, `message` repeats what came before.
            let delta = &choice["delta"];
            if delta.is_object() {
                self.message(delta, out)?;
            } else if self.text.0.is_empty() && choice["message"].is_object() {
                self.message(&choice["message"], out)?;
            }
            self.ended(choice);
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, answer: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.count(&answer["usage"]);
        let mut found = false;
        for choice in self.choice(&answer["choices"]) {
            found = true;
            self.message(&choice["message"], out)?;
            self.ended(choice);
        }
        if !found {
            return Err(Fault::bad("the answer has no choice"));
        }
        // A whole answer is complete, whether it says why or not.
        self.finish.get_or_insert_with(|| "stop".to_owned());
        Ok(())
    }

    fn done(&self) -> Progress {
        Progress::Over
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<ModelReply, Fault> {
        let Some(reason) = self.finish.take() else {
            return Err(Fault::cut());
        };
        let finish = finish_of(&reason, !self.refusal.is_empty())?;
        let held = self.splitter.end();
        self.hand_on(held, out)?;
        let mut calls = std::mem::take(&mut self.calls);
        if let Some(loose) = self.loose.take() {
            calls.sign(&loose);
        }
        let (drafts, extras): (Vec<_>, Vec<_>) = calls.finish().into_iter().unzip();
        let tool_calls = ready(drafts, &finish, &self.taken);
        let finish = settled(finish, &tool_calls);

        let mut record = self.origin.record();
        let thinking = std::mem::take(&mut self.thinking.0);
        if self.splitter.found() {
            record.source = Some(THINK.to_owned());
        } else {
            record.source = self.source.map(str::to_owned);
            record.reasoning = (!thinking.is_empty()).then(|| thinking.clone());
        }
        record.entries = match self.dialect {
            Dialect::Plain => std::mem::take(&mut self.details),
            // Of an answer that was cut by its length calls are missing, and it does not go on.
            Dialect::Gemini if tool_calls.len() == extras.len() => {
                let pairs = tool_calls.iter().zip(&extras);
                pairs
                    .filter_map(|(call, extra)| entry(&call.id, extra))
                    .collect()
            }
            Dialect::Gemini => Vec::new(),
        };
        record.signed = self.dialect == Dialect::Gemini && !record.entries.is_empty();
        let wanted =
            record.source.is_some() || !record.entries.is_empty() || !tool_calls.is_empty();
        Ok(ModelReply {
            text: std::mem::take(&mut self.text.0),
            reasoning: thinking,
            refusal: (!self.refusal.is_empty()).then(|| std::mem::take(&mut self.refusal)),
            usage: usage_of(&self.usage, self.dialect),
            continuation: wanted.then(|| record.seal()).flatten(),
            tool_calls,
            finish,
            ..ModelReply::default()
        })
    }
}

/// What a usage says. Thinking is part of the output; a service whose output leaves it out says so by a
/// total that exceeds the sum.
fn usage_of(usage: &Value, dialect: Dialect) -> TokenUsage {
    let prompt = &usage["prompt_tokens_details"];
    let either = |one: &Value, two: &Value| count(one).or_else(|| count(two));
    let input = count(&usage["prompt_tokens"]);
    let output = count(&usage["completion_tokens"]);
    let total = count(&usage["total_tokens"]);
    let reasoning = count(&usage["completion_tokens_details"]["reasoning_tokens"]);
    let output = match (dialect, total, input, output) {
        (Dialect::Gemini, Some(total), Some(input), Some(output)) => {
            Some(total.saturating_sub(input).max(output))
        }
        (_, _, _, output) => output,
    };
    TokenUsage {
        input_tokens: input,
        output_tokens: output,
        cached_input_tokens: either(&prompt["cached_tokens"], &usage["prompt_cache_hit_tokens"])
            .or_else(|| count(&usage["cached_tokens"])),
        cache_write_input_tokens: count(&prompt["cache_write_tokens"]),
        reasoning_tokens: match (reasoning, output) {
            (Some(reasoning), Some(output)) => Some(reasoning.min(output)),
            (reasoning, _) => reasoning,
        },
        total_tokens: total,
    }
}

/// Why it ended. Some services put an error into this member.
fn finish_of(reason: &str, refused: bool) -> Result<FinishReason, Fault> {
    Ok(match reason {
        "error" | "network_error" | "insufficient_system_resource" => {
            let message = format!("the provider ended its answer with {reason:?}");
            return Err(Fault::new(ErrorKind::Unavailable, message));
        }
        "stop" if refused => FinishReason::ContentFilter,
        "stop" => FinishReason::Stop,
        "length" | "model_length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" | "sensitive" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    })
}
