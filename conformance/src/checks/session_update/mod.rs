//! Checks of area `session-update`.
//!
//! - [`envelope`]: the wrapper, its members, identities, the order;
//! - [`classes`]: durable and incremental, and that nothing is held back or changed;
//! - [`tasks`]: tasks across turns;
//! - [`connections`]: who hears what, and how each counts;
//! - [`rebuild`]: what comes after a reconnect, and what is stored;
//! - [`client`]: what a client sends and shows.

use super::Check;

pub mod classes;
pub mod client;
pub mod connections;
pub mod envelope;
pub mod rebuild;
pub mod tasks;

/// The checks of this area, list by list.
pub const CHECKS: &[&[Check]] = &[
    envelope::CHECKS,
    classes::CHECKS,
    tasks::CHECKS,
    connections::CHECKS,
    rebuild::CHECKS,
    client::CHECKS,
];
