//! The conditions of a rule. All that are said must hold.

use std::collections::BTreeMap;

use serde::de::{Error, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use turnwire_spec::llm::Wire;

use super::forms::{self, Form};
use super::sound;

/// Conditions on a request.
///
/// Texts of messages are what people would read: the text parts of a message, joined by newlines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// One of these wires.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "forms::one_or_many"
    )]
    pub wire: Vec<Wire>,
    /// The HTTP method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The path without the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<NameMatch>,
    /// Headers by name, whatever the case of the letters.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "sound::header_names"
    )]
    pub headers: BTreeMap<String, TextMatch>,
    /// The model's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<NameMatch>,
    /// Whether a stream was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// The last message of the user that has a text (results of calls are no such message).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_user: Option<TextMatch>,
    /// At least one message, whoever said it, results of calls included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any_message: Option<TextMatch>,
    /// The instructions, all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<TextMatch>,
    /// How many turns of the assistant came before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// How many turns of the assistant came since the last message of the user: 0 for the first
    /// request of a tool loop, 1 for the one with the first results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// Whether results of calls came after the last turn of the assistant, and which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_result: Option<ToolResultMatch>,
    /// A tool of this name is on offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offers_tool: Option<String>,
    /// Whether some message has an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<bool>,
    /// Values in the body by path: `$.a.b[0]`, `$.messages[-1].content`, `$.tools[*].type` (one of
    /// them), or a JSON pointer (`/a/b/0`).
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "sound::paths"
    )]
    pub json: BTreeMap<String, Value>,
    /// State variables of the script. A variable that was never set is the empty text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, String>,
}

/// A condition on a text. In files a plain text means `contains`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "TextMatchFile")]
pub enum TextMatch {
    /// Holds this somewhere.
    Contains(String),
    /// Is this, exactly.
    Equals(String),
    /// Begins with this.
    StartsWith(String),
    /// Ends with this.
    EndsWith(String),
    /// Matches as a whole; `*` stands for any run of characters, `?` for one.
    Glob(String),
}

/// A condition on a name or a path. In files a plain text is a glob that must match as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NameMatch(pub String);

/// A condition on the results of calls. In files `true` or `false` asks for any or none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ToolResultMatch {
    /// Some result is there, or none.
    Present(bool),
    /// One result is like this.
    Like {
        /// The function's name.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The call's id.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The result's text.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<TextMatch>,
    },
}

#[derive(Clone, Serialize)]
#[serde(untagged)]
enum TextMatchFile {
    Plain(String),
    Tagged(TaggedText),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaggedText {
    Contains(String),
    Equals(String),
    StartsWith(String),
    EndsWith(String),
    Glob(String),
}

impl<'de> Deserialize<'de> for TextMatch {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        forms::read(from)
    }
}

impl<'de> Form<'de> for TextMatch {
    const WANTS: &'static str = "a text (in quotes when it looks like a number), or one of: {contains: TEXT}, \
                                 {equals: TEXT}, {starts_with: TEXT}, {ends_with: TEXT}, {glob: TEXT}";

    fn of_text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(text.into())
    }

    fn of_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Ok(match forms::map(map)? {
            TaggedText::Contains(text) => Self::Contains(text),
            TaggedText::Equals(text) => Self::Equals(text),
            TaggedText::StartsWith(text) => Self::StartsWith(text),
            TaggedText::EndsWith(text) => Self::EndsWith(text),
            TaggedText::Glob(text) => Self::Glob(text),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ToolResultFields {
    name: Option<String>,
    id: Option<String>,
    text: Option<TextMatch>,
}

impl<'de> Deserialize<'de> for ToolResultMatch {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        forms::read(from)
    }
}

impl<'de> Form<'de> for ToolResultMatch {
    const WANTS: &'static str = "`true`, `false`, or {name, id, text}";

    fn of_flag<E: Error>(flag: bool) -> Result<Self, E> {
        Ok(Self::Present(flag))
    }

    fn of_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let ToolResultFields { name, id, text } = forms::map(map)?;
        Ok(Self::Like { name, id, text })
    }
}

impl From<TextMatch> for TextMatchFile {
    fn from(value: TextMatch) -> Self {
        match value {
            TextMatch::Contains(text) => Self::Plain(text),
            TextMatch::Equals(text) => Self::Tagged(TaggedText::Equals(text)),
            TextMatch::StartsWith(text) => Self::Tagged(TaggedText::StartsWith(text)),
            TextMatch::EndsWith(text) => Self::Tagged(TaggedText::EndsWith(text)),
            TextMatch::Glob(text) => Self::Tagged(TaggedText::Glob(text)),
        }
    }
}

impl<T: Into<String>> From<T> for TextMatch {
    /// `contains`, as in files.
    fn from(text: T) -> Self {
        Self::Contains(text.into())
    }
}

impl<T: Into<String>> From<T> for NameMatch {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl When {
    /// No condition: every request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Also this wire.
    #[must_use]
    pub fn wire(mut self, wire: Wire) -> Self {
        self.wire.push(wire);
        self
    }

    /// This HTTP method.
    #[must_use]
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = Some(method.into());
        self
    }

    /// A path that this glob matches.
    #[must_use]
    pub fn path(mut self, path: impl Into<NameMatch>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// This header has this value.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<TextMatch>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// A model that this glob matches.
    #[must_use]
    pub fn model(mut self, model: impl Into<NameMatch>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// A stream was asked for, or not.
    #[must_use]
    pub fn stream(mut self, stream: bool) -> Self {
        self.stream = Some(stream);
        self
    }

    /// The last message of the user has this text.
    #[must_use]
    pub fn last_user(mut self, text: impl Into<TextMatch>) -> Self {
        self.last_user = Some(text.into());
        self
    }

    /// Some message has this text.
    #[must_use]
    pub fn any_message(mut self, text: impl Into<TextMatch>) -> Self {
        self.any_message = Some(text.into());
        self
    }

    /// The instructions have this text.
    #[must_use]
    pub fn system(mut self, text: impl Into<TextMatch>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// So many turns of the assistant came before.
    #[must_use]
    pub fn turn(mut self, turn: usize) -> Self {
        self.turn = Some(turn);
        self
    }

    /// So many turns of the assistant came since the last message of the user.
    #[must_use]
    pub fn step(mut self, step: usize) -> Self {
        self.step = Some(step);
        self
    }

    /// Results of calls came after the last turn of the assistant, or none did.
    #[must_use]
    pub fn tool_result(mut self, present: bool) -> Self {
        self.tool_result = Some(ToolResultMatch::Present(present));
        self
    }

    /// A result came that is like this.
    #[must_use]
    pub fn tool_result_like(mut self, like: ToolResultMatch) -> Self {
        self.tool_result = Some(like);
        self
    }

    /// A tool of this name is on offer.
    #[must_use]
    pub fn offers_tool(mut self, name: impl Into<String>) -> Self {
        self.offers_tool = Some(name.into());
        self
    }

    /// Some message has an image, or none has.
    #[must_use]
    pub fn image(mut self, present: bool) -> Self {
        self.image = Some(present);
        self
    }

    /// The body has this value at this path.
    #[must_use]
    pub fn json(mut self, path: impl Into<String>, value: impl Into<Value>) -> Self {
        self.json.insert(path.into(), value.into());
        self
    }

    /// The script's state variable has this value.
    #[must_use]
    pub fn state(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.state.insert(name.into(), value.into());
        self
    }
}
