//! Calls of Gemini's native wire: its methods, tools, structured output, cost, and what it never asks for.

use serde_json::{Value, json};
use turnwire_mock::{Reply, Usage};
use turnwire_spec::llm::Wire;

use super::{Feature, Piece, shown, typed, user};
use crate::cases::Truth;

/// Names of models of which a catalogue says that they can do more than write.
const DRAWS: &str = "gemini-2.5-flash-image";
const EMBEDS: &str = "gemini-embedding-001";
const SEARCHES: &str = "gemini-2.5-pro";

/// The pieces.
pub(super) fn all() -> Vec<Piece> {
    let cost = Usage {
        input: 100,
        output: 50,
        cached: 40,
        reasoning: 30,
        ..Usage::default()
    };
    let paid = |id: &str| {
        plain(id)
            .reply([Reply::text("Fine.").usage(cost)])
            .truth(Truth::text("Fine.").usage(cost).details(cost))
    };
    let options = json!({ "google": {
        "thinkingConfig": { "thinkingBudget": 7 }, "cachedContent": "cachedContents/x1", "seed": 99 } });
    vec![
        plain("content-generate"),
        plain("content-stream").with("stream", json!(true)),
        plain("content-answer")
            .reply([Reply::text("ok-1")])
            .truth(Truth::text("ok-1")),
        plain("content-chunks")
            .with("stream", json!(true))
            .reply([Reply::new().pieces(["ab", "cd", "ef"])])
            .truth(Truth::text("abcdef")),
        plain("content-tools").with("tools", tools()),
        object("content-object", r#"{"place":"here"}"#).truth(Truth::text(r#"{"place":"here"}"#)),
        object("content-object-invalid", r#"{"other":1}"#)
            .truth(Truth::error(&["invalid-output", "protocol"])),
        paid("content-thoughts"),
        paid("content-cached"),
        plain("content-embedding/text").model(EMBEDS),
        plain("content-embedding/vectors")
            .needs(Some(Feature::Content))
            .model(EMBEDS)
            .with("embed", json!(["a text"]))
            .truth(Truth::error(&["config"])),
        plain("content-modalities/plain").model(DRAWS),
        plain("content-modalities/stream")
            .model(DRAWS)
            .with("stream", json!(true)),
        object("content-modalities/object", r#"{"place":"here"}"#)
            .truth(Truth::text(r#"{"place":"here"}"#))
            .model(DRAWS),
        plain("content-grounding/plain").model(SEARCHES),
        plain("content-grounding/tools")
            .model(SEARCHES)
            .with("tools", tools()),
        plain("content-google-options")
            .needs(Some(Feature::Content))
            .option("providerOptions", options),
    ]
}

/// An image of five megabytes.
pub(super) fn large() -> Piece {
    let base64 = "A".repeat((5 << 20) / 3 * 4);
    Piece::new(
        Wire::Gemini,
        "content-large",
        shown(typed(&base64, "image/png")),
    )
}

fn plain(id: &str) -> Piece {
    Piece::new(Wire::Gemini, id, vec![user(json!("Say something."))]).needs(None)
}

/// An answer of a schema; the wire has two members for it, so only for adapters of the neutral format.
fn object(id: &str, answer: &str) -> Piece {
    let schema = json!({ "type": "object", "properties": { "place": { "type": "string" } },
        "required": ["place"] });
    plain(id)
        .needs(Some(Feature::Content))
        .option("responseSchema", schema)
        .reply([Reply::text(answer)])
}

fn tools() -> Value {
    let tool = |name: &str, argument: &str| {
        json!({
            "name": name,
            "description": format!("Looks up the {argument}."),
            "parameters": { "type": "object", "properties": { argument: { "type": "string" } } },
        })
    };
    json!([tool("get_weather", "city"), tool("get_time", "zone")])
}
