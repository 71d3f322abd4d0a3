//! Reads error answers: what they say, and what kind of failure that is.

use http::StatusCode;
use serde_json::Value;

use crate::gateway::ErrorKind;

/// Message and code of an error body; some services wrap it in an array, some send bare text.
pub(super) fn error_of(body: &[u8]) -> (Option<String>, Option<String>) {
    let Ok(parsed) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(body);
        let line = text.trim().lines().next().unwrap_or_default();
        let plain = !line.is_empty() && !line.starts_with('<');
        return (plain.then(|| line.chars().take(500).collect()), None);
    };
    let outer = parsed.get(0).unwrap_or(&parsed);
    let error = outer.get("error").unwrap_or(outer);
    let message = error
        .get("message")
        .and_then(Value::as_str)
        .or_else(|| error.as_str());
    let code = error.get("code").and_then(Value::as_str);
    (
        message
            .filter(|message| !message.is_empty())
            .map(str::to_owned),
        code.map(str::to_owned),
    )
}

pub(super) fn kind_of(status: StatusCode, code: Option<&str>) -> ErrorKind {
    match status.as_u16() {
        // Waiting does not bring money: another 429 than too many requests.
        429 if code == Some("insufficient_quota") => ErrorKind::Unauthorized,
        429 => ErrorKind::RateLimited,
        401 | 403 => ErrorKind::Unauthorized,
        404 => ErrorKind::NotFound,
        408 => ErrorKind::Timeout,
        400..=499 => ErrorKind::BadRequest,
        500..=599 => ErrorKind::Unavailable,
        _ => ErrorKind::Unknown,
    }
}
