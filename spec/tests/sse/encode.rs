//! What the encoder writes, and what it refuses.

use proptest::prelude::*;
use turnwire_spec::sse::{EncodeError, Encoder, encode, properties};

use crate::input::text;

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        event in proptest::option::of(text()),
        data in text(),
        id in proptest::option::of(text()),
    ) {
        properties::encoding_round_trips(event.as_deref(), &data, id.as_deref());
    }
}

#[test]
fn the_encoder_writes_event_data_id_and_splits_data_at_every_line_break() {
    let mut out = Vec::new();
    encode::event(&mut out, Some("tick"), " a\nb\r\nc\rd\n", Some("e1:7")).unwrap();
    encode::event(&mut out, None, "", None).unwrap();
    encode::comment(&mut out, "keep\nalive");
    encode::retry(&mut out, 250);

    insta::assert_snapshot!(String::from_utf8(out).unwrap().replace('\n', "$\n"), @"
    event: tick$
    data:  a$
    data: b$
    data: c$
    data: d$
    data: $
    id: e1:7$
    $
    data: $
    $
    : keep$
    : alive$
    $
    retry: 250$
    $
    ");
}

#[test]
fn the_line_order_is_the_callers() {
    let mut out = bytes::BytesMut::new();
    Encoder::new(&mut out)
        .id("1")
        .unwrap()
        .data("x")
        .event("e")
        .unwrap()
        .retry(5)
        .end();

    assert_eq!(out, "id: 1\ndata: x\nevent: e\nretry: 5\n\n");
}

#[test]
fn types_and_ids_that_would_break_the_stream_are_refused() {
    for bad in ["a\nb", "a\rb", "a\0b"] {
        let mut out = Vec::new();
        assert_eq!(
            encode::event(&mut out, Some(bad), "x", None),
            Err(EncodeError::EventType(bad.to_owned()))
        );
        assert_eq!(
            encode::event(&mut out, Some("fine"), "x", Some(bad)),
            Err(EncodeError::Id(bad.to_owned()))
        );
        assert_eq!(out, b"", "nothing is written");
    }
}
