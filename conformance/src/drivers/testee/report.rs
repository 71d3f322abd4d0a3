//! Reading what a testee reports.
//!
//! A client may show what a server has sent to it, however deep that is nested, and JSON readers take 128 levels. So of a
//! report that is deeper the levels below are left out, where they would keep the rest from being read.

use serde_json::Value;

/// Levels of a report that are kept.
const LEVELS: usize = 100;

/// The JSON object of a report, when it is one.
pub fn read(bytes: &[u8]) -> Option<Value> {
    let whole = serde_json::from_slice(bytes);
    let report: Value = whole
        .or_else(|_| serde_json::from_slice(&shallow(bytes)))
        .ok()?;
    report.is_object().then_some(report)
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
