//! What happened in a case, from all its sockets together: turns with their frames, lives of the target, and how long
//! each socket was there to hear.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use super::RESTART;
use crate::{
    checks::chat_ws::view::{is_numbered, job, seq, session},
    transcript::{
        End, ExchangeId, Fact, Side, TargetFact, Transcript, cut,
        views::messages::{Channel, Message},
    },
};

/// The note that says how many numbered frames the target keeps of a turn.
pub(super) fn keeps_note(frames: u64) -> String {
    format!("{KEEPS}{frames}")
}

/// The note that says how long the target keeps a turn that is over, in milliseconds before time scaling.
pub(super) fn lingers_note(milliseconds: u64) -> String {
    format!("{LINGERS}{milliseconds}")
}

const KEEPS: &str = "frames kept of a turn: ";
const LINGERS: &str = "milliseconds that a turn lingers: ";

/// What happened.
pub(super) struct Truth<'c, 't> {
    pub(super) channels: &'c [Channel<'t>],
    /// All turns, in the order of their beginning.
    pub(super) turns: Vec<Turn<'c>>,
    /// Numbered frames that the target keeps of a turn, where that is known.
    pub(super) kept: Option<i64>,
    /// How long it keeps a turn that is over, where that is known; scaled.
    pub(super) linger: Option<Duration>,
    /// The number of the first frame of a turn.
    pub(super) first: i64,
    /// When the target was started.
    starts: Vec<Duration>,
    /// When it was about to be stopped.
    stops: Vec<Duration>,
    /// Channels on which an absence means nothing.
    cut: BTreeSet<ExchangeId>,
}

/// A turn, as far as anybody saw it.
pub(super) struct Turn<'c> {
    pub(super) session: &'c str,
    pub(super) job: &'c str,
    /// When it was first seen.
    pub(super) begun: Duration,
    /// When its end was first seen.
    pub(super) ended: Option<Duration>,
    /// Whether it ended in success; false, too, when its end was not seen.
    pub(super) success: bool,
    /// The target's life in which it was.
    pub(super) life: usize,
    /// When that life was over, if it was.
    pub(super) gone: Option<Duration>,
    /// Its frames by number, each with when it was first seen and what it said.
    pub(super) frames: BTreeMap<i64, (Duration, &'c Value)>,
}

impl Turn<'_> {
    /// Its highest number before a time; one below `first` when there was none.
    pub(super) fn newest(&self, before: Duration, first: i64) -> i64 {
        let seen = self.frames.iter().rev();
        let newest = seen
            .filter(|(_, (at, _))| *at < before)
            .map(|(seq, _)| *seq)
            .next();
        newest.unwrap_or(first - 1)
    }

    /// Whether it was under way at a time.
    pub(super) fn runs_at(&self, at: Duration) -> bool {
        let over = self.ended.into_iter().chain(self.gone).min();
        self.begun < at && over.is_none_or(|over| over > at)
    }
}

impl<'c, 't> Truth<'c, 't> {
    pub(super) fn new(transcript: &Transcript, channels: &'c [Channel<'t>]) -> Self {
        let mut truth = Self {
            channels,
            turns: Vec::new(),
            kept: None,
            linger: None,
            first: 0,
            starts: Vec::new(),
            stops: Vec::new(),
            cut: cut::exchanges(transcript),
        };
        for entry in &transcript.entries {
            match &entry.fact {
                Fact::Target(TargetFact::Started { .. }) => truth.starts.push(entry.at),
                Fact::Label(label) if label == RESTART => truth.stops.push(entry.at),
                Fact::Note(note) => truth.read_note(note, transcript.header.time_scale),
                _ => {}
            }
        }
        truth.read_turns();
        let firsts = truth
            .turns
            .iter()
            .filter_map(|turn| turn.frames.keys().next());
        truth.first = firsts.min().copied().unwrap_or_default();
        truth
    }

    fn read_note(&mut self, note: &str, scale: f64) {
        let note = note.trim();
        let number = |prefix: &str| note.strip_prefix(prefix)?.parse::<u32>().ok();
        if let Some(kept) = number(KEEPS) {
            self.kept = Some(kept.into());
        }
        if let Some(linger) = number(LINGERS) {
            self.linger = Some(Duration::from_millis(linger.into()).mul_f64(scale.max(0.0)));
        }
    }

    fn read_turns(&mut self) {
        let messages = self.channels.iter().flat_map(|channel| &channel.messages);
        let mut told: Vec<&Message<'_>> = messages
            .filter(|message| is_numbered(message) || starts(message))
            .collect();
        told.sort_by_key(|message| message.at);
        for message in told {
            let (Some(of), Some(json)) = (session(message), message.json.as_deref()) else {
                continue;
            };
            let job = job(message).unwrap_or_default();
            let known = self.turns.iter_mut();
            let place = known
                .rev()
                .find(|turn| turn.session == of && turn.job == job);
            let turn = match place {
                Some(turn) => turn,
                None => {
                    let life = self
                        .starts
                        .iter()
                        .filter(|start| **start <= message.at)
                        .count();
                    self.turns.push(Turn {
                        session: of,
                        job,
                        begun: message.at,
                        ended: None,
                        success: false,
                        life,
                        gone: self.stops.iter().find(|stop| **stop > message.at).copied(),
                        frames: BTreeMap::new(),
                    });
                    let Some(turn) = self.turns.last_mut() else {
                        continue;
                    };
                    turn
                }
            };
            let Some(seq) = seq(message).filter(|_| is_numbered(message)) else {
                continue;
            };
            turn.frames.entry(seq).or_insert((message.at, json));
            if message.kind() == "chat:complete" && turn.ended.is_none() {
                turn.ended = Some(message.at);
                turn.success = message.pointer("/payload/success") == Some(&true.into());
            }
        }
    }

    /// The target's life at a time.
    pub(super) fn life(&self, at: Duration) -> usize {
        self.starts.iter().filter(|start| **start <= at).count()
    }

    /// Whether the target was being stopped, or down.
    pub(super) fn is_stopping(&self, at: Duration) -> bool {
        self.stops.iter().any(|stop| {
            let back = self.starts.iter().find(|start| *start > stop);
            *stop <= at && back.is_none_or(|back| at < *back)
        })
    }

    /// Until when what others saw had to come on a channel, too; `None` when it broke off.
    pub(super) fn heard_until(&self, channel: &Channel<'_>) -> Option<Duration> {
        if self.cut.contains(&channel.id) {
            return None;
        }
        let stop = self.stops.iter().find(|stop| **stop > channel.opened);
        let closed = channel.of_kind(Side::Client, ":close").next();
        let end = match (closed, channel.end) {
            (Some(close), _) => close.at,
            (None, None) => channel.last,
            (None, Some((at, End::ClosedByHarness))) => at,
            (None, Some(_)) => return stop.copied(),
        };
        Some(stop.map_or(end, |stop| end.min(*stop)))
    }

    /// The turns of a session.
    pub(super) fn turns_of<'s>(&'s self, of: &'s str) -> impl Iterator<Item = &'s Turn<'c>> {
        self.turns.iter().filter(move |turn| turn.session == of)
    }
}

/// Whether a message tells that a job runs.
fn starts(message: &Message<'_>) -> bool {
    message.from == Side::Server
        && message.kind() == "chat:active"
        && message.pointer("/payload/running") == Some(&true.into())
        && job(message).is_some()
}

/// A subscription that a server takes.
#[derive(Clone, Copy)]
pub(super) struct Asked<'c, 't> {
    pub(super) message: &'c Message<'t>,
    pub(super) session: &'c str,
    pub(super) replay: bool,
    /// The last number that it names; -1 without one.
    pub(super) last: f64,
}

/// The subscriptions on a channel.
pub(super) fn subscriptions<'c, 't>(channel: &'c Channel<'t>) -> Vec<Asked<'c, 't>> {
    let read = |message: &'c Message<'t>| {
        let last = match message.pointer("/payload/lastSeq") {
            None => -1.0,
            Some(last) => last.as_f64()?,
        };
        Some(Asked {
            message,
            session: session(message)?,
            replay: message.pointer("/payload/wantReplay") == Some(&true.into()),
            last,
        })
    };
    channel
        .of_kind(Side::Client, "chat:subscribe")
        .filter_map(read)
        .collect()
}

/// The first `pong` after a message, which is after all that the message brought.
pub(super) fn pong_after<'c, 't>(
    channel: &'c Channel<'t>,
    index: usize,
) -> Option<&'c Message<'t>> {
    channel
        .of_kind(Side::Server, "pong")
        .find(|pong| pong.index > index)
}
