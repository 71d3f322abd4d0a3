//! Anthropic Messages: `POST /v1/messages`, plain and streamed.
//!
//! A message is a list of [`Block`]s. A stream opens, fills and closes them one after another; every
//! event has an `event:` line equal to its `type`. It is complete at `message_stop`, and its
//! `stop_reason` came with a `message_delta` before.
//!
//! Source: the typed models of the official SDKs (PyPI anthropic 2.14.0, npm @anthropic-ai/sdk 1.14.0).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Extra;

/// The newest value of the `anthropic-version` header.
pub const VERSION: &str = "2026-10-21";

/// The older value of the `anthropic-version` header, still accepted.
pub const OLD_VERSION: &str = "2023-06-01";

/// The body of `POST /v1/messages`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageRequest {
    /// The model's id.
    pub model: String,
    /// Limit of generated tokens, thinking included; required.
    pub max_tokens: u64,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// Instructions: text, or text blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Content>,
    /// Whether the answer is a stream of [`Event`]s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Whether to think, and what to show of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// Effort and the form of the answer's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_config: Option<Value>,
    /// Tools on offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Which tool to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Texts that end the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `user`, `assistant`, or `system` with newer models.
    pub role: String,
    /// Text, or blocks.
    pub content: Content,
}

/// Text, or blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// One text.
    Text(String),
    /// Blocks.
    Blocks(Vec<Block>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text; not empty in a request.
    Text {
        /// The text.
        text: String,
        /// Everything else: `citations`, `cache_control`.
        #[serde(flatten)]
        extra: Extra,
    },
    /// An image.
    Image {
        /// Where it is.
        source: Source,
        /// Everything else.
        #[serde(flatten)]
        extra: Extra,
    },
    /// Thinking, signed.
    Thinking {
        /// What can be read of it.
        thinking: String,
        /// Proves that the service made it; must come back unchanged.
        #[serde(default)]
        signature: String,
    },
    /// Thinking that cannot be read.
    RedactedThinking {
        /// Must come back unchanged.
        data: String,
    },
    /// A call.
    ToolUse {
        /// `toolu_…`: what the result must carry.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments, an object.
        #[serde(default)]
        input: Value,
        /// Everything else.
        #[serde(flatten)]
        extra: Extra,
    },
    /// The result of a call; before any text of its message.
    ToolResult {
        /// The id of the call.
        tool_use_id: String,
        /// Text, or blocks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Content>,
        /// Whether the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
        /// Everything else.
        #[serde(flatten)]
        extra: Extra,
    },
    /// Any other block, whole.
    #[serde(untagged)]
    Other(Value),
}

/// Where an image is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source {
    /// Here.
    Base64 {
        /// `image/jpeg`, `image/png`, `image/gif` or `image/webp`.
        media_type: String,
        /// The bytes.
        data: String,
    },
    /// On the net.
    Url {
        /// An https URL.
        url: String,
    },
    /// Uploaded before.
    File {
        /// Its id.
        file_id: String,
    },
}

/// Whether to think, and what to show of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Thinking {
    /// Up to a budget.
    Enabled {
        /// At least 1024, and less than `max_tokens`.
        budget_tokens: u64,
        /// Everything else, such as `display`.
        #[serde(flatten)]
        extra: Extra,
    },
    /// As much as the model thinks fit.
    Adaptive {
        /// Everything else, such as `display`.
        #[serde(flatten)]
        extra: Extra,
    },
    /// Not at all.
    Disabled,
}

/// A tool on offer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What the model reads about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the input, an object. Absent on the service's own tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// Everything else: `type`, `strict`, `cache_control`.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Which tool to use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    Auto {
        /// At most one call in an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disable_parallel_tool_use: Option<bool>,
    },
    /// Some tool; not together with thinking.
    Any {
        /// Exactly one call in an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disable_parallel_tool_use: Option<bool>,
    },
    /// This tool; not together with thinking.
    Tool {
        /// Its name.
        name: String,
        /// Exactly one call in an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disable_parallel_tool_use: Option<bool>,
    },
    /// No tool.
    None,
}

/// The answer: plain, or empty inside `message_start`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageResponse {
    /// `msg_…`.
    #[serde(default)]
    pub id: String,
    /// `message`.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// `assistant`.
    #[serde(default)]
    pub role: String,
    /// The model that answered.
    #[serde(default)]
    pub model: String,
    /// The answer; may be empty.
    #[serde(default)]
    pub content: Vec<Block>,
    /// `end_turn`, `max_tokens`, `stop_sequence`, `tool_use`, `pause_turn`, `refusal`,
    /// `model_context_window_exceeded`.
    #[serde(default)]
    pub stop_reason: Option<String>,
    /// The text that ended it.
    #[serde(default)]
    pub stop_sequence: Option<String>,
    /// Of a refusal: category and explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_details: Option<Value>,
    /// What it cost.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What an answer cost, in tokens.
///
/// The whole input is `input_tokens` plus both cache counts. `output_tokens` holds thinking, also
/// when it is not shown. In a stream these are running totals: the last value of each counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Without the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Written to the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_input_tokens: Option<u64>,
    /// The whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_details: Option<OutputDetails>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Parts of `output_tokens`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputDetails {
    /// Thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u64>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The first.
    MessageStart {
        /// With empty content and the input's cost.
        message: MessageResponse,
    },
    /// A block is opened.
    ContentBlockStart {
        /// From 0, growing by one.
        index: u64,
        /// The block, empty.
        content_block: Block,
    },
    /// A block gets more.
    ContentBlockDelta {
        /// Which block.
        index: u64,
        /// What is new.
        delta: Delta,
    },
    /// A block is complete.
    ContentBlockStop {
        /// Which block.
        index: u64,
    },
    /// Why the message ends, and its cost so far. There may be several.
    MessageDelta {
        /// `stop_reason` and what belongs to it.
        delta: MessageChange,
        /// Running totals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Everything else.
        #[serde(flatten)]
        extra: Extra,
    },
    /// The last.
    MessageStop,
    /// A sign of life, anywhere after the start.
    Ping,
    /// The last, in place of all that is missing.
    Error {
        /// What went wrong.
        error: ErrorDetail,
        /// Everything else.
        #[serde(flatten)]
        extra: Extra,
    },
    /// Any other event, whole; clients must tolerate it.
    #[serde(untagged)]
    Other(Value),
}

/// What is new in a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta {
    /// Text.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// Thinking.
    ThinkingDelta {
        /// The piece.
        thinking: String,
    },
    /// The signature, whole, just before the block ends.
    SignatureDelta {
        /// The signature.
        signature: String,
    },
    /// Arguments.
    InputJsonDelta {
        /// A piece of JSON text; often empty.
        partial_json: String,
    },
    /// Any other delta, whole.
    #[serde(untagged)]
    Other(Value),
}

/// Why a message ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageChange {
    /// As in [`MessageResponse`].
    #[serde(default)]
    pub stop_reason: Option<String>,
    /// As in [`MessageResponse`].
    #[serde(default)]
    pub stop_sequence: Option<String>,
    /// As in [`MessageResponse`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_details: Option<Value>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The body of every error status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// `error`.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// What went wrong.
    pub error: ErrorDetail,
    /// `req_…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What went wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorDetail {
    /// `invalid_request_error`, `rate_limit_error`, `overloaded_error`, …
    #[serde(default, rename = "type")]
    pub kind: String,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// Everything else, such as `details`.
    #[serde(flatten)]
    pub extra: Extra,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survives<T: Serialize + for<'de> Deserialize<'de>>(text: &str) {
        let value: Value = serde_json::from_str(text).unwrap();
        let typed: T = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), value);
    }

    #[test]
    fn a_request_with_every_kind_of_block_survives() {
        survives::<MessageRequest>(
            r#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s"}],"messages":[
                {"role":"user","content":"hi"},
                {"role":"assistant","content":[
                    {"type":"thinking","thinking":"hm","signature":"sig"},
                    {"type":"redacted_thinking","data":"x"},
                    {"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}}]},
                {"role":"user","content":[
                    {"type":"tool_result","tool_use_id":"toolu_1","content":"42","is_error":true},
                    {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},
                    {"type":"search_result","source":"s","title":"t","content":[]}]}],
               "thinking":{"type":"enabled","budget_tokens":1024},
               "tool_choice":{"type":"tool","name":"f"},"metadata":{"user_id":"u"}}"#,
        );
    }

    #[test]
    fn events_known_and_unknown_survive() {
        for text in [
            r#"{"type":"content_block_start","index":0,
                "content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"sparkle_delta","x":1}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null,
                "stop_details":{"type":"refusal"}},"usage":{"output_tokens":15}}"#,
            r#"{"type":"message_stop"}"#,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            r#"{"type":"sparkle","y":2}"#,
        ] {
            survives::<Event>(text);
        }
    }
}
