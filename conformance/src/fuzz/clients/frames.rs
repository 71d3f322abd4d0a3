//! The valid frames that steps of a case begin with: type and payload, of the subscription and of an action.

use serde_json::{Value, json};

/// The frames of a subscription.
pub const SUBSCRIPTION: &[&str] = &[
    r#"["plugin-data.changed",{"pluginId":"p","changes":[{"namespace":"n","key":"k","value":{"a":[1]},"operation":"set"}]}]"#,
    r#"["plugin-data.changed",{"pluginId":"p","changes":[{"namespace":"n","key":"k","operation":"delete"}]}]"#,
    r#"["character.upserted",{"character":{"id":"c","name":"Ada","type":"npc"}}]"#,
    r#"["dimensions.changed",{"dimensions":{"d":{"value":1}}}]"#,
    r#"["event.emitted",{"name":"rang","payload":{"a":1}}]"#,
    r#"["job-status.updated",{"sessionId":"s","progressScopeId":"j","pluginId":"p","runtimeId":"r","jobId":"j","state":"running","sequence":1,"createdAt":"2030-05-01T10:00:00.000Z","data":{"originTurnId":"t1","durableStatus":"running"}}]"#,
    r#"["turn.suspended",{"sessionId":"s","turnId":"t1","suspensionId":"s1","pluginId":"p","runtimeId":"r","suspendedAt":"2030-05-01T10:00:00.000Z","reason":"asks","resumeSchema":{}}]"#,
    r#"["turn.resumed",{"sessionId":"s","turnId":"t1","suspensionId":"s1"}]"#,
    r#"["ui.slot.changed",{"slot":"s","value":5,"revision":"2"}]"#,
    r#"["ui.slot.preview",{"slot":"s","value":9,"revision":"1","turnId":"t1"}]"#,
    r#"["ui.slot.cleared",{"turnId":"t1"}]"#,
    r#"["interaction.requested",{"turnId":"t0","runtimeId":"r","block":{"id":"b0","type":"form","data":{"notice":"n"}}}]"#,
    r#"["system.heartbeat",{"timestamp":"2030-05-01T10:00:00.000Z"}]"#,
    r#"["nobody.knows",{"a":1}]"#,
];

/// The frames of an action.
pub const ACTION: &[&str] = &[
    r#"["execution.started",{"runtimeCount":1}]"#,
    r#"["narrative.delta",{"runtimeId":"teller","pluginId":"teller","kind":"story","delta":"half"}]"#,
    r#"["narrative.completed",{"content":"whole","kind":"story","messageId":"m1","runtimeId":"teller","pluginId":"teller"}]"#,
    r#"["plugin-data.changed",{"pluginId":"p","changes":[{"namespace":"n","key":"k","value":1,"operation":"set"}]}]"#,
    r#"["interaction.requested",{"turnId":"t1","runtimeId":"r","block":{"id":"b1","type":"form","data":{"notice":"n"}}}]"#,
    r#"["ui.slot.preview",{"slot":"s","value":9,"revision":"1","turnId":"t1"}]"#,
    r#"["execution.round.completed",{"committed":true}]"#,
    r#"["error.occurred",{"code":"internal_error","message":"no"}]"#,
    r#"["execution.completed",{"runtimeCount":1,"resultCount":1,"durationMs":5,"committed":true}]"#,
    r#"["execution.completed",{"runtimeCount":1,"resultCount":1,"durationMs":5,"committed":false,"abortReason":"aborted-by-player"}]"#,
    r#"["nobody.knows",{"a":1}]"#,
];

/// Type and payload of a frame; the number is taken modulo their number.
pub fn frame(list: &[&str], number: u8) -> (String, Value) {
    let text = list[usize::from(number) % list.len()];
    let parsed: Value = serde_json::from_str(text).unwrap_or_else(|_| json!(["", {}]));
    let kind = parsed[0].as_str().unwrap_or_default().to_owned();
    (kind, parsed[1].clone())
}
