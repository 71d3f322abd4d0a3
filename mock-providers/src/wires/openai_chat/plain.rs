//! The answer as one object.

use serde_json::{Map, Value, json};

use super::super::Context;
use super::super::out::{Frames, MarkKind};
use super::{Dialect, FINGERPRINT, choices, finish_word, unknown_members, usage};
use crate::script::{
    Answer, Call, ContentForm, ExtraFields, FinishPlace, Part, Reasoning, ReasoningField, Text,
    ToolArgs, ToolId, UsagePlace,
};

pub(super) fn write(answer: &Answer, context: &Context<'_>, dialect: &Dialect) -> Frames {
    let message = message(answer, dialect);
    let list: Vec<Value> = (0..choices(context))
        .map(|index| choice(index, &message, answer, dialect))
        .collect();
    let mut body = Map::new();
    body.insert("id".into(), dialect.id.as_str().into());
    body.insert("object".into(), "chat.completion".into());
    body.insert("created".into(), context.created.into());
    body.insert("model".into(), context.model(answer).into());
    body.insert("choices".into(), list.into());
    let cost = context
        .usage(answer)
        .filter(|_| dialect.variation.usage != UsagePlace::Absent);
    if let Some(cost) = cost {
        body.insert("usage".into(), usage(&cost, dialect.gemini));
    }
    if !dialect.gemini {
        body.insert("service_tier".into(), "default".into());
        body.insert("system_fingerprint".into(), FINGERPRINT.into());
    }
    if dialect.variation.extra_fields == ExtraFields::Random {
        body.insert("x_turnwire".into(), unknown_members());
    }
    let mut frames = Frames::default();
    // Writing into a `Vec` cannot fail.
    let _ = serde_json::to_writer(&mut frames.data, &Value::Object(body));
    frames.end(None, MarkKind::Token);
    frames
}

fn choice(index: u64, message: &Value, answer: &Answer, dialect: &Dialect) -> Value {
    let mut choice = json!({"index": index, "message": message, "logprobs": null});
    let word: Value = match dialect.variation.finish {
        FinishPlace::Absent => return choice,
        FinishPlace::Null => Value::Null,
        _ => finish_word(answer).into(),
    };
    choice["finish_reason"] = word;
    choice
}

fn message(answer: &Answer, dialect: &Dialect) -> Value {
    let variation = &dialect.variation;
    let mut text = String::new();
    let mut refusal = String::new();
    let mut thinking: Vec<&Reasoning> = Vec::new();
    let mut calls = Vec::new();
    for part in &answer.parts {
        match part {
            Part::Text(piece) => text.push_str(&piece.whole()),
            Part::Refusal(piece) => refusal.push_str(&piece.whole()),
            Part::Reasoning(reasoning) => thinking.push(reasoning),
            Part::Calls(more) => calls.extend(more.list.iter()),
            _ => {}
        }
    }
    let thought: String = thinking
        .iter()
        .flat_map(|one| &one.text)
        .map(Text::whole)
        .collect();
    if let Some((open, close)) = tags(variation.reasoning_field).filter(|_| !thought.is_empty()) {
        text = format!("{open}{thought}{close}{text}");
    }
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    let none = text.is_empty() && (!calls.is_empty() || !refusal.is_empty());
    if let Some(content) = content(
        variation.content,
        variation.reasoning_field,
        &text,
        &thought,
        none,
    ) {
        message.insert("content".into(), content);
    }
    if !dialect.gemini {
        let refusal = Some(refusal).filter(|refusal| !refusal.is_empty());
        message.insert("refusal".into(), refusal.into());
        message.insert("annotations".into(), json!([]));
    }
    insert_thinking(&mut message, variation.reasoning_field, &thought, &thinking);
    if !calls.is_empty() {
        let calls: Vec<Value> = calls
            .iter()
            .zip(&dialect.call_ids)
            .enumerate()
            .map(|(at, (call, id))| whole_call(call, id, at == 0, dialect))
            .collect();
        message.insert("tool_calls".into(), calls.into());
    }
    Value::Object(message)
}

fn content(
    form: ContentForm,
    field: ReasoningField,
    text: &str,
    thought: &str,
    none: bool,
) -> Option<Value> {
    if form == ContentForm::Array || field == ReasoningField::ContentArray {
        let mut parts = Vec::new();
        if field == ReasoningField::ContentArray && !thought.is_empty() {
            parts.push(thinking_part(thought));
        }
        parts.push(json!({"type": "text", "text": text}));
        return Some(parts.into());
    }
    match form {
        ContentForm::Absent if none => None,
        _ if none => Some(Value::Null),
        _ => Some(text.into()),
    }
}

/// A part of Mistral's.
pub(super) fn thinking_part(thought: &str) -> Value {
    json!({"type": "thinking", "thinking": [{"type": "text", "text": thought}]})
}

/// The tags around thinking in the text.
pub(super) const fn tags(field: ReasoningField) -> Option<(&'static str, &'static str)> {
    match field {
        ReasoningField::ThinkTags => Some(("<think>", "</think>")),
        ReasoningField::ThoughtTags => Some(("<thought>", "</thought>")),
        _ => None,
    }
}

fn insert_thinking(
    message: &mut Map<String, Value>,
    field: ReasoningField,
    thought: &str,
    thinking: &[&Reasoning],
) {
    if thinking.is_empty() {
        return;
    }
    if matches!(
        field,
        ReasoningField::ReasoningContent | ReasoningField::Both
    ) {
        message.insert("reasoning_content".into(), thought.into());
    }
    if matches!(
        field,
        ReasoningField::Reasoning | ReasoningField::Both | ReasoningField::Details
    ) {
        message.insert("reasoning".into(), thought.into());
    }
    if field == ReasoningField::Details {
        let details: Vec<Value> = thinking
            .iter()
            .flat_map(|one| details(&text_of(one), one))
            .collect();
        message.insert("reasoning_details".into(), details.into());
    }
}

fn text_of(reasoning: &Reasoning) -> String {
    reasoning.text.iter().map(Text::whole).collect()
}

/// OpenRouter's details: the text with its signature, then what cannot be read.
pub(super) fn details(text: &str, reasoning: &Reasoning) -> Vec<Value> {
    let mut details = Vec::new();
    if !text.is_empty() || reasoning.signature.is_some() {
        details.push(json!({"type": "reasoning.text", "text": text,
            "signature": reasoning.signature, "format": "anthropic-claude-v1", "index": 0}));
    }
    if let Some(data) = &reasoning.encrypted {
        details.push(json!({"type": "reasoning.encrypted", "data": data,
            "format": "openai-responses-v1", "index": 1, "id": null}));
    }
    details
}

fn whole_call(call: &Call, id: &str, first: bool, dialect: &Dialect) -> Value {
    let mut entry = Map::new();
    if dialect.variation.tool_id != ToolId::Absent {
        entry.insert("id".into(), id.into());
    }
    if call.custom {
        entry.insert("type".into(), "custom".into());
        entry.insert(
            "custom".into(),
            json!({"name": call.name, "input": call.text()}),
        );
    } else {
        entry.insert("type".into(), "function".into());
        let mut function = Map::new();
        function.insert("name".into(), call.name.as_str().into());
        if let Some(arguments) = arguments(call, dialect.variation.tool_args) {
            function.insert("arguments".into(), arguments);
        }
        entry.insert("function".into(), function.into());
    }
    if let Some(extra) = dialect.extra_content(call, first) {
        entry.insert("extra_content".into(), extra);
    }
    Value::Object(entry)
}

/// The whole arguments in the form that the variation wants; `None` for left out.
pub(super) fn arguments(call: &Call, form: ToolArgs) -> Option<Value> {
    let text = call.text();
    match form {
        ToolArgs::Absent => None,
        ToolArgs::Null => Some(Value::Null),
        ToolArgs::Object => Some(serde_json::from_str(&text).unwrap_or(Value::String(text))),
        ToolArgs::Split | ToolArgs::Whole | ToolArgs::Both => Some(text.into()),
    }
}
