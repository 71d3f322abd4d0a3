//! Changes of JSON documents, as the catalogue writes them.
//!
//! Pointers are those of RFC 6901; a segment `*` stands for every element of an array or object. An edit whose
//! pointer leads nowhere changes nothing.

use serde_json::{Map, Number, Value};
use turnwire_spec::catalogue::rewrite::JsonEdit;

use super::template::Context;
use crate::transcript::views::stream::text_of;

/// Applies the edits one after the other. Templates in a value see the document as it was before all of them.
pub fn apply(edits: &[JsonEdit], document: &mut Value, context: Context<'_>) {
    let before = document.clone();
    let context = Context {
        json: Some(&before),
        ..context
    };
    for edit in edits {
        apply_one(edit, document, context);
    }
}

fn apply_one(edit: &JsonEdit, document: &mut Value, context: Context<'_>) {
    match edit {
        JsonEdit::Set(pointer, value) => {
            let value = context.fill_value(value);
            each(document, pointer, |document, pointer| {
                set(document, pointer, value.clone())
            });
        }
        JsonEdit::Remove(pointer) => each(document, pointer, |document, pointer| {
            take(document, pointer);
        }),
        JsonEdit::Copy(from, to) => {
            if let Some(value) = document.pointer(from).cloned() {
                set(document, to, value);
            }
        }
        JsonEdit::Rename(pointer, name) => each(document, pointer, |document, pointer| {
            if let (Some(value), Some((parent, _))) =
                (take(document, pointer), pointer.rsplit_once('/'))
            {
                set(document, &format!("{parent}/{}", escape(name)), value);
            }
        }),
        JsonEdit::Add(pointer, summand) => change(document, pointer, |value| add(value, *summand)),
        JsonEdit::Stringify(pointer) => change(document, pointer, |value| {
            *value = Value::from(text_of(value))
        }),
        JsonEdit::Unwrap(pointer) => {
            if let Some(value) = document.pointer(pointer).cloned() {
                *document = value;
            }
        }
        JsonEdit::Wrap(name) => {
            let inner = document.take();
            *document = Value::Object(Map::from_iter([(name.clone(), inner)]));
        }
        JsonEdit::Shorten(pointer, count) => change(document, pointer, |value| {
            if let Value::Array(items) = value {
                items.drain(
                    ..items
                        .len()
                        .min(usize::try_from(*count).unwrap_or(usize::MAX)),
                );
            }
        }),
        JsonEdit::Reverse(pointer) => change(document, pointer, |value| {
            if let Value::Array(items) = value {
                items.reverse();
            }
        }),
    }
}

/// Calls `act` with every concrete pointer that a pointer with `*` stands for.
fn each(document: &mut Value, pointer: &str, mut act: impl FnMut(&mut Value, &str)) {
    // From the back, so that removing an element moves none that is still to come.
    for pointer in concrete(document, pointer).iter().rev() {
        act(document, pointer);
    }
}

fn change(document: &mut Value, pointer: &str, mut act: impl FnMut(&mut Value)) {
    each(document, pointer, |document, pointer| {
        if let Some(value) = document.pointer_mut(pointer) {
            act(value);
        }
    });
}

fn concrete(document: &Value, pointer: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for segment in pointer.split('/').skip(1) {
        found = found
            .into_iter()
            .flat_map(|parent| match segment {
                "*" => children(document.pointer(&parent))
                    .map(|name| format!("{parent}/{name}"))
                    .collect(),
                name => vec![format!("{parent}/{name}")],
            })
            .collect();
    }
    found
}

fn children(value: Option<&Value>) -> impl Iterator<Item = String> {
    let names: Vec<String> = match value {
        Some(Value::Array(items)) => (0..items.len()).map(|index| index.to_string()).collect(),
        Some(Value::Object(members)) => members.keys().map(|name| escape(name)).collect(),
        _ => Vec::new(),
    };
    names.into_iter()
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// Sets a value; parents that are missing become objects. `-` appends to an array.
fn set(document: &mut Value, pointer: &str, value: Value) {
    let mut place = document;
    for segment in pointer.split('/').skip(1) {
        if !place.is_array() && !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = match place {
            Value::Array(items) => {
                let index = if segment == "-" {
                    Some(items.len())
                } else {
                    segment.parse().ok()
                };
                let Some(index) = index.filter(|index| *index <= items.len()) else {
                    return;
                };
                if index == items.len() {
                    items.push(Value::Null);
                }
                let Some(item) = items.get_mut(index) else {
                    return;
                };
                item
            }
            Value::Object(members) => members.entry(unescape(segment)).or_insert(Value::Null),
            _ => return,
        };
    }
    *place = value;
}

/// Removes the value at a pointer and returns it.
fn take(document: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, segment) = pointer.rsplit_once('/')?;
    match document.pointer_mut(parent)? {
        Value::Object(members) => members.shift_remove(&unescape(segment)),
        Value::Array(items) => {
            let index = segment.parse().ok().filter(|index| *index < items.len())?;
            Some(items.remove(index))
        }
        _ => None,
    }
}

fn add(value: &mut Value, summand: i64) {
    let sum = match value {
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Some(Number::from(integer.saturating_add(summand))),
            None => number
                .as_f64()
                .and_then(|float| Number::from_f64(float + summand as f64)),
        },
        _ => None,
    };
    if let Some(sum) = sum {
        *value = Value::Number(sum);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::saboteurs::RequestInfo;

    /// What one edit, written as in the catalogue, makes of `{"a":{"b":7},"list":[{"x":1},{"x":2},{"x":3}]}`.
    fn edited(edit: Value) -> String {
        let edits: Vec<JsonEdit> = serde_json::from_value(json!([edit])).unwrap();
        let mut document = json!({"a": {"b": 7}, "list": [{"x": 1}, {"x": 2}, {"x": 3}]});
        let info = RequestInfo::default();
        apply(
            &edits,
            &mut document,
            Context {
                info: &info,
                frame: None,
                json: None,
                index: 0,
            },
        );
        document.to_string()
    }

    const LIST: &str = r#""list":[{"x":1},{"x":2},{"x":3}]"#;

    #[test]
    fn set_replaces_adds_and_makes_parents() {
        assert_eq!(
            edited(json!({"set": ["/a/b", "n{/a/b}"]})),
            format!(r#"{{"a":{{"b":"n7"}},{LIST}}}"#)
        );
        assert_eq!(
            edited(json!({"set": ["/a/c/d", 1]})),
            format!(r#"{{"a":{{"b":7,"c":{{"d":1}}}},{LIST}}}"#)
        );
        assert_eq!(
            edited(json!({"set": ["/list/-", 4]})),
            r#"{"a":{"b":7},"list":[{"x":1},{"x":2},{"x":3},4]}"#
        );
        assert_eq!(
            edited(json!({"set": ["/list/*/x", 0]})),
            r#"{"a":{"b":7},"list":[{"x":0},{"x":0},{"x":0}]}"#
        );
        assert_eq!(edited(json!({"set": ["", []]})), "[]");
    }

    #[test]
    fn remove_takes_members_and_elements() {
        assert_eq!(edited(json!({"remove": "/a"})), format!("{{{LIST}}}"));
        assert_eq!(
            edited(json!({"remove": "/list/0"})),
            r#"{"a":{"b":7},"list":[{"x":2},{"x":3}]}"#
        );
        assert_eq!(
            edited(json!({"remove": "/list/*"})),
            r#"{"a":{"b":7},"list":[]}"#
        );
        assert_eq!(
            edited(json!({"remove": "/no/where"})),
            format!(r#"{{"a":{{"b":7}},{LIST}}}"#)
        );
    }

    #[test]
    fn copy_and_rename_move_values() {
        assert_eq!(
            edited(json!({"copy": ["/a/b", "/c"]})),
            format!(r#"{{"a":{{"b":7}},{LIST},"c":7}}"#)
        );
        assert_eq!(
            edited(json!({"rename": ["/a/b", "c"]})),
            format!(r#"{{"a":{{"c":7}},{LIST}}}"#)
        );
        assert_eq!(
            edited(json!({"rename": ["/list/*/x", "y"]})),
            r#"{"a":{"b":7},"list":[{"y":1},{"y":2},{"y":3}]}"#
        );
    }

    #[test]
    fn add_and_stringify_change_numbers() {
        assert_eq!(
            edited(json!({"add": ["/a/b", -2]})),
            format!(r#"{{"a":{{"b":5}},{LIST}}}"#)
        );
        assert_eq!(
            edited(json!({"add": ["/a", 1]})),
            format!(r#"{{"a":{{"b":7}},{LIST}}}"#)
        );
        assert_eq!(
            edited(json!({"stringify": "/a/b"})),
            format!(r#"{{"a":{{"b":"7"}},{LIST}}}"#)
        );
    }

    #[test]
    fn unwrap_and_wrap_change_the_whole_document() {
        assert_eq!(edited(json!({"unwrap": "/a"})), r#"{"b":7}"#);
        assert_eq!(
            edited(json!({"unwrap": "/no"})),
            format!(r#"{{"a":{{"b":7}},{LIST}}}"#)
        );
        assert_eq!(
            edited(json!({"wrap": "item"})),
            format!(r#"{{"item":{{"a":{{"b":7}},{LIST}}}}}"#)
        );
    }

    #[test]
    fn shorten_and_reverse_change_arrays() {
        assert_eq!(
            edited(json!({"shorten": ["/list", 2]})),
            r#"{"a":{"b":7},"list":[{"x":3}]}"#
        );
        assert_eq!(
            edited(json!({"shorten": ["/list", 9]})),
            r#"{"a":{"b":7},"list":[]}"#
        );
        assert_eq!(
            edited(json!({"reverse": "/list"})),
            r#"{"a":{"b":7},"list":[{"x":3},{"x":2},{"x":1}]}"#
        );
    }
}
