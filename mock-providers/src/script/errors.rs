//! Error statuses in a wire's own form, and replies that are bytes of the author's own.

use std::collections::BTreeMap;

use serde::de::{MapAccess, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::forms::{self, Form};
use super::sound;

/// An error of the service. What is not said is what the real service says for the status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, remote = "Self")]
pub struct ErrorReply {
    /// The HTTP status. In the middle of a stream it only chooses the error's words.
    #[serde(deserialize_with = "sound::error_status")]
    pub status: u16,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The class: OpenAI's and Anthropic's `type`, Gemini's `status`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// OpenAI's `code`; the `reason` of Gemini's `ErrorInfo`; Anthropic's `details.error_code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// OpenAI's `param`; the field of Gemini's `fieldViolations`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// When to come back. Gemini says it in the body, the others in `retry-after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<RetryAfter>,
    /// Another form than the wire's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<ErrorForm>,
    /// The body, in place of the wire's own: a text is sent as it is, anything else as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

checked!(ErrorReply, sound::error);

/// The form of an error, as a status' body and in the middle of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorForm {
    /// `{"error": {message, type, param, code}}`: Chat Completions.
    Object,
    /// `{"error": "…"}`
    String,
    /// As `object`, but `code` is the status as a number.
    NumericCode,
    /// `{"object": "error", message, type, code}`: older vLLM.
    Vllm,
    /// `{"error": {code: number, message, metadata}}`, and in a stream a choice that ends with `error`:
    /// OpenRouter.
    OpenRouter,
    /// `{"error": {code: number, message, status, details}}`: Gemini.
    Google,
    /// The same within a list: Gemini's OpenAI-compatible endpoint.
    GoogleArray,
    /// `{"type": "error", "error": {type, message}}`: Anthropic; the nested form of Responses.
    Typed,
    /// `{"type": "error", code, message, param}`: the flat form of Responses.
    Flat,
    /// `{"detail": [{loc, msg, type}]}`: FastAPI.
    Detail,
    /// `{"message": "…"}`
    Message,
    /// `{"base_resp": {status_code, status_msg}}`: MiniMax.
    BaseResp,
    /// A page of a proxy.
    Html,
    /// Nothing.
    Empty,
}

/// When to come back.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RetryAfter {
    /// `retry-after` in seconds.
    Seconds(f64),
    /// One of the other forms.
    Other(RetryAfterForm),
}

impl<'de> Deserialize<'de> for RetryAfter {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        forms::read(from)
    }
}

impl<'de> Form<'de> for RetryAfter {
    const WANTS: &'static str = "a number of seconds from 0 on, or one of: {date_in: SECONDS}, \
                                 {millis: NUMBER}, {literal: TEXT} for anything else";

    fn of_number<E: serde::de::Error>(seconds: f64, seen: Unexpected<'_>) -> Result<Self, E> {
        if seconds.is_finite() && seconds >= 0.0 {
            return Ok(Self::Seconds(seconds));
        }
        Err(E::invalid_value(seen, &Self::WANTS))
    }

    fn of_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        forms::map(map).map(Self::Other)
    }
}

/// The other forms to say when to come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfterForm {
    /// `retry-after` as an HTTP date, so many seconds ahead of the system's clock.
    DateIn(u32),
    /// `retry-after-ms`.
    Millis(u64),
    /// `retry-after` with exactly this value, sensible or not.
    Literal(String),
}

impl ErrorReply {
    /// The service's usual error for this status.
    pub fn new(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// With this text for people.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// With this class.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// With this exact reason.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Naming this member as the one at fault.
    #[must_use]
    pub fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Asking to come back after so many seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: impl Into<f64>) -> Self {
        self.retry_after = Some(RetryAfter::Seconds(seconds.into()));
        self
    }

    /// Asking to come back, said in another form.
    #[must_use]
    pub fn retry_after_as(mut self, form: RetryAfterForm) -> Self {
        self.retry_after = Some(RetryAfter::Other(form));
        self
    }

    /// In this form.
    #[must_use]
    pub fn form(mut self, form: ErrorForm) -> Self {
        self.form = Some(form);
        self
    }

    /// With this body in place of the wire's own.
    #[must_use]
    pub fn body(mut self, body: impl Into<Value>) -> Self {
        self.body = Some(body.into());
        self
    }
}

/// A response whose body the author writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawReply {
    /// The HTTP status; 200 if not said.
    #[serde(deserialize_with = "sound::raw_status")]
    pub status: u16,
    /// `content-type` and others; nothing is added.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "sound::headers"
    )]
    pub headers: BTreeMap<String, String>,
    /// The body as pieces, each sent like one event of a stream.
    #[serde(deserialize_with = "forms::one_or_many")]
    pub body: Vec<String>,
    /// More bytes behind `body`, as hexadecimal digits.
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "sound::hex"
    )]
    pub hex: String,
}

impl Default for RawReply {
    fn default() -> Self {
        Self {
            status: 200,
            headers: BTreeMap::new(),
            body: Vec::new(),
            hex: String::new(),
        }
    }
}

impl RawReply {
    /// A 200 event stream with these pieces as its body.
    pub fn stream<T: Into<String>>(pieces: impl IntoIterator<Item = T>) -> Self {
        Self::new(200, "text/event-stream", pieces)
    }

    /// A response with these pieces as its body.
    pub fn new<T: Into<String>>(
        status: u16,
        content_type: impl Into<String>,
        pieces: impl IntoIterator<Item = T>,
    ) -> Self {
        Self {
            status,
            headers: BTreeMap::from([("content-type".to_owned(), content_type.into())]),
            body: pieces.into_iter().map(Into::into).collect(),
            hex: String::new(),
        }
    }
}

/// Bytes in place of an HTTP response: garbage, half a head, or silence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, remote = "Self")]
pub struct SocketReply {
    /// A text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// More bytes behind it, as hexadecimal digits.
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "sound::hex"
    )]
    pub hex: String,
    /// What follows.
    pub then: SocketEnd,
}

checked!(SocketReply, sound::socket);

/// What follows the bytes of a [`SocketReply`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketEnd {
    /// The connection is closed.
    #[default]
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing, until the client gives up.
    Hold,
}

impl SocketReply {
    /// This text, then this end.
    pub fn new(text: impl Into<String>, then: SocketEnd) -> Self {
        Self {
            text: text.into(),
            hex: String::new(),
            then,
        }
    }
}
