//! A request over HTTP before it is sent, so that any part of it can be wrong.

use serde_json::Value;
use turnwire_spec::covel::endpoint;

use super::{Case, body, change::Change, sample};

/// Other methods. Those with a blank or control characters are no HTTP.
pub const METHODS: &[&str] = &[
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "PROPFIND",
    "get",
    "X",
    "",
    "G ET",
    "GE\u{7f}T",
    "CONNECT",
];

/// What stands in place of a path's last segment.
pub const SEGMENTS: &[&str] = &[
    "%00",
    "%ff%fe",
    "..",
    "%2e%2e%2f%2e%2e",
    "%",
    "%zz",
    "%F0%9F%A6%A9",
    "",
    "a/",
    "a//b",
    "*",
    "a;b=c",
    "a%0d%0aX-Y:%20z",
    "%c0%af",
    "\u{1}LONG",
    "\u{1}LONGER",
    "a b",
    "\u{e9}",
    "a#b",
];

/// Names of query parameters: those of the tables, and one that nobody knows.
pub const NAMES: &[&str] = &[
    "sessionId",
    "topics",
    "lastEventId",
    "session_token",
    "limit",
    "cursor",
    "worldId",
    "prefix",
    "slot",
    "key",
    "nobody",
];

/// Values of query parameters.
pub const VALUES: &[&str] = &[
    "",
    "%00",
    "%ff",
    "%",
    "-1",
    "0",
    "1e9",
    "18446744073709551616",
    "null",
    "a:b:c",
    "e1:99999999999999999999",
    ":",
    "%F0%9F%A6%A9",
    "\u{1}LONG",
    "a,b,,c",
    "[]",
    "..%2f",
    "%0d%0a",
];

/// Headers, and whether they are wrong below the protocol: then the answer is that of an HTTP server, without a body.
pub const HEADERS: &[(&str, &str, bool)] = &[
    ("content-type", "text/plain", false),
    ("content-type", "application/json; charset=utf-16", false),
    ("content-type", "", false),
    ("content-encoding", "gzip", false),
    ("accept", "image/png", false),
    ("accept-encoding", "\u{e9}", false),
    ("last-event-id", "garbage", false),
    ("last-event-id", "e1:99999999999999999999", false),
    ("last-event-id", "\u{e9}:\u{e9}", false),
    ("authorization", "Bearer", false),
    ("authorization", "Basic !!!", false),
    ("authorization", "Bearer \u{e9}", false),
    ("cookie", "a=b; session_token=\u{e9}", false),
    ("origin", "http://elsewhere.example", false),
    ("origin", "null", false),
    ("origin", "garbage", false),
    ("x-http-method-override", "DELETE", false),
    ("x-forwarded-for", "::1, garbage", false),
    ("range", "bytes=0-0", false),
    ("if-none-match", "*", false),
    ("sec-websocket-version", "99", false),
    ("sec-websocket-key", "short", false),
    ("upgrade", "nothing", true),
    ("expect", "nothing", true),
    ("host", "", true),
    ("host", "a b", true),
    ("content-length", "-1", true),
    ("content-length", "99999999999999999999", true),
    ("content-length", "1", true),
    ("content-length", "9000", true),
    ("transfer-encoding", "chunked", true),
    ("transfer-encoding", "gzip", true),
    ("transfer-encoding", "chunked, chunked", true),
    ("x-long", "\u{1}LONG", false),
    ("x-longer", "\u{1}LONGER", true),
    ("x y", "z", true),
    ("", "z", true),
    ("x-nul", "a\0b", true),
    ("x-fold", "a\r\n b", true),
    ("\u{1}VERSION", "HTTP/9.9", true),
    ("\u{1}VERSION", "HTTP/0.9", true),
    ("\u{1}VERSION", "", true),
    ("\u{1}MANY", "", true),
];

/// Headers at once, in place of [`HEADERS`]' `MANY`: more than a server takes.
const MANY: usize = 300;

/// A request as bytes, and what is known about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sent {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Method and path without its query, as they were sent.
    pub method: String,
    /// Path with its query.
    pub target: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body, the line or the text.
    pub body: Vec<u8>,
    /// Whether it is wrong below the protocol.
    pub is_loose: bool,
    /// Whether the connection cannot go on after it.
    pub is_last: bool,
    /// Names of what was done.
    pub changes: Vec<&'static str>,
}

/// A case as a request over HTTP. `authority` is the host header's; `session` and `token` are of the session that
/// requests are about.
pub fn http(case: &Case, authority: &str, session: &str, token: Option<&str>) -> Sent {
    let (method, path) = case.route().unwrap_or(("GET", "/"));
    let row = endpoint(method, path);
    let value = row
        .and_then(|row| row.request)
        .map(|name| sample::of(name, session));
    let mut draft = Draft::new(method, &filled(path, session), value, authority, token);
    if row.is_some_and(|row| row.query.contains(&"sessionId")) {
        draft.query.push(format!("sessionId={session}"));
    }
    if path == "/ws" {
        draft.ask_for_socket();
    }
    for change in &case.changes {
        draft.change(*change);
    }
    draft.send(&case.changes)
}

/// A path with its parameters filled in, by what exists in every session of ours.
fn filled(path: &str, session: &str) -> String {
    let after = path.strip_prefix("/api/").unwrap_or(path);
    let of_session = ["sessions/", "traces/", "chats/"]
        .iter()
        .any(|family| after.starts_with(family));
    let segment = |(number, segment): (usize, &str)| match segment {
        ":id" | ":sessionId" if of_session && number == 3 => session.to_owned(),
        ":pluginId" => "turnwire-fixtures".to_owned(),
        ":ns" => "fuzz".to_owned(),
        ":part" => "chunk".to_owned(),
        other if other.starts_with(':') => "none-such".to_owned(),
        other => other.to_owned(),
    };
    let segments: Vec<_> = path.split('/').enumerate().map(segment).collect();
    segments.join("/")
}

/// The headers that ask for a WebSocket.
pub(super) const UPGRADE: [(&str, &str); 4] = [
    ("connection", "upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

struct Draft {
    method: String,
    path: String,
    query: Vec<String>,
    version: String,
    headers: Vec<(String, String)>,
    value: Option<Value>,
    is_loose: bool,
}

impl Draft {
    fn new(
        method: &str,
        path: &str,
        value: Option<Value>,
        authority: &str,
        token: Option<&str>,
    ) -> Self {
        let mut headers = vec![("host".to_owned(), authority.to_owned())];
        if value.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        if let Some(token) = token {
            headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        }
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            version: "HTTP/1.1".to_owned(),
            headers,
            value,
            is_loose: false,
        }
    }

    fn ask_for_socket(&mut self) {
        for (name, value) in UPGRADE {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Method { to } => {
                self.method = METHODS[usize::from(to) % METHODS.len()].to_owned();
                let is_token = self.method.bytes().all(|byte| byte.is_ascii_alphabetic());
                self.is_loose |= !is_token || self.method.is_empty() || self.method == "CONNECT";
            }
            Change::Path { to } => {
                let segment = long(SEGMENTS[usize::from(to) % SEGMENTS.len()]);
                let kept = self.path.rfind('/').unwrap_or_default();
                self.path.truncate(kept + 1);
                self.is_loose |=
                    !segment.is_ascii() || segment.contains(' ') || segment.len() > 60_000;
                self.path.push_str(&segment);
            }
            Change::Query { name, value, twice } => {
                let name = NAMES[usize::from(name) % NAMES.len()];
                let pair = format!("{name}={}", long(VALUES[usize::from(value) % VALUES.len()]));
                self.query.retain(|pair| twice || !pair.starts_with(name));
                self.query.push(pair);
            }
            Change::Header { which } => {
                let (name, value, is_loose) = HEADERS[usize::from(which) % HEADERS.len()];
                self.is_loose |= is_loose;
                self.header(name, value);
            }
            _ => {}
        }
    }

    fn header(&mut self, name: &str, value: &str) {
        match name {
            "\u{1}VERSION" => self.version = value.to_owned(),
            "\u{1}MANY" => self
                .headers
                .extend((0..MANY).map(|number| (format!("x-{number}"), String::new()))),
            name => {
                self.headers.retain(|(other, _)| other != name);
                self.headers.push((name.to_owned(), long(value)));
            }
        }
    }

    fn send(self, changes: &[Change]) -> Sent {
        let body = self
            .value
            .map(|value| body::changed(value, changes))
            .unwrap_or_default();
        let mut headers = self.headers;
        let has = |headers: &[(String, String)], name: &str| {
            headers.iter().any(|(other, _)| other == name)
        };
        if !has(&headers, "content-length") && !has(&headers, "transfer-encoding") {
            headers.push(("content-length".to_owned(), body.len().to_string()));
        }
        let target = match self.query.as_slice() {
            [] => self.path.clone(),
            query => format!("{}?{}", self.path, query.join("&")),
        };
        let mut head = format!("{} {target} {}\r\n", self.method, self.version);
        for (name, value) in &headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&body);
        Sent {
            bytes,
            method: self.method,
            target,
            headers,
            body,
            is_loose: self.is_loose,
            is_last: self.is_loose,
            changes: changes.iter().map(Change::name).collect(),
        }
    }
}

fn long(text: &str) -> String {
    match text {
        "\u{1}LONG" => "l".repeat(5_000),
        "\u{1}LONGER" => "l".repeat(70_000),
        other => other.to_owned(),
    }
}
