//! What is proven, against what.

use tokio::sync::mpsc::UnboundedSender;

use super::ProveEvent;
use crate::run::RunPlan;

/// Everything that a proof needs to know.
#[derive(Clone, Debug)]
pub struct ProvePlan {
    /// The suite, the requirements to prove, and the conformant peer. Its `events` are told of the conformant run,
    /// its `intercept` and `require_all` are not used.
    pub run: RunPlan,
    /// Sabotages that run at the same time; at least 1. They mostly wait, so more than processors is right.
    pub jobs: usize,
    /// Who is told what happens.
    pub events: Option<UnboundedSender<ProveEvent>>,
}

impl ProvePlan {
    /// Proves the requirements of a run.
    pub fn new(run: RunPlan) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            run,
            jobs: processors * SABOTAGES_A_PROCESSOR,
            events: None,
        }
    }

    pub(super) fn tell(&self, event: ProveEvent) {
        if let Some(events) = &self.events {
            // Nobody has to listen.
            let _ = events.send(event);
        }
    }
}

/// A sabotage waits for scaled periods of the protocol most of its time.
const SABOTAGES_A_PROCESSOR: usize = 10;
