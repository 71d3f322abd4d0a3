//! Reading requests: query strings, JSON bodies, and what is allowed in them.

use std::time::Duration;

use axum::body::Body;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;
use turnwire_spec::covel::limits::BODY_BYTES;

use super::errors::ApiError;

/// Longest time that a body may take to arrive, in real time whatever the scale.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// The parameters of a query string, in their order. Of several of one name, the first counts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what stands after the `?`. Escapes that mean nothing stay as they are.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (unescape(name), unescape(value)))
                .collect(),
        )
    }

    /// The value of a parameter; an empty one counts as present.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    /// A whole number from 1 to `max`, or `default` when the parameter is absent. More than `max` is
    /// taken as `max`.
    ///
    /// # Errors
    ///
    /// 400 when it is no whole number, or 0.
    pub fn limit(&self, default: usize, max: usize) -> Result<usize, ApiError> {
        match self.get("limit") {
            None => Ok(default),
            Some(text) => match text.parse::<usize>() {
                Ok(limit) if limit > 0 => Ok(limit.min(max)),
                _ => Err(ApiError::bad(
                    "invalid_limit",
                    format!("limit {text:?} is no count"),
                )),
            },
        }
    }
}

/// Whether the escapes of a path stand for text: what is no UTF-8 names nothing.
#[must_use]
pub fn is_text(path: &str) -> bool {
    std::str::from_utf8(&unescaped(path)).is_ok()
}

/// Replaces `+` by a space and `%xx` by its byte. Bytes that are no UTF-8 become U+FFFD.
fn unescape(text: &str) -> String {
    String::from_utf8_lossy(&unescaped(text)).into_owned()
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(if first == b'+' { b' ' } else { first });
                rest = tail;
            }
        }
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

/// Reads a body that has to be one JSON object, within the limit of ordinary bodies.
///
/// # Errors
///
/// 413 when it is longer, and 400 `invalid_json_body` when it is no JSON object.
pub async fn object(body: Body) -> Result<Value, ApiError> {
    parse(&bytes(body).await?)
}

/// Reads a body that has to be this JSON object; `code` is that of an object of another shape.
///
/// # Errors
///
/// As [`object`], and 400 with `code`.
pub async fn read<T: DeserializeOwned>(body: Body, code: &'static str) -> Result<T, ApiError> {
    shaped(object(body).await?, code)
}

/// As [`read`], for an object whose member of this name is not null either.
///
/// # Errors
///
/// As [`read`].
pub async fn read_without_null<T: DeserializeOwned>(
    body: Body,
    name: &str,
    code: &'static str,
) -> Result<T, ApiError> {
    let object = object(body).await?;
    if object.get(name).is_some_and(Value::is_null) {
        return Err(ApiError::bad(code, format!("{name} is null")));
    }
    shaped(object, code)
}

/// As [`read`], for a body that may be absent; then it is an empty object.
///
/// # Errors
///
/// As [`read`], except that an empty body is no error.
pub async fn read_or_default<T: DeserializeOwned + Default>(
    body: Body,
    code: &'static str,
) -> Result<T, ApiError> {
    let bytes = bytes(body).await?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(T::default());
    }
    shaped(parse(&bytes)?, code)
}

/// Checks that a text has `min` to `max` characters.
///
/// # Errors
///
/// 400 with `code` when it has not.
pub fn within(
    name: &str,
    text: &str,
    (min, max): (usize, usize),
    code: &'static str,
) -> Result<(), ApiError> {
    let length = text.chars().count();
    if (min..=max).contains(&length) {
        Ok(())
    } else {
        Err(ApiError::bad(
            code,
            format!("{name} has {length} characters, not {min} to {max}"),
        ))
    }
}

/// Members whose value may be anything, null as well. Every other member that may be absent is not null when it is
/// there.
const ANYTHING: &[&str] = &["value", "data", "payload"];

fn shaped<T: DeserializeOwned>(object: Value, code: &'static str) -> Result<T, ApiError> {
    let mut members = object.as_object().into_iter().flatten();
    let null = members.find(|(name, value)| value.is_null() && !ANYTHING.contains(&name.as_str()));
    if let Some((name, _)) = null {
        return Err(ApiError::bad(code, format!("{name} is null")));
    }
    serde_json::from_value(object).map_err(|error| ApiError::bad(code, error.to_string()))
}

fn parse(bytes: &[u8]) -> Result<Value, ApiError> {
    let refuse = |error: String| ApiError::bad("invalid_json_body", error);
    match serde_json::from_slice(bytes) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err(refuse("the body is no JSON object".to_owned())),
        Err(error) => Err(refuse(format!("the body is no JSON: {error}"))),
    }
}

async fn bytes(body: Body) -> Result<bytes::Bytes, ApiError> {
    let collected = timeout(BODY_WITHIN, Limited::new(body, BODY_BYTES).collect()).await;
    let collected = collected.map_err(|_| {
        ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_timeout",
            "the body did not arrive in time",
        )
    })?;
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large()),
        Err(error) => Err(ApiError::invalid(format!("the body broke off: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use turnwire_spec::covel::commands::sessions::CreateSession;

    use super::*;

    #[test]
    fn a_query_is_read_with_its_escapes() {
        let query = Query::parse("a=1%3A2&b=x+y&c&a=3&d=%zz%e4&e=%E2%82%AC");

        assert_eq!(query.get("a"), Some("1:2"));
        assert_eq!(query.get("b"), Some("x y"));
        assert_eq!(query.get("c"), Some(""));
        assert_eq!(query.get("d"), Some("%zz\u{fffd}"));
        assert_eq!(query.get("e"), Some("€"));
        assert_eq!(query.get("f"), None);
    }

    #[test]
    fn a_limit_is_cut_at_its_maximum_and_must_be_a_count() {
        assert_eq!(Query::parse("").limit(80, 500), Ok(80));
        assert_eq!(Query::parse("limit=7").limit(80, 500), Ok(7));
        assert_eq!(Query::parse("limit=9999").limit(80, 500), Ok(500));
        for bad in ["limit=0", "limit=-1", "limit=x", "limit="] {
            assert!(Query::parse(bad).limit(80, 500).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_no_object_is_refused_and_a_long_one_before_it_is_read() {
        for text in ["", "{", "null", "[]", "3"] {
            let error = object(Body::from(text)).await.unwrap_err();
            assert_eq!(error.code, Some("invalid_json_body"), "{text}");
        }
        let long = " ".repeat(BODY_BYTES + 1);
        assert_eq!(object(Body::from(long)).await, Err(ApiError::too_large()));
        let absent: CreateSession = read_or_default(Body::from(" "), "x").await.unwrap();
        assert_eq!(absent, CreateSession::default());
    }
}
