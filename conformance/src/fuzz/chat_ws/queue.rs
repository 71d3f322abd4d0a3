//! What was said next: each text that waited in a session's queue when a turn ended, or while none ran, was taken exactly
//! once, and one that was replaced or cleared before, never.

use std::time::Duration;

use serde_json::Value;

use super::{
    TRANSCRIPT,
    segments::Fault,
    truth::{Truth, subscriptions},
};
use crate::{
    checks::chat_ws::view::session,
    transcript::{
        Side, Transcript,
        views::{
            http::exchanges,
            messages::{Channel, Message},
        },
    },
};

/// A text, or nothing, that was put into the queue of a session.
struct Put<'c, 't> {
    channel: &'c Channel<'t>,
    message: &'c Message<'t>,
    session: &'c str,
    /// The text; empty for one that clears.
    text: &'c str,
}

/// What became of a text.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Fate {
    Taken,
    /// Another text took its place.
    Replaced,
    Cleared,
    /// It waits on.
    Open,
}

/// Judges every text that was queued; gives how many there are, and what is wrong with them.
pub(super) fn judge(transcript: &Transcript, truth: &Truth<'_, '_>) -> (usize, Vec<Fault>) {
    let puts = puts(truth);
    let read = transcripts(transcript);
    let (mut judged, mut faults) = (0, Vec::new());
    for (place, put) in puts
        .iter()
        .enumerate()
        .filter(|(_, put)| !put.text.is_empty())
    {
        let mut later = puts.iter().skip(place + 1);
        let next = later.find(|next| next.session == put.session);
        let fate = fate(truth, put, next);
        if fate != Fate::Open {
            judged += 1;
            faults.extend(fault(truth, &read, put, fate));
        }
    }
    (judged, faults)
}

fn puts<'c, 't>(truth: &Truth<'c, 't>) -> Vec<Put<'c, 't>> {
    let mut found = Vec::new();
    for channel in truth.channels {
        for message in channel.of_kind(Side::Client, "chat:set_queue") {
            if let Some(session) = session(message) {
                let text = message.text_at("/payload/text").unwrap_or_default();
                found.push(Put {
                    channel,
                    message,
                    session,
                    text,
                });
            }
        }
    }
    found.sort_by_key(|put| put.message.at);
    found
}

/// What had to become of a text: a turn ended while it waited, or none ran when it came; or another one came before.
fn fate(truth: &Truth<'_, '_>, put: &Put<'_, '_>, next: Option<&Put<'_, '_>>) -> Fate {
    let at = put.message.at;
    let life = truth.life(at);
    let runs = truth
        .turns_of(put.session)
        .any(|turn| turn.runs_at(at) && turn.life == life);
    let until = next.map_or(Duration::MAX, |next| next.message.at);
    let ends = truth.turns_of(put.session).any(|turn| {
        let in_time = |ended: Duration| ended > at && ended < until && !truth.is_stopping(ended);
        turn.ended.is_some_and(in_time)
    });
    match next {
        _ if ends || !runs => Fate::Taken,
        None => Fate::Open,
        Some(next) if next.text.is_empty() => Fate::Cleared,
        Some(_) => Fate::Replaced,
    }
}

/// The transcripts that were read at the end: path and body.
pub(super) fn transcripts(transcript: &Transcript) -> Vec<(String, Value)> {
    exchanges(transcript)
        .iter()
        .filter(|exchange| exchange.label == TRANSCRIPT && exchange.status() == Some(200))
        .filter_map(|exchange| Some((exchange.path().to_owned(), exchange.json()?)))
        .collect()
}

/// How often a text stands in a document, as a whole value.
pub(super) fn count(value: &Value, text: &str) -> usize {
    match value {
        Value::String(found) => usize::from(found == text),
        Value::Array(items) => items.iter().map(|item| count(item, text)).sum(),
        Value::Object(members) => members.values().map(|member| count(member, text)).sum(),
        _ => 0,
    }
}

fn fault(
    truth: &Truth<'_, '_>,
    read: &[(String, Value)],
    put: &Put<'_, '_>,
    fate: Fate,
) -> Option<Fault> {
    let (wanted, id) = match fate {
        Fate::Taken => (1, "CWS-097"),
        Fate::Replaced => (0, "CWS-053"),
        Fate::Cleared | Fate::Open => (0, "CWS-054"),
    };
    let wrong = |expected: String, got: usize, channel: &Channel<'_>| {
        let evidence = channel.evidence_at(put.message, expected, format!("{got} times"));
        Some((id, evidence))
    };
    for channel in truth.channels {
        let flushed: Vec<_> = flushes(channel, put).collect();
        if flushed.len() > wanted {
            let expected = format!("chat:queued_flushed with {:?} {wanted} times", put.text);
            return wrong(expected, flushed.len(), channel);
        }
    }
    let taken = truth
        .channels
        .iter()
        .flat_map(|channel| flushes(channel, put));
    let taken = taken.map(|message| message.at).min();
    if let (1, Some(taken)) = (wanted, taken) {
        let deaf = truth.channels.iter().find(|channel| {
            let hears = subscriptions(channel)
                .iter()
                .any(|asked| asked.session == put.session && asked.message.at < taken);
            let stays = truth
                .heard_until(channel)
                .is_some_and(|until| until > taken);
            hears && stays && flushes(channel, put).next().is_none()
        });
        if let Some(channel) = deaf {
            let expected = format!("chat:queued_flushed with {:?} for who subscribed", put.text);
            let evidence = channel.evidence(expected, "none");
            return Some(("CWS-095", evidence));
        }
    }
    let body = read.iter().find(|(path, _)| path.contains(put.session));
    let said = body.map(|(_, body)| count(body, put.text));
    if said.is_some_and(|said| said != wanted) {
        let expected = format!("{:?} {wanted} times in the transcript", put.text);
        return wrong(expected, said.unwrap_or_default(), put.channel);
    }
    None
}

fn flushes<'m, 't>(
    channel: &'m Channel<'t>,
    put: &'m Put<'_, '_>,
) -> impl Iterator<Item = &'m Message<'t>> {
    channel
        .of_kind(Side::Server, "chat:queued_flushed")
        .filter(|flushed| flushed.text_at("/payload/text") == Some(put.text))
}
