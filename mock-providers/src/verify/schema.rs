//! What strict schemas and the OpenAPI subset demand.

use serde_json::Value;

use super::shape::items;

/// Why a schema is not strict: the first object, in the order of the document, that does not forbid
/// other members or does not require all of its own.
pub(super) fn not_strict(schema: &Value) -> Option<String> {
    not_strict_at(schema, "()", 0)
}

/// Why a strict schema cannot stand at the root: it has to be an object's, and not a choice of several.
pub(super) fn root_is_no_object(schema: &Value) -> Option<String> {
    let members = schema.as_object()?;
    let kind = members.get("type").unwrap_or(&Value::Null);
    let object = kind == "object" || items(kind).iter().any(|one| one == "object");
    // What a reference at the root stands for is not looked at.
    let elsewhere = kind.is_null() && members.contains_key("$ref");
    if (object || elsewhere) && !members.contains_key("anyOf") {
        return None;
    }
    let got = match kind {
        Value::Null => "None".to_owned(),
        Value::String(word) => word.clone(),
        other => other.to_string(),
    };
    Some(format!(
        "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{got}\"'."
    ))
}

/// Schemas nest at most so deep; what is deeper is not looked at.
const DEEPEST: usize = 64;

fn not_strict_at(schema: &Value, place: &str, depth: usize) -> Option<String> {
    if depth > DEEPEST {
        return None;
    }
    let is_object = schema["type"] == "object"
        || items(&schema["type"]).iter().any(|kind| kind == "object")
        || schema["properties"].is_object();
    if is_object {
        if schema["additionalProperties"] != false {
            return Some(format!(
                "In context={place}, 'additionalProperties' is required to be supplied and to \
                 be false."
            ));
        }
        let required = items(&schema["required"]);
        let properties = schema["properties"].as_object();
        let missing = properties
            .into_iter()
            .flat_map(|members| members.keys())
            .find(|name| !required.iter().any(|other| other == name.as_str()));
        if let Some(name) = missing {
            return Some(format!(
                "In context={place}, 'required' is required to be supplied and to be an array \
                 including \
                 every key in properties. Missing '{name}'."
            ));
        }
    }
    children(schema)
        .find_map(|(name, child)| not_strict_at(child, &format!("{place}.{name}"), depth + 1))
}

/// The schemas directly inside a schema, with the names of their places.
fn children(schema: &Value) -> impl Iterator<Item = (String, &Value)> {
    let named = ["properties", "$defs", "definitions"]
        .into_iter()
        .filter_map(|group| schema[group].as_object())
        .flatten()
        .map(|(name, child)| (name.clone(), child));
    let listed = ["anyOf", "allOf", "oneOf"].into_iter().flat_map(|group| {
        items(&schema[group])
            .iter()
            .map(move |child| (group.to_owned(), child))
    });
    let single = Some(&schema["items"]).filter(|child| child.is_object());
    named
        .chain(listed)
        .chain(single.map(|child| ("items".to_owned(), child)))
}

/// The first keyword that the OpenAPI subset of Gemini does not have.
pub(super) fn foreign_keyword(schema: &Value) -> Option<&'static str> {
    foreign_keyword_at(schema, 0)
}

const FOREIGN: [&str; 8] = [
    "$ref",
    "$defs",
    "$schema",
    "additionalProperties",
    "oneOf",
    "allOf",
    "const",
    "definitions",
];

fn foreign_keyword_at(schema: &Value, depth: usize) -> Option<&'static str> {
    if depth > DEEPEST {
        return None;
    }
    let members = schema.as_object()?;
    FOREIGN
        .into_iter()
        .find(|keyword| members.contains_key(*keyword))
        .or_else(|| children(schema).find_map(|(_, child)| foreign_keyword_at(child, depth + 1)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strict_schemas_close_and_require_everything_at_every_depth() {
        let inner = json!({"type": "object", "properties": {"x": {"type": "string"}},
            "required": ["x"], "additionalProperties": false});
        let outer = |inner: &Value| {
            json!({"type": "object", "properties": {"list": {"type": "array", "items": inner}},
                "required": ["list"], "additionalProperties": false})
        };
        assert_eq!(not_strict(&outer(&inner)), None);
        let mut open = inner.clone();
        open["additionalProperties"] = json!(true);
        assert!(not_strict(&outer(&open)).unwrap().contains("().list.items"));
        let mut optional = inner;
        optional["required"] = json!([]);
        assert!(
            not_strict(&outer(&optional))
                .unwrap()
                .contains("Missing 'x'")
        );
    }

    #[test]
    fn a_strict_root_is_an_object() {
        let object = json!({"type": "object", "properties": {}});
        assert_eq!(root_is_no_object(&object), None);
        assert_eq!(root_is_no_object(&Value::Null), None);
        assert_eq!(root_is_no_object(&json!({"$ref": "#/$defs/a"})), None);
        let choice = root_is_no_object(&json!({"anyOf": [object]})).unwrap();
        assert!(choice.ends_with("got 'type: \"None\"'."), "{choice}");
        assert!(root_is_no_object(&json!({"type": "array"})).is_some());
        assert!(root_is_no_object(&json!({"type": "object", "anyOf": []})).is_some());
    }

    #[test]
    fn keywords_outside_of_the_subset_are_found_at_every_depth() {
        let schema = json!({"type": "OBJECT", "properties": {"a": {"oneOf": []}}});
        assert_eq!(foreign_keyword(&schema), Some("oneOf"));
        let schema = json!({"type": "OBJECT", "properties": {"oneOf": {"type": "STRING"}}});
        assert_eq!(foreign_keyword(&schema), None);
    }
}
