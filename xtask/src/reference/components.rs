//! The schemas of `spec/` as components of a description: definitions become components of their own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The components that a description uses.
#[derive(Debug, Default)]
pub(super) struct Components {
    schemas: BTreeMap<String, Value>,
}

impl Components {
    /// A reference to the schema of this name, which becomes a component.
    pub(super) fn schema(&mut self, name: &str) -> Value {
        if !self.schemas.contains_key(name) {
            let schema = turnwire_spec::schema::named(name);
            let schema = schema
                .map(|schema| schema.to_value())
                .unwrap_or_else(|| json!({}));
            self.add(name, schema);
        }
        json!({ "$ref": reference(name) })
    }

    /// All of them, as an object.
    pub(super) fn into_value(self) -> Value {
        Value::Object(self.schemas.into_iter().collect())
    }

    fn add(&mut self, name: &str, mut schema: Value) {
        let definitions = schema.as_object_mut().and_then(|object| {
            object.shift_remove("$schema");
            object.shift_remove("$defs")
        });
        point(&mut schema, name);
        self.schemas.insert(name.to_owned(), schema);
        let definitions = definitions.as_ref().and_then(Value::as_object);
        for (inner, definition) in definitions.into_iter().flatten() {
            let mut definition = definition.clone();
            point(&mut definition, name);
            self.schemas.insert(format!("{name}.{inner}"), definition);
        }
    }
}

fn reference(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

/// Makes references to definitions references to components.
fn point(value: &mut Value, name: &str) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(pointer)) = object.get_mut("$ref") {
                *pointer = match pointer.strip_prefix("#/$defs/") {
                    Some(inner) => reference(&format!("{name}.{inner}")),
                    None if pointer == "#" => reference(name),
                    None => pointer.clone(),
                };
            }
            object.values_mut().for_each(|inner| point(inner, name));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| point(inner, name)),
        _ => {}
    }
}
