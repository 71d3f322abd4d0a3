//! The control API under `/_turnwire/`, so that any language can drive a mock.
//!
//! | Request | Effect |
//! |---|---|
//! | `GET /_turnwire` | what is there: the paths and their methods |
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
//! These requests are not in the journal. Errors are `{"error": "…"}`: 400 for a script or a number that is none, 404
//! for what is not there, 405 with `allow` for another method, 413 for a body above the mock's limit.

use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use serde_json::{Value, json};

use crate::faults;
use crate::mock::{Mock, Planned, ScriptId};
use crate::script::{Faults, Script, Timing};
use crate::wires::gemini::query_value;
use crate::wires::out::Rendered;

/// The paths, and the methods of each. `*` stands for a name.
const PATHS: [(&str, &str); 7] = [
    ("health", "GET"),
    ("scripts", "GET, POST"),
    ("scripts/*", "DELETE"),
    ("journal", "GET, DELETE"),
    ("gates/*", "POST, DELETE"),
    ("reset", "POST"),
    ("", "GET"),
];

/// Whether a path belongs to the control API.
pub(super) fn is_control(path: &str) -> bool {
    path.strip_prefix("/_turnwire")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What is said about a request.
struct Said {
    status: u16,
    body: Value,
    /// The methods that a path has.
    allow: Option<&'static str>,
}

/// Does what a request asks for. A body above the limit is none.
pub(super) fn answer(mock: &Mock, parts: &Parts, body: Option<&Bytes>) -> Planned {
    let said = act(mock, parts, body);
    let mut headers = HeaderMap::new();
    crate::wires::put(&mut headers, "content-type", crate::wires::JSON);
    if let Some(allow) = said.allow {
        crate::wires::put(&mut headers, "allow", allow);
    }
    let body = Rendered::whole(said.body.to_string().into_bytes());
    let ids = &mut crate::ids::Ids::new(0, &[], 0);
    let plan = faults::plan(body, false, &Timing::default(), &Faults::default(), ids);
    let length = Some(plan.length as u64);
    Planned {
        status: said.status,
        headers,
        length,
        close_after: false,
        plan,
        ticket: mock.untracked(),
    }
}

fn act(mock: &Mock, parts: &Parts, body: Option<&Bytes>) -> Said {
    let path = parts.uri.path().trim_start_matches("/_turnwire");
    let path = path.trim_start_matches('/').trim_end_matches('/');
    let (area, name) = path.split_once('/').unwrap_or((path, ""));
    let pattern = if name.is_empty() {
        area.to_owned()
    } else {
        format!("{area}/*")
    };
    let Some((_, methods)) = PATHS.iter().find(|(known, _)| *known == pattern) else {
        return error(404, "there is no such path; GET /_turnwire lists all");
    };
    let method = parts.method.as_str();
    if !methods.split(", ").any(|known| known == method) {
        let told = format!("{method} is no method of this path, which has {methods}");
        return Said {
            allow: Some(methods),
            ..error(405, &told)
        };
    }
    match (method, area) {
        ("GET", "") => said(200, index()),
        ("GET", "scripts") => said(200, json!(mock.scripts())),
        ("GET", "journal") => journal(mock, parts),
        ("POST", "scripts") => load(mock, parts, body),
        ("DELETE", "scripts") => unload(mock, name),
        _ => {
            match (method, area) {
                ("DELETE", "journal") => mock.clear_journal(),
                ("POST", "gates") => mock.open(name),
                ("DELETE", "gates") => mock.close(name),
                ("POST", "reset") => mock.reset(),
                // `GET health`.
                _ => {}
            }
            said(200, json!({"ok": true}))
        }
    }
}

fn index() -> Value {
    let path = |(path, methods): (&str, &'static str)| {
        let path = format!("/_turnwire/{path}").replace('*', "{name}");
        (path.trim_end_matches('/').to_owned(), json!(methods))
    };
    let paths: serde_json::Map<String, Value> = PATHS.into_iter().map(path).collect();
    json!({ "paths": paths })
}

fn journal(mock: &Mock, parts: &Parts) -> Said {
    let since = match query_value(parts.uri.query(), "since") {
        None => Ok(0),
        Some(since) => since.parse().map_err(|_| since),
    };
    match since {
        Ok(since) => said(200, json!(mock.journal_since(since))),
        Err(since) => error(
            400,
            &format!("`since` is the number of a request, its `seq`, and not {since:?}"),
        ),
    }
}

/// What curl says of a body that it was given with `--data`, from which it takes the ends of lines.
const FORM: &str = "application/x-www-form-urlencoded";

/// What to do about a script that lost its lines.
fn without_lines(parts: &Parts, text: &str) -> &'static str {
    let kind = parts.headers.get(http::header::CONTENT_TYPE);
    let form = kind.is_some_and(|kind| kind.as_bytes().starts_with(FORM.as_bytes()));
    if form && !text.trim_end().contains('\n') {
        "; with curl, --data takes the ends of lines away: use --data-binary"
    } else {
        ""
    }
}

fn load(mock: &Mock, parts: &Parts, body: Option<&Bytes>) -> Said {
    let Some(body) = body else {
        let limit = mock.config().max_body;
        return error(
            413,
            &format!("the body is larger than {limit} bytes; load several scripts"),
        );
    };
    let Ok(text) = std::str::from_utf8(body) else {
        return error(400, "the script is not UTF-8");
    };
    match Script::parse(text) {
        Ok(script) => said(201, json!({"id": mock.load(script).number()})),
        Err(error) => {
            let told = format!("{error}{}", without_lines(parts, text));
            said(
                400,
                json!({"error": told, "line": error.line, "column": error.column}),
            )
        }
    }
}

fn unload(mock: &Mock, id: &str) -> Said {
    let id = id.parse().map(ScriptId::from_number);
    if id.is_ok_and(|id| mock.unload(id)) {
        said(200, json!({"ok": true}))
    } else {
        error(404, "there is no such script")
    }
}

const fn said(status: u16, body: Value) -> Said {
    Said {
        status,
        body,
        allow: None,
    }
}

fn error(status: u16, told: &str) -> Said {
    said(status, json!({ "error": told }))
}
