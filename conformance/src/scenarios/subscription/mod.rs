//! Conversations about `GET /api/events/stream`, by subject:
//!
//! - [`connect`]: opening, heartbeats; [`topics`]: what is delivered to whom; [`access`]: tokens and tiers;
//! - [`resume`]: reconnecting with a cursor; [`capacity`]: replay states under pressure, quotas;
//! - [`publish`]: publishes that fail after a commit; [`relay`]: the model relay's stream.

use std::time::Duration;

use super::Scenario;
use crate::{
    drivers::http::EventStream,
    stage::Stage,
    transcript::views::{covel::cursor, stream::StreamFrame},
};

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

/// How long a connection is watched for frames that ought not to come, unscaled.
const QUIET: Duration = Duration::from_millis(60);

/// Reads a new connection until it has caught up from the cursor that it asked for, was reset, or nothing more
/// comes; then for [`QUIET`] more.
async fn read_replay(
    stage: &Stage,
    stream: &mut EventStream,
    asked: Option<&str>,
) -> Vec<StreamFrame> {
    const SOON: Duration = Duration::from_secs(2);
    let connected = stream
        .read_until("system.connected", stage.patience(SOON))
        .await;
    let mut frames: Vec<StreamFrame> = connected.into_iter().collect();
    let now = frames
        .first()
        .and_then(|frame| cursor(frame.member("cursor")?.as_str()?));
    let behind = asked.and_then(cursor) != now;
    if asked.is_some() && behind {
        let caught_up = |frame: &StreamFrame| {
            frame.event_type() == "system.reset" || frame.frame.id().and_then(cursor) == now
        };
        frames.extend(stream.read_up_to(stage.patience(SOON), caught_up).await);
    }
    frames.extend(stream.read_for(QUIET).await);
    frames
}
