//! The meaning of a stream, against a plain reading of the standard.

use proptest::prelude::*;
use turnwire_spec::sse::properties::{self, decode};
use turnwire_spec::sse::{Decoder, Limit, Limits, Overflow};

use crate::input::{cuts, limits, long_stream, stream};
use crate::reference::Reference;

proptest! {
    #[test]
    fn the_decoder_agrees_with_the_standard(bytes in stream(), cuts in cuts()) {
        let chunks = properties::cut(&bytes, &cuts);
        prop_assert_eq!(decode(&chunks, Limits::NONE), Reference::read(&bytes));
    }

    #[test]
    fn where_a_stream_is_cut_does_not_matter(bytes in stream(), cuts in cuts()) {
        properties::cuts_do_not_matter(&bytes, &cuts, Limits::NONE);
    }

    #[test]
    fn where_a_stream_is_cut_does_not_matter_under_limits(
        bytes in stream(),
        cuts in cuts(),
        limits in limits(),
    ) {
        properties::cuts_do_not_matter(&bytes, &cuts, limits);
    }

    #[test]
    fn the_decoder_agrees_with_the_frames(bytes in stream()) {
        properties::decoder_agrees_with_frames(&bytes, Limits::NONE);
    }

    #[test]
    fn the_decoder_agrees_with_the_frames_under_limits(bytes in stream(), limits in limits()) {
        prop_assume!(!b"\xEF\xBB".starts_with(&bytes));
        properties::decoder_agrees_with_frames(&bytes, limits);
    }

    #[test]
    fn taking_only_some_events_of_a_chunk_leaves_the_decoder_at_its_end(
        bytes in stream(),
        cuts in cuts(),
        taken in 0usize..3,
    ) {
        let mut partly = Decoder::new(Limits::NONE);
        for chunk in properties::cut(&bytes, &cuts) {
            let mut events = partly.events(chunk);
            (0..taken).for_each(|_| assert!(events.next().is_none_or(|event| event.is_ok())));
        }
        let whole = decode(&[&bytes], Limits::NONE);
        prop_assert_eq!(partly.finish(), whole.ended_inside);
        prop_assert_eq!(partly.last_event_id(), whole.last_event_id);
        prop_assert_eq!(partly.reconnection_time(), whole.reconnection_time);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_decoder_agrees_with_the_standard_on_long_streams(
        bytes in long_stream(),
        cuts in proptest::collection::vec(0usize..20_000, 0..8),
        size in 1usize..1000,
    ) {
        let expected = Reference::read(&bytes);
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        prop_assert_eq!(&decode(&properties::cut(&bytes, &cuts), Limits::NONE), &expected);
        prop_assert_eq!(&decode(&pieces, Limits::NONE), &expected);
    }
}

fn events(stream: &[u8]) -> String {
    let decoded = decode(&[stream], Limits::NONE);
    let lines = decoded.events.iter().map(|event| {
        let event = event.as_ref().expect("no limit, no overflow");
        format!(
            "{} {:?} id={:?}",
            event.event, event.data, event.last_event_id
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_examples_of_the_standard_read_as_it_says() {
    insta::assert_snapshot!(
        events(b"data: YHOO\ndata: +2\ndata: 10\n\n"),
        @r#"message "YHOO\n+2\n10" id="""#
    );
    insta::assert_snapshot!(
        events(b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n"),
        @r#"
    message "first event" id="1"
    message "second event" id=""
    "#
    );
    insta::assert_snapshot!(
        events(b"data\n\ndata\ndata\n\ndata:"),
        @r#"
    message "" id=""
    message "\n" id=""
    "#
    );
    insta::assert_snapshot!(
        events(b"data:test\n\ndata: test\n\n"),
        @r#"
    message "test" id=""
    message "test" id=""
    "#
    );
}

#[test]
fn an_event_without_data_is_not_dispatched_but_sets_the_id_and_resets_the_type() {
    insta::assert_snapshot!(
        events(b"event: lost\nid: 4\n\ndata: x\n\n"),
        @r#"message "x" id="4""#
    );
}

#[test]
fn an_id_with_nul_is_ignored_and_an_empty_one_resets() {
    insta::assert_snapshot!(
        events(b"id: 1\ndata: a\n\nid: 2\x003\ndata: b\n\nid\ndata: c\n\n"),
        @r#"
    message "a" id="1"
    message "b" id="1"
    message "c" id=""
    "#
    );
}

#[test]
fn the_id_of_an_unterminated_event_does_not_count() {
    let decoded = decode(&[b"id: 1\ndata: a\n\nid: 2\ndata: b\n"], Limits::NONE);

    assert_eq!(decoded.events.len(), 1);
    assert!(decoded.ended_inside);
    assert_eq!(decoded.last_event_id, "1");
}

#[test]
fn an_event_is_lent_at_its_cr_and_the_lf_that_follows_is_swallowed() {
    let mut decoder = Decoder::new(Limits::NONE);
    let mut seen = 0;

    decoder.feed(b"data: a\r\n\r", |_| seen += 1).unwrap();
    assert_eq!(seen, 1);
    decoder
        .feed(b"\ndata: b\r\r", |event| assert_eq!(event.data, "b"))
        .unwrap();
    assert!(!decoder.finish());
}

#[test]
fn a_byte_order_mark_is_skipped_once_even_byte_by_byte() {
    let stream = b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n";
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();

    assert_eq!(decode(&bytes, Limits::NONE).events.len(), 1);
}

#[test]
fn after_finish_the_next_stream_of_the_same_source_can_be_read() {
    let mut decoder = Decoder::new(Limits::NONE);
    decoder
        .feed(b"retry: 10\nid: 1\ndata: a\n\ndata: lost\r", |_| {})
        .unwrap();
    assert!(decoder.finish());

    decoder
        .feed(b"\xEF\xBB\xBFdata: b\n\n", |event| {
            assert_eq!(
                (event.data, event.last_event_id, event.retry),
                ("b", "1", None)
            );
        })
        .unwrap();
    assert_eq!(decoder.reconnection_time(), Some(10));
    assert!(!decoder.finish());
}

#[test]
fn an_event_that_is_too_large_is_dropped_and_reported_and_its_neighbours_are_read() {
    let stream = b"data: a\n\nid: 9\ndata: 0123456789\nevent: x\n\ndata: b\n\n";
    let mut decoder = Decoder::new(Limits::bytes(15));
    let mut seen = Vec::new();

    let overflow = decoder.feed(stream, |event| {
        seen.push(format!(
            "{} {}{}",
            event.event, event.data, event.last_event_id
        ));
    });

    assert_eq!(
        overflow,
        Err(Overflow {
            offset: 25,
            limit: Limit::Event
        })
    );
    assert_eq!(seen, ["message a", "message b"]);
    assert_eq!(
        overflow.unwrap_err().to_string(),
        "event too large: byte 25 of the stream exceeds the event limit"
    );
}

#[test]
fn a_line_without_end_is_reported_as_soon_as_it_exceeds_the_limit() {
    let mut decoder = Decoder::new(Limits::bytes(100));

    assert!(decoder.feed(&[b'x'; 100], |_| {}).is_ok());
    assert_eq!(
        decoder.feed(b"x", |_| {}),
        Err(Overflow {
            offset: 100,
            limit: Limit::Line
        })
    );
    assert_eq!(decoder.feed(&[b'x'; 100], |_| {}), Ok(()), "once per event");
    assert_eq!(
        decoder.feed(b"\ndata: too\n\ndata: late\n\n", |e| assert_eq!(
            e.data,
            "late"
        )),
        Ok(())
    );
}
