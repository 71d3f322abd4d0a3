//! The lossless reading of an event stream: every byte kept, every fault reported, any split.

use proptest::prelude::*;
use turnwire_spec::sse::{
    Frame, Frames, Limit, Limits, LineKind, Recorder, Terminator, ViolationKind, frames,
};

/// Bytes of which most are meaningful to the format, so that random streams reach its corners.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\n".to_vec()),
        2 => Just(b"\r".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        3 => Just(b"data: one".to_vec()),
        2 => Just(b"data".to_vec()),
        2 => Just(b"event: tick".to_vec()),
        2 => Just(b"id: 7".to_vec()),
        1 => Just(b"retry: 250".to_vec()),
        1 => Just(b": keep".to_vec()),
        1 => Just(b"\xEF\xBB\xBF".to_vec()),
        1 => Just("h\u{e9} \u{1f431}".as_bytes().to_vec()),
        2 => proptest::collection::vec(any::<u8>(), 0..4),
        1 => proptest::sample::select(b":\0 0a\xFF".to_vec()).prop_map(|byte| vec![byte]),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Cuts `bytes` at the given places, each taken modulo what is left.
fn cut<'a>(mut bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    for cut in cuts {
        let (chunk, rest) = bytes.split_at(cut % (bytes.len() + 1));
        chunks.push(chunk);
        bytes = rest;
    }
    chunks.push(bytes);
    chunks
}

fn record(chunks: &[&[u8]], limits: Limits) -> Frames {
    let mut recorder = Recorder::new(limits);
    let mut frames: Vec<Frame> = chunks
        .iter()
        .flat_map(|chunk| recorder.feed(chunk))
        .collect();
    frames.extend(recorder.finish());
    Frames {
        bom: recorder.bom(),
        frames,
    }
}

fn faults(bytes: &[u8]) -> Vec<(usize, ViolationKind)> {
    frames(bytes)
        .violations()
        .map(|fault| (fault.offset, fault.kind))
        .collect()
}

proptest! {
    #[test]
    fn lines_and_terminators_give_back_the_exact_bytes(bytes in stream()) {
        prop_assert_eq!(frames(&bytes).to_bytes(), bytes);
    }

    #[test]
    fn any_split_gives_the_same_frames(
        bytes in stream(),
        cuts in proptest::collection::vec(0usize..12, 0..20),
    ) {
        prop_assert_eq!(record(&cut(&bytes, &cuts), Limits::NONE), frames(&bytes));
    }

    #[test]
    fn any_split_gives_the_same_frames_under_limits(
        bytes in stream(),
        cuts in proptest::collection::vec(0usize..12, 0..20),
        max_line in 0usize..20,
        max_event in 0usize..40,
    ) {
        let limits = Limits { max_line, max_event };
        prop_assert_eq!(record(&cut(&bytes, &cuts), limits), record(&[&bytes], limits));
    }

    #[test]
    fn frames_and_lines_follow_each_other_without_gaps(bytes in stream()) {
        let frames = frames(&bytes);
        let mut at = if frames.bom { 3 } else { 0 };
        for frame in &frames {
            prop_assert_eq!(frame.start, at);
            for line in &frame.lines {
                prop_assert_eq!(line.offset, at);
                prop_assert_eq!(&bytes[at..line.content_end()], &line.raw[..]);
                prop_assert_eq!(&bytes[line.content_end()..line.end()], line.terminator.bytes());
                at = line.end();
            }
            prop_assert_eq!(frame.end, at);
            prop_assert_eq!(frames.at(frame.start), Some(frame));
        }
        prop_assert_eq!(at, bytes.len());
    }

    #[test]
    fn only_the_last_frame_can_lack_its_blank_line(bytes in stream()) {
        let frames = frames(&bytes);
        for (index, frame) in frames.iter().enumerate() {
            let blanks = frame.lines.iter().filter(|line| line.kind == LineKind::Blank).count();
            prop_assert_eq!(blanks, usize::from(frame.terminated));
            prop_assert!(frame.terminated || index + 1 == frames.len());
        }
    }

    #[test]
    fn limits_bound_what_is_kept_and_the_sizes_stay_true(
        bytes in stream(),
        max_line in 0usize..20,
        max_event in 0usize..40,
    ) {
        let frames = record(&[&bytes], Limits { max_line, max_event });
        for frame in &frames {
            let kept: usize = frame.lines.iter().map(|line| line.raw.len()).sum();
            prop_assert!(kept <= max_event);
            prop_assert!(frame.lines.iter().all(|line| line.raw.len() <= max_line));
            prop_assert_eq!(frame.to_bytes().len() + frame.omitted, frame.end - frame.start);
            let reported = frame.violations.iter()
                .any(|fault| matches!(fault.kind, ViolationKind::LimitExceeded(_)));
            prop_assert_eq!(reported, frame.omitted > 0);
        }
    }
}

#[test]
fn a_frame_gives_its_fields() {
    let stream =
        frames(b"event: a\nid: 1\n: note\nevent: b\ndata: x\ndata:y\nid: 2\0\nretry: 9\n\n");
    let frame = &stream[0];

    assert_eq!(stream.len(), 1);
    assert_eq!(frame.event(), Some("b"));
    assert_eq!(frame.data().as_deref(), Some("x\ny"));
    assert_eq!(frame.id(), Some("1"), "an id with NUL is ignored");
    assert_eq!(frame.retry(), Some(9));
    assert_eq!(
        frame
            .fields("data")
            .map(|line| line.value())
            .collect::<Vec<_>>(),
        ["x", "y"]
    );
    assert_eq!(frame.comments().collect::<Vec<_>>(), [" note"]);
    assert!(frame.dispatches() && frame.terminated && !frame.is_comment_only());
}

#[test]
fn a_frame_without_data_line_has_no_data_and_one_with_an_empty_one_has_empty_data() {
    let stream = frames(b"event: a\n\ndata\n\n: c\n\n\n");

    assert_eq!(stream[0].data(), None);
    assert!(!stream[0].dispatches());
    assert_eq!(stream[1].data().as_deref(), Some(""));
    assert!(stream[1].dispatches());
    assert!(stream[2].is_comment_only() && !stream[2].is_blank());
    assert!(stream[3].is_blank() && !stream[3].is_comment_only());
    assert_eq!(stream.events().count(), 1);
}

#[test]
fn one_space_after_the_colon_is_no_part_of_the_value() {
    let stream = frames(b"data:  two\ndata:none\ndata\n: c\n\n");
    let values: Vec<&str> = stream[0].lines.iter().map(|line| line.value()).collect();

    assert_eq!(values, [" two", "none", "", " c", ""]);
    assert_eq!(stream[0].lines[2].name(), Some(&b"data"[..]));
    assert_eq!(stream[0].lines[3].name(), None);
}

#[test]
fn each_terminator_is_kept() {
    let stream = frames(b"a\nb\r\nc\rd");
    let ends: Vec<Terminator> = stream[0].lines.iter().map(|line| line.terminator).collect();

    assert_eq!(
        ends,
        [
            Terminator::Lf,
            Terminator::CrLf,
            Terminator::Cr,
            Terminator::None
        ]
    );
}

#[test]
fn a_frame_that_ends_in_cr_waits_for_the_next_byte() {
    let mut recorder = Recorder::new(Limits::NONE);

    assert_eq!(recorder.feed(b"data\r\n\r"), []);
    let frames = recorder.feed(b"\nda");
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].to_bytes(), b"data\r\n\r\n");
    assert_eq!(
        recorder.finish().map(|frame| frame.to_bytes()),
        Some(b"da".to_vec())
    );
}

#[test]
fn a_leading_byte_order_mark_is_taken_off_and_later_ones_are_faults() {
    assert!(frames(b"\xEF\xBB\xBFdata\n\n").bom);
    assert_eq!(faults(b"\xEF\xBB\xBFdata\n\n"), []);
    assert_eq!(
        faults(b"\xEF\xBB\xBF\xEF\xBB\xBFdata\n\xEF\xBB\xBFid\n\n"),
        [
            (3, ViolationKind::BomInside),
            (11, ViolationKind::BomInside)
        ]
    );
    assert_eq!(
        faults(b"\xEF\xBB"),
        [
            (0, ViolationKind::InvalidUtf8),
            (0, ViolationKind::UnknownField),
            (2, ViolationKind::UnterminatedTail)
        ]
    );
}

#[test]
fn each_fault_is_reported_where_it_is() {
    assert_eq!(
        faults(b"data: a\xFFb\n\n"),
        [(7, ViolationKind::InvalidUtf8)]
    );
    assert_eq!(faults(b"id: 1\x002\n\n"), [(5, ViolationKind::NulInId)]);
    assert_eq!(faults(b"retry: 1s\n\n"), [(7, ViolationKind::BadRetry)]);
    assert_eq!(faults(b"retry:\n\n"), [(6, ViolationKind::BadRetry)]);
    assert_eq!(
        faults(b"data: x\nData: y\n\n"),
        [(8, ViolationKind::UnknownField)]
    );
    assert_eq!(faults(b"data: x\n"), [(8, ViolationKind::UnterminatedTail)]);
    assert_eq!(
        faults(b"a: \r\n\n")[1],
        (5, ViolationKind::MixedLineEndings)
    );
    assert_eq!(faults(b"data: fine\nid: 3\nevent\nretry: 10\n: c\n\n"), []);
}

#[test]
fn a_value_that_is_no_utf_8_reads_with_replacement_characters() {
    let stream = frames(b"data: a\xFFb\n\n");

    assert_eq!(stream[0].data().as_deref(), Some("a\u{FFFD}b"));
    assert_eq!(stream[0].lines[0].value_bytes(), b"a\xFFb");
}

#[test]
fn a_line_beyond_its_limit_is_cut_and_reported() {
    let stream = record(
        &[b"data: 0123456789\nid: 1\n\ndata: x\n\n"],
        Limits::bytes(10),
    );
    let [long, next] = &stream.frames[..] else {
        panic!("two frames, got {stream:?}")
    };

    assert_eq!(long.violations.len(), 1);
    assert_eq!(long.violations[0].offset, 10);
    assert_eq!(
        long.violations[0].kind,
        ViolationKind::LimitExceeded(Limit::Line)
    );
    assert_eq!(long.lines[0].raw, &b"data: 0123"[..]);
    assert_eq!(long.lines[0].omitted, 6);
    assert_eq!(next.data().as_deref(), Some("x"));
}

#[test]
fn an_event_beyond_its_limit_keeps_what_fits() {
    let limits = Limits {
        max_line: 100,
        max_event: 8,
    };
    let stream = record(&[b"data: a\ndata: b\ndata: c\n\n"], limits);

    assert_eq!(stream.len(), 1);
    assert_eq!(stream[0].violations[0].offset, 9);
    assert_eq!(
        stream[0].violations[0].kind,
        ViolationKind::LimitExceeded(Limit::Event)
    );
    assert_eq!(stream[0].to_bytes(), b"data: a\nd\n\n");
    assert_eq!(stream[0].end, 25);
}
