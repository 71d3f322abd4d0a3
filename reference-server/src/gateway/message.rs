//! A conversation in neutral terms: what is said to a model, and the tools that it may call.
//!
//! These are the library's own types, and also the form in which a conversation is kept: they are read
//! from JSON and written to it. Each wire turns them into its own messages.
//!
//! Source: seed 000, lines 513-527 (the forms of a content), 1204-1208 (the continuation).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::continuation::Continuation;

/// The content of a message.
///
/// All three forms may be mixed in one conversation. There is no part for media references: a host
/// replaces them by images before a message comes here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Nothing, such as beside tool calls.
    #[default]
    Null,
    /// One text.
    Text(String),
    /// Several parts.
    Parts(Vec<ContentPart>),
}

/// One part of a content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum ContentPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Plain base64, a `data:` URL, or an http(s) URL.
        image: String,
        /// Its MIME type; found in the file's header when plain base64 does not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
}

impl Content {
    /// The texts, one after the other.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => parts.iter().filter_map(ContentPart::text).collect(),
        }
    }

    /// Whether there is neither text nor image.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Text(text) => text.is_empty(),
            Self::Parts(parts) => parts.iter().all(|part| part.text() == Some("")),
        }
    }

    /// How many images there are.
    #[must_use]
    pub fn images(&self) -> usize {
        match self {
            Self::Null | Self::Text(_) => 0,
            Self::Parts(parts) => parts.iter().filter(|part| part.text().is_none()).count(),
        }
    }
}

impl ContentPart {
    /// An image whose bytes a host keeps: plain base64 with its type, never the place where it is kept.
    ///
    /// Source: seed 000, line 527.
    #[must_use]
    pub fn stored(bytes: &[u8], media_type: &str) -> Self {
        Self::Image {
            image: STANDARD.encode(bytes),
            media_type: Some(media_type.to_owned()),
        }
    }

    /// The text, when it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image { .. } => None,
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "role",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum ChatMessage {
    /// The host's instructions.
    #[serde(alias = "developer")]
    System {
        /// The text.
        #[serde(default)]
        content: Content,
    },
    /// The player.
    User {
        /// Text and images.
        #[serde(default)]
        content: Content,
    },
    /// The model.
    Assistant {
        /// The text; may be empty or null beside tool calls.
        #[serde(default)]
        content: Content,
        /// The tool calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolRequest>,
        /// What the service wants back of this answer: carried along, never looked into.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        continuation: Option<Continuation>,
    },
    /// The result of a tool call.
    Tool {
        /// Which call.
        tool_call_id: String,
        /// The result, or the error, as text.
        #[serde(default)]
        content: Content,
    },
}

impl ChatMessage {
    /// What it says.
    #[must_use]
    pub fn content(&self) -> &Content {
        match self {
            Self::System { content }
            | Self::User { content }
            | Self::Assistant { content, .. }
            | Self::Tool { content, .. } => content,
        }
    }

    /// As a trace shows it: without the continuation, which is the service's business.
    #[must_use]
    pub fn logical(&self) -> Self {
        let mut message = self.clone();
        if let Self::Assistant { continuation, .. } = &mut message {
            *continuation = None;
        }
        message
    }
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments; also read under the name `parameters`.
    #[serde(default, alias = "parameters")]
    pub json_schema: Value,
    /// Whether the service is to hold the arguments to the schema, where it can: OpenAI's wires, for a schema
    /// that closes all of its objects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

/// One tool call that a model asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequest {
    /// The provider's id for it, or one that was made for it.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// The arguments, as the text that the model wrote; `{}` when it wrote none. Not always JSON.
    #[serde(deserialize_with = "text_or_json")]
    pub arguments: String,
}

impl ToolRequest {
    /// The arguments as JSON, when they are some.
    #[must_use]
    pub fn parsed(&self) -> Option<Value> {
        serde_json::from_str(&self.arguments).ok()
    }
}

fn text_or_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Null => "{}".to_owned(),
        value => value.to_string(),
    })
}

/// Whether the model calls tools. In JSON: `"auto"`, `"required"`, `"none"` or `{"name": …}`.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must.
    Required,
    /// It must not.
    None,
    /// It must call this one.
    #[serde(untagged)]
    Named {
        /// The tool.
        name: String,
    },
}
