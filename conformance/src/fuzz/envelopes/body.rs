//! What is done to the JSON of a request.

use serde_json::{Map, Value, json};

use super::change::{Change, Encoding};

/// What stands in place of a member's value, as JSON text.
pub const OTHERS: &[&str] = &[
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e400",
    "18446744073709551616",
    "-9223372036854775809",
    "\"\"",
    "\" \"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"../../etc/passwd\"",
    "\"\u{202e}\u{200b}\u{1f9a9}\"",
    "[]",
    "[[]]",
    "[null]",
    "{}",
    "{\"\":null}",
    "{\"__proto__\":{\"a\":1}}",
    "NaN",
    "undefined",
    "'text'",
    "01",
];

/// What stands in place of a whole body.
pub const TEXTS: &[&[u8]] = &[
    b"",
    b" ",
    b"null",
    b"[]",
    b"{}",
    b"\"text\"",
    b"0",
    b"{",
    b"}",
    b"{]",
    b"{\"a\":}",
    b"{\"a\":1,}",
    b"{} {}",
    b"{}x",
    b"\xff\xfe",
    b"\0",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"<?xml version=\"1.0\"?><a/>",
    b"a=1&b=2",
    b"// comment\n{}",
    b"\"\\ud800\"",
    b"{\"\\u0000\":1}",
    b"-",
];

/// More bytes than any of the three protocols takes at once.
const OVERSIZE: usize = (1 << 20) + 4_096;
/// Ends the name of a member that stands twice, until the text is written.
const TWICE: &str = "\u{1}";
/// Stands where nested arrays come, until the text is written.
const HOLE: &str = "\u{2}hole";

/// The bytes of a body after the changes that are about bodies.
pub fn changed(mut value: Value, changes: &[Change]) -> Vec<u8> {
    let mut holes: Vec<String> = Vec::new();
    for change in changes {
        in_value(&mut value, *change, &mut holes);
    }
    let mut text = value.to_string().replace("\\u0001\":", "\":");
    for (number, filling) in holes.iter().enumerate() {
        text = text.replace(&format!("\"\\u0002hole{number}\""), filling);
    }
    let mut bytes = text.into_bytes();
    for change in changes {
        in_bytes(&mut bytes, *change);
    }
    bytes
}

fn in_value(value: &mut Value, change: Change, holes: &mut Vec<String>) {
    let count = members(value);
    let pick = |at: u8| usize::from(at) % count.max(1);
    let mut hole = |filling: String| {
        holes.push(filling);
        Value::from(format!("{HOLE}{}", holes.len() - 1))
    };
    let other = |to: u8| OTHERS[usize::from(to) % OTHERS.len()].to_owned();
    match change {
        Change::Drop { at } => edit(value, pick(at), &mut |object, name| {
            object.shift_remove(name);
        }),
        Change::Retype { at, to } => {
            let new = hole(other(to));
            edit(value, pick(at), &mut |object, name| {
                object.insert(name.to_owned(), new.clone());
            });
        }
        Change::Duplicate { at, to } => {
            let new = hole(other(to));
            edit(value, pick(at), &mut |object, name| {
                object.insert(format!("{name}{TWICE}"), new.clone());
            });
        }
        Change::Deep { at, levels } => {
            let levels = levels as usize;
            let new = hole(format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
            edit(value, pick(at), &mut |object, name| {
                object.insert(name.to_owned(), new.clone());
            });
        }
        Change::Grow { at, chars } => {
            let new = Value::from("g".repeat(chars as usize));
            edit(value, pick(at), &mut |object, name| {
                object.insert(name.to_owned(), new.clone());
            });
        }
        Change::Unknown => {
            if let Value::Object(object) = value {
                object.insert("nobodyKnowsThis".to_owned(), json!({ "a": [1, null] }));
            }
        }
        _ => {}
    }
}

fn in_bytes(bytes: &mut Vec<u8>, change: Change) {
    let place = |percent: u8| bytes.len() * usize::from(percent) / 100;
    match change {
        Change::Replace { with } => *bytes = TEXTS[usize::from(with) % TEXTS.len()].to_vec(),
        Change::Truncate { percent } => bytes.truncate(place(percent)),
        Change::Byte { percent, byte } => {
            let place = place(percent);
            if let Some(found) = bytes.get_mut(place) {
                *found = byte;
            }
        }
        Change::Encode { to } => encode(bytes, to),
        Change::Oversize => bytes.resize(bytes.len() + OVERSIZE, b' '),
        _ => {}
    }
}

fn encode(bytes: &mut Vec<u8>, to: Encoding) {
    match to {
        Encoding::Bom => *bytes = [b"\xef\xbb\xbf", bytes.as_slice()].concat(),
        Encoding::Latin1 => {
            let quote = bytes.iter().rposition(|byte| *byte == b'"');
            bytes.insert(quote.unwrap_or_default(), 0xe9);
        }
        Encoding::Utf16 => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            *bytes = [0xff, 0xfe].into();
            bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        }
    }
}

/// Members over all levels.
fn members(value: &Value) -> usize {
    match value {
        Value::Object(object) => object.len() + object.values().map(members).sum::<usize>(),
        Value::Array(items) => items.iter().map(members).sum(),
        _ => 0,
    }
}

/// Applies an edit to the member with this number; nothing happens when there is none.
fn edit(value: &mut Value, at: usize, with: &mut dyn FnMut(&mut Map<String, Value>, &str)) {
    let mut left = at;
    walk(value, &mut left, with);
}

fn walk(
    value: &mut Value,
    left: &mut usize,
    with: &mut dyn FnMut(&mut Map<String, Value>, &str),
) -> bool {
    match value {
        Value::Object(object) => {
            if let Some(name) = object.keys().nth(*left).cloned() {
                with(object, &name);
                return true;
            }
            *left -= object.len();
            object.values_mut().any(|inner| walk(inner, left, with))
        }
        Value::Array(items) => items.iter_mut().any(|inner| walk(inner, left, with)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(changes: &[Change]) -> String {
        let value = json!({ "a": { "b": 1 }, "c": "x" });
        String::from_utf8_lossy(&changed(value, changes)).into_owned()
    }

    #[test]
    fn members_of_all_levels_are_changed_by_number() {
        assert_eq!(text(&[Change::Drop { at: 1 }]), r#"{"a":{"b":1}}"#);
        assert_eq!(text(&[Change::Drop { at: 2 }]), r#"{"a":{},"c":"x"}"#);
        assert_eq!(
            text(&[Change::Retype { at: 5, to: 0 }]),
            r#"{"a":{"b":null},"c":"x"}"#
        );
    }

    #[test]
    fn a_duplicate_comes_after_the_valid_one_and_nesting_is_text() {
        let twice = text(&[Change::Duplicate { at: 1, to: 1 }]);
        assert_eq!(twice, r#"{"a":{"b":1},"c":"x","c":true}"#);
        let deep = text(&[Change::Deep { at: 0, levels: 3 }]);
        assert_eq!(deep, r#"{"a":[[[]]],"c":"x"}"#);
    }

    #[test]
    fn bytes_are_cut_replaced_and_encoded() {
        assert_eq!(text(&[Change::Truncate { percent: 50 }]), r#"{"a":{"b":"#);
        let bytes = changed(
            json!({}),
            &[Change::Encode {
                to: Encoding::Utf16,
            }],
        );
        assert_eq!(bytes, [0xff, 0xfe, b'{', 0, b'}', 0]);
    }
}
