//! The control API under `/_turnwire/`, so that any language can drive a mock.
//!
//! | Request | Effect |
//! |---|---|
//! | `GET /_turnwire/health` | `{"ok": true}` |
//! | `GET /_turnwire/scripts` | the loaded scripts |
//! | `POST /_turnwire/scripts` | loads the script in the body, YAML or JSON: `{"id": 3}` |
//! | `DELETE /_turnwire/scripts/{id}` | takes a script away |
//! | `GET /_turnwire/journal?since=SEQ` | the requests so far |
//! | `DELETE /_turnwire/journal` | forgets them |
//! | `POST /_turnwire/gates/{name}` | opens a gate |
//! | `DELETE /_turnwire/gates/{name}` | closes it |
//! | `POST /_turnwire/reset` | forgets everything |
//!
//! These requests are not in the journal. Errors are `{"error": "…"}`.

use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use serde_json::{Value, json};

use crate::faults;
use crate::mock::{Mock, Planned, ScriptId};
use crate::script::{Faults, Script, Timing};
use crate::wires::gemini::query_value;
use crate::wires::out::Rendered;

/// Whether a path belongs to the control API.
pub(super) fn is_control(path: &str) -> bool {
    path.starts_with("/_turnwire/")
}

/// Does what a request asks for.
pub(super) fn answer(mock: &Mock, parts: &Parts, body: &Bytes) -> Planned {
    let (status, body) = act(mock, parts, body);
    let mut headers = HeaderMap::new();
    crate::wires::put(&mut headers, "content-type", crate::wires::JSON);
    let body = Rendered::whole(body.to_string().into_bytes());
    let ids = &mut crate::ids::Ids::new(0, &[], 0);
    let plan = faults::plan(body, false, &Timing::default(), &Faults::default(), ids);
    let length = Some(plan.length as u64);
    Planned {
        status,
        headers,
        length,
        close_after: false,
        plan,
        ticket: mock.untracked(),
    }
}

fn act(mock: &Mock, parts: &Parts, body: &Bytes) -> (u16, Value) {
    let path = parts
        .uri
        .path()
        .trim_start_matches("/_turnwire/")
        .trim_end_matches('/');
    match (
        parts.method.as_str(),
        path.split_once('/').unwrap_or((path, "")),
    ) {
        ("GET", ("health", "")) => (200, json!({"ok": true})),
        ("GET", ("scripts", "")) => (200, json!(mock.scripts())),
        ("POST", ("scripts", "")) => load(mock, body),
        ("DELETE", ("scripts", id)) => {
            let id = id.parse().map(ScriptId::from_number);
            if id.is_ok_and(|id| mock.unload(id)) {
                done()
            } else {
                nothing("script")
            }
        }
        ("GET", ("journal", "")) => {
            let since = query_value(parts.uri.query(), "since").and_then(|seq| seq.parse().ok());
            (200, json!(mock.journal_since(since.unwrap_or(0))))
        }
        ("DELETE", ("journal", "")) => {
            mock.clear_journal();
            done()
        }
        ("POST", ("gates", name)) if !name.is_empty() => {
            mock.open(name);
            done()
        }
        ("DELETE", ("gates", name)) if !name.is_empty() => {
            mock.close(name);
            done()
        }
        ("POST", ("reset", "")) => {
            mock.reset();
            done()
        }
        _ => nothing("path"),
    }
}

fn load(mock: &Mock, body: &Bytes) -> (u16, Value) {
    let Ok(text) = std::str::from_utf8(body) else {
        return (400, json!({"error": "the script is not UTF-8"}));
    };
    match Script::parse(text) {
        Ok(script) => (201, json!({"id": mock.load(script).number()})),
        Err(error) => (
            400,
            json!({"error": error.to_string(), "line": error.line, "column": error.column}),
        ),
    }
}

fn done() -> (u16, Value) {
    (200, json!({"ok": true}))
}

fn nothing(what: &str) -> (u16, Value) {
    (404, json!({"error": format!("there is no such {what}")}))
}
