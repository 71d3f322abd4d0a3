//! Gemini native: `generateContent` and `streamGenerateContent`.
//!
//! Plain answers and events of a stream are the same object, [`GenerateResponse`]; each event holds
//! new parts. A stream is complete with a `finishReason` (or a `blockReason`) and the end of the
//! body. Names are camelCase; readers take snake_case as well, because clients send both.
//!
//! Source: the typed models of the official SDKs (PyPI google-genai 3.6.1, npm @google/genai 2.32.0).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Extra;

/// A signature that the service accepts for history which it did not make.
pub const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";

/// The body of `generateContent` and `streamGenerateContent`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerateRequest {
    /// The conversation, oldest first.
    pub contents: Vec<Content>,
    /// Instructions; there is no system role in `contents`.
    #[serde(
        default,
        alias = "system_instruction",
        skip_serializing_if = "Option::is_none"
    )]
    pub system_instruction: Option<Content>,
    /// Tools on offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether and which functions to call.
    #[serde(
        default,
        alias = "tool_config",
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_config: Option<ToolConfig>,
    /// Sampling, limits, thinking and the form of the answer.
    #[serde(
        default,
        alias = "generation_config",
        skip_serializing_if = "Option::is_none"
    )]
    pub generation_config: Option<GenerationConfig>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    /// `user` (results of calls too) or `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What it consists of; may be left out in answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<Part>>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A piece of a message: one payload, and flags.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether the text is thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<bool>,
    /// Base64 bytes that must come back on the same part.
    #[serde(
        default,
        alias = "thought_signature",
        skip_serializing_if = "Option::is_none"
    )]
    pub thought_signature: Option<String>,
    /// A file, here.
    #[serde(
        default,
        alias = "inline_data",
        skip_serializing_if = "Option::is_none"
    )]
    pub inline_data: Option<Blob>,
    /// A file, uploaded before.
    #[serde(default, alias = "file_data", skip_serializing_if = "Option::is_none")]
    pub file_data: Option<FileData>,
    /// A call, always whole.
    #[serde(
        default,
        alias = "function_call",
        skip_serializing_if = "Option::is_none"
    )]
    pub function_call: Option<FunctionCall>,
    /// The result of a call.
    #[serde(
        default,
        alias = "function_response",
        skip_serializing_if = "Option::is_none"
    )]
    pub function_response: Option<FunctionResponse>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A file, here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Blob {
    /// Its media type.
    #[serde(default, alias = "mime_type")]
    pub mime_type: String,
    /// Base64.
    #[serde(default)]
    pub data: String,
}

/// A file, uploaded before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileData {
    /// Its media type.
    #[serde(default, alias = "mime_type", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// A URI of the service; most models refuse ordinary URLs.
    #[serde(default, alias = "file_uri")]
    pub file_uri: String,
}

/// A call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// Often absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The function's name.
    #[serde(default)]
    pub name: String,
    /// The arguments, an object; absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionResponse {
    /// The call's id, when it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The call's name.
    #[serde(default)]
    pub name: String,
    /// The result, always an object.
    #[serde(default)]
    pub response: Value,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Tools on offer: functions, or one of the service's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Functions.
    #[serde(
        default,
        alias = "function_declarations",
        skip_serializing_if = "Option::is_none"
    )]
    pub function_declarations: Option<Vec<FunctionDeclaration>>,
    /// Everything else: `googleSearch`, `codeExecution`, `urlContext`.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A function on offer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionDeclaration {
    /// A letter or `_`, then up to 127 of `[a-zA-Z0-9_.:-]`.
    pub name: String,
    /// What the model reads about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments in the OpenAPI subset, type names in upper case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// The arguments as JSON Schema.
    #[serde(
        default,
        alias = "parameters_json_schema",
        skip_serializing_if = "Option::is_none"
    )]
    pub parameters_json_schema: Option<Value>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Whether and which functions to call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolConfig {
    /// For functions.
    #[serde(
        default,
        alias = "function_calling_config",
        skip_serializing_if = "Option::is_none"
    )]
    pub function_calling_config: Option<FunctionCallingConfig>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Whether and which functions to call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionCallingConfig {
    /// `AUTO`, `ANY`, `NONE` or `VALIDATED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Only with `ANY` and `VALIDATED`.
    #[serde(
        default,
        alias = "allowed_function_names",
        skip_serializing_if = "Option::is_none"
    )]
    pub allowed_function_names: Option<Vec<String>>,
}

/// Sampling, limits, thinking and the form of the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationConfig {
    /// Limit of generated tokens.
    #[serde(
        default,
        alias = "max_output_tokens",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_output_tokens: Option<u64>,
    /// 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// `application/json` for structured output.
    #[serde(
        default,
        alias = "response_mime_type",
        skip_serializing_if = "Option::is_none"
    )]
    pub response_mime_type: Option<String>,
    /// In the OpenAPI subset.
    #[serde(
        default,
        alias = "response_schema",
        skip_serializing_if = "Option::is_none"
    )]
    pub response_schema: Option<Value>,
    /// As JSON Schema.
    #[serde(
        default,
        alias = "response_json_schema",
        skip_serializing_if = "Option::is_none"
    )]
    pub response_json_schema: Option<Value>,
    /// How much to think, and whether to show it.
    #[serde(
        default,
        alias = "thinking_config",
        skip_serializing_if = "Option::is_none"
    )]
    pub thinking_config: Option<ThinkingConfig>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How much to think, and whether to show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingConfig {
    /// Whether thoughts are parts of the answer.
    #[serde(
        default,
        alias = "include_thoughts",
        skip_serializing_if = "Option::is_none"
    )]
    pub include_thoughts: Option<bool>,
    /// Tokens; 0 is off, -1 automatic.
    #[serde(
        default,
        alias = "thinking_budget",
        skip_serializing_if = "Option::is_none"
    )]
    pub thinking_budget: Option<i64>,
    /// `MINIMAL`, `LOW`, `MEDIUM`, `HIGH` or `XHIGH`.
    #[serde(
        default,
        alias = "thinking_level",
        skip_serializing_if = "Option::is_none"
    )]
    pub thinking_level: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A plain answer, or one event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerateResponse {
    /// The answers, usually one; none when the prompt was blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Vec<Candidate>>,
    /// Why the prompt was blocked.
    #[serde(
        default,
        alias = "prompt_feedback",
        skip_serializing_if = "Option::is_none"
    )]
    pub prompt_feedback: Option<PromptFeedback>,
    /// The cost so far.
    #[serde(
        default,
        alias = "usage_metadata",
        skip_serializing_if = "Option::is_none"
    )]
    pub usage_metadata: Option<UsageMetadata>,
    /// The model that answered.
    #[serde(
        default,
        alias = "model_version",
        skip_serializing_if = "Option::is_none"
    )]
    pub model_version: Option<String>,
    /// The same in all events.
    #[serde(
        default,
        alias = "response_id",
        skip_serializing_if = "Option::is_none"
    )]
    pub response_id: Option<String>,
    /// The error that ends a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Status>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// New parts; may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// `STOP`, `MAX_TOKENS`, `SAFETY`, … `STOP` also when there are calls.
    #[serde(
        default,
        alias = "finish_reason",
        skip_serializing_if = "Option::is_none"
    )]
    pub finish_reason: Option<String>,
    /// For people.
    #[serde(
        default,
        alias = "finish_message",
        skip_serializing_if = "Option::is_none"
    )]
    pub finish_message: Option<String>,
    /// Its place; 0 may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Everything else: `safetyRatings`, `citationMetadata`, `continuationToken`.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Why a prompt was blocked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptFeedback {
    /// `SAFETY`, `OTHER`, `BLOCKLIST`, `PROHIBITED_CONTENT`, `IMAGE_SAFETY`, …
    #[serde(
        default,
        alias = "block_reason",
        skip_serializing_if = "Option::is_none"
    )]
    pub block_reason: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What an answer cost, in tokens: `total = prompt + candidates + thoughts + toolUsePrompt`; cached is
/// inside prompt. Running totals in a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageMetadata {
    /// The request, cached tokens included.
    #[serde(
        default,
        alias = "prompt_token_count",
        skip_serializing_if = "Option::is_none"
    )]
    pub prompt_token_count: Option<u64>,
    /// Read from the cache.
    #[serde(
        default,
        alias = "cached_content_token_count",
        skip_serializing_if = "Option::is_none"
    )]
    pub cached_content_token_count: Option<u64>,
    /// The answer without thinking.
    #[serde(
        default,
        alias = "candidates_token_count",
        skip_serializing_if = "Option::is_none"
    )]
    pub candidates_token_count: Option<u64>,
    /// Thinking.
    #[serde(
        default,
        alias = "thoughts_token_count",
        skip_serializing_if = "Option::is_none"
    )]
    pub thoughts_token_count: Option<u64>,
    /// Results of the service's own tools.
    #[serde(
        default,
        alias = "tool_use_prompt_token_count",
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_use_prompt_token_count: Option<u64>,
    /// All.
    #[serde(
        default,
        alias = "total_token_count",
        skip_serializing_if = "Option::is_none"
    )]
    pub total_token_count: Option<u64>,
    /// Everything else: counts by modality.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The body of every error status. The array form of a stream wraps it in an array.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The error.
    pub error: Status,
}

/// What went wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The HTTP status; in streams sometimes absent or no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Value>,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// `INVALID_ARGUMENT`, `RESOURCE_EXHAUSTED`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// `google.rpc` messages, each with its `@type`: `ErrorInfo`, `RetryInfo`, `BadRequest`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Value>,
}

impl Status {
    /// The wait that `RetryInfo` asks for, such as `31s`.
    #[must_use]
    pub fn retry_delay(&self) -> Option<&str> {
        self.details
            .iter()
            .filter(|detail| {
                detail["@type"]
                    .as_str()
                    .is_some_and(|kind| kind.ends_with("RetryInfo"))
            })
            .find_map(|detail| detail["retryDelay"].as_str())
    }

    /// The `reason` of `ErrorInfo`, such as `API_KEY_INVALID`.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.details
            .iter()
            .filter(|detail| {
                detail["@type"]
                    .as_str()
                    .is_some_and(|kind| kind.ends_with("ErrorInfo"))
            })
            .find_map(|detail| detail["reason"].as_str())
    }
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
    fn a_request_with_calls_and_signatures_survives() {
        survives::<GenerateRequest>(
            r#"{"contents":[{"role":"user","parts":[{"text":"hi"},
                    {"inlineData":{"mimeType":"image/png","data":"AA=="}}]},
                {"role":"model","parts":[{"text":"hm","thought":true},
                    {"thoughtSignature":"c2ln","functionCall":{"id":"1","name":"f","args":{"a":1}}}]},
                {"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"r":1}}}]}],
               "tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{}}]},
                        {"googleSearch":{}}],
               "generationConfig":{"topK":3,"thinkingConfig":{"thinkingBudget":-1}}}"#,
        );
    }

    #[test]
    fn snake_case_names_are_read() {
        let answer: GenerateResponse = serde_json::from_str(
            r#"{"candidates":[{"finish_reason":"STOP","content":{"parts":[
                {"function_call":{"name":"f"},"thought_signature":"c2ln"}]}}],
               "usage_metadata":{"prompt_token_count":3}}"#,
        )
        .unwrap();
        let candidate = &answer.candidates.unwrap()[0];
        assert_eq!(candidate.finish_reason.as_deref(), Some("STOP"));
        let part = &candidate.content.as_ref().unwrap().parts.as_ref().unwrap()[0];
        assert_eq!(part.function_call.as_ref().unwrap().name, "f");
        assert_eq!(answer.usage_metadata.unwrap().prompt_token_count, Some(3));
    }

    #[test]
    fn the_wait_and_the_reason_are_found_in_the_details() {
        let body: ErrorBody = serde_json::from_str(
            r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[
                {"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"},
                {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"31s"}]}}"#,
        )
        .unwrap();
        assert_eq!(body.error.retry_delay(), Some("31s"));
        assert_eq!(body.error.reason(), Some("RATE_LIMIT_EXCEEDED"));
    }
}
