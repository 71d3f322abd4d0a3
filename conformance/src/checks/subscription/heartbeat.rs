//! Periods: `system.heartbeat` on subscriptions, the keepalive comment on the relay stream.

use std::time::Duration;

use turnwire_spec::{catalogue::rule::StreamKind, covel::limits::HEARTBEAT_EVERY, sse::Frame};

use crate::{
    checks::Check,
    transcript::{
        Transcript, lateness,
        views::{
            covel::{self, Subscription},
            stream::{Stream, streams_of},
        },
    },
    verdict::{Evidence, Findings},
};

/// The checks of this file.
pub const CHECKS: &[Check] = &[
    check!(timed "COV-OVW-022", quiet_subscriptions_beat_every_30_seconds),
    check!(timed "COV-SUB-011", relay_comments_every_15_seconds),
    check!(timed "COV-SUB-018", quiet_subscriptions_beat_every_30_seconds),
    check!(timed "COV-SUB-019", busy_subscriptions_beat_all_the_same),
    check!("COV-SUB-167", control_frames_keep_the_last_event_id),
    check!(timed "COV-SUB-171", busy_subscriptions_beat_all_the_same),
];

/// Period of the relay's keepalive comment, before scaling. Source: seed 000, line 639.
const RELAY_COMMENT_EVERY: Duration = Duration::from_secs(15);

/// Deviation that the requirement allows, before scaling.
const TOLERANCE: Duration = Duration::from_secs(2);

/// What the harness adds for its own delays, not scaled.
const SLACK: Duration = Duration::from_millis(120);

/// COV-OVW-022, COV-SUB-018: the heartbeats of a subscription without events are 30 s apart, two seconds more
/// or less, counted from `system.connected`.
///
/// Judges subscriptions that carried no event and were open for more than one period.
fn quiet_subscriptions_beat_every_30_seconds(transcript: &Transcript) -> Findings {
    let quiet = covel::subscriptions(transcript)
        .into_iter()
        .filter(|subscription| subscription.events().is_empty());
    beats(transcript, quiet)
}

/// COV-SUB-019, COV-SUB-171: events neither replace nor postpone the heartbeat.
///
/// Judges subscriptions with events that came closer together than a period, open for more than one period.
fn busy_subscriptions_beat_all_the_same(transcript: &Transcript) -> Findings {
    let busy = covel::subscriptions(transcript)
        .into_iter()
        .filter(|subscription| subscription.events().len() > 3);
    beats(transcript, busy)
}

fn beats<'a>(
    transcript: &Transcript,
    subscriptions: impl Iterator<Item = Subscription<'a>>,
) -> Findings {
    let mut findings = Findings::none();
    for subscription in subscriptions {
        let Some(connected) = subscription.connected() else {
            continue;
        };
        let beats: Vec<Duration> = subscription
            .of_type("system.heartbeat")
            .map(|frame| frame.at)
            .collect();
        let times = [vec![connected.at], beats].concat();
        findings.merge(period(
            transcript,
            &subscription.stream,
            &times,
            HEARTBEAT_EVERY,
        ));
    }
    findings
}

/// COV-SUB-011: the relay stream carries a comment line every 15 s, counted from its first frame or comment.
fn relay_comments_every_15_seconds(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for stream in streams_of(transcript, StreamKind::Relay) {
        let is_comment = |frame: &Frame| frame.is_comment_only();
        let first = stream.frames.first().map(|frame| frame.at);
        let comments = stream
            .frames
            .iter()
            .skip(1)
            .filter(|frame| is_comment(&frame.frame))
            .map(|frame| frame.at);
        let times: Vec<Duration> = first.into_iter().chain(comments).collect();
        findings.merge(period(transcript, &stream, &times, RELAY_COMMENT_EVERY));
    }
    findings
}

/// Judges that `times` are one scaled period apart, and that none is missing up to the end of the stream. Time
/// for which the harness itself was late is allowed for.
fn period(
    transcript: &Transcript,
    stream: &Stream<'_>,
    times: &[Duration],
    every: Duration,
) -> Findings {
    let scale = transcript.header.time_scale;
    let every = every.mul_f64(scale);
    let allowed =
        |from, to| TOLERANCE.mul_f64(scale) + SLACK + lateness::between(transcript, from, to);
    let end = stream
        .exchange
        .end
        .map_or_else(|| last_time(transcript), |(at, _)| at);
    let fault = |at: Duration, allowed: Duration, got: String| {
        let expected = format!("one every {every:?}, {allowed:?} more or less");
        Evidence {
            at: Some(at),
            ..stream.exchange.evidence(expected, got)
        }
    };
    let mut findings = Findings::each(times.windows(2), |pair| {
        let gap = pair[1].saturating_sub(pair[0]);
        // What came late shortens the gap behind it.
        let allowed = allowed(pair[0].saturating_sub(every), pair[1]);
        (gap.abs_diff(every) > allowed)
            .then(|| fault(pair[1], allowed, format!("{gap:?} after the one before")))
    });
    if let Some(last) = times.last() {
        let (rest, allowed) = (end.saturating_sub(*last), allowed(*last, end));
        if rest > every + allowed {
            let got = format!("none for {rest:?}, up to the end of the stream");
            findings.judge(Some(fault(end, allowed, got)));
        }
    }
    findings
}

fn last_time(transcript: &Transcript) -> Duration {
    transcript
        .entries
        .last()
        .map(|entry| entry.at)
        .unwrap_or_default()
}

/// COV-SUB-167: a control frame leaves the last event id of a standard parser as it is.
///
/// Follows the `id` lines of each subscription; an `id` with NUL changes nothing.
fn control_frames_keep_the_last_event_id(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for subscription in covel::subscriptions(transcript) {
        let mut last = String::new();
        for frame in subscription.stream.events() {
            let before = last.clone();
            if let Some(id) = frame.frame.id() {
                id.clone_into(&mut last);
            }
            if frame.event_type().starts_with("system.") {
                let changed = before != last;
                findings.judge(changed.then(|| {
                    let expected = format!("last event id still {before:?}");
                    subscription
                        .stream
                        .evidence(frame, expected, format!("{last:?}"))
                }));
            }
        }
    }
    findings
}
