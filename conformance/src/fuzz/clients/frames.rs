//! The valid frames that steps of a case begin with: type and payload.

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

/// The frames of a chat's socket.
pub const CHAT: &[&str] = &[
    r#"["chat:active",{"jobId":"j-1","running":true}]"#,
    r#"["chat:active",{"jobId":null,"running":false}]"#,
    r#"["chat:response",{"chunk":"half"}]"#,
    r#"["chat:response",{"chunk":" and half"}]"#,
    r#"["chat:message_boundary",{}]"#,
    r#"["chat:tool_start",{"toolName":"Read","toolUseId":"t-1","parentToolUseId":null}]"#,
    r#"["chat:tool_call",{"toolName":"Read","toolUseId":"t-1","output":"oak,21","isError":false,"durationMs":5}]"#,
    r#"["chat:complete",{"success":true,"model":"m","usage":{"inputTokens":1,"outputTokens":1,"cacheReadTokens":0,"cacheCreationTokens":0,"contextTokens":2,"contextLimit":200000}}]"#,
    r#"["chat:complete",{"success":false,"error":"no"}]"#,
    r#"["chat:error",{"error":"no frame"}]"#,
    r#"["chat:queued_flushed",{"text":"q"}]"#,
    r#"["chat:queued_flushed",{}]"#,
    r#"["chat:killed_task",{"summary":"Build was killed","timestamp":"2030-05-01T10:00:00.000Z"}]"#,
    r#"["chat:notice",{"notice":{"kind":"error","message":"try again","retryable":true}}]"#,
    r#"["chat:resync",{}]"#,
    r#"["pong",null]"#,
    r#"["nobody:knows",{"a":1}]"#,
];

/// The events of a connection of `session-update`, and a response that nobody has asked for.
pub const UPDATES: &[&str] = &[
    r#"["turn_started",{"user_message_chars":4}]"#,
    r#"["assistant_delta",{"text":"half"}]"#,
    r#"["assistant_message_completed",{"content":"whole","content_chars":5}]"#,
    r#"["tool_input_delta",{"tool_call_id":"k","tool_name":"search","delta":"{"}]"#,
    r#"["tool_requested",{"tool_call_id":"k","tool_name":"search","args_preview":"{}","arguments":{"query":"rain"}}]"#,
    r#"["tool_progress",{"tool_call_id":"k","tool_name":"search","payload":{"message":"half","percent":50}}]"#,
    r#"["tool_result",{"tool_call_id":"k","tool_name":"search","status":"completed","result":"{}","error_type":"","error_source":"tool","duration_ms":7}]"#,
    r#"["turn_step_retry",{"attempt":1,"reason":"overloaded"}]"#,
    r#"["turn_completed",{"duration_ms":5}]"#,
    r#"["turn_failed",{"error":"no","error_type":"Overloaded","status":"failed","error_source":"runtime"}]"#,
    r#"["turn_cancelled",{"reason":"user"}]"#,
    r#"["task_updated",{"origin_turn_id":"t","task":{"task_id":"task","owner_session_id":"s","origin_turn_id":"t","status":"running"}}]"#,
    r#"["task_updated",{"origin_turn_id":"t","task":{"task_id":"task","owner_session_id":"s","origin_turn_id":"t","status":"completed"}}]"#,
    r#"["nobody_knows",{"a":1}]"#,
    r#"["response",{"ok":true}]"#,
];

/// Type and payload of a frame; the number is taken modulo their number.
pub fn frame(list: &[&str], number: u8) -> (String, Value) {
    let text = list[usize::from(number) % list.len()];
    let parsed: Value = serde_json::from_str(text).unwrap_or_else(|_| json!(["", {}]));
    let kind = parsed[0].as_str().unwrap_or_default().to_owned();
    (kind, parsed[1].clone())
}
