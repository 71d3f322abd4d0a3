//! The frames of the two event streams, as the JSON in their `data` lines.
//!
//! [`SseEnvelope`] wraps every event of `POST /api/actions`; [`ProtocolEvent`] every event of
//! `GET /api/events/stream`, whose control frames [`Connected`], [`Heartbeat`] and [`Reset`] are flat
//! objects of their own. Members are written in the order of their declaration.
//!
//! Not here: the `event:` and `id:` lines around the JSON (`sse`), and what a payload holds
//! (`payloads`).
//!
//! Source: seed 000, lines 741-760 and 1087-1104.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::meta::Topic;
use crate::cursor::CursorBuf;
use crate::words::words;

/// The event name of [`Connected`].
pub const CONNECTED: &str = "system.connected";
/// The event name of [`Heartbeat`].
pub const HEARTBEAT: &str = "system.heartbeat";
/// The event name of [`Reset`].
pub const RESET: &str = "system.reset";
/// The internal control event of a deleted session: it closes subscriptions, and is never sent.
///
/// Source: seed 000, line 718.
pub const SESSION_INVALIDATED: &str = "session.invalidated";

/// The members of an event payload, in the order in which they are written.
pub type Payload = Map<String, Value>;

/// One frame of an action stream. It has exactly these nine members.
///
/// Source: seed 000, lines 1089-1101.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SseEnvelope {
    /// The event name, one of the table's members.
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    pub event: String,
    /// The id that the request carried.
    pub request_id: String,
    /// The trace of the whole request; constant over a handoff.
    pub trace_id: String,
    /// The session that the request acts on.
    pub session_id: String,
    /// The turn that is being written; a handoff changes it within one stream.
    pub turn_id: String,
    /// Equal to `trace_id`.
    pub flow_id: String,
    /// Rises with every frame of the stream; the public server begins with 0 and leaves no hole.
    pub seq: u64,
    /// When the frame was queued: ISO 8601, UTC.
    pub timestamp: String,
    /// What the event tells.
    pub payload: Payload,
}

/// One event of a subscription.
///
/// Source: seed 000, lines 711-713 and 1103.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProtocolEvent {
    /// The cursor of this event; equal to the frame's `id:` line.
    pub id: CursorBuf,
    /// The topic that selected it. The seed's member list omits it, and its client reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<Topic>,
    /// The event name; equal to the frame's `event:` line.
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    pub event: String,
    /// The session that the event belongs to.
    pub session_id: String,
    /// The turn that caused it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The runtime that caused it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<EventSource>,
    /// Which life of the session this is: an opaque tag, equal to the session record's `incarnation`.
    pub session_incarnation: String,
    /// When the event happened: ISO 8601, UTC.
    pub timestamp: String,
    /// What the event tells.
    pub payload: Payload,
}

/// The runtime that caused an event.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventSource {
    /// The plugin of the runtime.
    pub plugin_id: String,
    /// The runtime.
    pub runtime_id: String,
}

/// The first frame of every subscription, `system.connected`. It has no `id:` line.
///
/// Source: seed 000, lines 643 and 647.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Connected {
    /// The session that is subscribed to.
    pub session_id: String,
    /// The topics of the subscription. Public, so any value is accepted.
    #[schemars(with = "Value")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<TopicSelection>,
    /// The newest event of the session at this moment; its seq is 0 when there was none.
    pub cursor: CursorBuf,
    /// When the subscription began: ISO 8601, UTC.
    pub timestamp: String,
}

/// The topics of a subscription. Source: public.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TopicSelection {
    /// Every topic, written as `"all"`.
    All(AllTopics),
    /// These topics.
    Some(Vec<Topic>),
}

impl TopicSelection {
    /// Every topic.
    pub const ALL: Self = Self::All(AllTopics::All);
}

words! {
    /// The text that stands for every topic.
    "topic selection" enum AllTopics {
        /// Every topic.
        All = "all",
    }
}

/// The sign of life of a subscription, `system.heartbeat`. It has no `id:` line.
///
/// Source: seed 000, line 644.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Heartbeat {
    /// When it was sent: ISO 8601, UTC.
    pub timestamp: String,
}

/// The frame that tells a subscriber to read everything again, `system.reset`. It has no `id:` line.
///
/// Source: seed 000, lines 741-760.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reset {
    /// The session that is subscribed to.
    pub session_id: String,
    /// Why the cursor cannot be continued.
    pub reason: ResetReason,
    /// The current epoch of the session.
    pub epoch: String,
    /// The oldest seq that is still kept; 0 when none is.
    pub oldest_seq: u64,
    /// The newest seq of this epoch; 0 when there is none.
    pub latest_seq: u64,
    /// `<epoch>:<latestSeq>`, which the client adopts.
    pub cursor: CursorBuf,
    /// When it was sent: ISO 8601, UTC.
    pub timestamp: String,
}

words! {
    /// Why a subscription cannot be continued from a cursor.
    ///
    /// Source: seed 000, lines 751 and 762-767.
    "reset reason" enum ResetReason {
        /// The epoch is the same, but the events after the cursor are no longer all kept, or the
        /// cursor is ahead of the newest event.
        Gap = "gap",
        /// The cursor is of another epoch, or no cursor at all.
        EpochChange = "epoch-change",
        /// The transport between processes lost events.
        TransportGap = "transport-gap",
        /// Data was committed, but its events could not be published.
        PublishFailed = "publish-failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_written_in_the_order_of_the_seed() {
        let line = r#"{"type":"execution.completed","requestId":"rq-7","traceId":"tr-1","sessionId":"s-1","turnId":"t-9","flowId":"tr-1","seq":12,"timestamp":"2030-05-01T10:00:09.000Z","payload":{"runtimeCount":2,"resultCount":2,"durationMs":8800,"committed":true}}"#;
        let envelope: SseEnvelope = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&envelope).unwrap(), line);
    }

    #[test]
    fn an_envelope_with_a_tenth_member_is_refused() {
        let line = r#"{"type":"error.occurred","requestId":"r","traceId":"t","sessionId":"s","turnId":"t","flowId":"t","seq":0,"timestamp":"2030-05-01T10:00:09.000Z","payload":{},"id":"x"}"#;
        let error = serde_json::from_str::<SseEnvelope>(line).unwrap_err();
        assert!(error.to_string().contains("unknown field `id`"), "{error}");
    }

    #[test]
    fn a_subscription_event_reads_back_and_omits_what_is_absent() {
        let line = r#"{"id":"k3-2:18","topic":"plugin","type":"plugin-data.changed","sessionId":"s-1","sessionIncarnation":"9f2c","timestamp":"2030-05-01T10:00:10.000Z","payload":{"pluginId":"codex","changes":[]}}"#;
        let event: ProtocolEvent = serde_json::from_str(line).unwrap();
        assert_eq!(event.id, CursorBuf::new("k3-2", 18));
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }

    #[test]
    fn control_frames_are_flat() {
        let connected = Connected {
            session_id: "s-1".into(),
            topics: Some(TopicSelection::ALL),
            cursor: CursorBuf::new("k3", 0),
            timestamp: "2030-05-01T10:00:00.000Z".into(),
        };
        assert_eq!(
            serde_json::to_string(&connected).unwrap(),
            r#"{"sessionId":"s-1","topics":"all","cursor":"k3:0","timestamp":"2030-05-01T10:00:00.000Z"}"#
        );
        let line = r#"{"sessionId":"s-1","reason":"gap","epoch":"k3-2","oldestSeq":40,"latestSeq":1039,"cursor":"k3-2:1039","timestamp":"2030-05-01T10:00:00.000Z"}"#;
        let reset: Reset = serde_json::from_str(line).unwrap();
        assert_eq!(reset.reason, ResetReason::Gap);
        assert_eq!(serde_json::to_string(&reset).unwrap(), line);
    }
}
