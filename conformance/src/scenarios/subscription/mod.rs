//! Conversations about `GET /api/events/stream`, by subject:
//!
//! - [`connect`]: opening, heartbeats; [`topics`]: what is delivered to whom; [`access`]: tokens and tiers;
//! - [`resume`]: reconnecting with a cursor; [`capacity`]: replay states under pressure, quotas;
//! - [`publish`]: publishes that fail after a commit; [`relay`]: the model relay's stream.

use super::Scenario;

pub mod access;
pub mod capacity;
pub mod connect;
pub mod publish;
pub mod relay;
pub mod resume;
pub mod topics;

/// The scenarios of this area.
pub const SCENARIOS: &[&[Scenario]] = &[
    connect::SCENARIOS,
    resume::SCENARIOS,
    capacity::SCENARIOS,
    topics::SCENARIOS,
    access::SCENARIOS,
    publish::SCENARIOS,
    relay::SCENARIOS,
];
