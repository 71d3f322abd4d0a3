//! The answer as one object.

use serde_json::{Map, Value, json};

use super::super::Context;
use super::super::out::{Frames, MarkKind, Members};
use super::{Dialect, FINGERPRINT, choices, finish_word, unknown_members, write_usage};
use crate::script::{
    Answer, Call, ContentForm, ExtraFields, FinishPlace, Part, Reasoning, ReasoningField, Text,
    ToolArgs, ToolId, UsagePlace, Variation,
};

/// The answer, in the order in which the service writes its members.
pub(super) fn write(answer: &Answer, context: &Context<'_>, dialect: &Dialect) -> Frames {
    let choices = list(answer, context, dialect);
    let mut frames = Frames::default();
    frames.data.reserve(choices.len() + 768);
    let mut body = Members::open(&mut frames.data);
    body.text("id", &dialect.id);
    body.text("object", "chat.completion");
    body.number("created", context.created);
    body.text("model", context.model(answer));
    body.json("choices", &choices);
    let cost = context
        .usage(answer)
        .filter(|_| dialect.variation.usage != UsagePlace::Absent);
    if let Some(cost) = cost {
        write_usage(body.object("usage"), &cost, dialect.gemini);
    }
    if !dialect.gemini {
        body.text("service_tier", "default");
        body.text("system_fingerprint", FINGERPRINT);
    }
    if dialect.variation.extra_fields == ExtraFields::Random {
        body.value("x_turnwire", &unknown_members());
    }
    body.close();
    frames.end(None, MarkKind::Token);
    frames
}

/// The choices: as many as are asked for, all the same.
fn list(answer: &Answer, context: &Context<'_>, dialect: &Dialect) -> Vec<u8> {
    let message = message(answer, dialect);
    let mut list = Vec::with_capacity(message.len() + 128);
    list.push(b'[');
    for index in 0..choices(context) {
        if index > 0 {
            list.push(b',');
        }
        let mut choice = Members::open(&mut list);
        choice.number("index", index);
        choice.json("message", &message);
        choice.json("logprobs", b"null");
        match dialect.variation.finish {
            FinishPlace::Absent => {}
            FinishPlace::Null => choice.value("finish_reason", &()),
            _ => choice.value("finish_reason", &finish_word(answer, dialect.gemini)),
        }
        choice.close();
    }
    list.push(b']');
    list
}

fn message(answer: &Answer, dialect: &Dialect) -> Vec<u8> {
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
    let mut bytes = Vec::with_capacity(text.len() + 128);
    let mut message = Members::open(&mut bytes);
    message.text("role", "assistant");
    let none = text.is_empty() && (!calls.is_empty() || !refusal.is_empty());
    write_content(&mut message, variation, &text, &thought, none);
    if !dialect.gemini {
        message.value(
            "refusal",
            &Some(refusal).filter(|refusal| !refusal.is_empty()),
        );
        message.json("annotations", b"[]");
    }
    write_thinking(&mut message, variation.reasoning_field, &thought, &thinking);
    if !calls.is_empty() {
        let calls: Vec<Value> = calls
            .iter()
            .zip(&dialect.call_ids)
            .enumerate()
            .map(|(at, (call, id))| whole_call(call, id, at == 0, dialect))
            .collect();
        message.value("tool_calls", &calls);
    }
    message.close();
    bytes
}

/// The content, in the form that the variation wants; `none` when there is nothing to say.
fn write_content(
    message: &mut Members<'_>,
    variation: &Variation,
    text: &str,
    thought: &str,
    none: bool,
) {
    let field = variation.reasoning_field;
    if variation.content == ContentForm::Array || field == ReasoningField::ContentArray {
        let mut parts = Vec::new();
        if field == ReasoningField::ContentArray && !thought.is_empty() {
            parts.push(thinking_part(thought));
        }
        parts.push(json!({"type": "text", "text": text}));
        return message.value("content", &parts);
    }
    match variation.content {
        ContentForm::Absent if none => {}
        _ if none => message.value("content", &()),
        _ => message.text("content", text),
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

fn write_thinking(
    message: &mut Members<'_>,
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
        message.text("reasoning_content", thought);
    }
    if matches!(
        field,
        ReasoningField::Reasoning | ReasoningField::Both | ReasoningField::Details
    ) {
        message.text("reasoning", thought);
    }
    if field == ReasoningField::Details {
        let details: Vec<Value> = thinking
            .iter()
            .flat_map(|one| details(&text_of(one), one))
            .collect();
        message.value("reasoning_details", &details);
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
