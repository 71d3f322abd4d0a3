//! Plugin data outside any turn, and the actions of plugins.
//!
//! Each change is a commit of its own, and is announced after it.

use serde_json::Value;
use turnwire_spec::covel::event;

use super::emitter::{Emitter, FanOut};
use super::events::Emission;
use super::events::changes::{change, plugin_data_changed};
use super::ids::{PluginId, SessionId, SessionKey};
use super::model::{DomainEvent, Object, PluginDatum};
use super::plugins::{ActionCall, ActionError};
use super::ports::Delivery;
use super::tools::check_datum;
use super::{Engine, EngineError};
use crate::store::{Batch, Purpose, Write};

impl Engine {
    /// The rows of one namespace of a plugin, by key.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn plugin_data(
        &self,
        id: &SessionId,
        plugin: &PluginId,
        namespace: &str,
    ) -> Result<Vec<PluginDatum>, EngineError> {
        self.session(id).await?;
        Ok(self.inner.store.plugin_data(id, plugin, namespace).await?)
    }

    /// Sets one row, and announces it.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`], [`EngineError::Invalid`] for a reserved namespace or a value
    /// that is too large, or [`EngineError::Store`].
    pub async fn put_plugin_data(
        &self,
        id: &SessionId,
        plugin: &PluginId,
        namespace: &str,
        key: &str,
        value: Value,
    ) -> Result<PluginDatum, EngineError> {
        check_datum(namespace, &value).map_err(EngineError::Invalid)?;
        let session = self.session(id).await?.key();
        let emitter = self.emitter_outside(&session);
        let datum = PluginDatum {
            plugin_id: plugin.clone(),
            namespace: namespace.to_owned(),
            key: key.to_owned(),
            value: value.clone(),
            updated_at: emitter.now(),
        };
        let announcement = plugin_data_changed(plugin, vec![change(namespace, key, Some(&value))]);
        self.change(
            &emitter,
            Purpose::Outside,
            vec![Write::PutDatum(datum.clone())],
            vec![announcement],
        )
        .await?;
        Ok(datum)
    }

    /// Removes one row, and announces it. A row that does not exist is no error.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`], [`EngineError::Invalid`] for a reserved namespace, or
    /// [`EngineError::Store`].
    pub async fn delete_plugin_data(
        &self,
        id: &SessionId,
        plugin: &PluginId,
        namespace: &str,
        key: &str,
    ) -> Result<(), EngineError> {
        check_datum(namespace, &Value::Null).map_err(EngineError::Invalid)?;
        let session = self.session(id).await?.key();
        let emitter = self.emitter_outside(&session);
        let announcement = plugin_data_changed(plugin, vec![change(namespace, key, None)]);
        let (namespace, key) = (namespace.to_owned(), key.to_owned());
        let write = Write::DeleteDatum {
            plugin: plugin.clone(),
            namespace,
            key,
        };
        self.change(&emitter, Purpose::Outside, vec![write], vec![announcement])
            .await?;
        Ok(())
    }

    /// Runs an action of a plugin, outside any turn.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`], [`EngineError::SessionNotActive`],
    /// [`EngineError::PluginNotActive`], [`EngineError::UnknownAction`], [`EngineError::Invalid`] for
    /// a payload that does not fit, or what the action ran into.
    pub async fn plugin_action(
        &self,
        id: &SessionId,
        plugin: &PluginId,
        action: &str,
        payload: Value,
    ) -> Result<Value, EngineError> {
        let session = self.active_session(id).await?;
        let active = session.active_plugins.contains(plugin);
        let found = self.inner.registry.plugin(plugin).filter(|_| active);
        let found = found.ok_or_else(|| EngineError::PluginNotActive(plugin.clone()))?;
        let call = ActionCall {
            engine: self,
            session: &session,
            action,
            payload,
        };
        found.action(call).await.map_err(|error| match error {
            ActionError::Unknown(action) => EngineError::UnknownAction {
                plugin: plugin.clone(),
                action,
            },
            ActionError::Payload(message) => EngineError::Invalid(message),
            ActionError::Thrown(error) => {
                tracing::warn!(%plugin, %error, "the handler of an action failed");
                EngineError::HandlerThrew
            }
            ActionError::Engine(error) => error,
        })
    }

    /// Publishes one event as it is, for debugging. Nothing is saved.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`], [`EngineError::Invalid`] for an event that is in no table,
    /// has no topic, or could not be published, or [`EngineError::Store`].
    pub async fn debug_emit(
        &self,
        id: &SessionId,
        kind: &str,
        payload: Object,
    ) -> Result<(), EngineError> {
        let session = self.session(id).await?.key();
        let row = event(kind)
            .filter(|meta| meta.member)
            .and_then(|meta| Some((meta.name, meta.topic.ours()?)));
        let (kind, topic) =
            row.ok_or_else(|| EngineError::Invalid(format!("unknown event type {kind:?}")))?;
        let timestamp = self.inner.clock.now();
        let event = DomainEvent {
            kind,
            topic,
            session,
            turn_id: None,
            source: None,
            payload,
            timestamp,
        };
        let published = self.inner.publisher.publish(&event, Delivery::Live);
        published.map_err(|error| EngineError::Invalid(error.to_string()))
    }

    /// Commits writes outside any turn and announces them after that.
    pub(super) async fn change(
        &self,
        emitter: &Emitter,
        purpose: Purpose,
        writes: Vec<Write>,
        announcements: Vec<Emission>,
    ) -> Result<FanOut, EngineError> {
        let session: SessionKey = emitter.session().clone();
        self.inner
            .store
            .commit(Batch {
                session,
                purpose,
                writes,
            })
            .await?;
        Ok(emitter.fan_out(announcements).await)
    }
}
