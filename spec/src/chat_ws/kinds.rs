//! The table of frame kinds. Server, checks, schemas and docs read it; nobody keeps a second list.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{client, server};
use crate::catalogue::messages::Sender;
use crate::covel::meta::MakeSchema;

/// What routes a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Routed {
    /// The Routing block, with a number of the turn.
    Numbered,
    /// Members of its own.
    Own,
    /// Nothing: the frame is its type alone.
    No,
}

/// Who gets a frame of the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// Every socket.
    All,
    /// The sockets that subscribed to the session, and the one that started the turn.
    Session,
    /// The one socket that is concerned.
    One,
    /// The server: it is a client's frame.
    Server,
}

/// One kind of frame.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its `type`.
    pub name: &'static str,
    /// Who sends it.
    pub from: Sender,
    /// What routes it.
    pub routed: Routed,
    /// Who gets it.
    pub reach: Reach,
    /// When it is sent.
    pub when: &'static str,
    /// Line of seed 004.
    pub line: u32,
    payload: Option<MakeSchema>,
}

impl Kind {
    /// The name of its schema in `spec/schemas`.
    #[must_use]
    pub fn schema_name(&self) -> Cow<'static, str> {
        match self.name.strip_prefix("chat:") {
            Some(rest) => format!("chat-{}", rest.replace('_', "-")).into(),
            None => format!("chat-{}", self.name).into(),
        }
    }

    /// The schema of the whole frame.
    #[must_use]
    pub fn frame(&self, generator: &mut SchemaGenerator) -> Schema {
        match self.payload {
            None => json_schema!({
                "type": "object",
                "properties": { "type": { "const": self.name } },
                "required": ["type"],
            }),
            Some(payload) => json_schema!({
                "type": "object",
                "properties": { "type": { "const": self.name }, "payload": payload(generator) },
                "required": ["type", "payload"],
            }),
        }
    }
}

/// The kind of this name.
#[must_use]
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

const fn to_server(
    name: &'static str,
    line: u32,
    when: &'static str,
    payload: Option<MakeSchema>,
) -> Kind {
    Kind {
        name,
        from: Sender::Client,
        routed: if payload.is_some() {
            Routed::Own
        } else {
            Routed::No
        },
        reach: Reach::Server,
        when,
        line,
        payload,
    }
}

const fn numbered(name: &'static str, line: u32, when: &'static str, payload: MakeSchema) -> Kind {
    Kind {
        name,
        from: Sender::Server,
        routed: Routed::Numbered,
        reach: Reach::Session,
        when,
        line,
        payload: Some(payload),
    }
}

const fn own(
    name: &'static str,
    line: u32,
    reach: Reach,
    when: &'static str,
    payload: Option<MakeSchema>,
) -> Kind {
    Kind {
        name,
        from: Sender::Server,
        routed: if payload.is_some() {
            Routed::Own
        } else {
            Routed::No
        },
        reach,
        when,
        line,
        payload,
    }
}

/// All kinds, first a client's, then a server's, each in the order of the seed.
pub const KINDS: &[Kind] = &[
    to_server(
        "chat:subscribe",
        25,
        "on a connect or reconnect, to attach to a session and to replay what was missed",
        Some(client::Subscribe::json_schema),
    ),
    to_server(
        "chat:send",
        26,
        "the user says something",
        Some(client::Send::json_schema),
    ),
    to_server(
        "chat:command",
        27,
        "the user runs a slash command",
        Some(client::Command::json_schema),
    ),
    to_server(
        "chat:cancel",
        28,
        "the user stops the running turn",
        Some(client::Cancel::json_schema),
    ),
    to_server(
        "chat:set_queue",
        29,
        "the user writes, changes or clears what is to be said next",
        Some(client::SetQueue::json_schema),
    ),
    to_server(
        "chat:continue",
        30,
        "the user presses Continue on the notice of a killed task",
        Some(client::Continue::json_schema),
    ),
    to_server("ping", 31, "every 25 seconds", None),
    own(
        "chat:active",
        36,
        Reach::All,
        "a turn starts or stops; and, for running sessions, to a new or subscribing socket",
        Some(server::Active::json_schema),
    ),
    numbered(
        "chat:response",
        37,
        "the assistant writes",
        server::Response::json_schema,
    ),
    numbered(
        "chat:tool_start",
        38,
        "a tool use begins",
        server::ToolStart::json_schema,
    ),
    numbered(
        "chat:tool_call",
        39,
        "a tool use has its result",
        server::ToolCall::json_schema,
    ),
    numbered(
        "chat:message_boundary",
        40,
        "an assistant message is over",
        server::Routing::json_schema,
    ),
    numbered(
        "chat:complete",
        41,
        "the turn is over",
        server::Complete::json_schema,
    ),
    own(
        "chat:error",
        42,
        Reach::One,
        "a text is no frame, or a turn failed without a session",
        Some(server::Refusal::json_schema),
    ),
    own(
        "chat:resync",
        43,
        Reach::One,
        "what a subscriber missed is gone from the buffer",
        Some(server::Place::json_schema),
    ),
    own(
        "chat:queued_flushed",
        44,
        Reach::Session,
        "the server took the queued text",
        Some(server::QueuedFlushed::json_schema),
    ),
    own(
        "chat:killed_task",
        45,
        Reach::Session,
        "a background task that the agent waited for was killed",
        Some(server::KilledTask::json_schema),
    ),
    numbered(
        "chat:notice",
        46,
        "the turn ended without a normal reply",
        server::Notice::json_schema,
    ),
    own("pong", 47, Reach::One, "the answer to ping", None),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_stands_in_its_line_of_the_seed() {
        for kind in KINDS {
            let mut lines = crate::seeds::lines("004_c5b2c2c05fb2eca6.txt", kind.line, kind.line);
            let (_, line) = lines.next().unwrap();
            assert!(
                line.split('\t').next() == Some(kind.name),
                "{}: {line}",
                kind.name
            );
        }
    }

    #[test]
    fn a_server_has_twelve_kinds_and_a_client_seven() {
        let of = |from| KINDS.iter().filter(|kind| kind.from == from).count();
        assert_eq!((of(Sender::Server), of(Sender::Client)), (12, 7));
    }
}
