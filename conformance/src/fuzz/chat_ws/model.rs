//! The rules of the model, as checks: what a client that keeps to the protocol must have, and be told.
//!
//! Each check runs over transcripts of the fuzzer only. What a subscription brought is judged in [`segments`], what
//! waited to be said in [`queue`].

use std::collections::{BTreeMap, BTreeSet};

use super::{
    SAID,
    queue::{self, count, transcripts},
    segments,
    truth::{Truth, Turn, pong_after, subscriptions},
};
use crate::{
    checks::{
        Check,
        chat_ws::view::{is_numbered, job, seq, session, sockets},
        check,
    },
    fuzz::{is_case, report::Seen},
    transcript::{
        Side, Transcript,
        views::{
            http::exchanges,
            messages::{Channel, Message},
        },
    },
    verdict::Findings,
};

/// The rules of this file.
pub const CHECKS: &[Check] = &[
    check!("CWS-033", who_subscribed_hears_all_that_follows),
    check!("CWS-034", a_replay_is_whole),
    check!("CWS-035", turns_come_one_frame_after_the_other),
    check!("CWS-036", what_is_known_or_gone_is_not_told),
    check!("CWS-037", nothing_comes_unasked),
    check!("CWS-091", a_gap_that_is_gone_is_told),
    check!("CWS-092", a_gap_that_is_there_is_filled),
    check!("CWS-126", nothing_comes_of_other_sessions),
    check!("CWS-025", a_turn_has_all_its_numbers),
    check!("CWS-034", a_client_has_every_turn),
    check!("CWS-041", what_is_said_is_stored_once),
    check!("CWS-048", a_job_that_is_called_off_fails),
    check!("CWS-049", no_other_job_is_called_off),
    check!("CWS-053", what_is_replaced_is_not_said),
    check!("CWS-054", what_is_cleared_is_not_said),
    check!("CWS-095", who_subscribed_hears_what_was_queued),
    check!("CWS-097", what_waits_is_said_once),
    check!("CWS-067", everybody_hears_what_runs),
    check!("CWS-068", a_new_socket_hears_what_runs),
    check!("CWS-069", a_subscriber_hears_what_runs),
];

/// Runs a rule over a case; nothing for any other transcript.
fn on_case(transcript: &Transcript, judge: impl FnOnce(&Truth<'_, '_>, &mut Findings)) -> Findings {
    let mut findings = Findings::none();
    if is_case(transcript) {
        let channels = sockets(transcript);
        judge(&Truth::new(transcript, &channels), &mut findings);
    }
    findings
}

/// Those of all faults that break one requirement.
fn only(id: &str, (judged, faults): (usize, Vec<segments::Fault>), findings: &mut Findings) {
    findings.judged += judged;
    let mine = faults.into_iter().filter(|(broken, _)| *broken == id);
    findings.faults.extend(mine.map(|(_, evidence)| evidence));
}

fn of_segments(id: &str, transcript: &Transcript) -> Findings {
    on_case(transcript, |truth, findings| {
        only(id, segments::judge(truth), findings)
    })
}

fn of_queue(id: &str, transcript: &Transcript) -> Findings {
    on_case(transcript, |truth, findings| {
        only(id, queue::judge(transcript, truth), findings);
    })
}

/// CWS-033: from its subscription on a socket gets every frame that anybody gets, and later turns as a whole.
fn who_subscribed_hears_all_that_follows(transcript: &Transcript) -> Findings {
    of_segments("CWS-033", transcript)
}

/// CWS-034: a replay begins with the frame after `lastSeq`, and has each frame as others saw it.
fn a_replay_is_whole(transcript: &Transcript) -> Findings {
    of_segments("CWS-034", transcript)
}

/// CWS-035: frames come in the order of their numbers, turn by turn, without gap or repetition.
fn turns_come_one_frame_after_the_other(transcript: &Transcript) -> Findings {
    of_segments("CWS-035", transcript)
}

/// CWS-036: no frame comes that `lastSeq` covers, or of a turn that is gone.
fn what_is_known_or_gone_is_not_told(transcript: &Transcript) -> Findings {
    of_segments("CWS-036", transcript)
}

/// CWS-037: without `wantReplay` nothing comes that had been sent before.
fn nothing_comes_unasked(transcript: &Transcript) -> Findings {
    of_segments("CWS-037", transcript)
}

/// CWS-091: when a frame after `lastSeq` is no longer kept, `chat:resync` comes.
fn a_gap_that_is_gone_is_told(transcript: &Transcript) -> Findings {
    of_segments("CWS-091", transcript)
}

/// CWS-092: `chat:resync` comes only when it is due, and nothing of the gap with it.
fn a_gap_that_is_there_is_filled(transcript: &Transcript) -> Findings {
    of_segments("CWS-092", transcript)
}

/// CWS-126: numbered frames of a session come only to who subscribed to it or says something in it.
fn nothing_comes_of_other_sessions(transcript: &Transcript) -> Findings {
    of_segments("CWS-126", transcript)
}

/// CWS-053: a text that was replaced before it was taken is never said.
fn what_is_replaced_is_not_said(transcript: &Transcript) -> Findings {
    of_queue("CWS-053", transcript)
}

/// CWS-054: a text that was cleared before it was taken is never said.
fn what_is_cleared_is_not_said(transcript: &Transcript) -> Findings {
    of_queue("CWS-054", transcript)
}

/// CWS-095: who subscribed is told of the text that is taken.
fn who_subscribed_hears_what_was_queued(transcript: &Transcript) -> Findings {
    of_queue("CWS-095", transcript)
}

/// CWS-097: what waits when a turn ends, however it ends, or while none runs, is taken, and said exactly once.
fn what_waits_is_said_once(transcript: &Transcript) -> Findings {
    of_queue("CWS-097", transcript)
}

/// The turns of the sessions that somebody subscribed to.
fn turns<'s, 'c>(truth: &'s Truth<'c, '_>) -> Vec<&'s Turn<'c>> {
    let asked = truth.channels.iter().flat_map(subscriptions);
    let sessions: BTreeSet<&str> = asked.map(|asked| asked.session).collect();
    let ours = truth.turns.iter();
    ours.filter(|turn| sessions.contains(turn.session))
        .collect()
}

/// CWS-025: the frames that all sockets together got of a turn that is over have every number up to that of the end,
/// from the first number of all turns on.
fn a_turn_has_all_its_numbers(transcript: &Transcript) -> Findings {
    on_case(transcript, |truth, findings| {
        for turn in turns(truth).iter().filter(|turn| turn.ended.is_some()) {
            let numbers: Vec<i64> = turn.frames.keys().copied().collect();
            let wanted = (truth.first..).take(numbers.len());
            let wrong = !wanted.clone().eq(numbers.iter().copied());
            findings.judge(wrong.then(|| {
                let expected = format!("{:?} of {}", wanted.collect::<Vec<_>>(), turn.job);
                crate::verdict::Evidence::new(expected, format!("{numbers:?}"))
            }));
        }
    })
}

/// CWS-034: a client that is connected when all is over has of each turn of its session every frame, or has read the
/// transcript after the end of that turn.
fn a_client_has_every_turn(transcript: &Transcript) -> Findings {
    on_case(transcript, |truth, findings| {
        let mut clients: BTreeMap<&str, Vec<&Channel<'_>>> = BTreeMap::new();
        let ours = truth.channels.iter();
        for channel in ours.filter(|channel| channel.label.starts_with("client-")) {
            clients.entry(channel.label).or_default().push(channel);
        }
        for (label, channels) in clients {
            let Some(newest) = channels.last() else {
                continue;
            };
            let asked = subscriptions(newest);
            let (Some(asked), Some(until)) = (asked.last(), truth.heard_until(newest)) else {
                continue;
            };
            let of = asked.session;
            let read = exchanges(transcript)
                .iter()
                .filter(|read| read.label == label && read.path().contains(of))
                .map(|read| read.opened)
                .max();
            for turn in truth.turns_of(of) {
                let Some(ended) = turn.ended.filter(|ended| *ended < until) else {
                    continue;
                };
                let has = read.is_some_and(|read| read > ended) || holds(&channels, turn);
                findings.judge((!has).then(|| {
                    let expected = format!("every frame of {} for {label}", turn.job);
                    newest.evidence_at(asked.message, expected, "some of them, and no word of it")
                }));
            }
        }
    })
}

/// Whether channels together got every frame of a turn.
fn holds(channels: &[&Channel<'_>], turn: &Turn<'_>) -> bool {
    let frames = channels.iter().flat_map(|channel| &channel.messages);
    let got: BTreeSet<i64> = frames
        .filter(|it| is_numbered(it) && session(it) == Some(turn.session))
        .filter(|it| job(it).unwrap_or_default() == turn.job)
        .filter_map(seq)
        .collect();
    turn.frames.keys().all(|seq| got.contains(seq))
}

/// What was said in a session, with the turn that it began.
fn said<'s, 'c, 't>(
    truth: &'s Truth<'c, 't>,
) -> Vec<(&'c Channel<'t>, &'c Message<'t>, &'s Turn<'c>)> {
    let mut found = Vec::new();
    for channel in truth.channels {
        for message in channel.of_kind(Side::Client, "chat:send") {
            let begun = session(message).and_then(|of| {
                let turn = truth.turns_of(of).find(|turn| turn.begun >= message.at)?;
                truth.turns.iter().find(|it| std::ptr::eq(*it, turn))
            });
            found.extend(begun.map(|turn| (channel, message, turn)));
        }
    }
    found
}

/// CWS-041: what began a turn stands in the transcript, once.
fn what_is_said_is_stored_once(transcript: &Transcript) -> Findings {
    on_case(transcript, |truth, findings| {
        let read = transcripts(transcript);
        for (channel, message, turn) in said(truth) {
            let text = message.text_at("/payload/message").unwrap_or_default();
            let body = read.iter().find(|(path, _)| path.contains(turn.session));
            if let Some((_, body)) = body.filter(|_| !text.is_empty()) {
                let times = count(body, text);
                findings.judge((times != 1).then(|| {
                    let expected = format!("{text:?} once in the transcript");
                    channel.evidence_at(message, expected, format!("{times} times"))
                }));
            }
        }
    })
}

/// The jobs that were called off while they ran.
fn called_off<'s, 'c, 't>(
    truth: &'s Truth<'c, 't>,
) -> Vec<(&'c Channel<'t>, &'c Message<'t>, &'s Turn<'c>)> {
    let mut found = Vec::new();
    for channel in truth.channels {
        for message in channel.of_kind(Side::Client, "chat:cancel") {
            let turn = truth
                .turns
                .iter()
                .find(|turn| job(message) == Some(turn.job) && turn.runs_at(message.at));
            found.extend(turn.map(|turn| (channel, message, turn)));
        }
    }
    found
}

/// CWS-048: a turn whose job was called off ends, without success.
fn a_job_that_is_called_off_fails(transcript: &Transcript) -> Findings {
    on_case(transcript, |truth, findings| {
        for (channel, message, turn) in called_off(truth) {
            let ends = turn.ended.is_some() && !turn.success;
            findings.judge((!ends).then(|| {
                let got = if turn.success { "success" } else { "no end" };
                channel.evidence_at(message, "chat:complete without success", got)
            }));
        }
    })
}

/// CWS-049: a turn that was to succeed, and was neither called off nor interrupted, succeeds.
fn no_other_job_is_called_off(transcript: &Transcript) -> Findings {
    on_case(transcript, |truth, findings| {
        let off: Vec<&str> = called_off(truth)
            .iter()
            .map(|(_, _, turn)| turn.job)
            .collect();
        for (channel, message, turn) in said(truth) {
            let ended = turn.ended.filter(|ended| !truth.is_stopping(*ended));
            if message.label != SAID || ended.is_none() || off.contains(&turn.job) {
                continue;
            }
            findings.judge((!turn.success).then(|| {
                let expected = "chat:complete with success: its job was not called off";
                channel.evidence_at(message, expected, "no success")
            }));
        }
    })
}

fn is_active(message: &Message<'_>, of: &str, running: bool) -> bool {
    message.kind() == "chat:active"
        && session(message) == Some(of)
        && message.pointer("/payload/running") == Some(&running.into())
}

/// CWS-067: a socket that is open when a turn begins, or ends, is told, subscribed or not; and it is not told that one
/// runs after it was told that it does not.
fn everybody_hears_what_runs(transcript: &Transcript) -> Findings {
    on_case(transcript, |truth, findings| {
        for channel in truth.channels {
            let ready = pong_after(channel, 0);
            let (Some(ready), Some(until)) = (ready, truth.heard_until(channel)) else {
                continue;
            };
            for turn in turns(truth) {
                let here = |at| at > ready.at && at < until;
                let mine = |it: &&Message<'_>| job(it).is_none_or(|job| job == turn.job);
                let told = |running| {
                    let frames = channel.from(Side::Server);
                    frames
                        .filter(|it| is_active(it, turn.session, running))
                        .find(mine)
                };
                let silent =
                    |what| channel.evidence(format!("chat:active: {} {what}", turn.job), "none");
                let (starts, stops) = (told(true), told(false));
                if here(turn.begun) {
                    findings.judge(starts.is_none().then(|| silent("runs")));
                }
                if turn.ended.is_some_and(here) {
                    findings.judge(stops.is_none().then(|| silent("does not run")));
                }
                let late = stops.and_then(|stops| {
                    channel.from(Side::Server).find(|it| {
                        it.index > stops.index
                            && job(it) == Some(turn.job)
                            && is_active(it, turn.session, true)
                    })
                });
                findings.judge(late.map(|it| {
                    channel.evidence_at(it, "nothing that runs after its end", it.show())
                }));
            }
        }
    })
}

/// CWS-068: a socket that opens while a turn runs is told so before its first `pong`.
fn a_new_socket_hears_what_runs(transcript: &Transcript) -> Findings {
    on_case(transcript, |truth, findings| {
        for channel in truth.channels {
            let Some(pong) = pong_after(channel, 0) else {
                continue;
            };
            for turn in turns(truth) {
                let runs = turn.life == truth.life(channel.opened)
                    && turn.runs_at(channel.opened)
                    && turn.runs_at(pong.at);
                if !runs {
                    continue;
                }
                let told = channel
                    .from(Side::Server)
                    .any(|it| it.index < pong.index && is_active(it, turn.session, true));
                findings.judge((!told).then(|| {
                    channel.evidence(format!("chat:active of {} at once", turn.session), "none")
                }));
            }
        }
    })
}

/// CWS-069: who subscribes to a session whose turn runs is told so at once.
fn a_subscriber_hears_what_runs(transcript: &Transcript) -> Findings {
    on_case(transcript, |truth, findings| {
        for channel in truth.channels {
            for asked in subscriptions(channel) {
                let Some(pong) = pong_after(channel, asked.message.index) else {
                    continue;
                };
                let (from, to) = (asked.message.index, pong.index);
                let life = truth.life(pong.at);
                let runs = truth.turns_of(asked.session).any(|turn| {
                    turn.life == life && turn.runs_at(asked.message.at) && turn.runs_at(pong.at)
                });
                if !runs {
                    continue;
                }
                let told = channel
                    .from(Side::Server)
                    .any(|it| (from..to).contains(&it.index) && is_active(it, asked.session, true));
                findings.judge((!told).then(|| {
                    channel.evidence_at(asked.message, "chat:active that it runs", "none")
                }));
            }
        }
    })
}

/// What the cases came upon.
pub(super) fn seen(transcript: &Transcript) -> Seen {
    let mut seen = Seen::default();
    for channel in sockets(transcript) {
        seen.connections += 1;
        seen.exchanges += channel.messages.len() as u64;
        seen.events += channel.messages.iter().filter(|it| is_numbered(it)).count() as u64;
        let all: Vec<_> = channel.of_kind(Side::Client, "chat:subscribe").collect();
        for asked in all {
            seen.answer(answer(&channel, asked));
        }
    }
    seen.broken_off = seen.answers.get("cut-off").copied().unwrap_or_default();
    seen
}

/// What a subscription was answered, in one word.
fn answer(channel: &Channel<'_>, asked: &Message<'_>) -> &'static str {
    let Some(pong) = pong_after(channel, asked.index) else {
        return "cut-off";
    };
    let between = |it: &&Message<'_>| it.index > asked.index && it.index < pong.index;
    let answer: Vec<_> = channel.from(Side::Server).filter(between).collect();
    let replays = asked.pointer("/payload/wantReplay") == Some(&true.into());
    let has = |kind: &str| answer.iter().any(|it| it.kind() == kind);
    if has("chat:error") {
        "refused"
    } else if has("chat:resync") {
        "resync"
    } else if !replays {
        "live-only"
    } else if answer.iter().any(|it| is_numbered(it)) {
        "replay"
    } else {
        "nothing-missed"
    }
}
