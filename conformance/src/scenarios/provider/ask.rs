//! What is asked of a provider, and how each wire puts it.
//!
//! The prompts end with a word in brackets by which a scripted peer knows them; a real model reads the rest.

use serde_json::{Value, json};
use turnwire_spec::llm::Wire;

use crate::drivers::http::Call;

/// A question.
#[derive(Clone, Debug, Default)]
pub(super) struct Ask {
    /// What the user says.
    pub(super) prompt: String,
    /// Whether the answer is streamed.
    pub(super) stream: bool,
    /// Chat Completions: whether the stream is to tell the usage.
    pub(super) usage: bool,
    /// Whether the tools are offered, and a call is asked for.
    pub(super) tools: bool,
    /// Most tokens of the answer.
    pub(super) max: Option<u32>,
    /// A text before which the answer stops.
    pub(super) stop: Option<&'static str>,
    /// Whether the answer is JSON of [`trip_schema`].
    pub(super) schema: bool,
    /// Turns that were before, as the wire writes them, without the prompt.
    pub(super) turns: Vec<Value>,
}

/// The prompt of the plain and streamed texts.
pub(super) const TEXT: &str = "Name three colours. [turnwire-text]";
/// The prompt that a model answers with calls.
pub(super) const TOOLS: &str =
    "What is the weather in Paris and in Oslo? Call the tool once for each. [turnwire-tools]";
/// A prompt whose answer is longer than [`FEW`] tokens.
pub(super) const LONG: &str = "Count from one to two hundred in words. [turnwire-long]";
/// A prompt whose answer comes across [`STOP`].
pub(super) const DIGITS: &str =
    "Write the digits from 1 to 9, separated by blanks. [turnwire-stop]";
/// The prompt of the structured output.
pub(super) const TRIP: &str =
    "Plan a trip: give a city and a number of days. Answer in JSON. [turnwire-json]";
/// The limit of an answer to [`LONG`], in tokens: the least that every service accepts.
pub(super) const FEW: u32 = 16;
/// Where an answer to [`DIGITS`] stops.
pub(super) const STOP: &str = "5";
/// The only tool that is offered.
pub const TOOL: &str = "weather";
/// Words that are asked for at the same time; nobody says one that was not in the question.
pub const MARKERS: [&str; 6] = [
    "twamber4171",
    "twbasalt2963",
    "twcobalt8350",
    "twdamask1748",
    "twebony6092",
    "twfennel5527",
];
/// A model that nobody has.
pub const NO_MODEL: &str = "turnwire-no-such-model";

/// What the structured output must satisfy.
pub fn trip_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
        "required": ["city", "days"],
        "additionalProperties": false,
    })
}

fn arguments_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"],
        "additionalProperties": false,
    })
}

impl Ask {
    pub(super) fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            ..Self::default()
        }
    }

    pub(super) fn streamed(mut self) -> Self {
        self.stream = true;
        self.usage = true;
        self
    }

    /// The request, without the key.
    pub(super) fn call(&self, wire: Wire, model: &str) -> Call {
        Call::post(self.path(wire, model)).json(&self.body(wire, model))
    }

    /// Where the question goes.
    pub(super) fn path(&self, wire: Wire, model: &str) -> String {
        match wire {
            Wire::OpenaiChat | Wire::GeminiOpenai => "/chat/completions".to_owned(),
            Wire::OpenaiResponses => "/responses".to_owned(),
            Wire::AnthropicMessages => "/messages".to_owned(),
            Wire::Gemini if self.stream => gemini_path(model, "streamGenerateContent?alt=sse"),
            Wire::Gemini => gemini_path(model, "generateContent"),
        }
    }

    /// The body of the request.
    pub(super) fn body(&self, wire: Wire, model: &str) -> Value {
        match wire {
            Wire::OpenaiChat | Wire::GeminiOpenai => self.chat(model),
            Wire::OpenaiResponses => self.responses(model),
            Wire::AnthropicMessages => self.anthropic(model),
            Wire::Gemini => self.gemini(),
        }
    }

    /// The turns before, behind the prompt that they answer.
    fn with_turns(&self, prompt: Value) -> Vec<Value> {
        std::iter::once(prompt).chain(self.turns.clone()).collect()
    }

    fn chat(&self, model: &str) -> Value {
        let mut body = json!({
            "model": model,
            "messages": self.with_turns(json!({ "role": "user", "content": self.prompt })),
        });
        if self.stream {
            body["stream"] = json!(true);
        }
        if self.stream && self.usage {
            body["stream_options"] = json!({ "include_usage": true });
        }
        if self.tools {
            let function = json!({ "name": TOOL, "description": "The weather of a city.",
                "parameters": arguments_schema() });
            body["tools"] = json!([{ "type": "function", "function": function }]);
            body["tool_choice"] = json!(if self.turns.is_empty() {
                "required"
            } else {
                "auto"
            });
        }
        set(&mut body, "max_completion_tokens", self.max);
        set(&mut body, "stop", self.stop);
        if self.schema {
            body["response_format"] = json!({ "type": "json_schema",
                "json_schema": { "name": "trip", "strict": true, "schema": trip_schema() } });
        }
        body
    }

    fn responses(&self, model: &str) -> Value {
        let prompt = json!({ "role": "user", "content": self.prompt });
        let mut body = json!({ "model": model, "input": self.with_turns(prompt), "store": false });
        if self.stream {
            body["stream"] = json!(true);
        }
        if self.tools {
            body["tools"] = json!([{ "type": "function", "name": TOOL, "strict": true,
                "description": "The weather of a city.", "parameters": arguments_schema() }]);
            body["tool_choice"] = json!(if self.turns.is_empty() {
                "required"
            } else {
                "auto"
            });
        }
        set(&mut body, "max_output_tokens", self.max);
        if self.schema {
            body["text"] = json!({ "format": { "type": "json_schema", "name": "trip",
                "strict": true, "schema": trip_schema() } });
        }
        body
    }

    fn anthropic(&self, model: &str) -> Value {
        let mut body = json!({
            "model": model,
            "max_tokens": self.max.unwrap_or(512),
            "messages": self.with_turns(json!({ "role": "user", "content": self.prompt })),
        });
        if self.stream {
            body["stream"] = json!(true);
        }
        if self.tools {
            body["tools"] = json!([{ "name": TOOL, "description": "The weather of a city.",
                "input_schema": arguments_schema() }]);
            let kind = if self.turns.is_empty() { "any" } else { "auto" };
            body["tool_choice"] = json!({ "type": kind });
        }
        set(
            &mut body,
            "stop_sequences",
            self.stop.map(|stop| vec![stop]),
        );
        if self.schema {
            body["output_config"] =
                json!({ "format": { "type": "json_schema", "schema": trip_schema() } });
        }
        body
    }

    fn gemini(&self) -> Value {
        let prompt = json!({ "role": "user", "parts": [{ "text": self.prompt }] });
        let mut body = json!({ "contents": self.with_turns(prompt) });
        if self.tools {
            body["tools"] = json!([{ "functionDeclarations": [{ "name": TOOL,
                "description": "The weather of a city.",
                "parametersJsonSchema": arguments_schema() }] }]);
            let mode = if self.turns.is_empty() { "ANY" } else { "AUTO" };
            body["toolConfig"] = json!({ "functionCallingConfig": { "mode": mode } });
        }
        let mut config = json!({});
        set(&mut config, "maxOutputTokens", self.max);
        set(
            &mut config,
            "stopSequences",
            self.stop.map(|stop| vec![stop]),
        );
        if self.schema {
            config["responseMimeType"] = json!("application/json");
            config["responseJsonSchema"] = trip_schema();
        }
        if config != json!({}) {
            body["generationConfig"] = config;
        }
        body
    }
}

/// Path of a method of a Gemini model; the model may come with `models/` in front.
pub(super) fn gemini_path(model: &str, method: &str) -> String {
    let model = model.strip_prefix("models/").unwrap_or(model);
    format!("/models/{model}:{method}")
}

fn set<T: serde::Serialize>(body: &mut Value, name: &str, value: Option<T>) {
    if let Some(value) = value {
        body[name] = json!(value);
    }
}

/// The turns that answer the calls of a plain answer: the answer itself as history, and a result for each call.
/// `None` when it has no call.
pub(super) fn results(wire: Wire, answer: &Value) -> Option<Vec<Value>> {
    const RESULT: &str = "21 degrees and sunny";
    let mut turns = Vec::new();
    match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => {
            let message = answer.pointer("/choices/0/message")?;
            let calls = message["tool_calls"].as_array()?;
            let mut said = json!({ "role": "assistant", "content": message["content"] });
            said["tool_calls"] = json!(calls);
            turns.push(said);
            turns.extend(calls.iter().map(
                |call| json!({ "role": "tool", "tool_call_id": call["id"], "content": RESULT }),
            ));
            (!calls.is_empty()).then_some(turns)
        }
        Wire::OpenaiResponses => {
            let items = answer["output"].as_array()?;
            let calls = || items.iter().filter(|item| item["type"] == "function_call");
            turns.extend(
                items
                    .iter()
                    .filter(|item| item["type"] != "reasoning")
                    .cloned(),
            );
            turns.extend(calls().map(|call| {
                json!({ "type": "function_call_output", "call_id": call["call_id"], "output": RESULT })
            }));
            calls().next().map(|_| turns)
        }
        Wire::AnthropicMessages => {
            let blocks = answer["content"].as_array()?;
            let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
            let results: Vec<Value> = calls
                .map(|call| {
                    json!({ "type": "tool_result", "tool_use_id": call["id"], "content": RESULT })
                })
                .collect();
            turns.push(json!({ "role": "assistant", "content": blocks }));
            let some = !results.is_empty();
            turns.push(json!({ "role": "user", "content": results }));
            some.then_some(turns)
        }
        Wire::Gemini => {
            let content = answer.pointer("/candidates/0/content")?;
            let calls = content["parts"].as_array()?.iter();
            let results: Vec<Value> = calls
                .filter_map(|part| part.get("functionCall"))
                .map(|call| {
                    let mut response =
                        json!({ "name": call["name"], "response": { "result": RESULT } });
                    set(&mut response, "id", call.get("id"));
                    json!({ "functionResponse": response })
                })
                .collect();
            turns.push(content.clone());
            let some = !results.is_empty();
            turns.push(json!({ "role": "user", "parts": results }));
            some.then_some(turns)
        }
    }
}
