//! Gemini's OpenAI-compatible endpoint: the cases of Chat Completions that it shares, and its own.
//!
//! The endpoint speaks Chat Completions with the errors, thoughts and signatures of Gemini. What only OpenAI and
//! other compatible services do is no hazard here; their hazards are in [`ELSEWHERE`].
//!
//! Source: facts about the wires, section 5 and hazards 131, 132, 148 and 187.

use serde_json::{Value, json};
use turnwire_mock::script::{Chunking, ToolArgs, ToolIndex, Variation};
use turnwire_mock::{Call, Edit, ErrorForm, ErrorReply, RawEvent, Reply, Usage};

use super::{Ask, COST, Case, Group, TEXT, raw, truth::TrueCall, truth::Truth};

/// Hazards of Chat Completions that this endpoint does not have: fields and forms of other services, and calls
/// in pieces, which it sends whole.
const ELSEWHERE: &[&str] = &[
    "odd-choices",
    "refusal",
    "calls-interleaved",
    "call-id",
    "call-name-later",
    "call-without-type",
    "argument-forms",
    "finish-without-calls",
    "reasoning-fields",
    "no-reasoning",
    "think-tags",
    "no-think-tags",
    "usage-cached",
    "usage-thinking",
    "usage-of-others",
    "quota",
    "quota-again",
    "error-events",
];

/// The shared ones of these, and its own.
pub(super) fn cases(chat: Vec<Case>) -> Vec<Case> {
    let mut cases = chat;
    cases.retain(|case| !ELSEWHERE.contains(&case.hazard()));
    [cases, thoughts(), signatures(), costs(), errors()].concat()
}

fn thought(id: &str, about: &'static str, reply: Reply, truth: Truth) -> Case {
    Case::new(Group::Thinking, id, about, reply.usage(COST)).truth(truth.finish("stop").usage(COST))
}

fn thoughts() -> Vec<Case> {
    let tags = |pieces: &[&str]| Reply::new().pieces(pieces.iter().copied());
    let apart = || Truth::text("Hello.").thinking("Hm.");
    let flagged = {
        let first = json!({ "role": "assistant", "content": "Hm.",
            "extra_content": { "google": { "thought": true } } });
        let edit = Edit::all()
            .nth(0)
            .before(RawEvent::new(raw::chunk(&first, Value::Null)));
        Reply::text("Hello.").edit(edit)
    };
    vec![
        thought(
            "thought-tags/whole",
            "<thought> tags in the text",
            tags(&["<thought>", "Hm.", "</thought>", "Hello."]),
            apart(),
        ),
        thought(
            "thought-tags/cut",
            "<thought> tags cut over deltas",
            tags(&["<thou", "ght>Hm", ".</thoug", "ht>Hel", "lo."]),
            apart(),
        ),
        thought(
            "thought-tags/characters",
            "<thought> tags, one character a delta",
            Reply::text("<thought>Hm.</thought>Hello.").chunk(Chunking::Chars(1)),
            apart(),
        ),
        thought(
            "thought-flags",
            "a delta that is marked as a thought",
            flagged,
            apart(),
        ),
        thought(
            "no-thought-tags",
            "what begins like a tag and is none",
            tags(&["a <", " b and <thou", "sand> </thoug", "h>."]),
            Truth::text("a < b and <thousand> </though>.").thinking(""),
        ),
    ]
}

fn weather() -> Call {
    Call::new("get_weather", json!({ "city": "Paris" })).id("call_weather_1")
}

fn time() -> Call {
    Call::new("get_time", json!({ "zone": "CET" })).id("call_time_2")
}

fn signatures() -> Vec<Case> {
    let whole = Variation {
        tool_args: ToolArgs::Whole,
        tool_index: ToolIndex::Zero,
        ..Variation::default()
    };
    let calls = || {
        Reply::new()
            .calls([weather(), time()])
            .variation(whole.clone())
            .usage(COST)
    };
    let own_delta = {
        let signed = json!({ "extra_content": { "google": { "thought_signature": "c2lnbmVk" } } });
        let mut edit = Edit::all()
            .nth(0)
            .before(RawEvent::new(raw::chunk(&signed, Value::Null)));
        edit.on.contains = Some("get_weather".to_owned());
        calls().edit(edit)
    };
    let both = || {
        Truth::calls([
            TrueCall::new("get_weather", json!({ "city": "Paris" })).id("call_weather_1"),
            TrueCall::new("get_time", json!({ "zone": "CET" })).id("call_time_2"),
        ])
    };
    let case = |id: &str, about, reply| {
        Case::new(Group::Tools, id, about, reply)
            .ask(Ask::with_tools())
            .truth(both())
    };
    vec![
        case(
            "signed-calls/on-the-call",
            "two calls with index 0, the first of them signed",
            calls(),
        ),
        case(
            "signed-calls/own-delta",
            "the signature in a delta of its own",
            own_delta,
        ),
    ]
}

/// `completion_tokens` leaves thinking out, `total_tokens` holds it: what is told is the one or the other, and
/// nothing that was made up from both.
fn costs() -> Vec<Case> {
    let cost = Usage {
        output: 25,
        reasoning: 20,
        ..COST
    };
    let told = |output| {
        Truth::text(TEXT)
            .finish("stop")
            .usage(Usage { output, ..cost })
    };
    vec![
        Case::new(
            Group::Usage,
            "thinking-in-total",
            "a total that holds the thinking, which the output does not",
            Reply::text(TEXT).usage(cost),
        )
        .truth(told(25))
        .truth(told(5)),
    ]
}

fn errors() -> Vec<Case> {
    const WORDS: &str = "the kettle is on fire";
    let told = |form, id: &str, about| {
        let error = ErrorReply::new(503).message(WORDS).form(form);
        let reply = Reply::text("Some words ").then_error(error);
        let classes = &[
            "server",
            "overloaded",
            "rate-limit",
            "stream-interrupted",
            "unknown",
        ];
        Case::new(Group::Errors, id, about, reply).truth(Truth::error(classes).message(WORDS))
    };
    let key = ErrorReply::new(400)
        .code("API_KEY_INVALID")
        .message("API key not valid.");
    vec![
        told(
            ErrorForm::Google,
            "google-error-events/object",
            "Gemini's error object in place of a chunk",
        ),
        told(
            ErrorForm::GoogleArray,
            "google-error-events/array",
            "the same in an array",
        ),
        Case::new(
            Group::Errors,
            "bad-key",
            "400 in an array for a bad key",
            key.into(),
        )
        .truth(Truth::error(&["auth"]).status(400)),
    ]
}
