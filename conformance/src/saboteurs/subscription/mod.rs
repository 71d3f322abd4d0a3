//! Coded saboteurs of area `covel-subscription`, by subject as the checks are.
//!
//! - [`replay`]: what a connection with a cursor gets; [`epoch`]: epochs, resets, replay states;
//! - [`heartbeat`]: keepalives; [`topics`]; [`view`]: the join with the view; [`publish`]: failed publishes.

use super::Sabotage;

pub mod epoch;
pub mod heartbeat;
pub mod publish;
pub mod replay;
pub mod topics;
pub mod view;

/// The saboteurs of this area.
pub const SABOTEURS: &[&[Sabotage]] = &[
    replay::SABOTEURS,
    epoch::SABOTEURS,
    heartbeat::SABOTEURS,
    topics::SABOTEURS,
    view::SABOTEURS,
    publish::SABOTEURS,
];
