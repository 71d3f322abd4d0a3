//! Structured output: the answer as JSON of the caller's schema.
//!
//! It is validated on every wire, whatever the service promises. Nothing is repaired: an answer in a code
//! fence, with words around it, or cut by its length is none.
//!
//! Source: seed 000, line 557.

use serde_json::Value;

use super::error::ErrorKind;
use super::json::items;
use super::refusal::Fault;

/// Schemas nest at most so deep; what is deeper counts as not strict.
const DEEPEST: usize = 64;
/// Characters of an answer that an error shows.
const SHOWN: usize = 200;

/// The answer as JSON, when it satisfies the schema.
pub(super) fn object(text: &str, schema: &Value) -> Result<Value, Fault> {
    let invalid = |why: String| {
        let shown: String = text.chars().take(SHOWN).collect();
        let message = format!("the answer is not what the schema asks for: {why}; it is {shown:?}");
        Fault::new(ErrorKind::InvalidOutput, message)
    };
    let value = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| Fault::new(ErrorKind::Config, format!("no valid JSON Schema: {error}")))?;
    match validator.validate(&value) {
        Ok(()) => Ok(value),
        Err(error) => Err(invalid(error.to_string())),
    }
}

/// Whether a schema is strict as OpenAI means it: every object forbids other members and requires its own.
pub(super) fn is_strict(schema: &Value) -> bool {
    strict_at(schema, 0)
}

fn strict_at(schema: &Value, depth: usize) -> bool {
    if depth > DEEPEST {
        return false;
    }
    let kind = &schema["type"];
    let properties = &schema["properties"];
    let is_object = kind == "object" || items(kind).iter().any(|kind| kind == "object");
    if is_object || properties.is_object() {
        let required = items(&schema["required"]);
        let mut names = properties
            .as_object()
            .into_iter()
            .flat_map(|names| names.keys());
        let closed = schema["additionalProperties"] == false;
        if !closed || !names.all(|name| required.iter().any(|one| one == name.as_str())) {
            return false;
        }
    }
    let named = ["properties", "$defs", "definitions"];
    let named = named.iter().filter_map(|name| schema[*name].as_object());
    let listed = ["anyOf", "oneOf", "allOf", "prefixItems"];
    let listed = listed.iter().flat_map(|name| items(&schema[*name]));
    named
        .flat_map(|members| members.values())
        .chain(listed)
        .chain(schema.get("items"))
        .all(|inner| strict_at(inner, depth + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_the_object_only_when_it_satisfies_the_schema() {
        let schema = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } });
        assert_eq!(object(r#"{"a":"x"}"#, &schema), Ok(json!({ "a": "x" })));
        for text in [
            "{}",
            r#"{"a":1}"#,
            "```json\n{\"a\":\"x\"}\n```",
            r#"{"a":"x"#,
            "",
        ] {
            let fault = object(text, &schema).unwrap_err();
            assert_eq!(fault.kind, ErrorKind::InvalidOutput, "{text}");
        }
    }

    #[test]
    fn a_schema_that_is_none_is_the_callers_fault() {
        let fault = object("{}", &json!({ "type": "nothing" })).unwrap_err();
        assert_eq!(fault.kind, ErrorKind::Config);
    }

    #[test]
    fn strict_is_what_leaves_nothing_open() {
        let closed = json!({ "type": "object", "properties": { "a": {} }, "required": ["a"],
            "additionalProperties": false });
        assert!(is_strict(&closed));
        assert!(!is_strict(&json!({ "type": "object" })));
        assert!(!is_strict(
            &json!({ "type": "array", "items": { "type": "object" } })
        ));
        let mut optional = closed.clone();
        optional["required"] = json!([]);
        assert!(!is_strict(&optional));
    }
}
