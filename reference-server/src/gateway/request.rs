//! One request to a model, and what may be asked of it.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use turnwire_spec::covel::payloads::execution::FailureTarget;

use super::message::{ChatMessage, ToolChoice, ToolSpec};

/// One model: identities only, never keys or addresses.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The provider.
    pub provider: String,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl From<Target> for FailureTarget {
    fn from(target: Target) -> Self {
        Self {
            provider: target.provider,
            model: target.model,
        }
    }
}

/// One request to a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// Who is asked. Its model, when there is one, takes the place of the preferred target's.
    pub target: Target,
    /// The conversation.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// Whether it may, must, or must not call them.
    pub tool_choice: ToolChoice,
    /// Whether the answer comes in pieces.
    pub streaming: bool,
    /// What else is asked for.
    pub options: CallOptions,
}

/// What may be asked of a model. What a wire has no place for is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CallOptions {
    /// Output tokens at most, thinking included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// 0 to 2. The newest version of Anthropic's wire has no place for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Texts that end the answer; in JSON one text or a list.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_many"
    )]
    pub stop: Vec<String>,
    /// The answer must be JSON of this schema; it is validated on every wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// How much to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// Whether one answer may hold several calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Options of one provider, by its name: `google` takes `thinkingConfig`, `cachedContent`, `seed`;
    /// `openai`, on Responses, `previousResponseId` or else `conversation`, which stand for the messages before.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub provider_options: Map<String, Value>,
}

/// How much to think. In JSON also `true` (as much as the model likes), `false` (not at all), or one of
/// the efforts.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(from = "ThinkingFile", rename_all = "camelCase")]
pub struct Thinking {
    /// Not at all.
    pub off: bool,
    /// `minimal`, `low`, `medium`, `high`, …: the wire's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Tokens at most, where a wire counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ThinkingFile {
    Switch(bool),
    Effort(String),
    #[serde(rename_all = "camelCase")]
    Full {
        #[serde(default)]
        off: bool,
        #[serde(default)]
        effort: Option<String>,
        #[serde(default, alias = "budget_tokens", alias = "budget")]
        budget_tokens: Option<u64>,
    },
}

impl From<ThinkingFile> for Thinking {
    fn from(file: ThinkingFile) -> Self {
        match file {
            ThinkingFile::Switch(on) => Self {
                off: !on,
                ..Self::default()
            },
            ThinkingFile::Effort(effort) => Self {
                effort: Some(effort),
                ..Self::default()
            },
            ThinkingFile::Full {
                off,
                effort,
                budget_tokens,
            } => Self {
                off,
                effort,
                budget_tokens,
            },
        }
    }
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(text) => vec![text],
        OneOrMany::Many(texts) => texts,
    })
}
