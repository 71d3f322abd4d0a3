//! Errors in every service's own form, as a status' body and in the middle of a stream.

use serde_json::{Map, Value, json};
use turnwire_spec::llm::Wire;

use super::out::Rendered;
use super::route::Form;
use super::{Context, JSON, Response, headers, put, put_text};
use crate::script::{ErrorForm, ErrorReply, RetryAfter, RetryAfterForm};

/// Writes an error status.
pub(crate) fn status(error: &ErrorReply, context: &mut Context<'_>) -> Response {
    let form = error.form.unwrap_or_else(|| house_form(context));
    let text = match &error.body {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => text(error, form, context),
    };
    let mut headers = headers(JSON, error.status, context);
    if text.trim_start().starts_with('<') {
        put(&mut headers, "content-type", "text/html; charset=utf-8");
    }
    if let Some((name, value)) = retry_header(error, context.wire) {
        put_text(&mut headers, name, value);
    }
    Response {
        status: error.status,
        headers,
        stream: false,
        body: Rendered::whole(text),
    }
}

/// The form that the real service uses.
fn house_form(context: &Context<'_>) -> ErrorForm {
    match context.wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => ErrorForm::Object,
        Wire::AnthropicMessages => ErrorForm::Typed,
        Wire::Gemini if context.form == Form::Array => ErrorForm::GoogleArray,
        Wire::Gemini => ErrorForm::Google,
        Wire::GeminiOpenai => ErrorForm::GoogleArray,
    }
}

fn text(error: &ErrorReply, form: ErrorForm, context: &mut Context<'_>) -> String {
    match form {
        ErrorForm::Empty => String::new(),
        ErrorForm::Html => page(error.status),
        form => body(error, form, context).to_string(),
    }
}

fn page(status: u16) -> String {
    let title = http::StatusCode::from_u16(status)
        .map_or_else(|_| status.to_string(), |status| status.to_string());
    format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n\
         <hr><center>turnwire</center>\r\n</body>\r\n</html>\r\n"
    )
}

/// The body of an error in a form; of forms that are no JSON, the object form.
pub(super) fn body(error: &ErrorReply, form: ErrorForm, context: &mut Context<'_>) -> Value {
    let words = Words::of(error, context.wire);
    match form {
        ErrorForm::String => json!({"error": words.message}),
        ErrorForm::NumericCode => json!({"error": {"message": words.message, "type": words.kind,
            "param": error.param, "code": error.status}}),
        ErrorForm::Vllm => json!({"object": "error", "message": words.message,
            "type": words.kind, "param": error.param, "code": error.status}),
        ErrorForm::OpenRouter => json!({"error": {"code": error.status,
            "message": words.message, "metadata": {"provider_name": "mock"}}}),
        ErrorForm::Google => json!({"error": google(error)}),
        ErrorForm::GoogleArray => json!([{"error": google(error)}]),
        ErrorForm::Typed => typed(&words, context),
        ErrorForm::Flat => json!({"type": "error", "code": words.code_or_kind(),
            "message": words.message, "param": error.param}),
        ErrorForm::Detail => json!({"detail": [{"type": "value_error", "loc": ["body"],
            "msg": words.message}]}),
        ErrorForm::Message => json!({"message": words.message}),
        ErrorForm::BaseResp => json!({"base_resp": {"status_code": error.status,
            "status_msg": words.message}}),
        ErrorForm::Object | ErrorForm::Html | ErrorForm::Empty => json!({"error": {
            "message": words.message, "type": words.kind, "param": error.param,
            "code": words.code}}),
    }
}

fn typed(words: &Words<'_>, context: &mut Context<'_>) -> Value {
    let mut detail = Map::new();
    detail.insert("type".into(), words.kind.into());
    detail.insert("message".into(), words.message.into());
    if context.wire != Wire::AnthropicMessages {
        detail.insert("code".into(), words.code.into());
        detail.insert("param".into(), words.param.into());
        return json!({"type": "error", "error": detail});
    }
    if let Some(code) = words.code {
        detail.insert("details".into(), json!({"error_code": code}));
    }
    json!({"type": "error", "error": detail, "request_id": context.request_id()})
}

/// Gemini's error object.
pub(super) fn google(error: &ErrorReply) -> Value {
    let words = Words::of(error, Wire::Gemini);
    let mut details = Vec::new();
    // Codes of other wires are in lower case, and no reasons.
    let reason = words
        .code
        .filter(|code| !code.contains(|c: char| c.is_ascii_lowercase()));
    if let Some(reason) = reason {
        details.push(
            json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
            "domain": "googleapis.com",
            "metadata": {"service": "generativelanguage.googleapis.com"}}),
        );
    }
    if let Some(field) = &error.param {
        details.push(json!({"@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": field, "description": words.message}]}));
    }
    if let Some(RetryAfter::Seconds(seconds)) = error.retry_after {
        details.push(json!({"@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{seconds}s")}));
    }
    let mut object = json!({"code": error.status, "message": words.message, "status": words.kind});
    if !details.is_empty() {
        object["details"] = details.into();
    }
    object
}

/// What an error says, with the service's usual words where the script has none.
pub(super) struct Words<'a> {
    pub(super) kind: &'a str,
    pub(super) code: Option<&'a str>,
    pub(super) message: &'a str,
    pub(super) param: Option<&'a str>,
}

impl<'a> Words<'a> {
    pub(super) fn of(error: &'a ErrorReply, wire: Wire) -> Self {
        let (kind, code, message) = match wire {
            Wire::OpenaiChat | Wire::OpenaiResponses => {
                coded_openai(error).unwrap_or_else(|| usual_openai(error.status))
            }
            Wire::AnthropicMessages => usual_anthropic(error.status),
            Wire::Gemini | Wire::GeminiOpenai => usual_gemini(error.status),
        };
        // A kind or message of the script's own has no usual code.
        let own = error.kind.is_some() || error.message.is_some();
        Self {
            kind: error.kind.as_deref().unwrap_or(kind),
            code: error.code.as_deref().or(code.filter(|_| !own)),
            message: error.message.as_deref().unwrap_or(message),
            param: error.param.as_deref(),
        }
    }

    pub(super) fn code_or_kind(&self) -> &'a str {
        self.code.unwrap_or(self.kind)
    }
}

type Usual = (&'static str, Option<&'static str>, &'static str);

/// Errors whose code says more than their status.
///
/// Source: <https://developers.openai.com/docs/guides/error-codes>
fn coded_openai(error: &ErrorReply) -> Option<Usual> {
    match (error.status, error.code.as_deref()?) {
        (429, "insufficient_quota") => Some((
            "insufficient_quota",
            None,
            "You exceeded your current quota, please check your plan and billing details.",
        )),
        _ => None,
    }
}

/// Source: <https://developers.openai.com/docs/guides/error-codes>
const fn usual_openai(status: u16) -> Usual {
    match status {
        401 => (
            "invalid_request_error",
            Some("invalid_api_key"),
            "Incorrect API key provided.",
        ),
        403 => (
            "permission_error",
            None,
            "You do not have access to this resource.",
        ),
        404 => (
            "invalid_request_error",
            Some("model_not_found"),
            "The model does not exist.",
        ),
        409 => (
            "conflict_error",
            None,
            "The resource was changed at the same time.",
        ),
        413 => ("invalid_request_error", None, "The request is too large."),
        429 => (
            "rate_limit_error",
            Some("rate_limit_exceeded"),
            "Rate limit reached.",
        ),
        503 => (
            "service_unavailable_error",
            Some("slow_down"),
            "The server is overloaded.",
        ),
        500.. => (
            "server_error",
            None,
            "The server had an error while processing your request.",
        ),
        _ => ("invalid_request_error", None, "The request is invalid."),
    }
}

/// Source: <https://platform.claude.com/docs/en/api/errors>
const fn usual_anthropic(status: u16) -> Usual {
    match status {
        401 => ("authentication_error", None, "invalid x-api-key"),
        402 => ("billing_error", None, "Your credit balance is too low."),
        403 => (
            "permission_error",
            None,
            "Your API key does not have permission.",
        ),
        404 => (
            "not_found_error",
            None,
            "The requested resource could not be found.",
        ),
        409 => (
            "conflict_error",
            None,
            "The resource was changed at the same time.",
        ),
        413 => (
            "request_too_large",
            None,
            "Request exceeds the maximum size",
        ),
        429 => (
            "rate_limit_error",
            None,
            "This request would exceed your rate limit.",
        ),
        504 => ("timeout_error", None, "The request timed out."),
        529 => ("overloaded_error", None, "Overloaded"),
        500.. => ("api_error", None, "Internal server error"),
        _ => ("invalid_request_error", None, "The request is invalid."),
    }
}

/// Source: <https://ai.google.dev/gemini-api/docs/generate-content/api-errors>; what is not there:
/// <https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto>
const fn usual_gemini(status: u16) -> Usual {
    match status {
        401 => (
            "UNAUTHENTICATED",
            None,
            "Request had invalid authentication credentials.",
        ),
        402 => ("RESOURCE_EXHAUSTED", None, "The prepaid credit is used up."),
        403 => (
            "PERMISSION_DENIED",
            None,
            "The caller does not have permission.",
        ),
        404 => (
            "NOT_FOUND",
            None,
            "The model is not found for this API version.",
        ),
        409 => (
            "ABORTED",
            None,
            "The operation was aborted, typically due to a concurrency issue.",
        ),
        413 => (
            "INVALID_ARGUMENT",
            None,
            "Request payload size exceeds the limit.",
        ),
        429 => (
            "RESOURCE_EXHAUSTED",
            None,
            "Resource has been exhausted (e.g. check quota).",
        ),
        499 => ("CANCELLED", None, "The operation was cancelled."),
        501 => (
            "UNIMPLEMENTED",
            None,
            "The operation is not implemented or not supported.",
        ),
        503 => (
            "UNAVAILABLE",
            None,
            "The model is overloaded. Please try again later.",
        ),
        504 => (
            "DEADLINE_EXCEEDED",
            None,
            "The deadline expired before the operation finished.",
        ),
        500.. => ("INTERNAL", None, "An internal error has occurred."),
        _ => (
            "INVALID_ARGUMENT",
            None,
            "Request contains an invalid argument.",
        ),
    }
}

/// The header that says when to come back. Gemini says seconds in the body only.
fn retry_header(error: &ErrorReply, wire: Wire) -> Option<(&'static str, String)> {
    let google = matches!(wire, Wire::Gemini | Wire::GeminiOpenai);
    Some(match error.retry_after.as_ref()? {
        RetryAfter::Seconds(_) if google => return None,
        RetryAfter::Seconds(seconds) => ("retry-after", seconds.to_string()),
        RetryAfter::Other(RetryAfterForm::Millis(millis)) => ("retry-after-ms", millis.to_string()),
        RetryAfter::Other(RetryAfterForm::Literal(text)) => ("retry-after", text.clone()),
        RetryAfter::Other(RetryAfterForm::DateIn(seconds)) => (
            "retry-after",
            super::dates::http_date_in(u64::from(*seconds)),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_says_more_than_its_status_has_words_of_its_own() {
        let quota = ErrorReply::new(429).code("insufficient_quota");
        let words = Words::of(&quota, Wire::OpenaiChat);
        assert_eq!(
            (words.kind, words.code),
            ("insufficient_quota", Some("insufficient_quota"))
        );
        assert!(words.message.starts_with("You exceeded your current quota"));
        let limited = ErrorReply::new(429);
        let words = Words::of(&limited, Wire::OpenaiChat);
        assert_eq!(words.code, Some("rate_limit_exceeded"));
        let own = quota.message("Pay.");
        assert_eq!(Words::of(&own, Wire::OpenaiChat).message, "Pay.");
    }
}
