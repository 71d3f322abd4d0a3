//! Snapshots of a session, and forks.
//!
//! Source: seed 000, lines 578-595; covel.md of the fact collection, section 2.7.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use http::StatusCode;
use serde_json::{Value, json};
use turnwire_spec::covel::commands::sessions::Fork;
use turnwire_spec::covel::limits::{FORKS_PER_WINDOW, SNAPSHOTS_PAGE, SNAPSHOTS_PAGE_MAX};
use turnwire_spec::covel::queries::CursorPage;
use turnwire_spec::covel::queries::jobs::{Forked, SnapshotRecord};

use super::Covel;
use super::auth::Owned;
use super::errors::ApiError;
use super::frames::timestamp;
use super::request;
use crate::engine::EngineError;
use crate::engine::snapshots::Snapshot;
use crate::faces::connection::Connection;

/// A snapshot as lists show it. What it holds is in its own answer.
fn record(owned: &Owned, snapshot: &Snapshot) -> SnapshotRecord {
    let payload = payload(snapshot);
    SnapshotRecord {
        id: snapshot.id.clone(),
        session_id: Some(owned.session.id.to_string()),
        turn_id: Some(Some(snapshot.turn_id.to_string()).into()),
        kind: Some(snapshot.kind),
        parent_id: Some(snapshot.parent_id.clone().into()),
        created_at: Some(timestamp(snapshot.created_at)),
        payload_size: Some(payload.to_string().len() as u64),
    }
}

/// What a snapshot holds, as far as clients read it.
fn payload(snapshot: &Snapshot) -> Value {
    let messages = snapshot.messages.iter();
    json!({
        "completedPlayerTurns": snapshot.session.completed_player_turns,
        "messages": messages.map(super::queries::flat_message).collect::<Vec<_>>(),
    })
}

fn whole(owned: &Owned, snapshot: &Snapshot) -> Value {
    let mut whole = json!(record(owned, snapshot));
    whole["payload"] = payload(snapshot);
    whole
}

/// `POST /api/sessions/:id/snapshots`.
pub(super) async fn take(
    State(face): State<Arc<Covel>>,
    owned: Owned,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let snapshot = face.engine.take_snapshot(&owned.session.id).await?;
    Ok((StatusCode::CREATED, Json(whole(&owned, &snapshot))))
}

/// `GET /api/sessions/:id/snapshots`, oldest first. The cursor is the id of the last one before the page.
pub(super) async fn list(
    State(face): State<Arc<Covel>>,
    owned: Owned,
) -> Result<Json<CursorPage<SnapshotRecord>>, ApiError> {
    let limit = owned.query.limit(SNAPSHOTS_PAGE, SNAPSHOTS_PAGE_MAX)?;
    let all = face.engine.snapshots(&owned.session.id).await?;
    let start = match owned.query.get("cursor") {
        None => 0,
        Some(cursor) => {
            let place = all.iter().position(|snapshot| snapshot.id == cursor);
            let unknown = || EngineError::InvalidCursor(cursor.to_owned());
            place.map(|place| place + 1).ok_or_else(unknown)?
        }
    };
    let page: Vec<_> = all.iter().skip(start).take(limit).collect();
    let more = start + page.len() < all.len();
    let next = page.last().filter(|_| more).map(|last| last.id.clone());
    Ok(Json(CursorPage {
        items: page
            .iter()
            .map(|snapshot| record(&owned, snapshot))
            .collect(),
        next_cursor: next.into(),
    }))
}

/// `GET /api/sessions/:id/snapshots/:snapshotId`.
pub(super) async fn read(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    Path((_, id)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let all = face.engine.snapshots(&owned.session.id).await?;
    let found = all.iter().find(|snapshot| snapshot.id == id);
    let found = found.ok_or_else(|| EngineError::NotFound(format!("snapshot {id}")))?;
    Ok(Json(whole(&owned, found)))
}

/// `POST /api/sessions/:id/fork`.
pub(super) async fn fork(
    State(face): State<Arc<Covel>>,
    Extension(connection): Extension<Connection>,
    owned: Owned,
    body: Body,
) -> Result<(StatusCode, Json<Forked>), ApiError> {
    let (peer, parent) = (connection.peer().ip(), &owned.session.id);
    face.rates.count(peer, "fork", FORKS_PER_WINDOW)?;
    let Fork { from_snapshot_id } = request::read(body, "invalid_fork_request").await?;
    let forked = face.engine.fork(parent, &from_snapshot_id).await?;
    let answer = Forked {
        session_id: forked.child.session.id.to_string(),
        parent_session_id: parent.to_string(),
        from_snapshot_id,
        fork_snapshot_id: forked.fork_snapshot_id,
        owner_token: Some(forked.child.owner_token),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}
