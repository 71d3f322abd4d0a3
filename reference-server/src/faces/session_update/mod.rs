//! The session-update face: lines of JSON over a loopback socket, or over the process's own stdin and stdout.
//!
//! - [`connection`]: one connection from its first line to its end;
//! - [`lines`]: reading bounded lines; [`outbox`]: what waits to be written, and its sequence;
//! - [`requests`]: what a line asks; [`methods`]: what is done about it; [`errors`]: how it is refused;
//! - [`subscriptions`]: rebuilding a session from its facts, then following it without a gap or a repetition;
//! - [`translate`]: the engine's happenings as events of the protocol.
//!
//! The sequence, the subscriptions and the running requests of a connection end with it. Nothing else is kept
//! here: sessions, turns and tasks are the engine's, and what a reconnect is given comes from the store.
//!
//! There is no access control: whoever reaches the socket may do everything. That is why the server binds it to
//! loopback addresses only.

use std::sync::Arc;

use turnwire_spec::covel::limits::TimeScale;

use crate::bus::Bus;
use crate::engine::Engine;
use crate::engine::ids::PluginId;

pub mod connection;
mod errors;
mod lines;
mod methods;
mod outbox;
mod requests;
mod subscriptions;
pub mod translate;

pub use connection::{AtEnd, Ends, serve};

/// What the connections of this face share.
pub struct SessionUpdate {
    engine: Engine,
    bus: Bus,
    scale: TimeScale,
    /// The plugins of a session for which none are named.
    plugins: Vec<PluginId>,
}

impl SessionUpdate {
    /// The face of this engine, which tells on this bus.
    #[must_use]
    pub fn new(engine: Engine, bus: Bus, scale: TimeScale, plugins: Vec<PluginId>) -> Arc<Self> {
        Arc::new(Self {
            engine,
            bus,
            scale,
            plugins,
        })
    }
}
