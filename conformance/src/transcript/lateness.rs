//! How late the harness itself was: what a check on times subtracts before it blames a target.
//!
//! A busy machine stops everybody on it. While a scenario runs, a watch notes each time that it woke up much
//! later than asked for, as a [`Fact::Note`] of the form `harness late by 120 ms`. Checks on periods allow for
//! what was noted while they measured.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::{Fact, Transcript, record::Recorder};

/// What the note begins with.
const NOTE: &str = "harness late by ";

/// How often the watch looks at the clock.
const EVERY: Duration = Duration::from_millis(10);

/// Lateness below this is not noted.
const WORTH_NOTING: Duration = Duration::from_millis(10);

/// Notes lateness until it is dropped.
pub async fn watch(recorder: Recorder) {
    loop {
        let due = Instant::now() + EVERY;
        sleep_until(due).await;
        let late = due.elapsed();
        if late >= WORTH_NOTING {
            recorder.tell(Fact::Note(format!("{NOTE}{} ms", late.as_millis())));
        }
    }
}

/// The lateness that was noted in a span of a transcript, added up. A note stands at the end of its lateness.
pub fn between(transcript: &Transcript, from: Duration, to: Duration) -> Duration {
    let noted = transcript
        .entries
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::Note(text) => Some((entry.at, parse(text)?)),
            _ => None,
        });
    noted
        .filter(|(at, late)| *at >= from && at.saturating_sub(*late) <= to)
        .map(|(_, late)| late)
        .sum()
}

fn parse(note: &str) -> Option<Duration> {
    let millis = note.strip_prefix(NOTE)?.strip_suffix(" ms")?;
    millis.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Entry;

    #[test]
    fn lateness_counts_where_it_overlaps_the_span() {
        let note = |at, text: &str| Entry {
            at: Duration::from_millis(at),
            fact: Fact::Note(text.to_owned()),
        };
        let transcript = Transcript {
            entries: vec![
                note(100, "harness late by 30 ms"),
                note(200, "something else"),
                note(300, "harness late by 50 ms"),
                note(420, "harness late by 40 ms"),
            ],
            ..Transcript::default()
        };
        let span = |from, to| {
            between(
                &transcript,
                Duration::from_millis(from),
                Duration::from_millis(to),
            )
        };
        assert_eq!(span(150, 390), Duration::from_millis(90));
        assert_eq!(span(150, 260), Duration::from_millis(50));
        assert_eq!(span(150, 240), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_blocked_thread_is_noted() {
        let recorder = Recorder::new(crate::transcript::Header::default());
        let watching = tokio::spawn(watch(recorder.clone()));
        tokio::time::sleep(Duration::from_millis(15)).await;
        std::thread::sleep(Duration::from_millis(80));
        tokio::time::sleep(Duration::from_millis(15)).await;
        watching.abort();
        assert!(
            between(&recorder.transcript(), Duration::ZERO, Duration::MAX)
                >= Duration::from_millis(50)
        );
    }
}
