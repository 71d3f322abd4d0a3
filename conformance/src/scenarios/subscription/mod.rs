//! Conversations about `GET /api/events/stream`, by subject:
//!
//! - [`connect`]: opening, heartbeats; [`topics`]: what is delivered to whom; [`access`]: tokens and tiers;
//! - [`publish`]: publishes that fail after a commit; [`relay`]: the model relay's stream.

use super::Scenario;

pub mod access;
pub mod connect;
pub mod publish;
pub mod relay;
pub mod topics;

/// The scenarios of this area.
pub const SCENARIOS: &[&[Scenario]] = &[
    connect::SCENARIOS,
    topics::SCENARIOS,
    access::SCENARIOS,
    publish::SCENARIOS,
    relay::SCENARIOS,
];
