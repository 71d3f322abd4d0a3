//! Sizes, counts and periods of the protocol, as named constants.
//!
//! The seed gives no number. Those marked public are of the public sources; the others are ours: bounds that a
//! server needs so that no peer can make it grow.

use std::time::Duration;

/// Longest line that is read, in bytes without its end. A longer one is skipped to its end and refused. Ours.
pub const LINE_BYTES: usize = 1 << 20;

/// Requests of one connection that are under way at a time; one more is refused as `ServerBusy`. Ours.
pub const REQUESTS_AT_ONCE: usize = 64;

/// Subscriptions of one connection; one more is refused as `InvalidRequest`. Ours.
pub const SUBSCRIPTIONS: usize = 256;

/// Messages that wait for one connection; one more ends it. Its client rebuilds from the facts. Ours.
pub const WAITING_MESSAGES: usize = 4096;

/// Bytes that wait for one connection; more end it. Ours.
pub const WAITING_BYTES: usize = 8 << 20;

/// Live events that wait while a subscription is rebuilt; one more ends the connection. Ours.
pub const STAGED_EVENTS: usize = 4096;

/// Longest time that one write may take before the connection is broken off, before scaling. Ours.
pub const WRITE_WITHIN: Duration = Duration::from_secs(10);

/// Longest input of a prompt, in characters. Ours; the same as a player's text in Covel.
pub const INPUT_CHARS: usize = 4_000;

/// Longest request id that is read, in bytes. Ours.
pub const REQUEST_ID_BYTES: usize = 256;

/// Characters of `args_preview`. Public.
pub const ARGS_PREVIEW_CHARS: usize = 500;

/// Sessions that `session/list` gives when it is not told how many, and at most. Public.
pub const LISTED: (u64, u64) = (20, 100);

/// Longest session id. Public: a letter or digit, then up to 127 of letters, digits, `_ . -`, and no `..`.
pub const SESSION_ID_CHARS: usize = 128;

/// Whether a text has the form of a session id.
#[must_use]
pub fn is_session_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    text.len() <= SESSION_ID_CHARS
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(plain)
        && !text.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_a_plain_short_name() {
        assert!(is_session_id("20260301_090000_0a1b2c3d"));
        assert!(is_session_id("s"));
        for wrong in ["", "-s", "a..b", "a b", "../x", "ä", &"x".repeat(129)] {
            assert!(!is_session_id(wrong), "{wrong}");
        }
    }
}
