//! What adapters are given to say: texts, images, and targets that take them or do not.
//!
//! A [`Piece`] is one call in neutral terms, on one wire, with the answers that it gets and what it may end up
//! with. Checks look at the requests that it leads to, too: the catalogue's rules of area `llm-content` name the
//! ids, and the sabotages find the requests by their models, so each piece asks for a model of its own.
//!
//! The neutral message format is this project's: a piece with a [`Feature`] is played only to adapters which say
//! that they have it. Pieces are no part of the torture matrix, since they are about requests.
//!
//! - [`forms`]: the three forms of a content;
//! - [`images`]: how images are encoded on each wire;
//! - [`inputs`]: who gets images, and what fits into a fallback;
//! - [`gemini`]: calls of Gemini's native wire;
//! - [`tags`]: thinking that a model writes into its text (area `llm-reasoning`);
//! - [`timing`]: thinking, and what counts as a sign of life (area `llm-reasoning`);
//! - [`waits`]: when the service asks to wait (area `llm-waits`).

use serde_json::{Value, json};
use turnwire_mock::{Reply, Rule, Script};
use turnwire_spec::llm::Wire;

use super::{Truth, line_of};

mod forms;
mod gemini;
mod images;
mod inputs;
mod tags;
mod timing;
mod waits;

/// One call that an adapter is asked to make.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its id, which labels its exchanges: the hazard, or the hazard, `/` and which form of it.
    pub id: String,
    /// The wire that the adapter is to speak.
    pub wire: Wire,
    /// What an adapter must have for it.
    pub feature: Option<Feature>,
    /// The model that is asked for; by default the hazard.
    pub model: String,
    /// The conversation. An image that begins with [`ROOT`] is below the mock's own address.
    pub messages: Vec<Value>,
    /// What the adapter is told beside the messages: `tools`, `stream`, `options`.
    pub more: Value,
    /// What the mock answers, one reply a request; the last one repeats.
    pub replies: Vec<Reply>,
    /// What an adapter may end up with; one of these is enough.
    pub truths: Vec<Truth>,
}

/// What not every adapter has; one says so with `features` when it is ready.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Feature {
    /// It takes contents in the neutral message format itself.
    Content,
    /// It knows which models take images, and what fits into a fallback.
    Inputs,
    /// It takes thinking between `<think>` tags out of the text, and reports `deltas`.
    ThinkTags,
    /// It reports what a service wants back of its answers, and sends it to that service alone.
    Continuation,
}

/// Which scenario plays a piece.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Theme {
    /// The three forms of a content.
    Forms,
    /// How images are encoded.
    Images,
    /// Who gets images.
    Inputs,
    /// Calls of Gemini's native wire.
    Calls,
    /// Images of a megabyte and more.
    Large,
    /// Thinking and time.
    Timing,
    /// Thinking in the text.
    Tags,
    /// Waits that the service asks for.
    Waits,
}

impl Theme {
    /// All themes.
    pub const ALL: [Self; 8] = [
        Self::Forms,
        Self::Images,
        Self::Inputs,
        Self::Calls,
        Self::Large,
        Self::Timing,
        Self::Tags,
        Self::Waits,
    ];
}

/// Stands for the address of the mock at the start of an image's URL.
pub const ROOT: &str = "{root}";

/// What the model answers.
const ANSWER: &str = "Fine.";

impl Feature {
    /// All features.
    pub const ALL: [Self; 4] = [
        Self::Content,
        Self::Inputs,
        Self::ThinkTags,
        Self::Continuation,
    ];

    /// Its name in the adapter protocol, and in the `needs` of requirements.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Inputs => "inputs",
            Self::ThinkTags => "think-tags",
            Self::Continuation => "continuation",
        }
    }

    /// The feature of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|feature| feature.name() == name)
    }

    /// Whether the line in which an adapter says that it is ready names it.
    pub fn is_in(self, ready: &Value) -> bool {
        ready["features"]
            .as_array()
            .is_some_and(|list| list.iter().any(|one| one == self.name()))
    }
}

/// The pieces of a theme in the suite of a wire; none where the suite has nothing of it. What holds on each wire is
/// played in the suite of Chat Completions, on every wire that the adapter speaks.
pub fn pieces(theme: Theme, suite: Wire) -> Vec<Piece> {
    match (theme, suite) {
        (Theme::Forms, Wire::OpenaiChat) => forms::all(),
        (Theme::Images, Wire::OpenaiChat) => images::chat(),
        (Theme::Images, Wire::OpenaiResponses) => images::responses(),
        (Theme::Images, Wire::AnthropicMessages) => images::anthropic(),
        (Theme::Images, Wire::Gemini) => images::gemini(),
        (Theme::Inputs, Wire::OpenaiChat) => inputs::all(),
        (Theme::Calls, Wire::Gemini) => gemini::all(),
        (Theme::Large, Wire::OpenaiChat) => vec![inputs::large()],
        (Theme::Large, Wire::Gemini) => vec![gemini::large()],
        (Theme::Timing, suite) if EACH.contains(&suite) => timing::all(suite),
        (Theme::Tags, Wire::OpenaiChat | Wire::OpenaiResponses) => tags::all(suite),
        (Theme::Waits, suite) => waits::all(suite),
        _ => Vec::new(),
    }
}

/// All pieces in the suite of a wire.
pub fn all(suite: Wire) -> impl Iterator<Item = Piece> {
    Theme::ALL
        .into_iter()
        .flat_map(move |theme| pieces(theme, suite))
}

/// The wires with an encoding of their own.
const EACH: [Wire; 4] = [
    Wire::OpenaiChat,
    Wire::OpenaiResponses,
    Wire::AnthropicMessages,
    Wire::Gemini,
];

/// The same on each wire, under the hazard's name and the wire's.
fn on_each(hazard: &str, messages: &[Value]) -> Vec<Piece> {
    on(&EACH, hazard, messages)
}

fn on(wires: &[Wire], hazard: &str, messages: &[Value]) -> Vec<Piece> {
    let piece = |wire: &Wire| Piece::new(*wire, &format!("{hazard}/{wire}"), messages.to_vec());
    wires.iter().map(piece).collect()
}

impl Piece {
    /// A call that is not streamed and gets [`ANSWER`], for adapters that take contents.
    fn new(wire: Wire, id: &str, messages: Vec<Value>) -> Self {
        Self {
            id: id.to_owned(),
            wire,
            feature: Some(Feature::Content),
            model: super::hazard_of(id).to_owned(),
            messages,
            more: json!({ "stream": false, "options": { "retries": 0 } }),
            replies: vec![Reply::text(ANSWER)],
            truths: vec![Truth::text(ANSWER)],
        }
    }

    /// For adapters that have this, or for all.
    fn needs(mut self, feature: Option<Feature>) -> Self {
        self.feature = feature;
        self
    }

    fn model(mut self, model: &str) -> Self {
        model.clone_into(&mut self.model);
        self
    }

    fn option(mut self, name: &str, value: Value) -> Self {
        self.more["options"][name] = value;
        self
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.more[name] = value;
        self
    }

    fn reply(mut self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.replies = replies.into_iter().collect();
        self
    }

    fn truth(mut self, truth: Truth) -> Self {
        self.truths = vec![truth];
        self
    }

    /// What the mock is to answer.
    pub fn script(&self) -> Script {
        let rule = Rule::new(self.id.clone()).lenient();
        self.replies.iter().cloned().fold(rule, Rule::reply).into()
    }

    /// The line that the adapter gets.
    pub fn line(&self, root: &str, base_url: &str, key: &str) -> Value {
        let mut line = line_of(&self.id, self.wire, base_url, key, &self.model);
        line["messages"] = json!(self.messages);
        for part in line["messages"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .filter_map(|message| message["content"].as_array_mut())
            .flatten()
        {
            let below = part["image"]
                .as_str()
                .and_then(|url| url.strip_prefix(ROOT));
            if let Some(path) = below {
                part["image"] = Value::from(format!("{root}{path}"));
            }
        }
        for (name, value) in self.more.as_object().into_iter().flatten() {
            line[name.as_str()] = value.clone();
        }
        line
    }
}

fn user(content: Value) -> Value {
    json!({ "role": "user", "content": content })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// An image whose type is to be found out.
fn image(image: &str) -> Value {
    json!({ "type": "image", "image": image })
}

fn typed(image: &str, media_type: &str) -> Value {
    json!({ "type": "image", "image": image, "mediaType": media_type })
}

/// A user's message with a text and this image.
fn shown(image: Value) -> Vec<Value> {
    vec![user(json!([text("look"), image]))]
}

/// The smallest PNG that is one.
const PNG: &str = super::requests::IMAGE;
/// The beginning of a JPEG.
const JPEG: &str = "/9j/4AAQSkZJRgABAQ==";
/// The beginning of a GIF.
const GIF: &str = "R0lGODlhAQABAIAAAAAAAA==";
/// The beginning of a WebP.
const WEBP: &str = "UklGRiQAAABXRUJQVlA4IA==";
/// What is none of these.
const BYTES: &str = "AAECAwABAgMAAQID";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use turnwire_spec::catalogue::Rule;

    use super::*;
    use crate::{suites, transcript::views::messages::label_fits};

    #[test]
    fn no_two_pieces_of_a_suite_have_one_id() {
        for suite in EACH {
            let mut ids = BTreeSet::new();
            for piece in all(suite) {
                assert!(ids.insert(piece.id.clone()), "{suite}: {}", piece.id);
            }
            assert!(!ids.is_empty(), "{suite} has pieces");
        }
    }

    #[test]
    fn a_feature_is_found_by_its_name_and_in_what_an_adapter_says() {
        for feature in Feature::ALL {
            assert_eq!(Feature::named(feature.name()), Some(feature));
        }
        assert_eq!(Feature::named("relay"), None);
        let ready = json!({ "ready": true, "features": ["think-tags"] });
        assert!(Feature::ThinkTags.is_in(&ready));
        assert!(!Feature::Content.is_in(&ready));
        assert!(!Feature::Content.is_in(&json!({ "ready": true })));
    }

    #[test]
    fn an_image_below_the_mock_gets_its_address() {
        let piece = Piece::new(Wire::OpenaiChat, "a", shown(image("{root}/a.png")));
        let line = piece.line("http://127.0.0.1:1", "http://127.0.0.1:1/v1", "k");
        assert_eq!(
            line["messages"][0]["content"][1]["image"],
            "http://127.0.0.1:1/a.png"
        );
        assert_eq!(line["options"]["retries"], 0);
    }

    /// What a rule says that it is about: labels, and hazards with all of their forms.
    fn subjects(rule: &Rule) -> Vec<String> {
        match rule {
            Rule::All(rules) => rules.iter().flat_map(subjects).collect(),
            Rule::Asked(asked) => asked.label.clone(),
            Rule::Outcome(outcome) => {
                vec![outcome.hazard.clone(), format!("{}/*", outcome.hazard)]
            }
            Rule::Said(said) => vec![said.hazard.clone(), format!("{}/*", said.hazard)],
            Rule::Waits(waits) => vec![waits.hazard.clone(), format!("{}/*", waits.hazard)],
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_piece_is_judged_and_every_rule_has_a_piece() {
        for wire in EACH {
            let all: Vec<_> = all(wire).collect();
            let suite = suites::find(wire.as_str()).unwrap();
            // Entries about time hold on every wire and stand in one suite, which plays all wires.
            let timing = suites::find("openai-chat").unwrap().entries(None);
            let timing =
                timing.filter(|entry| entry.scenario.iter().any(|name| name == "reasoning-timing"));
            let own = suite.entries(None).filter(|entry| {
                entry.id.starts_with("LLM-CONTENT-")
                    || entry
                        .scenario
                        .iter()
                        .any(|name| ["reasoning-tags", "waits"].contains(&name.as_str()))
            });
            let rules: Vec<_> = own
                .chain(timing)
                .filter_map(|entry| Some((&entry.id, subjects(entry.rule.as_ref()?))))
                .collect();
            let fits = |piece: &Piece, subject: &String| label_fits(Some(subject), &piece.id);
            for piece in &all {
                let judged = rules
                    .iter()
                    .flat_map(|(_, subjects)| subjects)
                    .any(|subject| fits(piece, subject));
                assert!(judged, "{wire}: {}", piece.id);
            }
            for (id, subjects) in &rules {
                let has_piece = |subject: &String| all.iter().any(|piece| fits(piece, subject));
                assert!(subjects.iter().any(has_piece), "{id}: {subjects:?}");
            }
        }
    }
}
