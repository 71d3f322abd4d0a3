//! Checks of area `covel-subscription` that need more than a rule, by subject:
//!
//! - [`replay`]: what a connection with a cursor gets; [`epoch`]: epochs, resets, replay states;
//! - [`heartbeat`]: periods of heartbeats and keepalives; [`topics`]: who gets what;
//! - [`view`]: the join of the session view and the subscription; [`publish`]: publishes that failed.

use super::Check;

pub mod epoch;
pub mod heartbeat;
pub mod publish;
pub mod replay;
pub mod topics;
pub mod view;

/// The checks of this area.
pub const CHECKS: &[&[Check]] = &[
    replay::CHECKS,
    epoch::CHECKS,
    heartbeat::CHECKS,
    topics::CHECKS,
    view::CHECKS,
    publish::CHECKS,
];
