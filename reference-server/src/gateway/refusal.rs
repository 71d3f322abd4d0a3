//! Reads what providers say when they give no answer: error statuses, and errors inside an answer.
//!
//! The shapes are many (an object, a text, a list around the object, a flat object with `type: error`,
//! a page of a proxy), and the same everywhere, because gateways pass on each other's errors.
//!
//! Source: sections 1.1, 3.1, 4.1 and 6 of the facts about the wires, which the catalogue area LLM-STREAM
//! states as requirements.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use super::error::ErrorKind;
use super::json::{self, filled, items};
use super::retry::seconds;

/// Characters of a provider's message that are kept.
const MESSAGE: usize = 500;

/// What is wrong with an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Fault {
    pub(super) kind: ErrorKind,
    pub(super) code: Option<String>,
    pub(super) message: String,
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    pub(super) should_retry: Option<bool>,
}

impl Fault {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: None,
            message: message.into(),
            status: None,
            retry_after: None,
            should_retry: None,
        }
    }

    /// Not what the wire promises.
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadAnswer, message)
    }

    /// It ended early.
    pub(super) fn cut() -> Self {
        Self::new(
            ErrorKind::Interrupted,
            "the provider's answer broke off before its end",
        )
    }
}

/// What an error body says.
#[derive(Debug, Default)]
struct Said<'a> {
    message: Option<&'a str>,
    /// Codes and types, the most exact first.
    words: Vec<&'a str>,
    /// A status that the body names itself.
    status: Option<u16>,
    retry_after: Option<Duration>,
}

/// The fault of an error status with this body.
pub(super) fn of_status(status: StatusCode, body: &[u8]) -> Fault {
    let parsed = json::parse_bytes(body).ok();
    let said = parsed
        .as_ref()
        .map(|body| said(inner(body)))
        .unwrap_or_default();
    let plain = || {
        let text = String::from_utf8_lossy(body);
        let line = text.trim().lines().next().unwrap_or_default().to_owned();
        (!line.is_empty() && !line.starts_with(['<', '{', '['])).then_some(line)
    };
    let message = said.message.map(str::to_owned).or_else(plain);
    Fault {
        status: Some(status.as_u16()),
        message: message.map_or_else(
            || format!("the provider answered {status}"),
            |message| message.chars().take(MESSAGE).collect(),
        ),
        ..fault(&said, kind_of(status.as_u16(), &said.words))
    }
}

/// The fault that an answer or an event of a stream is, when it is one.
pub(super) fn in_answer(value: &Value) -> Option<Fault> {
    let base = &value["base_resp"];
    let failed = json::index(&base["status_code"]).is_some_and(|code| code != 0);
    let is_error = !value["error"].is_null()
        || value["object"] == "error"
        || value["type"] == "error"
        || failed
        || (value.is_array() && value.get(0).is_some_and(|first| !first["error"].is_null()))
        || (value["detail"].is_array() && value["choices"].is_null());
    is_error.then(|| of_error(value))
}

/// The fault of an object that is an error, or that has one in it.
pub(super) fn of_error(value: &Value) -> Fault {
    let said = said(inner(value));
    let by_status = said.status.map(|status| kind_of(status, &said.words));
    let kind = by_words(&said.words)
        .or(by_status)
        .unwrap_or(ErrorKind::Unavailable);
    let message = said.message.unwrap_or("the provider reported an error");
    Fault {
        message: message.chars().take(MESSAGE).collect(),
        status: said.status,
        ..fault(&said, kind)
    }
}

fn fault(said: &Said<'_>, kind: ErrorKind) -> Fault {
    Fault {
        code: said.words.first().map(|word| (*word).to_owned()),
        retry_after: said.retry_after,
        ..Fault::new(kind, "")
    }
}

/// The error itself, out of the lists and objects around it.
fn inner(value: &Value) -> &Value {
    let outer = value.get(0).unwrap_or(value);
    [&outer["error"], &outer["base_resp"]]
        .into_iter()
        .find(|inner| !inner.is_null())
        .unwrap_or(outer)
}

fn said(error: &Value) -> Said<'_> {
    let details = items(&error["details"]);
    let detail = |kind: &str, member: &'static str| {
        let of_kind = |one: &&Value| {
            one["@type"]
                .as_str()
                .is_some_and(|name| name.ends_with(kind))
        };
        details
            .iter()
            .find(of_kind)
            .and_then(|one| filled(&one[member]))
    };
    let first_detail = &error["detail"][0]["msg"];
    let messages = [
        &error["message"],
        &error["status_msg"],
        &error["detail"],
        first_detail,
        error,
    ];
    let words = [
        detail("ErrorInfo", "reason"),
        filled(&error["details"]["error_code"]),
        filled(&error["code"]),
        filled(&error["status"]),
        filled(&error["type"]).filter(|word| *word != "error"),
    ];
    let number = json::count(&error["code"]).or_else(|| json::count(&error["status"]));
    Said {
        message: messages.into_iter().find_map(filled),
        words: words.into_iter().flatten().collect(),
        status: number
            .and_then(|number| u16::try_from(number).ok())
            .filter(|status| (400..600).contains(status)),
        retry_after: detail("RetryInfo", "retryDelay")
            .and_then(|delay| seconds(delay.trim_end_matches('s'))),
    }
}

fn kind_of(status: u16, words: &[&str]) -> ErrorKind {
    let by_words = by_words(words);
    match (status, by_words) {
        // Waiting does not bring money: another 429 than too many requests.
        (400..=499, Some(kind @ (ErrorKind::Quota | ErrorKind::ContentFilter))) => kind,
        (400..=499, Some(ErrorKind::Unauthorized)) => ErrorKind::Unauthorized,
        (402, _) => ErrorKind::Quota,
        (429 | 498, _) => ErrorKind::RateLimited,
        (401 | 403, _) => ErrorKind::Unauthorized,
        (404, _) => ErrorKind::NotFound,
        (408, _) => ErrorKind::Timeout,
        (409, _) => ErrorKind::Unavailable,
        (400..=499, Some(ErrorKind::NotFound)) => ErrorKind::NotFound,
        (400..=499, _) => ErrorKind::BadRequest,
        (529, _) | (500..=599, Some(ErrorKind::Overloaded)) => ErrorKind::Overloaded,
        (500..=599, _) => ErrorKind::Unavailable,
        _ => ErrorKind::Unknown,
    }
}

/// The kind that a provider's own words tell.
fn by_words(words: &[&str]) -> Option<ErrorKind> {
    words.iter().find_map(|word| by_word(word))
}

fn by_word(word: &str) -> Option<ErrorKind> {
    Some(match word.to_ascii_lowercase().as_str() {
        "insufficient_quota"
        | "credit_balance_exhausted"
        | "billing_error"
        | "insufficient_balance"
        | "insufficient_credits" => ErrorKind::Quota,
        "rate_limit_exceeded"
        | "rate_limit_error"
        | "resource_exhausted"
        | "requests"
        | "tokens"
        | "too_many_requests" => ErrorKind::RateLimited,
        "overloaded_error"
        | "server_is_overloaded"
        | "slow_down"
        | "unavailable"
        | "model_overloaded"
        | "overloaded" => ErrorKind::Overloaded,
        "server_error"
        | "api_error"
        | "internal"
        | "internal_error"
        | "internal_server_error"
        | "internalservererror"
        | "service_unavailable_error"
        | "timeout_error"
        | "deadline_exceeded"
        | "vector_store_timeout" => ErrorKind::Unavailable,
        "authentication_error"
        | "invalid_api_key"
        | "api_key_invalid"
        | "unauthenticated"
        | "permission_error"
        | "permission_denied" => ErrorKind::Unauthorized,
        "not_found_error" | "model_not_found" | "not_found" => ErrorKind::NotFound,
        "content_filter"
        | "content_policy_violation"
        | "image_content_policy_violation"
        | "bio_policy"
        | "misalignment_policy_violation" => ErrorKind::ContentFilter,
        "invalid_request_error"
        | "invalid_argument"
        | "failed_precondition"
        | "invalid_prompt"
        | "request_too_large"
        | "context_length_exceeded"
        | "badrequesterror"
        | "tool_use_failed" => ErrorKind::BadRequest,
        _ => return None,
    })
}

/// Takes out of a provider's message what looks like a key, whoever's it is.
pub(super) fn without_keys(message: &str, key: Option<&str>) -> String {
    let message = match key {
        Some(key) if key.len() > 3 => message.replace(key, "[key]"),
        _ => message.to_owned(),
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*');
    let mut out = String::with_capacity(message.len());
    let mut rest = message.as_str();
    while let Some(at) = rest.find(is_part) {
        let (before, token) = rest.split_at(at);
        let end = token.find(|c| !is_part(c)).unwrap_or(token.len());
        let (token, after) = token.split_at(end);
        out.push_str(before);
        out.push_str(if looks_like_a_key(token) {
            "[key]"
        } else {
            token
        });
        rest = after;
    }
    out.push_str(rest);
    out
}

fn looks_like_a_key(token: &str) -> bool {
    const STARTS: [&str; 8] = [
        "sk-", "AIza", "gsk_", "xai-", "hf_", "ghp_", "pplx-", "ya29.",
    ];
    token.len() >= 12 && STARTS.iter().any(|start| token.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(body: &str) -> String {
        of_status(StatusCode::BAD_REQUEST, body.as_bytes()).message
    }

    #[test]
    fn error_bodies_are_read_in_all_their_shapes() {
        for (body, expected) in [
            (r#"{"error":{"message":"a"}}"#, "a"),
            (r#"[{"error":{"message":"b","code":400}}]"#, "b"),
            (r#"{"error":"c"}"#, "c"),
            (r#"{"object":"error","message":"d"}"#, "d"),
            (r#"{"detail":[{"loc":["body"],"msg":"e"}]}"#, "e"),
            (r#"{"detail":"f"}"#, "f"),
            (r#"{"message":"g"}"#, "g"),
            (
                r#"{"base_resp":{"status_code":1004,"status_msg":"h"}}"#,
                "h",
            ),
            (
                r#"{"type":"error","error":{"type":"api_error","message":"i"}}"#,
                "i",
            ),
            (
                r#"{"type":"error","code":"server_error","message":"j"}"#,
                "j",
            ),
            ("upstream gone\nmore", "upstream gone"),
            ("<html>502</html>", "the provider answered 400 Bad Request"),
            ("", "the provider answered 400 Bad Request"),
        ] {
            assert_eq!(message(body), expected, "{body}");
        }
    }

    #[test]
    fn statuses_and_words_tell_the_kind() {
        let kind = |status: u16, body: Value| {
            let status = StatusCode::from_u16(status).unwrap();
            of_status(status, body.to_string().as_bytes()).kind
        };
        let code = |code: &str| json!({ "error": { "message": "m", "code": code } });
        let google = |reason: &str| {
            json!({ "error": { "code": 400, "message": "m", "status": "INVALID_ARGUMENT", "details": [
                { "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason }] } })
        };
        for (status, body, expected) in [
            (429, code("insufficient_quota"), ErrorKind::Quota),
            (429, code("rate_limit_exceeded"), ErrorKind::RateLimited),
            (402, json!({}), ErrorKind::Quota),
            (400, google("API_KEY_INVALID"), ErrorKind::Unauthorized),
            (400, google("OTHER"), ErrorKind::BadRequest),
            (404, code("model_not_found"), ErrorKind::NotFound),
            (503, code("slow_down"), ErrorKind::Overloaded),
            (503, json!({}), ErrorKind::Unavailable),
            (529, json!({}), ErrorKind::Overloaded),
            (500, json!({}), ErrorKind::Unavailable),
            (302, json!({}), ErrorKind::Unknown),
        ] {
            assert_eq!(kind(status, body.clone()), expected, "{status} {body}");
        }
    }

    #[test]
    fn errors_inside_an_answer_are_found_and_sorted() {
        for (event, expected) in [
            (
                json!({ "error": { "message": "m", "code": 502 } }),
                ErrorKind::Unavailable,
            ),
            (json!({ "error": "text" }), ErrorKind::Unavailable),
            (
                json!({ "object": "error", "message": "m", "code": 400 }),
                ErrorKind::BadRequest,
            ),
            (
                json!({ "type": "error", "error": { "type": "overloaded_error" } }),
                ErrorKind::Overloaded,
            ),
            (
                json!({ "error": { "code": "rate_limit_exceeded" } }),
                ErrorKind::RateLimited,
            ),
            (
                json!([{ "error": { "status": "RESOURCE_EXHAUSTED" } }]),
                ErrorKind::RateLimited,
            ),
            (
                json!({ "base_resp": { "status_code": 1013 } }),
                ErrorKind::Unavailable,
            ),
        ] {
            assert_eq!(
                in_answer(&event).map(|fault| fault.kind),
                Some(expected),
                "{event}"
            );
        }
        for fine in [
            json!({ "choices": [], "error": null }),
            json!({ "base_resp": { "status_code": 0 } }),
            json!({}),
        ] {
            assert_eq!(in_answer(&fine), None, "{fine}");
        }
    }

    #[test]
    fn the_wait_of_retry_info_is_read() {
        let body = json!({ "error": { "code": 429, "details": [
            { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "31s" }] } });
        assert_eq!(of_error(&body).retry_after, Some(Duration::from_secs(31)));
    }

    #[test]
    fn what_looks_like_a_key_is_not_shown() {
        assert_eq!(
            without_keys(
                "Incorrect API key provided: sk-proj-abcdef123456.",
                Some("k")
            ),
            "Incorrect API key provided: [key]"
        );
        assert_eq!(
            without_keys("key my-own-key!", Some("my-own-key")),
            "key [key]!"
        );
        assert_eq!(without_keys("task-force é sk-1", None), "task-force é sk-1");
    }
}
