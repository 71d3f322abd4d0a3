//! Where two texts differ: fields of an event-stream frame, values of JSON.

use serde_json::{Map, Value};

use super::{Change, alike::Ids};

/// Changes that are listed at most for one piece.
const MOST: usize = 20;

/// JSON with its members in alphabetic order, so that their order does not count. Other text stays as it is.
pub(crate) fn canonical(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => sorted(value).to_string(),
        _ => text.to_owned(),
    }
}

/// A frame with the JSON of its data in canonical form, or a body.
pub(super) fn canonical_unit(what: &str, text: &str) -> String {
    if what != "frame" {
        return canonical(text);
    }
    let line = |line: &str| match line.strip_prefix("data: ") {
        Some(data) => format!("data: {}", canonical(data)),
        None => line.to_owned(),
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n")
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members
                .into_iter()
                .map(|(name, value)| (name, sorted(value)))
                .collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(Map::from_iter(members))
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// What changed between two texts of the same kind; nothing when that cannot be told more exactly.
pub(super) fn between(what: &str, a: &str, b: &str, ids: &Ids) -> Vec<Change> {
    let mut found = Vec::new();
    if what == "frame" {
        let (left, right) = (fields(a), fields(b));
        for (name, value) in &left {
            match right.iter().find(|(other, _)| other == name) {
                Some((_, other)) => texts(name, value, other, ids, &mut found),
                None => push(&mut found, name, Some(value), None),
            }
        }
        for (name, value) in &right {
            if !left.iter().any(|(other, _)| other == name) {
                push(&mut found, name, None, Some(value));
            }
        }
    } else {
        texts("", a, b, ids, &mut found);
    }
    found.truncate(MOST);
    found
}

/// The fields of a frame; lines of the same field are joined.
fn fields(frame: &str) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in frame.lines().filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        match fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, text)) => {
                text.push('\n');
                text.push_str(value);
            }
            None => fields.push((name.to_owned(), value.to_owned())),
        }
    }
    fields
}

fn texts(at: &str, a: &str, b: &str, ids: &Ids, found: &mut Vec<Change>) {
    if ids.clone().alike(&canonical(a), &canonical(b)) {
        return;
    }
    match (serde_json::from_str(a), serde_json::from_str(b)) {
        (Ok(a), Ok(b)) => values(at, "", &a, &b, ids, found),
        _ => push(found, at, Some(a), Some(b)),
    }
}

fn values(at: &str, pointer: &str, a: &Value, b: &Value, ids: &Ids, found: &mut Vec<Change>) {
    let place = [at, pointer].join(" ").trim().to_owned();
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            for (name, value) in left {
                let below = below(pointer, name);
                match right.get(name) {
                    Some(other) => values(at, &below, value, other, ids, found),
                    None => push(
                        found,
                        &[at, &below].join(" "),
                        Some(&value.to_string()),
                        None,
                    ),
                }
            }
            for (name, value) in right.iter().filter(|(name, _)| !left.contains_key(*name)) {
                let below = [at, &below(pointer, name)].join(" ");
                push(found, &below, None, Some(&value.to_string()));
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (value, other)) in left.iter().zip(right).enumerate() {
                values(at, &format!("{pointer}/{index}"), value, other, ids, found);
            }
        }
        _ => {
            let (a, b) = (a.to_string(), b.to_string());
            // Numbers of durations are told by their member's name.
            let named = |value: &str| {
                let name = pointer.rsplit('/').next().unwrap_or_default();
                format!("{{\"{name}\":{value}}}")
            };
            if !ids.clone().alike(&named(&a), &named(&b)) {
                push(found, &place, Some(&a), Some(&b));
            }
        }
    }
}

/// The JSON pointer of a member. Source: RFC 6901, section 3.
fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn push(found: &mut Vec<Change>, at: &str, a: Option<&str>, b: Option<&str>) {
    found.push(Change {
        at: at.trim().to_owned(),
        a: a.map(shorten),
        b: b.map(shorten),
    });
}

/// A text on one line, cut to a readable length.
pub(super) fn shorten(text: &str) -> String {
    const SHOWN: usize = 300;
    let text = text.trim_end_matches('\n').replace('\n', "⏎");
    match text.char_indices().nth(SHOWN) {
        None => text,
        Some((cut, _)) => format!("{}…", &text[..cut]),
    }
}
