//! What a Covel client does in time: how it asks for the state of an action whose stream it has lost.
//!
//! Waits are those between the end of one read and the start of the next, in protocol time.

use std::time::Duration;

use super::Check;
use crate::{
    transcript::{
        Transcript, lateness,
        views::{
            client::{Act, acts, base},
            http::Exchange,
        },
    },
    verdict::{Evidence, Findings},
};

/// The checks.
pub const CHECKS: &[Check] = &[
    check!("COV-CMD-045", reads_every_three_seconds),
    check!("COV-CMD-046", waits_longer_after_failures),
    check!("COV-CMD-047", waits_thirty_seconds_in_the_end),
    check!("COV-CMD-048", a_success_begins_anew),
    check!("COV-CMD-049", a_failed_read_is_not_hurried),
    check!("COV-CMD-114", inputs_are_kept_before_they_are_sent),
];

/// COV-CMD-045: every wait after a good answer is 3 s.
fn reads_every_three_seconds(transcript: &Transcript) -> Findings {
    on(transcript, "p-poll", |waits| {
        waits
            .iter()
            .enumerate()
            .find_map(|(place, wait)| wait.is_not(3, place))
    })
}

/// COV-CMD-046: the first four waits after failures are 3, 6, 12 and 24 s.
fn waits_longer_after_failures(transcript: &Transcript) -> Findings {
    on(transcript, "p-failures", |waits| {
        let expected = [3, 6, 12, 24];
        expected
            .iter()
            .zip(waits)
            .enumerate()
            .find_map(|(place, (expected, wait))| wait.is_not(*expected, place))
    })
}

/// COV-CMD-047: every wait after the fourth failure is 30 s or longer.
fn waits_thirty_seconds_in_the_end(transcript: &Transcript) -> Findings {
    on(transcript, "p-failures", |waits| {
        waits
            .iter()
            .enumerate()
            .skip(4)
            .find_map(|(place, wait)| wait.is_under(30, place))
    })
}

/// COV-CMD-048: after four failures, a success and a failure, both waits are 3 s again.
fn a_success_begins_anew(transcript: &Transcript) -> Findings {
    on(transcript, "p-anew", |waits| {
        waits
            .iter()
            .enumerate()
            .skip(4)
            .take(2)
            .find_map(|(place, wait)| wait.is_not(3, place))
    })
}

/// COV-CMD-049: after a failure nothing is asked before the wait is over.
fn a_failed_read_is_not_hurried(transcript: &Transcript) -> Findings {
    on(transcript, "p-hurry", |waits| {
        waits.first().and_then(|wait| wait.is_under(3, 0))
    })
}

/// COV-CMD-114: an action that names an input was sent after the client's store had taken that input, and none was
/// sent when it had not.
fn inputs_are_kept_before_they_are_sent(transcript: &Transcript) -> Findings {
    let all = acts(transcript);
    let of_inputs = all
        .iter()
        .filter(|act| base(act.name).starts_with("l-input"));
    let exchanges: Vec<_> = of_inputs.flat_map(|act| &act.exchanges).collect();
    let kept: Vec<_> = exchanges
        .iter()
        .filter_map(|exchange| Some((exchange.segment("/local-store/inputs/:id", "id")?, exchange)))
        .collect();
    let sent = exchanges
        .iter()
        .filter(|exchange| exchange.is("POST", "/api/actions"));
    let named = sent.filter_map(|exchange| {
        let id = exchange
            .request_json()?
            .pointer("/payload/inputMessageId")?
            .as_str()?
            .to_owned();
        Some((exchange, id))
    });
    Findings::each(named, |(exchange, id)| {
        let before = kept.iter().any(|(other, keeping)| {
            let taken = keeping.status().is_some_and(|status| status < 300);
            *other == id && taken && keeping.head.is_some_and(|(at, _)| at <= exchange.opened)
        });
        (!before).then(|| {
            let expected = format!("the store had taken the input {id:?} before");
            exchange.evidence(expected, "it had not".to_owned())
        })
    })
}

/// One wait.
struct Wait<'a> {
    next: Exchange<'a>,
    /// In protocol time.
    time: Duration,
    /// What the harness and the machine may add, in protocol time.
    slack: Duration,
}

impl Wait<'_> {
    fn is_under(&self, seconds: u64, place: usize) -> Option<Evidence> {
        let least = Duration::from_secs(seconds).mul_f64(0.9);
        (self.time < least).then(|| self.evidence(format!("wait {} of {seconds} s", place + 1)))
    }

    fn is_not(&self, seconds: u64, place: usize) -> Option<Evidence> {
        let most = Duration::from_secs(seconds) * 3 / 2 + self.slack;
        let late = self.time > most;
        let late = late.then(|| self.evidence(format!("wait {} of {seconds} s", place + 1)));
        self.is_under(seconds, place).or(late)
    }

    fn evidence(&self, expected: String) -> Evidence {
        self.next.evidence(
            expected,
            format!("a wait of {:.2} s", self.time.as_secs_f64()),
        )
    }
}

/// The machine may be busy for so long, in real time.
const BUSY: Duration = Duration::from_millis(150);

/// Judges the waits between the reads of the execution under a label, when there are two reads.
fn on(
    transcript: &Transcript,
    name: &str,
    judge: impl Fn(&[Wait<'_>]) -> Option<Evidence>,
) -> Findings {
    let scale = transcript.header.time_scale.max(f64::MIN_POSITIVE);
    // Where the machine kept the harness waiting, it kept the client waiting for longer.
    let late = |from, to| lateness::between(transcript, from, to);
    let all = acts(transcript);
    let waits = all
        .iter()
        .filter(|act| act.name == name)
        .map(|act| waits(act, scale, &late));
    Findings::each(waits.filter(|waits| !waits.is_empty()), |waits| {
        judge(&waits)
    })
}

fn waits<'a>(
    act: &Act<'a>,
    scale: f64,
    late: &dyn Fn(Duration, Duration) -> Duration,
) -> Vec<Wait<'a>> {
    let reads: Vec<_> = act
        .exchanges
        .iter()
        .filter(|exchange| exchange.is("GET", "/api/sessions/:id/execution"))
        .collect();
    let pairs = reads.iter().zip(reads.iter().skip(1));
    let wait = |(before, next): (&&Exchange<'a>, &&Exchange<'a>)| {
        let (ended, _) = before.end?;
        Some(Wait {
            next: (**next).clone(),
            time: next.opened.saturating_sub(ended).div_f64(scale),
            slack: (BUSY + late(ended, next.opened) * 4).div_f64(scale),
        })
    };
    pairs.filter_map(wait).collect()
}
