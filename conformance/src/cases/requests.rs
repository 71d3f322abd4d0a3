//! Conversations that make an adapter send what the service's rules about requests are about.
//!
//! A [`Talk`] is a conversation of several turns in neutral terms, with the script of the mock that answers it.
//! What the adapter reported of a turn becomes history for the next one, its `continuation` included. A turn may
//! go to another model, wire or address than the first one.
//!
//! The places in the catalogue's sabotages of `llm-requests` are those of the conversations here, as each wire writes
//! them. [`continuations`](super::continuations) has those that take what a service wants back elsewhere.

use serde_json::{Value, json};
use turnwire_mock::{
    Call, ErrorReply, Reasoning, Reply, Rule, Script, When,
    script::{Echo, Service},
};
use turnwire_spec::llm::Wire;

use super::{Truth, content::Feature, continuations};

/// A conversation.
#[derive(Clone, Debug)]
pub struct Talk {
    /// Its name; with the number of a turn behind it, it is the turn's case and labels its exchanges.
    pub id: &'static str,
    /// The wire that the adapter is to speak.
    pub wire: Wire,
    /// The model that is asked for.
    pub model: &'static str,
    /// What an adapter must have for it. Then there are two addresses, and the catalogue's rules judge the requests;
    /// else there is one, whose mock judges them as the service would.
    pub feature: Option<Feature>,
    /// What the mock answers.
    pub script: Script,
    /// What the adapter is told beside the messages: `tools`, `toolChoice`, `stream`, `options`.
    pub more: Value,
    /// Later turns go on from the answer that the service stored, when the adapter reports its `responseId`: then
    /// they hold only what they add. Without one there is nothing to go on from.
    pub stored: bool,
    /// The turns, in order.
    pub turns: Vec<Turn>,
}

/// One request of a conversation. By default it goes where the conversation goes.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// The messages that it adds. The id `@N` stands for that of call number N of the last report.
    pub added: Vec<Value>,
    /// Another wire.
    pub wire: Option<Wire>,
    /// Another model.
    pub model: Option<&'static str>,
    /// Which address it goes to, 0 or 1.
    pub place: usize,
    /// Whether the conversation begins anew with it.
    pub anew: bool,
    /// What the adapter may end up with; nothing, where the report is not looked at.
    pub truths: Vec<Truth>,
}

impl From<Vec<Value>> for Turn {
    fn from(added: Vec<Value>) -> Self {
        Self {
            added,
            ..Self::default()
        }
    }
}

impl Talk {
    /// All wires that it is on.
    pub fn wires(&self) -> impl Iterator<Item = Wire> {
        let others = self.turns.iter().filter_map(|turn| turn.wire);
        std::iter::once(self.wire).chain(others)
    }
}

/// Which scenario plays a conversation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Theme {
    /// Texts, images, calls and results, on the wire of the suite.
    History,
    /// The same on Gemini's OpenAI-compatible endpoint.
    Compatible,
    /// A service that wants thinking back.
    Thinking,
    /// An answer that fails, and the second attempt.
    Again,
    /// A conversation that the service keeps.
    Stored,
    /// Thinking that goes back in the member in which it came.
    SentBack,
    /// What a service gave in a form of its own goes back to the same service alone.
    Native,
}

/// The smallest image that is one.
pub(super) const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// What the model answers in the end: where a schema is asked for, JSON of it.
const ANSWER: &str = r#"{"at":1}"#;

/// The conversations of a theme on the wire of a suite; none where the wire has nothing of it.
pub fn talks(theme: Theme, wire: Wire) -> Vec<Talk> {
    match (theme, wire) {
        (Theme::History, Wire::OpenaiChat) => vec![chat()],
        (Theme::History, Wire::OpenaiResponses) => vec![responses()],
        (Theme::History, Wire::AnthropicMessages) => vec![anthropic()],
        (Theme::History, Wire::Gemini) => vec![gemini()],
        (Theme::Compatible, Wire::GeminiOpenai) => vec![compatible()],
        (Theme::Thinking, Wire::OpenaiChat) => vec![thinking()],
        (Theme::Stored, Wire::OpenaiResponses) => vec![stored()],
        (Theme::Again, wire) => vec![again(wire)],
        (Theme::SentBack, Wire::OpenaiChat) => continuations::members(),
        (Theme::Native, Wire::OpenaiChat) => continuations::native(),
        (Theme::Native, Wire::Gemini) => continuations::gemini(),
        _ => Vec::new(),
    }
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "at": { "type": "integer" } }, "required": ["at"],
        "additionalProperties": false })
}

pub(super) fn look() -> Value {
    json!({ "name": "look", "description": "Looks.", "parameters": schema(), "strict": true })
}

pub(super) fn calls() -> [Call; 2] {
    let call = |at: u64, id: &str| Call::new("look", json!({ "at": at })).id(id);
    [call(1, "id_a"), call(2, "id_b")]
}

fn system() -> Value {
    json!({ "role": "system", "content": "Answer in JSON." })
}

pub(super) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn user_with_image(text: &str) -> Value {
    json!({ "role": "user", "content": [
        { "type": "text", "text": text },
        { "type": "image", "image": IMAGE, "mediaType": "image/png" }] })
}

pub(super) fn result(id: &str, text: &str) -> Value {
    json!({ "role": "tool", "toolCallId": id, "content": text })
}

/// What the mock says: calls with thinking, then [`ANSWER`].
fn script(thinking: Reply) -> Script {
    let asked = |text: &str, step| When::new().last_user(text).step(step);
    Script::new("requests")
        .rule(
            Rule::new("calls")
                .when(asked("What is this", 0))
                .reply(thinking.calls(calls())),
        )
        .rule(
            Rule::new("text")
                .when(asked("What is this", 1))
                .reply(ANSWER),
        )
        .rule(Rule::new("rest").reply(ANSWER))
}

/// One request with the whole history, because nothing of it is the service's own.
fn chat() -> Talk {
    let call = |id: &str, at: u64| json!({ "id": id, "name": "look", "arguments": { "at": at } });
    Talk {
        id: "requests/history",
        wire: Wire::OpenaiChat,
        model: "gpt-5.2",
        feature: None,
        script: script(Reply::new()),
        more: json!({ "stream": true, "tools": [look()], "toolChoice": { "name": "look" },
            "options": { "maxTokens": 100, "thinking": { "effort": "low" }, "responseSchema": schema(),
                "parallelToolCalls": true, "retries": 0 } }),
        stored: false,
        turns: vec![
            vec![
                system(),
                user_with_image("What is that?"),
                json!({ "role": "assistant", "content": null,
                "toolCalls": [call("id_a", 1), call("id_b", 2)] }),
                result("id_a", "a cat"),
                result("id_b", "a dog"),
                json!({ "role": "assistant", "content": "A cat and a dog." }),
                user("Thanks."),
            ]
            .into(),
        ],
    }
}

fn responses() -> Talk {
    Talk {
        id: "requests/history",
        wire: Wire::OpenaiResponses,
        model: "gpt-5.2",
        feature: None,
        script: script(Reply::new().reasoning("Hm.")),
        more: json!({ "stream": false, "tools": [look()], "toolChoice": "auto",
            "options": { "maxTokens": 100, "thinking": { "effort": "low" }, "responseSchema": schema(),
                "parallelToolCalls": true, "retries": 0 } }),
        stored: false,
        turns: vec![
            vec![user_with_image("What is this?")].into(),
            vec![result("@0", "a cat"), result("@1", "a dog")].into(),
            vec![user("Thanks.")].into(),
        ],
    }
}

fn anthropic() -> Talk {
    let hidden = Reasoning {
        encrypted: Some("aGlkZGVu".to_owned()),
        ..Reasoning::default()
    };
    let thinking = Reply::new()
        .reasoning("Two looks.")
        .reasoning(hidden)
        .say("Let me see.");
    Talk {
        id: "requests/history",
        wire: Wire::AnthropicMessages,
        model: "claude-opus-4-8",
        feature: None,
        script: script(thinking),
        more: json!({ "stream": false, "tools": [look()], "toolChoice": "auto",
            "options": { "maxTokens": 4096, "thinking": { "budgetTokens": 1024 }, "retries": 0 } }),
        stored: false,
        turns: vec![
            vec![system(), user_with_image("What is this?")].into(),
            vec![result("@0", "a cat"), result("@1", "a dog"), user("Go on.")].into(),
        ],
    }
}

fn gemini() -> Talk {
    Talk {
        id: "requests/history",
        wire: Wire::Gemini,
        model: "gemini-3-pro",
        feature: None,
        script: script(Reply::new().reasoning("Hm.")),
        more: json!({ "stream": false, "tools": [look()], "toolChoice": "auto",
            "options": { "maxTokens": 100, "thinking": true, "responseSchema": schema(), "retries": 0 } }),
        stored: false,
        turns: vec![
            vec![system(), user_with_image("What is this?")].into(),
            vec![result("@0", "a cat"), result("@1", "a dog")].into(),
        ],
    }
}

fn compatible() -> Talk {
    Talk {
        id: "requests/compatible",
        wire: Wire::GeminiOpenai,
        model: "gemini-3-pro",
        feature: None,
        script: script(Reply::new().reasoning("Hm.")),
        more: json!({ "stream": false, "tools": [look()], "toolChoice": "auto",
            "options": { "thinking": { "effort": "low" }, "retries": 0 } }),
        stored: false,
        turns: vec![
            vec![system(), user_with_image("What is this?")].into(),
            vec![
                result("@0", "a cat"),
                result("@1", "a dog"),
                json!({ "role": "assistant", "content": "Hm." }),
            ]
            .into(),
        ],
    }
}

/// DeepSeek wants the thinking of a turn with calls back.
fn thinking() -> Talk {
    let asked = |step| When::new().last_user("Think").step(step);
    let thought = Reply::new()
        .reasoning("Two looks.")
        .calls(calls())
        .service(Service::Deepseek);
    let script = Script::new("requests")
        .rule(Rule::new("calls").when(asked(0)).reply(thought))
        .rule(
            Rule::new("text")
                .when(asked(1))
                .echo(Echo::Required)
                .reply("A cat and a dog."),
        );
    Talk {
        id: "requests/thinking",
        wire: Wire::OpenaiChat,
        model: "deepseek-reasoner",
        feature: None,
        script,
        more: json!({ "stream": true, "tools": [look()], "options": { "retries": 0 } }),
        stored: false,
        turns: vec![
            vec![system(), user("Think.")].into(),
            vec![result("@0", "a cat"), result("@1", "a dog")].into(),
        ],
    }
}

fn again(wire: Wire) -> Talk {
    let script = Script::new("requests").rule(
        Rule::new("again")
            .reply(ErrorReply::new(500).retry_after(0.0))
            .reply("At last."),
    );
    Talk {
        id: "requests/again",
        wire,
        model: super::MODEL,
        feature: None,
        script,
        more: json!({ "stream": false, "options": { "retries": 1, "backoffMs": 10 } }),
        stored: false,
        turns: vec![vec![user("Try until it works.")].into()],
    }
}

fn stored() -> Talk {
    Talk {
        id: "requests/stored",
        wire: Wire::OpenaiResponses,
        model: "gpt-5.2",
        feature: None,
        script: Script::new("requests").rule(Rule::new("rest").reply("Fine.")),
        more: json!({ "stream": false, "options": { "retries": 0 } }),
        stored: true,
        turns: vec![vec![user("Hello.")].into(), vec![user("Go on.")].into()],
    }
}
