//! What a request says, in one model for all wires.

use std::borrow::Cow;

use http::HeaderMap;
use serde_json::Value;
use turnwire_spec::llm::Wire;

/// What a request says, whatever its wire.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The wire.
    pub wire: Wire,
    /// The HTTP method.
    pub method: &'a str,
    /// The path without the query.
    pub path: &'a str,
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// The whole body.
    pub body: &'a Value,
    /// What the wire module read from it.
    pub talk: Talk<'a>,
}

/// The conversation in a request.
#[derive(Debug, Default)]
pub struct Talk<'a> {
    /// The model's id.
    pub model: Cow<'a, str>,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// The instructions.
    pub system: Vec<Cow<'a, str>>,
    /// The messages, oldest first, without instructions.
    pub turns: Vec<Turn<'a>>,
    /// The names of the tools on offer.
    pub tools: Vec<&'a str>,
}

/// Who said something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Speaker {
    /// The user, or the program that answers calls.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Debug)]
pub struct Turn<'a> {
    /// Who said it.
    pub speaker: Speaker,
    /// Its text parts, joined by newlines.
    pub text: Cow<'a, str>,
    /// How many images it has.
    pub images: usize,
    /// The results of calls in it.
    pub results: Vec<ToolResult<'a>>,
}

/// The result of a call.
#[derive(Debug)]
pub struct ToolResult<'a> {
    /// The call's id, empty where the wire has none.
    pub id: Cow<'a, str>,
    /// The function's name, found through the id where the wire does not repeat it.
    pub name: Cow<'a, str>,
    /// The result's text.
    pub text: Cow<'a, str>,
}

impl Talk<'_> {
    /// How many turns of the assistant there are.
    pub fn assistant_turns(&self) -> usize {
        self.turns
            .iter()
            .filter(|turn| turn.speaker == Speaker::Assistant)
            .count()
    }

    /// The last message of the user that has a text or an image.
    pub fn last_user(&self) -> Option<&Turn<'_>> {
        self.last_user_at().and_then(|at| self.turns.get(at))
    }

    fn last_user_at(&self) -> Option<usize> {
        self.turns.iter().rposition(|turn| {
            turn.speaker == Speaker::User && (!turn.text.is_empty() || turn.images > 0)
        })
    }

    /// How many turns of the assistant came since the last message of the user.
    pub fn step(&self) -> usize {
        let from = self.last_user_at().unwrap_or(0);
        let since = self.turns.get(from..).unwrap_or_default();
        since
            .iter()
            .filter(|turn| turn.speaker == Speaker::Assistant)
            .count()
    }

    /// The results that came after the last turn of the assistant.
    pub fn new_results(&self) -> impl Iterator<Item = &ToolResult<'_>> {
        let after = self
            .turns
            .iter()
            .rposition(|turn| turn.speaker == Speaker::Assistant)
            .map_or(0, |at| at + 1);
        self.turns[after..]
            .iter()
            .flat_map(|turn| turn.results.iter())
    }
}
