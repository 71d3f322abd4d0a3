//! What adapters of LLM wires are put through: cases, as data.
//!
//! A [`Case`] is a request in neutral terms, the answers that the mock provider gives to it, and the truths: what
//! an adapter that does its work may end up with. A case is named after its hazard, `utf8-cut` or
//! `line-ends/cr`; requirements of the catalogue name hazards. The same case may exist on several wires.
//!
//! - [`truth`]: what is right, and whether a report is;
//! - one file a [`Group`]: [`framing`], [`text`], [`tools`], [`thinking`], [`usage`], [`ends`], [`errors`];
//! - [`requests`] and `continuations`: conversations of several turns; [`content`]: single calls, about what is asked;
//! - [`compatible`]: which of them Gemini's OpenAI-compatible endpoint shares, and what it has of its own.
//!
//! Nothing here does I/O: [`stage::adapter`](crate::stage::adapter) plays cases, the torture matrix plays each with
//! its bytes split everywhere.

use std::{sync::LazyLock, time::Duration};

use serde_json::{Map, Value, json};
use turnwire_mock::{Reply, Usage};
use turnwire_spec::llm::Wire;

pub mod compatible;
pub mod content;
mod continuations;
pub mod ends;
pub mod errors;
pub mod framing;
mod raw;
pub mod requests;
pub mod text;
pub mod thinking;
pub mod tools;
pub mod truth;
pub mod usage;

pub use truth::{Truth, fault, fault_of_deltas};

/// One thing that an adapter is put through.
#[derive(Clone, Debug)]
pub struct Case {
    /// Unique on its wire: the hazard, or the hazard, `/` and which form of it.
    pub id: String,
    /// One line for people.
    pub about: &'static str,
    /// Which scenario plays it.
    pub group: Group,
    /// The request, in neutral terms.
    pub ask: Ask,
    /// What the mock answers, one reply a request; the last one repeats.
    pub replies: Vec<Reply>,
    /// What an adapter may end up with; one of these is enough.
    pub truths: Vec<Truth>,
    /// Longest time until the report, when the usual patience is too long or too short.
    pub within: Option<Duration>,
    /// Whether the bytes of the answer may be split anywhere without a change of the truth.
    pub splits: bool,
}

/// Which scenario plays a case.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Group {
    /// The form of the event stream.
    Framing,
    /// Text and the members around it.
    Text,
    /// Tool calls.
    Tools,
    /// Thinking.
    Thinking,
    /// What it cost.
    Usage,
    /// How the stream ends, and when.
    Ends,
    /// Errors, before and in the stream.
    Errors,
}

/// A request in neutral terms, as `docs/src/adapter-protocol.md` describes it.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Whether the answer is streamed.
    pub stream: bool,
    /// The conversation.
    pub messages: Vec<Value>,
    /// The tools that the model may call.
    pub tools: Vec<Value>,
    /// What else is asked for.
    pub options: Map<String, Value>,
}

impl Default for Ask {
    fn default() -> Self {
        let user = json!({ "role": "user", "content": "Say something." });
        // An adapter that tries again by itself would hide what a single answer did to it.
        let options = Map::from_iter([("retries".to_owned(), json!(0))]);
        Self {
            stream: true,
            messages: vec![user],
            tools: Vec::new(),
            options,
        }
    }
}

impl Ask {
    /// The same, with the two tools that the cases know.
    pub fn with_tools() -> Self {
        let tool = |name: &str, argument: &str| {
            json!({
                "name": name,
                "description": format!("Looks up the {argument}."),
                "parameters": {
                    "type": "object",
                    "properties": { argument: { "type": "string" } },
                },
            })
        };
        Self {
            tools: vec![tool("get_weather", "city"), tool("get_time", "zone")],
            ..Self::default()
        }
    }

    /// The same, not streamed.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.stream = false;
        self
    }

    /// The same, with this option.
    #[must_use]
    pub fn option(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.options.insert(name.to_owned(), value.into());
        self
    }
}

impl Case {
    /// A case that asks for a stream and gets this reply.
    pub fn new(group: Group, id: impl Into<String>, about: &'static str, reply: Reply) -> Self {
        Self {
            id: id.into(),
            about,
            group,
            ask: Ask::default(),
            replies: vec![reply],
            truths: Vec::new(),
            within: None,
            splits: true,
        }
    }

    /// With this request.
    #[must_use]
    pub fn ask(mut self, ask: Ask) -> Self {
        self.ask = ask;
        self
    }

    /// Then this is answered.
    #[must_use]
    pub fn then(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }

    /// This is right; with several, one of them is enough.
    #[must_use]
    pub fn truth(mut self, truth: Truth) -> Self {
        self.truths.push(truth);
        self
    }

    /// This alone is right.
    #[must_use]
    pub fn only(mut self, truth: Truth) -> Self {
        self.truths = vec![truth];
        self
    }

    /// The report comes within this time.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    /// The bytes of the answer stay as they are.
    #[must_use]
    pub fn unsplit(mut self) -> Self {
        self.splits = false;
        self
    }

    /// The hazard that it belongs to.
    pub fn hazard(&self) -> &str {
        hazard_of(&self.id)
    }

    /// The line that the adapter gets.
    pub fn line(&self, wire: Wire, base_url: &str, key: &str) -> Value {
        let mut line = line_of(&self.id, wire, base_url, key, MODEL);
        line["stream"] = json!(self.ask.stream);
        line["messages"] = json!(self.ask.messages);
        line["options"] = json!(self.ask.options);
        if !self.ask.tools.is_empty() {
            line["tools"] = self.ask.tools.clone().into();
        }
        line
    }
}

/// What every line to an adapter begins with: which case, and whom to ask.
fn line_of(id: &str, wire: Wire, base_url: &str, key: &str, model: &str) -> Value {
    json!({
        "case": id,
        "wire": wire.as_str(),
        "baseUrl": base_url,
        "apiKey": key,
        "model": model,
    })
}

/// The model that adapters ask for; the mock has it on every wire.
pub const MODEL: &str = "mock-model";

/// The key that adapters are given.
pub const KEY: &str = "tw-adapter-key";

/// The hazard of a case id: what stands before its first `/`.
pub fn hazard_of(id: &str) -> &str {
    id.split('/').next().unwrap_or_default()
}

/// Whether a case id is this id, or belongs to this hazard.
pub fn is_of(id: &str, wanted: &str) -> bool {
    let rest = id.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The wire of this name.
pub fn wire(name: &str) -> Option<Wire> {
    Wire::ALL.into_iter().find(|wire| wire.as_str() == name)
}

/// The cases of a wire, group by group.
pub fn of(wire: Wire) -> &'static [Case] {
    static CHAT: LazyLock<Vec<Case>> = LazyLock::new(|| all(Wire::OpenaiChat));
    static RESPONSES: LazyLock<Vec<Case>> = LazyLock::new(|| all(Wire::OpenaiResponses));
    static ANTHROPIC: LazyLock<Vec<Case>> = LazyLock::new(|| all(Wire::AnthropicMessages));
    static GEMINI: LazyLock<Vec<Case>> = LazyLock::new(|| all(Wire::Gemini));
    static COMPATIBLE: LazyLock<Vec<Case>> =
        LazyLock::new(|| compatible::cases(all(Wire::GeminiOpenai)));
    match wire {
        Wire::OpenaiChat => &CHAT,
        Wire::GeminiOpenai => &COMPATIBLE,
        Wire::OpenaiResponses => &RESPONSES,
        Wire::AnthropicMessages => &ANTHROPIC,
        Wire::Gemini => &GEMINI,
    }
}

/// The case of this id.
pub fn find(wire: Wire, id: &str) -> Option<&'static Case> {
    of(wire).iter().find(|case| case.id == id)
}

fn all(wire: Wire) -> Vec<Case> {
    let groups = [
        framing::cases(wire),
        text::cases(wire),
        tools::cases(wire),
        thinking::cases(wire),
        usage::cases(wire),
        ends::cases(wire),
        errors::cases(wire),
    ];
    groups.concat()
}

/// A text with characters of two, three and four bytes in UTF-8.
const TEXT: &str = "Héllo wörld, 你好 and 👩‍🚀 too.";

/// What most answers cost.
const COST: Usage = Usage {
    input: 11,
    output: 7,
    cached: 0,
    cache_write: 0,
    reasoning: 0,
    total: None,
};

/// An answer with [`TEXT`], word by word.
fn answer() -> Reply {
    Reply::text(TEXT).usage(COST)
}

/// What [`answer`] comes to.
fn truth() -> Truth {
    Truth::text(TEXT).finish("stop").usage(COST)
}

#[cfg(test)]
mod tests;
