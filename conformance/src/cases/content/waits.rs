//! When the service asks to wait, in every form that services have for it, sensible or not.
//!
//! Each piece is refused once and answered then. An adapter that does not try again by itself reports the error,
//! which is as right. How long it waited is judged by the rule `waits`, from below only.
//!
//! The order matters: the sabotage of `wait-senseless` is about the first request of the scenario.
//!
//! Source: facts about the wires, hazards 57-61, which the catalogue area `llm-waits` states as requirements.

use serde_json::json;
use turnwire_mock::script::RetryAfterForm;
use turnwire_mock::{ErrorReply, Reply};
use turnwire_spec::llm::Wire;

use super::{ANSWER, Piece, user};
use crate::cases::Truth;

/// Values of `retry-after` that say nothing: then the adapter's own wait applies.
const SENSELESS: [(&str, &str); 5] = [
    ("word", "soon"),
    ("negative", "-1"),
    ("nan", "NaN"),
    ("empty", ""),
    ("past", "Wed, 01 Jan 2025 00:00:00 GMT"),
];

/// The pieces on a wire.
pub(super) fn all(wire: Wire) -> Vec<Piece> {
    let literal = |text: &str| limited().retry_after_as(RetryAfterForm::Literal(text.to_owned()));
    let mut pieces: Vec<_> = SENSELESS
        .iter()
        .map(|(name, text)| {
            refused(
                wire,
                &format!("wait-senseless/{name}"),
                literal(text).into(),
            )
        })
        .collect();
    let date = limited().retry_after_as(RetryAfterForm::DateIn(3));
    pieces.push(refused(wire, "wait-date", date.into()));
    pieces.push(refused(wire, "wait-long", literal("3600").into()));
    if matches!(wire, Wire::Gemini | Wire::GeminiOpenai) {
        // Google says seconds in the body.
        pieces.push(refused(
            wire,
            "wait-in-body",
            limited().retry_after(1.0).into(),
        ));
    } else {
        let millis = ErrorReply::new(503).retry_after_as(RetryAfterForm::Millis(1200));
        let reply = Reply::from(millis).header("retry-after", "2");
        pieces.push(refused(wire, "wait-millis", reply));
    }
    pieces
}

fn limited() -> ErrorReply {
    ErrorReply::new(429)
}

/// A call that is refused once.
fn refused(wire: Wire, id: &str, refusal: Reply) -> Piece {
    let mut piece = Piece::new(wire, id, vec![user(json!("Say something."))])
        .needs(None)
        .option("retries", json!(1))
        .reply([refusal, Reply::text(ANSWER)]);
    piece
        .truths
        .push(Truth::error(&["rate-limit", "server", "overloaded"]));
    piece
}
