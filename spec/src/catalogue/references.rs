//! The names in rules and rewrites that must exist elsewhere in this crate: event types, paths and
//! schemas.
//!
//! A misspelt name would select nothing, and a check that judges nothing says nothing.

use serde_json::{Map, Value};

use super::entry::Entry;
use super::faults::Fault;
use crate::chat_ws::{KINDS, PATH};
use crate::covel::{ENDPOINTS, EVENTS, envelope};
use crate::llm;
use crate::{schema, session_update};

/// The frame types of the model relay. Source: seed 000, line 639.
const RELAY_TYPES: [&str; 3] = ["ready", "request", "cancel"];

/// Beginnings of paths that clients under test ask for and that are no endpoints of a protocol: their local model,
/// their own store, media.
const OF_CLIENTS: [&str; 3] = ["/local-model/", "/local-store/", "/api/media/"];

/// The keys under which rules and rewrites stand.
const PARTS: [&str; 13] = [
    "asked",
    "frames",
    "responses",
    "streams",
    "all",
    "response",
    "request",
    "messages",
    "channels",
    "answers",
    "when",
    "then",
    "until",
];

/// Kinds of messages that have no name of their own.
const UNNAMED: [&str; 7] = [
    ":ping", ":pong", ":close", ":binary", ":text", "response", "error",
];

/// Every name in the entry's rule and rewrite that does not exist.
pub(super) fn broken(entry: &Entry) -> Vec<Fault> {
    let mut found = Vec::new();
    // Rules and rewrites are data with text keys, which always serialize.
    if let Ok(rule) = serde_json::to_value(&entry.rule) {
        walk(&rule, true, &mut found);
    }
    if let Ok(rewrite) = serde_json::to_value(&entry.rewrite) {
        walk(&rewrite, false, &mut found);
    }
    let fault = |(what, name)| Fault::NoSuchName {
        id: entry.id.clone(),
        what,
        name,
    };
    found.into_iter().map(fault).collect()
}

type Found = Vec<(&'static str, String)>;

fn walk(value: &Value, is_rule: bool, found: &mut Found) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, is_rule, found)),
        Value::Object(members) => {
            look(members, is_rule, found);
            // What else stands there, schemas and edits, is content of messages.
            let parts = members
                .iter()
                .filter(|(key, _)| PARTS.contains(&key.as_str()));
            parts.for_each(|(_, part)| walk(part, is_rule, found));
        }
        _ => {}
    }
}

/// The names in the members of one rule or rewrite.
fn look(members: &Map<String, Value>, is_rule: bool, found: &mut Found) {
    // What is forbidden, or counted to be absent, may well not exist.
    if members.get("forbidden") != Some(&Value::Bool(true)) {
        for key in ["type", "first", "last"] {
            let types = texts(members, key).filter(|name| !is_type(name));
            found.extend(types.map(|name| ("event type", name.to_owned())));
        }
    }
    if let Some(Value::Object(counts)) = members.get("count") {
        let present = counts.iter().filter(|(_, count)| **count != 0);
        let unknown = present.filter(|(name, _)| !is_type(name));
        found.extend(unknown.map(|(name, _)| ("event type", name.clone())));
    }
    let paths = texts(members, "path").filter(|path| !is_path(path));
    found.extend(paths.map(|path| ("path", path.to_owned())));
    if is_rule {
        let schemas = ["data", "body"]
            .into_iter()
            .filter_map(|key| members.get(key)?.as_str());
        let unknown = schemas.filter(|name| schema::named(name).is_none());
        found.extend(unknown.map(|name| ("schema", name.to_owned())));
    }
}

fn texts<'a>(members: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a str> {
    members
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Whether a pattern of frame types selects any.
fn is_type(pattern: &str) -> bool {
    let control = [envelope::CONNECTED, envelope::HEARTBEAT, envelope::RESET];
    let names = EVENTS
        .iter()
        .map(|meta| meta.name)
        .chain(control)
        .chain(RELAY_TYPES)
        .chain(KINDS.iter().map(|kind| kind.name))
        .chain(UNNAMED)
        .chain(session_update::EVENTS.iter().map(|meta| meta.name))
        .chain(llm::events::types());
    match pattern.strip_suffix('*') {
        Some(prefix) => names.into_iter().any(|name| name.starts_with(prefix)),
        None => names.into_iter().any(|name| name == pattern),
    }
}

/// Endpoints of the public server that clients ask for, and that the seed does not have: all data of a plugin, and
/// the URL of a medium.
const PUBLIC: [&str; 2] = [
    "/api/sessions/:id/plugin-data/:pluginId",
    "/api/sessions/:id/media-token",
];

/// Whether a path is one of these, or of a request to it.
fn is_public(path: &str) -> bool {
    let is = |template: &str| {
        let parts = template.split('/').zip(path.split('/'));
        template.matches('/').count() == path.matches('/').count()
            && parts
                .into_iter()
                .all(|(own, given)| own == given || own.starts_with(':'))
    };
    PUBLIC.iter().any(|template| is(template))
}

/// Whether a path is the template of an endpoint, or one of a request to it. A path of an LLM wire may
/// have its version in front.
fn is_path(path: &str) -> bool {
    let unversioned = ["/v1beta/openai/", "/v1beta/", "/v1/"]
        .iter()
        .find_map(|version| Some(&path[path.strip_prefix(version).map(|_| version.len() - 1)?..]));
    let path_of_wire = unversioned.unwrap_or(path);
    path == PATH
        || ENDPOINTS
            .iter()
            .any(|row| row.path == path || row.matches(row.method, path))
        || OF_CLIENTS.iter().any(|prefix| path.starts_with(prefix))
        || is_public(path)
        || llm::PATHS.contains(&path_of_wire)
        || path_of_wire.starts_with("/models/")
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;

    fn faults(more: &str) -> String {
        let text = format!(
            "- {{ id: X-001, title: one two three, level: must, binds: server, statement: s, \
             observe: wire, check: c, sabotage: b, source: x, {more} }}\n"
        );
        let catalogue = Catalogue::from_yaml([("x.yaml", text.as_str())]).unwrap();
        let faults: Vec<_> = catalogue.faults().iter().map(ToString::to_string).collect();
        faults.join("\n")
    }

    #[test]
    fn names_that_exist_are_no_fault() {
        assert_eq!(
            faults(
                "rule: { all: [{ frames: { type: [system.*, llm.calling], data: sse-envelope } }, \
                 { responses: { path: [/api/sessions/:id/view, /api/health] } }, \
                 { streams: { first: [system.connected], count: { execution.completed: 1 } } }] }, \
                 rewrite: { frames: { type: [ready], do: [drop] } }"
            ),
            ""
        );
    }

    #[test]
    fn a_misspelt_event_path_or_schema_is_found() {
        insta::assert_snapshot!(
            faults(
                "rule: { all: [{ frames: { type: [sytem.*], data: sse-envelop } }, \
                 { responses: { path: [/api/session/:id] } }, \
                 { streams: { count: { 'execution.complete': 1 } } }] }, \
                 rewrite: { frames: { type: [narrative.deltas], do: [drop] } }"
            ),
            @r#"
        X-001: the event type "sytem.*" does not exist
        X-001: the schema "sse-envelop" does not exist
        X-001: the path "/api/session/:id" does not exist
        X-001: the event type "execution.complete" does not exist
        X-001: the event type "narrative.deltas" does not exist
        "#
        );
    }

    #[test]
    fn what_must_not_occur_need_not_exist() {
        assert_eq!(
            faults("rule: { frames: { type: [phase.changed], forbidden: true } }"),
            ""
        );
        assert_eq!(
            faults("rule: { streams: { count: { phase.changed: 0 } } }"),
            ""
        );
    }
}
