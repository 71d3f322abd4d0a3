//! Readings of a request: its path, query, headers and body.

use serde_json::Value;

use super::http::{path_matches, path_segment, query_pairs};
use crate::transcript::{Request, header};

impl Request {
    /// Path, without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Whether method and path are these; path segments that begin with `:` match any one segment.
    pub fn is(&self, method: &str, template: &str) -> bool {
        self.method == method && path_matches(template, self.path())
    }

    /// The segment of the path that stands where `template` has `:name`, percent-decoded.
    pub fn segment(&self, template: &str, name: &str) -> Option<String> {
        path_segment(template, self.path(), name)
    }

    /// First value of a query parameter, percent-decoded.
    pub fn query(&self, name: &str) -> Option<String> {
        query_pairs(&self.target)
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }

    /// Value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The body as JSON, when it is.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}
