//! Demands on single event-stream frames.

use std::collections::BTreeSet;

use serde_json::{Number, Value};
use turnwire_spec::{
    catalogue::rule::{Count, FrameRule, StreamKind},
    covel,
    sse::LineKind,
    time,
};

use super::{
    Demand, labelled, note, one_of,
    source::{self, Place},
    type_selected,
};
use crate::{
    schema,
    transcript::views::{
        reading::Reading,
        stream::{Stream, StreamFrame},
    },
    verdict::Findings,
};

/// Judges every frame that the rule selects, or, when frames are forbidden, every stream.
pub(super) fn judge(rule: &FrameRule, reading: &Reading<'_>) -> Findings {
    let mut findings = Findings::none();
    for stream in reading
        .streams()
        .iter()
        .filter(|stream| selects(rule, stream))
    {
        if rule.forbidden {
            judge_absence(rule, stream, &mut findings);
        } else {
            judge_stream(rule, reading, stream, &mut findings);
        }
    }
    findings
}

fn selects(rule: &FrameRule, stream: &Stream<'_>) -> bool {
    let kind =
        rule.stream.is_empty() || stream.kind.is_some_and(|kind| rule.stream.contains(&kind));
    kind && labelled(rule.label.as_deref(), &stream.exchange)
}

fn selected<'s>(
    rule: &'s FrameRule,
    stream: &'s Stream<'_>,
) -> impl Iterator<Item = &'s StreamFrame> {
    stream.events().filter(|frame| {
        carries_event(frame)
            && type_selected(&rule.types, &rule.not_type, frame.event_type())
            && rule.where_data.as_ref().is_none_or(|wanted| {
                frame
                    .json
                    .as_ref()
                    .is_some_and(|data| schema::satisfied(wanted, data))
            })
    })
}

/// Whether a frame has a `data` or an `event` line.
pub(super) fn carries_event(frame: &StreamFrame) -> bool {
    frame.frame.field("data").is_some() || frame.frame.field("event").is_some()
}

fn judge_absence(rule: &FrameRule, stream: &Stream<'_>, findings: &mut Findings) {
    if stream.events().next().is_none() {
        return;
    }
    findings.judged += 1;
    findings.faults.extend(selected(rule, stream).map(|frame| {
        stream.evidence(
            frame,
            format!("no {} frame here", frame.event_type()),
            frame.text(),
        )
    }));
}

fn judge_stream<'t>(
    rule: &FrameRule,
    reading: &Reading<'t>,
    stream: &Stream<'t>,
    findings: &mut Findings,
) {
    let frames: Vec<_> = selected(rule, stream).collect();
    for (position, frame) in frames.iter().enumerate() {
        let before = position
            .checked_sub(1)
            .and_then(|index| frames.get(index))
            .copied();
        let at = At {
            rule,
            reading,
            stream,
            frame,
        };
        note(findings, at.demands(frames.first().copied(), before));
    }
}

/// A frame under judgement.
#[derive(Clone, Copy)]
struct At<'a, 't> {
    rule: &'a FrameRule,
    reading: &'a Reading<'t>,
    stream: &'a Stream<'t>,
    frame: &'a StreamFrame,
}

impl<'a> At<'a, '_> {
    fn demands(
        self,
        first: Option<&'a StreamFrame>,
        before: Option<&'a StreamFrame>,
    ) -> Vec<Demand> {
        let rule = self.rule;
        let mut demands: Vec<Demand> = rule
            .lines
            .iter()
            .map(|(name, count)| self.line_count(name, *count))
            .collect();
        demands.extend(
            rule.line_pattern
                .iter()
                .map(|(name, pattern)| self.line_pattern(name, pattern)),
        );
        if !rule.only_lines.is_empty() {
            demands.push(self.only_lines());
        }
        demands.extend(rule.data.iter().map(|wanted| self.data(wanted)));
        demands.extend(
            rule.equal
                .iter()
                .map(|(left, right)| self.equal(left, right)),
        );
        demands.extend(rule.clock.iter().map(|pointer| self.clock(pointer)));
        if rule.known_type {
            demands.push(self.known_type());
        }
        demands.extend(
            rule.constant
                .iter()
                .map(|source| self.constant(source, first)),
        );
        demands.extend(
            rule.rising
                .iter()
                .map(|pointer| self.rising(pointer, before)),
        );
        demands
    }

    fn check(self, met: bool, expected: impl FnOnce() -> String) -> Demand {
        Demand::check(met, || {
            self.stream
                .evidence(self.frame, expected(), self.frame.text())
        })
    }

    /// A frame whose fault has words of its own, which come before its bytes.
    fn broken(self, expected: impl Into<String>, found: &str) -> Demand {
        Demand::Broken(self.stream.evidence(
            self.frame,
            expected,
            format!("{found}\n{}", self.frame.text()),
        ))
    }

    fn place(self, frame: &'a StreamFrame) -> Place<'a> {
        Place {
            exchange: &self.stream.exchange,
            templates: &[],
            frame: Some(&frame.frame),
            json: frame.json.as_ref(),
        }
    }

    fn line_count(self, name: &str, wanted: Count) -> Demand {
        let frame = &self.frame.frame;
        let found = if name == COMMENT {
            frame.comments().count()
        } else {
            frame.fields(name).count()
        };
        let met = wanted.allows(u64::try_from(found).unwrap_or(u64::MAX));
        self.check(met, || format!("{wanted} {name:?} line(s)"))
    }

    fn line_pattern(self, name: &str, pattern: &str) -> Demand {
        let mut lines = self.frame.frame.fields(name).peekable();
        if lines.peek().is_none() {
            return Demand::Open;
        }
        match lines.find(|line| !schema::text_matches(pattern, line.value())) {
            None => Demand::Met,
            Some(line) => self.broken(format!("{name} lines that match {pattern}"), &line.text()),
        }
    }

    fn only_lines(self) -> Demand {
        let allowed = &self.rule.only_lines;
        let other = self.frame.frame.lines.iter().find(|line| match line.kind {
            LineKind::Blank => false,
            LineKind::Comment => !allowed.iter().any(|name| name == COMMENT),
            LineKind::Field { .. } => !allowed.iter().any(|name| line.is_field(name)),
        });
        match other {
            None => Demand::Met,
            Some(line) => self.broken(format!("only {} lines", one_of(allowed)), &line.text()),
        }
    }

    fn data(self, wanted: &Value) -> Demand {
        match &self.frame.json {
            None => self.broken(
                format!("data that is JSON, by {}", schema::name(wanted)),
                "no JSON",
            ),
            Some(data) => match schema::fault(wanted, data) {
                None => Demand::Met,
                Some(fault) => self.broken(format!("data by {}", schema::name(wanted)), &fault),
            },
        }
    }

    fn equal(self, left: &str, right: &str) -> Demand {
        let place = self.place(self.frame);
        let (Some(a), Some(b)) = (place.value(left), place.value(right)) else {
            return Demand::Open;
        };
        if source::equal((left, &a), (right, &b)) {
            return Demand::Met;
        }
        self.broken(
            format!("{left} equal to {right}"),
            &format!("{left} is {a}, {right} is {b}"),
        )
    }

    fn clock(self, pointer: &str) -> Demand {
        let expected =
            || format!("{pointer} an ISO 8601 UTC time at most {CLOCK_SECONDS} s from now");
        let Some(text) = self.frame.pointer(pointer).and_then(Value::as_str) else {
            return self.broken(expected(), &format!("no string at {pointer}"));
        };
        let told = match time::parse(text) {
            Ok(told) => told,
            Err(error) => return self.broken(expected(), &error.to_string()),
        };
        let started = self.reading.transcript().header.started_ms;
        let now =
            started.saturating_add(i64::try_from(self.frame.at.as_millis()).unwrap_or(i64::MAX));
        let near = started == 0 || told.abs_diff(now) <= CLOCK_SECONDS * 1000;
        if near {
            Demand::Met
        } else {
            self.broken(expected(), &format!("it is {}", time::format_ms(now)))
        }
    }

    fn known_type(self) -> Demand {
        let name = self.frame.event_type();
        let known = match self.stream.kind {
            Some(StreamKind::Action) => covel::event(name).is_some_and(|event| event.member),
            Some(StreamKind::Subscription) => {
                covel::event(name).is_some() || CONTROL.contains(&name)
            }
            Some(StreamKind::Relay) => RELAY.contains(&name),
            None => return Demand::Open,
        };
        self.check(known, || "a type that the protocol knows".to_owned())
    }

    /// Compares with the first selected frame of the stream; that one alone shows nothing.
    fn constant(self, source: &str, first: Option<&'a StreamFrame>) -> Demand {
        let Some(first) = first.filter(|first| first.index != self.frame.index) else {
            return Demand::Open;
        };
        let (was, is) = (
            self.place(first).value(source),
            self.place(self.frame).value(source),
        );
        if was == is && is.is_some() {
            return Demand::Met;
        }
        let show = |value: Option<Value>| {
            value.map_or_else(|| "absent".to_owned(), |value| value.to_string())
        };
        let found = format!(
            "{source} is {}, in frame {} it was {}",
            show(is),
            first.index,
            show(was)
        );
        self.broken(format!("one {source} over the stream"), &found)
    }

    /// Compares with the selected frame before; the first one alone shows nothing.
    fn rising(self, pointer: &str, before: Option<&'a StreamFrame>) -> Demand {
        let Some(before) = before else {
            return Demand::Open;
        };
        let number =
            |frame: &StreamFrame| frame.pointer(pointer).and_then(Value::as_number).cloned();
        let (was, is) = (number(before), number(self.frame));
        if let (Some(was), Some(is)) = (&was, &is)
            && less(was, is)
        {
            return Demand::Met;
        }
        let show = |number: Option<Number>| {
            number.map_or_else(|| "no number".to_owned(), |n| n.to_string())
        };
        let found = format!("{pointer} is {} after {}", show(is), show(was));
        self.broken(format!("{pointer} rising from frame to frame"), &found)
    }
}

fn less(left: &Number, right: &Number) -> bool {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left < right,
        _ => left
            .as_f64()
            .zip(right.as_f64())
            .is_some_and(|(left, right)| left < right),
    }
}

/// How rules write the comment lines of a frame, as if `:` were a field name.
pub(super) const COMMENT: &str = ":";

/// Distance from the harness's clock that [`FrameRule::clock`] allows.
pub(super) const CLOCK_SECONDS: u64 = 60;

/// Control frames of the subscription stream.
pub(super) const CONTROL: &[&str] = &[
    covel::envelope::CONNECTED,
    covel::envelope::HEARTBEAT,
    covel::envelope::RESET,
];

/// Events of the relay stream. Source: seed 000, line 642.
pub(super) const RELAY: &[&str] = &["ready", "request", "cancel"];

/// The types of a stream's events, for evidence.
pub(super) fn types_of(stream: &Stream<'_>) -> BTreeSet<String> {
    events_of(stream)
        .map(|frame| frame.event_type().to_owned())
        .collect()
}

/// The frames of a stream that have a `data` or an `event` line.
pub(super) fn events_of<'s>(
    stream: &'s Stream<'_>,
) -> impl DoubleEndedIterator<Item = &'s StreamFrame> {
    stream.events().filter(|frame| carries_event(frame))
}
