//! Whether a case that fails had the time that it needed.
//!
//! The player waits for what ought to come, and goes on without it when the time has run out. What is missing then is
//! missing for the model, too; but on a busy machine it may only have been late. So a failure of a case in which a wait
//! ran out says nothing about the target until the case has been played [with more time](with_more_time). A failure
//! without such a wait is believed at once: races show themselves once in a thousand times.
//!
//! Not here: playing again; see [`run`](super::run).

use std::time::Duration;

use super::field::Played;
use crate::{
    profile::Profile,
    transcript::{End, Fact, Side, Transcript, WsFrame},
};

/// How much more time a case gets when it is played again.
const MORE: u32 = 6;
/// What a wait may be shorter than its limit, as the transcript has it: times are cut to microseconds.
const ROUNDING: Duration = Duration::from_millis(1);

/// Whether something was waited for in vain: the case was not played to its end, or the harness did nothing for as long
/// as its patience lasts.
pub(super) fn ran_out(played: &Played, profile: &Profile) -> bool {
    let patience = profile.limits.patience.saturating_sub(ROUNDING);
    played.problem.is_some() || longest_wait(&played.transcript) >= patience
}

/// The profile with more of every limit that is a time.
pub(super) fn with_more_time(profile: &Profile) -> Profile {
    let mut profile = profile.clone();
    let limits = &mut profile.limits;
    for limit in [
        &mut limits.patience,
        &mut limits.scenario,
        &mut limits.http.connect,
        &mut limits.http.head,
        &mut limits.http.idle,
        &mut limits.http.total,
    ] {
        *limit *= MORE;
    }
    profile
}

/// The longest time in which the harness did nothing: it waited for the target.
fn longest_wait(transcript: &Transcript) -> Duration {
    let acts = transcript.entries.iter().filter(|entry| acts(&entry.fact));
    let end = transcript.entries.last().into_iter();
    let mut last = Duration::ZERO;
    let mut longest = Duration::ZERO;
    for entry in acts.chain(end) {
        longest = longest.max(entry.at.saturating_sub(last));
        last = entry.at;
    }
    longest
}

/// Whether the player does something here. Pings are answered, and lateness is noted, without it.
fn acts(fact: &Fact) -> bool {
    match fact {
        Fact::Label(_) | Fact::Request { .. } | Fact::Target(_) => true,
        Fact::Line { from, .. } => *from == Side::Client,
        Fact::WebSocket { from, frame, .. } => {
            *from == Side::Client && !matches!(frame, WsFrame::Ping(_) | WsFrame::Pong(_))
        }
        Fact::End { how, .. } => matches!(how, End::ClosedByHarness | End::TimedOut),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{drivers::DriveError, transcript::testing::Script};

    fn played(script: Script) -> Played {
        Played {
            transcript: script.transcript(),
            problem: None,
        }
    }

    fn profile() -> Profile {
        let mut profile = Profile::reference();
        profile.limits.patience = Duration::from_secs(10);
        profile
    }

    #[test]
    fn a_wait_has_run_out_when_the_harness_did_nothing_for_so_long() {
        let asks = |ms| {
            let script = Script::new().websocket("/ws").client_says("{}");
            played(script.wait_ms(ms).server_says("{}").wait_ms(1).closes())
        };
        assert!(!ran_out(&asks(9_000), &profile()));
        assert!(ran_out(&asks(10_000), &profile()));
    }

    #[test]
    fn who_does_something_does_not_wait() {
        let busy = Script::new().websocket("/ws").client_says("{}");
        let busy = busy.wait_ms(6_000).client_says("{}");
        assert!(!ran_out(&played(busy.wait_ms(6_000).closes()), &profile()));
    }

    #[test]
    fn a_case_that_was_not_played_to_its_end_ran_out_of_time() {
        let mut unfinished = played(Script::new().label("act"));
        assert!(!ran_out(&unfinished, &profile()));
        unfinished.problem = Some(DriveError::Harness("a case took longer".to_owned()));
        assert!(ran_out(&unfinished, &profile()));
    }

    #[test]
    fn more_time_is_more_of_every_limit() {
        let (some, more) = (profile(), with_more_time(&profile()));
        assert_eq!(more.limits.patience, some.limits.patience * MORE);
        assert_eq!(more.limits.scenario, some.limits.scenario * MORE);
        assert_eq!(more.limits.http.head, some.limits.http.head * MORE);
        assert_eq!(more.time_scale.to_bits(), some.time_scale.to_bits());
    }
}
