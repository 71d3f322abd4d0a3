//! Puts answers together, chunk by chunk or whole, without I/O.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::gateway::continuation::Origin;
use crate::gateway::draft::{CallDraft, TOOL_CALLS, Text, opening_of, ready, settled};
use crate::gateway::json::{count, filled, index, items};
use crate::gateway::read::{Progress, Reader};
use crate::gateway::refusal::{self, Fault};
use crate::gateway::reply::{FinishReason, ModelEvent, ModelReply, TokenUsage};

/// Parts of one answer that go back.
const PARTS: usize = 16_384;

/// An answer while it comes in.
pub(super) struct Answer {
    origin: Origin,
    taken: BTreeSet<String>,
    text: Text,
    thinking: Text,
    calls: Vec<CallDraft>,
    /// The parts as they go back.
    entries: Vec<Value>,
    usage: TokenUsage,
    /// What earlier requests of this answer cost.
    before: TokenUsage,
    finish: Option<String>,
    message: Option<String>,
    /// Why the prompt was blocked.
    blocked: Option<String>,
    token: Option<Value>,
}

/// A member by its name in camelCase or in snake_case.
fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    let found = &value[name];
    if !found.is_null() {
        return found;
    }
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    &value[&snake]
}

impl Answer {
    pub(super) fn new(origin: Origin, taken: BTreeSet<String>) -> Self {
        Self {
            origin,
            taken,
            text: Text::default(),
            thinking: Text::default(),
            calls: Vec::new(),
            entries: Vec::new(),
            usage: TokenUsage::default(),
            before: TokenUsage::default(),
            finish: None,
            message: None,
            blocked: None,
            token: None,
        }
    }

    /// Takes a chunk or a whole answer; tells whether it was one.
    fn take(&mut self, answer: &Value, out: &mut Vec<ModelEvent>) -> Result<bool, Fault> {
        let usage = member(answer, "usageMetadata");
        if usage.is_object() {
            self.usage = usage_of(usage);
        }
        let blocked = filled(member(member(answer, "promptFeedback"), "blockReason"));
        if let Some(reason) = blocked {
            self.blocked = Some(reason.to_owned());
        }
        let candidates = items(&answer["candidates"]);
        // Another candidate than the first was not asked for.
        let first = candidates
            .iter()
            .find(|candidate| index(&candidate["index"]).unwrap_or(0) == 0)
            .or(candidates.first());
        if let Some(candidate) = first {
            self.candidate(candidate, out)?;
        }
        Ok(first.is_some() || blocked.is_some() || usage.is_object())
    }

    fn candidate(&mut self, candidate: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        for part in items(&candidate["content"]["parts"]) {
            self.part(part, out)?;
        }
        if let (None, Some(reason)) = (&self.finish, filled(member(candidate, "finishReason"))) {
            self.finish = Some(reason.to_owned());
            self.message = filled(member(candidate, "finishMessage")).map(str::to_owned);
        }
        let token = member(candidate, "continuationToken");
        if !token.is_null() {
            self.token = Some(token.clone());
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let thought = part["thought"] == true;
        let text = part["text"].as_str();
        if let Some(text) = text {
            if thought {
                self.thinking.think(text, out)?;
            } else {
                self.text.say(text, out)?;
            }
        }
        let call = member(part, "functionCall");
        if call.is_object() {
            self.call(call, out)?;
        }
        self.keep(part, text, thought)
    }

    fn call(&mut self, call: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if self.calls.len() >= TOOL_CALLS {
            return Err(Fault::bad("the answer has too many tool calls"));
        }
        let place = self.calls.len();
        let name = filled(&call["name"]);
        let mut draft = CallDraft {
            id: filled(&call["id"]).map(str::to_owned),
            name: name.unwrap_or_default().to_owned(),
            arguments: String::new(),
        };
        out.push(opening_of(place, draft.id.as_deref(), name));
        match &call["args"] {
            Value::Null => {}
            Value::String(text) => draft.write(place, text, out)?,
            args => draft.write(place, &args.to_string(), out)?,
        }
        self.calls.push(draft);
        Ok(())
    }

    /// Keeps a part as it goes back. Unsigned texts of one kind are one part; signed ones stay apart.
    fn keep(&mut self, part: &Value, text: Option<&str>, thought: bool) -> Result<(), Fault> {
        let signature = filled(member(part, "thoughtSignature"));
        if let (Some(text), None, Some(last)) = (text, signature, self.entries.last_mut()) {
            let same = last["thought"] == thought || (!thought && last["thought"].is_null());
            let unsigned = last["thoughtSignature"].is_null();
            if let Some(before) = last["text"].as_str().filter(|_| same && unsigned) {
                last["text"] = json!(format!("{before}{text}"));
                return Ok(());
            }
        }
        if self.entries.len() >= PARTS {
            return Err(Fault::bad("the answer has too many parts"));
        }
        let call = member(part, "functionCall");
        let mut entry = match text {
            Some("") if signature.is_none() => return Ok(()),
            Some(text) if thought => json!({ "text": text, "thought": true }),
            Some(text) => json!({ "text": text }),
            None if call.is_object() => json!({ "functionCall": call }),
            None => part.clone(),
        };
        if let Some(signature) = signature {
            entry["thoughtSignature"] = json!(signature);
        }
        self.entries.push(entry);
        Ok(())
    }
}

impl Reader for Answer {
    fn event(&mut self, event: &Value, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault> {
        if let Some(fault) = refusal::in_answer(event) {
            return Err(fault);
        }
        for answer in event
            .as_array()
            .map_or(std::slice::from_ref(event), Vec::as_slice)
        {
            self.take(answer, out)?;
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, answer: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let found = self.take(answer, out)? && (self.finish.is_some() || !self.entries.is_empty());
        if !found && self.blocked.is_none() {
            return Err(Fault::bad("the answer has no candidate"));
        }
        self.finish.get_or_insert_with(|| "STOP".to_owned());
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some() || self.blocked.is_some()
    }

    fn finish(&mut self, _out: &mut Vec<ModelEvent>) -> Result<ModelReply, Fault> {
        let blocked = self.blocked.take();
        let finish = match (&blocked, self.finish.take()) {
            (Some(_), _) => FinishReason::ContentFilter,
            (None, Some(reason)) => finish_of(&reason, self.message.as_deref())?,
            (None, None) => return Err(Fault::cut()),
        };
        let tool_calls = ready(std::mem::take(&mut self.calls), &finish, &self.taken);
        let finish = settled(finish, &tool_calls);
        let reasoning = std::mem::take(&mut self.thinking.0);
        let mut record = self.origin.record();
        record.source = (!reasoning.is_empty()).then(|| "thought".to_owned());
        record.entries = std::mem::take(&mut self.entries);
        record.signed = record
            .entries
            .iter()
            .any(|part| !part["thoughtSignature"].is_null());
        Ok(ModelReply {
            text: std::mem::take(&mut self.text.0),
            reasoning,
            refusal: blocked.map(|reason| format!("the prompt was blocked: {reason}")),
            usage: self.before.plus(self.usage),
            continuation: (!record.entries.is_empty())
                .then(|| record.seal())
                .flatten(),
            tool_calls,
            finish,
            ..ModelReply::default()
        })
    }

    /// The service has more to say in answer to the same request.
    fn go_on(&mut self) -> Option<(&'static str, Value)> {
        if self.finish.as_deref() != Some("CONTINUATION") {
            return None;
        }
        let token = self.token.take()?;
        self.finish = None;
        self.before = self.before.plus(std::mem::take(&mut self.usage));
        Some(("continuationToken", token))
    }
}

/// Thinking counts as output; what was cached is inside the input.
fn usage_of(usage: &Value) -> TokenUsage {
    let of = |name: &str| count(member(usage, name));
    let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
        (None, None) => None,
        (one, two) => Some(one.unwrap_or(0).saturating_add(two.unwrap_or(0))),
    };
    let thinking = of("thoughtsTokenCount");
    TokenUsage {
        input_tokens: sum(of("promptTokenCount"), of("toolUsePromptTokenCount")),
        output_tokens: sum(of("candidatesTokenCount"), thinking),
        cached_input_tokens: of("cachedContentTokenCount"),
        cache_write_input_tokens: None,
        reasoning_tokens: thinking,
        total_tokens: of("totalTokenCount"),
    }
}

/// Calls that the service itself could not read are no answer.
fn finish_of(reason: &str, message: Option<&str>) -> Result<FinishReason, Fault> {
    Ok(match reason {
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "IMAGE_OTHER"
        | "NO_IMAGE"
        | "MODEL_ARMOR" => FinishReason::ContentFilter,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "MALFORMED_RESPONSE" => {
            let detail = message.unwrap_or("the model wrote a broken call");
            let message = format!("{reason}: {detail}");
            return Err(Fault {
                code: Some(reason.to_owned()),
                ..Fault::bad(message)
            });
        }
        other => FinishReason::Other(other.to_owned()),
    })
}
