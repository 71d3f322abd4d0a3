//! Demands on whole event streams.

use std::time::Duration;

use turnwire_spec::catalogue::rule::{Count, Period, StreamKind, StreamRule};

use super::{
    Demand,
    frames::{carries_event, events_of, types_of},
    labelled, note, one_of,
};
use crate::{
    transcript::{
        End, cut,
        views::{
            reading::Reading,
            stream::{Stream, StreamFrame, type_matches},
        },
    },
    verdict::{Evidence, Findings},
};

/// Judges every stream that the rule selects.
pub(super) fn judge(rule: &StreamRule, reading: &Reading<'_>) -> Findings {
    let mut findings = Findings::none();
    for stream in reading.streams() {
        let kind =
            rule.stream.is_empty() || stream.kind.is_some_and(|kind| rule.stream.contains(&kind));
        if kind && labelled(rule.label.as_deref(), &stream.exchange) {
            note(
                &mut findings,
                At {
                    rule,
                    reading,
                    stream,
                }
                .demands(),
            );
        }
    }
    findings
}

/// A stream under judgement.
#[derive(Clone, Copy)]
struct At<'a, 't> {
    rule: &'a StreamRule,
    reading: &'a Reading<'t>,
    stream: &'a Stream<'t>,
}

impl At<'_, '_> {
    fn demands(self) -> Vec<Demand> {
        let rule = self.rule;
        let mut demands = Vec::new();
        if !rule.first.is_empty() {
            demands.push(self.first());
        }
        if !rule.last.is_empty() {
            demands.push(self.last());
        }
        demands.extend(
            rule.count
                .iter()
                .map(|(name, count)| self.count(name, *count)),
        );
        if !rule.only.is_empty() {
            demands.push(self.only());
        }
        demands.extend(
            rule.order
                .iter()
                .map(|(before, after)| self.order(before, after)),
        );
        demands.extend(
            rule.period
                .iter()
                .map(|(name, period)| self.period(name, *period)),
        );
        if rule.ends {
            demands.push(self.ends());
        }
        demands
    }

    fn at_frame(self, met: bool, frame: &StreamFrame, expected: impl FnOnce() -> String) -> Demand {
        Demand::check(met, || {
            self.stream.evidence(frame, expected(), frame.text())
        })
    }

    fn evidence(self, expected: impl Into<String>) -> Evidence {
        let types: Vec<_> = events_of(self.stream)
            .map(StreamFrame::event_type)
            .collect();
        let end = self
            .stream
            .exchange
            .end
            .map_or_else(|| "still open".to_owned(), |(_, end)| format!("{end:?}"));
        self.stream
            .exchange
            .evidence(expected, format!("{}; then {end}", types.join(", ")))
    }

    fn ended_by_target(self) -> bool {
        self.reading.ended_by_target(&self.stream.exchange)
    }

    /// Whether the harness cut it off on purpose, before it had read what was there.
    fn was_cut(self) -> bool {
        cut::exchanges(self.reading.transcript()).contains(&self.stream.exchange.id)
    }

    /// How long the stream was open, as far as the transcript shows.
    fn open_for(self) -> Duration {
        let last = self
            .reading
            .transcript()
            .entries
            .last()
            .map(|entry| entry.at);
        let closed = self
            .stream
            .exchange
            .end
            .map(|(at, _)| at)
            .or(last)
            .unwrap_or_default();
        closed.saturating_sub(self.stream.exchange.opened)
    }

    fn first(self) -> Demand {
        let expected = || format!("first frame of type {}", one_of(&self.rule.first));
        match events_of(self.stream).next() {
            Some(frame) => self.at_frame(
                type_matches(&self.rule.first, frame.event_type()),
                frame,
                expected,
            ),
            None if self.was_cut() => Demand::Open,
            None if self.ended_by_target() || self.open_for() >= FIRST_WITHIN => {
                Demand::Broken(self.evidence(expected()))
            }
            None => Demand::Open,
        }
    }

    fn last(self) -> Demand {
        if !matches!(self.stream.exchange.end, Some((_, End::Complete))) {
            return Demand::Open;
        }
        let expected = || format!("last frame of type {}", one_of(&self.rule.last));
        match events_of(self.stream).next_back() {
            Some(frame) => self.at_frame(
                type_matches(&self.rule.last, frame.event_type()),
                frame,
                expected,
            ),
            None => Demand::Broken(self.evidence(expected())),
        }
    }

    fn count(self, name: &str, wanted: Count) -> Demand {
        let pattern = [name.to_owned()];
        let found = events_of(self.stream)
            .filter(|frame| type_matches(&pattern, frame.event_type()))
            .count();
        let found = u64::try_from(found).unwrap_or(u64::MAX);
        if found < wanted.min && !self.shows_absence() {
            return Demand::Open;
        }
        Demand::check(wanted.allows(found), || {
            self.evidence(format!("{wanted} frame(s) of type {name}, not {found}"))
        })
    }

    /// Whether what has not come counts as missing: the target ended the stream, or it is one without an end
    /// of its own and was read until something came.
    fn shows_absence(self) -> bool {
        let endless =
            self.stream.kind != Some(StreamKind::Action) && events_of(self.stream).next().is_some();
        endless || self.ended_by_target()
    }

    fn only(self) -> Demand {
        if types_of(self.stream).is_empty() {
            return Demand::Open;
        }
        let other =
            events_of(self.stream).find(|frame| !type_matches(&self.rule.only, frame.event_type()));
        match other {
            None => Demand::Met,
            Some(frame) => self.at_frame(false, frame, || {
                format!("only types {}", one_of(&self.rule.only))
            }),
        }
    }

    fn order(self, before: &str, after: &str) -> Demand {
        let (early, late) = ([before.to_owned()], [after.to_owned()]);
        let first_late =
            events_of(self.stream).find(|frame| type_matches(&late, frame.event_type()));
        let last_early =
            events_of(self.stream).rfind(|frame| type_matches(&early, frame.event_type()));
        let (Some(late), Some(early)) = (first_late, last_early) else {
            return Demand::Open;
        };
        self.at_frame(early.index < late.index, early, || {
            format!("every {before} before the first {after}")
        })
    }

    /// Judges the mean of at least two gaps, so that one late frame accuses nobody.
    fn period(self, name: &str, period: Period) -> Demand {
        let pattern = [name.to_owned()];
        let times: Vec<_> = self
            .stream
            .frames
            .iter()
            .filter(|frame| frame.frame.terminated)
            .filter(|frame| match name {
                ":" => !carries_event(frame) && frame.frame.is_comment_only(),
                _ => carries_event(frame) && type_matches(&pattern, frame.event_type()),
            })
            .map(|frame| frame.at)
            .collect();
        let scale = self.reading.transcript().header.time_scale;
        let every = Duration::from_millis(period.every_ms).mul_f64(scale.max(0.0));
        let within = Duration::from_millis(period.within_ms)
            .mul_f64(scale.max(0.0))
            .max(every / 4);
        let (Some(first), Some(last)) = (times.first(), times.last()) else {
            return self.silence(name, every);
        };
        let gaps = u32::try_from(times.len() - 1).unwrap_or(u32::MAX);
        if gaps < 2 {
            return self.silence(name, every);
        }
        let mean = last.saturating_sub(*first) / gaps;
        Demand::check(mean.abs_diff(every) <= within, || {
            self.evidence(format!(
                "{name} every {every:?}, within {within:?}, not every {mean:?}"
            ))
        })
    }

    /// Too few frames came to tell a period: a fault when the stream was open long enough for more.
    fn silence(self, name: &str, every: Duration) -> Demand {
        if self.open_for() < every * 5 {
            return Demand::Open;
        }
        Demand::Broken(self.evidence(format!("{name} every {every:?} over {:?}", self.open_for())))
    }

    fn ends(self) -> Demand {
        if !self.ended_by_target() {
            return Demand::Open;
        }
        let met = matches!(self.stream.exchange.end, Some((_, End::Complete)));
        Demand::check(met, || {
            self.evidence("a stream that the target ends cleanly")
        })
    }
}

/// A stream that stays silent for so long lacks its first frame. Not scaled: it is the harness's patience.
const FIRST_WITHIN: Duration = Duration::from_secs(1);
