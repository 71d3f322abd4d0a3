//! OpenAI Chat Completions: `POST /chat/completions`, plain and streamed.
//!
//! Also the base of Gemini's OpenAI-compatible endpoint and of the many services that imitate this
//! wire; what they add or leave out lands in `Option`s and in `extra`.
//!
//! A stream is a sequence of `data:` lines without `event:` lines, each one [`Chunk`], and the
//! literal [`DONE`] at the end. It is complete when every choice has had a `finish_reason`; [`DONE`]
//! alone says nothing.
//!
//! Source: the typed models of the official SDKs (PyPI openai 3.57.0, npm openai 6.49.0).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Extra;

/// The data of the last event of a stream: a literal, not JSON.
pub const DONE: &str = "[DONE]";

/// The body of `POST /chat/completions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The model's id.
    pub model: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// Whether the answer is a stream of [`Chunk`]s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Only together with `stream: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
    /// Limit of generated tokens, thinking included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<u64>,
    /// The older name of `max_completion_tokens`; reasoning models refuse it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// The form of the answer's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// Tools on offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// `"none"`, `"auto"`, `"required"`, or an object that names a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Value>,
    /// Whether one answer may hold several calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// A string, or up to four.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Value>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a stream carries besides the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamOptions {
    /// Whether a chunk with `usage` and no choices comes before [`DONE`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_usage: Option<bool>,
    /// Whether chunks are padded with a random `obfuscation` member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_obfuscation: Option<bool>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The form that the answer's text must have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Plain text.
    Text,
    /// Some JSON object.
    JsonObject,
    /// JSON of a schema.
    JsonSchema {
        /// The schema and its name.
        json_schema: NamedSchema,
    },
}

/// A JSON Schema with a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedSchema {
    /// Matches `[a-zA-Z0-9_-]{1,64}`.
    pub name: String,
    /// What the model reads about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Whether the answer is constrained to the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// A tool on offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Tool {
    /// A function with JSON arguments.
    Function {
        /// Its declaration.
        function: Function,
    },
    /// A tool with free text as its input.
    Custom {
        /// Its declaration: `name`, `description`, `format`.
        custom: Value,
    },
}

/// The declaration of a function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Matches `[a-zA-Z0-9_-]{1,64}`.
    pub name: String,
    /// What the model reads about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Whether the arguments are constrained to the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// Instructions, newer name.
    Developer(PlainMessage),
    /// Instructions.
    System(PlainMessage),
    /// What the user says.
    User(PlainMessage),
    /// What the model said.
    Assistant(AssistantMessage),
    /// The result of a call.
    Tool(ToolMessage),
}

/// A message that is only content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlainMessage {
    /// Text, or parts.
    pub content: Content,
    /// Tells speakers of one role apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What the model said, sent back as history or received as the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// Text or parts; null beside calls.
    #[serde(default)]
    pub content: Option<Content>,
    /// The refusal in place of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Calls, in the order of the answer. Never an empty list in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Everything else: `annotations`, `audio`, and thinking under a service's own name
    /// (`reasoning_content`, `reasoning`, `reasoning_details`).
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolMessage {
    /// The id of the call.
    pub tool_call_id: String,
    /// Text, or text parts.
    pub content: Content,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// One text.
    Text(String),
    /// Several parts.
    Parts(Vec<Part>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// One part of a content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Everything else.
        #[serde(flatten)]
        extra: Extra,
    },
    /// An image.
    ImageUrl {
        /// Where it is.
        image_url: ImageUrl,
    },
    /// A refusal, in an assistant message.
    Refusal {
        /// The text.
        refusal: String,
    },
    /// Any other part, whole: audio, files, thinking of compatible services.
    #[serde(untagged)]
    Other(Value),
}

/// Where an image is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImageUrl {
    /// An http(s) URL, or `data:<mime>;base64,<bytes>`.
    pub url: String,
    /// `auto`, `low`, `high` or `original`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A call in a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that the result must carry. Compatible services may leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `function` or `custom`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The function call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionCall>,
    /// The custom tool call: `name`, `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<Value>,
    /// Everything else, such as Gemini's `extra_content`.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Name and arguments of a call, whole or as pieces in a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The function's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// JSON text, or a piece of it. Some compatible services send an object here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// The plain answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatResponse {
    /// `chatcmpl-…`.
    #[serde(default)]
    pub id: String,
    /// `chat.completion`.
    #[serde(default)]
    pub object: String,
    /// Unix seconds.
    #[serde(default)]
    pub created: u64,
    /// The model that answered.
    #[serde(default)]
    pub model: String,
    /// The answers, usually one.
    #[serde(default)]
    pub choices: Vec<Choice>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Its place.
    #[serde(default)]
    pub index: Option<u32>,
    /// The answer.
    #[serde(default)]
    pub message: AssistantMessage,
    /// Null, or `{content, refusal}`.
    #[serde(default)]
    pub logprobs: Option<Value>,
    /// `stop`, `length`, `tool_calls`, `content_filter`, `function_call`, or a service's own word.
    #[serde(default)]
    pub finish_reason: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// The same in all chunks.
    #[serde(default)]
    pub id: Option<String>,
    /// `chat.completion.chunk`.
    #[serde(default)]
    pub object: Option<String>,
    /// Unix seconds, the same in all chunks.
    #[serde(default)]
    pub created: Option<u64>,
    /// The model that answers.
    #[serde(default)]
    pub model: Option<String>,
    /// What is new, usually of one choice. Empty in the usage chunk.
    #[serde(default)]
    pub choices: Option<Vec<ChunkChoice>>,
    /// Null until the usage chunk.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// The error that ends the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What is new of one choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChunkChoice {
    /// Which choice; absent means 0.
    #[serde(default)]
    pub index: Option<u32>,
    /// What is new.
    #[serde(default)]
    pub delta: Option<Delta>,
    /// Null, or `{content, refusal}`.
    #[serde(default)]
    pub logprobs: Option<Value>,
    /// Set once, in the choice's last chunk.
    #[serde(default)]
    pub finish_reason: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// New pieces of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delta {
    /// `assistant`, in the first chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Text; Mistral sends a list of parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// A piece of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Pieces of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCallDelta>>,
    /// Everything else: thinking under a service's own name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A piece of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCallDelta {
    /// Which call of the answer. Compatible services leave it out or always say 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<i64>,
    /// In the call's first piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `function` or `custom`, in the first piece.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name in the first piece, then pieces of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionCall>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a call cost, in tokens.
///
/// `total = prompt + completion`; cached tokens are inside `prompt_tokens`, thinking inside
/// `completion_tokens`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens_details: Option<PromptDetails>,
    /// Of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens_details: Option<CompletionDetails>,
    /// Everything else: DeepSeek's `prompt_cache_hit_tokens`, Moonshot's `cached_tokens`, `cost`.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Parts of `prompt_tokens`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromptDetails {
    /// Read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Written to the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Parts of `completion_tokens`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompletionDetails {
    /// Thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The body of every error status, and the data of the event that ends a failed stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorDetail,
}

/// What went wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorDetail {
    /// For people.
    #[serde(default)]
    pub message: String,
    /// The class, such as `invalid_request_error`.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// The member at fault.
    #[serde(default)]
    pub param: Option<String>,
    /// The exact reason: `insufficient_quota` is not `rate_limit_exceeded` though both are 429.
    /// Compatible services send numbers.
    #[serde(default)]
    pub code: Option<Value>,
    /// Everything else.
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
    fn a_request_with_parts_calls_and_unknown_members_survives() {
        survives::<ChatRequest>(
            r#"{"model":"m","messages":[
                {"role":"system","content":"be brief"},
                {"role":"user","content":[{"type":"text","text":"hi"},
                    {"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},
                    {"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]},
                {"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[
                    {"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},
                {"role":"tool","tool_call_id":"call_1","content":"42"}],
               "stream":true,"stream_options":{"include_usage":true},"seed":7}"#,
        );
    }

    #[test]
    fn a_chunk_of_a_compatible_service_survives() {
        survives::<Chunk>(
            r#"{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[
                {"index":0,"delta":{"role":"assistant","reasoning":"hm","tool_calls":[
                    {"index":0,"id":"c","type":"function","function":{"name":"f","arguments":{"a":1}}}]},
                 "logprobs":null,"finish_reason":null}],
               "usage":null,"x_groq":{"id":"r"}}"#,
        );
    }

    #[test]
    fn a_chunk_without_choices_or_delta_is_read() {
        for text in [
            r#"{"id":"x"}"#,
            r#"{"choices":null}"#,
            r#"{"choices":[{"delta":null}]}"#,
        ] {
            serde_json::from_str::<Chunk>(text).unwrap();
        }
    }
}
