//! A whole answer.

use bytes::Bytes;
use serde_json::Value;

use crate::{
    drivers::DriveError,
    transcript::{self, End, ExchangeId},
};

/// The answer to a plain request, read as far as it came.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Method and target of the request.
    pub request: String,
    /// Its number in the transcript.
    pub exchange: ExchangeId,
    /// Status code.
    pub status: u16,
    /// Headers as received; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as far as it came.
    pub body: Bytes,
    /// How the exchange ended.
    pub end: End,
}

impl Reply {
    /// Value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        transcript::header(&self.headers, name)
    }

    /// The body as JSON, when it is.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The string at a JSON pointer of the body.
    pub fn string(&self, pointer: &str) -> Option<String> {
        self.json()?.pointer(pointer)?.as_str().map(str::to_owned)
    }

    /// Goes on only with a success status; for steps that the rest of the scenario stands on.
    ///
    /// # Errors
    ///
    /// [`DriveError::Unexpected`] with the answer, shortened.
    pub fn success(self) -> Result<Self, DriveError> {
        if (200..300).contains(&self.status) {
            Ok(self)
        } else {
            Err(self.unexpected("a success status"))
        }
    }

    /// Goes on only with the string at this JSON pointer of a successful answer.
    ///
    /// # Errors
    ///
    /// [`DriveError::Unexpected`] with the answer, shortened.
    pub fn need_string(&self, pointer: &str) -> Result<String, DriveError> {
        let found = if (200..300).contains(&self.status) {
            self.string(pointer)
        } else {
            None
        };
        found.ok_or_else(|| self.unexpected(format!("a success status and a string at {pointer}")))
    }

    /// The error of a scenario that cannot go on with this answer.
    pub fn unexpected(&self, expected: impl Into<String>) -> DriveError {
        let media = self.header("content-type").unwrap_or("no content type");
        let text: String = String::from_utf8_lossy(&self.body)
            .chars()
            .take(200)
            .collect();
        let end = if self.end == End::Complete {
            String::new()
        } else {
            format!(", {:?}", self.end)
        };
        DriveError::Unexpected {
            request: self.request.clone(),
            expected: expected.into(),
            got: format!("{} ({media}) {text:?}{end}", self.status),
        }
    }
}

/// Headers in order; bytes that are no UTF-8 are replaced.
pub(crate) fn headers(map: &http::HeaderMap) -> Vec<(String, String)> {
    map.iter()
        .map(|(name, value)| {
            (
                name.as_str().to_owned(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect()
}
