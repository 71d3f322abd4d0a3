//! Valid requests, made from the schemas of `spec/`: the smallest value that a schema takes, with every member that it
//! names.

use serde_json::{Map, Value, json};

/// How deep schemas may refer to each other.
const DEPTH: usize = 12;

/// A value that a schema of `spec/schemas` takes, with this text for each member that is a session's id.
pub fn of(name: &str, session: &str) -> Value {
    let Some(schema) = turnwire_spec::schema::named(name) else {
        return json!({});
    };
    let root = schema.to_value();
    let maker = Maker {
        root: &root,
        session,
    };
    let mut value = maker.value("", &root, DEPTH);
    if name == "action-request" {
        // Its members depend on the type.
        value["payload"] = json!({ "actions": [{ "type": "say", "text": "a1" }] });
    }
    value
}

struct Maker<'s> {
    root: &'s Value,
    session: &'s str,
}

impl Maker<'_> {
    fn value(&self, name: &str, schema: &Value, depth: usize) -> Value {
        if depth == 0 {
            return Value::Null;
        }
        if name == "sessionId" || name == "session_id" {
            return self.session.into();
        }
        if let Some(known) = known(name) {
            return known.into();
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(first) = schema.pointer("/enum/0") {
            return first.clone();
        }
        if let Some(pointer) = schema.get("$ref").and_then(Value::as_str) {
            let found = self.root.pointer(pointer.trim_start_matches('#'));
            return found.map_or(Value::Null, |found| self.value(name, found, depth - 1));
        }
        let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"));
        let has_members = schema.get("properties").is_some();
        if let Some(first) = choices
            .and_then(|choices| choices.get(0))
            .filter(|_| !has_members)
        {
            return self.value(name, first, depth - 1);
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("object") => self.object(schema, depth),
            Some("array") => self.array(name, schema, depth),
            Some("string") => "a1".into(),
            Some("integer" | "number") => 1.into(),
            Some("boolean") => true.into(),
            _ if has_members => self.object(schema, depth),
            _ => Value::Null,
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let members = schema.get("properties").and_then(Value::as_object);
        let member =
            |(name, schema): (&String, &Value)| (name.clone(), self.value(name, schema, depth - 1));
        let object: Map<_, _> = members.into_iter().flatten().map(member).collect();
        Value::Object(object)
    }

    fn array(&self, name: &str, schema: &Value, depth: usize) -> Value {
        let items = schema.get("items");
        let item = items.map(|items| self.value("", items, depth - 1));
        let item = if name == "plugins" {
            Some("story".into())
        } else {
            item
        };
        Value::Array(item.into_iter().collect())
    }
}

/// Members whose text has to name something that exists.
fn known(name: &str) -> Option<&'static str> {
    match name {
        "projectSlug" | "target" => Some("scratch"),
        "locale" => Some("en"),
        "status" => Some("active"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn a_sample_of_every_request_is_valid() {
        let requests = turnwire_spec::covel::ENDPOINTS.iter();
        for name in requests.filter_map(|row| row.request) {
            let value = of(name, "s1");
            assert_eq!(schema::fault(&name.into(), &value), None, "{name}: {value}");
        }
    }
}
