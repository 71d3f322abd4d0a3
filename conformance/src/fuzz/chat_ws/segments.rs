//! What a subscription brought, up to the next one to the same session on its socket: the rest of the turn that was
//! there, or word that it is gone, then every later turn as a whole.

use std::time::Duration;

use super::truth::{Asked, Truth, Turn, pong_after, subscriptions};
use crate::{
    checks::chat_ws::view::{is_numbered, job, seq, session},
    transcript::{
        Side,
        views::messages::{Channel, Message},
    },
    verdict::Evidence,
};

/// A fault, and the requirement that it breaks.
pub(super) type Fault = (&'static str, Evidence);

/// Judges every subscription of a case; gives how many there are, and what is wrong with them.
pub(super) fn judge(truth: &Truth<'_, '_>) -> (usize, Vec<Fault>) {
    let (mut judged, mut faults) = (0, Vec::new());
    for channel in truth.channels {
        let all = subscriptions(channel);
        for (place, asked) in all.iter().enumerate() {
            let mut later = all.iter().skip(place + 1);
            let next = later.find(|next| next.session == asked.session);
            judged += 1;
            faults.extend(Segment::new(truth, channel, *asked, next).fault());
        }
        let first = |of: &str| {
            let mut of_it = all.iter().filter(|asked| asked.session == of);
            of_it.next().map_or(usize::MAX, |asked| asked.message.index)
        };
        faults.extend(before_subscriptions(truth, channel, first));
    }
    (judged, faults)
}

/// CWS-126: before a subscription to a session, only who says something in it hears a turn, from its beginning on.
fn before_subscriptions(
    truth: &Truth<'_, '_>,
    channel: &Channel<'_>,
    first: impl Fn(&str) -> usize,
) -> Option<Fault> {
    let mut heard: Vec<(&str, &str, i64)> = Vec::new();
    for message in channel
        .messages
        .iter()
        .filter(|message| is_numbered(message))
    {
        let (Some(of), Some(seq)) = (session(message), seq(message)) else {
            continue;
        };
        if message.index > first(of) {
            continue;
        }
        let says = channel.from(Side::Client).any(|said| {
            let kind = said.kind();
            said.index < message.index
                && matches!(kind, "chat:send" | "chat:command")
                && session(said).is_none_or(|session| session == of)
        });
        if !says {
            let expected = format!("no frame of {of}, which nobody on this socket asked for");
            return Some((
                "CWS-126",
                channel.evidence_at(message, expected, message.show()),
            ));
        }
        let job = job(message).unwrap_or_default();
        let place = heard
            .iter_mut()
            .find(|(session, its, _)| *session == of && *its == job);
        let wanted = place.as_ref().map_or(truth.first, |(_, _, last)| last + 1);
        if seq != wanted {
            let evidence = channel.evidence_at(message, format!("seq {wanted}"), message.show());
            return Some(("CWS-035", evidence));
        }
        match place {
            Some((_, _, last)) => *last = seq,
            None => heard.push((of, job, seq)),
        }
    }
    None
}

/// A subscription and what came after it.
struct Segment<'s, 'c, 't> {
    truth: &'s Truth<'c, 't>,
    channel: &'s Channel<'t>,
    asked: Asked<'s, 't>,
    /// The numbered frames of its session.
    frames: Vec<&'s Message<'t>>,
    resync: Option<&'s Message<'t>>,
    /// When all that it brought at once was there, or could not come any more.
    answered: Duration,
    /// Whether all that it brought at once was there.
    is_answered: bool,
    /// Until when what others saw had to come here, too.
    until: Option<Duration>,
}

/// The numbers with which a turn may begin here, and what is broken by a smaller and by a greater one.
struct Start {
    from: i64,
    to: i64,
    early: &'static str,
    late: &'static str,
}

impl<'s, 'c, 't> Segment<'s, 'c, 't> {
    fn new(
        truth: &'s Truth<'c, 't>,
        channel: &'s Channel<'t>,
        asked: Asked<'s, 't>,
        next: Option<&Asked<'_, '_>>,
    ) -> Self {
        let end = next.map_or(usize::MAX, |next| next.message.index);
        let within: Vec<&Message<'t>> = channel
            .messages
            .iter()
            .filter(|it| (asked.message.index + 1..end).contains(&it.index))
            .filter(|it| session(it) == Some(asked.session))
            .collect();
        let resync = |it: &&&Message<'_>| it.from == Side::Server && it.kind() == "chat:resync";
        let pong = pong_after(channel, asked.message.index);
        let heard = truth.heard_until(channel);
        Self {
            truth,
            channel,
            asked,
            resync: within.iter().find(resync).copied(),
            frames: within.into_iter().filter(|it| is_numbered(it)).collect(),
            answered: pong.map_or(channel.until(), |pong| pong.at),
            is_answered: pong.is_some(),
            until: match next {
                Some(next) => Some(next.message.at),
                None => heard,
            },
        }
    }

    /// What is wrong, whichever turn is taken for the one that was there.
    fn fault(&self) -> Option<Fault> {
        let mut first = None;
        for current in self.candidates() {
            let fault = self.judge(current)?;
            first.get_or_insert(fault);
        }
        first
    }

    /// The turns of the session in this life of the target.
    fn turns(&self) -> impl DoubleEndedIterator<Item = &'s Turn<'c>> {
        let life = self.truth.life(self.asked.message.at);
        let of = self.asked.session;
        let turns = self.truth.turns.iter();
        turns.filter(move |turn| turn.session == of && turn.life == life)
    }

    /// The turns that may have been there when the server took the subscription; `None` stands for no turn.
    fn candidates(&self) -> Vec<Option<&'s Turn<'c>>> {
        let at = self.asked.message.at;
        let before = self.turns().rev().find(|turn| turn.begun < at);
        let mut found = match before.map(|turn| (turn, turn.ended.filter(|ended| *ended < at))) {
            None => vec![None],
            Some((turn, None)) => vec![Some(turn)],
            Some((turn, Some(ended))) => match self.truth.linger {
                Some(linger) if (at - ended) * 2 < linger => vec![Some(turn)],
                _ => vec![Some(turn), None],
            },
        };
        let meanwhile = self
            .turns()
            .filter(|turn| turn.begun >= at && turn.begun <= self.answered);
        found.extend(meanwhile.map(Some));
        found
    }

    fn judge(&self, current: Option<&Turn<'c>>) -> Option<Fault> {
        let start = match current {
            Some(turn) => match self.start(turn) {
                Ok(start) => Some(start),
                Err(fault) => return Some(*fault),
            },
            None => {
                if let Some(resync) = self.resync.filter(|_| self.truth.kept.is_some()) {
                    return Some(self.at(resync, "CWS-092", "no chat:resync without a turn"));
                }
                None
            }
        };
        let begun = current.map_or(self.asked.message.at, |turn| turn.begun);
        let later = self.turns().filter(|turn| match current {
            Some(current) => turn.begun > begun && turn.job != current.job,
            None => turn.begun >= begun,
        });
        let due: Vec<&Turn<'c>> = current.into_iter().chain(later).collect();
        if let Some(fault) = self.order(&due) {
            return Some(fault);
        }
        due.iter().find_map(|turn| {
            let is_current = current.is_some_and(|current| current.job == turn.job);
            let whole = Start {
                from: self.truth.first,
                to: self.truth.first,
                early: "CWS-035",
                late: "CWS-033",
            };
            self.series(
                turn,
                start.as_ref().filter(|_| is_current).unwrap_or(&whole),
            )
        })
    }

    /// With which number the turn that was there may go on; or that a `chat:resync` is missing, or is one too many.
    fn start(&self, turn: &Turn<'_>) -> Result<Start, Box<Fault>> {
        let (first, last) = (self.truth.first, self.asked.last);
        let low = turn.newest(self.asked.message.at, first);
        let high = turn
            .newest(self.answered + Duration::from_micros(1), first)
            .max(low);
        let live = |early| Start {
            from: low + 1,
            to: high + 1,
            early,
            late: "CWS-033",
        };
        if !self.asked.replay {
            return match self.resync {
                Some(resync) => Err(Box::new(self.at(
                    resync,
                    "CWS-092",
                    "no chat:resync unasked",
                ))),
                None => Ok(live("CWS-037")),
            };
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "a turn has fewer than 2^52 frames"
        )]
        let is_below = |seq: i64| last < seq as f64 - 1.0;
        let oldest = |newest: i64| match self.truth.kept {
            Some(kept) => first.max(newest + 1 - kept),
            None => first,
        };
        let may = self.truth.kept.is_none() || is_below(oldest(high));
        // A number before that of any frame asks for all of them, or for what never was: both are read into it.
        let must = is_below(oldest(low)) && oldest(low) > first;
        match self.resync {
            Some(resync) if !may => {
                let expected =
                    format!("the frames after {last}, which are kept, and no chat:resync");
                Err(Box::new(self.at(resync, "CWS-092", &expected)))
            }
            Some(_) => Ok(live("CWS-092")),
            None if must && self.is_answered => {
                let expected = format!("chat:resync: frames before {} are gone", oldest(low));
                let got = self.asked.message.show();
                let evidence = self.channel.evidence_at(self.asked.message, expected, got);
                Err(Box::new(("CWS-091", evidence)))
            }
            None => {
                #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
                let next = (last.floor() as i64).saturating_add(1).max(first);
                Ok(Start {
                    from: next.min(low + 1),
                    to: next.min(high + 1),
                    early: "CWS-036",
                    late: "CWS-034",
                })
            }
        }
    }

    /// Frames come turn by turn, and none of a turn that is not due.
    fn order(&self, due: &[&Turn<'_>]) -> Option<Fault> {
        let mut place = 0;
        for frame in &self.frames {
            let its = job(frame).unwrap_or_default();
            let found = due.iter().position(|turn| turn.job == its);
            match found {
                Some(found) if found >= place => place = found,
                Some(_) => return Some(self.at(frame, "CWS-035", "no frame of an earlier turn")),
                None => return Some(self.at(frame, "CWS-036", "no frame of a turn that is gone")),
            }
        }
        None
    }

    /// The frames of one turn: from where it may begin, one after the other, as everybody saw them, to where it was.
    fn series(&self, turn: &Turn<'_>, start: &Start) -> Option<Fault> {
        let mine = |frame: &&&Message<'_>| job(frame).unwrap_or_default() == turn.job;
        let mut last = None;
        for frame in self.frames.iter().filter(mine) {
            let seq = seq(frame)?;
            let fault = match last {
                None if seq < start.from => {
                    Some((start.early, format!("seq {} or more", start.from)))
                }
                None if seq > start.to => Some((start.late, format!("seq {} first", start.to))),
                Some(last) if seq != last + 1 => Some(("CWS-035", format!("seq {}", last + 1))),
                _ => None,
            };
            if let Some((id, expected)) = fault {
                return Some(self.at(frame, id, &expected));
            }
            let told = turn.frames.get(&seq).map(|(_, json)| *json);
            if told != frame.json.as_deref() {
                let told = told.map(ToString::to_string).unwrap_or_default();
                return Some(self.at(frame, "CWS-034", &told));
            }
            last = Some(seq);
        }
        let until = self.until?;
        let newest = turn.newest(until, self.truth.first);
        let wanted = last.map_or(start.to, |last| last + 1);
        (newest >= wanted).then(|| {
            let expected = format!("the frames {wanted} to {newest} of {}", turn.job);
            let got = format!("{} frame(s) of it", self.frames.iter().filter(mine).count());
            let id = if last.is_some() {
                "CWS-033"
            } else {
                start.late
            };
            (
                id,
                self.channel.evidence_at(self.asked.message, expected, got),
            )
        })
    }

    fn at(&self, message: &Message<'_>, id: &'static str, expected: &str) -> Fault {
        (
            id,
            self.channel.evidence_at(message, expected, message.show()),
        )
    }
}
