//! Calls about time and thinking: what counts as a sign of life, and what is waiting.
//!
//! `timeoutMs` is the time before the first event and between events. An adapter that does not try again by itself
//! may report the error that it got; it may not take the wait for silence of the model.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_mock::script::{ReasoningField, Until, Variation};
use turnwire_mock::{Call, ErrorReply, Position, Reply};
use turnwire_spec::llm::Wire;

use super::{ANSWER, Piece, user};
use crate::cases::{Truth, truth::TrueCall};

/// How long the provider may be silent.
const PATIENCE_MS: u64 = 600;
/// From one event to the next of a model that writes slowly.
const SLOW: Duration = Duration::from_millis(PATIENCE_MS / 4);
/// What the model thinks: it takes longer than the patience to write.
const THOUGHT: &str = "one two three four five six seven eight";
/// A text that takes several times the patience.
const LONG: &str = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen";

/// The pieces on a wire.
pub(super) fn all(wire: Wire) -> Vec<Piece> {
    let piece = |id: &str, reply: Reply, truth: Truth| {
        Piece::new(wire, id, vec![user(json!("Think."))])
            .needs(None)
            .with("stream", Value::Bool(true))
            .option("timeoutMs", json!(PATIENCE_MS))
            .reply([reply])
            .truth(truth)
    };
    let late = || Truth::error(&["timeout"]);
    let thought = || {
        let reply = Reply::text(ANSWER).reasoning(THOUGHT);
        if wire != Wire::OpenaiChat {
            return reply;
        }
        // OpenAI itself hides what is thought; compatible services show it in this member.
        reply.variation(Variation {
            reasoning_field: ReasoningField::ReasoningContent,
            ..Variation::default()
        })
    };
    let city = json!({ "city": "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch" });
    let called = Reply::new().calls([Call::new("get_weather", city.clone())]);
    vec![
        piece(
            "reason-apart",
            thought(),
            Truth::text(ANSWER).thinking(THOUGHT),
        ),
        piece(
            "reason-first",
            thought().per_token(SLOW),
            Truth::text(ANSWER),
        ),
        piece(
            "reason-silent",
            Reply::text(ANSWER).stall(Position::Bytes(0), Until::Never),
            late(),
        ),
        piece(
            "reason-idle",
            thought().stall(Position::Tokens(2), Until::Never),
            late(),
        ),
        piece(
            "reason-text",
            Reply::text(LONG).per_token(SLOW),
            Truth::text(LONG),
        ),
        piece(
            "reason-call",
            called.per_token(SLOW),
            Truth::calls([TrueCall::new("get_weather", city)]),
        )
        .with("tools", json!([weather()])),
    ]
    .into_iter()
    .chain(waits(&piece))
    .collect()
}

/// Errors with a wait that is longer than the patience.
fn waits(piece: &dyn Fn(&str, Reply, Truth) -> Piece) -> Vec<Piece> {
    let wait = |id: &str, status: u16, class: &str, then: Reply, end: Truth| {
        let mut piece = piece(id, ErrorReply::new(status).retry_after(1.0).into(), end)
            .option("retries", json!(1));
        piece.replies.push(then);
        piece.truths.push(Truth::error(&[class]));
        piece
    };
    let silent = Reply::text(ANSWER).stall(Position::Bytes(0), Until::Never);
    let fine = || Reply::text(ANSWER);
    vec![
        wait(
            "reason-limited",
            429,
            "rate-limit",
            fine(),
            Truth::text(ANSWER),
        ),
        wait(
            "reason-overloaded",
            503,
            "overloaded",
            fine(),
            Truth::text(ANSWER),
        ),
        wait(
            "reason-anew",
            429,
            "rate-limit",
            silent,
            Truth::error(&["timeout"]),
        ),
    ]
}

fn weather() -> Value {
    json!({
        "name": "get_weather",
        "description": "Looks up the city.",
        "parameters": { "type": "object", "properties": { "city": { "type": "string" } } },
    })
}
