//! A schema as a table of members.

use std::fmt::Write as _;

use serde_json::Value;

/// A table of the members of a schema, and its name as a link to its file; one line when it has no members.
pub(super) fn table(name: &str) -> String {
    let Some(schema) = turnwire_spec::schema::named(name) else {
        return String::new();
    };
    of(name, schema.as_value())
}

/// As [`table`], of this schema.
pub(super) fn of(name: &str, schema: &Value) -> String {
    let mut text = format!("Schema: `spec/schemas/{name}.json`\n\n");
    let Some(members) = schema.get("properties").and_then(Value::as_object) else {
        return text;
    };
    if members.is_empty() {
        return text;
    }
    text.push_str("| member | value | |\n| --- | --- | --- |\n");
    let required = schema.get("required").and_then(Value::as_array);
    for (member, about) in members {
        let is_required = required.is_some_and(|names| names.iter().any(|name| name == member));
        let mark = if is_required { "" } else { "?" };
        let said = about.get("description").and_then(Value::as_str);
        let said = said
            .unwrap_or_default()
            .split("\n\n")
            .next()
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "| `{member}{mark}` | {} | {} |",
            cell(&kind(about, schema)),
            cell(&said.replace('\n', " "))
        );
    }
    text.push('\n');
    text
}

/// What a value is, in few words.
fn kind(about: &Value, root: &Value) -> String {
    if let Some(constant) = about.get("const") {
        return format!("`{constant}`");
    }
    if let Some(values) = about.get("enum").and_then(Value::as_array) {
        let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
        return values.join(", ");
    }
    if let Some(pointer) = about.get("$ref").and_then(Value::as_str) {
        let name = pointer.rsplit('/').next().unwrap_or_default();
        let found = root.pointer(pointer.trim_start_matches('#'));
        return match found.filter(|found| found.get("enum").is_some()) {
            Some(found) => kind(found, root),
            None => name.to_owned(),
        };
    }
    match about.get("type") {
        Some(Value::String(name)) if name == "array" => match about.get("items") {
            Some(items) => format!("array of {}", kind(items, root)),
            None => "array".to_owned(),
        },
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => {
            let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
            names.join(" or ")
        }
        _ if about.get("oneOf").or_else(|| about.get("anyOf")).is_some() => "one of".to_owned(),
        _ => "any".to_owned(),
    }
}

/// A text for a cell of a table. Links of the source's documentation lead nowhere here, so their words are left.
pub(super) fn cell(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((word, tail)) = after.split_once("`]") else {
            break;
        };
        plain.push_str(&format!("{before}`{word}`"));
        rest = match tail
            .strip_prefix('(')
            .and_then(|target| target.split_once(')'))
        {
            Some((_, tail)) => tail,
            None => tail,
        };
    }
    plain.push_str(rest);
    plain.replace('|', "\\|").replace('<', "&lt;")
}
