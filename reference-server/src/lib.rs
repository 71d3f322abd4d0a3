//! The reference server: one engine, three protocol faces.
//!
//! In reading order, from what is decided to how it is said:
//!
//! - [`engine`]: sessions, turns, the commit boundary, background jobs;
//! - [`store`]: where they are kept;
//! - [`gateway`]: how models are called;
//! - [`bus`]: how committed events reach those who listen;
//! - [`faces`]: how all that looks on the wire;
//! - [`fixtures`]: the plugin that provokes what no player action does;
//! - [`config`], [`serve`]: a running server.
//!
//! A request flows one way: face (decode), engine (decide), store (commit, one transaction), bus
//! (publish after the commit), face (encode). The engine knows no face, faces hold no business state.

pub mod bus;
pub mod config;
pub mod engine;
pub mod faces;
pub mod fixtures;
pub mod gateway;
pub mod serve;
pub mod store;

pub use config::{Config, LlmTarget, StoreChoice, Tier};
pub use serve::{Server, StartError};
