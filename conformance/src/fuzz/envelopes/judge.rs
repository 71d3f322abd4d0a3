//! The oracle: what an answer to a wrong request may be.
//!
//! A refusal over HTTP is a 4xx, or a 5xx of the table of codes, with the body `{error, code?, details?}`; a code of
//! the table has its status. What is wrong below the protocol (a header that is no header, a length that is none)
//! is answered by the HTTP server under it: a 4xx or 501 or 505, or a connection that is closed. A refusal of
//! `session-update` is a response with an error of a known type; one of `chat-ws` is a frame `chat:error`, or for a
//! frame that is no WebSocket a close with a documented code.
//!
//! What is accepted has to be valid: the schema of the request takes what its JSON says, where of a member that
//! stands twice the last one counts.

use serde_json::Value;
use turnwire_spec::{
    chat_ws::{close::CLOSE_CODES, read_client},
    covel::{endpoint, errors::error_codes},
    session_update::{ErrorType, method},
};

use super::{
    ANSWER_WITHIN, Case, Face,
    draft::Sent,
    wire::{Answer, How},
};
use crate::{schema, transcript::header};

/// How a case was taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Took {
    /// It was valid after all, or nearly: state may have changed.
    Accepted,
    /// It was refused, with this status, code, type or text.
    Refused(String),
}

/// How an answer is taken.
///
/// # Errors
///
/// In words: what is wrong with the answer.
pub fn judge(face: Face, case: &Case, sent: &Sent, answer: &Answer) -> Result<Took, String> {
    if answer.end == How::Silent {
        return Err(format!("no answer within {ANSWER_WITHIN:?}"));
    }
    if case.route().is_some() {
        return over_http(face, sent, answer);
    }
    match face {
        Face::SessionUpdate => over_lines(sent, answer),
        _ => over_socket(sent, answer),
    }
}

fn over_http(face: Face, sent: &Sent, answer: &Answer) -> Result<Took, String> {
    let status = answer.status;
    match status {
        0 if sent.is_loose => Ok(Took::Refused("closed".to_owned())),
        0 => Err("the connection was closed without an answer".to_owned()),
        101 if face == Face::ChatWs && sent.target.starts_with("/ws") => Ok(Took::Accepted),
        200..=299 if sent.is_loose => Ok(Took::Accepted),
        200..=299 => valid(sent).map(|()| Took::Accepted),
        400..=599 => refused(sent, answer).map(Took::Refused),
        _ => Err(format!("status {status} is not documented")),
    }
}

/// Whether what was accepted is valid by the table of endpoints.
fn valid(sent: &Sent) -> Result<(), String> {
    let path = sent.target.split(['?', '#']).next().unwrap_or_default();
    let row = endpoint(&sent.method, path).and_then(|row| row.request);
    let Some(name) = row else { return Ok(()) };
    let blank = sent.body.iter().all(u8::is_ascii_whitespace);
    let body = if blank { b"{}".as_slice() } else { &sent.body };
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| format!("accepted a body that is no JSON: {error}"))?;
    match schema::fault(&name.into(), &value) {
        None => Ok(()),
        Some(fault) => Err(format!("accepted what {name} does not allow: {fault}")),
    }
}

fn refused(sent: &Sent, answer: &Answer) -> Result<String, String> {
    let status = answer.status;
    let below = sent.is_loose && (status < 500 || matches!(status, 501 | 505));
    if below && answer.body.is_empty() || sent.method == "HEAD" && status < 500 {
        return Ok(status.to_string());
    }
    let media = header(&answer.headers, "content-type").unwrap_or_default();
    if !media.starts_with("application/json") {
        let shown = String::from_utf8_lossy(&answer.body);
        let shown: String = shown.chars().take(200).collect();
        return Err(format!("{status} has content type {media:?}: {shown}"));
    }
    let body: Value = serde_json::from_slice(&answer.body)
        .map_err(|error| format!("{status} has a body that is no JSON: {error}"))?;
    if let Some(fault) = schema::fault(&"error".into(), &body) {
        return Err(format!("{status} has a body of another shape: {fault}"));
    }
    let code = body.get("code").and_then(Value::as_str).unwrap_or_default();
    let mut rows = error_codes(code).peekable();
    let is_known = rows.peek().is_some();
    if is_known && !rows.any(|row| row.status == status) {
        return Err(format!("code {code:?} has status {status}"));
    }
    if status >= 500 && !is_known {
        return Err(format!("{status} is not documented: {body}"));
    }
    Ok(format!("{status} {code}").trim_end().to_owned())
}

fn over_lines(sent: &Sent, answer: &Answer) -> Result<Took, String> {
    if matches!(answer.end, How::Closed(_)) && !is_shutdown(sent) {
        return Err("the connection was closed".to_owned());
    }
    let mut took = None;
    for line in &answer.messages {
        let message: Value = serde_json::from_slice(line)
            .map_err(|_| format!("a line that is no JSON: {}", String::from_utf8_lossy(line)))?;
        if message.get("kind").and_then(Value::as_str) == Some("event") || is_ping(&message) {
            continue;
        }
        let one = response(sent, &message)?;
        took = match (took, one) {
            (Some(Took::Accepted), _) => Some(Took::Accepted),
            (_, one) => Some(one),
        };
    }
    took.ok_or_else(|| "the line has no response".to_owned())
}

/// The response to the ping that the harness sends after each case.
fn is_ping(message: &Value) -> bool {
    let id = message.get("request_id").and_then(Value::as_str);
    id.is_some_and(|id| id.starts_with("after-")) && message.get("result").is_some()
}

fn is_shutdown(sent: &Sent) -> bool {
    let message: Value = serde_json::from_slice(&sent.body).unwrap_or_default();
    message.get("method").and_then(Value::as_str) == Some("shutdown")
}

fn response(sent: &Sent, message: &Value) -> Result<Took, String> {
    if let Some(fault) = schema::fault(&"session-update.response".into(), message) {
        return Err(format!("a response of another shape: {fault}"));
    }
    match (message.get("result"), message.get("error")) {
        (None, Some(error)) => {
            let kind = error
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or_default();
            match kind.parse::<ErrorType>() {
                Ok(ErrorType::RuntimeError) | Err(_) => {
                    Err(format!("the error is not documented: {error}"))
                }
                Ok(_) => Ok(Took::Refused(kind.to_owned())),
            }
        }
        (Some(_), None) => asked_for(sent).map(|()| Took::Accepted),
        _ => Err(format!("a response with neither or both: {message}")),
    }
}

/// Whether a line that has a result is a valid request.
fn asked_for(sent: &Sent) -> Result<(), String> {
    let lines = sent.body.split(|byte| *byte == b'\n');
    let mut why = "no line is JSON".to_owned();
    for line in lines {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        let request = schema::fault(&"session-update.request".into(), &message);
        let name = message
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let params = match method(name) {
            None => Some(format!("no method {name:?}")),
            Some(row) if row.params.is_none() => None,
            Some(_) => {
                let name = format!("session-update.params.{}", name.replace('/', "."));
                let params = message.get("params").cloned();
                schema::fault(
                    &name.into(),
                    &params.unwrap_or_else(|| serde_json::json!({})),
                )
            }
        };
        match request.or(params) {
            None => return Ok(()),
            Some(fault) => why = fault,
        }
    }
    Err(format!("accepted what the table does not allow: {why}"))
}

fn over_socket(sent: &Sent, answer: &Answer) -> Result<Took, String> {
    if let How::Closed(code) = answer.end {
        let is_known = code.is_some_and(|code| CLOSE_CODES.iter().any(|row| row.code == code));
        return match code {
            Some(code) if is_known && (sent.is_last || code == 1009) => {
                Ok(Took::Refused(format!("close {code}")))
            }
            _ => Err(format!("the socket was closed with {code:?}")),
        };
    }
    if sent.is_last {
        return Err("a frame that is no WebSocket frame is taken".to_owned());
    }
    let mut refusals = 0;
    for text in &answer.messages {
        let frame: Value = serde_json::from_slice(text)
            .map_err(|_| format!("a frame that is no JSON: {}", String::from_utf8_lossy(text)))?;
        if frame.get("type").and_then(Value::as_str) != Some("chat:error") {
            continue;
        }
        if let Some(fault) = schema::fault(&"chat-error".into(), &frame) {
            return Err(format!("chat:error has another shape: {fault}"));
        }
        refusals += 1;
    }
    let text = String::from_utf8_lossy(&sent.body);
    match read_client(&text) {
        Err(error) if refusals == 0 => Err(format!("no chat:error, and it is no frame: {error}")),
        Err(error) => Ok(Took::Refused(error.to_string())),
        Ok(_) => Ok(Took::Accepted),
    }
}
