//! JSON Schemas of rules and rewrites, compiled once per process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use jsonschema::Validator;
use serde_json::{Value, json};

/// A compiled schema, or why it is none.
type Compiled = Arc<Result<Validator, String>>;

/// Compiles a schema of a rule: a JSON Schema, or the name of one of `spec/schemas`.
///
/// # Errors
///
/// In words: no schema has this name, or this is no valid JSON Schema.
pub fn compile(schema: &Value) -> Result<Validator, String> {
    let schema = match schema {
        Value::String(name) => turnwire_spec::schema::named(name)
            .ok_or_else(|| format!("no schema is named {name:?}"))?
            .to_value(),
        fragment => fragment.clone(),
    };
    jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .map_err(|error| format!("no valid JSON Schema: {error}"))
}

/// What is wrong with a document, by the schema: `None` when nothing is.
///
/// The text names up to three faults, each with instance path, what the schema asks for, and the value. A
/// schema that cannot be compiled is a fault of every document.
pub fn fault(schema: &Value, document: &Value) -> Option<String> {
    match &*cached(schema) {
        Err(error) => Some(error.clone()),
        Ok(validator) if validator.is_valid(document) => None,
        Ok(validator) => {
            let faults: Vec<_> = validator
                .iter_errors(document)
                .take(FAULTS)
                .map(describe)
                .collect();
            Some(faults.join("; "))
        }
    }
}

/// Whether a document satisfies a schema.
pub fn satisfied(schema: &Value, document: &Value) -> bool {
    cached(schema)
        .as_ref()
        .as_ref()
        .is_ok_and(|validator| validator.is_valid(document))
}

/// Whether a text matches a regular expression, as JSON Schema's `pattern` does (anywhere in the text).
pub fn text_matches(pattern: &str, text: &str) -> bool {
    satisfied(&json!({ "pattern": pattern }), &Value::from(text))
}

/// A schema in one line, for people.
pub fn name(schema: &Value) -> String {
    match schema {
        Value::String(name) => format!("schema {name}"),
        fragment => format!("schema {fragment}"),
    }
}

/// Faults of one document that evidence names.
const FAULTS: usize = 3;

fn describe(error: jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().as_str();
    let path = if path.is_empty() {
        "the document"
    } else {
        path
    };
    let mut words = error.to_string();
    if let Some((cut, _)) = words.char_indices().nth(200) {
        words.truncate(cut);
        words.push('…');
    }
    format!("{path}: {words}")
}

fn cached(schema: &Value) -> Compiled {
    static CACHE: OnceLock<Mutex<HashMap<String, Compiled>>> = OnceLock::new();
    let key = schema.to_string();
    let mut cache = CACHE
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if cache.len() > CACHED && !cache.contains_key(&key) {
        cache.clear();
    }
    cache
        .entry(key)
        .or_insert_with(|| Arc::new(compile(schema)))
        .clone()
}

/// Schemas kept at most; rules come from the catalogue, which has fewer.
const CACHED: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_path_and_value() {
        let schema = json!({"properties": {"seq": {"type": "integer"}}, "required": ["id"]});
        let fault = fault(&schema, &json!({"seq": "7"})).unwrap();
        assert!(
            fault.contains("/seq: \"7\" is not of type \"integer\""),
            "{fault}"
        );
        assert!(
            fault.contains("the document: \"id\" is a required property"),
            "{fault}"
        );
    }

    #[test]
    fn a_broken_schema_is_an_error_and_never_satisfied() {
        assert!(compile(&json!({"type": "nonsense"})).is_err());
        assert!(
            compile(&json!("NoSuchSchema"))
                .unwrap_err()
                .contains("NoSuchSchema")
        );
        assert!(!satisfied(&json!({"type": "nonsense"}), &json!(1)));
        assert!(fault(&json!({"type": "nonsense"}), &json!(1)).is_some());
    }
}
