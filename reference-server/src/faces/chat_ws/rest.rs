//! What is asked for over HTTP: chats, their transcripts, and the document of the HTTP routes.
//!
//! The document leaves the socket out: it describes routes, and frames are none.
//!
//! Source: seed 004, lines 5 and 43.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use turnwire_spec::chat_ws::SCRATCH;
use turnwire_spec::covel::ENDPOINTS;

use super::Chat;
use crate::engine::actions::NUDGE;
use crate::engine::ids::SessionId;
use crate::engine::model::{Message, Role, Session};

/// `GET /api/chats`: all chats, oldest first.
pub(super) async fn list(State(face): State<Arc<Chat>>) -> Response {
    match face.engine.sessions(None).await {
        Ok(sessions) => {
            let items: Vec<_> = sessions.iter().map(chat).collect();
            Json(json!({ "items": items })).into_response()
        }
        Err(error) => {
            tracing::warn!(%error, "the chats cannot be listed");
            failed(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the chats cannot be read",
            )
        }
    }
}

/// `GET /api/chats/{id}/messages`: the transcript of a chat, oldest first.
pub(super) async fn messages(State(face): State<Arc<Chat>>, Path(id): Path<String>) -> Response {
    let id = SessionId::from(id);
    if face.engine.session(&id).await.is_err() {
        return failed(StatusCode::NOT_FOUND, "there is no such chat");
    }
    match face.engine.store().messages(&id).await {
        Ok(messages) => {
            let items: Vec<_> = messages.iter().map(message).collect();
            Json(json!({ "items": items })).into_response()
        }
        Err(error) => {
            tracing::warn!(%error, "a transcript cannot be read");
            failed(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the transcript cannot be read",
            )
        }
    }
}

/// `GET /api/openapi.json`.
pub(super) async fn openapi() -> Json<Value> {
    Json(document())
}

fn document() -> Value {
    let mut paths = Map::new();
    let own = [("GET", "/api/chats"), ("GET", "/api/chats/:id/messages")];
    let rows = ENDPOINTS.iter().map(|row| (row.method, row.path));
    for (method, path) in rows.chain(own) {
        let path = braced(path);
        let item = paths.entry(path.clone()).or_insert_with(|| json!({}));
        item[method.to_ascii_lowercase()] = json!({
            "operationId": format!("{method} {path}"),
            "responses": { "default": { "description": "See the reference." } },
        });
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Turnwire reference server", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
    })
}

/// `/a/:id` as `/a/{id}`.
fn braced(path: &str) -> String {
    let segment = |segment: &str| match segment.strip_prefix(':') {
        Some(name) => format!("{{{name}}}"),
        None => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

fn chat(session: &Session) -> Value {
    json!({
        "sessionId": session.id,
        "projectSlug": session.world_id.as_deref().unwrap_or(SCRATCH),
        "createdAt": session.created_at.to_string(),
    })
}

fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Tool => "tool",
    };
    let mut shown = json!({
        "id": message.id,
        "role": role,
        "content": message.content,
        "timestamp": message.created_at.to_string(),
    });
    if message.role == Role::User {
        let nudged = message
            .actions
            .as_ref()
            .is_some_and(|actions| actions.pointer("/0/type") == Some(&json!(NUDGE)));
        shown["sender"] = json!({ "kind": if nudged { "recovery" } else { "chat" } });
    }
    shown
}

/// The answer to a method that a route does not take.
pub(super) async fn no_method(method: Method) -> Response {
    let error = format!("{method} is not answered here");
    failed(StatusCode::METHOD_NOT_ALLOWED, &error)
}

fn failed(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_routes_and_no_socket() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        assert!(paths.contains_key("/api/chats/{id}/messages"));
        assert!(paths["/api/actions"]["post"].is_object());
        assert!(!paths.contains_key("/ws"));
    }
}
