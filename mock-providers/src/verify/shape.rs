//! What looking into JSON bodies has in common.

use http::HeaderMap;
use http::header::{AUTHORIZATION, AsHeaderName, CONTENT_TYPE};
use serde_json::{Map, Value};

use super::Request;

/// A member of an object; null when it is absent. Objects have few members, and most rules ask for one that is absent:
/// looking along costs less than hashing the name.
pub(crate) fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    let members = value.as_object();
    let found = members.and_then(|members| members.iter().find(|(key, _)| *key == name));
    found.map_or(&Value::Null, |(_, value)| value)
}

/// The elements of an array; none for anything else.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The elements of an array with their places.
pub(super) fn placed(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    items(value).iter().enumerate()
}

/// The members of an object that are not on a list.
pub(super) fn unknown<'a>(value: &'a Value, known: &[&str]) -> Vec<&'a str> {
    let members = value.as_object().into_iter().flat_map(Map::keys);
    members
        .map(String::as_str)
        .filter(|name| !known.contains(name))
        .collect()
}

/// Whether a text is one of `[a-zA-Z0-9_-]`, 1 to `longest` characters.
pub(super) fn is_name(text: &str, longest: usize) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=longest).contains(&text.len()) && text.chars().all(fits)
}

/// Whether a URL is one of http, https, or data with base64.
pub(super) fn is_image_url(url: &str) -> bool {
    let data = url.strip_prefix("data:").is_some_and(|rest| {
        rest.split_once(";base64,")
            .is_some_and(|(kind, bytes)| kind.starts_with("image/") && is_base64(bytes))
    });
    url.starts_with("https://") || url.starts_with("http://") || data
}

/// Whether a text is base64 with its padding; not empty.
pub(super) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !body.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(fits)
}

/// The names of the values of a JSON type, as error texts have them.
pub(super) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value's type with its article, as newer error texts have it.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The bearer token of a request.
pub(super) fn bearer<'a>(request: &Request<'a>) -> Option<&'a str> {
    let value = header(request, AUTHORIZATION)?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The value of a header, if it is text.
pub(super) fn header<'a>(request: &Request<'a>, name: impl AsHeaderName) -> Option<&'a str> {
    let headers: &'a HeaderMap = request.headers;
    headers.get(name)?.to_str().ok()
}

/// Whether the mock asks for a key; like many local servers it does not unless it is told keys.
pub(super) fn wants_key(request: &Request<'_>) -> bool {
    !request.keys.is_empty()
}

/// Whether the mock accepts a key.
pub(super) fn accepts(request: &Request<'_>, key: &str) -> bool {
    !wants_key(request) || request.keys.iter().any(|known| known == key)
}

const JSON: &str = "application/json";

/// Whether the body says that it is JSON; a request without a body has nothing to say.
pub(super) fn is_json(request: &Request<'_>) -> bool {
    header(request, CONTENT_TYPE).is_some_and(|kind| {
        kind.trim_start()
            .get(..JSON.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(JSON))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_urls_are_web_or_data() {
        for good in [
            "https://x/y.png",
            "http://x",
            "data:image/png;base64,AAAA",
            "data:image/png;base64,AA==",
        ] {
            assert!(is_image_url(good), "{good}");
        }
        for bad in [
            "",
            "ftp://x",
            "x.png",
            "data:image/png,AA",
            "data:image/png;base64,",
            "data:text/plain;base64,AAAA",
            "data:image/png;base64,A",
        ] {
            assert!(!is_image_url(bad), "{bad}");
        }
    }

    #[test]
    fn names_have_a_length() {
        assert!(is_name("get_weather-2", 64) && is_name("a", 1));
        assert!(!is_name("", 64) && !is_name("ab", 1) && !is_name("a.b", 64) && !is_name("é", 64));
    }
}
