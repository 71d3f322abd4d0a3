//! What must hold for any bytes: the entry points of property tests and fuzzers.
//!
//! Each function takes raw input and panics when its property is broken. Each invariant is written
//! once, here, whoever searches for a counterexample.

use super::frame::parse_retry;
use super::{
    Decoder, Frames, Limits, Line, Overflow, Recorder, Terminator, ViolationKind, encode, frames,
};

/// An event with its own text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OwnedEvent {
    /// See [`super::Event::event`].
    pub event: String,
    /// See [`super::Event::data`].
    pub data: String,
    /// See [`super::Event::last_event_id`].
    pub last_event_id: String,
    /// See [`super::Event::retry`].
    pub retry: Option<u64>,
}

/// All that a decoder says of a stream.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Decoded {
    /// Events and overflows in order.
    pub events: Vec<Result<OwnedEvent, Overflow>>,
    /// What [`Decoder::finish`] said.
    pub ended_inside: bool,
    /// The last event id after the end.
    pub last_event_id: String,
    /// The reconnection time after the end.
    pub reconnection_time: Option<u64>,
}

/// Cuts `bytes` at the given places, each counted from the last and taken modulo what is left.
pub fn cut<'a>(mut bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::with_capacity(cuts.len() + 1);
    for cut in cuts {
        let (chunk, rest) = bytes.split_at(cut % (bytes.len() + 1));
        chunks.push(chunk);
        bytes = rest;
    }
    chunks.push(bytes);
    chunks
}

/// Records a stream that arrives in these chunks.
pub fn record(chunks: &[&[u8]], limits: Limits) -> Frames {
    let mut recorder = Recorder::new(limits);
    let mut frames: Vec<_> = chunks
        .iter()
        .flat_map(|chunk| recorder.feed(chunk))
        .collect();
    frames.extend(recorder.finish());
    Frames {
        bom: recorder.bom(),
        frames,
    }
}

/// Decodes a stream that arrives in these chunks.
pub fn decode(chunks: &[&[u8]], limits: Limits) -> Decoded {
    let mut decoder = Decoder::new(limits);
    let mut decoded = Decoded::default();
    for chunk in chunks {
        let mut events = decoder.events(chunk);
        while let Some(event) = events.next() {
            decoded.events.push(event.map(|event| OwnedEvent {
                event: event.event.to_owned(),
                data: event.data.to_owned(),
                last_event_id: event.last_event_id.to_owned(),
                retry: event.retry,
            }));
        }
    }
    decoded.ended_inside = decoder.finish();
    decoder
        .last_event_id()
        .clone_into(&mut decoded.last_event_id);
    decoded.reconnection_time = decoder.reconnection_time();
    decoded
}

/// The lines and terminators of the frames are the exact bytes of the stream, without gaps.
///
/// # Panics
///
/// When they are not.
pub fn frames_are_lossless(bytes: &[u8]) {
    let frames = frames(bytes);
    assert_eq!(frames.to_bytes(), bytes);
    let mut at = if frames.bom { 3 } else { 0 };
    for frame in &frames {
        assert_eq!(frame.start, at);
        for line in &frame.lines {
            assert_eq!(line.offset, at);
            assert_eq!(&bytes[at..line.content_end()], &line.raw[..]);
            assert_eq!(
                &bytes[line.content_end()..line.end()],
                line.terminator.bytes()
            );
            at = line.end();
        }
        assert_eq!(frame.end, at);
    }
    assert_eq!(at, bytes.len());
}

/// Where a stream is cut into chunks changes neither its frames nor its events.
///
/// # Panics
///
/// When it does.
pub fn cuts_do_not_matter(bytes: &[u8], cuts: &[usize], limits: Limits) {
    let chunks = cut(bytes, cuts);
    assert_eq!(record(&chunks, limits), record(&[bytes], limits));
    assert_eq!(decode(&chunks, limits), decode(&[bytes], limits));
}

/// The limits bound what a frame keeps, and its sizes stay true.
///
/// # Panics
///
/// When they do not.
pub fn limits_hold(bytes: &[u8], limits: Limits) {
    for frame in &record(&[bytes], limits) {
        let kept: usize = frame.lines.iter().map(|line| line.raw.len()).sum();
        assert!(kept <= limits.max_event);
        assert!(
            frame
                .lines
                .iter()
                .all(|line| line.raw.len() <= limits.max_line)
        );
        assert_eq!(
            frame.to_bytes().len() + frame.omitted,
            frame.end - frame.start
        );
        let reported = frame
            .violations
            .iter()
            .filter(|fault| matches!(fault.kind, ViolationKind::LimitExceeded(_)));
        assert_eq!(reported.count(), usize::from(frame.omitted > 0));
    }
}

/// The decoder says what the frames say: the same events, the same overflows, in the same order.
///
/// # Panics
///
/// When it does not.
pub fn decoder_agrees_with_frames(bytes: &[u8], limits: Limits) {
    let frames = record(&[bytes], limits);
    let mut expected = Decoded::default();
    for frame in &frames {
        let overflow = frame.violations.iter().find_map(|fault| match fault.kind {
            ViolationKind::LimitExceeded(limit) => Some(Overflow {
                offset: fault.offset,
                limit,
            }),
            _ => None,
        });
        expected.ended_inside |= !frame.terminated;
        if let Some(overflow) = overflow {
            expected.events.push(Err(overflow));
            continue;
        }
        // A last line without terminator is no line yet, so a `retry` there does not count.
        let retry = frame
            .fields("retry")
            .rev()
            .filter(|line| line.terminator != Terminator::None);
        let retry = retry.map(Line::value_bytes).find_map(parse_retry);
        expected.reconnection_time = retry.or(expected.reconnection_time);
        if let (Some(id), true) = (frame.id(), frame.terminated) {
            id.clone_into(&mut expected.last_event_id);
        }
        if frame.dispatches() {
            expected.events.push(Ok(OwnedEvent {
                event: frame.event_type().to_owned(),
                data: frame.data().unwrap_or_default().into_owned(),
                last_event_id: expected.last_event_id.clone(),
                retry: frame.retry(),
            }));
        }
    }
    let mut decoded = decode(&[bytes], limits);
    if decoded.events.iter().any(Result::is_err) {
        // A `retry` line before the overflow took effect at once; the frame may have lost it.
        decoded.reconnection_time = expected.reconnection_time;
    }
    assert_eq!(decoded, expected);
}

/// What the encoder writes, the decoder reads back, with line breaks in the data as LF; and the
/// frame has no fault.
///
/// # Panics
///
/// When it does not. A type or id that the encoder refuses is no counterexample.
pub fn encoding_round_trips(event: Option<&str>, data: &str, id: Option<&str>) {
    let mut bytes = Vec::new();
    if encode::event(&mut bytes, event, data, id).is_err() {
        assert!(bytes.is_empty());
        return;
    }
    let frames = frames(&bytes);
    assert_eq!(frames.len(), 1);
    assert_eq!(frames.violations().next(), None);
    let expected = OwnedEvent {
        event: event
            .filter(|name| !name.is_empty())
            .unwrap_or("message")
            .to_owned(),
        data: data.replace("\r\n", "\n").replace('\r', "\n"),
        last_event_id: id.unwrap_or_default().to_owned(),
        retry: None,
    };
    assert_eq!(decode(&[&bytes], Limits::NONE).events, [Ok(expected)]);
}
