//! Periods, sizes and counts of the chat protocol. Periods are those before time scaling.

use std::time::Duration;

/// Time from one `ping` of a client to the next.
///
/// Source: seed 004, lines 3 and 31.
pub const CLIENT_PING_EVERY: Duration = Duration::from_secs(25);

/// Time from one protocol ping of the server to the next, on each socket from its own opening. A socket whose
/// last ping is not answered when the next is due is cut.
///
/// Source: public sources; the seed names the pings and no period.
pub const SERVER_PING_EVERY: Duration = Duration::from_secs(30);

/// How long a client waits for a `pong` before it takes the socket for dead. Source: public sources.
pub const PONG_WITHIN: Duration = Duration::from_secs(10);

/// First delay of a client that reconnects; it doubles up to [`RECONNECT_MAX`]. Source: public sources.
pub const RECONNECT_FIRST: Duration = Duration::from_millis(500);

/// Longest delay of a client that reconnects. Source: public sources.
pub const RECONNECT_MAX: Duration = Duration::from_secs(10);

/// Numbered frames of one turn that are kept for a replay; the oldest go first.
///
/// Source: public sources; the seed says only that the buffer ages out.
pub const KEPT_FRAMES: usize = 4_000;

/// How long a finished turn is kept for a replay, unless the session's next turn begins before.
///
/// Source: public sources.
pub const LINGER: Duration = Duration::from_secs(60);

/// Longest message that a server of ours takes, in bytes; a longer one closes the socket with code 1009.
///
/// Source: ours; no source that binds names a limit.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Longest queued text, in bytes. Source: ours; a queued text comes in one message, so this is that limit.
pub const MAX_QUEUED_BYTES: usize = MAX_MESSAGE_BYTES;

/// Bytes that wait to be written to one socket; a reader that lets more pile up is cut and replays later.
///
/// Source: ours.
pub const MAX_WAITING_BYTES: usize = 8 << 20;

/// Messages of one socket that a server of ours handles in a second; more have to wait on the socket.
///
/// Source: ours.
pub const MESSAGES_PER_SECOND: u32 = 500;

/// Sessions that one socket may be subscribed to. One more is refused with `chat:error`.
///
/// Source: ours.
pub const SUBSCRIPTIONS: usize = 256;

/// How long a background task's end may go unnoticed. Source: public sources (a debounce of 5 s).
pub const KILLED_TASK_WITHIN: Duration = Duration::from_secs(5);

/// Context limit of a model that nobody knows, in tokens. Source: public sources.
pub const CONTEXT_LIMIT: u64 = 200_000;

/// Longest command that `inputSummary` shows, in characters; three dots stand for the rest.
///
/// Source: public sources.
pub const SUMMARY_CHARS: usize = 200;
