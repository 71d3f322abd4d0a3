//! Demands on single messages, and on what answers them.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use turnwire_spec::{
    catalogue::{
        messages::{AnswerRule, MessageRule, Selection},
        rule::Count,
    },
    time,
};

use super::{Demand, frames::CLOCK_SECONDS, note};
use crate::{
    schema,
    transcript::{
        Side,
        views::{
            messages::{Channel, Message, label_fits, selects, side_of},
            reading::Reading,
            stream::text_of,
        },
    },
    verdict::{Evidence, Findings},
};

/// Judges every message that the rule selects, or, when messages are forbidden, every channel.
pub(super) fn judge(rule: &MessageRule, reading: &Reading<'_>) -> Findings {
    let (mut findings, selection) = (Findings::none(), rule.selection());
    for channel in reading.channels() {
        if rule.forbidden {
            judge_absence(rule, &selection, channel, &mut findings);
        } else {
            judge_channel(rule, &selection, reading, channel, &mut findings);
        }
    }
    findings
}

fn judge_absence(
    rule: &MessageRule,
    selection: &Selection,
    channel: &Channel<'_>,
    findings: &mut Findings,
) {
    let spoke = channel
        .messages
        .iter()
        .any(|message| match rule.label.as_deref() {
            Some(label) => label_fits(Some(label), message.label),
            None => message.from == side_of(rule.from),
        });
    if !spoke {
        return;
    }
    findings.judged += 1;
    let found = channel
        .messages
        .iter()
        .filter(|message| selects(selection, message));
    findings.faults.extend(
        found.map(|message| channel.evidence_at(message, "no such message", message.show())),
    );
}

fn judge_channel<'t>(
    rule: &MessageRule,
    selection: &Selection,
    reading: &Reading<'t>,
    channel: &Channel<'t>,
    findings: &mut Findings,
) {
    let (mut first, mut before) = (None, None);
    let mut seen = vec![BTreeSet::new(); rule.unique.len()];
    for message in channel
        .messages
        .iter()
        .filter(|message| selects(selection, message))
    {
        let at = At {
            rule,
            reading,
            channel,
            message,
        };
        let mut demands = at.alone();
        demands.extend(
            rule.constant
                .iter()
                .map(|source| at.constant(source, first)),
        );
        demands.extend(rule.rising.iter().map(|pointer| at.rising(pointer, before)));
        let again = rule.unique.iter().zip(&mut seen);
        demands.extend(again.map(|(source, seen)| at.unique(source, seen)));
        note(findings, demands);
        first = first.or(Some(message));
        before = Some(message);
    }
}

/// A message under judgement.
#[derive(Clone, Copy)]
struct At<'a, 't> {
    rule: &'a MessageRule,
    reading: &'a Reading<'t>,
    channel: &'a Channel<'t>,
    message: &'a Message<'t>,
}

impl At<'_, '_> {
    fn broken(self, expected: impl Into<String>, got: &str) -> Demand {
        let shown = format!("{got}: {}", self.message.show());
        Demand::Broken(self.channel.evidence_at(self.message, expected, shown))
    }

    /// Demands that the message alone decides.
    fn alone(self) -> Vec<Demand> {
        let rule = self.rule;
        let mut demands = Vec::new();
        demands.extend(rule.data.iter().map(|wanted| self.data(wanted)));
        demands.extend(
            rule.equal
                .iter()
                .map(|(left, right)| self.equal(left, right)),
        );
        demands.extend(rule.clock.iter().map(|pointer| self.clock(pointer)));
        demands
    }

    fn data(self, wanted: &Value) -> Demand {
        match &self.message.json {
            None => self.broken(format!("JSON by {}", schema::name(wanted)), "no JSON"),
            Some(data) => match schema::fault(wanted, data) {
                None => Demand::Met,
                Some(fault) => self.broken(schema::name(wanted), &fault),
            },
        }
    }

    fn equal(self, left: &str, right: &str) -> Demand {
        let (Some(a), Some(b)) = (value(self.message, left), value(self.message, right)) else {
            return Demand::Open;
        };
        if same(left, &a, right, &b) {
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
        let Some(text) = self.message.text_at(pointer) else {
            return self.broken(expected(), &format!("no string at {pointer}"));
        };
        let told = match time::parse(text) {
            Ok(told) => told,
            Err(error) => return self.broken(expected(), &error.to_string()),
        };
        let started = self.reading.transcript().header.started_ms;
        let now =
            started.saturating_add(i64::try_from(self.message.at.as_millis()).unwrap_or(i64::MAX));
        if started == 0 || told.abs_diff(now) <= CLOCK_SECONDS * 1000 {
            Demand::Met
        } else {
            self.broken(expected(), &format!("it is {}", time::format_ms(now)))
        }
    }

    fn constant(self, source: &str, first: Option<&Message<'_>>) -> Demand {
        let Some(first) = first else {
            return Demand::Open;
        };
        let (was, is) = (value(first, source), value(self.message, source));
        if was == is && is.is_some() {
            return Demand::Met;
        }
        let found = format!("{} after {}", shown(is.as_ref()), shown(was.as_ref()));
        self.broken(format!("one {source} over the channel"), &found)
    }

    fn rising(self, pointer: &str, before: Option<&Message<'_>>) -> Demand {
        let Some(before) = before else {
            return Demand::Open;
        };
        let number = |message: &Message<'_>| message.pointer(pointer).and_then(Value::as_f64);
        let (was, is) = (number(before), number(self.message));
        if was.zip(is).is_some_and(|(was, is)| was < is) {
            return Demand::Met;
        }
        let show = |number: Option<f64>| number.map_or("no number".to_owned(), |n| n.to_string());
        let found = format!("{pointer} is {} after {}", show(is), show(was));
        self.broken(format!("{pointer} rising"), &found)
    }

    fn unique(self, source: &str, seen: &mut BTreeSet<String>) -> Demand {
        let Some(value) = value(self.message, source) else {
            return Demand::Open;
        };
        let text = text_of(&value);
        if seen.insert(text.clone()) {
            return if seen.len() > 1 {
                Demand::Met
            } else {
                Demand::Open
            };
        }
        self.broken(format!("another {source} each time"), &text)
    }
}

/// Judges every message that asks for an answer.
pub(super) fn judge_answers(rule: &AnswerRule, reading: &Reading<'_>) -> Findings {
    let mut findings = Findings::none();
    for channel in reading.channels() {
        for message in channel
            .messages
            .iter()
            .filter(|message| selects(&rule.when, message))
        {
            let asked = Asked {
                rule,
                reading,
                channel,
                message,
            };
            if rule.elsewhere {
                let others = reading.channels().iter().filter(|other| {
                    other.id != channel.id
                        && other.opened <= message.at
                        && other.until() > message.at
                });
                others.for_each(|other| note(&mut findings, asked.demands(other)));
            } else {
                note(&mut findings, asked.demands(channel));
            }
        }
    }
    findings
}

/// A message that asks for an answer.
#[derive(Clone, Copy)]
struct Asked<'a, 't> {
    rule: &'a AnswerRule,
    reading: &'a Reading<'t>,
    channel: &'a Channel<'t>,
    message: &'a Message<'t>,
}

/// At least one.
const SOME: Count = Count { min: 1, max: None };

/// Shortest time in which an answer may come, whatever the scale: it is a machine's hiccup.
const AT_LEAST: Duration = Duration::from_millis(500);

/// Shortest time in which a message may reach another channel. How it gets there is the target's own matter, and no
/// period of the protocol that could be scaled.
const ELSEWHERE: Duration = Duration::from_secs(4);

impl Asked<'_, '_> {
    fn demands(self, on: &Channel<'_>) -> Vec<Demand> {
        let (answers, waited) = self.answers(on);
        let count = self.rule.count.unwrap_or(SOME);
        let found = u64::try_from(answers.len()).unwrap_or(u64::MAX);
        let mut demands = Vec::new();
        if !count.allows(found) {
            let too_few = found < count.min;
            demands.push(if too_few && !waited {
                Demand::Open
            } else {
                Demand::Broken(self.wrong_count(on, count, &answers))
            });
        } else if waited || count.max.is_none() {
            demands.push(Demand::Met);
        }
        if let Some(wanted) = &self.rule.data {
            demands.extend(answers.iter().map(|answer| self.data(on, answer, wanted)));
        }
        demands
    }

    /// The answers on a channel, and whether more of them would have been seen.
    fn answers<'c, 'd>(self, on: &'c Channel<'d>) -> (Vec<&'c Message<'d>>, bool) {
        let within = match self.rule.within_ms {
            0 => Duration::from_secs(2),
            ms => Duration::from_millis(ms),
        };
        let scale = self.reading.transcript().header.time_scale.max(0.0);
        let own = on.id == self.channel.id;
        let count = self.rule.count.unwrap_or(SOME);
        let at_least = match count.min {
            0 => AT_LEAST,
            _ if own => AT_LEAST,
            _ => ELSEWHERE,
        };
        let by = self.message.at + within.mul_f64(scale).max(at_least);
        let begun = self.cause();
        let (mut answers, mut stopped) = (Vec::new(), false);
        for message in &on.messages {
            let later = if own {
                message.index > self.message.index
            } else {
                message.at >= begun
            };
            if !later {
                continue;
            }
            if self
                .rule
                .until
                .as_ref()
                .is_some_and(|until| selects(until, message))
            {
                stopped = true;
                break;
            }
            if selects(&self.rule.then, message) && self.belongs(message) {
                answers.push(message);
            }
        }
        let ended = on.end.is_some() && on.end.is_some_and(|(_, end)| ended_by_peer(end));
        // Who loses another channel may have been cut off before the message was on its way there.
        (answers, stopped || own && ended || on.until() >= by)
    }

    /// The time before which nothing on another channel can belong to the message. The two channels are read side by
    /// side, so what the target sends to both may be seen on either first, and on the slower one as late as the target
    /// likes: for what the target says, it is when the harness last spoke before the message that this one follows, of the
    /// same thing in another state.
    fn cause(self) -> Duration {
        if self.message.from == Side::Client {
            return self.message.at;
        }
        let Some((thing, _)) = self.rule.equal.first() else {
            return Duration::ZERO;
        };
        let values = |message: &Message<'_>| -> Vec<Option<Value>> {
            let sources = self.rule.equal.iter();
            sources.map(|(left, _)| value(message, left)).collect()
        };
        let (name, state) = (value(self.message, thing), values(self.message));
        let before = self.channel.messages.iter().rfind(|message| {
            message.index < self.message.index
                && message.kind() == self.message.kind()
                && value(message, thing) == name
                && values(message) != state
        });
        let Some(before) = before else {
            return Duration::ZERO;
        };
        let mut said = self.channel.from(Side::Client);
        said.rfind(|message| message.index < before.index)
            .map_or(Duration::ZERO, |message| message.at)
    }

    fn belongs(self, answer: &Message<'_>) -> bool {
        self.rule.equal.iter().all(|(left, right)| {
            match (value(self.message, left), value(answer, right)) {
                (Some(a), Some(b)) => same(left, &a, right, &b),
                _ => false,
            }
        })
    }

    fn wrong_count(self, on: &Channel<'_>, count: Count, answers: &[&Message<'_>]) -> Evidence {
        let kinds = &self.rule.then.types;
        let expected = format!(
            "{count} answer(s) {} to {}",
            kinds.join(" or "),
            self.message.show()
        );
        match answers.last() {
            Some(last) => {
                let got = format!("{}, the last of them {}", answers.len(), last.show());
                on.evidence_at(last, expected, got)
            }
            None => {
                let later = on.messages.iter().filter(|it| it.at >= self.message.at);
                let kinds: Vec<_> = later
                    .filter(|it| it.from == side_of(self.rule.then.from))
                    .map(|it| it.kind().to_owned())
                    .collect();
                let got = format!("none; what came: {}", kinds.join(", "));
                self.channel.evidence_at(self.message, expected, got)
            }
        }
    }

    fn data(self, on: &Channel<'_>, answer: &Message<'_>, wanted: &Value) -> Demand {
        let json = answer.json.as_deref().unwrap_or(&Value::Null);
        match schema::fault(wanted, json) {
            None => Demand::Met,
            Some(fault) => Demand::Broken(on.evidence_at(
                answer,
                format!("an answer by {}", schema::name(wanted)),
                format!("{fault}: {}", answer.show()),
            )),
        }
    }
}

fn ended_by_peer(end: &crate::transcript::End) -> bool {
    use crate::transcript::End;
    matches!(end, End::Complete | End::Broken(_))
}

/// The value of a source: a pointer into the message, or `=text` with `{/pointer}` templates.
fn value(message: &Message<'_>, source: &str) -> Option<Value> {
    if source.is_empty() || source.starts_with('/') {
        return message.pointer(source).cloned();
    }
    let mut rest = source.strip_prefix('=')?;
    let mut filled = String::new();
    while let Some((before, after)) = rest.split_once("{/") {
        let (pointer, after) = after.split_once('}')?;
        filled.push_str(before);
        filled.push_str(&text_of(message.pointer(&format!("/{pointer}"))?));
        rest = after;
    }
    filled.push_str(rest);
    Some(filled.into())
}

fn same(left: &str, a: &Value, right: &str, b: &Value) -> bool {
    if left.starts_with('=') || right.starts_with('=') {
        text_of(a) == text_of(b)
    } else {
        a == b
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "absent".to_owned(), ToString::to_string)
}
