//! `name=value` pairs of queries, fragments and forms, wherever they stand, and parts of multipart forms.

use memchr::memmem;

use super::{Secret, is_parameter};

/// Longest name that is looked at, in bytes.
const LONGEST: usize = 64;

/// Values of secret parameters, in order: behind `?`, `&` or `#`, at the beginning of a text, and at that of a line.
pub(super) fn of(bytes: &[u8]) -> Vec<Secret> {
    memchr::memchr_iter(b'=', bytes)
        .filter_map(|equals| pair(bytes, equals))
        .collect()
}

fn pair(bytes: &[u8], equals: usize) -> Option<Secret> {
    let letter = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_.%".contains(byte);
    let before = bytes.get(equals.saturating_sub(LONGEST)..equals)?;
    let length = before.iter().rev().take_while(letter).count();
    let start = equals - length;
    let begins = match start.checked_sub(1).and_then(|at| bytes.get(at)) {
        None => start == 0,
        Some(byte) => b"?&#\n".contains(byte),
    };
    let name = std::str::from_utf8(bytes.get(start..equals)?).ok()?;
    if !begins || !is_parameter(name) {
        return None;
    }
    let from = equals + 1;
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"&#\"'<>\\`".contains(byte);
    let rest = bytes.get(from..)?;
    let length = rest.iter().position(ends).unwrap_or(rest.len());
    Secret::new(from..from + length, format!("query {name}"))
}

/// Longest head of a part of a form, and longest value of one that is looked for, in bytes. Whoever sends a form of many
/// parts without an end shall not make us search each to the end of the body.
const PART: usize = 16 << 10;

/// Values of the secret parts of a multipart form, in order. Source: RFC 7578, section 4.2.
pub(super) fn of_parts(bytes: &[u8]) -> Vec<Secret> {
    const START: &[u8] = b"form-data; name=\"";
    memmem::find_iter(bytes, START)
        .filter_map(|found| part(bytes, found + START.len()))
        .collect()
}

/// The value of the part whose name begins here.
fn part(bytes: &[u8], start: usize) -> Option<Secret> {
    let bounded = |from: usize| bytes.get(from..bytes.len().min(from + PART));
    let named = bounded(start)?;
    let name = std::str::from_utf8(named.get(..memchr::memchr(b'"', named)?)?).ok()?;
    if !is_parameter(name) {
        return None;
    }
    let from = start + memmem::find(named, b"\r\n\r\n")? + 4;
    let value = bounded(from)?;
    let length = memmem::find(value, b"\r\n--").unwrap_or(value.len());
    Secret::new(from..from + length, format!("form field {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::replaced;

    fn hidden(text: &str) -> String {
        replaced(text, &of(text.as_bytes()), "-")
    }

    #[test]
    fn a_pair_is_found_in_a_form_and_in_an_address_within_a_text() {
        for (text, shown) in [
            (
                "grant_type=x&client_secret=a+b&password=c",
                "grant_type=x&client_secret=-&password=-",
            ),
            (
                r#"{"url":"https://x/?access_token=abc","n":1}"#,
                r#"{"url":"https://x/?access_token=-","n":1}"#,
            ),
            (
                "see <https://x/#id_token=abc> now",
                "see <https://x/#id_token=-> now",
            ),
            ("PORT=80\nAPI_KEY=abc\n", "PORT=80\nAPI_KEY=-\n"),
            ("?access%5Ftoken=abc", "?access%5Ftoken=-"),
        ] {
            assert_eq!(hidden(text), shown);
        }
        for text in [
            "a token=abc",
            "?tokens=abc",
            "if password==x",
            "=token",
            "&=",
        ] {
            assert_eq!(hidden(text), text);
        }
    }

    #[test]
    fn a_part_of_a_form_is_found_to_its_boundary() {
        let form = |value: &str| {
            format!(
                "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n\
                 --b\r\nContent-Disposition: form-data; name=\"password\"\r\nX-Y: z\r\n\r\n{value}\r\n--b--\r\n"
            )
        };
        let text = form("two\r\nlines");
        assert_eq!(replaced(&text, &of_parts(text.as_bytes()), "-"), form("-"));
        let cut = "form-data; name=\"token\"\r\n\r\nabc";
        assert_eq!(
            replaced(cut, &of_parts(cut.as_bytes()), "-"),
            "form-data; name=\"token\"\r\n\r\n-"
        );
    }
}
