//! Reading what a testee reports.
//!
//! A client may show what a server has sent to it, and that may be JSON which our reader does not take: nested deeper than
//! 128 levels, with half of a surrogate pair as an escape, or with a number that no double holds. So of a report that
//! cannot be read the levels below are left out, such halves become U+FFFD and such numbers `null`, where they would keep
//! the rest from being read.
//!
//! Source: RFC 8259, sections 6, 8.1 and 8.2, and section 9 on the limits of readers.

use serde_json::Value;

/// Levels of a report that are kept.
const LEVELS: usize = 100;

/// What some systems write before the first line of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The JSON object of a report, when it is one.
pub fn read(bytes: &[u8]) -> Option<Value> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let whole = serde_json::from_slice(bytes);
    let report: Value = whole
        .or_else(|_| serde_json::from_slice(&readable(&shallow(bytes))))
        .ok()?;
    report.is_object().then_some(report)
}

/// The same JSON, with U+FFFD for each escaped half of a surrogate pair and `null` for each number that no double holds.
fn readable(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let (mut rest, mut in_text) = (bytes, false);
    while let Some(first) = rest.first() {
        let length = match first {
            b'\\' if in_text => match (unit(rest), unit(rest.get(6..).unwrap_or_default())) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
                (Some(0xd800..=0xdfff), _) => {
                    kept.extend(b"\\ufffd");
                    rest = &rest[6..];
                    continue;
                }
                _ => 2,
            },
            b'-' | b'0'..=b'9' if !in_text => {
                let number = number(rest);
                if is_beyond_doubles(number) {
                    kept.extend(b"null");
                    rest = &rest[number.len()..];
                    continue;
                }
                number.len()
            }
            b'"' => {
                in_text = !in_text;
                1
            }
            _ => 1,
        };
        let (same, after) = rest.split_at(length.min(rest.len()));
        kept.extend(same);
        rest = after;
    }
    kept
}

/// The code unit of the escape `\uXXXX` that these bytes begin with.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// The number that these bytes begin with.
fn number(bytes: &[u8]) -> &[u8] {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let end = bytes.iter().position(|byte| !is_part(byte));
    &bytes[..end.unwrap_or(bytes.len())]
}

fn is_beyond_doubles(number: &[u8]) -> bool {
    let number = std::str::from_utf8(number).unwrap_or_default();
    number.parse().is_ok_and(f64::is_infinite)
}

/// The same JSON, with `null` in place of each array and object below the last level that is kept.
fn shallow(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        let was_inside = depth > LEVELS;
        if in_text {
            in_text = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else {
            match byte {
                b'"' => in_text = true,
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        match (was_inside, depth > LEVELS) {
            (false, true) => kept.extend(b"null"),
            (false, false) => kept.push(*byte),
            // The last byte of what is left out closes it.
            (true, _) => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_deep_is_left_out_and_the_rest_is_read() {
        let deep = format!(
            r#"{{"state":{{"a":{}"]\""{},"b":"]}}\\","c":[1]}}}}"#,
            "[".repeat(5_000),
            "]".repeat(5_000)
        );
        let read = read(deep.as_bytes()).unwrap();
        assert_eq!(read["state"]["b"], r"]}\");
        assert_eq!(read["state"]["c"][0], 1);
        assert!(read["state"]["a"][0][0].is_array());
    }

    #[test]
    fn half_of_a_surrogate_pair_does_not_keep_the_rest_from_being_read() {
        let halves =
            br#"{"state":{"a":"\ud800","b":"\udc00x\ud83e\uddA9","c":"\\ud800 \"","d":1}}"#;
        let read = read(halves).unwrap();
        assert_eq!(read["state"]["a"], "\u{fffd}");
        assert_eq!(read["state"]["b"], "\u{fffd}x\u{1f9a9}");
        assert_eq!(read["state"]["c"], r#"\ud800 ""#);
        assert_eq!(read["state"]["d"], 1);
    }

    #[test]
    fn a_number_that_no_double_holds_does_not_keep_the_rest_from_being_read() {
        let digits = "9".repeat(400);
        let huge = format!(r#"{{"a":1e400,"b":[-{digits},-1.5e3],"c":"1e400","d":12}}"#);
        let read = read(huge.as_bytes()).unwrap();
        assert_eq!(read["a"], Value::Null);
        assert_eq!(read["b"], serde_json::json!([null, -1500.0]));
        assert_eq!(read["c"], "1e400");
        assert_eq!(read["d"], 12);
    }

    #[test]
    fn what_breaks_off_is_no_report() {
        for broken in [
            r#"{"a":"\"#,
            r#"{"a":"\ud8"#,
            r#"{"a":-"#,
            r#"{"a":1e400"#,
            r#"{"a"#,
        ] {
            assert_eq!(read(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn the_first_report_may_have_a_byte_order_mark() {
        assert_eq!(read(b"\xef\xbb\xbf{\"can\":[]}"), read(b"{\"can\":[]}"));
        assert!(read(b"\xef\xbb\xbf{}").is_some());
    }

    #[test]
    fn a_report_is_an_object() {
        assert_eq!(
            read(b"{\"a\":[[]]}").unwrap()["a"][0]
                .as_array()
                .map(Vec::len),
            Some(0)
        );
        assert_eq!(read(b"[1]"), None);
        assert_eq!(read(b"no JSON"), None);
    }
}
