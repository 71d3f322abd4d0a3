//! What a subscription brings: the gap, or word that it is gone.

use super::view::{Part, first_seen, is_numbered, parts, seq, session, sockets};
use crate::{
    checks::Check,
    transcript::{
        Side, Transcript,
        views::messages::{Channel, Message, label_fits},
    },
    verdict::Findings,
};

/// The checks of this file.
pub const CHECKS: &[Check] = &[
    check!("CWS-033", a_subscriber_hears_the_rest_of_the_turn),
    check!("CWS-034", the_gap_is_replayed),
    check!("CWS-035", a_replay_has_order_and_no_seam),
    check!("CWS-036", nothing_known_is_replayed),
    check!("CWS-037", nothing_is_replayed_unasked),
    check!("CWS-068", a_new_socket_is_told_what_runs),
    check!("CWS-092", resync_or_replay_and_not_both),
    check!("CWS-126", nothing_is_replayed_without_a_subscription),
];

/// A subscription, by its message.
fn subscriptions<'c, 't>(channel: &'c Channel<'t>) -> impl Iterator<Item = &'c Message<'t>> {
    // One with a number that is none is no subscription.
    let is_taken = |message: &&Message<'_>| {
        let last = message.pointer("/payload/lastSeq");
        last.is_none_or(serde_json::Value::is_number)
    };
    channel
        .of_kind(Side::Client, "chat:subscribe")
        .filter(is_taken)
}

fn wants_replay(message: &Message<'_>) -> bool {
    message.pointer("/payload/wantReplay") == Some(&true.into())
}

/// The last number that a subscription names; -1 without one.
fn last_of(message: &Message<'_>) -> i64 {
    let last = message.pointer("/payload/lastSeq");
    let last = last.and_then(serde_json::Value::as_f64);
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    last.map_or(-1, |last| last.floor() as i64)
}

/// The index at which the next subscription to the same session stands, if there is one.
fn next_subscription(channel: &Channel<'_>, asked: &Message<'_>) -> usize {
    let of = session(asked);
    let next = subscriptions(channel).find(|it| it.index > asked.index && session(it) == of);
    next.map_or(usize::MAX, |next| next.index)
}

/// Whether some socket saw this session's turn begin before and end after a message.
fn was_running(all: &[Channel<'_>], of: &str, message: &Message<'_>) -> bool {
    running_job(all, of, message).is_some()
}

/// The job of the session's turn that some socket saw begin before and end after a message, and none end before it: who
/// reads slowly sees the end late.
fn running_job<'c>(
    all: &'c [Channel<'_>],
    of: &str,
    message: &Message<'_>,
) -> Option<Option<&'c str>> {
    let whole: Vec<_> = all
        .iter()
        .flat_map(parts)
        .filter(|part| part.session == Some(of) && part.complete)
        .collect();
    let began = |part: &Part<'_, '_>| part.frames.first().is_some_and(|it| it.at < message.at);
    let ended = |part: &Part<'_, '_>| part.frames.last().is_some_and(|it| it.at <= message.at);
    let is_over = |job| whole.iter().any(|part| part.job == job && ended(part));
    let running = whole.iter().find(|part| began(part) && !is_over(part.job));
    running.map(|part| part.job)
}

/// Whether the channel was open long enough after a message.
fn stayed(all: &[Channel<'_>], channel: &Channel<'_>, of: &str) -> bool {
    let end = all
        .iter()
        .flat_map(parts)
        .filter(|part| part.session == Some(of) && part.complete)
        .filter_map(|part| part.frames.last().map(|last| last.at))
        .max();
    end.is_some_and(|end| channel.until() > end)
}

/// CWS-033: a socket that subscribes to a running turn gets its frames to the end.
pub fn a_subscriber_hears_the_rest_of_the_turn(transcript: &Transcript) -> Findings {
    let (all, mut findings) = (sockets(transcript), Findings::none());
    for channel in &all {
        for message in subscriptions(channel) {
            let Some(of) = session(message) else { continue };
            if !was_running(&all, of, message) || !stayed(&all, channel, of) {
                continue;
            }
            let ends = channel
                .of_kind(Side::Server, "chat:complete")
                .any(|complete| complete.index > message.index && session(complete) == Some(of));
            findings.judge((!ends).then(|| {
                let expected = "the frames of the turn up to chat:complete";
                channel.evidence_at(message, expected, "no chat:complete")
            }));
        }
    }
    findings
}

/// The parts of turns that begin with a replay.
fn replays(all: &[Channel<'_>], mut judge: impl FnMut(&Channel<'_>, &Part<'_, '_>, &Message<'_>)) {
    for channel in all {
        for part in parts(channel) {
            if let Some(asked) = part.replay {
                judge(channel, &part, asked);
            }
        }
    }
}

/// CWS-034: after a subscription with a replay, every frame above `lastSeq` that another socket saw before is
/// there, as that socket saw it.
pub fn the_gap_is_replayed(transcript: &Transcript) -> Findings {
    let (all, mut findings) = (sockets(transcript), Findings::none());
    for channel in &all {
        for asked in subscriptions(channel).filter(|message| wants_replay(message)) {
            let Some(of) = session(asked) else { continue };
            let next = next_subscription(channel, asked);
            let resynced = channel.of_kind(Side::Server, "chat:resync").any(|resync| {
                resync.index > asked.index && resync.index < next && session(resync) == Some(of)
            });
            let Some(running) = running_job(&all, of, asked) else {
                continue;
            };
            if resynced || !is_answered(channel, asked, of) {
                continue;
            }
            let missed = all
                .iter()
                .filter(|other| other.id != channel.id)
                .flat_map(|other| &other.messages)
                .filter(|frame| {
                    is_numbered(frame)
                        && session(frame) == Some(of)
                        && super::view::job(frame) == running
                        && frame.at < asked.at
                        && seq(frame).is_some_and(|seq| seq > last_of(asked))
                });
            for frame in missed {
                let there = channel
                    .messages
                    .iter()
                    .any(|mine| mine.index > asked.index && mine.json == frame.json);
                findings.judge((!there).then(|| {
                    let expected = format!("the replay of {}", frame.show());
                    channel.evidence_at(asked, expected, "it is not there")
                }));
            }
        }
    }
    findings
}

/// Whether what a subscription brings at once must have come: a later frame of the target shows it, the end of the turn
/// or the answer to a later ping. How long the socket stayed open shows nothing: the target may be busy.
fn is_answered(channel: &Channel<'_>, asked: &Message<'_>, of: &str) -> bool {
    let mut later = channel
        .of_kind(Side::Server, "chat:complete")
        .filter(|complete| session(complete) == Some(of));
    let ping = channel
        .of_kind(Side::Client, "ping")
        .find(|ping| ping.index > asked.index);
    let pings_before = channel.of_kind(Side::Client, "ping");
    let before = pings_before.filter(|ping| ping.index < asked.index).count();
    let pong = channel.of_kind(Side::Server, "pong").nth(before);
    later.any(|complete| complete.index > asked.index) || (ping.is_some() && pong.is_some())
}

/// Whether a frame that comes after a subscription had been sent before it. On a socket that was entitled to the frames
/// of its session before, a frame may be on its way; there, one is old that came before.
fn is_old(
    all: &[Channel<'_>],
    channel: &Channel<'_>,
    asked: &Message<'_>,
    frame: &Message<'_>,
) -> bool {
    let (of, job) = (session(frame), super::view::job(frame));
    let Some(number) = seq(frame) else {
        return false;
    };
    let entitled = channel.from(Side::Client).any(|said| {
        said.index < asked.index
            && matches!(
                said.kind(),
                "chat:subscribe" | "chat:send" | "chat:command" | "chat:continue"
            )
            && session(said).is_none_or(|its| Some(its) == of)
    });
    if entitled {
        return channel.from(Side::Server).any(|known| {
            known.index < asked.index
                && seq(known) == Some(number)
                && session(known) == of
                && super::view::job(known) == job
        });
    }
    first_seen(all, of, job, number).is_some_and(|seen| seen < asked.at)
}

/// CWS-035: what comes after a subscription with a replay is consecutive, without repetition.
pub fn a_replay_has_order_and_no_seam(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    replays(&sockets(transcript), |channel, part, _| {
        for pair in part.frames.windows(2) {
            let [before, after] = pair else { continue };
            let next = seq(before).map(|seq| seq + 1);
            findings.judge(
                (seq(after) != next)
                    .then(|| channel.evidence_at(after, format!("seq {next:?}"), after.show())),
            );
        }
    });
    findings
}

/// CWS-036: no frame at or below `lastSeq` is replayed: none that another socket saw before the subscription. A number
/// may be greater than those of the turns that follow.
pub fn nothing_known_is_replayed(transcript: &Transcript) -> Findings {
    let (all, mut findings) = (sockets(transcript), Findings::none());
    replays(&all, |channel, part, asked| {
        let last = last_of(asked);
        for frame in &part.frames {
            let known = seq(frame).filter(|seq| *seq <= last).is_some_and(|seq| {
                let seen = first_seen(&all, part.session, super::view::job(frame), seq);
                seen.is_some_and(|seen| seen < asked.at)
            });
            findings.judge(
                known.then(|| {
                    channel.evidence_at(frame, format!("a seq above {last}"), frame.show())
                }),
            );
        }
    });
    findings
}

/// CWS-037: without `wantReplay`, no frame comes that another socket had seen before the subscription.
pub fn nothing_is_replayed_unasked(transcript: &Transcript) -> Findings {
    let (all, mut findings) = (sockets(transcript), Findings::none());
    for channel in &all {
        for asked in subscriptions(channel).filter(|message| !wants_replay(message)) {
            let Some(of) = session(asked) else { continue };
            let next = next_subscription(channel, asked);
            let later = channel.messages.iter().filter(|frame| {
                frame.index > asked.index && frame.index < next && is_numbered(frame)
            });
            for frame in later.filter(|frame| session(frame) == Some(of)).take(1) {
                findings.judge(is_old(&all, channel, asked, frame).then(|| {
                    channel.evidence_at(
                        frame,
                        "only frames sent after the subscription",
                        frame.show(),
                    )
                }));
            }
        }
    }
    findings
}

/// CWS-068: under a label for it, a socket that opens while a turn runs is told so before it says anything.
pub fn a_new_socket_is_told_what_runs(transcript: &Transcript) -> Findings {
    let opened = sockets(transcript);
    let running = opened
        .iter()
        .filter(|channel| label_fits(Some("connect-running"), channel.label));
    Findings::each(running, |channel| {
        let told = channel
            .of_kind(Side::Server, "chat:active")
            .any(|active| active.pointer("/payload/running") == Some(&true.into()));
        (!told).then(|| channel.evidence("chat:active of the running session", "none"))
    })
}

/// CWS-092: a subscription brings the whole replay or `chat:resync`, and never both.
pub fn resync_or_replay_and_not_both(transcript: &Transcript) -> Findings {
    let (all, mut findings) = (sockets(transcript), Findings::none());
    for channel in &all {
        for asked in subscriptions(channel).filter(|message| wants_replay(message)) {
            let Some(of) = session(asked) else { continue };
            let next = next_subscription(channel, asked);
            let after = |message: &&Message<'_>| {
                (asked.index + 1..next).contains(&message.index) && session(message) == Some(of)
            };
            let resync = channel.of_kind(Side::Server, "chat:resync").find(after);
            if resync.is_none() && !was_running(&all, of, asked) {
                continue;
            }
            let old = channel
                .messages
                .iter()
                .filter(after)
                .find(|frame| is_numbered(frame) && is_old(&all, channel, asked, frame));
            let both = resync.and(old);
            findings.judge(both.map(|frame| {
                channel.evidence_at(frame, "no old frame beside chat:resync", frame.show())
            }));
        }
    }
    findings
}

/// CWS-126: a socket that subscribes to nothing gets no frame of a gap, and no `chat:resync`.
pub fn nothing_is_replayed_without_a_subscription(transcript: &Transcript) -> Findings {
    let opened = sockets(transcript);
    let bare = opened
        .iter()
        .filter(|channel| label_fits(Some("bare-reconnect"), channel.label));
    Findings::each(bare, |channel| {
        let found = channel
            .from(Side::Server)
            .find(|message| is_numbered(message) || message.kind() == "chat:resync")?;
        Some(channel.evidence_at(found, "no frame of the gap", found.show()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::text;

    const SUBSCRIBE: &str =
        r#"{"type":"chat:subscribe","payload":{"sessionId":"s","wantReplay":true,"lastSeq":-1}}"#;

    fn frame(kind: &str, seq: u8) -> String {
        format!(
            r#"{{"type":"{kind}","payload":{{"sessionId":"s","jobId":"j","seq":{seq},"chunk":"x"}}}}"#
        )
    }

    /// One socket hears a turn of two frames. Another one subscribes in the middle, and then there is this.
    fn transcript(meanwhile: &str) -> Transcript {
        let (first, last) = (frame("chat:response", 0), frame("chat:complete", 1));
        let text = format!(
            "twire 1\nsuite: chat-ws\n\n>1 GET /ws\n<1 101\n>2 GET /ws\n<2 101\n\
             <1~ text {first}\n@+1s\n>2~ text {SUBSCRIBE}\n@+10s\n{meanwhile}\n<1~ text {last}\n"
        );
        text::parse(&text).unwrap()
    }

    #[test]
    fn a_replay_is_missing_only_where_something_later_has_come() {
        let missing = |meanwhile: &str| the_gap_is_replayed(&transcript(meanwhile)).faults.len();
        assert_eq!(missing("end 2 closed-by-harness"), 0);
        let pong = "<2~ text {\"type\":\"pong\"}";
        let ping = ">2~ text {\"type\":\"ping\"}";
        assert_eq!(missing(&format!("{ping}\nend 2 closed-by-harness")), 0);
        assert_eq!(missing(&format!("{ping}\n{pong}")), 1);
        assert_eq!(
            missing(&format!("<2~ text {}", frame("chat:complete", 1))),
            1
        );
    }

    #[test]
    fn a_turn_whose_end_a_slow_socket_sees_late_is_over_all_the_same() {
        let (first, last) = (frame("chat:response", 0), frame("chat:complete", 1));
        let text = format!(
            "twire 1\nsuite: chat-ws\n\n>1 GET /ws\n<1 101\n>2 GET /ws\n<2 101\n>3 GET /ws\n<3 101\n\
             <1~ text {first}\n<3~ text {first}\n@+1s\n<1~ text {last}\n@+1s\n>2~ text {SUBSCRIBE}\n\
             >2~ text {{\"type\":\"ping\"}}\n<2~ text {{\"type\":\"pong\"}}\n@+1s\n<3~ text {last}\n"
        );
        let transcript = text::parse(&text).unwrap();
        assert_eq!(the_gap_is_replayed(&transcript).judged, 0);
    }

    #[test]
    fn what_was_on_its_way_to_a_subscriber_is_not_replayed_unasked() {
        let again = SUBSCRIBE.replace("true", "false");
        let unasked = |before: &str, frame: &str| {
            let text = format!("{before}\n@+1s\n>2~ text {again}\n@+1s\n<2~ text {frame}");
            nothing_is_replayed_unasked(&transcript(&text)).faults.len()
        };
        let old = frame("chat:response", 0);
        assert_eq!(unasked("", &old), 0);
        assert_eq!(unasked(&format!("<2~ text {old}"), &old), 1);
    }
}
