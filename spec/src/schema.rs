//! JSON Schemas of everything that travels as JSON, made from the types of this crate.
//!
//! The files in `spec/schemas` are [`rendered`] and checked in, for people and for tools in other
//! languages; a test tells when they are stale. Writing them is the business of `cargo xtask gen`.
//!
//! A schema accuses nobody over a point that the seed leaves open: objects are open unless the seed
//! closes them, and a member whose type no source tells takes any value. A member that may be absent
//! is not null when it is there, as the seed's notation says.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::covel::meta::MakeSchema;
use crate::covel::payloads::conceal;
use crate::covel::{Connected, EVENTS, EventMeta, Heartbeat, ProtocolEvent, Reset, SseEnvelope};
use crate::covel::{envelope, event};

/// The schema of the payload of the event `name`, member of the union or row of the stored trace.
#[must_use]
pub fn for_event(name: &str) -> Option<Schema> {
    event(name).map(payload)
}

/// The schema of the data of a control frame, by its event name.
#[must_use]
pub fn for_control_frame(name: &str) -> Option<Schema> {
    let is_control = [envelope::CONNECTED, envelope::HEARTBEAT, envelope::RESET].contains(&name);
    is_control.then(|| named(name)).flatten()
}

/// The schema of every frame of an action stream.
#[must_use]
pub fn sse_envelope() -> Schema {
    root(SseEnvelope::json_schema, "sse-envelope")
}

/// The schema of every event of a subscription.
#[must_use]
pub fn protocol_event() -> Schema {
    root(ProtocolEvent::json_schema, "protocol-event")
}

/// Every schema under its name: events under theirs, then frames, requests and answers.
#[must_use]
pub fn all() -> Vec<(String, Schema)> {
    let events = EVENTS
        .iter()
        .map(|meta| (meta.name.to_owned(), payload(meta)));
    let others = OTHERS
        .iter()
        .map(|(name, make)| ((*name).to_owned(), root(*make, name)));
    events.chain(others).collect()
}

/// The schema of this name, see [`all`].
#[must_use]
pub fn named(name: &str) -> Option<Schema> {
    let other = || {
        OTHERS
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(name, make)| root(*make, name))
    };
    for_event(name).or_else(other)
}

/// Every schema as the text of its file in `spec/schemas`, under the name of that file.
#[must_use]
pub fn rendered() -> Vec<(String, String)> {
    let text = |schema: &Schema| format!("{:#}\n", schema.as_value());
    all()
        .into_iter()
        .map(|(name, schema)| (format!("{name}.json"), text(&schema)))
        .collect()
}

/// What is no event.
const OTHERS: &[(&str, MakeSchema)] = &[
    ("sse-envelope", SseEnvelope::json_schema),
    ("protocol-event", ProtocolEvent::json_schema),
    (envelope::CONNECTED, Connected::json_schema),
    (envelope::HEARTBEAT, Heartbeat::json_schema),
    (envelope::RESET, Reset::json_schema),
];

/// The schema of an event's payload, with the room that concealed runtimes need.
fn payload(meta: &EventMeta) -> Schema {
    let mut schema = root(meta.payload_schema, meta.name);
    if meta.is_diagnostic() {
        allow_concealment(&mut schema);
    }
    schema
}

fn root(make: MakeSchema, title: &str) -> Schema {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = make(&mut generator);
    let mut definitions = generator.take_definitions(true);
    let mut root = Map::new();
    root.insert(
        "$schema".into(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    root.insert("title".into(), title.into());
    root.append(schema.ensure_object());
    if !definitions.is_empty() {
        root.insert(
            "$defs".into(),
            Value::Object(std::mem::take(&mut definitions)),
        );
    }
    let mut schema = Schema::from(root);
    AbsentIsNotNull.transform(&mut schema);
    schema
}

/// Takes null out of the types of members that may be absent.
///
/// `Option` stands for both in Rust; on the wire a member of ours is absent, and never null.
#[derive(Clone, Debug)]
struct AbsentIsNotNull;

impl Transform for AbsentIsNotNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let required = schema.get("required").cloned().unwrap_or(Value::Null);
        let is_required = |name: &str| {
            required
                .as_array()
                .is_some_and(|names| names.iter().any(|other| other == name))
        };
        let Some(Value::Object(members)) = schema.get_mut("properties") else {
            return;
        };
        for (name, member) in members {
            if let (false, Value::Object(member)) = (is_required(name), member) {
                remove_null(member);
            }
        }
    }
}

fn remove_null(member: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = member.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [single] = types.as_slice() {
            let single = single.clone();
            member.insert("type".into(), single);
        }
    }
    if let Some(Value::Array(values)) = member.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(kinds)) = member.get_mut("anyOf") {
        kinds.retain(|kind| *kind != json!({ "type": "null" }));
        if let [Value::Object(single)] = kinds.as_slice() {
            let single = single.clone();
            member.remove("anyOf");
            member.extend(single);
        }
    }
}

/// Lets a concealed diagnostic lack its content.
///
/// Source: seed 000, lines 831-836.
fn allow_concealment(schema: &mut Schema) {
    let Some(required) = schema.remove("required") else {
        return;
    };
    let kept = required.as_array().into_iter().flatten().filter(|name| {
        name.as_str()
            .is_some_and(|name| conceal::SURELY_KEPT.contains(&name))
    });
    schema.insert("required".into(), kept.cloned().collect());
    schema.insert(
        "if".into(),
        json!({ "properties": { "concealed": { "const": true } }, "required": ["concealed"] }),
    );
    schema.insert("else".into(), json!({ "required": required }));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn faults(name: &str, instance: &Value) -> Vec<String> {
        let schema = named(name).unwrap();
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        validator
            .iter_errors(instance)
            .map(|error| error.to_string())
            .collect()
    }

    #[track_caller]
    fn accepts(name: &str, instance: Value) {
        assert_eq!(faults(name, &instance), [""; 0], "{instance}");
    }

    #[track_caller]
    fn refuses(name: &str, instance: Value) {
        assert_ne!(faults(name, &instance), [""; 0], "{instance}");
    }

    #[test]
    fn every_schema_is_one_and_has_a_name_of_its_own() {
        let mut names = BTreeSet::new();
        for (name, schema) in all() {
            assert!(jsonschema::meta::is_valid(schema.as_value()), "{name}");
            assert!(
                jsonschema::validator_for(schema.as_value()).is_ok(),
                "{name}"
            );
            assert!(names.insert(name.clone()), "{name} twice");
        }
    }

    #[test]
    fn an_open_payload_may_have_more_members() {
        let delta =
            json!({ "runtimeId": "r", "pluginId": "p", "kind": "story", "delta": "", "x": 1 });
        accepts("narrative.delta", delta);
        refuses(
            "narrative.delta",
            json!({ "runtimeId": "r", "pluginId": "p", "delta": "" }),
        );
    }

    #[test]
    fn a_payload_that_the_seed_closes_may_not() {
        accepts(
            "plugin-data.changed",
            json!({ "pluginId": "p", "changes": [] }),
        );
        refuses(
            "plugin-data.changed",
            json!({ "pluginId": "p", "changes": [], "turnId": "t" }),
        );
        refuses("sse-envelope", json!({ "type": "x" }));
    }

    #[test]
    fn a_member_that_may_be_absent_is_never_null() {
        let with = |reset: Value| json!({ "runtimeId": "r", "pluginId": "p", "kind": "story", "delta": "", "reset": reset });
        accepts("narrative.delta", with(json!(true)));
        refuses("narrative.delta", with(json!(null)));
        refuses("narrative.delta", with(json!(false)));
    }

    #[test]
    fn a_provider_may_be_null_because_the_seed_says_so() {
        let with = |provider: Value| {
            json!({
                "runtimeId": "r", "pluginId": "p", "slot": "story", "model": "m", "messages": [],
                "tools": [], "attempt": 1, "startedAt": "2030-05-01T10:00:00Z", "provider": provider,
            })
        };
        accepts("llm.calling", with(json!(null)));
        accepts("llm.calling", with(json!("openai")));
        refuses("llm.calling", with(json!(1)));
    }

    #[test]
    fn a_deleted_row_has_the_value_null() {
        let with = |operation: &str, value: Value| {
            let change =
                json!({ "namespace": "n", "key": "k", "value": value, "operation": operation });
            json!({ "pluginId": "p", "changes": [change] })
        };
        accepts("plugin-data.changed", with("delete", json!(null)));
        refuses("plugin-data.changed", with("delete", json!(1)));
        accepts("plugin-data.changed", with("set", json!(1)));
        refuses("plugin-data.changed", with("put", json!(1)));
    }

    #[test]
    fn a_reason_is_given_when_advancing_stopped() {
        let with = |phase: &str| json!({ "requestId": "q", "rootId": "t", "phase": phase, "round": 1, "limit": 3 });
        accepts("execution.advance", with("waiting"));
        refuses("execution.advance", with("stopped"));
        refuses("execution.advance", with("unknown"));
    }

    #[test]
    fn details_come_with_a_rejected_form_only() {
        let with = |code: &str| json!({ "message": "m", "code": code, "details": { "issues": [{ "message": "m" }] } });
        accepts("error.occurred", with("form_rejected"));
        refuses("error.occurred", with("session_busy"));
        accepts("error.occurred", json!({ "message": "m" }));
    }

    #[test]
    fn a_concealed_diagnostic_may_lack_its_content() {
        let call = json!({ "runtimeId": "r", "pluginId": "p", "toolName": "t", "toolCallId": "c" });
        refuses("tool.calling", call.clone());
        let Value::Object(mut members) = call else {
            panic!("an object")
        };
        conceal::conceal("tool.calling", &mut members);
        accepts("tool.calling", Value::Object(members));
    }

    #[test]
    fn dimensions_come_by_id_or_as_a_list() {
        let entry = json!({ "name": "n", "schema": {}, "value": 1, "version": 1 });
        let with = |dimensions: Value| json!({ "providerPluginId": "p", "dimensions": dimensions });
        accepts("dimensions.changed", with(json!({ "mood": entry })));
        accepts("dimensions.changed", with(json!([entry])));
        refuses(
            "dimensions.changed",
            with(json!({ "mood": { "name": "n" } })),
        );
    }

    #[test]
    fn recovery_members_are_typed_where_they_appear() {
        accepts(
            "execution.started",
            json!({ "runtimeCount": 1, "sourceFailedRuntimeIds": [] }),
        );
        refuses(
            "execution.started",
            json!({ "runtimeCount": 1, "sourceFailedRuntimeIds": "r" }),
        );
    }

    #[test]
    fn control_frames_have_their_own_flat_shapes() {
        let reset = json!({
            "sessionId": "s", "reason": "gap", "epoch": "e", "oldestSeq": 1, "latestSeq": 2,
            "cursor": "e:2", "timestamp": "2030-05-01T10:00:00Z",
        });
        accepts("system.reset", reset.clone());
        let mut without_cursor = reset;
        without_cursor["cursor"] = json!("2");
        refuses("system.reset", without_cursor);
        assert!(for_control_frame("session.invalidated").is_none());
    }
}
