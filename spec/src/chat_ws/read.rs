//! Texts that came over the socket, as frames of a client.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::client::{Cancel, ClientFrame, Command, Continue, Send, SetQueue, Subscribe};

/// Why a text is no frame of a client. The text of the error is what `chat:error` says.
///
/// Source: seed 004, line 20; the words are from public sources.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NotAFrame {
    /// It is no JSON.
    #[error("Invalid JSON")]
    Json,
    /// It is JSON, and no frame that a client sends.
    #[error("Unknown message")]
    Unknown,
}

/// Reads a text as a frame of a client.
///
/// A member that is not known is ignored; of a member that stands twice, the last one counts.
///
/// # Errors
///
/// [`NotAFrame::Json`] when it is no JSON; [`NotAFrame::Unknown`] when it is no object, its `type` is none of a
/// client's, or its payload lacks a member or has one of another type.
pub fn read_client(text: &str) -> Result<ClientFrame, NotAFrame> {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Err(NotAFrame::Json);
    };
    let Value::Object(mut frame) = value else {
        return Err(NotAFrame::Unknown);
    };
    let Some(Value::String(kind)) = frame.remove("type") else {
        return Err(NotAFrame::Unknown);
    };
    read_kind(&kind, &mut frame).ok_or(NotAFrame::Unknown)
}

fn read_kind(kind: &str, frame: &mut Map<String, Value>) -> Option<ClientFrame> {
    let frame = match kind {
        "ping" => ClientFrame::Ping,
        "chat:subscribe" => ClientFrame::Subscribe(
            payload(frame).filter(|it: &Subscribe| !it.session_id.is_empty())?,
        ),
        "chat:send" => ClientFrame::Send(payload(frame).filter(|it: &Send| it.slug().is_some())?),
        "chat:command" => ClientFrame::Command(
            payload(frame).filter(|it: &Command| it.slug().is_some() && !it.command.is_empty())?,
        ),
        "chat:cancel" => ClientFrame::Cancel(payload::<Cancel>(frame)?),
        "chat:set_queue" => {
            ClientFrame::SetQueue(payload(frame).filter(|it: &SetQueue| it.slug().is_some())?)
        }
        "chat:continue" => {
            ClientFrame::Continue(payload(frame).filter(|it: &Continue| !it.session_id.is_empty())?)
        }
        _ => return None,
    };
    Some(frame)
}

fn payload<T: DeserializeOwned>(frame: &mut Map<String, Value>) -> Option<T> {
    serde_json::from_value(frame.remove("payload")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_a_client_is_read() {
        for (text, name) in [
            (r#"{"type":"ping"}"#, "Ping"),
            (r#"{"type":"ping","payload":{},"x":1}"#, "Ping"),
            (
                r#"{"type":"chat:subscribe","payload":{"sessionId":"s"}}"#,
                "Subscribe",
            ),
            (
                r#"{"type":"chat:send","payload":{"target":"p","message":""}}"#,
                "Send",
            ),
            (
                r#"{"type":"chat:send","payload":{"projectSlug":"p","sessionId":null,"message":"x","new":1}}"#,
                "Send",
            ),
            (
                r#"{"type":"chat:command","payload":{"target":"p","command":"/compact"}}"#,
                "Command",
            ),
            (
                r#"{"type":"chat:cancel","payload":{"jobId":"j"}}"#,
                "Cancel",
            ),
            (
                r#"{"type":"chat:set_queue","payload":{"target":"p","text":null,"ts":null}}"#,
                "SetQueue",
            ),
            (
                r#"{"type":"chat:continue","payload":{"sessionId":"s"}}"#,
                "Continue",
            ),
        ] {
            let frame = read_client(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(format!("{frame:?}").starts_with(name), "{frame:?}");
        }
    }

    #[test]
    fn what_is_no_frame_of_a_client_is_refused() {
        for text in ["", "{", "\u{feff}{}", "nonsense"] {
            assert_eq!(read_client(text), Err(NotAFrame::Json), "{text}");
        }
        for text in [
            "1",
            "null",
            "[]",
            "{}",
            r#"{"type":1}"#,
            r#"{"type":"chat:nope","payload":{}}"#,
            r#"{"type":"chat:complete","payload":{}}"#,
            r#"{"type":"chat:send"}"#,
            r#"{"type":"chat:send","payload":{"message":"x"}}"#,
            r#"{"type":"chat:send","payload":{"target":"p","message":1}}"#,
            r#"{"type":"chat:send","payload":{"target":"p","message":"x","model":null}}"#,
            r#"{"type":"chat:subscribe","payload":{"sessionId":""}}"#,
            r#"{"type":"chat:subscribe","payload":{"sessionId":"s","lastSeq":null}}"#,
            r#"{"type":"chat:subscribe","payload":{"sessionId":"s","wantReplay":"yes"}}"#,
            r#"{"type":"chat:continue","payload":{"sessionId":null}}"#,
            r#"{"type":"chat:cancel","payload":{}}"#,
            r#"{"type":"chat:command","payload":{"target":"p","command":""}}"#,
        ] {
            assert_eq!(read_client(text), Err(NotAFrame::Unknown), "{text}");
        }
    }

    #[test]
    fn of_two_slugs_the_first_name_counts_and_of_two_members_the_last() {
        let frame = read_client(
            r#"{"type":"chat:send","payload":{"target":"b","projectSlug":"a","message":"x","message":"y"}}"#,
        );
        let Ok(ClientFrame::Send(send)) = frame else {
            panic!("{frame:?}");
        };
        assert_eq!((send.slug(), send.message.as_str()), (Some("a"), "y"));
    }
}
