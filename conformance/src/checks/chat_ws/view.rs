//! Numbered frames by socket and turn.

use std::time::Duration;

use turnwire_spec::chat_ws::kinds::{KINDS, Routed};

use crate::transcript::{
    Side, Transcript,
    views::messages::{Channel, Message, channels},
};

/// The sockets at `/ws` of a transcript.
pub(crate) fn sockets(transcript: &Transcript) -> Vec<Channel<'_>> {
    let mut found = channels(transcript);
    found.retain(|channel| channel.path() == turnwire_spec::chat_ws::PATH);
    found
}

/// Whether a message is a numbered frame of the server.
pub(crate) fn is_numbered(message: &Message<'_>) -> bool {
    message.from == Side::Server
        && KINDS
            .iter()
            .any(|kind| kind.routed == Routed::Numbered && kind.name == message.kind())
}

/// The session of a frame.
pub(crate) fn session<'m>(message: &'m Message<'_>) -> Option<&'m str> {
    message.text_at("/payload/sessionId")
}

/// The job of a frame.
pub(crate) fn job<'m>(message: &'m Message<'_>) -> Option<&'m str> {
    message.text_at("/payload/jobId")
}

/// The number of a frame.
pub(crate) fn seq(message: &Message<'_>) -> Option<i64> {
    message.number_at("/payload/seq")
}

/// The frames of one turn on one socket, as far as they came without a replay between.
#[derive(Debug)]
pub(super) struct Part<'c, 't> {
    pub(super) session: Option<&'c str>,
    pub(super) job: Option<&'c str>,
    pub(super) frames: Vec<&'c Message<'t>>,
    /// The subscription to this session that came last before its first frame, when it asked for a replay.
    pub(super) replay: Option<&'c Message<'t>>,
    /// Whether its last frame is the end of the turn.
    pub(super) complete: bool,
}

/// The parts of turns on a socket. A part ends with `chat:complete`, or with a subscription to its session.
pub(super) fn parts<'c, 't>(channel: &'c Channel<'t>) -> Vec<Part<'c, 't>> {
    let mut done = Vec::new();
    let mut open: Vec<Part<'c, 't>> = Vec::new();
    let mut replays: Vec<(&str, &Message<'t>)> = Vec::new();
    for message in &channel.messages {
        if message.from == Side::Client && message.kind() == "chat:subscribe" {
            let Some(session) = session(message) else {
                continue;
            };
            let (ended, rest) = open
                .drain(..)
                .partition(|part| part.session == Some(session));
            open = rest;
            let ended: Vec<_> = ended;
            done.extend(ended);
            replays.retain(|(other, _)| *other != session);
            let asks = message.pointer("/payload/wantReplay") == Some(&true.into());
            if asks {
                replays.push((session, message));
            }
        } else if is_numbered(message) {
            add(message, &mut open, &mut done, &mut replays);
        }
    }
    done.extend(open);
    done
}

fn add<'c, 't>(
    message: &'c Message<'t>,
    open: &mut Vec<Part<'c, 't>>,
    done: &mut Vec<Part<'c, 't>>,
    replays: &mut Vec<(&str, &'c Message<'t>)>,
) {
    let (session, job) = (session(message), job(message));
    let mine = |part: &Part<'_, '_>| {
        part.session == session && (part.job == job || part.job.is_none() || job.is_none())
    };
    let place = open.iter().position(mine).unwrap_or_else(|| {
        let replay = replays
            .iter()
            .position(|(of, _)| Some(*of) == session)
            .map(|place| replays.remove(place).1);
        open.push(Part {
            session,
            job,
            frames: Vec::new(),
            replay,
            complete: false,
        });
        open.len() - 1
    });
    if let Some(part) = open.get_mut(place) {
        part.job = part.job.or(job);
        part.frames.push(message);
        part.complete = message.kind() == "chat:complete";
        if part.complete {
            done.push(open.remove(place));
        }
    }
}

/// Whether a part begins in the middle of its turn: some socket saw a smaller number of the same job.
pub(super) fn begins_late(all: &[Channel<'_>], part: &Part<'_, '_>) -> bool {
    let first = part.frames.first().and_then(|first| seq(first));
    all.iter()
        .flat_map(|channel| &channel.messages)
        .any(|message| {
            is_numbered(message)
                && session(message) == part.session
                && job(message) == part.job
                && seq(message) < first
        })
}

/// When a numbered frame was first seen on any socket; without a job, one of any.
pub(super) fn first_seen(
    all: &[Channel<'_>],
    session: Option<&str>,
    job: Option<&str>,
    number: i64,
) -> Option<Duration> {
    all.iter()
        .flat_map(|channel| &channel.messages)
        .filter(|message| {
            is_numbered(message)
                && self::session(message) == session
                && (job.is_none() || self::job(message) == job)
                && seq(message) == Some(number)
        })
        .map(|message| message.at)
        .min()
}
