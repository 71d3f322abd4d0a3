//! Sessions and their plugins: making, reading, changing and deleting them.
//!
//! Source: seed 000, lines 967-968 and 1068-1080; covel.md of the fact collection, section 2.5.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use turnwire_spec::covel::commands::sessions::{CreateSession, PatchSession};
use turnwire_spec::covel::limits::{NEW_SESSION_ID_CHARS, WORLD_ID_CHARS};
use turnwire_spec::covel::queries::Items;
use turnwire_spec::covel::queries::plugins::{PluginSwitched, SessionPlugins};
use turnwire_spec::covel::queries::sessions::{
    CreatedSession, DeletedSession, SessionRecord, SetupState,
};
use turnwire_spec::covel::shape::True;

use super::Covel;
use super::auth::Owned;
use super::errors::ApiError;
use super::frames::timestamp;
use super::request::{self, Query};
use super::words;
use crate::engine::ids::{PluginId, SessionId};
use crate::engine::model::{Session, Setup};
use crate::engine::sessions::NewSession;
use crate::engine::view::PluginInfo;
use crate::store::StoreKind;

/// The code of a request for a session that makes no sense.
const INVALID: &str = "invalid_session_request";
/// Characters of a locale.
const LOCALE_CHARS: usize = 64;
/// Plugins that a session may be created with.
const PLUGINS: usize = 64;

/// A session as clients read it. Neither its nonce nor anything about its token is in it.
pub(super) fn record(session: &Session) -> SessionRecord {
    SessionRecord {
        id: session.id.to_string(),
        world_id: session.world_id.clone(),
        status: Some(words::session_status(session.status)),
        phase: words::phase(session.phase),
        completed_player_turns: session.completed_player_turns,
        setup_runtimes: setups(session),
        locale: Some(session.locale.clone()),
        active_plugins: Some(
            session
                .active_plugins
                .iter()
                .map(ToString::to_string)
                .collect(),
        ),
        incarnation: session.incarnation.to_string(),
        runtime_model_overrides: None,
        created_at: Some(timestamp(session.created_at)),
        updated_at: Some(timestamp(session.updated_at)),
        metadata: None,
    }
}

/// How the setup of each runtime stands.
pub(super) fn setups(session: &Session) -> std::collections::BTreeMap<String, SetupState> {
    let one = |setup: &Setup| {
        let is_done = setup.state == crate::engine::model::SetupState::Done;
        SetupState {
            state: Some(if is_done { "done" } else { "pending" }.to_owned()),
            plugin_version: Some(setup.plugin_version.clone()),
            generation: Some(setup.generation.into()),
            attempts: Some(setup.attempts.into()),
            resolution: is_done.then(|| "completed".to_owned()),
            completed_at: None,
            warning: None,
            reason: None,
            blocked_at: None,
            last_error: None,
        }
    };
    session
        .setup_runtimes
        .iter()
        .map(|(id, setup)| (id.to_string(), one(setup)))
        .collect()
}

/// `GET /api/sessions`. Strangers of a deployment that has some read an empty list.
pub(super) async fn list(
    State(face): State<Arc<Covel>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Json<Items<SessionRecord>>, ApiError> {
    let is_crowded =
        face.guard.is_hosted() || (face.guard.production && face.guard.store == StoreKind::Memory);
    if is_crowded && !face.guard.is_operator(&headers) {
        return Ok(Json(Items { items: Vec::new() }));
    }
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let world = query.get("worldId").filter(|world| !world.is_empty());
    let sessions = face.engine.sessions(world).await?;
    Ok(Json(Items {
        items: sessions.iter().map(record).collect(),
    }))
}

/// `POST /api/sessions`.
pub(super) async fn create(
    State(face): State<Arc<Covel>>,
    body: Body,
) -> Result<(StatusCode, Json<CreatedSession>), ApiError> {
    let new = new_session(request::read_or_default(body, INVALID).await?)?;
    let created = face.engine.create_session(new).await?;
    let answer = CreatedSession {
        record: record(&created.session),
        owner_token: Some(created.owner_token),
        requested_locale: None,
        plugins_without_locale: None,
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// What a new session is asked to be. Members that this server has no use for are ignored.
fn new_session(wanted: CreateSession) -> Result<NewSession, ApiError> {
    if let Some(id) = &wanted.id {
        plain("id", id, NEW_SESSION_ID_CHARS)?;
    }
    if let Some(world) = &wanted.world_id {
        plain("worldId", world, WORLD_ID_CHARS)?;
    }
    if let Some(locale) = &wanted.locale {
        request::within("locale", locale, (1, LOCALE_CHARS), INVALID)?;
    }
    let plugins = wanted
        .plugins
        .map(|ids| ids.into_iter().map(PluginId::from).collect::<Vec<_>>());
    if plugins
        .as_ref()
        .is_some_and(|plugins| plugins.len() > PLUGINS)
    {
        return Err(ApiError::bad(
            INVALID,
            format!("plugins has more than {PLUGINS} ids"),
        ));
    }
    Ok(NewSession {
        id: wanted.id.map(SessionId::from),
        world_id: wanted.world_id,
        locale: wanted.locale,
        plugins,
    })
}

/// Checks an id that people may choose.
fn plain(name: &str, id: &str, max: usize) -> Result<(), ApiError> {
    request::within(name, id, (1, max), INVALID)?;
    if id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    {
        Ok(())
    } else {
        let error = format!("{name} has other characters than A-Z a-z 0-9 _ -");
        Err(ApiError::bad(INVALID, error))
    }
}

/// `GET /api/sessions/:id`.
pub(super) async fn read(owned: Owned) -> Json<SessionRecord> {
    Json(record(&owned.session))
}

/// `PATCH /api/sessions/:id`.
pub(super) async fn change(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    body: Body,
) -> Result<Json<SessionRecord>, ApiError> {
    let wanted: PatchSession = request::read(body, INVALID).await?;
    let session = match wanted.status {
        None => owned.session,
        Some(status) => {
            face.engine
                .set_status(&owned.session.id, words::wanted_status(status))
                .await?
        }
    };
    Ok(Json(record(&session)))
}

/// `DELETE /api/sessions/:id`.
pub(super) async fn delete(
    State(face): State<Arc<Covel>>,
    owned: Owned,
) -> Result<Json<DeletedSession>, ApiError> {
    face.engine.delete_session(&owned.session.id).await?;
    Ok(Json(DeletedSession {
        deleted: Value::Bool(true),
    }))
}

/// `GET /api/sessions/:id/plugins`.
pub(super) async fn plugins(State(face): State<Arc<Covel>>, owned: Owned) -> Json<SessionPlugins> {
    let plugins = face.engine.plugins_of(&owned.session);
    let (active, available) = plugins
        .iter()
        .partition::<Vec<&PluginInfo>, _>(|one| one.active);
    let describe = |plugin: &PluginInfo| {
        let command = |name: &&str| json!({ "id": format!("{}:{name}", plugin.id), "name": name });
        let commands: Vec<Value> = plugin.commands.iter().map(command).collect();
        json!({ "id": plugin.id, "displayName": plugin.name, "version": plugin.version, "commands": commands })
    };
    Json(SessionPlugins {
        active: active.into_iter().map(describe).collect(),
        available: available.into_iter().map(describe).collect(),
    })
}

/// `PUT /api/sessions/:id/plugins/:pluginId`.
pub(super) async fn enable(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    Path((_, plugin)): Path<(String, String)>,
) -> Result<Json<PluginSwitched>, ApiError> {
    switch(&face, &owned.session.id, &plugin, true).await
}

/// `DELETE /api/sessions/:id/plugins/:pluginId`.
pub(super) async fn disable(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    Path((_, plugin)): Path<(String, String)>,
) -> Result<Json<PluginSwitched>, ApiError> {
    switch(&face, &owned.session.id, &plugin, false).await
}

async fn switch(
    face: &Covel,
    id: &SessionId,
    plugin: &str,
    is_active: bool,
) -> Result<Json<PluginSwitched>, ApiError> {
    let session = face
        .engine
        .set_plugin(id, &PluginId::from(plugin), is_active)
        .await?;
    let active_plugin_ids = session
        .active_plugins
        .into_iter()
        .map(String::from)
        .collect();
    Ok(Json(PluginSwitched {
        ok: True::default(),
        active_plugin_ids,
    }))
}
