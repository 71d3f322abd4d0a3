//! Errors: as a status, within a stream, and in place of it.

use std::time::Duration;

use turnwire_mock::script::{Failure, Faults, Framing, RawReply, Variation};
use turnwire_mock::{Call, CutHow, ErrorForm, ErrorReply, Position, Reply};
use turnwire_spec::llm::Wire;

use super::{Ask, COST, Case, Group, KEY, TEXT, answer, raw, truth, truth::TrueCall, truth::Truth};

fn case(id: &str, about: &'static str, reply: impl Into<Reply>, truth: Truth) -> Case {
    Case::new(Group::Errors, id, about, reply.into()).truth(truth)
}

/// Classes of an error that the provider told of within a stream.
const TOLD: &[&str] = &[
    "server",
    "overloaded",
    "rate-limit",
    "stream-interrupted",
    "unknown",
];
/// Words that an error has to hand on.
const WORDS: &str = "the kettle is on fire";

/// The cases of this group.
pub fn cases(wire: Wire) -> Vec<Case> {
    [
        statuses(wire),
        forms(wire),
        in_stream(wire),
        in_place(wire),
        again(),
        closed(),
        plain(wire),
    ]
    .concat()
}

fn statuses(wire: Wire) -> Vec<Case> {
    let known: &[(u16, &[&str])] = &[
        (400, &["invalid-request"]),
        (401, &["auth"]),
        (403, &["auth", "permission"]),
        (404, &["not-found"]),
        (429, &["rate-limit"]),
        (500, &["server"]),
        (503, &["server", "overloaded"]),
    ];
    let status = |status: u16, classes: &[&str]| {
        let error = ErrorReply::new(status).message(WORDS);
        let truth = Truth::error(classes).status(status).message(WORDS);
        case(&format!("status/{status}"), "an error status", error, truth)
    };
    let mut cases: Vec<_> = known
        .iter()
        .map(|(code, classes)| status(*code, classes))
        .collect();
    cases.push(case(
        "key-in-error",
        "an error whose words repeat the key",
        ErrorReply::new(401).message(format!("Incorrect API key provided: {KEY}.")),
        Truth::error(&["auth"]).status(401).withholds(KEY),
    ));
    match wire {
        Wire::AnthropicMessages => cases.push(status(529, &["overloaded", "server", "rate-limit"])),
        Wire::Gemini => {
            let error = ErrorReply::new(400)
                .code("API_KEY_INVALID")
                .message("API key not valid.");
            cases.push(case(
                "bad-key",
                "400 for a bad key",
                error,
                Truth::error(&["auth"]).status(400),
            ));
        }
        Wire::OpenaiChat | Wire::GeminiOpenai | Wire::OpenaiResponses => {
            let error = ErrorReply::new(429)
                .code("insufficient_quota")
                .kind("insufficient_quota");
            let truth = Truth::error(&["rate-limit", "quota"]).status(429);
            cases.push(case(
                "quota",
                "429 for a quota that is used up",
                error.clone(),
                truth.clone(),
            ));
            cases.push(
                case(
                    "quota-again",
                    "the same, and the adapter may try again",
                    error,
                    truth,
                )
                .ask(Ask::default().option("retries", 1))
                .then(answer())
                .unsplit(),
            );
        }
    }
    cases
}

/// Bodies of error statuses that are not the wire's own.
fn forms(wire: Wire) -> Vec<Case> {
    let gone = || Truth::error(&["server", "overloaded"]);
    let form = |status, form| ErrorReply::new(status).message(WORDS).form(form);
    let mut cases = vec![
        case(
            "error-page/html",
            "503 with a page of a proxy",
            form(503, ErrorForm::Html),
            gone().status(503),
        ),
        case(
            "error-page/empty",
            "502 with nothing",
            form(502, ErrorForm::Empty),
            gone().status(502),
        ),
    ];
    let others: &[(&str, ErrorForm)] = match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => &[
            ("text", ErrorForm::String),
            ("numeric-code", ErrorForm::NumericCode),
            ("vllm", ErrorForm::Vllm),
            ("detail", ErrorForm::Detail),
            ("message", ErrorForm::Message),
            ("google-array", ErrorForm::GoogleArray),
        ],
        Wire::Gemini => &[("google-array", ErrorForm::GoogleArray)],
        Wire::OpenaiResponses | Wire::AnthropicMessages => &[],
    };
    for (name, other) in others {
        let truth = Truth::error(&["invalid-request"])
            .status(400)
            .message(WORDS);
        cases.push(case(
            &format!("error-forms/{name}"),
            "an error in another form",
            form(400, *other),
            truth,
        ));
    }
    cases
}

fn in_stream(wire: Wire) -> Vec<Case> {
    let error = || ErrorReply::new(500).message(WORDS);
    let told = || Truth::error(TOLD);
    let after = |error: ErrorReply| Reply::text("Some words ").then_error(error);
    let mut cases = vec![
        case(
            "error-first",
            "an error as the first event",
            Reply::new().then_error(error()),
            told().message(WORDS),
        ),
        case(
            "error-after-text",
            "an error after some text",
            after(error()),
            told().message(WORDS),
        ),
    ];
    let other = |name: &str, reply: Reply| {
        case(
            &format!("error-events/{name}"),
            "an error event in another form",
            reply,
            told(),
        )
    };
    let failure = |failure| {
        after(error()).variation(Variation {
            failure,
            ..Variation::default()
        })
    };
    match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => {
            let forms = [
                ("text", ErrorForm::String),
                ("numeric-code", ErrorForm::NumericCode),
                ("vllm", ErrorForm::Vllm),
                ("openrouter", ErrorForm::OpenRouter),
            ];
            for (name, form) in forms {
                cases.push(other(name, after(error().form(form))));
            }
        }
        Wire::OpenaiResponses => {
            cases.push(other("flat", after(error().form(ErrorForm::Flat))));
            cases.push(other("nested", after(error().form(ErrorForm::Typed))));
            cases.push(other("failed-only", failure(Failure::FailedOnly)));
            cases.push(other("error-only", failure(Failure::ErrorOnly)));
        }
        Wire::AnthropicMessages => {
            let unnamed = Framing {
                event_lines: Some(false),
                ..Framing::default()
            };
            cases.push(other("unnamed", after(error()).framing(unnamed)));
            let busy = ErrorReply::new(529).message(WORDS);
            cases.push(other("overloaded", after(busy)));
        }
        Wire::Gemini => {}
    }
    cases
}

/// Successful answers that are no streams.
fn in_place(wire: Wire) -> Vec<Case> {
    let json = |body: String| RawReply::new(200, "application/json", [body]);
    let text = "Hello there";
    let page = RawReply::new(200, "text/html", ["<!doctype html><title>Sign in</title>"]);
    let away = RawReply {
        status: 307,
        headers: [(
            "location".to_owned(),
            "http://127.0.0.1:9/elsewhere".to_owned(),
        )]
        .into(),
        ..RawReply::default()
    };
    vec![
        case(
            "error-in-place-of-stream",
            "an error body with the status 200",
            json(raw::error(wire, WORDS).to_string()),
            Truth::error(TOLD),
        )
        .truth(Truth::bad()),
        case(
            "plain-in-place-of-stream",
            "a plain answer to a request for a stream",
            json(raw::plain(wire, text).to_string()),
            Truth::text(text).finish("stop"),
        )
        .truth(Truth::bad()),
        case(
            "page-in-place-of-stream",
            "a page with the status 200",
            page,
            Truth::bad(),
        ),
        case(
            "redirect",
            "a redirect to another host",
            away,
            Truth::error(&[
                "server",
                "protocol",
                "network",
                "invalid-request",
                "unknown",
            ]),
        ),
    ]
}

/// Answers after the adapter has tried again, and answers that must not be tried again.
fn again() -> Vec<Case> {
    let ask = || Ask::default().option("retries", 2);
    let long = Duration::from_secs(15);
    let passing = |status: u16| {
        case(
            &format!("retry/{status}"),
            "an error that passes",
            ErrorReply::new(status).message(WORDS),
            truth(),
        )
        .ask(ask())
        .then(answer())
        .within(long)
        .unsplit()
    };
    vec![
        passing(429),
        passing(500),
        passing(503),
        case(
            "no-retry/refused",
            "an error that does not pass",
            ErrorReply::new(400).message(WORDS),
            Truth::error(&["invalid-request"]).status(400),
        )
        .ask(ask())
        .then(answer())
        .within(long)
        .unsplit(),
        case(
            "no-retry/after-output",
            "a stream that breaks off after text",
            answer().cut(Position::Tokens(3), CutHow::Close),
            Truth::cut(),
        )
        .ask(ask())
        .then(answer())
        .within(long)
        .unsplit(),
    ]
}

/// Two calls in a row; the connection of the first is closed when nobody uses it. Who keeps connections may find out
/// by an error, and tries again.
fn closed() -> Vec<Case> {
    let close = Faults {
        close_after: true,
        ..Faults::default()
    };
    vec![
        case(
            "closed-connection/before",
            "an answer whose connection is closed afterwards",
            answer().faults(close),
            truth(),
        )
        .unsplit(),
        case(
            "closed-connection/after",
            "the next call",
            answer(),
            truth(),
        )
        .ask(Ask::default().option("retries", 1))
        .unsplit(),
    ]
}

/// The same without a stream.
fn plain(wire: Wire) -> Vec<Case> {
    let arguments = serde_json::json!({ "city": "Paris" });
    let call = Call::new("get_weather", arguments.clone()).id("call_weather_1");
    let mut cases = vec![
        case(
            "plain-answer/text",
            "an answer that is not streamed",
            answer(),
            Truth::text(TEXT).finish("stop").usage(COST),
        )
        .ask(Ask::default().plain()),
        case(
            "plain-answer/call",
            "a call that is not streamed",
            Reply::new().calls([call]),
            Truth::calls([TrueCall::new("get_weather", arguments)]),
        )
        .ask(Ask::with_tools().plain()),
        case(
            "plain-cut",
            "a plain answer that breaks off",
            answer().cut(Position::BytesFromEnd(20), CutHow::Close),
            Truth::cut(),
        )
        .ask(Ask::default().plain()),
    ];
    if matches!(wire, Wire::OpenaiChat | Wire::GeminiOpenai) {
        let mut none = raw::plain(wire, "");
        none["choices"] = serde_json::json!([]);
        let error = raw::error(wire, WORDS).to_string();
        let json = |body: String| RawReply::new(200, "application/json", [body]);
        cases.push(
            case(
                "plain-without-choices",
                "no choice at all",
                json(none.to_string()),
                Truth::bad(),
            )
            .ask(Ask::default().plain()),
        );
        cases.push(
            case(
                "plain-error",
                "an error with the status 200",
                json(error),
                Truth::error(TOLD),
            )
            .truth(Truth::bad())
            .ask(Ask::default().plain()),
        );
    }
    cases
}
