//! The chat face: one WebSocket at `/ws` for all chats, and the transcripts of chats over HTTP.
//!
//! - [`upgrade`]: from a request to a socket; [`auth`]: the hook that it and every route passes;
//! - `socket`: one socket, its keepalive and its end; `outbox`: what waits to be written to it;
//! - `requests`: the frames of a client, as calls of the engine;
//! - `hub`: who gets what: subscriptions, turns with their buffers, replay and resync;
//! - `turn`: what happens in a turn, as numbered frames;
//! - [`rest`]: transcripts, and the OpenAPI document of the HTTP routes.
//!
//! A chat is a session of the engine, its project the session's world. Whatever begins a turn, a frame, a queue,
//! another face, its frames come from what the engine tells of the session. Nothing here outlives the process,
//! and nothing decides: queue, commands and recovery are the engine's.
//!
//! Source: seed 004.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwire_spec::chat_ws::{PATH, SCRATCH};
use turnwire_spec::covel::limits::TimeScale;

use crate::bus::Bus;
use crate::engine::Engine;
use crate::engine::happening::Happening;
use crate::engine::ids::SessionId;

pub mod auth;
mod hub;
mod outbox;
mod requests;
pub mod rest;
mod socket;
mod turn;
pub mod upgrade;

use auth::ChatGuard;
use hub::Hub;

/// What the handlers of this face share.
pub struct Chat {
    engine: Engine,
    hub: Hub,
    guard: ChatGuard,
    settings: Settings,
    scale: TimeScale,
    life: Lifeline,
    places: Arc<Semaphore>,
    /// Everything was told: sockets end.
    told: CancellationToken,
}

/// What a deployment decides about this face.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The projects that exist, besides `scratch`.
    pub projects: Vec<String>,
    /// The plugins of a new chat.
    pub plugins: Vec<String>,
    /// Context limits by model, in tokens; of other models the default is told.
    pub context_limits: Vec<(String, u64)>,
    /// Numbered frames that are kept of a turn.
    pub kept_frames: usize,
    /// Sockets at a time; more are refused.
    pub max_sockets: usize,
}

impl Settings {
    fn has_project(&self, slug: &str) -> bool {
        slug == SCRATCH || self.projects.iter().any(|project| project == slug)
    }
}

/// How sockets end with the server.
#[derive(Clone, Debug)]
pub struct Lifeline {
    /// The server takes nothing new.
    pub stopping: CancellationToken,
    /// The server is dead.
    pub killed: CancellationToken,
    /// What a shutdown waits for.
    pub tasks: TaskTracker,
}

impl Chat {
    /// The face of this engine, which hears on this bus what happens. It listens until the bus is closed.
    #[must_use]
    pub fn new(
        engine: Engine,
        bus: &Bus,
        guard: ChatGuard,
        settings: Settings,
        scale: TimeScale,
        life: Lifeline,
    ) -> Arc<Self> {
        let face = Arc::new(Self {
            hub: Hub::new(&settings, scale, engine.default_model()),
            places: Arc::new(Semaphore::new(settings.max_sockets)),
            engine,
            guard,
            settings,
            scale,
            life,
            told: CancellationToken::new(),
        });
        // The bus must not wait, and a session's project has to be read: so happenings go over a queue, in order.
        let (sender, heard) = mpsc::unbounded_channel();
        bus.watch_all(Arc::new(move |happening: &Arc<Happening>| {
            // Nobody listens any more once the server is dead.
            let _ = sender.send(Arc::clone(happening));
        }));
        let (killed, told) = (face.life.killed.clone(), face.told.clone());
        let telling = tell(Arc::clone(&face), heard);
        face.life.tasks.spawn(async move {
            killed.run_until_cancelled(telling).await;
            told.cancel();
        });
        face
    }

    /// The project of a session.
    async fn slug(&self, session: &SessionId) -> String {
        let session = self.engine.session(session).await.ok();
        session
            .and_then(|session| session.world_id)
            .unwrap_or_else(|| SCRATCH.to_owned())
    }
}

/// Brings what happens to the hub, until the bus is closed.
async fn tell(face: Arc<Chat>, mut heard: mpsc::UnboundedReceiver<Arc<Happening>>) {
    while let Some(happening) = heard.recv().await {
        let session = &happening.session.id;
        if !face.hub.knows_slug(session) {
            let slug = face.slug(session).await;
            face.hub.name(session, slug);
        }
        face.hub.apply(&happening);
    }
}

/// The routes of this face.
pub fn router(face: Arc<Chat>) -> Router {
    let chats = Router::new()
        .route("/api/chats", get(rest::list))
        .route("/api/chats/{id}/messages", get(rest::messages))
        .route(PATH, get(upgrade::upgrade))
        .layer(axum::middleware::from_fn_with_state(
            Arc::clone(&face),
            auth::hook,
        ));
    Router::new()
        .route("/api/openapi.json", get(rest::openapi))
        .merge(chats)
        .method_not_allowed_fallback(rest::no_method)
        .with_state(face)
}
