//! The Covel face: `/api/...` over HTTP, with two event streams.
//!
//! - [`actions`]: `POST /api/actions` and its stream; [`control`]: steering, stopping, execution state;
//! - [`subscription`]: `GET /api/events/stream`; [`frames`]: the bytes of every frame;
//! - [`sessions`], [`queries`], [`traces`], [`plugin_data`]: reading and writing state;
//! - [`suspensions`], [`snapshots`]: what waits for the player, and copies of a session;
//! - [`rpc`]: calls to plugins, and approvals; [`relay`]: the model relay; [`debug`]: event injection;
//! - [`request`], [`auth`], [`rates`]: what is checked before all of them;
//! - [`errors`]: how refusals look; [`gate`]: what every request passes.
//!
//! Nothing is decided here that the engine could decide, and nothing is kept here that a restart may
//! not forget.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodFilter, MethodRouter, delete, get, on, post, put};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use turnwire_spec::covel::limits::{self, TimeScale};

use crate::bus::Bus;
use crate::engine::Engine;
use crate::engine::ports::Clock;
use crate::faces::doors::Doors;
use crate::store::Store;

pub mod actions;
pub mod auth;
pub mod control;
pub mod debug;
pub mod errors;
pub mod frames;
pub mod gate;
pub mod plugin_data;
pub mod queries;
pub mod rates;
pub mod relay;
pub mod request;
pub mod rpc;
pub mod sessions;
pub mod snapshots;
pub mod subscription;
pub mod suspensions;
pub mod traces;
mod words;

use auth::Guard;
use errors::ApiError;
use rates::{Places, Rates};
use relay::Relay;

/// What the handlers of this face share.
pub struct Covel {
    engine: Engine,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    bus: Bus,
    guard: Guard,
    rates: Rates,
    places: Places,
    relay: Arc<Relay>,
    scale: TimeScale,
    settings: Settings,
    boot_id: String,
    stopping: CancellationToken,
}

/// What a deployment decides about this face.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether events may be injected.
    pub debug_emit: bool,
    /// Whether requests are counted.
    pub rate_limits: bool,
    /// Under which names it may be asked, and by whose pages.
    pub doors: Doors,
    /// What the health query says about the store.
    pub storage: &'static str,
}

impl Covel {
    /// The face of this engine, which publishes on this bus.
    ///
    /// `stopping` is the server's sign that it goes down.
    #[must_use]
    pub fn new(
        engine: Engine,
        bus: Bus,
        relay: Arc<Relay>,
        guard: Guard,
        scale: TimeScale,
        settings: Settings,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            store: Arc::clone(engine.store()),
            clock: Arc::clone(engine.clock()),
            boot_id: engine.ids().id("boot"),
            rates: Rates::new(settings.rate_limits, scale.scale(limits::RATE_WINDOW)),
            places: Places::new(
                limits::SUBSCRIPTIONS_PER_SESSION,
                limits::SUBSCRIPTIONS_PER_PROCESS,
            ),
            engine,
            bus,
            guard,
            relay,
            scale,
            settings,
            stopping,
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// The routes of this face.
pub fn router(face: Arc<Covel>) -> Router {
    Router::new()
        .route("/api/health", get(queries::health))
        .route("/api/worlds", get(queries::worlds))
        .route("/api/actions", post(actions::act))
        .route(
            "/api/events/stream",
            stream_of(on(MethodFilter::GET, subscription::subscribe)),
        )
        .route("/api/events/emit", post(debug::emit))
        .route(
            "/api/model-relay/stream",
            stream_of(on(MethodFilter::GET, relay::stream)),
        )
        .route("/api/model-relay/requests/{id}/{part}", post(relay::answer))
        .route("/api/approvals/{id}/decision", post(rpc::decide))
        .route("/api/traces/{id}", get(traces::events))
        .route("/api/traces/{id}/turns/page", get(traces::turns))
        .route("/api/sessions", get(sessions::list).post(sessions::create))
        .route(
            "/api/sessions/{id}",
            get(sessions::read)
                .patch(sessions::change)
                .delete(sessions::delete),
        )
        .nest("/api/sessions/{id}", of_session())
        .fallback(gate::no_route)
        .method_not_allowed_fallback(gate::no_method)
        .layer(axum::middleware::from_fn_with_state(
            Arc::clone(&face),
            gate::pass,
        ))
        .with_state(face)
}

/// Everything about one session.
fn of_session() -> Router<Arc<Covel>> {
    Router::new()
        .route("/view", get(queries::view))
        .route("/messages", get(queries::messages))
        .route("/messages/page", get(queries::messages_page))
        .route("/characters", get(queries::characters))
        .route("/state", get(queries::state))
        .route("/suspensions", get(suspensions::list))
        .route("/suspensions/{item}", delete(suspensions::drop))
        .route("/suspensions/{item}/resume", post(suspensions::resume))
        .route("/snapshots", get(snapshots::list).post(snapshots::take))
        .route("/snapshots/{snapshot}", get(snapshots::read))
        .route("/fork", post(snapshots::fork))
        .route("/ui-slots", get(queries::ui_slots))
        .route("/runtime-jobs", get(queries::jobs))
        .route("/runtime-jobs/{job}/cancel", post(queries::cancel_job))
        .route("/execution", get(control::execution))
        .route("/steer", post(control::steer))
        .route("/abort", post(control::abort))
        .route("/plugins", get(sessions::plugins))
        .route(
            "/plugins/{plugin}",
            put(sessions::enable).delete(sessions::disable),
        )
        .route("/plugin-data/{plugin}/{namespace}", get(plugin_data::list))
        .route(
            "/plugin-data/{plugin}/{namespace}/{key}",
            get(plugin_data::read)
                .put(plugin_data::write)
                .delete(plugin_data::delete),
        )
        .route("/plugin-rpc", post(rpc::call))
        .route(
            "/approvals",
            get(rpc::approvals).delete(rpc::clear_approvals),
        )
}

/// A stream answers GET alone: a HEAD would open it and never read it.
fn stream_of(route: MethodRouter<Arc<Covel>>) -> MethodRouter<Arc<Covel>> {
    route.on(MethodFilter::HEAD, async || ApiError::no_method("HEAD"))
}
