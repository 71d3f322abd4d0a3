//! The lossless reading: every byte kept, every fault reported.

use proptest::prelude::*;
use turnwire_spec::sse::properties::{self, record};
use turnwire_spec::sse::{Limit, Limits, LineKind, Recorder, Terminator, ViolationKind, frames};

use crate::input::{limits, stream};

fn faults(bytes: &[u8]) -> Vec<(usize, ViolationKind)> {
    frames(bytes)
        .violations()
        .map(|fault| (fault.offset, fault.kind))
        .collect()
}

proptest! {
    #[test]
    fn lines_and_terminators_give_back_the_exact_bytes(bytes in stream()) {
        properties::frames_are_lossless(&bytes);
    }

    #[test]
    fn limits_bound_what_is_kept_and_the_sizes_stay_true(
        bytes in stream(),
        limits in limits(),
    ) {
        properties::limits_hold(&bytes, limits);
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
    fn a_frame_is_found_by_any_of_its_bytes(bytes in stream()) {
        let frames = frames(&bytes);
        for frame in &frames {
            prop_assert!(frame.range().all(|offset| frames.at(offset) == Some(frame)));
        }
        prop_assert_eq!(frames.at(bytes.len()), None);
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
