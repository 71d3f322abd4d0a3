//! What is left of a diagnostic when a runtime hides its content.
//!
//! Source: seed 000, lines 831-836, 1242 and 1318.

use serde_json::Value;

use crate::covel::envelope::Payload;

/// The members of a diagnostic that tell nothing of the content: they stay.
///
/// The seed's list ends with "and so on"; ids, counts and times are added here. Everything else goes.
pub const KEPT: &[&str] = &[
    "runtimeId",
    "pluginId",
    "turnId",
    "runId",
    "toolName",
    "toolCallId",
    "label",
    "status",
    "durationMs",
    "usage",
    "finishReason",
    "seq",
    "step",
    "maxSteps",
    "toolCount",
    "toolChoice",
    "stopReason",
    "finalizer",
    "repair",
    "retries",
    "notes",
    "slot",
    "model",
    "provider",
    "attempt",
    "startedAt",
    "queueWaitMs",
    "streaming",
    "method",
    "approvalStatus",
    "success",
    "len",
    "deltaCount",
    "subagentCallId",
    "parentCallId",
    "parentRuntimeId",
    "parentPluginId",
    "cancelledBy",
];

/// The members that the seed surely keeps; a check may insist on these only.
///
/// Source: seed 000, line 835.
pub const SURELY_KEPT: &[&str] = &["runtimeId", "pluginId", "toolName", "toolCallId", "step"];

/// The members that a concealed diagnostic must not have.
///
/// Source: seed 000, lines 836 and 1242. `toolCalls` of `step.completed` is a list of names without
/// content, and stays.
pub const REMOVED: &[&str] = &[
    "messages",
    "text",
    "toolCalls",
    "arguments",
    "result",
    "parsedResult",
    "output",
];

/// Takes the content out of a diagnostic, and marks it as concealed.
pub fn conceal(event: &str, payload: &mut Payload) {
    let names_only = event == "step.completed";
    payload.retain(|member, _| {
        KEPT.contains(&member.as_str()) || (names_only && member == "toolCalls")
    });
    payload.insert("concealed".to_owned(), Value::Bool(true));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn concealed(event: &str, payload: Value) -> Value {
        let Value::Object(mut members) = payload else {
            panic!("an object")
        };
        conceal(event, &mut members);
        Value::Object(members)
    }

    #[test]
    fn ids_and_times_stay_and_content_goes() {
        assert_eq!(
            concealed(
                "tool.completed",
                json!({ "runtimeId": "r", "toolName": "t", "result": 1, "parsedResult": 1, "durationMs": 3 })
            ),
            json!({ "runtimeId": "r", "toolName": "t", "durationMs": 3, "concealed": true })
        );
    }

    #[test]
    fn the_names_of_a_steps_tool_calls_stay() {
        let calls = json!([{ "name": "t", "success": true }]);
        assert_eq!(
            concealed("step.completed", json!({ "step": 1, "toolCalls": calls })),
            json!({ "step": 1, "toolCalls": calls, "concealed": true })
        );
        assert_eq!(
            concealed("llm.responded", json!({ "toolCalls": calls })),
            json!({ "concealed": true })
        );
    }
}
