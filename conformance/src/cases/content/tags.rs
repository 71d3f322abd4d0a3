//! Thinking that a model writes into its text, between `<think>` and `</think>`.
//!
//! No wire says that such a text is not to be taken as it stands, so these calls are only for adapters which say
//! that they take the thinking out ([`Feature::ThinkTags`]). Whether a text that merely looks like a tag is kept is a
//! matter of every adapter, and in [`thinking`](crate::cases::thinking).
//!
//! Source: seed 000, lines 1166-1173.

use serde_json::{Value, json};
use turnwire_mock::script::Chunking;
use turnwire_mock::{Finish, Reply};
use turnwire_spec::llm::Wire;

use super::{Feature, Piece, user};
use crate::cases::Truth;

/// The pieces on a wire.
pub(super) fn all(wire: Wire) -> Vec<Piece> {
    let plain = |id: &str, reply: Reply| {
        Piece::new(wire, id, vec![user(json!("Think."))])
            .needs(Some(Feature::ThinkTags))
            .reply([reply])
    };
    let streamed = |id: &str, reply: Reply| plain(id, reply).with("stream", Value::Bool(true));
    let pieces = |texts: &[&str]| Reply::new().pieces(texts.iter().copied());
    let apart = |text: &str| Truth::text(text).thinking("plan");
    let cut = |reply: Reply| reply.finish(Finish::Length);
    vec![
        plain("tags-plain", Reply::text("<think>plan</think>Hello")).truth(apart("Hello")),
        streamed(
            "tags-stream",
            pieces(&["<think>", "plan", "</think>", "Hello"]),
        )
        .truth(apart("Hello")),
        streamed("tags-final", pieces(&["<think>pl", "an</think>", "Hello"])).truth(apart("Hello")),
        sections(plain("tags-sections/plain", Reply::text(SECTIONS))),
        sections(streamed("tags-sections/stream", Reply::text(SECTIONS))),
        streamed("tags-opening", pieces(&["<th", "ink>pl", "an</think>Hi"])).truth(apart("Hi")),
        streamed(
            "tags-closing/two",
            pieces(&["<think>plan</", "think>", "Hi"]),
        )
        .truth(apart("Hi")),
        streamed(
            "tags-closing/characters",
            Reply::text("<think>plan</think>Hi").chunk(Chunking::Chars(1)),
        )
        .truth(apart("Hi")),
        intro(plain(
            "tags-open",
            cut(Reply::text("Intro <think>half a pl")),
        )),
        streamed("tags-open-stream", cut(pieces(&["<think>half", " a pl"])))
            .truth(half("").finish("length")),
    ]
}

/// Two thoughts and two texts.
const SECTIONS: &str = "<think>a</think>X<think>b</think>Y";

/// The sections of a kind are joined, with or without a break between them.
fn sections(mut piece: Piece) -> Piece {
    let joined = |one: &str, two: &str| ["", "\n", "\n\n"].map(|gap| format!("{one}{gap}{two}"));
    piece.truths = joined("X", "Y")
        .iter()
        .flat_map(|text| joined("a", "b").map(|thought| Truth::text(text).thinking(&thought)))
        .collect();
    piece
}

/// The blank between text and tag belongs to nobody.
fn intro(mut piece: Piece) -> Piece {
    piece.truths = ["Intro ", "Intro"]
        .map(|text| half(text).finish("length"))
        .to_vec();
    piece
}

fn half(text: &str) -> Truth {
    Truth::text(text).thinking("half a pl")
}
