//! When to try again.
//!
//! A provider says how long to wait in `retry-after-ms`, in `retry-after` as seconds or as an HTTP date,
//! or in the body (`RetryInfo`). What makes no sense counts as not said: then the wait grows from attempt
//! to attempt. A wait longer than the policy allows ends the attempts.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

use super::error::{ErrorKind, GatewayError};
use super::settings::RetryPolicy;

impl RetryPolicy {
    /// How long to wait before a target is tried again after this failed `attempt`, counted from 1; `None`
    /// when it is not. A provider that was silent is not asked again: the caller's patience is used up.
    pub(super) fn wait_after(&self, attempt: u32, error: &GatewayError) -> Option<Duration> {
        let helps = error.is_retryable() && error.kind != ErrorKind::Timeout;
        if attempt > self.retries || !helps {
            return None;
        }
        let asked = error.retry_after.unwrap_or_default();
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let backoff = self.backoff.saturating_mul(doubled).min(self.max_backoff);
        (asked <= self.max_wait).then(|| backoff.max(asked))
    }
}

/// How long the headers of an answer ask to wait.
pub(super) fn asked(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let millis = || {
        let millis: f64 = text("retry-after-ms")?.parse().ok()?;
        duration(millis / 1000.0)
    };
    let after = || {
        let text = text(RETRY_AFTER.as_str())?;
        seconds(text).or_else(|| until(text, now))
    };
    millis().or_else(after)
}

/// What the headers say about trying again.
pub(super) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get("x-should-retry")?.to_str().ok()? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// A number of seconds, also with a fraction.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    duration(text.trim().parse().ok()?)
}

fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// The time until an HTTP date that is still to come.
fn until(text: &str, now: Timestamp) -> Option<Duration> {
    let date = DateTimeParser::new().parse_timestamp(text).ok()?;
    Duration::try_from(date.duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::Target;

    const NOW: &str = "2026-11-30T08:00:00Z";

    fn wait(headers: &[(&'static str, &'static str)]) -> Option<Duration> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        asked(&map, NOW.parse().unwrap())
    }

    #[test]
    fn the_wait_is_read_in_all_its_forms() {
        assert_eq!(wait(&[("retry-after", "2")]), Some(Duration::from_secs(2)));
        assert_eq!(
            wait(&[("retry-after", " 0.5 ")]),
            Some(Duration::from_millis(500))
        );
        assert_eq!(
            wait(&[("retry-after", "Mon, 30 Nov 2026 08:00:03 GMT")]),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            wait(&[("retry-after-ms", "1500"), ("retry-after", "60")]),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(
            wait(&[("retry-after-ms", "soon"), ("retry-after", "60")]),
            Some(Duration::from_secs(60))
        );
    }

    #[test]
    fn a_wait_that_makes_no_sense_counts_as_not_said() {
        for text in [
            "soon",
            "-1",
            "NaN",
            "inf",
            "",
            "Mon, 30 Nov 2026 07:00:00 GMT",
            "1e300",
        ] {
            assert_eq!(wait(&[("retry-after", text)]), None, "{text}");
        }
        assert_eq!(wait(&[]), None);
    }

    fn after(attempt: u32, kind: ErrorKind, asked: Option<u64>, says: Option<bool>) -> Option<u64> {
        let error = GatewayError {
            retry_after: asked.map(Duration::from_secs),
            should_retry: says,
            ..GatewayError::new(kind, "m", Target::default())
        };
        let policy = RetryPolicy {
            retries: 6,
            ..RetryPolicy::default()
        };
        let wait = policy.wait_after(attempt, &error)?;
        Some(u64::try_from(wait.as_millis()).unwrap())
    }

    #[test]
    fn waits_grow_to_their_limit_and_give_way_to_what_is_asked_for() {
        let busy = ErrorKind::RateLimited;
        assert_eq!(after(1, busy, None, None), Some(500));
        assert_eq!(after(3, busy, None, None), Some(2000));
        assert_eq!(after(6, busy, None, None), Some(8000));
        assert_eq!(after(7, busy, None, None), None, "the retries ran out");
        assert_eq!(after(1, busy, Some(2), None), Some(2000));
        assert_eq!(after(1, busy, Some(0), None), Some(500));
        assert_eq!(
            after(1, busy, Some(3600), None),
            None,
            "nobody waits that long"
        );
    }

    #[test]
    fn only_what_can_pass_is_tried_again_unless_the_provider_says_otherwise() {
        assert_eq!(after(1, ErrorKind::BadRequest, None, None), None);
        assert_eq!(after(1, ErrorKind::BadRequest, None, Some(true)), Some(500));
        assert_eq!(after(1, ErrorKind::Unavailable, None, Some(false)), None);
        assert_eq!(after(1, ErrorKind::Timeout, None, None), None);
    }
}
