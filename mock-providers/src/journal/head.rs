//! The head of a request as the journal keeps it: in one piece of memory of its own.
//!
//! As it came it consists of slices of the connection's buffer, and a journal of them would keep the buffers of all
//! its requests; as a map it would be a dozen pieces of memory, all of them cold when they are let go.

use http::Method;
use http::request::Parts;

/// The method, the path with its query, and the headers in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Head {
    method: Method,
    /// Lines: the path with its query, then `name:value` for each header. Neither can hold the end of a line.
    lines: Box<[u8]>,
}

impl Head {
    pub(crate) fn of(parts: &Parts) -> Self {
        let target = parts
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let headers: usize = parts
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 2)
            .sum();
        let mut lines = Vec::with_capacity(target.len() + headers);
        lines.extend_from_slice(target.as_bytes());
        for (name, value) in &parts.headers {
            lines.push(b'\n');
            lines.extend_from_slice(name.as_str().as_bytes());
            lines.push(b':');
            lines.extend_from_slice(value.as_bytes());
        }
        Self {
            method: parts.method.clone(),
            lines: lines.into_boxed_slice(),
        }
    }

    pub(crate) fn method(&self) -> &str {
        self.method.as_str()
    }

    pub(crate) fn path(&self) -> &str {
        let target = self.target();
        target.split_once('?').map_or(target, |(path, _)| path)
    }

    pub(crate) fn query(&self) -> Option<&str> {
        self.target().split_once('?').map(|(_, query)| query)
    }

    /// Each header's name, in small letters, and its value.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let headers = self.lines.split(|byte| *byte == b'\n').skip(1);
        headers.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((
                std::str::from_utf8(&line[..colon]).ok()?,
                &line[colon + 1..],
            ))
        })
    }

    /// The first value of a header, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers().find(|(own, _)| *own == name)?;
        std::str::from_utf8(value).ok()
    }

    fn target(&self) -> &str {
        let end = self.lines.iter().position(|byte| *byte == b'\n');
        let line = &self.lines[..end.unwrap_or(self.lines.len())];
        // It was text when it came.
        std::str::from_utf8(line).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_again_what_it_was_made_of() {
        let (parts, ()) = http::Request::put("/v1/x?key=a?b")
            .header("X-Two", "a:b")
            .header("x-two", "ü")
            .header("x-none", "")
            .body(())
            .unwrap()
            .into_parts();
        let head = Head::of(&parts);
        assert_eq!((head.method(), head.path()), ("PUT", "/v1/x"));
        assert_eq!(head.query(), Some("key=a?b"));
        let headers: Vec<_> = head.headers().collect();
        let expected: [(&str, &[u8]); 3] = [
            ("x-two", b"a:b"),
            ("x-two", "ü".as_bytes()),
            ("x-none", b""),
        ];
        assert_eq!(headers, expected);
        assert_eq!(
            (head.header("x-two"), head.header("x-no")),
            (Some("a:b"), None)
        );
    }

    #[test]
    fn a_head_without_query_and_headers_is_its_path() {
        let (parts, ()) = http::Request::get("/").body(()).unwrap().into_parts();
        let head = Head::of(&parts);
        assert_eq!((head.path(), head.query()), ("/", None));
        assert_eq!(head.headers().count(), 0);
    }
}
