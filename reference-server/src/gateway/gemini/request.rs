//! Writes requests.

use serde_json::{Map, Value, json};
use turnwire_spec::llm::Wire;
use turnwire_spec::llm::gemini::SKIP_SIGNATURE;

use crate::gateway::continuation::Record;
use crate::gateway::error::ErrorKind;
use crate::gateway::history::{matching, object, record, same_calls};
use crate::gateway::images::{self, Picture};
use crate::gateway::message::{ChatMessage, Content, ContentPart, ToolChoice, ToolRequest};
use crate::gateway::models::signs_calls;
use crate::gateway::refusal::Fault;
use crate::gateway::wires::Asking;

/// The host of files that were uploaded to the service.
const FILES: &str = "https://generativelanguage.googleapis.com/";

/// The body of a request.
pub(super) fn body(asking: &Asking<'_>) -> Result<Value, Fault> {
    refuse_foreign_signatures(asking)?;
    let request = asking.request;
    let google = &request.options.provider_options.get("google");
    let google = google.unwrap_or(&Value::Null);
    let mut body = Map::new();
    let contents = Contents::new(asking)?;
    body.insert("contents".to_owned(), contents.finish());
    let cached = &google["cachedContent"];
    if cached.is_string() {
        // What is cached holds instructions and tools; the service refuses them beside it.
        body.insert("cachedContent".to_owned(), cached.clone());
    } else {
        if let Some(system) = system(asking.messages) {
            body.insert("systemInstruction".to_owned(), system);
        }
        if !request.tools.is_empty() {
            body.insert("tools".to_owned(), tools(asking));
            body.insert("toolConfig".to_owned(), tool_config(&request.tool_choice));
        }
    }
    let config = generation_config(asking, google);
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(config));
    }
    Ok(Value::Object(body))
}

/// Signatures of another model or address would be refused, or mean something else.
fn refuse_foreign_signatures(asking: &Asking<'_>) -> Result<(), Fault> {
    let foreign = |record: &Record| {
        record.protocol == Wire::Gemini && record.signed && !asking.origin.made(record)
    };
    let mut records = asking.messages.iter().filter_map(record);
    if records.any(|record| foreign(&record)) {
        let message = "the conversation holds signed parts of another Gemini model or address; \
                       they cannot be sent to this one";
        return Err(Fault::new(ErrorKind::Config, message));
    }
    Ok(())
}

fn system(messages: &[ChatMessage]) -> Option<Value> {
    let texts = messages.iter().filter_map(|message| match message {
        ChatMessage::System { content } => Some(content.text()).filter(|text| !text.is_empty()),
        _ => None,
    });
    let parts: Vec<Value> = texts.map(|text| json!({ "text": text })).collect();
    (!parts.is_empty()).then(|| json!({ "parts": parts }))
}

fn tools(asking: &Asking<'_>) -> Value {
    let declarations = asking.request.tools.iter().map(|tool| {
        let mut declaration = json!({ "name": tool.name, "description": tool.description });
        if tool.json_schema.is_object() {
            declaration["parametersJsonSchema"] = tool.json_schema.clone();
        }
        declaration
    });
    json!([{ "functionDeclarations": declarations.collect::<Vec<_>>() }])
}

fn tool_config(choice: &ToolChoice) -> Value {
    let config = match choice {
        ToolChoice::Auto => json!({ "mode": "AUTO" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Named { name } => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
    };
    json!({ "functionCallingConfig": config })
}

fn generation_config(asking: &Asking<'_>, google: &Value) -> Map<String, Value> {
    let options = &asking.request.options;
    let mut config = Map::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            config.insert(name.to_owned(), value);
        }
    };
    set("maxOutputTokens", json!(options.max_tokens));
    set("temperature", json!(options.temperature));
    set("seed", google["seed"].clone());
    if !options.stop.is_empty() {
        set("stopSequences", json!(options.stop));
    }
    if let Some(schema) = &options.response_schema {
        set("responseMimeType", json!("application/json"));
        set("responseJsonSchema", schema.clone());
    }
    let own = &google["thinkingConfig"];
    match &options.thinking {
        _ if !own.is_null() => set("thinkingConfig", own.clone()),
        None => {}
        Some(thinking) if thinking.off => set("thinkingConfig", json!({ "thinkingBudget": 0 })),
        Some(thinking) => {
            let mut wanted = json!({ "includeThoughts": true });
            if let Some(budget) = thinking.budget_tokens {
                wanted["thinkingBudget"] = json!(budget);
            } else if let Some(effort) = &thinking.effort {
                wanted["thinkingLevel"] = json!(effort.to_ascii_uppercase());
            }
            set("thinkingConfig", wanted);
        }
    }
    config
}

/// The conversation while it is written.
struct Contents {
    list: Vec<Value>,
    /// The calls of the last model turn, as they were sent: our id, and the call.
    calls: Vec<(String, Value)>,
    /// Their results, which go into one content, in the order of the calls.
    results: Vec<(usize, Value)>,
}

impl Contents {
    fn new(asking: &Asking<'_>) -> Result<Self, Fault> {
        let mut contents = Self {
            list: Vec::new(),
            calls: Vec::new(),
            results: Vec::new(),
        };
        for message in asking.messages {
            if !matches!(message, ChatMessage::Tool { .. }) {
                contents.flush();
            }
            match message {
                ChatMessage::System { .. } => {}
                ChatMessage::User { content } => contents.push("user", parts_of(content)?),
                ChatMessage::Tool {
                    tool_call_id,
                    content,
                } => contents.result(tool_call_id, content),
                ChatMessage::Assistant {
                    content,
                    tool_calls,
                    ..
                } => {
                    let own = matching(message, asking.origin);
                    let native = own.and_then(|record| native(record, tool_calls));
                    let parts = match native {
                        Some(parts) => parts,
                        None => generic(asking, content, tool_calls)?,
                    };
                    let calls = parts.iter().map(|part| &part["functionCall"]);
                    let calls = calls.filter(|call| call.is_object()).cloned();
                    let ids = tool_calls.iter().map(|call| call.id.clone());
                    contents.calls = ids.zip(calls).collect();
                    contents.push("model", parts);
                }
            }
        }
        contents.flush();
        Ok(contents)
    }

    fn finish(self) -> Value {
        self.list.into()
    }

    fn push(&mut self, role: &str, parts: Vec<Value>) {
        if parts.is_empty() {
            return;
        }
        let last = self
            .list
            .last_mut()
            .filter(|last| role == "model" && last["role"] == role);
        match last.and_then(|last| last["parts"].as_array_mut()) {
            Some(all) => all.extend(parts),
            None => self.list.push(json!({ "role": role, "parts": parts })),
        }
    }

    fn result(&mut self, id: &str, content: &Content) {
        let place = self.calls.iter().position(|(own, _)| own == id);
        let call = place
            .and_then(|place| self.calls.get(place))
            .map(|(_, call)| call);
        let text = content.text();
        let parsed = serde_json::from_str::<Value>(&text)
            .ok()
            .filter(Value::is_object);
        let mut response = json!({
            "name": call.map_or("", |call| call["name"].as_str().unwrap_or_default()),
            "response": parsed.unwrap_or_else(|| json!({ "result": text })),
        });
        if let Some(id) = call.map(|call| &call["id"]).filter(|id| id.is_string()) {
            response["id"] = id.clone();
        }
        let part = json!({ "functionResponse": response });
        self.results.push((place.unwrap_or(usize::MAX), part));
    }

    fn flush(&mut self) {
        let mut results = std::mem::take(&mut self.results);
        results.sort_by_key(|(place, _)| *place);
        self.push("user", results.into_iter().map(|(_, part)| part).collect());
    }
}

/// The parts as they came.
fn native(record: Record, calls: &[ToolRequest]) -> Option<Vec<Value>> {
    let own = record.entries.iter().map(|part| &part["functionCall"]);
    let ids = own
        .filter(|call| call.is_object())
        .map(|call| call["id"].as_str());
    let same = same_calls(ids, calls);
    (same && !record.entries.is_empty()).then_some(record.entries)
}

/// The parts of an answer from elsewhere. Models that sign want a signature on the first call.
fn generic(
    asking: &Asking<'_>,
    content: &Content,
    calls: &[ToolRequest],
) -> Result<Vec<Value>, Fault> {
    let signs = signs_calls(asking.model());
    let mut parts = parts_of(content)?;
    for (place, call) in calls.iter().enumerate() {
        let mut part = json!({ "functionCall": { "name": call.name, "args": object(call) } });
        if signs && place == 0 {
            part["thoughtSignature"] = json!(SKIP_SIGNATURE);
        }
        parts.push(part);
    }
    Ok(parts)
}

fn parts_of(content: &Content) -> Result<Vec<Value>, Fault> {
    let text = |text: &str| (!text.is_empty()).then(|| json!({ "text": text }));
    match content {
        Content::Null => Ok(Vec::new()),
        Content::Text(said) => Ok(text(said).into_iter().collect()),
        Content::Parts(parts) => parts
            .iter()
            .filter_map(|part| match part {
                ContentPart::Text { text: said } => text(said).map(Ok),
                ContentPart::Image { image, media_type } => {
                    Some(image_part(image, media_type.as_deref()))
                }
            })
            .collect(),
    }
}

/// Inline data, or a file of the service's own; the service fetches no other URL.
fn image_part(image: &str, media_type: Option<&str>) -> Result<Value, Fault> {
    let refused = |message: &str| Err(Fault::new(ErrorKind::Config, message));
    match (images::read(image, media_type), media_type) {
        (Picture::Inline { mime, data }, _) => {
            Ok(json!({ "inlineData": { "mimeType": mime, "data": data } }))
        }
        (Picture::Url(url), _) if !is_own_file(url) => {
            refused("Gemini takes no image URL but that of a file uploaded to Google")
        }
        (Picture::Url(_), None) => refused("a file uploaded to Google needs a mediaType"),
        (Picture::Url(url), Some(mime)) => {
            Ok(json!({ "fileData": { "mimeType": mime, "fileUri": url } }))
        }
    }
}

fn is_own_file(url: &str) -> bool {
    url.strip_prefix(FILES)
        .is_some_and(|path| path.starts_with("files/") || path.contains("/files/"))
}
