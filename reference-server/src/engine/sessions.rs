//! Sessions: made, read, changed and deleted, and who may do so.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use turnwire_spec::covel::vocabulary::Stage;

use super::cancel::CancelCause;
use super::happening::Happened;
use super::ids::{Incarnation, PluginId, RuntimeId, SessionId, hex};
use super::locks::SessionGuard;
use super::model::{Phase, Session, SessionStatus, Setup, SetupState};
use super::ports::Invalidation;
use super::{Engine, EngineError};
use crate::store::{Batch, Purpose, SessionPatch, StoreError, Write};

/// The plugins of a session that asks for none.
pub const DEFAULT_PLUGINS: &[&str] = &["story"];

/// How often an id is made anew when the one that was made is taken.
const ID_TRIES: u32 = 3;

/// What a new session is asked to be.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// Its id; made when absent.
    pub id: Option<SessionId>,
    /// The world that it plays in.
    pub world_id: Option<String>,
    /// BCP 47 tag; the server's own when absent.
    pub locale: Option<String>,
    /// Its plugins; [`DEFAULT_PLUGINS`] when absent. May be empty.
    pub plugins: Option<Vec<PluginId>>,
}

/// A session that was just made.
#[derive(Clone, Debug)]
pub struct Created {
    /// The session.
    pub session: Session,
    /// The only copy of its owner's token.
    pub owner_token: String,
}

/// Whether this token is the owner's. Takes the same time for every wrong token.
#[must_use]
pub fn is_owner(session: &Session, token: &str) -> bool {
    hash(token).ct_eq(&session.owner_hash).into()
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl Engine {
    /// Makes a session. The token is told once and stored nowhere.
    ///
    /// # Errors
    ///
    /// [`EngineError::UnknownPlugin`], [`EngineError::SessionExists`], or [`EngineError::Store`].
    pub async fn create_session(&self, new: NewSession) -> Result<Created, EngineError> {
        self.create_session_like(new, |_| ()).await
    }

    /// [`Engine::create_session`], of a record that `change` is made to first.
    pub(super) async fn create_session_like(
        &self,
        new: NewSession,
        change: impl Fn(&mut Session),
    ) -> Result<Created, EngineError> {
        let plugins = self.plugins_for(&new)?;
        let mut tries = 0;
        loop {
            let (mut session, owner_token) = self.draft(&new, plugins.clone());
            change(&mut session);
            match self.inner.store.create_session(&session).await {
                Ok(()) => {
                    return Ok(Created {
                        session,
                        owner_token,
                    });
                }
                Err(StoreError::Conflict(_)) if new.id.is_none() && tries < ID_TRIES => tries += 1,
                Err(StoreError::Conflict(_)) => return Err(EngineError::SessionExists(session.id)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn plugins_for(&self, new: &NewSession) -> Result<Vec<PluginId>, EngineError> {
        let known = |id: &PluginId| self.inner.registry.plugin(id).is_some();
        let mut chosen: Vec<PluginId> = Vec::new();
        match &new.plugins {
            Some(ids) => {
                for id in ids {
                    if !known(id) {
                        return Err(EngineError::UnknownPlugin(id.clone()));
                    }
                    if !chosen.contains(id) {
                        chosen.push(id.clone());
                    }
                }
            }
            None => chosen.extend(
                DEFAULT_PLUGINS
                    .iter()
                    .map(|id| PluginId::from(*id))
                    .filter(known),
            ),
        }
        Ok(chosen)
    }

    fn draft(&self, new: &NewSession, active_plugins: Vec<PluginId>) -> (Session, String) {
        let owner_token = BASE64_URL_SAFE_NO_PAD.encode(self.inner.ids.secret());
        let now = self.inner.clock.now();
        let setup_runtimes = self.setups(&active_plugins);
        let session = Session {
            id: new
                .id
                .clone()
                .unwrap_or_else(|| self.session_id(new.world_id.as_deref())),
            incarnation: Incarnation::of_nonce(&self.inner.ids.secret()),
            world_id: new.world_id.clone(),
            status: SessionStatus::Active,
            phase: if setup_runtimes.is_empty() {
                Phase::Playing
            } else {
                Phase::Setup
            },
            completed_player_turns: 0,
            setup_runtimes,
            locale: new
                .locale
                .clone()
                .unwrap_or_else(|| self.inner.config.locale.clone()),
            active_plugins,
            created_at: now,
            updated_at: now,
            owner_hash: hash(&owner_token),
        };
        (session, owner_token)
    }

    /// `<worldId or session>-<8 characters>`.
    fn session_id(&self, world: Option<&str>) -> SessionId {
        let random = hex(&self.inner.ids.secret()[..4]);
        SessionId::from(format!("{}-{random}", world.unwrap_or("session")))
    }

    fn setups(&self, plugins: &[PluginId]) -> BTreeMap<RuntimeId, Setup> {
        let active = self.inner.registry.active(plugins);
        let runtimes = active.flat_map(|plugin| {
            let manifest = plugin.manifest();
            manifest
                .runtimes
                .iter()
                .map(|runtime| (runtime, manifest.version.clone()))
        });
        let setups = runtimes.filter(|(runtime, _)| runtime.stage == Some(Stage::Setup));
        let pending = |plugin_version| Setup {
            state: SetupState::Pending,
            plugin_version,
            generation: 1,
            attempts: 0,
        };
        setups
            .map(|(runtime, version)| (runtime.id.clone(), pending(version)))
            .collect()
    }

    /// The session of this id.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn session(&self, id: &SessionId) -> Result<Session, EngineError> {
        let session = self.inner.store.session(id).await?;
        session.ok_or_else(|| EngineError::SessionNotFound(id.clone()))
    }

    /// The session for oneself.
    pub(super) async fn hold(&self, id: &SessionId) -> Result<SessionGuard, EngineError> {
        let within = self.inner.config.lock_within;
        let guard = self.inner.locks.lock(id, within).await;
        guard.ok_or_else(|| EngineError::Busy(id.clone()))
    }

    /// The session, when it takes actions.
    pub(super) async fn active_session(&self, id: &SessionId) -> Result<Session, EngineError> {
        let session = self.session(id).await?;
        match session.status {
            SessionStatus::Active => Ok(session),
            _ => Err(EngineError::SessionNotActive(session.id)),
        }
    }

    /// All sessions, oldest first; those of one world when one is given.
    ///
    /// # Errors
    ///
    /// [`EngineError::Store`].
    pub async fn sessions(&self, world: Option<&str>) -> Result<Vec<Session>, EngineError> {
        Ok(self.inner.store.sessions(world).await?)
    }

    /// Deletes a session: what runs in it is stopped, its subscriptions close at once.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), EngineError> {
        let session = self.session(id).await?;
        self.inner.active.cancel(id, CancelCause::Deleted);
        if !self.inner.store.delete_session(&session.key()).await? {
            return Err(EngineError::SessionNotFound(id.clone()));
        }
        self.inner
            .publisher
            .invalidate(&session.key(), Invalidation::Deleted);
        self.emitter_outside(&session.key()).tell(Happened::Deleted);
        Ok(())
    }

    /// Makes a session active, paused or ended.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`], [`EngineError::SessionEnded`] for a session that has ended,
    /// or [`EngineError::Store`].
    pub async fn set_status(
        &self,
        id: &SessionId,
        status: SessionStatus,
    ) -> Result<Session, EngineError> {
        let session = self.session(id).await?;
        if session.status == SessionStatus::Ended && status != SessionStatus::Ended {
            return Err(EngineError::SessionEnded(id.clone()));
        }
        let patch = SessionPatch {
            status: Some(status),
            ..SessionPatch::at(self.inner.clock.now())
        };
        self.patch(session, patch).await
    }

    /// Makes a plugin active in a session, or not.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`], [`EngineError::SessionNotActive`],
    /// [`EngineError::UnknownPlugin`], or [`EngineError::Store`].
    pub async fn set_plugin(
        &self,
        id: &SessionId,
        plugin: &PluginId,
        active: bool,
    ) -> Result<Session, EngineError> {
        let session = self.active_session(id).await?;
        if self.inner.registry.plugin(plugin).is_none() {
            return Err(EngineError::UnknownPlugin(plugin.clone()));
        }
        let mut plugins = session.active_plugins.clone();
        plugins.retain(|other| other != plugin);
        if active {
            plugins.push(plugin.clone());
        }
        let patch = SessionPatch {
            active_plugins: Some(plugins),
            ..SessionPatch::at(self.inner.clock.now())
        };
        self.patch(session, patch).await
    }

    async fn patch(&self, session: Session, patch: SessionPatch) -> Result<Session, EngineError> {
        let writes = vec![Write::PatchSession(patch)];
        let batch = Batch {
            session: session.key(),
            purpose: Purpose::Outside,
            writes,
        };
        self.inner.store.commit(batch).await?;
        self.session(&session.id).await
    }
}
