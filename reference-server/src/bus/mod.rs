//! The event bus: from a committed event to everybody who listens.
//!
//! - [`hub`]: the bus of one process, which the engine publishes to;
//! - [`listener`]: one subscriber's place on it;
//! - [`replay`]: what a reconnecting subscriber can still be given;
//! - [`sender`], [`receiver`]: the two ends of the transport between processes, without a transport.
//!
//! The bus knows no wire: what a frame looks like is for the faces. It keeps nothing in the store;
//! a replay comes from memory.

pub mod hub;
pub mod listener;
pub mod receiver;
pub mod replay;
pub mod sender;

pub use hub::{Bus, BusLimits, Emitted, Watch, Watching};
pub use listener::{Ending, Listener, Next, Subscription};
