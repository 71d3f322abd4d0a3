//! What a reply says, in terms that fit every wire.
//!
//! An [`Answer`] is a list of [`Part`]s in the order in which the model produced them, a finish and a
//! usage. Each wire writes it in its own form; what a wire cannot say is left out there. Where the
//! exact bytes are the point, a reply is a [`RawReply`] instead.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::duration;
use super::errors::{ErrorReply, RawReply};
use super::file::ReplyFile;
use super::timing::Timing;
use super::transport::{Cut, CutHow, Faults, Position, Stall, Until};

/// What to send for one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ReplyFile", into = "ReplyFile")]
pub struct Reply {
    /// What is said.
    pub body: Body,
    /// When it is sent.
    pub timing: Timing,
    /// What goes wrong on the way.
    pub faults: Faults,
    /// Response headers, added to the wire's own or replacing them.
    pub headers: BTreeMap<String, String>,
    /// State variables of the script that are set when the reply is chosen.
    pub set: BTreeMap<String, String>,
}

/// The kinds of replies.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The model answers.
    Answer(Answer),
    /// The service answers with an error status.
    Error(ErrorReply),
    /// These bytes, whatever they mean.
    Raw(RawReply),
}

impl Default for Body {
    fn default() -> Self {
        Self::Answer(Answer::default())
    }
}

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
    /// An event of the author's own: bytes that are put into the stream as they are.
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

/// A text, whole or as the pieces in which it is streamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// Cut as [`Answer::chunk`] says.
    Whole(String),
    /// One event for each.
    Pieces(Vec<String>),
}

impl Default for Text {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

/// Thinking. In files a plain text is thinking that the wire shows as it shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "ReasoningFile")]
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

#[derive(Deserialize)]
#[serde(untagged)]
enum ReasoningFile {
    Plain(String),
    Full(ReasoningFields),
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReasoningFields {
    #[serde(deserialize_with = "super::file::one_or_many")]
    text: Vec<Text>,
    signature: Option<String>,
    encrypted: Option<String>,
    open: bool,
    omitted: bool,
}

impl From<ReasoningFile> for Reasoning {
    fn from(file: ReasoningFile) -> Self {
        match file {
            ReasoningFile::Plain(text) => text.into(),
            ReasoningFile::Full(fields) => Self {
                text: fields.text,
                signature: fields.signature,
                encrypted: fields.encrypted,
                open: fields.open,
                omitted: fields.omitted,
            },
        }
    }
}

/// Calls that the model makes side by side. In files a plain list is not interleaved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "CallsFile")]
pub struct Calls {
    /// The calls.
    pub list: Vec<Call>,
    /// Whether pieces of the calls' arguments come in turns.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interleave: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CallsFile {
    List(Vec<Call>),
    Full {
        list: Vec<Call>,
        #[serde(default)]
        interleave: bool,
    },
}

impl From<CallsFile> for Calls {
    fn from(file: CallsFile) -> Self {
        match file {
            CallsFile::List(list) => Self {
                list,
                interleave: false,
            },
            CallsFile::Full { list, interleave } => Self { list, interleave },
        }
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
    /// This word of the wire, known or not.
    Word(String),
    /// Never said.
    Absent,
}

/// What the answer says about its cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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

/// How a text is cut into events.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunking {
    /// A word and the blanks before it.
    #[default]
    Words,
    /// So many characters.
    Chars(usize),
    /// Everything at once.
    Whole,
}

impl Chunking {
    /// Cuts `text`. Joined, the pieces are the text; none is empty.
    pub fn cut<'a>(&self, text: &'a str) -> Vec<&'a str> {
        match *self {
            Self::Whole if text.is_empty() => Vec::new(),
            Self::Whole => vec![text],
            Self::Words => cut_words(text),
            Self::Chars(size) => cut_chars(text, size.max(1)),
        }
    }
}

fn cut_words(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut in_word = false;
    for (at, character) in text.char_indices() {
        let blank = character.is_whitespace();
        if blank && in_word {
            pieces.push(&text[start..at]);
            start = at;
        }
        in_word = !blank;
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

fn cut_chars(text: &str, size: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .char_indices()
            .nth(size)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, behind) = rest.split_at(end);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

impl Text {
    /// The whole text.
    pub fn whole(&self) -> String {
        match self {
            Self::Whole(text) => text.clone(),
            Self::Pieces(pieces) => pieces.concat(),
        }
    }

    /// The events in which it is streamed.
    pub fn pieces(&self, chunking: Chunking) -> Vec<&str> {
        match self {
            Self::Whole(text) => chunking.cut(text),
            Self::Pieces(pieces) => pieces.iter().map(String::as_str).collect(),
        }
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::Whole(text.into())
    }
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

impl Reply {
    /// An answer with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().say(text)
    }

    /// An answer with this one call.
    pub fn call(name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self::new().calls([Call::new(name, arguments)])
    }

    /// An error status with the wire's own body.
    pub fn error(status: u16) -> Self {
        ErrorReply::new(status).into()
    }

    /// Changes the answer; a reply of another kind becomes an empty answer first.
    fn with(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        let mut answer = match self.body {
            Body::Answer(answer) => answer,
            Body::Error(_) | Body::Raw(_) => Answer::default(),
        };
        change(&mut answer);
        self.body = Body::Answer(answer);
        self
    }

    /// Adds a part behind the others.
    #[must_use]
    pub fn part(self, part: Part) -> Self {
        self.with(|answer| answer.parts.push(part))
    }

    /// Adds text.
    #[must_use]
    pub fn say(self, text: impl Into<String>) -> Self {
        self.part(Part::Text(Text::Whole(text.into())))
    }

    /// Adds text, streamed in these pieces.
    #[must_use]
    pub fn pieces<T: Into<String>>(self, pieces: impl IntoIterator<Item = T>) -> Self {
        self.part(Part::Text(Text::Pieces(
            pieces.into_iter().map(Into::into).collect(),
        )))
    }

    /// Adds thinking.
    #[must_use]
    pub fn reasoning(self, reasoning: impl Into<Reasoning>) -> Self {
        self.part(Part::Reasoning(reasoning.into()))
    }

    /// Adds calls, one streamed after the other.
    #[must_use]
    pub fn calls(self, calls: impl IntoIterator<Item = Call>) -> Self {
        let list = calls.into_iter().collect();
        self.part(Part::Calls(Calls {
            list,
            interleave: false,
        }))
    }

    /// Adds calls whose arguments are streamed in turns.
    #[must_use]
    pub fn interleaved_calls(self, calls: impl IntoIterator<Item = Call>) -> Self {
        let list = calls.into_iter().collect();
        self.part(Part::Calls(Calls {
            list,
            interleave: true,
        }))
    }

    /// Adds a refusal.
    #[must_use]
    pub fn refusal(self, text: impl Into<String>) -> Self {
        self.part(Part::Refusal(Text::Whole(text.into())))
    }

    /// Adds silence.
    #[must_use]
    pub fn pause(self, time: Duration) -> Self {
        self.part(Part::Pause(time))
    }

    /// Adds silence until [`Mock::open`](crate::Mock::open) opens the gate.
    #[must_use]
    pub fn gate(self, name: impl Into<String>) -> Self {
        self.part(Part::Gate(name.into()))
    }

    /// Adds an error that ends the stream.
    #[must_use]
    pub fn then_error(self, error: ErrorReply) -> Self {
        self.part(Part::Error(error))
    }

    /// Says why the answer ends.
    #[must_use]
    pub fn finish(self, finish: Finish) -> Self {
        self.with(|answer| answer.finish = Some(finish))
    }

    /// Says what it cost.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Self {
        self.with(|answer| answer.usage = UsagePlan::Exact(usage))
    }

    /// Says nothing about its cost.
    #[must_use]
    pub fn without_usage(self) -> Self {
        self.with(|answer| answer.usage = UsagePlan::Absent)
    }

    /// Cuts texts this way.
    #[must_use]
    pub fn chunk(self, chunk: Chunking) -> Self {
        self.with(|answer| answer.chunk = chunk)
    }

    /// Waits so long before the first token.
    #[must_use]
    pub fn first_token(mut self, delay: Duration) -> Self {
        self.timing.first_token = delay;
        self
    }

    /// Waits so long before each later token.
    #[must_use]
    pub fn per_token(mut self, delay: Duration) -> Self {
        self.timing.per_token = delay;
        self
    }

    /// Waits so long before the status line.
    #[must_use]
    pub fn headers_after(mut self, delay: Duration) -> Self {
        self.timing.headers = delay;
        self
    }

    /// Replaces all delays.
    #[must_use]
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Replaces all faults.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Ends early.
    #[must_use]
    pub fn cut(mut self, after: Position, how: CutHow) -> Self {
        self.faults.cut = Some(Cut { after, how });
        self
    }

    /// Pauses.
    #[must_use]
    pub fn stall(mut self, after: Position, until: Until) -> Self {
        self.faults.stalls.push(Stall { after, until });
        self
    }

    /// Adds or replaces a response header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets a state variable of the script when the reply is chosen.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set.insert(name.into(), value.into());
        self
    }
}

impl From<ErrorReply> for Reply {
    fn from(error: ErrorReply) -> Self {
        Self {
            body: Body::Error(error),
            ..Self::default()
        }
    }
}

impl From<RawReply> for Reply {
    fn from(raw: RawReply) -> Self {
        Self {
            body: Body::Raw(raw),
            ..Self::default()
        }
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_text_join_to_the_text() {
        let text = " Hé  llo,\n你好 👩‍🚀 x ";
        for chunking in [
            Chunking::Words,
            Chunking::Chars(1),
            Chunking::Chars(0),
            Chunking::Whole,
        ] {
            let pieces = chunking.cut(text);
            assert_eq!(pieces.concat(), text, "{chunking:?}");
            assert!(pieces.iter().all(|piece| !piece.is_empty()));
            assert!(chunking.cut("").is_empty());
        }
        assert_eq!(Chunking::Words.cut("a bc  d"), ["a", " bc", "  d"]);
    }

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
