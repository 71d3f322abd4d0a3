//! From an answer's bytes to what happens on the socket, and when.
//!
//! [`plan`] turns a body with marks, a timing and faults into a list of [`Step`]s. It is pure: the
//! same input gives the same steps, jitter included. Doing the steps is `server::body`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::ids::Ids;
use crate::script::{CutHow, Faults, Insert, Position, Timing, Until};
use crate::wires::out::{Mark, MarkKind, Rendered};

/// One thing to do with the connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Send these bytes of the plan.
    Send {
        /// Offset of the first.
        from: usize,
        /// Offset behind the last.
        to: usize,
    },
    /// Hand everything so far to the socket before going on.
    Flush,
    /// Do nothing for so long.
    Wait(Duration),
    /// Do nothing until the gate is opened.
    Gate(Arc<str>),
    /// Do nothing until the client gives up.
    Never,
    /// Close the connection; the body's framing stays incomplete.
    Close,
    /// Reset the connection.
    Reset,
}

/// What to do for one reply after its headers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Everything that is or would be sent.
    pub bytes: Bytes,
    /// What to do, in order. The body ends properly after the last step.
    pub steps: Vec<Step>,
    /// How long to wait before the status line.
    pub before_headers: Duration,
    /// How many bytes a reader of a complete body would get.
    pub length: usize,
}

/// Plans a reply. `stream` says whether its delays fall between events or all before the status line.
pub(crate) fn plan(
    body: Rendered,
    stream: bool,
    timing: &Timing,
    faults: &Faults,
    ids: &mut Ids,
) -> Plan {
    let body = if faults.gzip { gzip(&body) } else { body };
    let body = if faults.insert.is_empty() {
        body
    } else {
        insert(&body, &faults.insert)
    };
    let mut waits = Vec::new();
    let mut before_headers = timing.headers;
    if stream {
        waits = event_waits(&body, timing, ids);
    } else {
        before_headers += whole_delay(&body, timing);
    }
    for stall in &faults.stalls {
        waits.push((offset(&body, stall.after), until_step(&stall.until)));
    }
    waits.sort_by_key(|(at, _)| *at);

    let end = faults
        .cut
        .map_or(body.bytes.len(), |cut| offset(&body, cut.after));
    let mut steps = steps(&body, &waits, faults, end);
    if !faults.hold_open.is_zero() {
        steps.push(Step::Flush);
        steps.push(Step::Wait(faults.hold_open));
    }
    let how = faults.cut.map(|cut| cut.how);
    match how {
        Some(CutHow::Close) => steps.extend([Step::Flush, Step::Close]),
        Some(CutHow::Reset) => steps.extend([Step::Flush, Step::Wait(RESET_AFTER), Step::Reset]),
        Some(CutHow::End) | None => {}
    }
    let length = if how == Some(CutHow::End) {
        end
    } else {
        body.bytes.len()
    };
    Plan {
        bytes: body.bytes,
        steps,
        before_headers,
        length,
    }
}

/// The body as gzip, every piece readable as soon as it has arrived. Nothing is made smaller: stored
/// blocks (RFC 1951, section 3.2.4) are as good as any for a reader.
fn gzip(body: &Rendered) -> Rendered {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let mut marks = Vec::with_capacity(body.marks.len());
    let mut from = 0;
    for mark in &body.marks {
        for block in body.bytes[from..mark.end].chunks(usize::from(u16::MAX)) {
            let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
            bytes.push(0);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&(!length).to_le_bytes());
            bytes.extend_from_slice(block);
        }
        from = mark.end;
        marks.push(Mark {
            end: bytes.len(),
            kind: mark.kind.clone(),
        });
    }
    bytes.extend_from_slice(&[1, 0, 0, 0xff, 0xff]);
    bytes.extend_from_slice(&crc32(&body.bytes).to_le_bytes());
    let length = u32::try_from(body.bytes.len() & 0xffff_ffff).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_le_bytes());
    marks.push(Mark {
        end: bytes.len(),
        kind: MarkKind::Tail,
    });
    Rendered {
        bytes: bytes.into(),
        marks,
    }
}

/// The checksum of gzip (RFC 1952, section 8).
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
        }
    }
    !crc
}

/// Time for the peer to read what came before a reset. A reset may overtake nothing on a loopback
/// device, but a peer that has not called `read` yet may be told of the reset first.
pub(crate) const RESET_AFTER: Duration = Duration::from_millis(20);

fn until_step(until: &Until) -> Step {
    match until {
        Until::For(time) => Step::Wait(*time),
        Until::Gate(name) => Step::Gate(name.as_str().into()),
        Until::Never => Step::Never,
    }
}

/// The offset of a position in a body.
fn offset(body: &Rendered, position: Position) -> usize {
    let nth = |count: usize, wanted: fn(&MarkKind) -> bool| match count.checked_sub(1) {
        None => 0,
        Some(before) => {
            let mut ends = body
                .marks
                .iter()
                .filter(|mark| wanted(&mark.kind))
                .map(|mark| mark.end);
            ends.nth(before).unwrap_or(body.bytes.len())
        }
    };
    match position {
        Position::Bytes(count) => count.min(body.bytes.len()),
        Position::BytesFromEnd(count) => body.bytes.len().saturating_sub(count),
        Position::Events(count) => nth(count, MarkKind::is_event),
        Position::Tokens(count) => nth(count, |kind| *kind == MarkKind::Token),
    }
}

/// The delay of a plain answer: all that a stream of the same answer would take.
fn whole_delay(body: &Rendered, timing: &Timing) -> Duration {
    let pauses: Duration = body
        .marks
        .iter()
        .filter_map(|mark| match mark.kind {
            MarkKind::Pause(time) => Some(time),
            _ => None,
        })
        .sum();
    timing.first_event + timing.first_token + timing.before_end + pauses
}

/// The waits between events, each at the offset where the event begins.
fn event_waits(body: &Rendered, timing: &Timing, ids: &mut Ids) -> Vec<(usize, Step)> {
    let mut waits = Vec::new();
    let mut wait = |at, time: Duration| {
        if !time.is_zero() {
            waits.push((at, Step::Wait(time)));
        }
    };
    wait(0, timing.first_event);
    let mut gates = Vec::new();
    let (mut start, mut tokens, mut ended) = (0, 0, false);
    for Mark { end, kind } in &body.marks {
        match kind {
            MarkKind::Token if tokens == 0 => {
                tokens += 1;
                wait(start, timing.first_token);
            }
            MarkKind::Token => wait(start, timing.between_tokens() + jitter(timing, ids)),
            MarkKind::Tail if !ended => {
                ended = true;
                wait(start, timing.before_end);
            }
            MarkKind::Pause(time) => wait(start, *time),
            MarkKind::Gate(name) => gates.push((start, Step::Gate(name.clone()))),
            MarkKind::Event | MarkKind::Tail => {}
        }
        start = *end;
    }
    waits.extend(gates);
    waits
}

fn jitter(timing: &Timing, ids: &mut Ids) -> Duration {
    match u64::try_from(timing.jitter.as_nanos()) {
        Ok(0) | Err(_) => Duration::ZERO,
        Ok(nanos) => Duration::from_nanos(ids.number() % (nanos + 1)),
    }
}

/// Sends everything up to `end`, with the waits in between.
fn steps(body: &Rendered, waits: &[(usize, Step)], faults: &Faults, end: usize) -> Vec<Step> {
    let apart = faults.write_size.is_some() || !faults.split_at.is_empty();
    let apart = apart || !faults.gap.is_zero();
    let mut steps = Vec::with_capacity(body.marks.len() + 2 * waits.len());
    let mut waits = waits.iter().peekable();
    let mut from = 0;
    for to in boundaries(body, waits.clone().map(|(at, _)| *at), faults, end) {
        if to > from {
            if apart && from > 0 {
                steps.push(Step::Flush);
                if !faults.gap.is_zero() {
                    steps.push(Step::Wait(faults.gap));
                }
            }
            steps.push(Step::Send { from, to });
            from = to;
        }
        while let Some((_, step)) = waits.next_if(|(at, _)| *at <= to) {
            steps.push(Step::Flush);
            steps.push(step.clone());
        }
    }
    steps
}

/// Where writes end: sorted, without repetition, up to and with `end`.
fn boundaries(
    body: &Rendered,
    waits: impl Iterator<Item = usize>,
    faults: &Faults,
    end: usize,
) -> Vec<usize> {
    let mut ends: Vec<usize> = waits.collect();
    let mut sorted = ends.is_empty();
    if !faults.join {
        ends.extend(body.marks.iter().map(|mark| mark.end));
    }
    if !faults.split_at.is_empty() {
        sorted = false;
        ends.extend(&faults.split_at);
    }
    if let Some(size) = faults.write_size {
        sorted = false;
        ends.extend((0..end).step_by(size.max(1)));
    }
    if !sorted {
        ends.sort_unstable();
    }
    ends.retain(|at| *at < end);
    ends.dedup();
    ends.push(end);
    ends
}

/// The body with bytes put in between; marks keep their events.
fn insert(body: &Rendered, inserts: &[Insert]) -> Rendered {
    let mut at: Vec<(usize, Vec<u8>)> = inserts
        .iter()
        .map(|insert| (offset(body, insert.after), insert.bytes()))
        .collect();
    at.sort_by_key(|(offset, _)| *offset);
    let mut bytes = Vec::with_capacity(body.bytes.len() + 64);
    let mut from = 0;
    for (offset, extra) in &at {
        bytes.extend_from_slice(&body.bytes[from..*offset]);
        bytes.extend_from_slice(extra);
        from = *offset;
    }
    bytes.extend_from_slice(&body.bytes[from..]);
    let shift = |end: usize| -> usize {
        at.iter()
            .take_while(|(offset, _)| *offset <= end)
            .map(|(_, extra)| extra.len())
            .sum()
    };
    let marks = body
        .marks
        .iter()
        .map(|mark| Mark {
            end: mark.end + shift(mark.end),
            kind: mark.kind.clone(),
        })
        .collect();
    Rendered {
        bytes: bytes.into(),
        marks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Cut, Stall};

    /// `head`, `one`, `two`, `tail`: offsets 4, 7, 10, 14.
    fn body() -> Rendered {
        let mark = |end, kind| Mark { end, kind };
        Rendered {
            bytes: Bytes::from_static(b"headonetwotail"),
            marks: vec![
                mark(4, MarkKind::Event),
                mark(7, MarkKind::Token),
                mark(10, MarkKind::Token),
                mark(14, MarkKind::Tail),
            ],
        }
    }

    fn shown(timing: &Timing, faults: &Faults) -> String {
        let plan = plan(body(), true, timing, faults, &mut Ids::new(1, &[], 0));
        let show = |step: &Step| match step {
            Step::Send { from, to } => {
                String::from_utf8_lossy(&plan.bytes[*from..*to]).into_owned()
            }
            Step::Flush => "|".to_owned(),
            Step::Wait(time) => format!("{}ms", time.as_millis()),
            other => format!("{other:?}"),
        };
        plan.steps.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn without_faults_every_event_is_one_send() {
        assert_eq!(
            shown(&Timing::default(), &Faults::default()),
            "head one two tail"
        );
    }

    #[test]
    fn delays_fall_before_their_tokens() {
        let timing = Timing {
            first_event: MS(1),
            first_token: MS(5),
            per_token: MS(2),
            before_end: MS(3),
            ..Timing::default()
        };
        assert_eq!(
            shown(&timing, &Faults::default()),
            "| 1ms head | 5ms one | 2ms two | 3ms tail"
        );
        let plan = plan(
            body(),
            false,
            &timing,
            &Faults::default(),
            &mut Ids::new(1, &[], 0),
        );
        assert_eq!(plan.before_headers, MS(9));
    }

    #[test]
    fn jitter_is_the_same_in_every_run() {
        let timing = Timing {
            jitter: MS(100),
            ..Timing::default()
        };
        let once = shown(&timing, &Faults::default());
        assert!(
            once.starts_with("head one | ") && once.ends_with("ms two tail"),
            "{once}"
        );
        assert_eq!(once, shown(&timing, &Faults::default()));
    }

    #[test]
    fn cuts_end_at_the_byte() {
        let faults = |after, how| Faults {
            cut: Some(Cut { after, how }),
            ..Faults::default()
        };
        let quiet = Timing::default();
        assert_eq!(
            shown(&quiet, &faults(Position::Bytes(6), CutHow::End)),
            "head on"
        );
        assert_eq!(
            shown(&quiet, &faults(Position::Tokens(1), CutHow::Close)),
            "head one | Close"
        );
        assert_eq!(
            shown(&quiet, &faults(Position::BytesFromEnd(2), CutHow::Reset)),
            "head one two ta | 20ms Reset"
        );
        assert_eq!(
            shown(&quiet, &faults(Position::Events(0), CutHow::Close)),
            "| Close"
        );
        assert_eq!(
            shown(&quiet, &faults(Position::Bytes(99), CutHow::End)),
            "head one two tail"
        );
    }

    #[test]
    fn writes_are_split_joined_and_spaced() {
        let quiet = Timing::default();
        let faults = Faults {
            write_size: Some(5),
            join: true,
            ..Faults::default()
        };
        assert_eq!(shown(&quiet, &faults), "heado | netwo | tail");
        let faults = Faults {
            split_at: vec![2],
            gap: MS(7),
            join: true,
            ..Faults::default()
        };
        assert_eq!(shown(&quiet, &faults), "he | 7ms adonetwotail");
        let faults = Faults {
            join: true,
            ..Faults::default()
        };
        assert_eq!(shown(&quiet, &faults), "headonetwotail");
    }

    #[test]
    fn the_checksum_is_that_of_gzip() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn garbage_and_stalls_stand_where_they_were_put() {
        let faults = Faults {
            insert: vec![Insert {
                after: Position::Events(1),
                text: "?".into(),
                hex: "21 21".into(),
            }],
            stalls: vec![
                Stall {
                    after: Position::Tokens(1),
                    until: Until::Gate("go".into()),
                },
                Stall {
                    after: Position::Events(9),
                    until: Until::Never,
                },
            ],
            ..Faults::default()
        };
        assert_eq!(
            shown(&Timing::default(), &faults),
            "head?!! one | Gate(\"go\") two tail | Never"
        );
    }
}
