//! Answers as bytes of our own, where what the mock writes is not what is wanted.

use serde_json::{Value, json};
use turnwire_spec::llm::Wire;

/// A short stream with this text, without characters that JSON escapes; `None` where a wire's is too long for that.
pub(super) fn stream(wire: Wire, text: &str) -> Option<String> {
    let line = |value: Value| format!("data: {value}\n\n");
    let named = |name: &str, value: Value| format!("event: {name}\ndata: {value}\n\n");
    Some(match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => {
            let delta = line(chunk(
                &json!({ "role": "assistant", "content": text }),
                Value::Null,
            ));
            let end = line(chunk(&json!({}), json!("stop")));
            format!("{delta}{end}data: [DONE]\n\n")
        }
        Wire::AnthropicMessages => {
            let message = json!({
                "id": "msg_raw", "type": "message", "role": "assistant", "model": super::MODEL, "content": [],
                "stop_reason": null, "stop_sequence": null,
                "usage": { "input_tokens": 3, "output_tokens": 1 },
            });
            let block = json!({ "type": "text", "text": "" });
            let delta = json!({ "type": "text_delta", "text": text });
            let end = json!({ "stop_reason": "end_turn", "stop_sequence": null });
            [
                named("message_start", json!({ "type": "message_start", "message": message })),
                named(
                    "content_block_start",
                    json!({ "type": "content_block_start", "index": 0, "content_block": block }),
                ),
                named(
                    "content_block_delta",
                    json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
                ),
                named("content_block_stop", json!({ "type": "content_block_stop", "index": 0 })),
                named(
                    "message_delta",
                    json!({ "type": "message_delta", "delta": end, "usage": { "output_tokens": 2 } }),
                ),
                named("message_stop", json!({ "type": "message_stop" })),
            ]
            .concat()
        }
        Wire::Gemini => line(candidate(text, Some("STOP"))),
        Wire::OpenaiResponses => return None,
    })
}

/// One chunk of Chat Completions.
pub(super) fn chunk(delta: &Value, finish: Value) -> Value {
    json!({
        "id": "chatcmpl-raw", "object": "chat.completion.chunk", "created": 1, "model": super::MODEL,
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    })
}

fn candidate(text: &str, finish: Option<&str>) -> Value {
    let mut candidate =
        json!({ "content": { "role": "model", "parts": [{ "text": text }] }, "index": 0 });
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5 },
    })
}

/// The elements of a Gemini array with this text.
pub(super) fn array(text: &str) -> Vec<String> {
    let (first, second) = text.split_at(text.len() / 2);
    vec![
        format!("[{}\n", candidate(first, None)),
        format!(",\r\n{}\n", candidate(second, Some("STOP"))),
        "]\n".to_owned(),
    ]
}

/// The plain answer of a wire with this text.
pub(super) fn plain(wire: Wire, text: &str) -> Value {
    match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => json!({
            "id": "chatcmpl-raw", "object": "chat.completion", "created": 1, "model": super::MODEL,
            "choices": [{
                "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop",
            }],
            "usage": { "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 },
        }),
        Wire::OpenaiResponses => json!({
            "id": "resp_raw", "object": "response", "created_at": 1, "status": "completed", "error": null,
            "incomplete_details": null, "instructions": null, "model": super::MODEL, "metadata": {},
            "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
            "output": [{
                "id": "msg_raw", "type": "message", "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }],
            }],
            "usage": {
                "input_tokens": 3, "input_tokens_details": { "cached_tokens": 0 },
                "output_tokens": 2, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 5,
            },
        }),
        Wire::AnthropicMessages => json!({
            "id": "msg_raw", "type": "message", "role": "assistant", "model": super::MODEL,
            "content": [{ "type": "text", "text": text }],
            "stop_reason": "end_turn", "stop_sequence": null,
            "usage": { "input_tokens": 3, "output_tokens": 2 },
        }),
        Wire::Gemini => candidate(text, Some("STOP")),
    }
}

/// The error body of a wire with this message.
pub(super) fn error(wire: Wire, message: &str) -> Value {
    match wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => json!({
            "error": { "message": message, "type": "server_error", "param": null, "code": null },
        }),
        Wire::AnthropicMessages => json!({
            "type": "error", "error": { "type": "api_error", "message": message },
        }),
        Wire::Gemini => json!({
            "error": { "code": 500, "message": message, "status": "INTERNAL" },
        }),
        Wire::GeminiOpenai => json!([{
            "error": { "code": 500, "message": message, "status": "INTERNAL" },
        }]),
    }
}
