//! A request before it is sent.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri, header};
use http_body_util::Full;
use serde_json::Value;

use super::BaseUrl;
use crate::{
    drivers::DriveError,
    transcript::{ExchangeId, Request, Transcript, cut::CutAt, mark::ExchangeMark},
};

pub(super) type HyperRequest = hyper::Request<Full<Bytes>>;

/// A request, built step by step.
///
/// ```
/// use turnwire::drivers::http::Call;
///
/// let call = Call::get("/api/events/stream").query("sessionId", "s 1").header("last-event-id", "e:7");
/// assert_eq!(call.line(), "GET /api/events/stream?sessionId=s%201");
/// ```
#[derive(Clone, Debug)]
pub struct Call {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Bytes,
    pub(super) wrong: Option<String>,
    pub(super) receive_buffer: Option<u32>,
    pub(super) head_within: Option<Duration>,
    pub(super) cut: Option<CutAt>,
}

impl Call {
    /// A request with this method and path; the path may have a query.
    pub fn new(method: &str, path: impl Into<String>) -> Self {
        Self {
            method: method.to_owned(),
            target: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            wrong: None,
            receive_buffer: None,
            head_within: None,
            cut: None,
        }
    }

    /// `GET`.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    /// `POST`.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new("POST", path)
    }

    /// `PUT`.
    pub fn put(path: impl Into<String>) -> Self {
        Self::new("PUT", path)
    }

    /// `DELETE`.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new("DELETE", path)
    }

    /// Adds a query parameter; the value is percent-encoded.
    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.target
            .push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(&encode(name));
        self.target.push('=');
        self.target.push_str(&encode(value));
        self
    }

    /// Adds a query parameter, when there is a value.
    #[must_use]
    pub fn maybe_query(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// Adds `authorization: Bearer TOKEN`, when there is a token.
    #[must_use]
    pub fn bearer(self, token: Option<&str>) -> Self {
        match token {
            Some(token) => self.header("authorization", format!("Bearer {token}")),
            None => self,
        }
    }

    /// Sends this JSON.
    #[must_use]
    pub fn json(self, value: &Value) -> Self {
        self.body("application/json", value.to_string())
    }

    /// Sends these bytes.
    #[must_use]
    pub fn body(mut self, content_type: &str, bytes: impl Into<Bytes>) -> Self {
        self.body = bytes.into();
        self.header("content-type", content_type)
    }

    /// Says that the request breaks the protocol on purpose, and how. The harness's own mistakes are reported;
    /// a request that says this is none.
    #[must_use]
    pub fn wrong_on_purpose(mut self, why: &str) -> Self {
        self.wrong = Some(why.to_owned());
        self
    }

    /// Makes a slow reader: the stream is read only when the scenario asks for frames, over a connection with a
    /// receive buffer of about this many bytes, so that the target notices soon. For streams only.
    #[must_use]
    pub fn receive_buffer(mut self, bytes: u32) -> Self {
        self.receive_buffer = Some(bytes);
        self
    }

    /// Waits this long for the response head, in place of the client's limit.
    #[must_use]
    pub fn head_within(mut self, limit: Duration) -> Self {
        self.head_within = Some(limit);
        self
    }

    /// Closes the connection at this place of the stream, as a client does whose network fails. For streams only.
    #[must_use]
    pub fn cut(mut self, at: Option<CutAt>) -> Self {
        self.cut = at;
        self
    }

    /// Method and target, for people.
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }

    /// The request as it goes over the wire.
    pub(super) fn request(&self, base: &BaseUrl) -> Result<HyperRequest, DriveError> {
        let wrong = |what: &str, why: String| {
            DriveError::Harness(format!("{}: bad {what}: {why}", self.line()))
        };
        let method = Method::from_bytes(self.method.as_bytes())
            .map_err(|e| wrong("method", e.to_string()))?;
        let target = base.target(&self.target);
        let uri: Uri = target
            .parse()
            .map_err(|e: http::uri::InvalidUri| wrong("target", e.to_string()))?;
        let mut request = hyper::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        for (name, value) in self.all_headers(base) {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|e| wrong("header name", e.to_string()))?;
            let value =
                HeaderValue::from_str(&value).map_err(|e| wrong("header value", e.to_string()))?;
            request.headers_mut().append(name, value);
        }
        Ok(request)
    }

    /// The request as it is recorded: the target without the base URL's prefix and query, all headers that are sent.
    pub(super) fn recorded(&self, request: &HyperRequest) -> Request {
        Request {
            method: self.method.clone(),
            target: self.target.clone(),
            headers: super::reply::headers(request.headers()),
            body: self.body.clone(),
        }
    }

    fn all_headers(&self, base: &BaseUrl) -> Vec<(String, String)> {
        let mut all = vec![(header::HOST.to_string(), base.authority().to_owned())];
        all.extend(self.headers.iter().cloned());
        let has = |name: &str| self.headers.iter().any(|(key, _)| key == name);
        if !has("accept") {
            all.push(("accept".to_owned(), "*/*".to_owned()));
        }
        if !has("user-agent") {
            all.push((
                "user-agent".to_owned(),
                concat!("turnwire/", env!("CARGO_PKG_VERSION")).to_owned(),
            ));
        }
        let sends =
            !self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH");
        if sends && !has("content-length") {
            all.push(("content-length".to_owned(), self.body.len().to_string()));
        }
        all
    }
}

/// Percent-encodes all but unreserved characters, `:` and `,`.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:,".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

const ON_PURPOSE: ExchangeMark = ExchangeMark("wrong on purpose");

/// The note that marks an exchange whose request is wrong on purpose.
pub(crate) fn on_purpose(exchange: ExchangeId, why: &str) -> String {
    ON_PURPOSE.because(exchange, why)
}

/// The exchanges of a transcript whose requests are wrong on purpose.
pub fn wrong_on_purpose(transcript: &Transcript) -> Vec<ExchangeId> {
    ON_PURPOSE.exchanges(transcript).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Entry, Fact};

    #[test]
    fn a_header_with_a_line_break_is_the_harness_s_own_fault() {
        let base = BaseUrl::parse("http://127.0.0.1:1").unwrap();
        let error = Call::get("/x")
            .header("a", "b\r\nc: d")
            .request(&base)
            .unwrap_err();
        assert!(matches!(error, DriveError::Harness(_)), "{error}");
    }

    #[test]
    fn the_note_of_a_request_that_is_wrong_on_purpose_is_read_back() {
        let note = on_purpose(ExchangeId(12), "no session: at all");
        let entries = vec![Entry {
            at: Duration::ZERO,
            fact: Fact::Note(note),
        }];
        let transcript = Transcript {
            entries,
            ..Transcript::default()
        };
        assert_eq!(wrong_on_purpose(&transcript), [ExchangeId(12)]);
    }
}
