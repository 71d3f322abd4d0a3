//! What goes on in a session right now: its execution state, stopping it, steering it.
//!
//! Source: seed 000, lines 216-243 and 886-889; covel.md of the fact collection, section 2.4.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use turnwire_spec::covel::commands::sessions::Steer;
use turnwire_spec::covel::limits::{CONTROLS_PER_WINDOW, SAY_CHARS};
use turnwire_spec::covel::queries::sessions::{ExecutionStatus, TurnControlled};
use turnwire_spec::covel::shape::True;

use super::Covel;
use super::auth::Owned;
use super::errors::ApiError;
use super::queries;
use super::request;
use crate::engine::EngineError;
use crate::faces::connection::Connection;

/// The code of a steering that makes no sense.
const INVALID: &str = "invalid_steer_request";

/// `GET /api/sessions/:id/execution`.
///
/// The session is the one whose owner was checked: when it is another by now, 409.
pub(super) async fn execution(
    State(face): State<Arc<Covel>>,
    owned: Owned,
) -> Result<Json<ExecutionStatus>, ApiError> {
    let id = &owned.session.id;
    let status = face
        .engine
        .execution_status(id)
        .await
        .map_err(|error| match error {
            EngineError::SessionNotFound(id) => ApiError::incarnation_changed(id.as_str()),
            other => other.into(),
        })?;
    let now = face.store.session(id).await?;
    if now.is_none_or(|session| session.incarnation != owned.session.incarnation) {
        return Err(ApiError::incarnation_changed(id.as_str()));
    }
    Ok(Json(queries::execution(&status)?))
}

/// `POST /api/sessions/:id/abort`.
pub(super) async fn abort(
    State(face): State<Arc<Covel>>,
    Extension(connection): Extension<Connection>,
    owned: Owned,
) -> Result<Json<TurnControlled>, ApiError> {
    face.rates
        .count(connection.peer().ip(), "abort", CONTROLS_PER_WINDOW)?;
    let turn = face.engine.abort(&owned.session.id).await?;
    Ok(Json(TurnControlled {
        ok: True::default(),
        turn_id: turn.into(),
    }))
}

/// `POST /api/sessions/:id/steer`.
pub(super) async fn steer(
    State(face): State<Arc<Covel>>,
    Extension(connection): Extension<Connection>,
    owned: Owned,
    body: Body,
) -> Result<Json<TurnControlled>, ApiError> {
    face.rates
        .count(connection.peer().ip(), "steer", CONTROLS_PER_WINDOW)?;
    let Steer { message } = request::read(body, INVALID).await?;
    let message = message.trim();
    request::within("message", message, (1, SAY_CHARS), INVALID)?;
    let turn = face.engine.steer(&owned.session.id, message).await?;
    Ok(Json(TurnControlled {
        ok: True::default(),
        turn_id: turn.into(),
    }))
}
