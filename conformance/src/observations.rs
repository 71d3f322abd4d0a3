//! What a target says that our knowledge of its protocol does not name: new event types, new members, new words.
//!
//! Protocols move on, and a server may know more than the seed. Nothing here is a fault, unless a requirement says
//! so; an [`Observation`] tells a maintainer what was seen and how often. With `--strict` they are called
//! warnings. For servers of `session-update` and `chat-ws`, and for clients of `covel-sse` and `sse`: requests that
//! their server does not know.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use turnwire_spec::{
    chat_ws, schema,
    session_update::{SCHEMA_PREFIX, event},
};

use crate::{
    checks::sse::is_stray,
    run::harness,
    scenarios::{Act, client::world::is_of_the_contract},
    suites,
    transcript::{
        Side, Transcript,
        views::{
            client::base,
            http::{Exchange, exchanges},
            messages::{Message, channels},
            session_update::{Update, served, updates},
        },
    },
};

/// Something that nobody has named.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Observation {
    /// What it is, such as `event type plan_revised`.
    pub what: String,
    /// How often it was seen.
    pub times: usize,
}

impl std::fmt::Display for Observation {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} ({} times)", self.what, self.times)
    }
}

/// What the transcripts of a run show that is not known, by name.
pub fn of(transcripts: &[Transcript]) -> Vec<Observation> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let lines = |transcript: &&Transcript| transcript.header.suite == "session-update";
    for transcript in transcripts.iter().filter(lines) {
        for channel in &served(transcript) {
            for update in updates(channel) {
                for what in unknown(&update) {
                    *found.entry(what).or_default() += 1;
                }
            }
        }
    }
    let sockets = |transcript: &&Transcript| transcript.header.suite == "chat-ws";
    for transcript in transcripts.iter().filter(sockets) {
        for channel in channels(transcript) {
            if channel.path() == chat_ws::PATH {
                for what in channel.from(Side::Server).flat_map(unknown_in_chat) {
                    *found.entry(what).or_default() += 1;
                }
            }
        }
    }
    for transcript in transcripts.iter().filter(|found| is_of_a_client(found)) {
        for what in unknown_requests(transcript) {
            *found.entry(what).or_default() += 1;
        }
    }
    found
        .into_iter()
        .map(|(what, times)| Observation { what, times })
        .collect()
}

/// Whether a client was under test in it.
fn is_of_a_client(transcript: &Transcript) -> bool {
    let header = &transcript.header;
    suites::find(&header.suite).is_ok_and(|suite| {
        suite
            .scenarios()
            .any(|found| found.name == header.scenario && matches!(found.run, Act::Client(_)))
    })
}

/// The requests of a client that the protocol does not know. A session that is named like its act is `:session`.
fn unknown_requests(transcript: &Transcript) -> Vec<String> {
    let line = |exchange: &Exchange<'_>| {
        let act = base(exchange.label);
        let path = exchange.path();
        let path = if act.is_empty() {
            path.to_owned()
        } else {
            path.replace(act, ":session")
        };
        format!("request {} {path}", exchange.request.method)
    };
    if transcript.header.suite == "sse" {
        // What no case stands for is never answered.
        let stray = exchanges(transcript).into_iter().filter(is_stray);
        return stray
            .map(|exchange| format!("{}: the case is at another path", line(&exchange)))
            .collect();
    }
    harness::faults(transcript)
        .into_iter()
        .filter(|(exchange, _)| !is_of_the_contract(exchange.request))
        .map(|(exchange, what)| format!("{}: {what}", line(&exchange)))
        .collect()
}

/// What is not known of one frame of a chat server.
fn unknown_in_chat(frame: &Message<'_>) -> Vec<String> {
    let Some(json) = &frame.json else {
        return Vec::new();
    };
    let kind = frame.kind();
    let Some(known) = chat_ws::kind(kind) else {
        return vec![format!("frame kind {kind}")];
    };
    let schema = schema::named(&known.schema_name());
    let members = schema
        .as_ref()
        .and_then(|schema| schema.as_value().pointer("/properties/payload/properties"))
        .and_then(Value::as_object);
    let payload = json.get("payload").and_then(Value::as_object);
    let given = payload.into_iter().flat_map(|payload| payload.keys());
    let unknown =
        given.filter(|member| members.is_none_or(|members| !members.contains_key(member.as_str())));
    unknown
        .map(|member| format!("member {member} of {kind}"))
        .collect()
}

/// What is not known of one event.
fn unknown(update: &Update<'_>) -> Vec<String> {
    let kind = update.kind();
    let mut found = extra(update.message.json.as_deref(), "envelope")
        .into_iter()
        .map(|member| format!("member {member} of the envelope"))
        .collect::<Vec<_>>();
    match event(kind) {
        None if !kind.is_empty() => found.push(format!("event type {kind}")),
        Some(meta) if meta.members.is_some() => {
            let members = extra(update.member("event"), &format!("event.{kind}"));
            let named = members
                .into_iter()
                .map(|member| format!("member {member} of {kind}"));
            found.extend(named);
        }
        _ => {}
    }
    found
}

/// The members of an object that its schema does not name.
fn extra(object: Option<&Value>, name: &str) -> Vec<String> {
    let Some(Value::Object(members)) = object else {
        return Vec::new();
    };
    let Some(schema) = schema::named(&format!("{SCHEMA_PREFIX}.{name}")) else {
        return Vec::new();
    };
    let known: BTreeSet<&String> = schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|members| members.keys().collect())
        .unwrap_or_default();
    let unknown = members.keys().filter(|member| !known.contains(member));
    unknown.cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::transcript::{Entry, ExchangeId, Fact, Header, Request, testing::Script};

    fn said(lines: &[Value]) -> Transcript {
        let entries = lines.iter().map(|line| Entry {
            at: std::time::Duration::ZERO,
            fact: Fact::Line {
                exchange: ExchangeId(1),
                from: Side::Server,
                bytes: line.to_string().into(),
            },
        });
        Transcript {
            header: Header {
                suite: "session-update".to_owned(),
                ..Header::default()
            },
            entries: entries.collect(),
        }
    }

    fn update(event: Value) -> Value {
        json!({
            "kind": "event", "method": "session/update", "sequence": 1, "durability": "durable",
            "session_id": "s", "turn_id": "t", "event": event,
        })
    }

    #[test]
    fn what_nobody_has_named_is_told_with_its_count() {
        let mut wrapped = update(json!({ "type": "assistant_delta", "text": "a", "mood": "calm" }));
        wrapped["zone"] = 1.into();
        let new = update(json!({ "type": "plan_revised" }));
        let transcript = said(&[wrapped, new.clone(), new]);

        let told: Vec<String> = of(&[transcript]).iter().map(ToString::to_string).collect();

        assert_eq!(
            told,
            [
                "event type plan_revised (2 times)",
                "member mood of assistant_delta (1 times)",
                "member zone of the envelope (1 times)",
            ]
        );
    }

    #[test]
    fn new_frames_and_members_of_a_chat_are_told() {
        let mut transcript = Script::new()
            .websocket("/ws")
            .server_says(r#"{"type":"chat:queued_state","payload":{}}"#)
            .server_says(
                r#"{"type":"chat:resync","payload":{"projectSlug":"p","sessionId":"s","why":1}}"#,
            )
            .server_says(r#"{"type":"pong"}"#)
            .client_says(r#"{"type":"chat:mine","payload":{}}"#)
            .transcript();
        transcript.header.suite = "chat-ws".to_owned();

        let told: Vec<String> = of(&[transcript]).iter().map(ToString::to_string).collect();

        assert_eq!(
            told,
            [
                "frame kind chat:queued_state (1 times)",
                "member why of chat:resync (1 times)",
            ]
        );
    }

    #[test]
    fn requests_of_a_client_that_nobody_knows_are_told_and_those_of_its_contract_are_not() {
        let asked = [
            "GET /api/nonsense",
            "PUT /local-store/inputs/i",
            "POST /local-model/v1/chat",
            "POST /api/model-relay/requests/r/chunk",
            "GET /api/sessions/s/media-token",
            "GET /api/sessions/s/plugin-data/p",
            "DELETE /api/sessions/s/plugin-data/p",
        ];
        let entries = asked.iter().zip(1..).map(|(asked, id)| {
            let (method, target) = asked.split_once(' ').unwrap();
            let request = Request {
                method: method.to_owned(),
                target: target.to_owned(),
                headers: Vec::new(),
                body: b"bytes".to_vec().into(),
            };
            Entry {
                at: std::time::Duration::ZERO,
                fact: Fact::Request {
                    exchange: ExchangeId(id),
                    request,
                },
            }
        });
        let transcript = Transcript {
            header: Header {
                suite: "covel-sse".to_owned(),
                scenario: "client-commands".to_owned(),
                ..Header::default()
            },
            entries: entries.collect(),
        };

        let told: Vec<String> = of(&[transcript]).iter().map(ToString::to_string).collect();

        assert_eq!(
            told,
            [
                "request DELETE /api/sessions/s/plugin-data/p: the protocol has no such endpoint (1 times)",
                "request GET /api/nonsense: the protocol has no such endpoint (1 times)",
            ]
        );
    }

    #[test]
    fn what_is_known_is_not_mentioned() {
        let known = update(json!({ "type": "turn_completed", "duration_ms": 1, "event_id": "e" }));

        assert_eq!(of(&[said(&[known])]), []);
    }
}
