//! An answer of the model, in terms that fit every wire.

use std::time::Duration;

use serde::de::{Error, MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::duration;
use super::edit::{Edit, RawEvent};
use super::errors::ErrorReply;
use super::forms::{self, Form};
use super::framing::Framing;
use super::text::{Chunking, Text};
use super::variation::Variation;

/// An answer of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What it consists of, in order.
    pub parts: Vec<Part>,
    /// Why it ends; if not said, calls end as calls and everything else as stop.
    pub finish: Option<Finish>,
    /// What it cost.
    pub usage: UsagePlan,
    /// How texts are cut into events.
    pub chunk: Chunking,
    /// The id of the answer, in place of a made one.
    pub id: Option<String>,
    /// The model that answered, in place of the one that was asked for.
    pub model: Option<String>,
    /// The form of the event stream.
    pub framing: Framing,
    /// What a compatible service does otherwise.
    pub variation: Variation,
    /// Changes to single events.
    pub edits: Vec<Edit>,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text for the user.
    Text(Text),
    /// Thinking.
    Reasoning(Reasoning),
    /// Calls, side by side.
    Calls(Calls),
    /// A refusal in place of text.
    Refusal(Text),
    /// An error in the middle of the stream; what comes after it is not sent. In a plain answer it
    /// takes the place of the answer, with its status.
    Error(ErrorReply),
    /// A sign of life without content: the wire's own ping, or a comment.
    Keepalive(Keepalive),
    /// Silence.
    Pause(#[serde(with = "duration")] Duration),
    /// Silence until a gate is opened.
    Gate(String),
    /// An event of the author's own.
    Event(RawEvent),
    /// Bytes that are put into the stream as they are.
    Bytes(String),
}

/// A sign of life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keepalive {
    /// The wire's own event; a comment where it has none.
    #[default]
    Ping,
    /// A comment with this text.
    Comment(String),
}

/// Thinking. In files a plain text is thinking that the wire shows as it shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reasoning {
    /// What can be read of it; where a wire has summaries, one summary for each.
    pub text: Vec<Text>,
    /// Anthropic's `signature`, Gemini's `thoughtSignature`; made up when not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// What only the service can read: `encrypted_content` of Responses, `data` of Anthropic's
    /// `redacted_thinking`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<String>,
    /// Responses: as `reasoning_text` of an open-weight model, not as summaries.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Signed, but without readable text (Anthropic: display omitted).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReasoningFields {
    #[serde(deserialize_with = "forms::one_or_many")]
    text: Vec<Text>,
    signature: Option<String>,
    encrypted: Option<String>,
    open: bool,
    omitted: bool,
}

impl<'de> Deserialize<'de> for Reasoning {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        forms::read(from)
    }
}

impl<'de> Form<'de> for Reasoning {
    const WANTS: &'static str = "a text, or {text, signature, encrypted, open, omitted}";

    fn of_text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(text.into())
    }

    fn of_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let fields: ReasoningFields = forms::map(map)?;
        Ok(Self {
            text: fields.text,
            signature: fields.signature,
            encrypted: fields.encrypted,
            open: fields.open,
            omitted: fields.omitted,
        })
    }
}

/// Calls that the model makes side by side. In files a plain list is not interleaved.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Calls {
    /// The calls.
    pub list: Vec<Call>,
    /// Whether pieces of the calls' arguments come in turns.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interleave: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallsFields {
    list: Vec<Call>,
    #[serde(default)]
    interleave: bool,
}

impl<'de> Deserialize<'de> for Calls {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        forms::read(from)
    }
}

impl<'de> Form<'de> for Calls {
    const WANTS: &'static str = "a list of calls, or {list, interleave}";

    fn of_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        let list = forms::list(list)?;
        Ok(Self {
            list,
            interleave: false,
        })
    }

    fn of_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let CallsFields { list, interleave } = forms::map(map)?;
        Ok(Self { list, interleave })
    }
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Call {
    /// The function's name.
    pub name: String,
    /// The arguments: a JSON value, or a text that is sent as it is, valid JSON or not.
    pub arguments: Value,
    /// The call's id, in place of a made one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The pieces in which the arguments are streamed, in place of `arguments`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<String>,
    /// A custom tool: the arguments are free text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub custom: bool,
    /// Gemini's `thoughtSignature` on this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// Why an answer ends.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model was done.
    Stop,
    /// The token limit was reached.
    Length,
    /// The model waits for the results of its calls.
    Calls,
    /// The service's filter stopped it.
    Filter,
    /// The model refused.
    Refusal,
    /// This stop sequence came up.
    StopSequence(String),
    /// The service wants the same again to go on.
    Pause,
    /// The context window is full.
    Context,
    /// The prompt was blocked for this reason, and nothing was answered: Gemini's `blockReason`.
    PromptBlocked(String),
    /// This word of the wire, known or not.
    Word(String),
    /// Never said.
    Absent,
}

/// What the answer says about its cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsagePlan {
    /// Counted from the texts: a token for every four characters, rounded up.
    #[default]
    Counted,
    /// Nothing is said.
    Absent,
    /// These numbers.
    #[serde(untagged)]
    Exact(Usage),
}

impl<'de> Deserialize<'de> for UsagePlan {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        forms::read(from)
    }
}

impl<'de> Form<'de> for UsagePlan {
    const WANTS: &'static str =
        "`counted`, `absent`, or {input, output, cached, cache_write, reasoning, total}";

    fn of_text<E: Error>(text: &str) -> Result<Self, E> {
        match text {
            "counted" => Ok(Self::Counted),
            "absent" => Ok(Self::Absent),
            _ => Err(E::unknown_variant(text, &["counted", "absent"])),
        }
    }

    fn of_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        forms::map(map).map(Self::Exact)
    }
}

/// The cost of one call, in tokens, in one model for all wires.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// The whole request, cached tokens included.
    pub input: u64,
    /// The whole answer, thinking included.
    pub output: u64,
    /// Of the input: read from the cache.
    pub cached: u64,
    /// Of the input: written to the cache.
    pub cache_write: u64,
    /// Of the output: thinking.
    pub reasoning: u64,
    /// What the wire says as the total, in place of the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

impl<T: Into<String>> From<T> for Reasoning {
    fn from(text: T) -> Self {
        Self {
            text: vec![Text::Whole(text.into())],
            ..Self::default()
        }
    }
}

impl Call {
    /// A call with these arguments: a JSON value, or a text that is sent as it is.
    pub fn new(name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self {
            name: name.into(),
            arguments: arguments.into(),
            ..Self::default()
        }
    }

    /// With this id in place of a made one.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Streamed in these pieces, which also make up the arguments.
    #[must_use]
    pub fn pieces<T: Into<String>>(mut self, pieces: impl IntoIterator<Item = T>) -> Self {
        self.pieces = pieces.into_iter().map(Into::into).collect();
        self
    }

    /// The arguments as text.
    pub fn text(&self) -> String {
        match &self.arguments {
            _ if !self.pieces.is_empty() => self.pieces.concat(),
            Value::String(text) => text.clone(),
            Value::Null => "{}".to_owned(),
            value => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_text_are_sent_as_they_are() {
        assert_eq!(Call::new("f", "{\"a\":").text(), "{\"a\":");
        assert_eq!(
            Call::new("f", serde_json::json!({"a": 1})).text(),
            "{\"a\":1}"
        );
        assert_eq!(Call::new("f", Value::Null).text(), "{}");
        assert_eq!(
            Call::new("f", Value::Null).pieces(["{\"b\"", ":2}"]).text(),
            "{\"b\":2}"
        );
    }
}
