//! Who gets images: models that take them, that do not, and of which nothing is known; and what fits into a
//! fallback.

use serde_json::{Value, json};
use turnwire_mock::Reply;
use turnwire_spec::llm::Wire;

use super::{ANSWER, Feature, PNG, Piece, shown, typed, user};
use crate::cases::Truth;

/// A model that every table of models knows to take text only.
const TEXT_ONLY: &str = "o3-mini";

/// The pieces, on Chat Completions.
pub(super) fn all() -> Vec<Piece> {
    let alone = vec![user(json!([typed(PNG, "image/png")]))];
    let only_text = || json!(["text"]);
    vec![
        asked("content-text-only").model(TEXT_ONLY),
        asked("content-input-list").option("input", only_text()),
        Piece {
            messages: alone,
            ..asked("content-image-only").option("input", only_text())
        },
        asked("content-text-kept").option("input", only_text()),
        asked("content-unknown"),
        asked("content-decided")
            .reply([Reply::error(400)])
            .truth(Truth::error(&["invalid-request"]).status(400)),
        falls_back("content-fallback-unknown", json!({})).option("input", takes_images()),
        falls_back("content-fallback-known", json!({ "input": takes_images() }))
            .option("input", takes_images()),
        falls_back("content-fallback-both", json!({})),
        fits("content-fit-one/small", 1, 1_550).truth(refused()),
        fits("content-fit-one/room", 1, 1_750),
        fits("content-fit-two/small", 2, 3_050).truth(refused()),
        fits("content-fit-two/one", 1, 3_050),
    ]
}

/// An image of a megabyte, which counts as any other.
pub(super) fn large() -> Piece {
    let bytes = "A".repeat(1 << 20);
    Piece {
        messages: shown(typed(&bytes, "image/png")),
        ..fits("content-fit-large", 1, 2_050)
    }
}

fn takes_images() -> Value {
    json!(["text", "image"])
}

fn asked(hazard: &str) -> Piece {
    Piece::new(Wire::OpenaiChat, hazard, shown(typed(PNG, "image/png")))
        .needs(Some(Feature::Inputs))
}

/// The first target is overloaded; the fallback's model has the name of the first one and `-b` behind it.
fn falls_back(id: &str, fallback: Value) -> Piece {
    let piece = asked(id);
    let mut target = fallback;
    target["model"] = Value::from(format!("{}-b", piece.model));
    piece
        .option("fallback", target)
        .reply([Reply::error(503), Reply::text(ANSWER)])
}

/// The fallback takes images, and so many tokens; the text counts for a handful.
fn fits(id: &str, images: usize, window: u64) -> Piece {
    let parts = vec![typed(PNG, "image/png"); images];
    let target = json!({ "input": takes_images(), "contextWindow": window });
    let mut piece = falls_back(id, target).option("input", takes_images());
    piece.messages = vec![user(Value::from(parts))];
    piece
}

fn refused() -> Truth {
    Truth::error(&["overloaded", "server"]).status(503)
}
