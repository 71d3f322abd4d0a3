//! Reading JSON that services write, with all that they get wrong.
//!
//! Answers are read as values, not as types: one odd member must not cost the whole answer.

use serde_json::Value;

/// Reads a text. Escaped halves of surrogate pairs, which cutting a text into deltas leaves behind, are
/// read as U+FFFD.
pub(super) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match without_lone_surrogates(text) {
        Some(text) => serde_json::from_str(&text),
        None => Err(error),
    })
}

/// As [`parse`], of bytes; what is no UTF-8 is read as U+FFFD.
pub(super) fn parse_bytes(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let text = String::from_utf8_lossy(bytes);
    parse(text.trim_start_matches('\u{feff}').trim())
}

/// The text with `\ufffd` for every escaped surrogate without its other half; `None` when there is none.
fn without_lone_surrogates(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let mut len = 2;
        if let Some(unit) = unit_of(escape) {
            len = 6;
            let low_follows = || {
                let next = escape.get(6..).and_then(unit_of);
                next.is_some_and(|next| (0xDC00..0xE000).contains(&next))
            };
            if (0xD800..0xDC00).contains(&unit) && low_follows() {
                len = 12;
            } else if (0xD800..0xE000).contains(&unit) {
                out.push_str("\\ufffd");
                changed = true;
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
        }
        let end = (len..=escape.len())
            .find(|end| escape.is_char_boundary(*end))
            .unwrap_or(escape.len());
        out.push_str(&escape[..end]);
        rest = &escape[end..];
    }
    out.push_str(rest);
    changed.then_some(out)
}

/// The unit of a `\uXXXX` at the start of a text.
fn unit_of(escape: &str) -> Option<u32> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

/// A number of tokens: also a text of digits or a float without fraction; nothing else.
pub(super) fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number
                .as_f64()
                .filter(|float| *float >= 0.0 && float.fract() == 0.0)?;
            format!("{float:.0}").parse().ok()
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A place, which some services write as a float.
pub(super) fn index(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| count(value).and_then(|count| i64::try_from(count).ok()))
}

/// A text that is not empty.
pub(super) fn filled(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// The items of a list; of anything else none.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_lone_half_of_a_pair_reads_as_the_replacement_character() {
        assert_eq!(
            parse(r#"{"a":"x\ud83dy"}"#).unwrap(),
            json!({ "a": "x\u{fffd}y" })
        );
        assert_eq!(parse(r#""\ude80""#).unwrap(), json!("\u{fffd}"));
        assert_eq!(
            parse(r#""\ud83d\ude80 \\ud83d \ud83d""#).unwrap(),
            json!("🚀 \\ud83d \u{fffd}")
        );
        assert_eq!(parse(r#""é\\é\ud83d""#).unwrap(), json!("é\\é\u{fffd}"));
        assert!(parse(r#"{"a":"#).is_err());
        assert!(parse(r#""\ud83"#).is_err());
    }

    #[test]
    fn odd_counts_are_read_or_unknown() {
        for (value, expected) in [
            (json!(7), Some(7)),
            (json!(7.0), Some(7)),
            (json!("7"), Some(7)),
            (json!(-7), None),
            (json!(7.5), None),
            (json!("many"), None),
            (json!(null), None),
            (json!({}), None),
        ] {
            assert_eq!(count(&value), expected, "{value}");
        }
    }
}
