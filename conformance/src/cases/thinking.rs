//! Thinking: apart from the text, once, and only what is meant to be read.

use serde_json::json;
use turnwire_mock::script::{Chunking, ReasoningField, SignaturePlace, Variation};
use turnwire_mock::{Edit, Reasoning, Reply};
use turnwire_spec::llm::Wire;

use super::{COST, Case, Group, TEXT, truth, truth::Truth};

/// What the model thinks.
const THOUGHT: &str = "Let mé think.";

fn case(id: &str, about: &'static str, reply: Reply, truth: Truth) -> Case {
    Case::new(Group::Thinking, id, about, reply.usage(COST)).truth(truth)
}

fn thinks() -> Reply {
    Reply::new().reasoning(THOUGHT).say(TEXT)
}

fn apart() -> Truth {
    truth().thinking(THOUGHT)
}

/// The cases of this group.
pub fn cases(wire: Wire) -> Vec<Case> {
    match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => chat(),
        Wire::OpenaiResponses => [shared(), responses()].concat(),
        Wire::AnthropicMessages => [shared(), anthropic()].concat(),
        Wire::Gemini => [shared(), gemini()].concat(),
    }
}

fn shared() -> Vec<Case> {
    vec![
        case("thinking", "thinking, then text", thinks(), apart()),
        case(
            "thinking-only",
            "thinking and no text",
            Reply::new().reasoning(THOUGHT),
            Truth::text("").thinking(THOUGHT).finish("stop").usage(COST),
        ),
    ]
}

fn chat() -> Vec<Case> {
    let field = |reasoning_field| {
        thinks().variation(Variation {
            reasoning_field,
            ..Variation::default()
        })
    };
    let tags = |pieces: &[&str]| Reply::new().pieces(pieces.iter().copied());
    let beside = {
        let mut edit = Edit::all().set("/choices/0/delta/reasoning_content", "");
        edit.on.contains = Some("\"delta\":{\"content\"".to_owned());
        Reply::text(TEXT).edit(edit)
    };
    let null = {
        let mut edit = Edit::all().set("/choices/0/delta/reasoning_content", json!(null));
        edit.on.contains = Some("\"delta\":{\"content\"".to_owned());
        Reply::text(TEXT).edit(edit)
    };
    let tagged = Truth::text("Hello.")
        .thinking("Hm.")
        .finish("stop")
        .usage(COST);
    let plain = |text: &str| Truth::text(text).thinking("").finish("stop").usage(COST);
    vec![
        case(
            "reasoning-fields/reasoning-content",
            "in reasoning_content",
            field(ReasoningField::ReasoningContent),
            apart(),
        ),
        case(
            "reasoning-fields/reasoning",
            "in reasoning",
            field(ReasoningField::Reasoning),
            apart(),
        ),
        case(
            "reasoning-fields/both",
            "in both, with the same text",
            field(ReasoningField::Both),
            apart(),
        ),
        case(
            "reasoning-fields/details",
            "in reasoning and reasoning_details",
            field(ReasoningField::Details),
            apart(),
        ),
        case(
            "reasoning-fields/content-list",
            "in a list of content parts",
            field(ReasoningField::ContentArray),
            apart(),
        ),
        case(
            "no-reasoning/empty",
            "an empty reasoning_content beside text",
            beside,
            truth().thinking(""),
        ),
        case(
            "no-reasoning/null",
            "a null reasoning_content beside text",
            null,
            truth().thinking(""),
        ),
        case(
            "think-tags/whole",
            "<think> tags in the text",
            tags(&["<think>", "Hm.", "</think>", "Hello."]),
            tagged.clone(),
        ),
        case(
            "think-tags/cut",
            "<think> tags cut over deltas",
            tags(&["<thi", "nk>Hm", ".</th", "ink>Hel", "lo."]),
            tagged.clone(),
        ),
        case(
            "think-tags/characters",
            "<think> tags, one character a delta",
            Reply::text("<think>Hm.</think>Hello.").chunk(Chunking::Chars(1)),
            tagged,
        ),
        case(
            "no-think-tags/like",
            "what begins like a tag and is none",
            tags(&["a <", " b and <thi", "ng> </thin", "g>."]),
            plain("a < b and <thing> </thing>."),
        ),
        case(
            "no-think-tags/open-end",
            "a text that ends like a tag begins",
            tags(&["a <thi"]),
            plain("a <thi"),
        ),
    ]
}

fn responses() -> Vec<Case> {
    let parts = Reasoning {
        text: ["First.", "Second."].map(Into::into).to_vec(),
        ..Reasoning::default()
    };
    let hidden = Reasoning {
        encrypted: Some("c2VjcmV0".to_owned()),
        ..Reasoning::default()
    };
    let open = Reasoning {
        open: true,
        ..THOUGHT.into()
    };
    let both = |between: &str| truth().thinking(&format!("First.{between}Second."));
    vec![
        case(
            "summary-parts",
            "a summary in two parts",
            Reply::new().reasoning(parts).say(TEXT),
            both("\n\n"),
        )
        .truth(both("\n")),
        case(
            "hidden-thinking",
            "thinking that only the service can read",
            Reply::new().reasoning(hidden).say(TEXT),
            truth().thinking(""),
        ),
        case(
            "open-thinking",
            "thinking as text, not as a summary",
            Reply::new().reasoning(open).say(TEXT),
            apart(),
        ),
    ]
}

fn anthropic() -> Vec<Case> {
    let omitted = Reasoning {
        omitted: true,
        signature: Some("c2ln".to_owned()),
        ..Reasoning::default()
    };
    let hidden = Reasoning {
        encrypted: Some("c2VjcmV0".to_owned()),
        ..Reasoning::default()
    };
    vec![
        case(
            "signature-only",
            "thinking that is signed and not shown",
            Reply::new().reasoning(omitted).say(TEXT),
            truth().thinking(""),
        ),
        case(
            "hidden-thinking",
            "thinking that only the service can read",
            Reply::new().reasoning(hidden).say(TEXT),
            truth().thinking(""),
        ),
    ]
}

fn gemini() -> Vec<Case> {
    let signature = |signature| {
        thinks().variation(Variation {
            signature,
            ..Variation::default()
        })
    };
    vec![case(
        "signature-on-empty-text",
        "the signature on an empty text in the last event",
        signature(SignaturePlace::EmptyText),
        apart(),
    )]
}
