//! The WHATWG event stream (`text/event-stream`): read for its bytes, read for its meaning, written.
//!
//! - [`frames`] and [`Recorder`] keep every byte of every [`Line`] of every [`Frame`] and list each
//!   [`Violation`] with its offset. Checks use these, because checks judge bytes.
//! - [`Decoder`] gives the [`Event`]s that an `EventSource` would dispatch, and allocates nothing
//!   per event. Clients use this.
//! - [`encode`] writes events, comments and reconnection times. Servers use this.
//!
//! What a frame's data means is not here (see the protocol modules), nor is reconnecting. Nothing
//! in this module does I/O, and nothing in it fails on what a peer sent: a fault is a report.
//!
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>

mod bom;
mod decoder;
pub mod encode;
mod events;
mod field;
mod frame;
mod limits;
mod line;
#[doc(hidden)]
pub mod properties;
mod recorder;
mod text;
mod violation;

pub use decoder::{Decoder, Event, Overflow};
pub use encode::{EncodeError, Encoder};
pub use events::Events;
pub use frame::{Frame, Frames};
pub use limits::{KEPT_BYTES, Limit, Limits};
pub use line::{Line, LineKind, Terminator};
pub use recorder::{Recorder, frames};
pub use violation::{Violation, ViolationKind};
