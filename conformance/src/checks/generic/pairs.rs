//! Demands on frames that belong together.

use turnwire_spec::catalogue::relation::{PairRule, Side, Sighted};

use super::{
    Demand,
    frames::carries_event,
    labelled, note,
    source::{Place, equal},
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

/// Judges each frame that the rule names, by the frames that belong to it.
pub(super) fn judge(rule: &PairRule, reading: &Reading<'_>) -> Findings {
    let mut findings = Findings::none();
    for stream in reading
        .streams()
        .iter()
        .filter(|stream| opens(&rule.each, stream))
    {
        let frames: Vec<_> = stream
            .events()
            .filter(|frame| carries_event(frame))
            .collect();
        for (place, frame) in frames.iter().enumerate() {
            if sees(&rule.each, frame) {
                let at = At {
                    rule,
                    reading,
                    stream,
                    frame,
                };
                note(&mut findings, [at.demand(&frames, place)]);
            }
        }
    }
    findings
}

fn opens(sighted: &Sighted, stream: &Stream<'_>) -> bool {
    let kind = sighted.stream.is_empty()
        || stream
            .kind
            .is_some_and(|kind| sighted.stream.contains(&kind));
    kind && labelled(sighted.label.as_deref(), &stream.exchange)
}

fn sees(sighted: &Sighted, frame: &StreamFrame) -> bool {
    type_selected(&sighted.types, &sighted.not_type, frame.event_type())
        && sighted.where_data.as_ref().is_none_or(|wanted| {
            frame
                .json
                .as_ref()
                .is_some_and(|data| schema::satisfied(wanted, data))
        })
}

/// A frame under judgement.
#[derive(Clone, Copy)]
struct At<'a, 't> {
    rule: &'a PairRule,
    reading: &'a Reading<'t>,
    stream: &'a Stream<'t>,
    frame: &'a StreamFrame,
}

impl At<'_, '_> {
    /// `frames` are those of the stream, and this one stands at `place`.
    fn demand(self, frames: &[&StreamFrame], place: usize) -> Demand {
        let mine = |frame: &&&StreamFrame| self.belongs(self.stream, frame);
        let (before, after) = (
            &frames[..place],
            frames.get(place + 1..).unwrap_or_default(),
        );
        let ended = self.reading.ended_by_target(&self.stream.exchange);
        match self.rule.side {
            Side::Before => self.count(before.iter().filter(mine).count(), true),
            Side::After => self.count(after.iter().filter(mine).count(), ended),
            Side::Around => {
                let all = before.iter().chain(after);
                self.count(all.filter(mine).count(), ended)
            }
            Side::Next => match after.first() {
                None => Demand::Open,
                next => self.count(next.iter().copied().filter(mine).count(), true),
            },
            Side::Elsewhere => self.elsewhere(),
        }
    }

    fn elsewhere(self) -> Demand {
        let mut others = self
            .reading
            .streams()
            .iter()
            .filter(|other| {
                other.exchange.id != self.stream.exchange.id
                    && opens(&self.rule.with, other)
                    && other.events().next().is_some()
            })
            .peekable();
        if others.peek().is_none() {
            return Demand::Open;
        }
        let found: usize = others
            .map(|other| {
                let frames = other.events().filter(|frame| carries_event(frame));
                frames.filter(|frame| self.belongs(other, frame)).count()
            })
            .sum();
        self.count(found, true)
    }

    fn belongs(self, stream: &Stream<'_>, other: &StreamFrame) -> bool {
        sees(&self.rule.with, other)
            && self.rule.by.iter().all(|(mine, its)| {
                let mine_value = place(self.stream, self.frame).value(mine);
                let its_value = place(stream, other).value(its);
                match (&mine_value, &its_value) {
                    (Some(a), Some(b)) => equal((mine, a), (its, b)),
                    (None, None) => true,
                    _ => false,
                }
            })
    }

    fn count(self, found: usize, shows_absence: bool) -> Demand {
        let found = u64::try_from(found).unwrap_or(u64::MAX);
        let wanted = self.rule.count;
        if found < wanted.min && !shows_absence {
            return Demand::Open;
        }
        Demand::check(wanted.allows(found), || {
            let with = self.rule.with.types.join(", ");
            let where_it_is = match self.rule.side {
                Side::Around => "in the stream",
                Side::Before => "before it",
                Side::After => "after it",
                Side::Next => "next after it",
                Side::Elsewhere => "on another stream",
            };
            let expected = format!("{wanted} frame(s) {with} {where_it_is}, not {found}");
            self.stream
                .evidence(self.frame, expected, self.frame.text())
        })
    }
}

fn place<'a>(stream: &'a Stream<'a>, frame: &'a StreamFrame) -> Place<'a> {
    Place {
        exchange: &stream.exchange,
        templates: &[],
        frame: Some(&frame.frame),
        json: frame.json.as_ref(),
    }
}
