//! The read-only queries of a session, and those of the server.
//!
//! Source: seed 000, lines 1068-1086; covel.md of the fact collection, section 5.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, Path, State};
use serde_json::Value;
use turnwire_spec::covel::limits::{MESSAGE_PAGES_PER_WINDOW, MESSAGES_PAGE, MESSAGES_PAGE_MAX};
use turnwire_spec::covel::queries::jobs::{JobOrigin, PublicJob};
use turnwire_spec::covel::queries::messages::{FlatMessage, SnapshotMessage};
use turnwire_spec::covel::queries::plugins::SnapshotPlugin;
use turnwire_spec::covel::queries::sessions::{
    ExecutionStatus, Health, RetryAction, SessionSnapshot, SnapshotSession, SnapshotStep,
    StateTables,
};
use turnwire_spec::covel::queries::{CursorPage, Items};
use turnwire_spec::covel::vocabulary::JobActivation;

use super::auth::Owned;
use super::errors::ApiError;
use super::frames::timestamp;
use super::{Covel, sessions, words};
use crate::engine::ids::JobId;
use crate::engine::model::{self, Job, Message, Object, TraceEvent};
use crate::engine::view::PluginInfo;
use crate::faces::connection::Connection;

/// `GET /api/sessions/:id/view`.
pub(super) async fn view(
    State(face): State<Arc<Covel>>,
    owned: Owned,
) -> Result<Json<SessionSnapshot>, ApiError> {
    let view = face.engine.view(&owned.session.id).await?;
    let plugin = |plugin: &PluginInfo| SnapshotPlugin {
        id: plugin.id.to_string(),
        display_name: Some(plugin.name.clone()),
        active: Some(plugin.active),
        stage: None,
        paused: None,
    };
    let event_cursor = view
        .event_cursor
        .parse()
        .map_err(|error| ApiError::internal(&error))?;
    Ok(Json(SessionSnapshot {
        session: Some(SnapshotSession {
            id: view.session.id.to_string(),
            phase: words::phase(view.session.phase),
            completed_player_turns: view.session.completed_player_turns,
            setup_runtimes: sessions::setups(&view.session),
            locale: Some(view.session.locale.clone()),
            incarnation: Some(view.session.incarnation.to_string()),
            world_id: view.session.world_id,
        }),
        messages: view.messages.iter().map(snapshot_message).collect(),
        messages_cursor: view.messages_cursor.into(),
        steps: Some(view.steps.iter().map(step).collect()),
        execution: Some(execution(&view.execution)?),
        characters: Some(view.characters),
        game_state: Some(Object::new()),
        plugins: Some(view.plugins.iter().map(plugin).collect()),
        submitted_interactions: Vec::new(),
        dimensions: Some(BTreeMap::new()),
        dimension_settlements: None,
        dimension_provider_plugin_id: None,
        dimension_recovery: None,
        event_cursor,
        character_schema: view.character_schema,
    }))
}

fn step(event: &TraceEvent) -> SnapshotStep {
    SnapshotStep {
        r#type: event.kind.clone(),
        turn_id: Some(event.turn_id.to_string()),
        payload: event.payload.clone(),
        timestamp: Some(timestamp(event.timestamp)),
    }
}

/// A message as the view shows it: without its session, which stands beside it.
fn snapshot_message(message: &Message) -> SnapshotMessage {
    let flat = flat_message(message);
    SnapshotMessage {
        id: flat.id,
        role: flat.role,
        content: flat.content,
        turn_id: flat.turn_id,
        runtime_id: flat.runtime_id,
        kind: flat.kind,
        block: flat.block,
        created_at: flat.created_at,
        actions: flat.actions,
        segments: flat.segments,
    }
}

/// A message as the message lists show it.
pub(super) fn flat_message(message: &Message) -> FlatMessage {
    let list = |value: &Option<Value>| value.as_ref().and_then(Value::as_array).cloned();
    FlatMessage {
        id: message.id.to_string(),
        session_id: Some(message.session_id.to_string()),
        role: role(message.role).to_owned(),
        content: message.content.clone(),
        turn_id: message.turn_id.as_ref().map(ToString::to_string),
        runtime_id: message.runtime_id.as_ref().map(ToString::to_string),
        kind: message.kind.clone(),
        block: message.block.as_ref().and_then(Value::as_object).cloned(),
        created_at: Some(timestamp(message.created_at)),
        actions: list(&message.actions),
        segments: list(&message.segments),
    }
}

const fn role(role: model::Role) -> &'static str {
    match role {
        model::Role::User => "user",
        model::Role::Assistant => "assistant",
        model::Role::System => "system",
        model::Role::Tool => "tool",
    }
}

/// Where the latest execution stands, as clients read it.
pub(super) fn execution(status: &model::ExecutionStatus) -> Result<ExecutionStatus, ApiError> {
    let retry = status.retry.as_ref().map(|retry| {
        let kind = retry
            .kind
            .parse()
            .map_err(|error| ApiError::internal(&error))?;
        Ok::<_, ApiError>(RetryAction {
            r#type: kind,
            payload: retry.payload.clone(),
        })
    });
    Ok(ExecutionStatus {
        state: words::execution_state(status.state),
        turn_id: status.turn_id.as_ref().map(ToString::to_string),
        request_id: status.request_id.as_ref().map(ToString::to_string),
        started_at: status.started_at.map(timestamp),
        origin: status.origin.map(words::origin),
        abort_reason: status.abort_reason.clone(),
        retry: retry.transpose()?,
        advance: None,
    })
}

/// `GET /api/sessions/:id/messages`.
pub(super) async fn messages(
    State(face): State<Arc<Covel>>,
    owned: Owned,
) -> Result<Json<Vec<FlatMessage>>, ApiError> {
    let messages = face.engine.messages(&owned.session.id).await?;
    Ok(Json(messages.iter().map(flat_message).collect()))
}

/// `GET /api/sessions/:id/messages/page`.
pub(super) async fn messages_page(
    State(face): State<Arc<Covel>>,
    Extension(connection): Extension<Connection>,
    owned: Owned,
) -> Result<Json<CursorPage<FlatMessage>>, ApiError> {
    face.rates.count(
        connection.peer().ip(),
        "messages/page",
        MESSAGE_PAGES_PER_WINDOW,
    )?;
    let limit = owned.query.limit(MESSAGES_PAGE, MESSAGES_PAGE_MAX)?;
    let cursor = owned.query.get("cursor");
    let page = face
        .engine
        .messages_page(&owned.session.id, cursor, limit)
        .await?;
    let items = page.items.iter().map(flat_message).collect();
    Ok(Json(CursorPage {
        items,
        next_cursor: page.next.into(),
    }))
}

/// `GET /api/sessions/:id/characters`.
pub(super) async fn characters(
    State(face): State<Arc<Covel>>,
    owned: Owned,
) -> Result<Json<Items<Object>>, ApiError> {
    let items = face.engine.characters(&owned.session.id).await?;
    Ok(Json(Items { items }))
}

/// `GET /api/sessions/:id/ui-slots`. This server's plugins fill none.
pub(super) async fn ui_slots(_: Owned) -> Json<Items<Value>> {
    no_items()
}

/// `GET /api/worlds`. This server has none installed.
pub(super) async fn worlds() -> Json<Items<Value>> {
    no_items()
}

fn no_items() -> Json<Items<Value>> {
    Json(Items { items: Vec::new() })
}

/// `GET /api/sessions/:id/state`. This server's plugins keep no state tables.
pub(super) async fn state(_: Owned) -> Json<StateTables> {
    Json(StateTables {
        tables: Object::new(),
    })
}

/// `GET /api/sessions/:id/runtime-jobs`.
pub(super) async fn jobs(
    State(face): State<Arc<Covel>>,
    owned: Owned,
) -> Result<Json<Items<PublicJob>>, ApiError> {
    let jobs = face.engine.jobs(&owned.session.id).await?;
    Ok(Json(Items {
        items: jobs.iter().map(job).collect(),
    }))
}

/// `POST /api/sessions/:id/runtime-jobs/:jobId/cancel`.
pub(super) async fn cancel_job(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    Path((_, id)): Path<(String, String)>,
) -> Result<Json<PublicJob>, ApiError> {
    let cancelled = face
        .engine
        .cancel_job(&owned.session.id, &JobId::from(id))
        .await?;
    Ok(Json(job(&cancelled)))
}

/// A background job as clients read it. What its plugin was given is not in it.
fn job(job: &Job) -> PublicJob {
    let from_a_turn = job.source_turn_id.is_some();
    PublicJob {
        schema_version: Some(1),
        job_id: job.id.to_string(),
        plugin_id: Some(job.plugin_id.to_string()),
        runtime_id: Some(job.runtime_id.to_string()),
        session_id: Some(job.session_id.to_string()),
        status: job.status,
        origin: Some(JobOrigin {
            activation: if from_a_turn {
                JobActivation::Stage
            } else {
                JobActivation::Manual
            },
            source_turn_id: job.source_turn_id.as_ref().map(ToString::to_string),
            source_execution_id: None,
            source_runtime_id: None,
        }),
        enqueued_at: Some(timestamp(job.enqueued_at)),
        updated_at: Some(timestamp(job.updated_at)),
        attempt: Some(job.attempt.into()),
        max_queue_ms: None,
        max_execution_ms: None,
        deadline_at: None,
        lease_expires_at: None,
        claimed_at: None,
        started_at: job.started_at.map(timestamp),
        committing_at: None,
        finished_at: job.finished_at.map(timestamp),
        owner_id: None,
        background_turn_id: None,
        background_execution_id: None,
        result: job.result.as_ref().and_then(Value::as_object).cloned(),
        reason: None,
        error: job.error.clone(),
        phase: None,
    }
}

/// `GET /api/health`.
pub(super) async fn health(State(face): State<Arc<Covel>>) -> Json<Health> {
    Json(Health {
        status: "ok".into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        boot_id: face.boot_id.clone(),
        timestamp: timestamp(face.now()),
        storage: face.settings.storage.into(),
        vector: Value::Null,
        operator_token_required: Some(face.guard.operator_token.is_some()),
    })
}
