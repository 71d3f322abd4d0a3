//! What a scripted server answers when no step says otherwise: a session with nothing in it.

use serde_json::{Value, json};

use crate::{
    drivers::scripted::{self, Reply},
    transcript::{
        Request,
        views::http::{path_matches, query_pairs},
    },
};

/// Paths that are answered, and the member of the world that has the body. `:s` is the session.
const ROUTES: &[(&str, &str, &str)] = &[
    ("GET", "/api/health", "health"),
    ("GET", "/api/sessions/:s", "session"),
    ("GET", "/api/sessions/:s/view", "view"),
    ("GET", "/api/sessions/:s/execution", "execution"),
    ("GET", "/api/sessions/:s/runtime-jobs", "jobs"),
    ("GET", "/api/sessions/:s/ui-slots", "slots"),
    ("GET", "/api/sessions/:s/suspensions", "suspensions"),
    ("GET", "/api/sessions/:s/plugins", "plugins"),
    ("GET", "/api/sessions/:s/approvals", "approvals"),
    ("GET", "/api/sessions/:s/messages", "messages"),
    ("GET", "/api/sessions/:s/messages/page", "page"),
    ("GET", "/api/sessions/:s/characters", "characters"),
    ("GET", "/api/sessions/:s/plugin-data/:p", "rows"),
    ("GET", "/api/sessions/:s/plugin-data/:p/:n", "rows"),
    ("GET", "/api/sessions/:s/media-token", "tokens"),
    ("GET", "/media/:m", "files"),
    ("GET", "/api/traces/:s", "traces"),
    ("GET", "/api/worlds", "worlds"),
    ("POST", "/api/sessions/:s/abort", "abort"),
    ("POST", "/api/sessions/:s/steer", "steer"),
    ("POST", "/api/sessions/:s/plugin-rpc", "rpc"),
    ("POST", "/api/model-relay/requests/:r/chunk", RELAYED),
    ("POST", "/api/model-relay/requests/:r/end", RELAYED),
    ("POST", "/api/model-relay/requests/:r/error", RELAYED),
    ("PUT", "/local-store/inputs/:i", STORED),
    ("PUT", "/local-store/checkpoint", STORED),
    ("GET", "/api/media/:m", MEDIA),
    ("POST", "/api/approvals/:a/decision", "decision"),
    ("POST", "/api/sessions/:s/suspensions/:x/resume", "resume"),
];

/// Where a client that keeps its data itself finds its store.
pub(super) const STORE: &str = "/local-store";

/// Members without a body: posts of relayed bytes, what a client keeps in its store, and media.
const RELAYED: &str = "relayed";
const STORED: &str = "stored";
const MEDIA: &str = "media";
/// The bytes of every medium.
const PIXELS: &[u8] = b"GIF89a";

/// The usual answers.
pub(crate) fn usual(session: &str) -> Value {
    let record = json!({
        "id": session, "status": "active", "phase": "playing", "completedPlayerTurns": 0,
        "setupRuntimes": {}, "activePlugins": [], "incarnation": INCARNATION, "locale": "en",
        "createdAt": NOW, "updatedAt": NOW,
    });
    json!({
        "health": { "status": "ok", "version": "1", "bootId": "b-1", "timestamp": NOW, "storage": "memory" },
        "session": record,
        "view": {
            "session": { "id": session, "phase": "playing", "completedPlayerTurns": 0, "setupRuntimes": {} },
            "messages": [], "messagesCursor": null, "executionSteps": [], "execution": { "state": "idle" },
            "characters": [], "gameState": {}, "plugins": [], "submittedInteractions": [],
            "dimensions": {}, "eventCursor": CURSOR,
        },
        "execution": { "state": "idle" },
        "jobs": { "items": [] }, "slots": { "items": [] }, "suspensions": { "items": [] },
        "plugins": { "active": [], "available": [] }, "approvals": { "items": [] },
        "messages": [], "page": { "items": [], "nextCursor": null }, "characters": { "items": [] },
        "rows": { "items": [] }, "traces": { "events": [], "nextCursor": null }, "worlds": { "items": [] },
        "abort": { "ok": true, "turnId": "t1" }, "steer": { "ok": true, "turnId": "t1" },
        "rpc": { "status": "ok", "result": null }, "resume": { "result": null, "events": [] },
        "decision": { "ok": true, "decision": "allow", "scope": "once", "pending": {} },
    })
}

/// The time that scripted frames carry.
pub(crate) const NOW: &str = "2030-05-01T10:00:00.000Z";
/// The life of scripted sessions.
pub(crate) const INCARNATION: &str = "inc-1";
/// The newest event of a session at the start of an act.
pub(crate) const CURSOR: &str = "e:5";

/// The member of the world that answers a request.
pub(crate) fn member(request: &Request) -> Option<&'static str> {
    let path = request.target.split('?').next().unwrap_or_default();
    let route = ROUTES
        .iter()
        .find(|(method, template, _)| request.method == *method && path_matches(template, path));
    route.map(|(_, _, member)| *member)
}

/// Whether a request goes to what the contract of clients adds to the protocol: the client's own store, the local model and
/// the bytes that are relayed from it, and media. All data of a plugin can be read in one, too (seed 000, line 459).
pub(crate) fn is_of_the_contract(request: &Request) -> bool {
    let path = request.target.split('?').next().unwrap_or_default();
    let added = [RELAYED, STORED, MEDIA, "tokens", "files"];
    path.starts_with(STORE)
        || path.starts_with(super::relay::LOCAL_MODEL)
        || member(request).is_some_and(|member| added.contains(&member))
        || (request.method == "GET" && path_matches("/api/sessions/:s/plugin-data/:p", path))
}

/// Whether a request is for this member of the world, or for this path.
pub(super) fn is_for(request: &Request, name: &str) -> bool {
    let path = request.target.split('?').next().unwrap_or_default();
    member(request) == Some(name) || path == name
}

/// The session that a request is about, when its path names one.
pub(super) fn session_of(request: &Request) -> Option<&str> {
    let path = request.target.split('?').next().unwrap_or_default();
    let rest = path
        .strip_prefix("/api/sessions/")
        .or(path.strip_prefix("/api/traces/"))?;
    rest.split('/').next()
}

/// The answer to a request of a client that finds the server at this URL; none for the streams, which steps open, and
/// for files that the world does not have.
pub(crate) fn answer(world: &Value, url: &str, request: &Request) -> Option<Reply> {
    let path = request.target.split('?').next().unwrap_or_default();
    if matches!(
        path,
        "/api/events/stream" | "/api/actions" | "/api/model-relay/stream"
    ) || path.starts_with(super::relay::LOCAL_MODEL)
    {
        return None;
    }
    let member = match member(request) {
        Some(RELAYED | STORED) => return Some(Reply::empty(204)),
        Some(MEDIA) => {
            return Some(Reply {
                head: scripted::head(200, "image/gif"),
                body: bytes::Bytes::from_static(PIXELS),
            });
        }
        Some(member) => member,
        None => {
            let body = json!({ "error": "not found", "code": "not_found" });
            return Some(Reply::json(404, &body));
        }
    };
    let mut body = chosen(&world[member], member, request);
    if member == "files" && body.is_null() {
        return None;
    }
    let status = body["@status"]
        .as_u64()
        .and_then(|status| u16::try_from(status).ok());
    if let Value::Object(members) = &mut body {
        members.remove("@status");
    }
    let text = body.to_string().replace("@server", url);
    let mut reply = Reply::json(status.unwrap_or(200), &body);
    reply.body = text.into();
    Some(reply)
}

/// What a member of the world answers: some have an answer for each page, plugin, or medium.
fn chosen(body: &Value, member: &str, request: &Request) -> Value {
    let path = request.target.split('?').next().unwrap_or_default();
    let parameter = |name: &str| {
        let mut pairs = query_pairs(&request.target);
        pairs.find_map(|(key, value)| (key == name).then_some(value))
    };
    let key = match member {
        "page" | "traces" => parameter("cursor"),
        "tokens" => parameter("id"),
        "files" => path.rsplit('/').next().map(str::to_owned),
        "rows" => path.split('/').nth(5).map(str::to_owned),
        _ => None,
    };
    let own = key.and_then(|key| body.get("by").unwrap_or(body).get(key));
    match (member, own) {
        (_, Some(own)) => own.clone(),
        ("files", None) => Value::Null,
        _ => body.clone(),
    }
}

/// Merges a change into a document: members one by one, null takes one away, anything else replaces.
pub(crate) fn merge(document: &mut Value, change: &Value) {
    let (Value::Object(members), Value::Object(changes)) = (&mut *document, change) else {
        if !change.is_null() {
            *document = change.clone();
        }
        return;
    };
    for (key, change) in changes {
        if change.is_null() {
            members.remove(key);
        } else {
            merge(members.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}
