//! A case: what the server does, step by step, as plain data.

use serde::{Deserialize, Serialize};

use super::{
    bytes::{ENDS, LINES, Wrap},
    frames::{ACTION, CHAT, SUBSCRIPTION, UPDATES},
};
use crate::fuzz::{
    envelopes::{Face, change::Change},
    random::Random,
};

/// The protocols whose clients can be fuzzed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `covel-sse`.
    Covel,
    /// `sse`: readers of event streams.
    Stream,
    /// `chat-ws`.
    Chat,
    /// `session-update`.
    Updates,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Covel, Self::Stream, Self::Chat, Self::Updates];

    /// Name of the suite.
    pub fn suite(self) -> &'static str {
        match self {
            Self::Covel => "covel-sse",
            Self::Stream => "sse",
            Self::Chat => "chat-ws",
            Self::Updates => "session-update",
        }
    }

    /// Whether its clients are told each step, and answer it with what they show.
    pub fn takes_steps(self) -> bool {
        matches!(self, Self::Chat | Self::Updates)
    }

    /// The kind of a suite; `None` when its clients are not fuzzed.
    pub fn of(suite: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.suite() == suite)
    }
}

/// What a server does to a client.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Case {
    /// In this order.
    pub steps: Vec<Step>,
}

/// One thing that the server does.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Step {
    /// A frame of the subscription, the socket, or the connection.
    Event(Frame),
    /// `covel-sse`: a frame of an action, which the person begins when there is none; `chat-ws`: a transcript, and the
    /// word to read it; `session-update`: the answer to a request of a client that connects.
    Frame(Frame),
    /// The person does something.
    Person {
        /// Which of the deeds that the player of the protocol knows.
        does: u8,
    },
    /// The subscription, the socket, or the connection is lost.
    Lose {
        /// How.
        how: Loss,
    },
    /// The action's stream is lost.
    Drop {
        /// How.
        how: Loss,
    },
    /// A line of an event stream.
    Line {
        /// Which of [`LINES`].
        line: u8,
        /// Which of [`ENDS`].
        end: u8,
        /// It is sent in pieces of so many bytes; 0 is whole.
        pieces: u8,
    },
}

/// A frame, and what is wrong with it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Frame {
    /// Which of [`frames`](super::frames).
    pub frame: u8,
    /// What is done to its JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// How its lines are written.
    #[serde(default)]
    pub wrap: Wrap,
    /// It is sent in pieces of so many bytes; 0 is whole.
    #[serde(default)]
    pub pieces: u8,
    /// It is sent twice.
    #[serde(default)]
    pub again: bool,
}

/// How a stream is lost.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// It ends in good order.
    End,
    /// Its connection is reset.
    Reset,
    /// Half a frame, then a reset.
    Half,
    /// It ends, and the next connection is refused, once: with 503, or by closing it.
    Refused,
}

/// Most steps of a case.
const STEPS: u32 = 8;
/// Most lines of a stream.
const STREAM_LINES: u32 = 30;
/// Most changes of a frame.
const CHANGES: u32 = 3;

impl Case {
    /// A random case.
    pub fn random(kind: Kind, random: &mut Random) -> Self {
        let steps = match kind {
            Kind::Covel => (0..random.between(1, STEPS))
                .map(|_| covel_step(random))
                .collect(),
            Kind::Chat => (0..random.between(1, STEPS))
                .map(|_| chat_step(random))
                .collect(),
            Kind::Updates => (0..random.between(1, STEPS))
                .map(|_| update_step(random))
                .collect(),
            Kind::Stream => (0..random.between(1, STREAM_LINES))
                .map(|_| line(random))
                .collect(),
        };
        Self { steps }
    }

    /// Names of what is wrong in it, for counting: each once.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.steps.iter().flat_map(Step::names).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// In one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Smaller cases, the smallest first: fewer steps, then simpler ones.
    pub fn smaller(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut run = self.steps.len() / 2;
        while run > 0 {
            for place in (0..self.steps.len()).step_by(run) {
                let mut steps = self.steps.clone();
                steps.drain(place..(place + run).min(self.steps.len()));
                if !steps.is_empty() {
                    found.push(Self { steps });
                }
            }
            run /= 2;
        }
        for (place, step) in self.steps.iter().enumerate() {
            for simpler in step.simpler() {
                let mut steps = self.steps.clone();
                steps[place] = simpler;
                found.push(Self { steps });
            }
        }
        found
    }
}

fn covel_step(random: &mut Random) -> Step {
    let how = loss(random);
    match random.below(20) {
        0..=8 => Step::Event(frame(SUBSCRIPTION.len(), Wrap::STREAM, random)),
        9..=16 => Step::Frame(frame(ACTION.len(), Wrap::STREAM, random)),
        17..=18 => Step::Lose { how },
        _ => Step::Drop { how },
    }
}

fn chat_step(random: &mut Random) -> Step {
    let how = loss(random);
    match random.below(20) {
        0..=11 => Step::Event(frame(CHAT.len(), Wrap::SOCKET, random)),
        12..=13 => Step::Frame(frame(1, Wrap::SOCKET, random)),
        14..=16 => Step::Person {
            does: small(random.below(256)),
        },
        _ => Step::Lose { how },
    }
}

fn update_step(random: &mut Random) -> Step {
    let how = loss(random);
    match random.below(20) {
        0..=12 => Step::Event(frame(UPDATES.len(), Wrap::LINE, random)),
        13..=15 => Step::Frame(frame(2, Wrap::LINE, random)),
        _ => Step::Lose { how },
    }
}

fn loss(random: &mut Random) -> Loss {
    let losses = [Loss::End, Loss::Reset, Loss::Half, Loss::Refused];
    losses[random.below(4) as usize]
}

fn frame(count: usize, wraps: &[Wrap], random: &mut Random) -> Frame {
    let count = u32::try_from(count).unwrap_or(1);
    let changes = (0..random.below(CHANGES + 1))
        .map(|_| Change::random(false, Face::SessionUpdate, random))
        .collect();
    Frame {
        frame: small(random.below(count)),
        changes,
        wrap: Wrap::random(wraps, random),
        pieces: pieces(random),
        again: random.percent(15),
    }
}

fn line(random: &mut Random) -> Step {
    let among = |count: usize| u32::try_from(count).unwrap_or(1);
    Step::Line {
        line: small(random.below(among(LINES.len()))),
        end: small(random.below(among(ENDS.len()))),
        pieces: pieces(random),
    }
}

fn pieces(random: &mut Random) -> u8 {
    [0, 0, 0, 1, 2, 7, 64][random.below(7) as usize]
}

fn small(number: u32) -> u8 {
    u8::try_from(number).unwrap_or_default()
}

impl Step {
    fn names(&self) -> Vec<&'static str> {
        let pieces = |pieces: u8| (pieces > 0).then_some("pieces");
        match self {
            Self::Event(frame) | Self::Frame(frame) => {
                let changes = frame.changes.iter().map(Change::name);
                let wrap = (frame.wrap != Wrap::Plain).then(|| frame.wrap.name());
                let again = frame.again.then_some("again");
                let extra = [wrap, again, pieces(frame.pieces)];
                changes.chain(extra.into_iter().flatten()).collect()
            }
            Self::Person { .. } => vec!["person"],
            Self::Lose { how } | Self::Drop { how } => vec![match how {
                Loss::End => "end",
                Loss::Reset => "reset",
                Loss::Half => "half",
                Loss::Refused => "refused",
            }],
            Self::Line { pieces: some, .. } => ["line"].into_iter().chain(pieces(*some)).collect(),
        }
    }

    /// Simpler forms, each smaller by some count.
    fn simpler(&self) -> Vec<Self> {
        match self {
            Self::Event(frame) => frame.simpler().into_iter().map(Self::Event).collect(),
            Self::Frame(frame) => frame.simpler().into_iter().map(Self::Frame).collect(),
            Self::Line {
                line,
                end,
                pieces: 1..,
            } => vec![Self::Line {
                line: *line,
                end: *end,
                pieces: 0,
            }],
            Self::Lose { how } if *how != Loss::End => vec![Self::Lose { how: Loss::End }],
            Self::Drop { how } if *how != Loss::End => vec![Self::Drop { how: Loss::End }],
            _ => Vec::new(),
        }
    }
}

impl Frame {
    fn simpler(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut changed = self.clone();
            change(&mut changed);
            if changed != *self {
                found.push(changed);
            }
        };
        for place in 0..self.changes.len() {
            with(&|frame| {
                frame.changes.remove(place);
            });
        }
        with(&|frame| frame.wrap = Wrap::Plain);
        with(&|frame| frame.pieces = 0);
        with(&|frame| frame.again = false);
        for (place, change) in self.changes.iter().enumerate() {
            if let Some(smaller) = change.smaller() {
                with(&|frame| frame.changes[place] = smaller);
            }
        }
        found
    }
}
