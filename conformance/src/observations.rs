//! What a target says that our knowledge of its protocol does not name: new event types, new members, new words.
//!
//! Protocols move on, and a server may know more than the seed. Nothing here is a fault, unless a requirement says
//! so; an [`Observation`] tells a maintainer what was seen and how often. With `--strict` they are called
//! warnings. So far for `session-update`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use turnwire_spec::{
    schema,
    session_update::{SCHEMA_PREFIX, event},
};

use crate::transcript::{
    Transcript,
    views::session_update::{Update, served, updates},
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
    found
        .into_iter()
        .map(|(what, times)| Observation { what, times })
        .collect()
}

/// What is not known of one event.
fn unknown(update: &Update<'_>) -> Vec<String> {
    let kind = update.kind();
    let mut found = extra(update.message.json.as_ref(), "envelope")
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
    use crate::transcript::{Entry, ExchangeId, Fact, Header, Side};

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
    fn what_is_known_is_not_mentioned() {
        let known = update(json!({ "type": "turn_completed", "duration_ms": 1, "event_id": "e" }));

        assert_eq!(of(&[said(&[known])]), []);
    }
}
