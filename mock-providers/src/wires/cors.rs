//! What pages of other origins may do: preflights, and the headers without which a browser hides an answer.
//!
//! The services let every origin in, with whatever headers it asks for: SDKs add headers of their own
//! (`x-stainless-*`), and a service that lists headers would shut them out. Anthropic wants to be told that the key is in
//! a browser on purpose, and otherwise neither answers nor lets its refusal be read.
//!
//! Source: <https://github.com/anthropics/anthropic-sdk-typescript/pull/504>,
//! <https://github.com/open-pencil/open-pencil/issues/436> (recorded heads); the rest is ours.

use http::header::{ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY};
use http::{HeaderMap, HeaderName, HeaderValue};
use turnwire_spec::llm::Wire;

use super::{put, put_text};

/// The header that says so.
const ON_PURPOSE: HeaderName = HeaderName::from_static("anthropic-dangerous-direct-browser-access");

/// What a page is told that does not say so.
pub(crate) const NOT_ON_PURPOSE: &str =
    "CORS requests must set 'anthropic-dangerous-direct-browser-access' header";

/// Seconds for which a browser may keep the answer to a preflight. Ours.
const KEPT: &str = "600";

/// Whether a request is that of a page that the service does not let in.
pub(crate) fn is_refused(wire: Wire, method: &str, headers: &HeaderMap) -> bool {
    wire == Wire::AnthropicMessages
        && method != "OPTIONS"
        && headers.contains_key(ORIGIN)
        && !is_on_purpose(headers)
}

fn is_on_purpose(headers: &HeaderMap) -> bool {
    headers
        .get(ON_PURPOSE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// Lets the page that asked read the answer, when a page asked.
pub(crate) fn let_read(wire: Wire, method: &str, asked: &HeaderMap, answer: &mut HeaderMap) {
    let Some(origin) = asked.get(ORIGIN) else {
        return;
    };
    if is_refused(wire, method, asked) {
        return;
    }
    let (allowed, shown) = match wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => (HeaderValue::from_static("*"), "X-Request-ID"),
        Wire::AnthropicMessages => (HeaderValue::from_static("*"), "*"),
        Wire::Gemini | Wire::GeminiOpenai => {
            answer.append(VARY, HeaderValue::from_static("Origin"));
            (origin.clone(), "vary")
        }
    };
    answer.insert(http::header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    put(answer, "access-control-expose-headers", shown);
}

/// Answers a preflight: these methods, and the headers that were asked for.
pub(crate) fn answer_preflight(methods: &str, asked: &HeaderMap, answer: &mut HeaderMap) {
    if !asked.contains_key(ORIGIN) || !asked.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return;
    }
    put_text(answer, "access-control-allow-methods", methods);
    if let Some(wanted) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(http::header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    put(answer, "access-control-max-age", KEPT);
}
