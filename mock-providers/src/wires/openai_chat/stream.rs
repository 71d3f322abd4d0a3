//! The answer as chunks.
//!
//! A chunk is a fixed frame around the members of its `delta`, so that chunks differ in what they
//! must differ in and in nothing else. Members are written as text: most chunks are one short text.

use serde_json::{Map, Value, json};

use super::super::out::{Frames, MarkKind, Members, json_pieces, json_string};
use super::super::parts::{PartWriter, argument_pieces, in_turns, write_parts};
use super::super::{Context, errors};
use super::plain::{arguments, details, tags, thinking_part};
use super::{Dialect, FINGERPRINT, choices, finish_word, unknown_members, usage};
use crate::script::{
    Answer, Call, Calls, Chunking, ContentForm, ErrorForm, ErrorReply, Escape, ExtraFields,
    FinishPlace, Reasoning, ReasoningField, RolePlace, Text, ToolArgs, ToolId, ToolIndex, Usage,
    UsagePlace,
};

pub(super) fn write(answer: &Answer, context: &mut Context<'_>, dialect: &Dialect) -> Frames {
    let mut stream = Stream::new(answer, context, dialect);
    stream.head(answer);
    if !write_parts(&mut stream, answer) {
        stream.tail(answer);
    }
    stream.frames
}

struct Stream<'a, 'c> {
    frames: Frames,
    context: &'a mut Context<'c>,
    dialect: &'a Dialect,
    /// Everything before the choices.
    before: Vec<u8>,
    chunk: Chunking,
    escape: Escape,
    include_usage: bool,
    usage: Option<Usage>,
    /// Tokens so far.
    tokens: u64,
    choices: u64,
    calls: usize,
    obfuscate: bool,
    /// The last content, held back because the finish comes with it.
    held: Option<(Vec<u8>, MarkKind)>,
}

impl<'a, 'c> Stream<'a, 'c> {
    fn new(answer: &Answer, context: &'a mut Context<'c>, dialect: &'a Dialect) -> Self {
        let options = &context.request["stream_options"];
        let mut before = Vec::with_capacity(256);
        before.extend_from_slice(b"{\"id\":");
        json_string(&mut before, &dialect.id);
        before.extend_from_slice(b",\"object\":\"chat.completion.chunk\",\"created\":");
        before.extend_from_slice(context.created.to_string().as_bytes());
        before.extend_from_slice(b",\"model\":");
        json_string(&mut before, context.model(answer));
        if !dialect.gemini {
            before.extend_from_slice(b",\"service_tier\":\"default\",\"system_fingerprint\":");
            json_string(&mut before, FINGERPRINT);
        }
        before.extend_from_slice(b",\"choices\":[");
        Self {
            frames: Frames::default(),
            dialect,
            before,
            chunk: answer.chunk,
            escape: answer.framing.escape,
            include_usage: options["include_usage"] == true,
            obfuscate: options["include_obfuscation"] == true,
            usage: context.usage(answer),
            tokens: 0,
            choices: choices(context),
            calls: 0,
            held: None,
            context,
        }
    }

    fn head(&mut self, answer: &Answer) {
        let variation = &self.dialect.variation;
        let empty = if answer.begins_with_calls() {
            "null"
        } else {
            "\"\""
        };
        let mut members = match (variation.content, self.dialect.gemini) {
            (ContentForm::Absent, _) | (_, true) => String::new(),
            (ContentForm::Null, _) => "\"content\":null,".to_owned(),
            _ => format!("\"content\":{empty},"),
        };
        if !self.dialect.gemini {
            members.push_str("\"refusal\":null");
        }
        if variation.role == RolePlace::First {
            members.insert_str(0, "\"role\":\"assistant\",");
        }
        self.write_chunk(
            members.trim_end_matches(',').as_bytes(),
            None,
            MarkKind::Event,
        );
    }

    fn tail(&mut self, answer: &Answer) {
        let word = finish_word(answer, self.dialect.gemini).map(str::to_owned);
        let place = self.dialect.variation.finish;
        if let (Some((members, kind)), Some(word)) = (self.held.take(), &word) {
            self.write_chunk(&members, Some(word), kind);
        } else if place == FinishPlace::Null || place == FinishPlace::Absent {
            self.write_chunk(b"", None, MarkKind::Tail);
        } else if let Some(word) = &word {
            self.write_chunk(b"", Some(word), MarkKind::Tail);
            if place == FinishPlace::Twice {
                self.write_chunk(b"", Some(word), MarkKind::Tail);
            }
        }
        self.usage_chunk();
        self.frames.push(turnwire_spec::llm::openai_chat::DONE);
        self.frames.end_terminal(None);
    }

    fn usage_chunk(&mut self) {
        let Some(cost) = self.usage else { return };
        let text = match self.dialect.variation.usage {
            UsagePlace::WhenAsked if self.include_usage => usage(&cost, self.dialect.gemini),
            UsagePlace::EmptyChoices => usage(&cost, self.dialect.gemini),
            UsagePlace::ThenNull => Vec::from(*b"null"),
            _ => return,
        };
        self.frames.data.extend_from_slice(&self.before);
        self.frames.push("],\"usage\":");
        self.frames.data.extend_from_slice(&text);
        self.frames.push("}");
        self.frames.end(None, MarkKind::Tail);
    }

    /// Writes content, or holds it back until it is known not to be the last.
    fn content(&mut self, members: Vec<u8>) {
        self.tokens += 1;
        if self.dialect.variation.finish == FinishPlace::WithContent {
            if let Some((held, kind)) = self.held.replace((members, MarkKind::Token)) {
                self.write_chunk(&held, None, kind);
            }
        } else {
            self.write_chunk(&members, None, MarkKind::Token);
        }
    }

    /// Writes one chunk for each choice. `members` are those of the delta, without braces.
    fn write_chunk(&mut self, members: &[u8], finish: Option<&str>, kind: MarkKind) {
        for choice in 0..self.choices {
            self.frames.data.extend_from_slice(&self.before);
            self.frames.push("{\"index\":");
            self.frames.push(if choice == 0 { "0" } else { "" });
            if choice > 0 {
                self.frames.push(&choice.to_string());
            }
            self.frames.push(",\"delta\":{");
            self.role(members);
            self.frames.data.extend_from_slice(members);
            self.frames.push("}");
            self.after_delta(finish);
            self.frames.end(None, kind.clone());
        }
    }

    fn role(&mut self, members: &[u8]) {
        let role = match self.dialect.variation.role {
            RolePlace::Every => "\"role\":\"assistant\"",
            RolePlace::Empty => "\"role\":\"\"",
            RolePlace::First | RolePlace::Absent => return,
        };
        self.frames.push(role);
        if !members.is_empty() {
            self.frames.push(",");
        }
    }

    /// The rest of a chunk behind its delta.
    fn after_delta(&mut self, finish: Option<&str>) {
        let variation = &self.dialect.variation;
        if !self.dialect.gemini {
            self.frames.push(",\"logprobs\":null");
        }
        match (variation.finish, finish) {
            (FinishPlace::Absent, _) => {}
            (FinishPlace::Empty, None) => self.frames.push(",\"finish_reason\":\"\""),
            (_, None) => self.frames.push(",\"finish_reason\":null"),
            (_, Some(word)) => {
                self.frames.push(",\"finish_reason\":");
                json_string(&mut self.frames.data, word);
            }
        }
        let last = finish.is_some();
        if last && variation.usage == UsagePlace::InChoice {
            self.total("usage");
        }
        self.frames.push("}]");
        self.chunk_usage(last);
        if variation.extra_fields == ExtraFields::Random {
            let extra = format!(",\"x_turnwire\":{}", unknown_members());
            self.frames.push(&extra);
        }
        if self.obfuscate {
            let padding = self.context.ids.id("", 8);
            self.frames.push(&format!(",\"obfuscation\":\"{padding}\""));
        }
        self.frames.push("}");
    }

    fn chunk_usage(&mut self, last: bool) {
        match self.dialect.variation.usage {
            UsagePlace::WhenAsked if self.include_usage => self.frames.push(",\"usage\":null"),
            UsagePlace::EmptyChoices => self.frames.push(",\"usage\":null"),
            UsagePlace::LastChunk | UsagePlace::ThenNull if last => self.total("usage"),
            UsagePlace::EveryChunk if last => self.total("usage"),
            UsagePlace::EveryChunk => {
                let tokens = self.tokens;
                if let Some(cost) = self.usage {
                    let output = tokens.min(cost.output);
                    let so_far = Usage {
                        output,
                        reasoning: 0,
                        total: None,
                        ..cost
                    };
                    self.frames.push(",\"usage\":");
                    let text = usage(&so_far, self.dialect.gemini);
                    self.frames.data.extend_from_slice(&text);
                }
            }
            UsagePlace::XGroq if last => {
                if let Some(cost) = self.usage {
                    self.frames.push(",\"x_groq\":");
                    let mut groq = Members::open(&mut self.frames.data);
                    groq.text("id", &self.dialect.id);
                    groq.json("usage", &usage(&cost, false));
                    groq.close();
                }
            }
            UsagePlace::XGroq if self.frames.list.is_empty() => {
                let text = format!(",\"x_groq\":{}", json!({"id": self.dialect.id}));
                self.frames.push(&text);
            }
            _ => {}
        }
    }

    fn total(&mut self, member: &str) {
        if let Some(cost) = self.usage {
            self.frames.push(&format!(",\"{member}\":"));
            let text = usage(&cost, self.dialect.gemini);
            self.frames.data.extend_from_slice(&text);
        }
    }

    fn texts(&mut self, member: &str, text: &Text) {
        for literal in json_pieces(text, self.chunk, self.escape) {
            let array = member == "content"
                && (self.dialect.variation.content == ContentForm::Array
                    || self.dialect.variation.reasoning_field == ReasoningField::ContentArray);
            let mut members = Vec::with_capacity(literal.len() + 16);
            members.extend_from_slice(format!("\"{member}\":").as_bytes());
            if array {
                members.extend_from_slice(b"[{\"type\":\"text\",\"text\":");
                members.extend_from_slice(&literal);
                members.extend_from_slice(b"}]");
            } else {
                members.extend_from_slice(&literal);
            }
            self.content(members);
        }
    }

    fn thought(&mut self, literal: &[u8]) {
        let field = self.dialect.variation.reasoning_field;
        let mut members = Vec::with_capacity(2 * literal.len() + 64);
        if self.dialect.variation.content == ContentForm::Null {
            members.extend_from_slice(b"\"content\":null,");
        }
        let mut add = |name: &[u8]| {
            members.extend_from_slice(name);
            members.extend_from_slice(literal);
        };
        match field {
            ReasoningField::ReasoningContent => add(b"\"reasoning_content\":"),
            ReasoningField::Reasoning => add(b"\"reasoning\":"),
            ReasoningField::Both => {
                add(b"\"reasoning_content\":");
                add(b",\"reasoning\":");
            }
            ReasoningField::Details => {
                add(b"\"reasoning\":");
                add(b",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":");
                members.extend_from_slice(b",\"format\":\"anthropic-claude-v1\",\"index\":0}]");
            }
            ReasoningField::None
            | ReasoningField::ThinkTags
            | ReasoningField::ThoughtTags
            | ReasoningField::ContentArray => return,
        }
        self.content(members);
    }

    fn tagged(&mut self, reasoning: &Reasoning, open: &str, close: &str) {
        let text: String = reasoning.text.iter().map(Text::whole).collect();
        let text = match reasoning.text.as_slice() {
            [Text::Pieces(pieces)] => {
                let mut pieces = pieces.clone();
                pieces.insert(0, open.to_owned());
                pieces.push(close.to_owned());
                Text::Pieces(pieces)
            }
            _ => Text::Whole(format!("{open}{text}{close}")),
        };
        self.texts("content", &text);
    }

    fn open_call(&mut self, index: usize, id: &str, call: &Call) {
        let variation = &self.dialect.variation;
        let mut entry = self.call_entry(index);
        if variation.tool_id != ToolId::Absent {
            entry.insert("id".into(), id.into());
        }
        if call.custom {
            entry.insert("type".into(), "custom".into());
            let input = if variation.tool_args == ToolArgs::Split {
                String::new()
            } else {
                call.text()
            };
            entry.insert("custom".into(), json!({"name": call.name, "input": input}));
        } else {
            entry.insert("type".into(), "function".into());
            let mut function = Map::new();
            function.insert("name".into(), call.name.as_str().into());
            let arguments = match variation.tool_args {
                ToolArgs::Split => Some("".into()),
                form => arguments(call, form),
            };
            if let Some(arguments) = arguments {
                function.insert("arguments".into(), arguments);
            }
            entry.insert("function".into(), function.into());
        }
        if let Some(extra) = self.dialect.extra_content(call, index == 0) {
            entry.insert("extra_content".into(), extra);
        }
        self.call_chunk(entry);
    }

    fn call_entry(&self, index: usize) -> Map<String, Value> {
        let mut entry = Map::new();
        let index: Value = match self.dialect.variation.tool_index {
            ToolIndex::Missing => return entry,
            ToolIndex::Right => index.into(),
            ToolIndex::Null => Value::Null,
            ToolIndex::Zero => 0.into(),
            ToolIndex::FromOne => (index + 1).into(),
        };
        entry.insert("index".into(), index);
        entry
    }

    /// A later piece of a call. `piece` is a JSON string.
    fn call_piece(&mut self, index: usize, id: &str, call: &Call, piece: &[u8]) {
        let mut entry = self.call_entry(index);
        let mut function = Map::new();
        match self.dialect.variation.tool_id {
            ToolId::EveryDelta => {
                entry.insert("id".into(), id.into());
                entry.insert("type".into(), "function".into());
                function.insert("name".into(), call.name.as_str().into());
            }
            ToolId::EmptyLater => {
                entry.insert("id".into(), "".into());
                function.insert("name".into(), Value::Null);
            }
            ToolId::Once | ToolId::Absent | ToolId::Long => {}
        }
        // The piece may hold half a surrogate pair, which no `Value` can: it is put in as text.
        let (group, member) = if call.custom {
            ("custom", "input")
        } else {
            ("function", "arguments")
        };
        let mut text = String::from("\"tool_calls\":[");
        text.push_str(Value::Object(entry).to_string().trim_end_matches('}'));
        if !text.ends_with('{') {
            text.push(',');
        }
        text.push_str(&format!("\"{group}\":"));
        text.push_str(Value::Object(function).to_string().trim_end_matches('}'));
        if !text.ends_with('{') {
            text.push(',');
        }
        text.push_str(&format!("\"{member}\":"));
        text.push_str(&String::from_utf8_lossy(piece));
        text.push_str("}}]");
        self.content(text.into_bytes());
    }

    fn call_chunk(&mut self, entry: Map<String, Value>) {
        let members = format!("\"tool_calls\":[{}]", Value::Object(entry));
        self.content(members.into_bytes());
    }
}

impl PartWriter for Stream<'_, '_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn text(&mut self, text: &Text) {
        self.texts("content", text);
    }

    /// Gemini's endpoint has no member for it: the finish reason tells.
    fn refusal(&mut self, text: &Text) {
        if !self.dialect.gemini {
            self.texts("refusal", text);
        }
    }

    /// The real service shows no thinking on this wire; compatible ones do.
    fn reasoning(&mut self, reasoning: &Reasoning) {
        let field = self.dialect.variation.reasoning_field;
        if let Some((open, close)) = tags(field) {
            self.tagged(reasoning, open, close);
            return;
        }
        for text in &reasoning.text {
            if field == ReasoningField::ContentArray {
                for piece in text.pieces(self.chunk) {
                    let members = format!("\"content\":[{}]", thinking_part(piece));
                    self.content(members.into_bytes());
                }
            } else {
                for literal in json_pieces(text, self.chunk, self.escape) {
                    self.thought(&literal);
                }
            }
        }
        if field == ReasoningField::Details {
            for detail in details("", reasoning) {
                self.content(format!("\"reasoning_details\":[{detail}]").into_bytes());
            }
        }
    }

    fn calls(&mut self, calls: &Calls) {
        let first = self.calls;
        self.calls += calls.list.len();
        let id = |dialect: &Dialect, at: usize| {
            dialect
                .call_ids
                .get(first + at)
                .cloned()
                .unwrap_or_default()
        };
        let split = matches!(
            self.dialect.variation.tool_args,
            ToolArgs::Split | ToolArgs::Both
        );
        let mut waiting = Vec::new();
        for (at, call) in calls.list.iter().enumerate() {
            let id = id(self.dialect, at);
            self.open_call(first + at, &id, call);
            let mut pieces = Vec::new();
            if split {
                pieces = json_pieces(&argument_pieces(call, self.chunk), self.chunk, self.escape);
            }
            if calls.interleave {
                waiting.push(pieces);
            } else {
                for piece in pieces {
                    self.call_piece(first + at, &id, call, &piece);
                }
            }
        }
        for (at, piece) in in_turns(&waiting) {
            let id = id(self.dialect, at);
            self.call_piece(first + at, &id, &calls.list[at], &piece);
        }
    }

    fn error(&mut self, error: &ErrorReply) {
        if let Some((held, kind)) = self.held.take() {
            self.write_chunk(&held, None, kind);
        }
        let gemini = self.dialect.gemini;
        let house = if gemini {
            ErrorForm::Google
        } else {
            ErrorForm::Object
        };
        let form = error.form.unwrap_or(house);
        let mut body = errors::body(error, form, self.context);
        if form == ErrorForm::OpenRouter {
            body["id"] = self.dialect.id.as_str().into();
            body["object"] = "chat.completion.chunk".into();
            body["choices"] = json!([{"index": 0, "delta": {"content": ""},
                "finish_reason": "error", "native_finish_reason": "error"}]);
        }
        self.frames.event(None, &body.to_string(), MarkKind::Event);
    }
}
