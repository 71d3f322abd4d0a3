//! `POST /api/events/emit`: injects an event, for debugging. Off in production unless it is asked for.
//!
//! `topic` is an event name of the protocol; a text that is none becomes an `event.emitted` with that
//! topic.
//!
//! Source: seed 000, line 718; covel.md of the fact collection, section 2.8.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use turnwire_spec::covel::commands::sessions::EmitEvent;
use turnwire_spec::covel::envelope::SESSION_INVALIDATED;
use turnwire_spec::covel::event;

use super::Covel;
use super::errors::ApiError;
use super::request::{self, Query};
use crate::engine::ids::SessionId;
use crate::engine::model::Object;

/// The code of an injection that makes no sense.
const INVALID: &str = "invalid_event";
/// Characters of a topic.
const TOPIC_CHARS: usize = 200;

/// Injects an event.
pub(super) async fn emit(
    State(face): State<Arc<Covel>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    if face.guard.production && !face.settings.debug_emit {
        let error = "events are not injected in production";
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "debug_disabled",
            error,
        ));
    }
    let EmitEvent {
        topic,
        session_id,
        payload,
        ..
    } = request::read_without_null(body, "payload", INVALID).await?;
    request::within("topic", &topic, (1, TOPIC_CHARS), INVALID)?;
    let payload = payload.unwrap_or_default();
    if topic == SESSION_INVALIDATED || topic.starts_with("system.") {
        return Err(ApiError::bad(
            "reserved_event",
            format!("{topic} is the server's own"),
        ));
    }

    let session = face.engine.session(&SessionId::from(session_id)).await?;
    let query = Query::parse(query.as_deref().unwrap_or_default());
    face.guard.owner(&session, &headers, &query)?;
    let (kind, payload) = if event(&topic).is_some_and(|row| row.member) {
        (topic, payload)
    } else {
        let mut wrapped = Object::new();
        wrapped.insert("topic".into(), topic.into());
        wrapped.insert("data".into(), Value::Object(payload));
        ("event.emitted".to_owned(), wrapped)
    };
    face.engine.debug_emit(&session.id, &kind, payload).await?;
    Ok(Json(
        json!({ "ok": true, "id": face.engine.publisher().cursor(&session.key()) }),
    ))
}
