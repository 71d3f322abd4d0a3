//! Demands on whole message channels.

use std::time::Duration;

use turnwire_spec::catalogue::{
    messages::{ChannelRule, StateRule},
    rule::{Count, Period},
};

use super::{Demand, note, one_of, shown};
use crate::{
    schema,
    transcript::views::{
        messages::{Channel, Message, label_fits, side_of},
        reading::Reading,
        states::states,
        stream::type_matches,
    },
    verdict::{Evidence, Findings},
};

/// Judges every channel that the rule selects.
pub(super) fn judge(rule: &ChannelRule, reading: &Reading<'_>) -> Findings {
    let mut findings = Findings::none();
    let selected: Vec<_> = reading
        .channels()
        .iter()
        .filter(|channel| selects(rule, channel))
        .collect();
    for channel in &selected {
        let at = At {
            rule,
            reading,
            channel,
        };
        note(&mut findings, at.demands());
    }
    if let (Some(count), Some(last)) = (rule.channels, selected.last()) {
        let found = u64::try_from(selected.len()).unwrap_or(u64::MAX);
        let fault = (!count.allows(found))
            .then(|| last.evidence(format!("{count} channel(s) in all"), found.to_string()));
        findings.judge(fault);
    }
    findings
}

fn selects(rule: &ChannelRule, channel: &Channel<'_>) -> bool {
    label_fits(rule.label.as_deref(), channel.label)
        && (rule.path.is_empty() || rule.path.iter().any(|path| path == channel.path()))
}

/// A channel under judgement.
#[derive(Clone, Copy)]
struct At<'a, 't> {
    rule: &'a ChannelRule,
    reading: &'a Reading<'t>,
    channel: &'a Channel<'t>,
}

impl<'a, 't> At<'a, 't> {
    fn demands(self) -> Vec<Demand> {
        let rule = self.rule;
        let mut demands = Vec::new();
        if !rule.first.is_empty() {
            demands.push(self.first());
        }
        if !rule.only.is_empty() {
            demands.push(self.only());
        }
        let counts = rule.count.iter();
        demands.extend(counts.map(|(kind, count)| self.count(kind, *count)));
        let order = rule.order.iter();
        demands.extend(order.map(|(before, after)| self.order(before, after)));
        let periods = rule.period.iter();
        demands.extend(periods.map(|(kind, period)| self.period(kind, *period)));
        demands
    }

    fn messages(self) -> impl DoubleEndedIterator<Item = &'a Message<'t>> {
        self.channel.from(side_of(self.rule.from))
    }

    fn of(self, kind: &str) -> Vec<&'a Message<'t>> {
        let pattern = [kind.to_owned()];
        self.messages()
            .filter(|message| type_matches(&pattern, message.kind()))
            .collect()
    }

    fn at_message(self, met: bool, message: &Message<'_>, expected: String) -> Demand {
        Demand::check(met, || {
            self.channel.evidence_at(message, expected, message.show())
        })
    }

    fn first(self) -> Demand {
        let Some(first) = self.messages().find(|message| message.is_data()) else {
            return Demand::Open;
        };
        let met = type_matches(&self.rule.first, first.kind());
        self.at_message(met, first, format!("first {}", one_of(&self.rule.first)))
    }

    fn only(self) -> Demand {
        let mut messages = self.messages().peekable();
        if messages.peek().is_none() {
            return Demand::Open;
        }
        match messages.find(|message| !type_matches(&self.rule.only, message.kind())) {
            None => Demand::Met,
            Some(other) => {
                self.at_message(false, other, format!("only {}", one_of(&self.rule.only)))
            }
        }
    }

    fn count(self, kind: &str, count: Count) -> Demand {
        if self.messages().next().is_none() {
            return Demand::Open;
        }
        let found = u64::try_from(self.of(kind).len()).unwrap_or(u64::MAX);
        Demand::check(count.allows(found), || {
            self.channel
                .evidence(format!("{count} {kind}"), found.to_string())
        })
    }

    fn order(self, before: &str, after: &str) -> Demand {
        let (early, late) = (self.of(before), self.of(after));
        let (Some(last), Some(first)) = (early.last(), late.first()) else {
            return Demand::Open;
        };
        let expected = format!("every {before} before the first {after}");
        self.at_message(last.index < first.index, last, expected)
    }

    /// Judges the mean of at least two gaps, so that one late message accuses nobody.
    fn period(self, kind: &str, period: Period) -> Demand {
        let scale = self.reading.transcript().header.time_scale.max(0.0);
        let every = Duration::from_millis(period.every_ms).mul_f64(scale);
        let within = Duration::from_millis(period.within_ms)
            .mul_f64(scale)
            .max(every / 4);
        let times: Vec<_> = self.of(kind).iter().map(|message| message.at).collect();
        let open = self.channel.until().saturating_sub(self.channel.opened);
        let gaps = u32::try_from(times.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let (Some(first), Some(last), true) = (times.first(), times.last(), gaps >= 2) else {
            return if open < every * 5 {
                Demand::Open
            } else {
                let got = format!("{} over {open:?}", times.len());
                Demand::Broken(
                    self.channel
                        .evidence(format!("{kind} every {every:?}"), got),
                )
            };
        };
        let mean = last.saturating_sub(*first) / gaps;
        Demand::check(mean.abs_diff(every) <= within, || {
            let expected = format!("{kind} every {every:?}, within {within:?}");
            self.channel.evidence(expected, format!("every {mean:?}"))
        })
    }
}

/// Judges what a client reports of itself.
pub(super) fn judge_states(rule: &StateRule, reading: &Reading<'_>) -> Findings {
    let mut findings = shown::judge(rule, reading);
    let transcript = reading.transcript();
    for report in states(transcript) {
        let labelled = rule.label.is_empty()
            || rule
                .label
                .iter()
                .any(|label| label_fits(Some(label), report.label));
        if !labelled || !(rule.every || report.last) {
            continue;
        }
        if let Some(wanted) = &rule.state {
            let fault = schema::fault(wanted, report.state).map(|fault| Evidence {
                at: Some(report.at),
                ..Evidence::new(
                    format!(
                        "a report by {} under {:?}",
                        schema::name(wanted),
                        report.label
                    ),
                    format!("{fault}: {}", report.state),
                )
            });
            findings.judge(fault);
        }
    }
    findings
}
