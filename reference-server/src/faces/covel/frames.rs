//! The bytes of each frame of the Covel streams.
//!
//! Subscription frames have their lines in the order event, data, id; control frames have no id;
//! action frames have data alone.
//!
//! Source: seed 000, lines 635-648, 741-760 and 1087-1104.

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;
use serde::Serialize;
use turnwire_spec::covel::ResetReason;
use turnwire_spec::covel::envelope::{
    CONNECTED, Connected, EventSource, HEARTBEAT, Heartbeat, ProtocolEvent, RESET, Reset,
    SseEnvelope, TopicSelection,
};
use turnwire_spec::{sse, time};

use crate::bus::Emitted;
use crate::bus::replay::Position;
use crate::engine::ids::SessionId;

/// A time as the wire has it.
#[must_use]
pub fn timestamp(at: Timestamp) -> String {
    time::format_ms(at.as_millisecond())
}

/// An event of the subscription stream.
#[must_use]
pub fn event(emitted: &Emitted) -> Bytes {
    let event = &emitted.event;
    let data = ProtocolEvent {
        id: emitted.id.clone(),
        topic: Some(event.topic),
        event: event.kind.to_owned(),
        session_id: event.session.id.as_str().to_owned(),
        turn_id: event.turn_id.as_ref().map(|turn| turn.as_str().to_owned()),
        source: event.source.as_ref().map(|source| EventSource {
            plugin_id: source.plugin_id.as_str().to_owned(),
            runtime_id: source.runtime_id.as_str().to_owned(),
        }),
        session_incarnation: event.session.incarnation.as_str().to_owned(),
        timestamp: timestamp(event.timestamp),
        payload: event.payload.clone(),
    };
    frame(Some(event.kind), &data, Some(&emitted.id.to_string()))
}

/// `system.connected`.
#[must_use]
pub fn connected(
    session: &SessionId,
    topics: &TopicSelection,
    position: &Position,
    now: Timestamp,
) -> Bytes {
    let data = Connected {
        session_id: session.as_str().to_owned(),
        topics: Some(topics.clone()),
        cursor: position.cursor(),
        timestamp: timestamp(now),
    };
    frame(Some(CONNECTED), &data, None)
}

/// `system.heartbeat`.
#[must_use]
pub fn heartbeat(now: Timestamp) -> Bytes {
    frame(
        Some(HEARTBEAT),
        &Heartbeat {
            timestamp: timestamp(now),
        },
        None,
    )
}

/// `system.reset`.
#[must_use]
pub fn reset(
    session: &SessionId,
    reason: ResetReason,
    position: &Position,
    now: Timestamp,
) -> Bytes {
    let data = Reset {
        session_id: session.as_str().to_owned(),
        reason,
        epoch: position.epoch.clone(),
        oldest_seq: position.oldest_seq,
        latest_seq: position.latest_seq,
        cursor: position.cursor(),
        timestamp: timestamp(now),
    };
    frame(Some(RESET), &data, None)
}

/// A frame of an action stream.
#[must_use]
pub fn action(envelope: &SseEnvelope) -> Bytes {
    frame(None, envelope, None)
}

/// A named frame of the model relay.
#[must_use]
pub fn relay(name: &'static str, data: &impl Serialize) -> Bytes {
    frame(Some(name), data, None)
}

/// A comment line.
#[must_use]
pub fn comment(text: &str) -> Bytes {
    let mut out = BytesMut::new();
    sse::encode::comment(&mut out, text);
    out.freeze()
}

fn frame(event: Option<&str>, data: &impl Serialize, id: Option<&str>) -> Bytes {
    let mut out = BytesMut::new();
    // Neither can happen: our data are plain structs and maps, our names and ids hold no line break.
    // Should they, the frame is left out and the log says so.
    let written = serde_json::to_string(data)
        .map_err(|error| error.to_string())
        .and_then(|json| {
            sse::encode::event(&mut out, event, &json, id).map_err(|error| error.to_string())
        });
    if let Err(error) = written {
        tracing::error!(%error, "a frame cannot be written");
    }
    out.freeze()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwire_spec::covel::Topic;
    use turnwire_spec::cursor::CursorBuf;

    use super::*;
    use crate::engine::ids::{Incarnation, SessionKey};
    use crate::engine::model::DomainEvent;

    fn text(frame: &Bytes) -> &str {
        std::str::from_utf8(frame).unwrap()
    }

    #[test]
    fn an_event_has_its_lines_in_the_order_event_data_id() {
        let payload = json!({ "pluginId": "codex", "changes": [] });
        let emitted = Emitted {
            id: CursorBuf::new("k3-2", 18),
            event: DomainEvent {
                kind: "plugin-data.changed",
                topic: Topic::Plugin,
                session: SessionKey {
                    id: SessionId::from("s-1"),
                    incarnation: Incarnation::from("9f2c"),
                },
                turn_id: None,
                source: None,
                payload: payload.as_object().unwrap().clone(),
                timestamp: Timestamp::from_millisecond(1_903_860_010_000).unwrap(),
            },
        };

        assert_eq!(
            text(&event(&emitted)),
            concat!(
                "event: plugin-data.changed\n",
                r#"data: {"id":"k3-2:18","topic":"plugin","type":"plugin-data.changed","#,
                r#""sessionId":"s-1","sessionIncarnation":"9f2c","#,
                r#""timestamp":"2030-05-01T10:00:10.000Z","#,
                r#""payload":{"pluginId":"codex","changes":[]}}"#,
                "\nid: k3-2:18\n\n",
            )
        );
    }

    #[test]
    fn control_frames_have_no_id_line() {
        let position = Position {
            epoch: "e".into(),
            oldest_seq: 0,
            latest_seq: 7,
            has_moved_on: false,
        };
        let session = SessionId::from("s");
        let now = Timestamp::UNIX_EPOCH;
        for frame in [
            connected(&session, &TopicSelection::ALL, &position, now),
            heartbeat(now),
            reset(&session, ResetReason::Gap, &position, now),
        ] {
            assert!(text(&frame).starts_with("event: system."));
            assert!(!text(&frame).contains("\nid"), "{}", text(&frame));
        }
    }

    #[test]
    fn a_comment_is_no_event() {
        assert_eq!(text(&comment("keep")), ": keep\n\n");
    }
}
