//! A transcript as what is played: exchanges, each with its pieces, and what has to happen before them.
//!
//! What the client does (it opens an exchange, it says something on a channel) is an [`Act`]. What the server says
//! waits for the acts before it, since it may be their effect, and then as long as it took after the last of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;

use super::said::Said;
use crate::transcript::{
    End, Entry, ExchangeId, Fact, Request, ResponseHead, Side, Transcript, har,
};

/// A transcript, laid out.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Exchanges with an answer, and channels of lines, in the order in which they were opened.
    pub exchanges: Vec<Played>,
    /// What the client did, in order.
    pub acts: Vec<Act>,
}

/// Something that the client did.
#[derive(Clone, Debug)]
pub struct Act {
    /// Place of its exchange in [`Script::exchanges`].
    pub place: usize,
    /// What it said; `None` when it opened the exchange.
    pub said: Option<Said>,
}

/// An exchange of the transcript.
#[derive(Clone, Debug)]
pub struct Played {
    /// Its number.
    pub id: ExchangeId,
    /// The act that opened it.
    pub opened_by: usize,
    /// The request; `None` for a channel of lines.
    pub request: Option<Request>,
    /// The response head; `None` for a channel of lines.
    pub head: Option<Piece<ResponseHead>>,
    /// The pieces of the body.
    pub body: Vec<Piece<Bytes>>,
    /// What the server said on the channel, without its pongs.
    pub said: Vec<Piece<Said>>,
    /// How it ended; `None` when it was open at the end of the transcript.
    pub end: Option<Piece<End>>,
}

impl Played {
    /// Its head says nothing more about how the body was compressed.
    fn unpacked(&mut self) {
        if let Some(head) = &mut self.head {
            let headers = &mut head.what.headers;
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-encoding"));
        }
    }
}

/// Something that came from the server.
#[derive(Clone, Debug)]
pub struct Piece<T> {
    /// Time since the last act before it.
    pub after: Duration,
    /// How many acts there were before it: it may be their effect.
    pub acts_before: usize,
    /// What came.
    pub what: T,
}

impl Script {
    /// Lays a transcript out. An exchange that was never answered is left out.
    pub fn of(transcript: &Transcript) -> Self {
        let told = testees(transcript);
        let answered = transcript
            .entries
            .iter()
            .filter_map(|entry| match entry.fact {
                Fact::Response { exchange, .. } | Fact::Line { exchange, .. } => Some(exchange),
                _ => None,
            });
        let mut writer = Writer {
            plain: har::is_imported(&transcript.header),
            answered: answered
                .filter(|exchange| !told.contains(exchange))
                .collect(),
            places: BTreeMap::new(),
            last_act: Duration::ZERO,
            script: Self::default(),
        };
        for entry in &transcript.entries {
            writer.add(entry);
        }
        let plain = writer.plain;
        for played in &mut writer.script.exchanges {
            // A browser keeps what it has unpacked, and `record` nothing that is packed.
            if plain || played.body.is_empty() {
                played.unpacked();
            }
        }
        writer.script
    }

    /// Whether there is anything to ask for over HTTP.
    pub fn has_requests(&self) -> bool {
        self.exchanges.iter().any(|played| played.request.is_some())
    }

    /// Whether there are channels of lines.
    pub fn has_lines(&self) -> bool {
        self.exchanges.iter().any(|played| played.request.is_none())
    }

    /// What the client said on the channel at this place, with the numbers of the acts.
    pub fn said_at(&self, place: usize) -> impl Iterator<Item = (usize, &Said)> {
        let all = self.acts.iter().enumerate();
        all.filter(move |(_, act)| act.place == place)
            .filter_map(|(number, act)| Some((number, act.said.as_ref()?)))
    }
}

/// Channels on which a harness told a client under test what to do: the first line says that the client is ready.
/// They are no part of what client and server say to each other.
///
/// Source: `docs/src/testee.md`.
pub fn testees(transcript: &Transcript) -> BTreeSet<ExchangeId> {
    let mut seen = BTreeSet::new();
    let first = transcript.entries.iter().filter_map(|entry| {
        let (exchange, from, said) = Said::of(&entry.fact)?;
        seen.insert(exchange).then_some((exchange, from, said))
    });
    let is_ready = |said: &Said| {
        matches!(said, Said::Line(_)) && said.json().is_some_and(|line| line["ready"] == true)
    };
    first
        .filter(|(_, from, said)| *from == Side::Client && is_ready(said))
        .map(|(exchange, ..)| exchange)
        .collect()
}

struct Writer {
    /// Bodies are no longer compressed as their headers say.
    plain: bool,
    /// Exchanges that are played.
    answered: BTreeSet<ExchangeId>,
    places: BTreeMap<ExchangeId, usize>,
    /// When the last act was.
    last_act: Duration,
    script: Script,
}

impl Writer {
    fn add(&mut self, entry: &Entry) {
        if let Fact::Request { exchange, request } = &entry.fact {
            if self.answered.contains(exchange) {
                self.open(entry.at, *exchange, Some(request.clone()));
            }
            return;
        }
        if let Some((exchange, from, said)) = Said::of(&entry.fact) {
            let is_line = matches!(said, Said::Line(_)) && self.answered.contains(&exchange);
            if is_line && !self.places.contains_key(&exchange) {
                self.open(entry.at, exchange, None);
            }
            return self.said(entry.at, exchange, from, said);
        }
        let acts_before = self.script.acts.len();
        let after = entry.at.saturating_sub(self.last_act);
        match &entry.fact {
            Fact::Response { exchange, head } => {
                let piece = piece(after, acts_before, head.clone());
                self.with(*exchange, |played| played.head = Some(piece));
            }
            Fact::Chunk { exchange, bytes } => {
                let piece = piece(after, acts_before, bytes.clone());
                self.with(*exchange, |played| played.body.push(piece));
            }
            Fact::End { exchange, how } => {
                let piece = piece(after, acts_before, how.clone());
                self.with(*exchange, |played| played.end = Some(piece));
            }
            _ => {}
        }
    }

    fn open(&mut self, at: Duration, exchange: ExchangeId, request: Option<Request>) {
        let place = self.script.exchanges.len();
        self.places.insert(exchange, place);
        self.script.exchanges.push(Played {
            id: exchange,
            opened_by: self.script.acts.len(),
            request,
            head: None,
            body: Vec::new(),
            said: Vec::new(),
            end: None,
        });
        self.act(at, place, None);
    }

    fn act(&mut self, at: Duration, place: usize, said: Option<Said>) {
        self.script.acts.push(Act { place, said });
        self.last_act = at;
    }

    fn said(&mut self, at: Duration, exchange: ExchangeId, from: Side, said: Said) {
        let Some(place) = self.places.get(&exchange).copied() else {
            return;
        };
        match from {
            Side::Client if said.is_noise() => {}
            Side::Client => self.act(at, place, Some(said)),
            Side::Server => {
                let is_pong = matches!(said, Said::Frame(crate::transcript::WsFrame::Pong(_)));
                let after = at.saturating_sub(self.last_act);
                let piece = piece(after, self.script.acts.len(), said);
                if !is_pong {
                    self.with(exchange, |played| played.said.push(piece));
                }
            }
        }
    }

    fn with(&mut self, exchange: ExchangeId, change: impl FnOnce(&mut Played)) {
        let place = self.places.get(&exchange);
        if let Some(played) = place.and_then(|place| self.script.exchanges.get_mut(*place)) {
            change(played);
        }
    }
}

fn piece<T>(after: Duration, acts_before: usize, what: T) -> Piece<T> {
    Piece {
        after,
        acts_before,
        what,
    }
}
