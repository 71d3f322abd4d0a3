//! A target that lets no more requests through for now: 429 `rate_limit_exceeded` with a `Retry-After`.
//!
//! To limit rates is the right of every target and no fault of anybody. A client with a [`Throttle`] waits as long as it is
//! told and asks again, within a bound. What was refused stays in the transcript with a note, and is judged by nothing:
//! see [`without_refused`].
//!
//! Other refusals, such as that of a ninth subscription, are answers like any other.
//!
//! Source of `Retry-After`: RFC 9110, section 10.2.3.

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    drivers::{DriveError, allowance::Allowance},
    transcript::{ExchangeId, Fact, Transcript, mark::ExchangeMark},
};

/// The code of such a refusal.
pub const CODE: &str = "rate_limit_exceeded";
/// Its status.
pub const STATUS: u16 = 429;

/// A target that says "at once" is not asked again at once.
const AT_LEAST: Duration = Duration::from_secs(1);

/// How long one scenario waits when it is told to. Requests that wait side by side wait once.
#[derive(Debug)]
pub struct Throttle {
    at_most: Duration,
    allowance: Allowance,
    waits: Mutex<Waits>,
}

#[derive(Debug, Default)]
struct Waits {
    /// Time that was waited, or is.
    waited: Duration,
    /// Until when somebody waits.
    until: Option<Instant>,
}

impl Throttle {
    /// Waits so long in all, and tells the allowance.
    pub fn new(at_most: Duration, allowance: Allowance) -> Self {
        Self {
            at_most,
            allowance,
            waits: Mutex::default(),
        }
    }

    /// How long to wait before the request is sent again.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] when that would be longer than the scenario waits.
    pub(super) fn wait(&self, request: &str, asked: Duration) -> Result<Duration, DriveError> {
        let wait = asked.max(AT_LEAST);
        let now = Instant::now();
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let from = waits.until.map_or(now, |until| until.max(now));
        // A wait that nobody can measure is longer than any that is taken.
        let more = match now.checked_add(wait) {
            Some(until) => until.saturating_duration_since(from),
            None => Duration::MAX,
        };
        let all = waits.waited.saturating_add(more);
        if all > self.at_most {
            return Err(self.too_long(request, wait, waits.waited));
        }
        waits.waited = all;
        waits.until = Some(from + more);
        let seconds = wait.as_secs();
        let words = format!("waits {seconds} s, as the target asks ({request}: {STATUS} {CODE})");
        self.allowance.ask(more, words);
        Ok(wait)
    }

    fn too_long(&self, request: &str, wait: Duration, waited: Duration) -> DriveError {
        let (wait, waited) = (wait.as_secs(), waited.as_secs());
        let at_most = self.at_most.as_secs();
        DriveError::NotPossible {
            what: request.to_owned(),
            why: format!(
                "the target lets no more requests through for {wait} s ({STATUS} {CODE}), {waited} s of at most {at_most} s \
                 were waited already; raise its limit for the run, or [limits] retry_after in the profile"
            ),
        }
    }
}

/// The wait that a `Retry-After` asks for, in seconds or as a date; nothing when it is neither.
pub(super) fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // A date counts from the target's own clock.
    let at = |text: &str| jiff::fmt::rfc2822::parse(text.trim()).ok();
    let (until, now) = (at(value)?, at(date?)?);
    let left = until.timestamp().duration_since(now.timestamp());
    Some(left.try_into().unwrap_or(Duration::ZERO))
}

const REFUSED: ExchangeMark = ExchangeMark("refused for its rate");

/// The note that marks an exchange whose request was refused for its rate and is sent again.
pub(super) fn note(exchange: ExchangeId, wait: Duration) -> Fact {
    let why = format!("sent again after {} s", wait.as_secs());
    Fact::Note(REFUSED.because(exchange, &why))
}

/// The transcript without the requests that were refused for their rate and sent again: the conversation as it is without
/// such a limit, for the checks.
pub fn without_refused(transcript: &Transcript) -> Cow<'_, Transcript> {
    let refused: Vec<_> = REFUSED.exchanges(transcript).collect();
    if refused.is_empty() {
        return Cow::Borrowed(transcript);
    }
    let mut kept = transcript.clone();
    let is_of_refused = |fact: &Fact| fact.exchange().is_some_and(|id| refused.contains(&id));
    kept.entries.retain(|entry| !is_of_refused(&entry.fact));
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_nothing_else_is() {
        let seconds = |value, date| retry_after(value, date).map(|wait| wait.as_secs());
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(seconds("37", None), Some(37));
        assert_eq!(seconds("0", None), Some(0));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:50:07 GMT", date), Some(30));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:00:00 GMT", date), Some(0));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:50:07 GMT", None), None);
        for neither in ["", "-1", "1.5", "soon", "99999999999999999999"] {
            assert_eq!(seconds(neither, date), None, "{neither}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_wait_side_by_side_wait_once() {
        let allowance = Allowance::default();
        let throttle = Throttle::new(Duration::from_secs(90), allowance.clone());
        let minute = Duration::from_secs(60);
        for _ in 0..8 {
            assert_eq!(throttle.wait("GET /a", minute), Ok(minute));
        }
        assert_eq!(allowance.follow().borrow().time, minute);
        tokio::time::advance(minute).await;
        assert!(throttle.wait("GET /a", Duration::from_secs(20)).is_ok());
        let error = throttle.wait("GET /a", minute).unwrap_err();
        insta::assert_snapshot!(error, @"GET /a is not possible: the target lets no more requests through for 60 s (429 rate_limit_exceeded), 80 s of at most 90 s were waited already; raise its limit for the run, or [limits] retry_after in the profile");
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_that_says_at_once_is_asked_after_a_second_and_not_for_ever() {
        let throttle = Throttle::new(Duration::from_secs(3), Allowance::default());
        for _ in 0..3 {
            assert_eq!(throttle.wait("GET /a", Duration::ZERO), Ok(AT_LEAST));
            tokio::time::advance(AT_LEAST).await;
        }
        assert!(throttle.wait("GET /a", Duration::ZERO).is_err());
    }

    #[test]
    fn a_wait_beyond_all_measure_is_too_long() {
        let throttle = Throttle::new(Duration::from_secs(3), Allowance::default());
        let ages = retry_after("18446744073709551615", None).unwrap();
        assert!(throttle.wait("GET /a", ages).is_err());
    }
}
