//! The places whose values a rule compares: `/json/pointer`, `line:NAME`, `request:NAME`, `=text`, ...
//!
//! A source that is not there has no value; what that means is the demand's business.

use serde_json::Value;
use turnwire_spec::sse::Frame;

use crate::transcript::views::{
    http::{Exchange, path_matches},
    stream::text_of,
};

/// Where sources are looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The exchange.
    pub(super) exchange: &'a Exchange<'a>,
    /// Path templates that `path:NAME` refers to.
    pub(super) templates: &'a [String],
    /// The frame, when one is judged.
    pub(super) frame: Option<&'a Frame>,
    /// Data of the frame, or body of the response, when it is JSON.
    pub(super) json: Option<&'a Value>,
}

impl Place<'_> {
    /// The value of a source.
    pub(super) fn value(&self, source: &str) -> Option<Value> {
        if source.is_empty() || source.starts_with('/') {
            return self.json?.pointer(source).cloned();
        }
        if let Some(text) = source.strip_prefix('=') {
            return self.fill(text).map(Value::from);
        }
        let (kind, name) = source.split_once(':')?;
        match kind {
            "line" => self
                .frame?
                .field(name)
                .map(|line| Value::from(line.value())),
            "request" => self.request(name),
            "header" => self.exchange.header(name).map(Value::from),
            "request-header" => self.exchange.request_header(name).map(Value::from),
            "path" => self.segment(name).map(Value::from),
            _ => None,
        }
    }

    /// A query parameter, or else a member (or pointer) of the JSON body.
    fn request(&self, name: &str) -> Option<Value> {
        if let Some(text) = self.exchange.query(name) {
            return Some(Value::from(text));
        }
        let body = self.exchange.request_json()?;
        if name.starts_with('/') {
            body.pointer(name).cloned()
        } else {
            body.get(name).cloned()
        }
    }

    fn segment(&self, name: &str) -> Option<String> {
        let path = self.exchange.path();
        let template = self
            .templates
            .iter()
            .find(|template| path_matches(template, path))?;
        self.exchange.segment(template, name)
    }

    /// A text with its `{source}` parts filled in; `None` when one of them has no value.
    fn fill(&self, text: &str) -> Option<String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (source, after) = after.split_once('}')?;
            filled.push_str(before);
            filled.push_str(&text_of(&self.value(source)?));
            rest = after;
        }
        filled.push_str(rest);
        Some(filled)
    }
}

/// Whether two values are equal. One that comes from a text (a line, a query, a header, `=text`) is compared
/// by its text, so that the line `id: 7` equals the number 7.
pub(super) fn equal(left: (&str, &Value), right: (&str, &Value)) -> bool {
    if is_text(left.0) || is_text(right.0) {
        text_of(left.1) == text_of(right.1)
    } else {
        left.1 == right.1
    }
}

fn is_text(source: &str) -> bool {
    !(source.is_empty() || source.starts_with('/') || source.starts_with("request:/"))
}
