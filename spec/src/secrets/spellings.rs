//! The ways in which one value may be written: as it is, percent-encoded, and escaped as in JSON.

use std::collections::BTreeSet;

/// All other ways to write this value that are looked for, without the value itself.
///
/// A value may be given in any of them: what it stands for is found first.
pub fn spellings(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut plain = BTreeSet::from([value.to_vec()]);
    plain.insert(percent_decoded(value, false));
    plain.insert(percent_decoded(value, true));
    plain.extend(json_unescaped(value));
    let mut found = BTreeSet::new();
    for value in plain {
        found.insert(percent_encoded(&value, b"0123456789ABCDEF"));
        found.insert(percent_encoded(&value, b"0123456789abcdef"));
        if let Some(escaped) = json_escaped(&value) {
            found.insert(escaped.replace('/', "\\/").into_bytes());
            found.insert(escaped.into_bytes());
        }
        found.insert(value);
    }
    found.remove(value);
    found
}

/// What percent signs, and with `form` plus signs, stand for; what is no escape stays as it is.
pub(super) fn percent_decoded(bytes: &[u8], form: bool) -> Vec<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
            _ => None,
        };
        plain.push(match byte {
            b'+' if form => b' ',
            byte => escaped.unwrap_or(byte),
        });
        at += if escaped.is_some() { 3 } else { 1 };
    }
    plain
}

fn percent_encoded(bytes: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let mut written = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            written.push(byte);
        } else {
            let digit = |nibble: u8| digits.get(usize::from(nibble)).copied().unwrap_or_default();
            written.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    written
}

fn json_unescaped(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| text.contains('\\'))?;
    let text: String = serde_json::from_str(&format!("\"{text}\"")).ok()?;
    Some(text.into_bytes())
}

fn json_escaped(bytes: &[u8]) -> Option<String> {
    let text = serde_json::to_string(std::str::from_utf8(bytes).ok()?).ok()?;
    Some(text.get(1..text.len() - 1)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(value: &str, other: &str) -> bool {
        spellings(value.as_bytes()).contains(other.as_bytes())
    }

    #[test]
    fn each_spelling_leads_to_all_others() {
        let spelled = [
            r#"a/b+c "d""#,
            "a%2Fb%2Bc%20%22d%22",
            "a%2fb%2bc%20%22d%22",
            r#"a\/b+c \"d\""#,
        ];
        for one in spelled {
            for other in spelled {
                assert!(one == other || has(one, other), "{one} {other}");
            }
        }
        assert!(has("a%2Fb+c", "a/b c"));
        assert!(has(r"a\u002bsecret", "a+secret"));
    }

    #[test]
    fn a_plain_word_has_one_spelling() {
        assert_eq!(spellings(b"abc-123_x"), BTreeSet::new());
        assert!(has("100%", "100%25"));
    }
}
