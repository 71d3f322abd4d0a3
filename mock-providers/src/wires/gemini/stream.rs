//! The answer as events, each a whole response object with new parts.

use serde_json::{Map, Value, json};

use super::super::openai_chat::sign_call;
use super::super::out::{Frames, MarkKind, json_pieces, json_string};
use super::super::parts::{PartWriter, write_parts};
use super::super::route::Form;
use super::super::{Context, errors, tokens_in};
use super::{finish_word, signs, usage};
use crate::script::{
    Answer, Call, Calls, Chunking, ErrorForm, ErrorReply, Escape, ExtraFields, Finish, FinishPlace,
    Reasoning, SignaturePlace, Text, ToolArgs, Usage, Variation,
};

pub(super) fn write(answer: &Answer, context: &mut Context<'_>) -> Frames {
    if let Some(Finish::PromptBlocked(reason)) = &answer.finish {
        return blocked(reason, answer, context);
    }
    let mut stream = Stream::new(answer, context);
    if !write_parts(&mut stream, answer) {
        stream.tail(answer);
    }
    stream.frames
}

/// A blocked prompt: one event without candidates.
fn blocked(reason: &str, answer: &Answer, context: &mut Context<'_>) -> Frames {
    let mut body = json!({"promptFeedback": {"blockReason": reason}});
    if let Some(cost) = context.usage(answer) {
        body["usageMetadata"] = usage(&Usage { output: 0, ..cost }, 0, 0, false);
    }
    body["modelVersion"] = context.model(answer).into();
    body["responseId"] = context.ids.id("", 22).into();
    let mut frames = Frames::default();
    frames.event(None, &body.to_string(), MarkKind::Event);
    frames
}

struct Stream<'a, 'c> {
    frames: Frames,
    context: &'a mut Context<'c>,
    variation: &'a Variation,
    chunk: Chunking,
    escape: Escape,
    usage: Option<Usage>,
    /// Everything behind the usage, with the closing brace.
    after: String,
    /// Output and thinking so far, in tokens.
    output: u64,
    reasoning: u64,
    /// Calls so far.
    calls: usize,
    candidates: u64,
    signing: bool,
    /// Why the last call cannot be said on this wire.
    malformed: Option<String>,
    /// The parts of a plain answer, as JSON texts; thought, text, literal.
    plain: Option<Vec<PlainPart>>,
    held: Option<Vec<u8>>,
}

/// A part of a plain answer: text grows, anything else stands for itself.
enum PlainPart {
    Text { thought: bool, text: String },
    Other(String),
}

impl<'a, 'c> Stream<'a, 'c> {
    fn new(answer: &'a Answer, context: &'a mut Context<'c>) -> Self {
        let id = answer.id.clone().unwrap_or_else(|| context.ids.id("", 22));
        let mut after = String::from(",\"modelVersion\":");
        let model = context.model(answer);
        let model = model.strip_prefix("models/").unwrap_or(model);
        after.push_str(&Value::from(model).to_string());
        after.push_str(&format!(",\"responseId\":{}", Value::from(id)));
        if answer.variation.extra_fields == ExtraFields::Random {
            after.push_str(",\"xTurnwire\":{\"note\":\"é\",\"list\":[1,{\"deep\":null}]}");
        }
        after.push('}');
        let config = super::member(context.request, "generationConfig");
        Self {
            frames: Frames::default(),
            variation: &answer.variation,
            chunk: answer.chunk,
            escape: answer.framing.escape,
            usage: context.usage(answer),
            after,
            output: 0,
            reasoning: 0,
            calls: 0,
            candidates: super::member(config, "candidateCount")
                .as_u64()
                .unwrap_or(1)
                .clamp(1, 8),
            signing: signs(model)
                || answer
                    .parts
                    .iter()
                    .any(|part| matches!(part, crate::script::Part::Reasoning(_))),
            malformed: None,
            plain: (context.form == Form::Plain).then(Vec::new),
            held: None,
            context,
        }
    }

    /// Writes an event with these parts (JSON texts, separated by commas).
    fn event(&mut self, parts: &[u8], ending: &str, kind: MarkKind) {
        self.frames.push("{\"candidates\":[");
        for index in 0..self.candidates {
            self.frames.push(if index == 0 { "{" } else { ",{" });
            self.frames.push("\"content\":{\"parts\":[");
            self.frames.data.extend_from_slice(parts);
            self.frames.push("],\"role\":\"model\"}");
            self.frames.push(ending);
            self.frames.push(&format!(",\"index\":{index}}}"));
        }
        self.frames.push("]");
        if let Some(cost) = &self.usage {
            let last = kind == MarkKind::Tail || !ending.is_empty();
            let (output, reasoning) = match last {
                true => (cost.output, cost.reasoning),
                false => (
                    self.output.min(cost.output),
                    self.reasoning.min(cost.reasoning),
                ),
            };
            let text = usage(cost, output, reasoning, last).to_string();
            self.frames.push(",\"usageMetadata\":");
            self.frames.push(&text);
        }
        let after = std::mem::take(&mut self.after);
        self.frames.push(&after);
        self.after = after;
        self.frames.end(None, kind);
    }

    /// Writes content, or holds it back until it is known not to be the last.
    fn content(&mut self, parts: Vec<u8>) {
        if self.variation.finish == FinishPlace::WithContent {
            if let Some(held) = self.held.replace(parts) {
                self.event(&held, "", MarkKind::Token);
            }
        } else {
            self.event(&parts, "", MarkKind::Token);
        }
    }

    fn texts(&mut self, text: &Text, thought: bool) {
        let tokens = tokens_in(&text.whole());
        if let Some(plain) = &mut self.plain {
            match plain.last_mut() {
                Some(PlainPart::Text {
                    thought: same,
                    text: so_far,
                }) if *same == thought => {
                    so_far.push_str(&text.whole());
                }
                _ => plain.push(PlainPart::Text {
                    thought,
                    text: text.whole(),
                }),
            }
            return;
        }
        let pieces = json_pieces(text, self.chunk, self.escape);
        let count = pieces.len() as u64;
        let start = (self.output, self.reasoning);
        for (at, literal) in pieces.into_iter().enumerate() {
            let so_far = tokens * (at as u64 + 1) / count;
            self.output = start.0 + so_far;
            if thought {
                self.reasoning = start.1 + so_far;
            }
            let mut part = Vec::with_capacity(literal.len() + 32);
            part.extend_from_slice(b"{\"text\":");
            part.extend_from_slice(&literal);
            part.extend_from_slice(if thought { b",\"thought\":true}" } else { b"}" });
            self.content(part);
        }
    }

    fn call_part(&mut self, call: &Call) -> Option<String> {
        let text = call.text();
        let Ok(args) = serde_json::from_str::<Value>(&text) else {
            self.malformed = Some(format!("Malformed function call: {}({text})", call.name));
            return None;
        };
        let mut object = Map::new();
        let first = self.calls == 0;
        self.calls += 1;
        self.output += tokens_in(&call.name) + tokens_in(&text);
        match &call.id {
            Some(id) => object.insert("id".into(), id.as_str().into()),
            None if self.variation.call_ids => {
                object.insert("id".into(), self.context.ids.id("", 8).into())
            }
            None => None,
        };
        object.insert("name".into(), call.name.as_str().into());
        if !matches!(self.variation.tool_args, ToolArgs::Absent | ToolArgs::Null) {
            object.insert("args".into(), args);
        }
        let mut part = json!({"functionCall": object});
        let natural = self.variation.signature == SignaturePlace::Natural;
        if let Some(signature) = &call.signature {
            part["thoughtSignature"] = signature.as_str().into();
        } else if first && self.signing && natural {
            part["thoughtSignature"] = sign_call(self.context.signer, call).into();
        }
        Some(part.to_string())
    }

    fn tail(&mut self, answer: &Answer) {
        let mut ending = String::new();
        if let Some(message) = self.malformed.take().filter(|_| answer.finish.is_none()) {
            ending.push_str(",\"finishReason\":\"MALFORMED_FUNCTION_CALL\",\"finishMessage\":");
            ending.push_str(&Value::from(message).to_string());
        } else if let Some(word) = finish_word(answer) {
            ending.push_str(&format!(",\"finishReason\":{}", Value::from(word)));
            if word == "CONTINUATION" {
                let token = self.context.ids.id("", 32);
                ending.push_str(&format!(",\"continuationToken\":\"{token}\""));
            }
        }
        let signature = self.last_signature();
        if self.plain.is_some() {
            self.plain_event(&ending, signature);
        } else if let Some(held) = self.held.take() {
            self.event(&held, &ending, MarkKind::Token);
        } else if !ending.is_empty() {
            let part = match signature {
                Some(signature) => json!({"text": "", "thoughtSignature": signature}),
                None => json!({"text": ""}),
            };
            self.event(part.to_string().as_bytes(), &ending, MarkKind::Tail);
        }
    }

    /// The signature that comes with the last text; none where a call has it.
    fn last_signature(&self) -> Option<String> {
        let wanted = match self.variation.signature {
            SignaturePlace::EmptyText => true,
            SignaturePlace::Natural => self.signing && self.calls == 0,
            SignaturePlace::Absent => false,
        };
        wanted.then(|| self.context.signer.sign("gemini text", ""))
    }

    fn plain_event(&mut self, ending: &str, mut signature: Option<String>) {
        let list = self.plain.take().unwrap_or_default();
        let last_text = list
            .iter()
            .rposition(|part| matches!(part, PlainPart::Text { thought: false, .. }));
        let mut parts = Vec::new();
        for (at, part) in list.into_iter().enumerate() {
            if at > 0 {
                parts.push(b',');
            }
            match part {
                PlainPart::Other(text) => parts.extend_from_slice(text.as_bytes()),
                PlainPart::Text { thought, text } => {
                    parts.extend_from_slice(b"{\"text\":");
                    json_string(&mut parts, &text);
                    if thought {
                        parts.extend_from_slice(b",\"thought\":true");
                    }
                    if let Some(signature) = signature.take_if(|_| Some(at) == last_text) {
                        parts.extend_from_slice(b",\"thoughtSignature\":");
                        json_string(&mut parts, &signature);
                    }
                    parts.push(b'}');
                }
            }
        }
        self.event(&parts, ending, MarkKind::Tail);
    }
}

impl PartWriter for Stream<'_, '_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn text(&mut self, text: &Text) {
        self.texts(text, false);
    }

    /// The wire has no refusal text: the finish reason tells, and what was said is not sent.
    fn refusal(&mut self, _text: &Text) {}

    fn reasoning(&mut self, reasoning: &Reasoning) {
        for text in reasoning.text.iter().filter(|_| !reasoning.omitted) {
            self.texts(text, true);
        }
    }

    fn calls(&mut self, calls: &Calls) {
        let parts: Vec<String> = calls
            .list
            .iter()
            .filter_map(|call| self.call_part(call))
            .collect();
        if let Some(plain) = &mut self.plain {
            plain.extend(parts.into_iter().map(PlainPart::Other));
        } else if self.variation.calls_together {
            self.content(parts.join(",").into_bytes());
        } else {
            for part in parts {
                self.content(part.into_bytes());
            }
        }
    }

    fn error(&mut self, error: &ErrorReply) {
        if let Some(held) = self.held.take() {
            self.event(&held, "", MarkKind::Token);
        }
        let form = error.form.unwrap_or(ErrorForm::Google);
        let body = errors::body(error, form, self.context);
        self.frames.event(None, &body.to_string(), MarkKind::Event);
    }
}
