//! How the frames of a turn are numbered.

use super::view::{begins_late, parts, seq, sockets};
use crate::{checks::Check, transcript::Transcript, verdict::Findings};

/// The checks of this file.
pub const CHECKS: &[Check] = &[
    check!("CWS-019", numbers_rise),
    check!("CWS-020", every_turn_counts_anew),
    check!("CWS-025", numbers_have_no_gap),
];

/// CWS-019: within a turn, `seq` rises with every frame of a socket.
///
/// Replays are judged by CWS-035.
pub fn numbers_rise(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        for part in parts(&channel).iter().filter(|part| part.replay.is_none()) {
            for pair in part.frames.windows(2) {
                let [before, after] = pair else { continue };
                let (was, is) = (seq(before), seq(after));
                let rises = was.zip(is).is_some_and(|(was, is)| was < is);
                findings.judge((!rises).then(|| {
                    let expected = format!("a seq above {was:?}");
                    channel.evidence_at(after, expected, after.show())
                }));
            }
        }
    }
    findings
}

/// CWS-020: the first number of a turn is that of every other turn of the session that the socket heard from its
/// beginning.
pub fn every_turn_counts_anew(transcript: &Transcript) -> Findings {
    let (all, mut findings) = (sockets(transcript), Findings::none());
    for channel in &all {
        let mut parts = parts(channel);
        parts.retain(|part| !begins_late(&all, part));
        let whole = |session| {
            parts.iter().filter(move |part| {
                part.session == session && part.replay.is_none() && part.complete
            })
        };
        for (place, part) in parts.iter().enumerate() {
            let earlier = whole(part.session).next();
            let (Some(earlier), Some(first)) = (earlier, part.frames.first()) else {
                continue;
            };
            let is_later =
                parts.iter().position(|other| std::ptr::eq(other, earlier)) < Some(place);
            if !is_later || part.replay.is_some() || !part.complete {
                continue;
            }
            let (was, is) = (earlier.frames.first().and_then(|it| seq(it)), seq(first));
            findings.judge((was != is).then(|| {
                channel.evidence_at(first, format!("a first seq of {was:?}"), first.show())
            }));
        }
    }
    findings
}

/// CWS-025: the numbers of a turn on a socket are consecutive, whatever else passes between.
pub fn numbers_have_no_gap(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        for part in parts(&channel).iter().filter(|part| part.replay.is_none()) {
            for pair in part.frames.windows(2) {
                let [before, after] = pair else { continue };
                let (Some(was), Some(is)) = (seq(before), seq(after)) else {
                    continue;
                };
                // A number that does not rise is another requirement's fault.
                findings.judge(
                    (is > was + 1).then(|| {
                        channel.evidence_at(after, format!("seq {}", was + 1), after.show())
                    }),
                );
            }
        }
    }
    findings
}
