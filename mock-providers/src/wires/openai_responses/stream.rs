//! The answer as events: items opened, filled and closed, with a number on each event.

use serde_json::{Map, Value, json};

use super::super::out::{Frames, MarkKind, json_pieces, json_string};
use super::super::parts::{PartWriter, argument_pieces, in_turns, write_parts};
use super::super::{Context, errors};
use super::{ending, opening, usage};
use crate::script::{
    Answer, Call, Calls, Chunking, ErrorForm, ErrorReply, Escape, ExtraFields, Failure, Reasoning,
    Text, ToolArgs, Variation,
};

/// The events, and the response that the last of them carries.
pub(super) fn write(answer: &Answer, context: &mut Context<'_>) -> (Frames, Value) {
    let mut stream = Stream::new(answer, context);
    stream.head();
    if write_parts(&mut stream, answer) {
        stream.close_message();
    } else {
        stream.tail(answer);
    }
    (stream.frames, Value::Object(stream.response))
}

/// A message that takes more parts.
struct OpenMessage {
    index: usize,
    id: String,
    parts: Vec<Value>,
}

struct Stream<'a, 'c> {
    frames: Frames,
    context: &'a mut Context<'c>,
    variation: &'a Variation,
    chunk: Chunking,
    escape: Escape,
    /// The number of the next event.
    number: u64,
    /// Opened items so far.
    items: usize,
    message: Option<OpenMessage>,
    output: Vec<Value>,
    response: Map<String, Value>,
    encrypt: bool,
}

impl<'a, 'c> Stream<'a, 'c> {
    fn new(answer: &'a Answer, context: &'a mut Context<'c>) -> Self {
        let include = context.request["include"].as_array();
        Self {
            frames: Frames::default(),
            variation: &answer.variation,
            chunk: answer.chunk,
            escape: answer.framing.escape,
            number: 0,
            items: 0,
            message: None,
            output: Vec::new(),
            response: opening(answer, context),
            encrypt: include
                .is_some_and(|list| list.iter().any(|one| one == "reasoning.encrypted_content")),
            context,
        }
    }

    fn head(&mut self) {
        if self.context.request["background"] == true {
            self.response.insert("status".into(), "queued".into());
            self.whole("response.created", MarkKind::Event);
            self.whole("response.queued", MarkKind::Event);
            self.response.insert("status".into(), "in_progress".into());
        } else {
            self.whole("response.created", MarkKind::Event);
        }
        self.whole("response.in_progress", MarkKind::Event);
    }

    fn tail(&mut self, answer: &Answer) {
        let (status, incomplete, error) = ending(answer);
        // A message that is still open is where the answer was cut.
        self.close_message_as(match status {
            "incomplete" => "incomplete",
            _ => "completed",
        });
        let kind = match status {
            "completed" => "response.completed",
            "failed" => "response.failed",
            "incomplete" => "response.incomplete",
            _ => "response.in_progress",
        };
        self.response.insert("status".into(), status.into());
        self.response
            .insert("incomplete_details".into(), incomplete);
        self.response.insert("error".into(), error);
        self.finish(answer);
        if answer.finish != Some(crate::script::Finish::Absent) {
            self.whole(kind, MarkKind::Tail);
            if let Some(last) = self.frames.list.last_mut() {
                last.terminal = true;
            }
        }
    }

    fn finish(&mut self, answer: &Answer) {
        self.response
            .insert("output".into(), std::mem::take(&mut self.output).into());
        if let Some(cost) = self.context.usage(answer) {
            self.response.insert("usage".into(), usage(&cost));
        }
    }

    /// An event that carries the whole response.
    fn whole(&mut self, kind: &'static str, mark: MarkKind) {
        self.begin(kind);
        self.frames.push(",\"response\":");
        // Writing a `Map` of JSON values into a `Vec` cannot fail.
        let _ = serde_json::to_writer(&mut self.frames.data, &self.response);
        self.close(kind, mark);
    }

    /// An event with these members.
    fn event(&mut self, kind: &'static str, members: &Value, mark: MarkKind) {
        self.begin(kind);
        if let Value::Object(members) = members {
            for (name, value) in members {
                self.frames.push(",");
                json_string(&mut self.frames.data, name);
                self.frames.push(":");
                let _ = serde_json::to_writer(&mut self.frames.data, value);
            }
        }
        self.close(kind, mark);
    }

    /// An event with a new piece; `literal` is a JSON string.
    fn delta(&mut self, kind: &'static str, place: &Place<'_>, literal: &[u8]) {
        self.begin(kind);
        self.frames.push(",\"item_id\":");
        json_string(&mut self.frames.data, place.id);
        self.frames
            .push(&format!(",\"output_index\":{}", place.index));
        if let Some((name, index)) = place.within {
            self.frames.push(&format!(",\"{name}\":{index}"));
        }
        self.frames.push(",\"delta\":");
        self.frames.data.extend_from_slice(literal);
        if kind == "response.output_text.delta" {
            self.frames.push(",\"logprobs\":[]");
        }
        if self.context.request["stream_options"]["include_obfuscation"] == true {
            let padding = self.context.ids.id("", 8);
            self.frames.push(&format!(",\"obfuscation\":\"{padding}\""));
        }
        self.close(kind, MarkKind::Token);
    }

    fn begin(&mut self, kind: &'static str) {
        self.frames.push(&format!(
            "{{\"type\":\"{kind}\",\"sequence_number\":{}",
            self.number
        ));
        self.number += 1;
    }

    fn close(&mut self, kind: &'static str, mark: MarkKind) {
        if self.variation.extra_fields == ExtraFields::Random {
            self.frames
                .push(",\"x_turnwire\":{\"note\":\"é\",\"list\":[1,{\"deep\":null}]}");
        }
        self.frames.push("}");
        self.frames.end(Some(kind), mark);
    }

    fn open_item(&mut self, item: &Value) -> usize {
        let index = self.items;
        self.items += 1;
        let members = json!({"output_index": index, "item": item});
        self.event("response.output_item.added", &members, MarkKind::Event);
        index
    }

    fn close_item(&mut self, index: usize, item: Value) {
        let members = json!({"output_index": index, "item": item});
        self.event("response.output_item.done", &members, MarkKind::Event);
        self.output.push(item);
    }

    /// The message that takes the next part, opened when there is none.
    fn open_message(&mut self) -> (usize, String, usize) {
        if self.message.is_none() {
            let id = self.context.ids.id("msg_", 48);
            let item = json!({"id": id, "type": "message", "status": "in_progress",
                "role": "assistant", "content": []});
            let index = self.open_item(&item);
            self.message = Some(OpenMessage {
                index,
                id,
                parts: Vec::new(),
            });
        }
        self.message
            .as_ref()
            .map_or((0, String::new(), 0), |message| {
                (message.index, message.id.clone(), message.parts.len())
            })
    }

    fn close_message(&mut self) {
        self.close_message_as("completed");
    }

    fn close_message_as(&mut self, status: &str) {
        if let Some(OpenMessage { index, id, parts }) = self.message.take() {
            let item = json!({"id": id, "type": "message", "status": status,
                "role": "assistant", "content": parts});
            self.close_item(index, item);
        }
    }

    /// Text or refusal: one part of a message.
    fn message_part(&mut self, text: &Text, refusal: bool) {
        let (index, id, part_index) = self.open_message();
        let part = |text: &str| {
            if refusal {
                json!({"type": "refusal", "refusal": text})
            } else {
                json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
            }
        };
        let place = Place {
            id: &id,
            index,
            within: Some(("content_index", part_index)),
        };
        let opened = place.with("part", part(""));
        self.event("response.content_part.added", &opened, MarkKind::Event);
        let delta = if refusal {
            "response.refusal.delta"
        } else {
            "response.output_text.delta"
        };
        for literal in json_pieces(text, self.chunk, self.escape) {
            self.delta(delta, &place, &literal);
        }
        let whole = text.whole();
        let (done, mut members) = if refusal {
            (
                "response.refusal.done",
                place.with("refusal", whole.as_str().into()),
            )
        } else {
            (
                "response.output_text.done",
                place.with("text", whole.as_str().into()),
            )
        };
        if !refusal {
            members["logprobs"] = json!([]);
        }
        self.event(done, &members, MarkKind::Event);
        let closed = place.with("part", part(&whole));
        self.event("response.content_part.done", &closed, MarkKind::Event);
        if let Some(message) = &mut self.message {
            message.parts.push(part(&whole));
        }
    }

    fn summary(&mut self, place: &Place<'_>, text: &Text) -> Value {
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        let whole = part(&text.whole());
        let opened = place.with("part", part(""));
        self.event(
            "response.reasoning_summary_part.added",
            &opened,
            MarkKind::Event,
        );
        for literal in json_pieces(text, self.chunk, self.escape) {
            self.delta("response.reasoning_summary_text.delta", place, &literal);
        }
        let done = place.with("text", whole["text"].clone());
        self.event(
            "response.reasoning_summary_text.done",
            &done,
            MarkKind::Event,
        );
        let closed = place.with("part", whole.clone());
        self.event(
            "response.reasoning_summary_part.done",
            &closed,
            MarkKind::Event,
        );
        whole
    }

    /// Thinking of an open-weight model.
    fn open_thought(&mut self, place: &Place<'_>, text: &Text) -> Value {
        for literal in json_pieces(text, self.chunk, self.escape) {
            self.delta("response.reasoning_text.delta", place, &literal);
        }
        let done = place.with("text", text.whole().into());
        self.event("response.reasoning_text.done", &done, MarkKind::Event);
        json!({"type": "reasoning_text", "text": text.whole()})
    }

    fn encrypted(&self, reasoning: &Reasoning) -> Option<String> {
        let made = || {
            let text: String = reasoning.text.iter().map(Text::whole).collect();
            self.context.signer.sign("encrypted", &text)
        };
        reasoning
            .encrypted
            .clone()
            .or_else(|| self.encrypt.then(made))
    }

    fn call_item(&self, call: &Call, ids: &CallIds, arguments: &str, status: &str) -> Value {
        if call.custom {
            json!({"id": ids.item, "type": "custom_tool_call", "status": status,
                "call_id": ids.call, "name": call.name, "input": arguments})
        } else {
            json!({"id": ids.item, "type": "function_call", "status": status,
                "call_id": ids.call, "name": call.name, "arguments": arguments})
        }
    }

    fn open_call(&mut self, call: &Call) -> CallIds {
        let item = self
            .context
            .ids
            .id(if call.custom { "ctc_" } else { "fc_" }, 48);
        let made = || self.context.ids.id("call_", 24);
        let id = call.id.clone().unwrap_or_else(made);
        let mut ids = CallIds {
            item,
            call: id,
            index: 0,
        };
        let early = match self.variation.tool_args {
            ToolArgs::Whole | ToolArgs::Both => call.text(),
            _ => String::new(),
        };
        let item = self.call_item(call, &ids, &early, "in_progress");
        ids.index = self.open_item(&item);
        ids
    }

    fn call_piece(&mut self, call: &Call, ids: &CallIds, literal: &[u8]) {
        let kind = if call.custom {
            "response.custom_tool_call_input.delta"
        } else {
            "response.function_call_arguments.delta"
        };
        self.delta(
            kind,
            &Place {
                id: &ids.item,
                index: ids.index,
                within: None,
            },
            literal,
        );
    }

    fn close_call(&mut self, call: &Call, ids: &CallIds) {
        let place = Place {
            id: &ids.item,
            index: ids.index,
            within: None,
        };
        let text = call.text();
        if call.custom {
            let done = place.with("input", text.as_str().into());
            self.event(
                "response.custom_tool_call_input.done",
                &done,
                MarkKind::Event,
            );
        } else {
            let done = place.with("arguments", text.as_str().into());
            self.event(
                "response.function_call_arguments.done",
                &done,
                MarkKind::Event,
            );
        }
        let item = self.call_item(call, ids, &text, "completed");
        self.close_item(ids.index, item);
    }
}

/// The ids and the place of a call.
struct CallIds {
    item: String,
    call: String,
    index: usize,
}

/// Where an event belongs.
struct Place<'a> {
    id: &'a str,
    index: usize,
    within: Option<(&'static str, usize)>,
}

impl Place<'_> {
    /// The members of the place, and one more.
    fn with(&self, name: &str, value: Value) -> Value {
        let mut members = json!({"item_id": self.id, "output_index": self.index});
        if let Some((within, index)) = self.within {
            members[within] = index.into();
        }
        members[name] = value;
        members
    }
}

impl PartWriter for Stream<'_, '_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn text(&mut self, text: &Text) {
        self.message_part(text, false);
    }

    fn refusal(&mut self, text: &Text) {
        self.message_part(text, true);
    }

    fn reasoning(&mut self, reasoning: &Reasoning) {
        self.close_message();
        let id = self.context.ids.id("rs_", 48);
        let encrypted = self.encrypted(reasoning);
        let mut item = json!({"id": id, "type": "reasoning", "summary": []});
        if let Some(encrypted) = &encrypted {
            // The copy in this event may be incomplete: only the one in `done` counts.
            item["encrypted_content"] = encrypted
                .chars()
                .take(encrypted.chars().count() / 2)
                .collect::<String>()
                .into();
        }
        let index = self.open_item(&item);
        let mut parts = Vec::new();
        for (at, text) in reasoning
            .text
            .iter()
            .enumerate()
            .filter(|_| !reasoning.omitted)
        {
            let within = if reasoning.open {
                "content_index"
            } else {
                "summary_index"
            };
            let place = Place {
                id: &id,
                index,
                within: Some((within, at)),
            };
            parts.push(if reasoning.open {
                self.open_thought(&place, text)
            } else {
                self.summary(&place, text)
            });
        }
        item[if reasoning.open { "content" } else { "summary" }] = parts.into();
        if let Some(encrypted) = encrypted {
            item["encrypted_content"] = encrypted.into();
        }
        self.close_item(index, item);
    }

    fn calls(&mut self, calls: &Calls) {
        self.close_message();
        let split = matches!(self.variation.tool_args, ToolArgs::Split | ToolArgs::Both);
        let pieces = |call: &Call, stream: &Self| match split {
            true => json_pieces(
                &argument_pieces(call, stream.chunk),
                stream.chunk,
                stream.escape,
            ),
            false => Vec::new(),
        };
        if calls.interleave {
            let ids: Vec<CallIds> = calls.list.iter().map(|call| self.open_call(call)).collect();
            let all: Vec<_> = calls.list.iter().map(|call| pieces(call, self)).collect();
            for (at, piece) in in_turns(&all) {
                self.call_piece(&calls.list[at], &ids[at], &piece);
            }
            for (call, ids) in calls.list.iter().zip(&ids) {
                self.close_call(call, ids);
            }
            return;
        }
        for call in &calls.list {
            let ids = self.open_call(call);
            for piece in pieces(call, self) {
                self.call_piece(call, &ids, &piece);
            }
            self.close_call(call, &ids);
        }
    }

    fn error(&mut self, error: &ErrorReply) {
        self.message = None;
        if self.variation.failure != Failure::FailedOnly {
            let form = error.form.unwrap_or(ErrorForm::Flat);
            let mut body = errors::body(error, form, self.context);
            if matches!(form, ErrorForm::Flat | ErrorForm::Typed) {
                body["sequence_number"] = self.number.into();
            }
            self.number += 1;
            self.frames
                .event(Some("error"), &body.to_string(), MarkKind::Event);
        }
        if self.variation.failure != Failure::ErrorOnly {
            let words = errors::Words::of(error, self.context.wire);
            let code = match (error.code.as_deref(), error.status) {
                (Some(code), _) => code,
                (None, 429) => "rate_limit_exceeded",
                (None, _) => "server_error",
            };
            self.response.insert("status".into(), "failed".into());
            self.response.insert(
                "error".into(),
                json!({"code": code, "message": words.message}),
            );
            self.response
                .insert("output".into(), std::mem::take(&mut self.output).into());
            self.whole("response.failed", MarkKind::Tail);
        }
    }

    /// Seen on the real service; not documented.
    fn ping(&mut self) {
        self.event("keepalive", &json!({}), MarkKind::Event);
    }
}
