//! Every period, size and count of the protocol, as a named constant.
//!
//! Durations are unscaled: what a real server waits. A server that runs at another speed scales them
//! with [`TimeScale`], and its profile declares the factor. Sizes and counts are never scaled.
//!
//! A constant marked public is stated by the public sources only; a check that leans on it accepts
//! other values. One marked ours is a bound that the seed asks for without a number.

use std::time::Duration;

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A factor on every protocol period: 1 is real time, 0.01 makes a heartbeat come every 300 ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeScale(f64);

/// This number is no time scale.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("time scale {0} is not between 0.0001 and 1000")]
pub struct BadTimeScale(pub f64);

impl TimeScale {
    /// Real time.
    pub const REAL: Self = Self(1.0);

    /// A factor from 0.0001 to 1000.
    ///
    /// # Errors
    ///
    /// [`BadTimeScale`] when it is outside that range or no number.
    pub fn new(factor: f64) -> Result<Self, BadTimeScale> {
        if (0.0001..=1000.0).contains(&factor) {
            Ok(Self(factor))
        } else {
            Err(BadTimeScale(factor))
        }
    }

    /// The factor itself.
    #[must_use]
    pub const fn factor(self) -> f64 {
        self.0
    }

    /// The period at this scale.
    #[must_use]
    pub fn scale(self, period: Duration) -> Duration {
        period.mul_f64(self.0)
    }

    /// The period at this scale, and never less than `floor`.
    #[must_use]
    pub fn scale_above(self, period: Duration, floor: Duration) -> Duration {
        self.scale(period).max(floor)
    }

    /// A limit on a single write, drain or close at this scale; see [`IO_FLOOR`].
    #[must_use]
    pub fn scale_io(self, period: Duration) -> Duration {
        self.scale_above(period, IO_FLOOR)
    }
}

impl Default for TimeScale {
    fn default() -> Self {
        Self::REAL
    }
}

/// The least write, drain or close limit after scaling: below it a loaded machine fails by itself.
/// Ours.
pub const IO_FLOOR: Duration = millis(250);

// Streams: writing.

/// Time between two `system.heartbeat` frames of one subscription. Source: seed 000, line 644.
pub const HEARTBEAT_EVERY: Duration = secs(30);
/// Frames of one connection that wait or are being written. Source: seed 000, line 679.
pub const WRITE_QUEUE_FRAMES: usize = 256;
/// Longest time that one write may take. Source: seed 000, line 680.
pub const WRITE_WITHIN: Duration = secs(2);
/// Longest time that draining the queue at the end may take. Source: seed 000, line 680.
pub const DRAIN_WITHIN: Duration = secs(2);
/// Longest time that closing may take. Source: seed 000, line 680.
pub const CLOSE_WITHIN: Duration = secs(2);
/// Subscriptions of one session at a time. Source: seed 000, line 681.
pub const SUBSCRIPTIONS_PER_SESSION: usize = 8;
/// Subscriptions of the whole process at a time. Source: seed 000, line 682.
pub const SUBSCRIPTIONS_PER_PROCESS: usize = 512;

// Streams: replay.

/// Events of one session that are kept for replay. Public.
pub const REPLAY_EVENTS: usize = 1000;
/// Live events that wait while a subscription replays. Public.
pub const REPLAY_LIVE_BUFFER: usize = 256;
/// Replay states that a server keeps when nothing pins them. Source: seed 000, line 736.
pub const TRACKED_SESSIONS: usize = 256;
/// Lifetime of a replay state that nobody uses. Public.
pub const REPLAY_IDLE: Duration = secs(30 * 60);

// The bus between processes.

/// Receiving states, one per origin and session. Source: seed 000, line 772.
pub const RECEIVE_STATES: usize = 1024;
/// Frames of one session that wait to be sent to other processes. Source: seed 000, line 773.
pub const OUTGOING_FRAMES_PER_SESSION: usize = 256;
/// Frames of one stream that wait for an earlier one. Public.
pub const PARKED_FRAMES: usize = 64;
/// Time after which a hole in a stream is given up. Public.
pub const HOLE_GIVEN_UP_AFTER: Duration = millis(2000);
/// Bytes of a frame that still travels inline. Public.
pub const INLINE_FRAME_BYTES: usize = 7500;
/// Events that are being persisted at a time. Public.
pub const PERSISTING_EVENTS: usize = 8;
/// Events that wait to be persisted. Public.
pub const PERSIST_QUEUE_EVENTS: usize = 1000;

// Sessions and locks.

/// Time that an interactive request waits for the session lock. Public.
pub const SESSION_LOCK_WITHIN: Duration = secs(30);
/// Lease of a setup or a deletion. Public.
pub const LIFECYCLE_LEASE: Duration = secs(10 * 60);
/// Overrides of runtime models of one session. Public.
pub const RUNTIME_MODEL_OVERRIDES: usize = 64;

// Background jobs.

/// Jobs that run at a time. Public.
pub const JOB_CONCURRENCY: usize = 4;
/// Lease of a claimed job. Public.
pub const JOB_LEASE: Duration = secs(120);
/// Time between two renewals of a lease: a third of it. Public.
pub const JOB_RENEW_EVERY: Duration = secs(40);
/// Time between two maintenance runs. Source: seed 000, line 449.
pub const JOB_MAINTENANCE_EVERY: Duration = secs(30);
/// Time after which failed maintenance is tried again. Source: seed 000, line 449.
pub const JOB_MAINTENANCE_RETRY: Duration = secs(1);
/// Final jobs that are kept per runtime and session. Source: seed 000, line 445.
pub const FINAL_JOBS_KEPT: usize = 20;
/// Queued jobs of one session. Public.
pub const QUEUED_JOBS_PER_SESSION: usize = 256;

// Approvals.

/// Lifetime of an approval for one call. Source: seed 000, line 1062.
pub const ONCE_GRANT: Duration = secs(60);
/// Pending approvals of one session. Public.
pub const APPROVALS_PER_SESSION: usize = 64;
/// Pending approvals of the whole process. Public.
pub const APPROVALS_PER_PROCESS: usize = 1024;
/// Lifetime of a pending approval. Public.
pub const APPROVAL_AGE: Duration = secs(60 * 60);

// Turns.

/// Least time before the deadline that allows a finalizer step. Source: seed 000, line 206.
pub const FINALIZER_MIN_TIME: Duration = secs(3);
/// Characters of a speaker's name. Source: seed 000, line 134.
pub const SPEAKER_CHARS: usize = 80;
/// Faults in a row that pause a plugin. Source: seed 000, line 328.
pub const FAULTS_TO_PAUSE: u32 = 3;
/// Failed compactions in a row that make a failed job event for the player. Source: seed 000, line 828.
pub const COMPACTION_FAILURES_TO_TELL: u32 = 3;
/// Targets of one `retry_failed_runtimes`, at least 1. Source: seed 000, line 898.
pub const RETRY_RUNTIMES: usize = 20;

// Queries.

/// Messages in the window of the session view. Public.
pub const VIEW_MESSAGES: usize = 80;
/// Execution steps in the window of the session view. Public.
pub const VIEW_STEPS: usize = 600;
/// Messages of a page when the request names no limit. Public.
pub const MESSAGES_PAGE: usize = 80;
/// Greatest limit of a page of messages. Public.
pub const MESSAGES_PAGE_MAX: usize = 500;
/// Newest events in one trace answer. Source: seed 000, line 1083.
pub const TRACE_EVENTS: usize = 5000;
/// Events of a trace page when the request names no limit. Public.
pub const TRACE_PAGE: usize = 400;
/// Greatest limit of a trace page, in events. Public.
pub const TRACE_PAGE_MAX: usize = 500;
/// Greatest limit of a list of turns. Public.
pub const TURNS_MAX: usize = 500;
/// Snapshots of a page when the request names no limit. Public.
pub const SNAPSHOTS_PAGE: usize = 50;
/// Greatest limit of a page of snapshots. Public.
pub const SNAPSHOTS_PAGE_MAX: usize = 500;
/// Duration from which a success is marked slow in a trace. Source: seed 000, line 1262.
pub const SLOW_FROM: Duration = millis(1000);
/// Characters of inline image data in a recorded request body. Source: seed 000, line 546.
pub const TRACE_INLINE_IMAGE_CHARS: usize = 4096;
/// Tokens that one image counts. Source: seed 000, line 545.
pub const IMAGE_TOKENS: u32 = 1600;

// Requests.

/// Bytes of an ordinary request body. Public.
pub const BODY_BYTES: usize = 1024 * 1024;
/// Bytes of a body of `/api/install*` and `/api/media`. Public.
pub const MEDIA_BODY_BYTES: usize = 20 * 1024 * 1024;
/// Bytes of a browser checkpoint. Public.
pub const CHECKPOINT_BODY_BYTES: usize = 64 * 1024 * 1024;
/// Characters of a request id, at least 1. Public.
pub const REQUEST_ID_CHARS: usize = 128;
/// Characters of a session id in an action, at least 1. Public.
pub const SESSION_ID_CHARS: usize = 256;
/// Characters of a session id at creation, at least 1. Public.
pub const NEW_SESSION_ID_CHARS: usize = 128;
/// Characters of a world id, at least 1. Public.
pub const WORLD_ID_CHARS: usize = 64;
/// Characters of a model name, at least 1. Public.
pub const MODEL_CHARS: usize = 256;
/// Characters of what a player says, at least 1. Public.
pub const SAY_CHARS: usize = 100_000;
/// Characters of a command line, at least 1. Public.
pub const COMMAND_CHARS: usize = 10_000;
/// Characters of a lore override. Public.
pub const LORE_CHARS: usize = 500_000;
/// Characters of a runtime id in an action, at least 1. Public.
pub const RUNTIME_ID_CHARS: usize = 200;
/// Characters of a turn id in an action, at least 1. Public.
pub const TURN_ID_CHARS: usize = 256;
/// Interaction answers of one action, at least 1. Public.
pub const SUBMISSIONS: usize = 20;
/// Actions of one `submit_actions`, at least 1. Ours.
pub const ACTIONS: usize = 20;
/// Bytes of a plugin data value that a request may store. Public.
pub const PLUGIN_DATA_VALUE_BYTES: usize = 64 * 1024;

// Rates, per client address and path.

/// Window of every rate limit. Public.
pub const RATE_WINDOW: Duration = secs(60);
/// Actions in a window. Public.
pub const ACTIONS_PER_WINDOW: u32 = 30;
/// Subscriptions opened in a window, by default. Public.
pub const SUBSCRIPTIONS_PER_WINDOW: u32 = 60;
/// Steers, and likewise aborts, in a window. Public.
pub const CONTROLS_PER_WINDOW: u32 = 30;
/// Message pages in a window. Public.
pub const MESSAGE_PAGES_PER_WINDOW: u32 = 120;
/// Message syncs in a window. Public.
pub const MESSAGE_SYNCS_PER_WINDOW: u32 = 60;
/// Forks of one session in a window. Public.
pub const FORKS_PER_WINDOW: u32 = 10;

// The model relay.

/// Bytes of one post of response bytes. Source: seed 000, line 786.
pub const RELAY_POST_BYTES: usize = 256 * 1024;
/// Time in which a client collects bytes for one post. Source: seed 000, line 786.
pub const RELAY_BATCH: Duration = millis(50);
/// Time between two comment lines of the relay stream. Source: seed 000, line 639.
pub const RELAY_COMMENT_EVERY: Duration = secs(15);

// Clients.

/// Time between two recovery polls after a success. Source: seed 000, line 886.
pub const POLL_AFTER_SUCCESS: Duration = secs(3);
/// Times before the next recovery poll after one, two, ... failures; the last one stays. Source: seed
/// 000, line 886.
pub const POLL_AFTER_FAILURES: [Duration; 5] = [secs(3), secs(6), secs(12), secs(24), secs(30)];
/// First time before a subscription is opened again; it doubles. Public.
pub const RECONNECT_FIRST: Duration = secs(1);
/// Longest time before a subscription is opened again. Public.
pub const RECONNECT_MAX: Duration = secs(30);
/// Refusals in a row (4xx but 408 and 429) after which a client gives up. Public.
pub const REFUSALS_TO_GIVE_UP: u32 = 5;
/// Retries of a GET after 502, 503, 504 or a network error. Public.
pub const GET_RETRIES: u32 = 5;
/// First time before a GET is retried; it doubles. Public.
pub const GET_RETRY_FIRST: Duration = millis(250);
/// Longest time before a GET is retried. Public.
pub const GET_RETRY_MAX: Duration = millis(2000);
/// Executions that a client keeps per session. Public.
pub const CLIENT_EXECUTIONS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundredth_of_real_time_beats_every_300_ms() {
        let scale = TimeScale::new(0.01).unwrap();
        assert_eq!(scale.scale(HEARTBEAT_EVERY), millis(300));
    }

    #[test]
    fn a_write_limit_never_falls_below_its_floor() {
        assert_eq!(
            TimeScale::new(0.01).unwrap().scale_io(WRITE_WITHIN),
            IO_FLOOR
        );
        assert_eq!(TimeScale::REAL.scale_io(WRITE_WITHIN), WRITE_WITHIN);
    }

    #[test]
    fn a_scale_that_is_no_speed_is_refused() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9] {
            assert!(TimeScale::new(factor).is_err(), "{factor}");
        }
        let text = TimeScale::new(0.0).unwrap_err().to_string();
        assert_eq!(text, "time scale 0 is not between 0.0001 and 1000");
    }
}
