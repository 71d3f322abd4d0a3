//! What the event-stream readers allocate: nothing per event, and never more than their limits.

use std::hint::black_box;

use allocation_counter::measure;
use turnwire_spec::sse::{Decoder, Limits, Recorder};

/// Feeds the stream in pieces; gives the number of events.
fn feed(decoder: &mut Decoder, stream: &[u8], size: usize) -> usize {
    let mut events = 0;
    for piece in stream.chunks(size) {
        let fed = decoder.feed(piece, |event| {
            black_box(event);
            events += 1;
        });
        assert_eq!(fed, Ok(()));
    }
    events
}

fn stream_of(event: &str) -> Vec<u8> {
    event.repeat(10_000).into_bytes()
}

#[test]
fn an_event_of_one_data_line_that_lies_whole_in_the_chunk_costs_no_allocation() {
    for event in [
        "data: {\"choices\":[{\"delta\":{\"content\":\"caf\u{e9}\"}}]}\n\n",
        "data:no space\r\n\r\n",
        "event: tick\ndata: x\n\n",
        ": comment\ndata: x\r\r",
    ] {
        let stream = stream_of(event);
        let mut decoder = Decoder::new(Limits::default());
        let mut events = 0;

        let used = measure(|| events = feed(&mut decoder, &stream, stream.len()));

        assert_eq!(events, 10_000);
        assert_eq!(used.count_total, 0, "{event:?}");
    }
}

#[test]
fn any_other_event_costs_none_once_the_buffers_have_grown() {
    for event in [
        "data: {\"choices\":[{\"delta\":{\"content\":\"caf\u{e9}\"}}]}\n\n",
        "event: tick\ndata: one\ndata: two\nid: e1:7\nretry: 100\n\n",
        "id: 7\r\ndata: x\r\n\r\n",
    ] {
        let stream = stream_of(event);
        for size in [1, 7, 128, 4096] {
            let mut decoder = Decoder::new(Limits::default());
            let growing = measure(|| assert_eq!(feed(&mut decoder, &stream, size), 10_000));
            assert_ne!(growing.count_total, 0, "the counter counts");
            let mut events = 0;

            let used = measure(|| events = feed(&mut decoder, &stream, size));

            assert_eq!(events, 10_000);
            assert_eq!(used.count_total, 0, "{event:?} in pieces of {size} bytes");
        }
    }
}

#[test]
fn a_reader_never_buffers_a_line_or_an_event_past_its_limit() {
    const LIMIT: usize = 64 << 10;
    let long_line = vec![b'x'; 16 << 20];
    let long_event = b"data: 0123456789\n".repeat(1 << 20);

    for stream in [long_line, long_event] {
        let decoding = measure(|| {
            let mut decoder = Decoder::new(Limits::bytes(LIMIT));
            let overflows = stream
                .chunks(4096)
                .filter(|piece| decoder.feed(piece, |_| {}).is_err());
            assert_eq!(overflows.count(), 1, "reported once");
        });
        let recording = measure(|| {
            let mut recorder = Recorder::new(Limits::bytes(LIMIT));
            stream
                .chunks(4096)
                .for_each(|piece| assert!(recorder.feed(piece).is_empty()));
            let tail = recorder.finish();
            assert!(tail.is_some_and(|frame| frame.omitted > 0));
        });

        assert!(decoding.bytes_max < 4 * LIMIT as u64, "{decoding:?}");
        // Each short line that is kept costs its bookkeeping besides its bytes.
        assert!(recording.bytes_max < 32 * LIMIT as u64, "{recording:?}");
    }
}
