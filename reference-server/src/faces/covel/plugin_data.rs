//! The data of plugins: rows of a namespace, read and written from outside.
//!
//! Namespaces that begin with `_` are the host's own: they look absent, and nothing is written there.
//!
//! Source: seed 000, lines 303-322; covel.md of the fact collection, section 2.5.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use http::StatusCode;
use turnwire_spec::covel::commands::sessions::PutPluginData;
use turnwire_spec::covel::queries::plugins::{PluginDataRow, PluginDataWritten};
use turnwire_spec::covel::queries::{Done, Items};
use turnwire_spec::covel::shape::True;

use super::Covel;
use super::auth::Owned;
use super::errors::ApiError;
use super::frames::timestamp;
use super::request;
use crate::engine::ids::PluginId;
use crate::engine::model::PluginDatum;

fn row(datum: &PluginDatum) -> PluginDataRow {
    PluginDataRow {
        namespace: Some(datum.namespace.clone()),
        key: datum.key.clone(),
        value: datum.value.clone(),
        updated_at: Some(timestamp(datum.updated_at)),
    }
}

async fn rows(
    face: &Covel,
    owned: &Owned,
    plugin: &str,
    namespace: &str,
) -> Result<Vec<PluginDatum>, ApiError> {
    if namespace.starts_with('_') {
        return Ok(Vec::new());
    }
    let plugin = PluginId::from(plugin);
    Ok(face
        .engine
        .plugin_data(&owned.session.id, &plugin, namespace)
        .await?)
}

/// `GET .../plugin-data/:pluginId/:ns`.
pub(super) async fn list(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    Path((_, plugin, namespace)): Path<(String, String, String)>,
) -> Result<Json<Items<PluginDataRow>>, ApiError> {
    let rows = rows(&face, &owned, &plugin, &namespace).await?;
    Ok(Json(Items {
        items: rows.iter().map(row).collect(),
    }))
}

/// `GET .../plugin-data/:pluginId/:ns/:key`.
pub(super) async fn read(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    Path((_, plugin, namespace, key)): Path<(String, String, String, String)>,
) -> Result<Json<PluginDataRow>, ApiError> {
    let rows = rows(&face, &owned, &plugin, &namespace).await?;
    let found = rows.iter().find(|datum| datum.key == key);
    found.map(|datum| Json(row(datum))).ok_or_else(|| {
        let error = format!("no row {key:?} in namespace {namespace:?}");
        ApiError::new(StatusCode::NOT_FOUND, "plugin_data_not_found", error)
    })
}

/// `PUT .../plugin-data/:pluginId/:ns/:key`.
pub(super) async fn write(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    Path((_, plugin, namespace, key)): Path<(String, String, String, String)>,
    body: Body,
) -> Result<Json<PluginDataWritten>, ApiError> {
    let PutPluginData { value } = request::read(body, "invalid_plugin_data").await?;
    let plugin = PluginId::from(plugin);
    face.engine
        .put_plugin_data(&owned.session.id, &plugin, &namespace, &key, value)
        .await?;
    Ok(Json(PluginDataWritten {
        ok: True::default(),
        namespace,
        key,
    }))
}

/// `DELETE .../plugin-data/:pluginId/:ns/:key`.
pub(super) async fn delete(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    Path((_, plugin, namespace, key)): Path<(String, String, String, String)>,
) -> Result<Json<Done>, ApiError> {
    let plugin = PluginId::from(plugin);
    face.engine
        .delete_plugin_data(&owned.session.id, &plugin, &namespace, &key)
        .await?;
    Ok(Json(Done::default()))
}
