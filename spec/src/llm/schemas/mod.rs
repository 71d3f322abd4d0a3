//! JSON Schemas of what services send: what a server that claims to speak a wire must answer.
//!
//! The serde types of this module's siblings read leniently, because services differ. These schemas are
//! the other half: what the wire's own clients rely on. Required is what the official SDKs type as
//! required, and what their stream readers need; anything else that a wire has is optional, and unknown
//! members and unknown kinds of blocks, items and events are allowed, because wires grow.
//!
//! A test of the mock providers compares them with the typed models of the official SDKs.
//!
//! Not here: requests (the mock's rules judge them), and what no schema can say, such as the order of
//! events (the checks of `turnwire provider`).
//!
//! Source: the typed models of PyPI openai 3.57.0, anthropic 2.14.0 and google-genai 3.6.1.

mod anthropic_messages;
mod gemini;
mod openai_chat;
mod openai_responses;

use serde_json::{Map, Value, json};

/// Makes a schema.
pub type Make = fn() -> Value;

/// Every schema of the wires, under its name.
pub const ALL: &[(&str, Make)] = &[
    ("openai-chat.completion", openai_chat::completion),
    ("openai-chat.chunk", openai_chat::chunk),
    ("openai-chat.error", openai_chat::error),
    ("openai-chat.model", openai_chat::model),
    ("openai-chat.models", openai_chat::models),
    ("openai-responses.response", openai_responses::response),
    ("openai-responses.event", openai_responses::event),
    ("openai-responses.count", openai_responses::count),
    ("anthropic-messages.message", anthropic_messages::message),
    ("anthropic-messages.event", anthropic_messages::event),
    ("anthropic-messages.error", anthropic_messages::error),
    ("anthropic-messages.count", anthropic_messages::count),
    ("anthropic-messages.model", anthropic_messages::model),
    ("anthropic-messages.models", anthropic_messages::models),
    ("gemini.response", gemini::response),
    ("gemini.error", gemini::error),
    ("gemini.count", gemini::count),
    ("gemini.model", gemini::model),
    ("gemini.models", gemini::models),
];

/// The schema of this name, with `$schema` and `title`.
#[must_use]
pub fn named(name: &str) -> Option<Value> {
    let (title, make) = ALL.iter().find(|(other, _)| *other == name)?;
    let mut root = Map::new();
    root.insert(
        "$schema".to_owned(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    root.insert("title".to_owned(), (*title).into());
    if let Value::Object(members) = make() {
        root.extend(members);
    }
    Some(Value::Object(root))
}

type Members<'a> = &'a [(&'a str, Value)];

/// An object with these required and these optional members; others are allowed.
fn object(required: Members<'_>, optional: Members<'_>) -> Value {
    let members = required.iter().chain(optional);
    let properties: Map<String, Value> = members
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    if names.is_empty() {
        return json!({ "type": "object", "properties": properties });
    }
    json!({ "type": "object", "properties": properties, "required": names })
}

/// An object that is told by a member: what else it has goes by the value of that member. Values that are
/// not listed are allowed.
fn tagged(tag: &str, kinds: &[(&str, Value)]) -> Value {
    let kinds: Vec<Value> = kinds
        .iter()
        .map(|(value, then)| {
            json!({
                "if": { "properties": { tag: { "const": value } }, "required": [tag] },
                "then": then,
            })
        })
        .collect();
    json!({
        "type": "object",
        "properties": { tag: { "type": "string" } },
        "required": [tag],
        "allOf": kinds,
    })
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// A text with at least one character.
fn id() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

/// A count of tokens, a time in seconds, an index.
fn count_of() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn one_of(words: &[&str]) -> Value {
    json!({ "enum": words })
}

fn one_of_or_null(words: &[&str]) -> Value {
    let words: Vec<Value> = words
        .iter()
        .map(|word| (*word).into())
        .chain([Value::Null])
        .collect();
    json!({ "enum": words })
}

fn or_null(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

fn is(value: &str) -> Value {
    json!({ "const": value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_has_its_name_as_title_and_is_found_by_it() {
        for (name, _) in ALL {
            assert_eq!(named(name).unwrap()["title"], *name);
        }
        assert_eq!(named("openai-chat"), None);
    }
}
