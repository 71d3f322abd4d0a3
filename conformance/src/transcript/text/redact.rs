//! Finds secrets, and what else is to become a placeholder, in the facts of a transcript.
//!
//! A secret is known by its place, see [`turnwire_spec::secrets`], or by its form. Its value, when it is long
//! enough to be no accident, is then replaced wherever it stands, also across chunks, and however it is spelled
//! there. All values are looked for in one pass over the bytes, however many there are.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use aho_corasick::{AhoCorasick, MatchKind};
use turnwire_spec::secrets::{Secret, of_header, of_target, of_text, spellings};

use super::pattern::{Pattern, Piece};
use crate::transcript::{End, ExchangeId, Fact, TargetFact, Transcript, WsFrame};

/// Shortest secret that is replaced in other places than its own, in bytes.
const TELLING: usize = 8;

/// A secret that was replaced.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Replaced {
    /// Name of the placeholder that stands for it.
    pub name: String,
    /// What it was found by, such as `header authorization`; in alphabetic order.
    pub places: Vec<String>,
    /// How often the placeholder stands in the text.
    pub times: usize,
}

/// Names of placeholders by the values that they stand for.
#[derive(Debug, Default)]
pub(super) struct Redactor {
    secrets: BTreeMap<Vec<u8>, String>,
    /// Names of the secrets' placeholders, and what each was found by.
    taken: BTreeMap<String, BTreeSet<String>>,
    /// Finds what is replaced wherever it stands; its patterns are those of `found`.
    finder: Option<AhoCorasick>,
    /// Names of the finder's patterns.
    found: Vec<String>,
    /// Chunks that hold something to replace, by their index among the entries.
    chunks: BTreeMap<usize, Pattern>,
}

/// What is replaced: a range of bytes, and the placeholder's name.
type Cut = (Range<usize>, String);

impl Redactor {
    /// Looks through a transcript. `names` are values and the placeholders that stand for them.
    pub(super) fn of(transcript: &Transcript, names: &[(String, String)]) -> Self {
        let mut redactor = Self::default();
        let bodies = bodies(transcript);
        redactor.collect(transcript, &bodies);
        redactor.look_for(names);
        for body in bodies.values() {
            redactor.cut_chunks(body);
        }
        redactor
    }

    /// Looks through several transcripts, of which nothing is written.
    pub(super) fn of_all<'t>(transcripts: impl IntoIterator<Item = &'t Transcript>) -> Self {
        let mut redactor = Self::default();
        for transcript in transcripts {
            redactor.collect(transcript, &bodies(transcript));
        }
        redactor.look_for(&[]);
        redactor
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str, value: &str) -> Pattern {
        self.pattern(value.as_bytes(), of_header(name, value))
    }

    /// A request target.
    pub(super) fn target(&self, target: &str) -> Pattern {
        self.pattern(target.as_bytes(), of_target(target))
    }

    /// Any other text.
    pub(super) fn text(&self, bytes: &[u8]) -> Pattern {
        self.pattern(bytes, of_text(bytes))
    }

    /// The chunk with this index among the entries.
    pub(super) fn chunk(&self, index: usize, bytes: &[u8]) -> Pattern {
        self.chunks
            .get(&index)
            .cloned()
            .unwrap_or_else(|| Pattern::literal(bytes))
    }

    /// Redacts a text that stands by itself, such as a request line.
    pub(super) fn alone(text: &str) -> Pattern {
        let mut redactor = Self::default();
        let secrets = [of_target(text), of_text(text.as_bytes())].concat();
        redactor.learn(text.as_bytes(), &secrets);
        redactor.pattern(text.as_bytes(), secrets)
    }

    /// Makes the finder of the secrets that are telling, and of other values with their names.
    fn look_for(&mut self, names: &[(String, String)]) {
        let telling = self
            .secrets
            .iter()
            .filter(|(value, _)| value.len() >= TELLING);
        let telling = telling.map(|(value, name)| (value.as_slice(), name));
        let named = names.iter().filter(|(value, _)| !value.is_empty());
        let named = named.map(|(value, name)| (value.as_bytes(), name));
        let (values, names): (Vec<&[u8]>, Vec<&String>) = telling.chain(named).unzip();
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(values);
        // It fails on more bytes of patterns than any transcript holds.
        self.finder = finder.ok().filter(|_| !names.is_empty());
        self.found = names.into_iter().cloned().collect();
    }

    fn collect(&mut self, transcript: &Transcript, bodies: &BTreeMap<ExchangeId, Body>) {
        for note in &transcript.header.notes {
            self.learn_text(note.as_bytes());
        }
        for (index, entry) in transcript.entries.iter().enumerate() {
            match &entry.fact {
                Fact::Request { request, .. } => {
                    self.learn_headers(&request.headers);
                    self.learn(request.target.as_bytes(), &of_target(&request.target));
                    self.learn(&request.body, &of_text(&request.body));
                }
                Fact::Response { head, .. } => self.learn_headers(&head.headers),
                Fact::Chunk { exchange, .. } => {
                    let body = bodies
                        .get(exchange)
                        .filter(|body| body.chunks.first().is_some_and(|c| c.0 == index));
                    if let Some(body) = body {
                        self.learn(&body.bytes, &of_text(&body.bytes));
                    }
                }
                Fact::WebSocket { frame, .. } => match frame {
                    WsFrame::Text(text) => self.learn_text(text.as_bytes()),
                    WsFrame::Binary(bytes) | WsFrame::Ping(bytes) | WsFrame::Pong(bytes) => {
                        self.learn_text(bytes);
                    }
                    WsFrame::Close(reason) => {
                        let reason = reason.as_ref().map_or("", |(_, reason)| reason.as_str());
                        self.learn_text(reason.as_bytes());
                    }
                },
                Fact::Line { bytes, .. } => self.learn_text(bytes),
                Fact::State(value) => self.learn_text(value.to_string().as_bytes()),
                Fact::Note(text)
                | Fact::Label(text)
                | Fact::Target(TargetFact::Started { variant: text }) => {
                    self.learn_text(text.as_bytes());
                }
                Fact::End { how, .. } => match how {
                    End::Broken(words) | End::NotConnected(words) | End::NotHttp(words) => {
                        self.learn_text(words.as_bytes());
                    }
                    End::Complete | End::ClosedByHarness | End::TimedOut | End::TooLarge => {}
                },
                Fact::Target(TargetFact::Stopped | TargetFact::Killed) => {}
            }
        }
    }

    fn learn_text(&mut self, bytes: &[u8]) {
        self.learn(bytes, &of_text(bytes));
    }

    fn learn_headers(&mut self, headers: &[(String, String)]) {
        for (name, value) in headers {
            self.learn(value.as_bytes(), &of_header(name, value));
        }
    }

    fn learn(&mut self, bytes: &[u8], secrets: &[Secret]) {
        for secret in secrets {
            let Some(value) = bytes.get(secret.range.clone()) else {
                continue;
            };
            let name = match self.secrets.get(value) {
                Some(known) => known.clone(),
                None => written_placeholder(value).unwrap_or_else(|| self.free_name()),
            };
            let places = self.taken.entry(name.clone()).or_default();
            places.insert(secret.place.clone());
            if value.len() >= TELLING {
                for spelled in spellings(value) {
                    if spelled.len() >= TELLING {
                        self.secrets.entry(spelled).or_insert_with(|| name.clone());
                    }
                }
            }
            self.secrets.entry(value.to_vec()).or_insert(name);
        }
    }

    /// What was replaced in this text, which was written with this redactor. `known` are the names of secrets that
    /// were known before.
    pub(super) fn report(&self, text: &str, known: &[(String, String)]) -> Vec<Replaced> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, places) in &self.taken {
            found.insert(name.clone(), places.iter().cloned().collect());
        }
        for (_, name) in known {
            let places = found.entry(name.clone()).or_default();
            places.push("given".to_owned());
        }
        let names: Vec<String> = found.keys().map(|name| format!("{{{{{name}}}}}")).collect();
        let mut times = vec![0; names.len()];
        if let Ok(finder) = AhoCorasick::new(&names) {
            for written in finder.find_iter(text) {
                if let Some(times) = times.get_mut(written.pattern().as_usize()) {
                    *times += 1;
                }
            }
        }
        let replaced = found.into_iter().zip(times);
        let replaced = replaced.map(|((name, places), times)| Replaced {
            name,
            places,
            times,
        });
        let mut replaced: Vec<Replaced> = replaced.filter(|replaced| replaced.times > 0).collect();
        // `secret-2` before `secret-10`.
        replaced.sort_by_key(|replaced| replaced.name.len());
        replaced
    }

    fn free_name(&self) -> String {
        let numbers = self.taken.len() + 1..;
        let mut names = numbers.map(|number| format!("secret-{number}"));
        names
            .find(|name| !self.taken.contains_key(name))
            .unwrap_or_default()
    }

    fn cut_chunks(&mut self, body: &Body) {
        let cuts = self.cuts(&body.bytes, of_text(&body.bytes));
        let mut cuts = cuts.as_slice();
        for (index, range) in &body.chunks {
            while let [(cut, _), later @ ..] = cuts
                && cut.end <= range.start
            {
                cuts = later;
            }
            if cuts.first().is_some_and(|(cut, _)| cut.start < range.end) {
                self.chunks
                    .insert(*index, apply(&body.bytes, range.clone(), cuts));
            }
        }
    }

    fn pattern(&self, bytes: &[u8], secrets: Vec<Secret>) -> Pattern {
        apply(bytes, 0..bytes.len(), &self.cuts(bytes, secrets))
    }

    /// All that is replaced in these bytes, in order and without overlap.
    fn cuts(&self, bytes: &[u8], secrets: Vec<Secret>) -> Vec<Cut> {
        let placed = secrets.into_iter().filter_map(|secret| {
            let name = self.secrets.get(bytes.get(secret.range.clone())?)?;
            Some((secret.range, name.clone()))
        });
        let found = self
            .finder
            .iter()
            .flat_map(|finder| finder.find_iter(bytes))
            .filter_map(|found| {
                let name = self.found.get(found.pattern().as_usize())?;
                Some((found.range(), name.clone()))
            });
        let mut cuts: Vec<Cut> = placed.chain(found).collect();
        cuts.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        // Of secrets that overlap nothing is left: the first one's placeholder stands for all of them.
        cuts.dedup_by(|later, cut| {
            let overlap = later.0.start < cut.0.end;
            if overlap {
                cut.0.end = cut.0.end.max(later.0.end);
            }
            overlap
        });
        cuts
    }
}

/// The bytes of `range` with the cuts replaced; a cut that began before the range only loses its bytes.
fn apply(bytes: &[u8], range: Range<usize>, cuts: &[Cut]) -> Pattern {
    let mut pattern = Pattern::default();
    let mut from = range.start;
    for (cut, name) in cuts.iter().take_while(|(cut, _)| cut.start < range.end) {
        if cut.start >= range.start {
            pattern.push_bytes(bytes.get(from..cut.start).unwrap_or_default());
            pattern.push_hole(name);
        }
        from = from.max(cut.end.min(range.end));
    }
    pattern.push_bytes(bytes.get(from..range.end).unwrap_or_default());
    pattern
}

/// A whole response body, and where its chunks lie in it.
#[derive(Debug, Default)]
struct Body {
    bytes: Vec<u8>,
    chunks: Vec<(usize, Range<usize>)>,
}

fn bodies(transcript: &Transcript) -> BTreeMap<ExchangeId, Body> {
    let mut bodies: BTreeMap<ExchangeId, Body> = BTreeMap::new();
    for (index, entry) in transcript.entries.iter().enumerate() {
        if let Fact::Chunk { exchange, bytes } = &entry.fact {
            let body = bodies.entry(*exchange).or_default();
            let start = body.bytes.len();
            body.bytes.extend_from_slice(bytes);
            body.chunks.push((index, start..body.bytes.len()));
        }
    }
    bodies
}

/// The name, when a value is a placeholder already.
fn written_placeholder(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    match Pattern::decode(text).pieces.as_slice() {
        [Piece::Hole(name)] => Some(name.clone()),
        _ => None,
    }
}
