//! Members of JSON objects, however deep the JSON stands in strings of other JSON.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::AhoCorasick;

use super::Secret;

/// Members of JSON objects whose string value is secret. Capitals, `_` and `-` do not count. A `token` is none: the
/// tokens of a language model are called so.
const MEMBERS: &[&str] = &[
    "owner token",
    "session token",
    "operator token",
    "access token",
    "refresh token",
    "id token",
    "auth token",
    "bearer token",
    "csrf token",
    "api key",
    "x api key",
    "x goog api key",
    "secret",
    "secret key",
    "secret access key",
    "private key",
    "client secret",
    "password",
    "passphrase",
    // What a Responses request hands on to a tool server.
    "authorization",
];

/// How the words of a name may be joined.
const JOINTS: [&str; 3] = ["", "_", "-"];

/// The secret members of a text, in order. One pass for all names, however many there are.
pub(super) fn of(bytes: &[u8]) -> Vec<Secret> {
    static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let names = MEMBERS
            .iter()
            .flat_map(|name| JOINTS.map(|joint| format!("{}\"", name.replace(' ', joint))));
        AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(aho_corasick::MatchKind::LeftmostLongest)
            .build(names)
            .ok()
    });
    // A name is found with the quote behind it; before that one stand the backslashes of its depth, so that names in
    // strings end with one. Those are looked for by their own finder.
    static NESTED: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let names = MEMBERS
            .iter()
            .flat_map(|name| JOINTS.map(|joint| format!("{}\\", name.replace(' ', joint))));
        AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(aho_corasick::MatchKind::LeftmostLongest)
            .build(names)
            .ok()
    });
    [&FINDER, &NESTED]
        .into_iter()
        .flat_map(|finder| finder.iter())
        .flat_map(|finder| finder.find_iter(bytes))
        .filter_map(|name| member(bytes, name.start()..name.end() - 1))
        .collect()
}

/// The value of the member whose name, without quotes, stands here.
fn member(bytes: &[u8], name: Range<usize>) -> Option<Secret> {
    let depth = backslashes_before(bytes, name.start.checked_sub(1)?);
    (bytes.get(name.start - 1) == Some(&b'"')).then_some(())?;
    let behind = quote(bytes, name.end, depth)?;
    let colon = skip_space(bytes, behind);
    (bytes.get(colon) == Some(&b':')).then_some(())?;
    let start = quote(bytes, skip_space(bytes, colon + 1), depth)?;
    let end = end_of_string(bytes, start, depth);
    let written = String::from_utf8_lossy(bytes.get(name)?);
    Secret::new(start..end, format!("JSON member {written}"))
}

/// Where it goes on behind a quote with so many backslashes, if that stands here.
fn quote(bytes: &[u8], at: usize, backslashes: usize) -> Option<usize> {
    let escapes = bytes.get(at..at + backslashes)?;
    let whole =
        escapes.iter().all(|byte| *byte == b'\\') && bytes.get(at + backslashes) == Some(&b'"');
    whole.then_some(at + backslashes + 1)
}

/// Where the string ends that begins here between quotes with so many backslashes. A text that was cut off within it
/// ends it as well.
fn end_of_string(bytes: &[u8], start: usize, backslashes: usize) -> usize {
    let mut from = start;
    while let Some(found) = bytes
        .get(from..)
        .and_then(|rest| memchr::memchr(b'"', rest))
    {
        let quote = from + found;
        let before = backslashes_before(bytes, quote).min(quote - start);
        if ends(before, backslashes) {
            return quote - before.min(backslashes);
        }
        from = quote + 1;
    }
    bytes.len()
}

/// Whether a quote behind so many backslashes ends a string whose own quotes have `depth` of them. Each string around
/// it doubles the backslashes and adds one for the quote.
fn ends(before: usize, depth: usize) -> bool {
    let (mut before, mut depth) = (before, depth);
    while depth > 0 {
        if before % 2 == 0 {
            // A string around it ends.
            return true;
        }
        before = (before - 1) / 2;
        depth = (depth - 1) / 2;
    }
    before % 2 == 0
}

fn backslashes_before(bytes: &[u8], at: usize) -> usize {
    let before = bytes.get(..at).unwrap_or_default();
    before
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count()
}

fn skip_space(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::replaced;

    fn hidden(text: &str) -> String {
        let mut secrets = of(text.as_bytes());
        secrets.sort_by_key(|secret| secret.range.start);
        replaced(text, &secrets, "-")
    }

    #[test]
    fn a_member_is_found_however_its_name_is_spelled() {
        for name in [
            "apiKey",
            "api_key",
            "API-KEY",
            "Password",
            "x-api-key",
            "sessiontoken",
        ] {
            let text = format!(r#"{{"{name}" : "a b"}}"#);
            assert_eq!(hidden(&text), format!(r#"{{"{name}" : "-"}}"#));
        }
        for text in [
            r#"{"token":"Hello"}"#,
            r#"{"myapikey":"x"}"#,
            r#"{"apiKey":7}"#,
            r#""password""#,
        ] {
            assert_eq!(hidden(text), text);
        }
    }

    #[test]
    fn a_member_is_found_in_json_within_a_string() {
        for (text, shown) in [
            (
                r#"{"arguments":"{\"apiKey\": \"abc\",\"x\":1}"}"#,
                r#"{"arguments":"{\"apiKey\": \"-\",\"x\":1}"}"#,
            ),
            (
                r#"{"a":"{\"b\":\"{\\\"password\\\":\\\"abc\\\"}\"}"}"#,
                r#"{"a":"{\"b\":\"{\\\"password\\\":\\\"-\\\"}\"}"}"#,
            ),
            (
                r#"{"a":"{\"password\":\"a\\\"b\\\\\"}"}"#,
                r#"{"a":"{\"password\":\"-\"}"}"#,
            ),
        ] {
            assert_eq!(hidden(text), shown);
        }
    }

    #[test]
    fn a_value_that_is_cut_off_is_secret_to_the_end() {
        for (text, shown) in [
            (r#"{"apiKey":"abc"#, r#"{"apiKey":"-"#),
            (r#"{"apiKey":"ab\"#, r#"{"apiKey":"-"#),
            (r#"{"a":"{\"apiKey\":\"abc"}"#, r#"{"a":"{\"apiKey\":\"-"}"#),
        ] {
            assert_eq!(hidden(text), shown);
        }
    }
}
