//! The bodies of the requests that change something.
//!
//! - [`actions`]: `POST /api/actions`, its five types and their bounds;
//! - [`sessions`]: making, changing and forking sessions, and control during a turn;
//! - [`plugins`]: plugin RPC, approvals, plugin data and suspensions.
//!
//! Members are written as in the seed, `name?: Type` for one that may be absent. Objects are open
//! unless a source says that unknown members are refused.

pub mod actions;
pub mod plugins;
pub mod sessions;

pub use actions::{Action, ActionFault, ActionRequest, ActionType, Command};
