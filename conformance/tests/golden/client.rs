//! What is kept of the transcript of a client: its two streams, what the person did, and what is shown in the end.
//!
//! A client asks for many things at a time, and shows something whenever it likes: in which order depends on the
//! machine. What the server plays is the same in every run, and so is what the client has made of it in the end.

use std::collections::BTreeSet;

use turnwire::transcript::{Entry, ExchangeId, Fact, Side, Transcript};

/// Paths of the streams.
const ACTIONS: &str = "/api/actions";
const SUBSCRIPTIONS: &str = "/api/events/stream";

/// The transcript with the streams alone, each action ended right after its last frame, and with the last state. How
/// the others end is not told: the client leaves them when it likes.
pub(crate) fn streams_alone(live: &Transcript) -> Transcript {
    let of = |paths: &[&str]| -> BTreeSet<ExchangeId> {
        let asked = live.entries.iter();
        asked.filter_map(|entry| asked_at(entry, paths)).collect()
    };
    let (kept, actions) = (of(&[ACTIONS, SUBSCRIPTIONS]), of(&[ACTIONS]));
    let of_stream = |fact: &Fact| match fact {
        Fact::Request { exchange, .. }
        | Fact::Response { exchange, .. }
        | Fact::Chunk { exchange, .. } => kept.contains(exchange),
        Fact::Line { from, .. } => *from == Side::Server,
        Fact::Label(_) => true,
        _ => false,
    };
    let mut entries: Vec<Entry> = live
        .entries
        .iter()
        .filter(|entry| of_stream(&entry.fact))
        .cloned()
        .collect();
    for end in live
        .entries
        .iter()
        .filter(|entry| is_end_of(entry, &actions))
    {
        close(&mut entries, end);
    }
    let is_state = |entry: &&Entry| matches!(entry.fact, Fact::State(_));
    entries.extend(live.entries.iter().rfind(is_state).cloned());
    Transcript {
        header: live.header.clone(),
        entries,
    }
}

/// The exchange that an entry opens at one of these paths.
fn asked_at(entry: &Entry, paths: &[&str]) -> Option<ExchangeId> {
    let Fact::Request { exchange, request } = &entry.fact else {
        return None;
    };
    let path = request.target.split('?').next().unwrap_or_default();
    paths.contains(&path).then_some(*exchange)
}

fn is_end_of(entry: &Entry, actions: &BTreeSet<ExchangeId>) -> bool {
    matches!(&entry.fact, Fact::End { exchange, .. } if actions.contains(exchange))
}

/// Puts the end of an exchange behind the last that was sent on it.
fn close(entries: &mut Vec<Entry>, end: &Entry) {
    let Fact::End {
        exchange: ended, ..
    } = &end.fact
    else {
        return;
    };
    let is_own = |entry: &Entry| match &entry.fact {
        Fact::Request { exchange, .. }
        | Fact::Response { exchange, .. }
        | Fact::Chunk { exchange, .. } => exchange == ended,
        _ => false,
    };
    if let Some(last) = entries.iter().rposition(is_own) {
        let at = entries.get(last).map_or(end.at, |entry| entry.at);
        let fact = end.fact.clone();
        entries.insert(last + 1, Entry { at, fact });
    }
}
