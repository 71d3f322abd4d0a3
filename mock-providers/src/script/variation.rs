//! What compatible services do otherwise than the service whose wire they speak.
//!
//! The switches are those of Chat Completions and its imitators, if not said otherwise; each is off
//! unless asked for. [`Service`] sets those of a known service.

use serde::{Deserialize, Serialize};

use super::framing::{Done, Framing};

/// Deviations from the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Variation {
    /// Where thinking is.
    #[serde(skip_serializing_if = "is_default")]
    pub reasoning_field: ReasoningField,
    /// Where a stream's usage is.
    #[serde(skip_serializing_if = "is_default")]
    pub usage: UsagePlace,
    /// `tool_calls[].index`.
    #[serde(skip_serializing_if = "is_default")]
    pub tool_index: ToolIndex,
    /// `tool_calls[].id`.
    #[serde(skip_serializing_if = "is_default")]
    pub tool_id: ToolId,
    /// The arguments of a call; also on the other wires as far as they can say it.
    #[serde(skip_serializing_if = "is_default")]
    pub tool_args: ToolArgs,
    /// `finish_reason`.
    #[serde(skip_serializing_if = "is_default")]
    pub finish: FinishPlace,
    /// `delta.role`.
    #[serde(skip_serializing_if = "is_default")]
    pub role: RolePlace,
    /// `content`.
    #[serde(skip_serializing_if = "is_default")]
    pub content: ContentForm,
    /// Members that nobody knows, everywhere.
    #[serde(skip_serializing_if = "is_default")]
    pub extra_fields: ExtraFields,
    /// Responses: how a stream says that it failed.
    #[serde(skip_serializing_if = "is_default")]
    pub failure: Failure,
    /// Gemini: where the signature of thinking is.
    #[serde(skip_serializing_if = "is_default")]
    pub signature: SignaturePlace,
    /// Gemini: all calls in one event, not one each.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub calls_together: bool,
    /// Gemini: calls have ids.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub call_ids: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Where thinking is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningField {
    /// Nowhere, as with the real service.
    #[default]
    None,
    /// `reasoning_content`
    ReasoningContent,
    /// `reasoning`
    Reasoning,
    /// `reasoning_content` and `reasoning`, with equal text.
    Both,
    /// `reasoning` and `reasoning_details`, with text, signature and encrypted entries.
    Details,
    /// In the text, within `<think>` tags.
    ThinkTags,
    /// In the text, within `<thought>` tags.
    ThoughtTags,
    /// `content` as a list with `thinking` parts.
    ContentArray,
}

/// Where a stream's usage is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsagePlace {
    /// In a chunk without choices, if it was asked for.
    #[default]
    WhenAsked,
    /// Nowhere.
    Absent,
    /// In a chunk without choices, asked for or not.
    EmptyChoices,
    /// In the chunk with the finish.
    LastChunk,
    /// In every chunk, as running totals.
    EveryChunk,
    /// In `choices[0]` of the chunk with the finish.
    InChoice,
    /// In `x_groq` of the chunk with the finish.
    XGroq,
    /// In the chunk with the finish, followed by a chunk with `usage: null`.
    ThenNull,
}

/// `tool_calls[].index`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolIndex {
    /// From 0.
    #[default]
    Right,
    /// Left out.
    Missing,
    /// Null.
    Null,
    /// 0 for every call.
    Zero,
    /// From 1.
    FromOne,
}

/// `tool_calls[].id`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolId {
    /// In the call's first piece.
    #[default]
    Once,
    /// In every piece, and the name too.
    EveryDelta,
    /// In the first piece; later `""`, and a null name.
    EmptyLater,
    /// Nowhere.
    Absent,
    /// Longer than 64 characters.
    Long,
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolArgs {
    /// Pieces after the piece that opens the call.
    #[default]
    Split,
    /// Whole in the piece that opens the call.
    Whole,
    /// Whole in the piece that opens the call, and pieces after it.
    Both,
    /// An object in place of a text.
    Object,
    /// Null.
    Null,
    /// Left out.
    Absent,
}

/// `finish_reason`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishPlace {
    /// In a last chunk with an empty delta.
    #[default]
    LastChunk,
    /// In the chunk with the last content.
    WithContent,
    /// Null also in the last chunk.
    Null,
    /// `""` in every chunk but the last.
    Empty,
    /// The member is left out of every chunk.
    Absent,
    /// Said in two chunks.
    Twice,
}

/// `delta.role`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RolePlace {
    /// In the first chunk.
    #[default]
    First,
    /// In every chunk.
    Every,
    /// `""` in every chunk.
    Empty,
    /// Nowhere.
    Absent,
}

/// `content`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentForm {
    /// A text.
    #[default]
    String,
    /// Null where there is no text.
    Null,
    /// Left out where there is no text.
    Absent,
    /// A list of parts.
    Array,
}

/// Members that nobody knows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtraFields {
    /// None.
    #[default]
    None,
    /// Texts, numbers and nested objects in every event.
    Random,
}

/// How a Responses stream says that it failed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// `error`, then `response.failed`.
    #[default]
    Both,
    /// `error` only.
    ErrorOnly,
    /// `response.failed` only.
    FailedOnly,
}

/// Where Gemini's signature of thinking is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignaturePlace {
    /// On the first call; without calls, on the last text.
    #[default]
    Natural,
    /// On an empty text in the last event.
    EmptyText,
    /// Nowhere.
    Absent,
}

/// A compatible service whose deviations are known.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// `reasoning_content`, keep-alive comments, usage asked for or not.
    Deepseek,
    /// `reasoning_content`, later pieces of calls with an empty id.
    Dashscope,
    /// `reasoning`, usage in `x_groq`.
    Groq,
    /// `reasoning_details`, processing comments.
    Openrouter,
    /// `reasoning`, whole chunks of calls.
    Vllm,
    /// Role in every chunk, whole calls without an index.
    Ollama,
    /// `content` as a list.
    Mistral,
    /// Usage in the choice.
    Moonshot,
    /// `<think>` in the text.
    Minimax,
}

impl Service {
    /// Its deviations from Chat Completions, and its form of an event stream.
    pub fn profile(self) -> (Variation, Framing) {
        let mut variation = Variation::default();
        let mut framing = Framing::default();
        match self {
            Self::Deepseek => {
                variation.reasoning_field = ReasoningField::ReasoningContent;
                variation.content = ContentForm::Null;
                variation.usage = UsagePlace::LastChunk;
                framing.comment = Some("keep-alive".to_owned());
            }
            Self::Dashscope => {
                variation.reasoning_field = ReasoningField::ReasoningContent;
                variation.tool_id = ToolId::EmptyLater;
            }
            Self::Groq => {
                variation.reasoning_field = ReasoningField::Reasoning;
                variation.usage = UsagePlace::XGroq;
                variation.tool_args = ToolArgs::Whole;
            }
            Self::Openrouter => {
                variation.reasoning_field = ReasoningField::Details;
                variation.usage = UsagePlace::EmptyChoices;
                variation.role = RolePlace::Every;
                framing.comment = Some("OPENROUTER PROCESSING".to_owned());
            }
            Self::Vllm => {
                variation.reasoning_field = ReasoningField::Reasoning;
                variation.tool_id = ToolId::Long;
                variation.extra_fields = ExtraFields::Random;
            }
            Self::Ollama => {
                variation.role = RolePlace::Every;
                variation.tool_index = ToolIndex::Missing;
                variation.tool_args = ToolArgs::Whole;
                variation.finish = FinishPlace::WithContent;
            }
            Self::Mistral => {
                variation.reasoning_field = ReasoningField::ContentArray;
                variation.usage = UsagePlace::LastChunk;
                variation.finish = FinishPlace::WithContent;
                variation.tool_args = ToolArgs::Whole;
            }
            Self::Moonshot => {
                variation.reasoning_field = ReasoningField::ReasoningContent;
                variation.usage = UsagePlace::InChoice;
            }
            Self::Minimax => {
                variation.reasoning_field = ReasoningField::ThinkTags;
                variation.usage = UsagePlace::EmptyChoices;
                framing.done = Some(Done::Twice);
            }
        }
        (variation, framing)
    }
}
