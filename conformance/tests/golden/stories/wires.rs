//! The wires of the model services, as the mock speaks them: one file a flow of events.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire::{
    drivers::{
        DriveError,
        http::{Call as Request, HttpClient},
    },
    scenarios::Running,
};
use turnwire_mock::{
    Call, ErrorReply, Finish, Reply, Rule, Script, Variation, script::ReasoningField,
};

use crate::machine::{Act, Story};

const SOON: Duration = Duration::from_secs(10);

/// The flows of one wire: the same answers, each in the wire's own form, with what each shows.
macro_rules! flows {
    ($suite:literal, $run:ident, $whole:ident, {
        text: $text:tt, tool: $tool:tt, reasoning: $reasoning:tt, cut: $cut:tt, error: $error:tt, plain: $plain:tt
    }) => {
        &[
            flow!($suite, "text", "a short text", $text, || Reply::text("It rains."), $run),
            flow!($suite, "tool-call", "a text, then a call whose arguments come in pieces", $tool, || {
                let call = Call::new("weather", json!({ "city": "Bern" }));
                Reply::text("Let me see.").calls([call.pieces(["{\"city\":", "\"Bern\"}"])])
            }, $run),
            flow!($suite, "reasoning", "thinking, then a text", $reasoning, || {
                Reply::new().reasoning("Look outside.").say("It rains.")
            }, $run),
            flow!($suite, "length", "an answer that was cut at its longest", $cut, || {
                Reply::text("It rai").finish(Finish::Length)
            }, $run),
            flow!($suite, "filtered", "an answer that a filter stopped", $cut, || {
                Reply::text("It").finish(Finish::Filter)
            }, $run),
            flow!($suite, "refused", "the model refuses to answer", $cut, || {
                Reply::new().refusal("I cannot say.")
            }, $run),
            flow!($suite, "error-in-stream", "an error in the middle of a stream", $error, || {
                Reply::text("It").then_error(ErrorReply::new(529)).say("never")
            }, $run),
            flow!($suite, "rate-limited", "too many requests, with the time to wait", $error, || {
                Reply::from(ErrorReply::new(429).retry_after(2.0))
            }, $run),
            flow!($suite, "plain", "an answer in one object", $plain, || Reply::text("It rains."), $whole),
        ]
    };
}

macro_rules! flow {
    ($suite:literal, $name:literal, $about:literal, [$($id:literal),*], $reply:expr, $run:ident) => {
        Story {
            suite: $suite,
            name: $name,
            about: $about,
            shows: &[$($id),*],
            act: Act::Mock {
                script: || {
                    let reply: fn() -> Reply = $reply;
                    Script::new($name).rule(Rule::new($name).reply(reply()))
                },
                run: $run,
            },
        }
    };
}

pub(crate) static OPENAI_CHAT: &[Story] = flows!("openai-chat", chat, chat_plain, {
    text: ["LLM-STREAM-001"],
    tool: ["LLM-STREAM-002"],
    reasoning: ["LLM-REASON-001", "LLM-REASON-003"],
    cut: ["LLM-STREAM-001"],
    error: ["LLM-REASON-057", "LLM-REASON-058"],
    plain: ["LLM-REASON-002"]
});
pub(crate) static OPENAI_RESPONSES: &[Story] = flows!("openai-responses", responses, responses_plain, {
    text: ["LLM-REQ-038"],
    tool: ["LLM-REQ-045", "LLM-REQ-046"],
    reasoning: ["LLM-REASON-005"],
    cut: ["LLM-REQ-038"],
    error: ["LLM-REASON-057", "LLM-REASON-058"],
    plain: ["LLM-REQ-038"]
});
pub(crate) static ANTHROPIC_MESSAGES: &[Story] = flows!("anthropic-messages", messages, messages_plain, {
    text: ["LLM-REQ-077"],
    tool: ["LLM-REQ-082", "LLM-REQ-083"],
    reasoning: ["LLM-REASON-006", "LLM-REQ-089"],
    cut: ["LLM-REQ-077"],
    error: ["LLM-REASON-057", "LLM-REASON-058"],
    plain: ["LLM-REQ-077"]
});
pub(crate) static GEMINI: &[Story] = flows!("gemini", gemini, gemini_plain, {
    text: ["LLM-CONTENT-049", "LLM-CONTENT-051"],
    tool: ["LLM-CONTENT-052"],
    reasoning: ["LLM-REASON-007"],
    cut: ["LLM-CONTENT-051"],
    error: ["LLM-REASON-057", "LLM-REASON-058"],
    plain: ["LLM-CONTENT-048", "LLM-CONTENT-050"]
});

/// Flows that only one wire has.
pub(crate) static ALONE: &[Story] = &[
    flow!(
        "gemini",
        "prompt-blocked",
        "a prompt that is not answered at all",
        ["LLM-CONTENT-051"],
        || Reply::new().finish(Finish::PromptBlocked("SAFETY".to_owned())),
        gemini
    ),
    flow!(
        "openai-chat",
        "reasoning-content",
        "a compatible service that shows its thinking in a field of its own",
        ["LLM-REASON-001", "LLM-REASON-003"],
        || {
            let variation = Variation {
                reasoning_field: ReasoningField::ReasoningContent,
                ..Variation::default()
            };
            Reply::new()
                .reasoning("Look outside.")
                .say("It rains.")
                .variation(variation)
        },
        chat
    ),
];

const QUESTION: &str = "How is the weather?";

fn user() -> Value {
    json!([{ "role": "user", "content": QUESTION }])
}

async fn ask(client: &HttpClient, request: Request, body: Value) -> Result<(), DriveError> {
    let mut stream = client.open(request.json(&body)).await?;
    stream.read_to_end(SOON).await;
    Ok(())
}

fn chat(client: &HttpClient) -> Running<'_> {
    chat_with(client, true)
}

fn chat_plain(client: &HttpClient) -> Running<'_> {
    chat_with(client, false)
}

fn chat_with(client: &HttpClient, stream: bool) -> Running<'_> {
    let mut body = json!({ "model": "mock-model", "messages": user(), "stream": stream });
    if stream {
        body["stream_options"] = json!({ "include_usage": true });
    }
    let request = Request::post("/v1/chat/completions").bearer(Some("k"));
    Box::pin(ask(client, request, body))
}

fn responses(client: &HttpClient) -> Running<'_> {
    responses_with(client, true)
}

fn responses_plain(client: &HttpClient) -> Running<'_> {
    responses_with(client, false)
}

fn responses_with(client: &HttpClient, stream: bool) -> Running<'_> {
    let body = json!({ "model": "mock-model", "input": QUESTION, "stream": stream });
    let request = Request::post("/v1/responses").bearer(Some("k"));
    Box::pin(ask(client, request, body))
}

fn messages(client: &HttpClient) -> Running<'_> {
    messages_with(client, true)
}

fn messages_plain(client: &HttpClient) -> Running<'_> {
    messages_with(client, false)
}

fn messages_with(client: &HttpClient, stream: bool) -> Running<'_> {
    let body =
        json!({ "model": "mock-model", "max_tokens": 99, "messages": user(), "stream": stream });
    let request = Request::post("/v1/messages")
        .header("x-api-key", "k")
        .header("anthropic-version", "2023-06-01");
    Box::pin(ask(client, request, body))
}

fn gemini(client: &HttpClient) -> Running<'_> {
    gemini_at(
        client,
        "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
    )
}

fn gemini_plain(client: &HttpClient) -> Running<'_> {
    gemini_at(client, "/v1beta/models/gemini-3-pro:generateContent")
}

fn gemini_at<'a>(client: &'a HttpClient, path: &str) -> Running<'a> {
    let body = json!({ "contents": [{ "role": "user", "parts": [{ "text": QUESTION }] }] });
    let request = Request::post(path).header("x-goog-api-key", "k");
    Box::pin(ask(client, request, body))
}
