//! The answer as events: blocks opened, filled and closed.

use serde_json::{Map, Value, json};

use super::super::out::{Frames, MarkKind, json_pieces};
use super::super::parts::{PartWriter, argument_pieces, in_turns, write_parts};
use super::super::{Context, errors};
use super::{ending, usage};
use crate::script::{
    Answer, Call, Calls, Chunking, ErrorForm, ErrorReply, Escape, ExtraFields, Reasoning, Text,
    ToolArgs, Usage, Variation,
};

/// The events, and the message that they add up to.
pub(super) fn write(answer: &Answer, context: &mut Context<'_>) -> (Frames, Value) {
    let mut stream = Stream::new(answer, context);
    stream.head();
    if !write_parts(&mut stream, answer) {
        stream.tail(answer);
    }
    stream
        .message
        .insert("content".into(), stream.content.into());
    (stream.frames, Value::Object(stream.message))
}

struct Stream<'a, 'c> {
    frames: Frames,
    context: &'a mut Context<'c>,
    variation: &'a Variation,
    chunk: Chunking,
    escape: Escape,
    usage: Option<Usage>,
    blocks: usize,
    message: Map<String, Value>,
    content: Vec<Value>,
}

impl<'a, 'c> Stream<'a, 'c> {
    fn new(answer: &'a Answer, context: &'a mut Context<'c>) -> Self {
        let id = answer
            .id
            .clone()
            .unwrap_or_else(|| context.ids.id("msg_01", 22));
        let mut message = Map::new();
        message.insert("id".into(), id.into());
        message.insert("type".into(), "message".into());
        message.insert("role".into(), "assistant".into());
        message.insert("model".into(), context.model(answer).into());
        message.insert("content".into(), json!([]));
        message.insert("stop_reason".into(), Value::Null);
        message.insert("stop_sequence".into(), Value::Null);
        Self {
            frames: Frames::default(),
            variation: &answer.variation,
            chunk: answer.chunk,
            escape: answer.framing.escape,
            usage: context.usage(answer),
            blocks: 0,
            message,
            content: Vec::new(),
            context,
        }
    }

    fn head(&mut self) {
        let mut message = self.message.clone();
        if let Some(cost) = &self.usage {
            message.insert("usage".into(), usage(cost, cost.output.min(1)));
        }
        self.event(
            "message_start",
            json!({"message": message}),
            MarkKind::Event,
        );
    }

    fn tail(&mut self, answer: &Answer) {
        let mut total = None;
        if let Some(cost) = &self.usage {
            let mut all = usage(cost, cost.output);
            all["output_tokens_details"] = json!({"thinking_tokens": cost.reasoning});
            self.message.insert("usage".into(), all.clone());
            if let Some(members) = all.as_object_mut() {
                members.shift_remove("cache_creation");
                members.shift_remove("service_tier");
            }
            total = Some(all);
        }
        if let Some((reason, sequence, details)) = ending(answer) {
            let mut delta = json!({"stop_reason": reason, "stop_sequence": sequence});
            self.message.insert("stop_reason".into(), reason.into());
            self.message.insert("stop_sequence".into(), sequence);
            if !details.is_null() {
                delta["stop_details"] = details.clone();
                self.message.insert("stop_details".into(), details);
            }
            let mut members = json!({"delta": delta});
            if let Some(total) = total {
                members["usage"] = total;
            }
            self.event("message_delta", members, MarkKind::Tail);
        }
        self.event("message_stop", json!({}), MarkKind::Tail);
        if let Some(last) = self.frames.list.last_mut() {
            last.terminal = true;
        }
    }

    fn event(&mut self, kind: &'static str, members: Value, mark: MarkKind) {
        let mut event = Map::new();
        event.insert("type".into(), kind.into());
        if let Value::Object(members) = members {
            event.extend(members);
        }
        if self.variation.extra_fields == ExtraFields::Random {
            event.insert(
                "x_turnwire".into(),
                json!({"note": "é", "list": [1, {"deep": null}]}),
            );
        }
        self.frames
            .event(Some(kind), &Value::Object(event).to_string(), mark);
    }

    fn open(&mut self, block: Value) -> usize {
        let index = self.blocks;
        self.blocks += 1;
        let members = json!({"index": index, "content_block": block});
        self.event("content_block_start", members, MarkKind::Event);
        if index == 0 {
            self.ping();
        }
        index
    }

    /// A new piece of a block; `literal` is a JSON string.
    fn delta(&mut self, index: usize, kind: &str, member: &str, literal: &[u8]) {
        self.frames
            .push("{\"type\":\"content_block_delta\",\"index\":");
        self.frames.push(&index.to_string());
        self.frames
            .push(&format!(",\"delta\":{{\"type\":\"{kind}\",\"{member}\":"));
        self.frames.data.extend_from_slice(literal);
        self.frames.push("}}");
        self.frames
            .end(Some("content_block_delta"), MarkKind::Token);
    }

    /// Closes a block; `block` is what it adds up to.
    fn close(&mut self, index: usize, block: Value) {
        self.event(
            "content_block_stop",
            json!({"index": index}),
            MarkKind::Event,
        );
        self.content.push(block);
    }

    fn whole_text(&mut self, text: &Text) {
        let index = self.open(json!({"type": "text", "text": ""}));
        for literal in json_pieces(text, self.chunk, self.escape) {
            self.delta(index, "text_delta", "text", &literal);
        }
        self.close(index, json!({"type": "text", "text": text.whole()}));
    }

    fn redacted(&mut self, data: &str) {
        let block = json!({"type": "redacted_thinking", "data": data});
        let index = self.open(block.clone());
        self.close(index, block);
    }

    fn thinking(&mut self, reasoning: &Reasoning) {
        let text: String = reasoning.text.iter().map(Text::whole).collect();
        let shown = if reasoning.omitted {
            String::new()
        } else {
            text
        };
        let index = self.open(json!({"type": "thinking", "thinking": "", "signature": ""}));
        for text in reasoning.text.iter().filter(|_| !reasoning.omitted) {
            for literal in json_pieces(text, self.chunk, self.escape) {
                self.delta(index, "thinking_delta", "thinking", &literal);
            }
        }
        let signature = match &reasoning.signature {
            Some(signature) => signature.clone(),
            None => self.context.signer.sign("thinking", &shown),
        };
        if !signature.is_empty() {
            let literal = Value::from(signature.as_str()).to_string();
            self.delta(index, "signature_delta", "signature", literal.as_bytes());
        }
        self.close(
            index,
            json!({"type": "thinking", "thinking": shown, "signature": signature}),
        );
    }

    fn open_call(&mut self, call: &Call, id: &str) -> usize {
        let input = match self.variation.tool_args {
            ToolArgs::Whole | ToolArgs::Both | ToolArgs::Object => {
                serde_json::from_str(&call.text()).unwrap_or_else(|_| json!({}))
            }
            ToolArgs::Split | ToolArgs::Null | ToolArgs::Absent => json!({}),
        };
        self.open(json!({"type": "tool_use", "id": id, "name": call.name, "input": input}))
    }

    fn call_pieces(&self, call: &Call) -> Vec<Vec<u8>> {
        if !matches!(self.variation.tool_args, ToolArgs::Split | ToolArgs::Both) {
            return Vec::new();
        }
        // The service opens with an empty piece.
        let mut pieces = vec![b"\"\"".to_vec()];
        pieces.extend(json_pieces(
            &argument_pieces(call, self.chunk),
            self.chunk,
            self.escape,
        ));
        pieces
    }

    fn close_call(&mut self, index: usize, call: &Call, id: &str) {
        let text = call.text();
        let input = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let block = json!({"type": "tool_use", "id": id, "name": call.name, "input": input});
        self.close(index, block);
    }
}

impl PartWriter for Stream<'_, '_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn text(&mut self, text: &Text) {
        self.whole_text(text);
    }

    /// The wire has no refusal text: what there is of an answer is text, and the stop reason tells.
    fn refusal(&mut self, text: &Text) {
        self.whole_text(text);
    }

    fn reasoning(&mut self, reasoning: &Reasoning) {
        match &reasoning.encrypted {
            Some(data) => self.redacted(data),
            None => self.thinking(reasoning),
        }
    }

    fn calls(&mut self, calls: &Calls) {
        let ids: Vec<String> = calls
            .list
            .iter()
            .map(|call| {
                call.id
                    .clone()
                    .unwrap_or_else(|| self.context.ids.id("toolu_01", 22))
            })
            .collect();
        if calls.interleave {
            let open = |(call, id): (&Call, &String)| self.open_call(call, id);
            let places: Vec<usize> = calls.list.iter().zip(&ids).map(open).collect();
            let pieces: Vec<_> = calls
                .list
                .iter()
                .map(|call| self.call_pieces(call))
                .collect();
            for (at, piece) in in_turns(&pieces) {
                self.delta(places[at], "input_json_delta", "partial_json", &piece);
            }
            for ((call, id), place) in calls.list.iter().zip(&ids).zip(places) {
                self.close_call(place, call, id);
            }
            return;
        }
        for (call, id) in calls.list.iter().zip(&ids) {
            let index = self.open_call(call, id);
            for piece in self.call_pieces(call) {
                self.delta(index, "input_json_delta", "partial_json", &piece);
            }
            self.close_call(index, call, id);
        }
    }

    fn error(&mut self, error: &ErrorReply) {
        let form = error.form.unwrap_or(ErrorForm::Typed);
        let body = errors::body(error, form, self.context);
        self.frames
            .event(Some("error"), &body.to_string(), MarkKind::Event);
    }

    fn ping(&mut self) {
        self.event("ping", json!({}), MarkKind::Event);
    }
}
