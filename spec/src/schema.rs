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
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::chat_ws;
use crate::covel::commands::{ActionRequest, ActionType, actions, plugins, sessions};
use crate::covel::errors::ErrorBody;
use crate::covel::meta::MakeSchema;
use crate::covel::payloads::{self, conceal};
use crate::covel::queries::{self, CursorPage, Items};
use crate::covel::shape::Object;
use crate::covel::{Connected, EVENTS, EventMeta, Heartbeat, ProtocolEvent, Reset, SseEnvelope};
use crate::covel::{envelope, event};
use crate::llm;
use crate::session_update;

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

/// Every schema under its name: events under theirs, then frames, requests and answers, then the frames of
/// the chat protocol.
#[must_use]
pub fn all() -> Vec<(String, Schema)> {
    let events = EVENTS
        .iter()
        .map(|meta| (meta.name.to_owned(), payload(meta)));
    let others = OTHERS
        .iter()
        .map(|(name, make)| ((*name).to_owned(), root(*make, name)));
    let chat = chat_ws::KINDS.iter().map(|kind| {
        let name = kind.schema_name().into_owned();
        let schema = root_of(|generator| kind.frame(generator), &name);
        (name, schema)
    });
    let session_update = session_update::schemas().into_iter().map(|(name, make)| {
        let schema = root(make, &name);
        (name, schema)
    });
    let wires = llm::schemas::ALL
        .iter()
        .filter_map(|(name, _)| Some(((*name).to_owned(), of_wire(name)?)));
    events
        .chain(others)
        .chain(chat)
        .chain(session_update)
        .chain(wires)
        .collect()
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
    let chat = || {
        let kind = chat_ws::KINDS
            .iter()
            .find(|kind| kind.schema_name() == name)?;
        Some(root_of(|generator| kind.frame(generator), name))
    };
    let session_update = || {
        session_update::schemas()
            .into_iter()
            .find(|(other, _)| other == name)
            .map(|(name, make)| root(make, &name))
    };
    for_event(name)
        .or_else(other)
        .or_else(chat)
        .or_else(session_update)
        .or_else(|| of_wire(name))
}

/// The schema of what a service of an LLM wire sends.
fn of_wire(name: &str) -> Option<Schema> {
    Schema::try_from(llm::schemas::named(name)?).ok()
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
    // Frames.
    ("sse-envelope", SseEnvelope::json_schema),
    ("protocol-event", ProtocolEvent::json_schema),
    (envelope::CONNECTED, Connected::json_schema),
    (envelope::HEARTBEAT, Heartbeat::json_schema),
    (envelope::RESET, Reset::json_schema),
    // Requests.
    ("action-request", action_request),
    ("create-session", sessions::CreateSession::json_schema),
    ("patch-session", sessions::PatchSession::json_schema),
    ("fork", sessions::Fork::json_schema),
    ("sync-messages", sessions::SyncMessages::json_schema),
    ("steer", sessions::Steer::json_schema),
    ("waive-setup", sessions::WaiveSetup::json_schema),
    ("put-plugin-data", sessions::PutPluginData::json_schema),
    ("emit-event", sessions::EmitEvent::json_schema),
    ("plugin-rpc", plugins::PluginRpc::json_schema),
    ("approval-decision", plugins::ApprovalDecision::json_schema),
    ("resume", plugins::Resume::json_schema),
    // Answers.
    ("error", ErrorBody::json_schema),
    ("done", queries::Done::json_schema),
    (
        "created-session",
        queries::sessions::CreatedSession::json_schema,
    ),
    (
        "deleted-session",
        queries::sessions::DeletedSession::json_schema,
    ),
    (
        "session-record",
        queries::sessions::SessionRecord::json_schema,
    ),
    (
        "session-list",
        Items::<queries::sessions::SessionRecord>::json_schema,
    ),
    (
        "session-snapshot",
        queries::sessions::SessionSnapshot::json_schema,
    ),
    (
        "execution-status",
        queries::sessions::ExecutionStatus::json_schema,
    ),
    (
        "turn-controlled",
        queries::sessions::TurnControlled::json_schema,
    ),
    (
        "setup-controlled",
        queries::sessions::SetupControlled::json_schema,
    ),
    ("state-tables", queries::sessions::StateTables::json_schema),
    ("health", queries::sessions::Health::json_schema),
    (
        "message-list",
        Vec::<queries::messages::FlatMessage>::json_schema,
    ),
    (
        "message-page",
        CursorPage::<queries::messages::FlatMessage>::json_schema,
    ),
    ("public-job", queries::jobs::PublicJob::json_schema),
    ("job-list", Items::<queries::jobs::PublicJob>::json_schema),
    (
        "suspension-list",
        Items::<queries::jobs::Suspension>::json_schema,
    ),
    ("resumed", queries::jobs::ResumeAnswer::json_schema),
    (
        "dropped-suspension",
        queries::jobs::DroppedSuspension::json_schema,
    ),
    (
        "snapshot-record",
        queries::jobs::SnapshotRecord::json_schema,
    ),
    (
        "snapshot-page",
        CursorPage::<queries::jobs::SnapshotRecord>::json_schema,
    ),
    ("forked", queries::jobs::Forked::json_schema),
    (
        "session-plugins",
        queries::plugins::SessionPlugins::json_schema,
    ),
    (
        "plugin-switched",
        queries::plugins::PluginSwitched::json_schema,
    ),
    (
        "plugin-data-row",
        queries::plugins::PluginDataRow::json_schema,
    ),
    (
        "plugin-data-list",
        Items::<queries::plugins::PluginDataRow>::json_schema,
    ),
    (
        "plugin-data-written",
        queries::plugins::PluginDataWritten::json_schema,
    ),
    ("rpc-answer", queries::plugins::RpcAnswer::json_schema),
    (
        "approval-list",
        Items::<queries::plugins::ApprovalPending>::json_schema,
    ),
    ("decided", queries::plugins::Decided::json_schema),
    (
        "ui-slot-list",
        Items::<payloads::state::UiSlotChanged>::json_schema,
    ),
    ("object-list", Items::<Object>::json_schema),
    ("trace", queries::traces::Trace::json_schema),
    ("trace-page", queries::traces::TracePage::json_schema),
];

/// The body of an action, with the payload of its type.
fn action_request(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = ActionRequest::json_schema(generator);
    let payloads = [
        (
            ActionType::SubmitActions,
            generator.subschema_for::<actions::SubmitActions>(),
        ),
        (
            ActionType::StartSession,
            generator.subschema_for::<actions::StartSession>(),
        ),
        (
            ActionType::RetryTurn,
            generator.subschema_for::<actions::RetryTurn>(),
        ),
        (
            ActionType::RetryRuntime,
            generator.subschema_for::<actions::RetryRuntime>(),
        ),
        (
            ActionType::RetryFailedRuntimes,
            generator.subschema_for::<actions::RetryFailedRuntimes>(),
        ),
    ];
    let of_type = payloads.map(|(kind, payload)| {
        json!({
            "if": { "properties": { "type": { "const": kind } } },
            "then": { "properties": { "payload": payload } },
        })
    });
    schema.insert("allOf".into(), of_type.to_vec().into());
    schema
}

/// The schema of an event's payload, with the room that concealed runtimes need.
fn payload(meta: &EventMeta) -> Schema {
    let mut schema = root(meta.payload_schema, meta.name);
    if meta.is_diagnostic() {
        allow_concealment(&mut schema);
    }
    schema
}

fn root(make: MakeSchema, title: &str) -> Schema {
    root_of(make, title)
}

fn root_of(make: impl FnOnce(&mut SchemaGenerator) -> Schema, title: &str) -> Schema {
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

    /// The reader of actions and the schema state the same bounds: whatever one refuses, so does the
    /// other.
    #[test]
    fn an_action_is_judged_alike_by_its_schema_and_its_reader() {
        let body = |kind: &str, payload: Value| json!({ "requestId": "rq", "sessionId": "s", "type": kind, "payload": payload });
        let say = |text: &str| json!({ "actions": [{ "type": "say", "text": text }] });
        let retry = |ids: &[&str]| json!({ "retryFromTurnId": "t", "runtimeIds": ids });
        let mut bodies = vec![
            body("submit_actions", say("Hello.")),
            body("submit_actions", say("")),
            body("submit_actions", say(&"x".repeat(100_001))),
            body("submit_actions", json!({ "actions": [] })),
            body(
                "submit_actions",
                json!({ "actions": [{ "type": "sing", "text": "x" }] }),
            ),
            body(
                "submit_actions",
                json!({ "actions": [{ "type": "command", "command": "/x" }] }),
            ),
            body(
                "submit_actions",
                json!({ "actions": [{ "type": "command", "text": "/x" }] }),
            ),
            body("send_message", json!({})),
            body("start_session", json!({})),
            body("start_session", json!({ "loreOverride": "" })),
            body("retry_turn", json!({ "x": 1 })),
            body("retry_turn", json!({ "recoverFromTurnId": "" })),
            body("retry_runtime", json!({})),
            body("retry_runtime", json!({ "runtimeId": "r" })),
            body("retry_failed_runtimes", retry(&["a", "b"])),
            body("retry_failed_runtimes", retry(&["a", "a"])),
            body("retry_failed_runtimes", retry(&[])),
            body("retry_failed_runtimes", retry(&["x"; 21])),
        ];
        let interaction = |kind: &str| {
            let answer = json!({ "interactionId": "i", "type": kind, "values": {} });
            json!({ "actions": [{ "type": "interaction", "turnId": "t", "submissions": [answer] }] })
        };
        bodies.push(body("submit_actions", interaction("form")));
        bodies.push(body("submit_actions", interaction("quiz")));
        for (member, value) in [
            ("requestId", json!("-")),
            ("requestId", json!("")),
            ("model", json!("")),
            ("model", json!(null)),
            ("locale", json!("en")),
        ] {
            let mut changed = body("retry_turn", json!({}));
            changed[member] = value;
            bodies.push(changed);
        }
        bodies.push(body("retry_turn", json!({ "recoverFromTurnId": null })));
        for body in bodies {
            let read = ActionRequest::parse(&body);
            assert_eq!(
                faults("action-request", &body).is_empty(),
                read.is_ok(),
                "{read:?}"
            );
        }
    }

    #[test]
    fn a_view_may_name_its_steps_either_way() {
        let with = |steps: &str| {
            json!({
                "messages": [], "messagesCursor": null, "submittedInteractions": [],
                "eventCursor": "e:0", steps: [],
            })
        };
        accepts("session-snapshot", with("steps"));
        accepts("session-snapshot", with("executionSteps"));
        refuses("session-snapshot", with("stages"));
    }

    #[test]
    fn a_member_that_must_be_there_may_be_null_where_the_sources_say_so() {
        accepts("message-page", json!({ "items": [], "nextCursor": null }));
        accepts("message-page", json!({ "items": [], "nextCursor": "c" }));
        refuses("message-page", json!({ "items": [] }));
    }

    #[test]
    fn a_command_has_either_input_or_arguments() {
        let with = |more: Value| {
            let mut body = json!({ "kind": "command", "commandId": "c" });
            body.as_object_mut()
                .unwrap()
                .append(&mut more.as_object().unwrap().clone());
            body
        };
        accepts("plugin-rpc", with(json!({ "input": "/roll" })));
        accepts("plugin-rpc", with(json!({ "args": {} })));
        refuses("plugin-rpc", with(json!({})));
        refuses("plugin-rpc", with(json!({ "input": "/roll", "args": {} })));
        refuses(
            "plugin-rpc",
            with(json!({ "input": "/roll", "pluginId": "p" })),
        );
    }

    #[test]
    fn a_job_is_seen_without_its_input() {
        accepts("public-job", json!({ "jobId": "j", "status": "timed_out" }));
        refuses(
            "public-job",
            json!({ "jobId": "j", "status": "queued", "payload": {} }),
        );
    }
}
