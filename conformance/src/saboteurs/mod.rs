//! The saboteurs: small deliberate faults, which prove that the checks can fail.
//!
//! A saboteur sits in a [`proxy`] between the harness and a conformant peer, so that the peer itself stays
//! free of faults. Most are data: [`generic`] executes the `rewrite` of a catalogue entry. A fault that needs
//! memory or timing of its own is a [`Saboteur`] here, one file a catalogue area, listed in that file's
//! `SABOTEURS`.
//!
//! - [`saboteur`]: what a saboteur is; [`draft`]: a frame that is being changed; [`log`]: what passed before;
//! - [`channel`]: what it does to a WebSocket or a channel of lines; [`bridge`]: the way of messages through it;
//! - [`adapters`]: saboteurs made of one function; [`subscription`], [`sse`], [`chat_ws`]: the coded ones of an area;
//! - [`json`] and [`template`]: changes of documents and texts, as the catalogue writes them;
//! - [`proxy`] and [`pump`]: the sockets, and the way of one response body.

use std::sync::Arc;

use turnwire_spec::catalogue::Entry;

pub mod adapters;
pub mod bridge;
pub mod channel;
pub mod chat_ws;
pub mod draft;
pub mod generic;
pub mod json;
pub mod log;
pub mod proxy;
mod pump;
pub mod saboteur;
pub mod session_update;
pub mod sse;
pub mod subscription;
pub mod template;

pub use channel::{Act, ChannelInfo, ChannelKind, Message, MessageRewriter, OutMessage, Outlet};
pub use draft::Draft;
pub use proxy::{Proxy, ProxyError};
pub use saboteur::{Answer, Conformant, FrameRewriter, Out, RequestInfo, Saboteur, Treatment};

/// A requirement and the saboteur that breaks it.
#[derive(Clone, Copy, Debug)]
pub struct Sabotage {
    /// Requirement id, such as `COV-SUB-102`.
    pub id: &'static str,
    /// Makes a fresh one, without memory; called once for each run.
    pub make: fn() -> Arc<dyn Saboteur>,
}

impl Sabotage {
    /// Binds a saboteur to a requirement.
    pub const fn new(id: &'static str, make: fn() -> Arc<dyn Saboteur>) -> Self {
        Self { id, make }
    }
}

/// The coded saboteurs, area by area.
pub const SABOTEURS: &[&[&[Sabotage]]] = &[
    subscription::SABOTEURS,
    session_update::SABOTEURS,
    sse::SABOTEURS,
    chat_ws::SABOTEURS,
];

/// The coded saboteur of a requirement.
pub fn coded(id: &str) -> Option<&'static Sabotage> {
    SABOTEURS
        .iter()
        .copied()
        .flatten()
        .copied()
        .flatten()
        .find(|sabotage| sabotage.id == id)
}

/// A fresh saboteur of a requirement: the coded one, or else the entry's `rewrite`.
pub fn for_requirement(entry: &Entry) -> Option<Arc<dyn Saboteur>> {
    coded(&entry.id)
        .map(|sabotage| (sabotage.make)())
        .or_else(|| {
            let rewrite = entry.rewrite.as_ref()?;
            Some(Arc::new(generic::Generic::new(rewrite)))
        })
}
