//! OpenAI Responses: `POST /responses`, plain and streamed.
//!
//! A conversation is a list of [`Item`]s, and so is an answer. A stream is a sequence of [`Event`]s
//! whose `event:` line repeats `type`, numbered by `sequence_number` from 0 without gaps. It is
//! complete at `response.completed`, `response.incomplete` or `response.failed`.
//!
//! [`Event`] is one struct with optional members rather than an enum: there are more than fifty
//! types, new ones come, and a reader looks at a handful.
//!
//! Source: the typed models of the official SDKs (PyPI openai 3.57.0, npm openai 6.49.0).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Extra;

/// The body of `POST /responses`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseRequest {
    /// The model's id.
    pub model: String,
    /// The conversation.
    pub input: Input,
    /// Instructions; not carried over by `previous_response_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Goes on from a stored response; excludes `conversation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_response_id: Option<String>,
    /// Whether the service keeps the response; true if absent. If false, history must be sent as
    /// items, with `encrypted_content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<bool>,
    /// More to put into the answer, such as `reasoning.encrypted_content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include: Option<Vec<String>>,
    /// Limit of generated tokens, thinking included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// How much to think, and what to show of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningOptions>,
    /// The form of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextOptions>,
    /// Tools on offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// `"none"`, `"auto"`, `"required"`, or an object that names a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Value>,
    /// Whether one answer may hold several calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Whether the answer is a stream of [`Event`]s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The conversation of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Input {
    /// One message of the user.
    Text(String),
    /// Items, oldest first.
    Items(Vec<Item>),
}

impl Default for Input {
    fn default() -> Self {
        Self::Items(Vec::new())
    }
}

/// How much to think, and what to show of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReasoningOptions {
    /// `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// `auto`, `concise` or `detailed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The form of the text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextOptions {
    /// Plain text, or JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<TextFormat>,
    /// Everything else, such as `verbosity`.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Plain text, or JSON. The members of a schema are flat here, not nested as on Chat Completions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TextFormat {
    /// Plain text.
    Text,
    /// Some JSON object.
    JsonObject,
    /// JSON of a schema.
    JsonSchema {
        /// Matches `[a-zA-Z0-9_-]{1,64}`.
        name: String,
        /// The schema.
        schema: Value,
        /// What the model reads about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Whether the answer is constrained to the schema.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

/// A tool on offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Tool {
    /// A function with JSON arguments. `parameters` and `strict` must be there, null allowed.
    Function {
        /// Its name.
        name: String,
        /// What the model reads about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// JSON Schema of the arguments.
        #[serde(default)]
        parameters: Option<Value>,
        /// Whether the arguments are constrained to the schema.
        #[serde(default)]
        strict: Option<bool>,
    },
    /// Any other tool, whole.
    #[serde(untagged)]
    Other(Value),
}

/// A piece of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// A message.
    Message(Message),
    /// A call of a function.
    FunctionCall(FunctionCall),
    /// The result of a call.
    FunctionCallOutput(FunctionCallOutput),
    /// Thinking; directly before the item that it led to.
    Reasoning(Reasoning),
    /// A call of a custom tool.
    CustomToolCall(CustomToolCall),
    /// The result of a call of a custom tool.
    CustomToolCallOutput(FunctionCallOutput),
    /// A message without `type`.
    #[serde(untagged)]
    Plain(Message),
    /// Any other item, whole.
    #[serde(untagged)]
    Other(Value),
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `msg_…`; only on messages of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `user`, `assistant`, `system` or `developer`.
    pub role: String,
    /// `in_progress`, `completed` or `incomplete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Text, or parts.
    pub content: Content,
    /// Everything else, such as `phase`.
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
        Self::Parts(Vec::new())
    }
}

/// One part of a content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text of the user.
    InputText {
        /// The text.
        text: String,
    },
    /// An image of the user.
    InputImage {
        /// A plain string, not an object as on Chat Completions: an http(s) or a data URL.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image_url: Option<String>,
        /// Everything else: `file_id`, `detail`.
        #[serde(flatten)]
        extra: Extra,
    },
    /// Text of the model.
    OutputText {
        /// The text.
        text: String,
        /// Citations.
        #[serde(default)]
        annotations: Vec<Value>,
        /// Everything else, such as `logprobs`.
        #[serde(flatten)]
        extra: Extra,
    },
    /// A refusal of the model.
    Refusal {
        /// The text.
        refusal: String,
    },
    /// Thinking of an open-weight model.
    ReasoningText {
        /// The text.
        text: String,
    },
    /// A summary of thinking.
    SummaryText {
        /// The text.
        text: String,
    },
    /// Any other part, whole.
    #[serde(untagged)]
    Other(Value),
}

/// A call of a function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// `fc_…`: the item's id, not the call's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `call_…`: what the result must carry.
    #[serde(default)]
    pub call_id: String,
    /// The function's name.
    #[serde(default)]
    pub name: String,
    /// JSON text.
    #[serde(default)]
    pub arguments: String,
    /// `in_progress`, `completed` or `incomplete`; an incomplete call is not to be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionCallOutput {
    /// The `call_id` of the call.
    pub call_id: String,
    /// Text, or parts.
    pub output: Content,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call of a custom tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CustomToolCall {
    /// `ctc_…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What the result must carry.
    #[serde(default)]
    pub call_id: String,
    /// The tool's name.
    #[serde(default)]
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub input: String,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Thinking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// `rs_…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Summaries; must be there, may be empty.
    #[serde(default)]
    pub summary: Vec<Part>,
    /// Thinking of an open-weight model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Part>>,
    /// What only the service can read. The copy in `response.output_item.done` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted_content: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The answer: plain, or inside the first and the last events of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// `resp_…`.
    #[serde(default)]
    pub id: String,
    /// `response`.
    #[serde(default)]
    pub object: String,
    /// Unix seconds.
    #[serde(default)]
    pub created_at: f64,
    /// `completed`, `failed`, `in_progress`, `cancelled`, `queued` or `incomplete`.
    #[serde(default)]
    pub status: String,
    /// Why it failed. The HTTP status stays 200.
    #[serde(default)]
    pub error: Option<ResponseError>,
    /// Why it is incomplete.
    #[serde(default)]
    pub incomplete_details: Option<IncompleteDetails>,
    /// The model that answered.
    #[serde(default)]
    pub model: String,
    /// The answer.
    #[serde(default)]
    pub output: Vec<Item>,
    /// What it cost; null until the end.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// Everything else: the request's options repeated, `input_transformations`.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Why a response failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseError {
    /// `server_error`, `rate_limit_exceeded`, `invalid_prompt`, …
    #[serde(default)]
    pub code: String,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Why a response is incomplete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IncompleteDetails {
    /// `max_output_tokens`, `max_messages`, `content_filter` or `steered`.
    #[serde(default)]
    pub reason: Option<String>,
}

/// What a response cost, in tokens: `total = input + output`, cached inside input, thinking inside
/// output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens_details: Option<InputDetails>,
    /// Tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_details: Option<OutputDetails>,
    /// Both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Parts of `input_tokens`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InputDetails {
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

/// Parts of `output_tokens`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputDetails {
    /// Thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One event of a stream. Which members are there depends on `kind`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// `response.created`, `response.output_text.delta`, `error`, …
    #[serde(default, rename = "type")]
    pub kind: String,
    /// From 0, without gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// The whole response: the first and the last events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
    /// Which item of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_index: Option<u64>,
    /// The id of that item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<String>,
    /// The item, when it is opened (empty) and when it is done (complete).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Item>,
    /// Which part of the item's content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_index: Option<u64>,
    /// Which summary of a reasoning item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_index: Option<u64>,
    /// The part, when it is opened and when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// A new piece of text, refusal, thinking, arguments or input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<String>,
    /// The full text, when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The full refusal, when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The full arguments, when they are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The full input of a custom tool, when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Of `error`: the code, in the flat form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Value>,
    /// Of `error`: for people, in the flat form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Of `error`: everything, in the nested form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
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
    fn a_request_with_every_kind_of_item_survives() {
        survives::<ResponseRequest>(
            r#"{"model":"m","input":[
                {"role":"user","content":"hi"},
                {"type":"message","role":"user","content":[{"type":"input_text","text":"a"},
                    {"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"auto"}]},
                {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},
                {"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}"},
                {"type":"function_call_output","call_id":"call_1","output":"42"},
                {"type":"item_reference","id":"msg_1"}],
               "tools":[{"type":"function","name":"f","parameters":null,"strict":null},
                        {"type":"web_search"}],
               "text":{"format":{"type":"json_schema","name":"s","schema":{},"strict":true}},
               "stream":true,"metadata":{"a":"b"}}"#,
        );
    }

    #[test]
    fn events_survive() {
        for text in [
            r#"{"type":"response.output_text.delta","sequence_number":4,"output_index":0,
                "item_id":"msg_1","content_index":0,"delta":"hi","logprobs":[],"obfuscation":"x"}"#,
            r#"{"type":"error","sequence_number":1,"code":"server_error","message":"no"}"#,
            r#"{"type":"response.output_item.done","sequence_number":2,"output_index":1,
                "item":{"type":"image_generation_call","id":"ig_1","result":null}}"#,
        ] {
            survives::<Event>(text);
        }
    }
}
