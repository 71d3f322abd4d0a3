//! Runs that wait for the player: listed, answered, dropped.
//!
//! Source: seed 000, lines 570-576; covel.md of the fact collection, section 2.7.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use serde_json::json;
use turnwire_spec::covel::commands::plugins::Resume;
use turnwire_spec::covel::queries::Items;
use turnwire_spec::covel::queries::jobs::{DroppedSuspension, Resumed, Suspension};
use turnwire_spec::covel::shape::True;

use super::Covel;
use super::auth::Owned;
use super::errors::ApiError;
use super::frames::timestamp;
use super::request;
use crate::engine::ports::TurnEvent;
use crate::engine::suspensions;

fn suspension(item: &suspensions::Suspension) -> Suspension {
    Suspension {
        id: item.id.clone(),
        session_id: Some(item.session_id.to_string()),
        turn_id: Some(item.turn_id.to_string()),
        runtime_id: Some(item.runtime_id.to_string()),
        plugin_id: Some(item.plugin_id.to_string()),
        reason: Some(item.reason.clone()),
        resume_schema: Some(item.resume_schema.clone()),
        created_at: Some(timestamp(item.suspended_at)),
    }
}

/// `GET /api/sessions/:id/suspensions`.
pub(super) async fn list(
    State(face): State<Arc<Covel>>,
    owned: Owned,
) -> Result<Json<Items<Suspension>>, ApiError> {
    let open = face.engine.suspensions(&owned.session.id).await?;
    Ok(Json(Items {
        items: open.iter().map(suspension).collect(),
    }))
}

/// `POST /api/sessions/:id/suspensions/:suspensionId/resume`.
pub(super) async fn resume(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    Path((_, item)): Path<(String, String)>,
    body: Body,
) -> Result<Json<Resumed>, ApiError> {
    let Resume { data } = request::read(body, "invalid_resume").await?;
    let session = &owned.session.id;
    let resumed = face.engine.resume_suspension(session, &item, data).await?;
    let event = |event: &TurnEvent| json!({ "type": event.kind, "payload": event.payload });
    Ok(Json(Resumed {
        result: resumed.result,
        events: resumed.events.all().iter().map(event).collect(),
        deferred_jobs: None,
    }))
}

/// `DELETE /api/sessions/:id/suspensions/:suspensionId`.
pub(super) async fn drop(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    Path((_, item)): Path<(String, String)>,
) -> Result<Json<DroppedSuspension>, ApiError> {
    face.engine
        .drop_suspension(&owned.session.id, &item)
        .await?;
    Ok(Json(DroppedSuspension {
        ok: True::default(),
        suspension_id: item,
    }))
}
