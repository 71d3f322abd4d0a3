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
    Call, ErrorReply, Finish, Reply, Rule, Script, Variation,
    script::{Reasoning, ReasoningField},
};

use crate::machine::{Act, Story};

const SOON: Duration = Duration::from_secs(10);

/// Under which the checks look for streams, for streams with calls, and for whole answers.
const STREAM: &str = "provider-stream";
const TOOLS: &str = "provider-tools-stream";
const PLAIN: &str = "provider-plain";
/// Nobody looks under this one: what a service says when it fails is not judged.
const BROKEN: &str = "broken";

/// The flows of one wire: the same answers, each in the wire's own form, with what each shows.
macro_rules! flows {
    ($suite:literal, $run:ident, $whole:ident, {
        text: $text:tt, tool: $tool:tt, reasoning: $reasoning:tt, cut: $cut:tt, error: $error:tt, plain: $plain:tt
    }) => {
        &[
            flow!($suite, STREAM, "text", "a short text", $text, || Reply::text("It rains."), $run),
            flow!($suite, TOOLS, "tool-call", "a text, then a call whose arguments come in pieces", $tool, || {
                let call = Call::new("weather", json!({ "city": "Bern" }));
                Reply::text("Let me see.").calls([call.pieces(["{\"city\":", "\"Bern\"}"])])
            }, $run),
            flow!($suite, STREAM, "reasoning", "thinking, then a text", $reasoning, || {
                Reply::new().reasoning("Look outside.").say("It rains.")
            }, $run),
            flow!($suite, STREAM, "length", "an answer that was cut at its longest", $cut, || {
                Reply::text("It rai").finish(Finish::Length)
            }, $run),
            flow!($suite, STREAM, "filtered", "an answer that a filter stopped", $cut, || {
                Reply::text("It").finish(Finish::Filter)
            }, $run),
            flow!($suite, STREAM, "refused", "the model refuses to answer", $cut, || {
                Reply::new().refusal("I cannot say.")
            }, $run),
            flow!($suite, BROKEN, "error-in-stream", "an error in the middle of a stream", $error, || {
                Reply::text("It").then_error(ErrorReply::new(529)).say("never")
            }, $run),
            flow!($suite, BROKEN, "rate-limited", "too many requests, with the time to wait", $error, || {
                Reply::from(ErrorReply::new(429).retry_after(2.0))
            }, $run),
            flow!($suite, PLAIN, "plain", "an answer in one object", $plain, || Reply::text("It rains."), $whole),
        ]
    };
}

macro_rules! flow {
    ($suite:literal, $label:ident, $name:literal, $about:literal, [$($id:literal),*], $reply:expr, $run:ident) => {
        Story {
            suite: $suite,
            name: $name,
            about: $about,
            shows: &[$($id),*],
            act: Act::Mock {
                label: $label,
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

pub(crate) static GEMINI_OPENAI: &[Story] = flows!("gemini-openai", compatible, compatible_plain, {
    text: ["LLM-PROV-009", "LLM-PROV-010"],
    tool: ["LLM-PROV-016"],
    reasoning: ["LLM-PROV-009"],
    cut: ["LLM-PROV-010"],
    error: ["LLM-REASON-057"],
    plain: ["LLM-PROV-001", "LLM-PROV-002"]
});

/// Flows that only one wire has.
pub(crate) static ALONE: &[Story] = &[
    flow!(
        "gemini",
        STREAM,
        "prompt-blocked",
        "a prompt that is not answered at all",
        ["LLM-CONTENT-051"],
        || Reply::new().finish(Finish::PromptBlocked("SAFETY".to_owned())),
        gemini
    ),
    flow!(
        "gemini",
        STREAM,
        "malformed-call",
        "a call whose arguments are no JSON is told by the reason for the end",
        ["LLM-CONTENT-051"],
        || Reply::new().calls([Call::new("weather", json!({})).pieces(["{\"city\":"])]),
        gemini
    ),
    flow!(
        "openai-chat",
        STREAM,
        "reasoning-content",
        "a compatible service that shows its thinking in a field of its own",
        ["LLM-REASON-001", "LLM-REASON-003"],
        || thinks_in(ReasoningField::ReasoningContent),
        chat
    ),
    flow!(
        "openai-chat",
        STREAM,
        "reasoning-details",
        "a compatible service that shows its thinking as text and as signed details",
        ["LLM-REASON-001", "LLM-REASON-003"],
        || thinks_in(ReasoningField::Details),
        chat
    ),
    flow!(
        "openai-responses",
        STREAM,
        "reasoning-open",
        "an open-weight model, whose thinking is no summary",
        ["LLM-REASON-005"],
        || {
            let open = Reasoning {
                text: vec!["Look outside.".into()],
                open: true,
                ..Reasoning::default()
            };
            Reply::new().reasoning(open).say("It rains.")
        },
        responses
    ),
    flow!(
        "openai-responses",
        STREAM,
        "background",
        "an answer that is made in the background: it is queued first",
        ["LLM-REQ-038"],
        || Reply::text("It rains."),
        responses_in_background
    ),
    flow!(
        "anthropic-messages",
        STREAM,
        "reasoning-redacted",
        "thinking that only the service can read",
        ["LLM-REASON-006"],
        || {
            let redacted = Reasoning {
                encrypted: Some("EmwKAhgB".to_owned()),
                ..Reasoning::default()
            };
            Reply::new().reasoning(redacted).say("It rains.")
        },
        messages
    ),
];

/// Thinking in this field, then a text.
fn thinks_in(reasoning_field: ReasoningField) -> Reply {
    let variation = Variation {
        reasoning_field,
        ..Variation::default()
    };
    Reply::new()
        .reasoning("Look outside.")
        .say("It rains.")
        .variation(variation)
}

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
    chat_at(client, "/v1/chat/completions", true)
}

fn chat_plain(client: &HttpClient) -> Running<'_> {
    chat_at(client, "/v1/chat/completions", false)
}

fn compatible(client: &HttpClient) -> Running<'_> {
    chat_at(client, "/v1beta/openai/chat/completions", true)
}

fn compatible_plain(client: &HttpClient) -> Running<'_> {
    chat_at(client, "/v1beta/openai/chat/completions", false)
}

fn chat_at<'a>(client: &'a HttpClient, path: &str, stream: bool) -> Running<'a> {
    let mut body = json!({ "model": "mock-model", "messages": user() });
    if stream {
        body["stream"] = true.into();
        body["stream_options"] = json!({ "include_usage": true });
    }
    let request = Request::post(path).bearer(Some("k"));
    Box::pin(ask(client, request, body))
}

fn responses(client: &HttpClient) -> Running<'_> {
    responses_with(client, true)
}

fn responses_plain(client: &HttpClient) -> Running<'_> {
    responses_with(client, false)
}

fn responses_with(client: &HttpClient, stream: bool) -> Running<'_> {
    let mut body = json!({ "model": "mock-model", "input": QUESTION });
    if stream {
        body["stream"] = true.into();
    }
    let request = Request::post("/v1/responses").bearer(Some("k"));
    Box::pin(ask(client, request, body))
}

fn responses_in_background(client: &HttpClient) -> Running<'_> {
    let body = json!({
        "model": "mock-model", "input": QUESTION, "stream": true, "background": true, "store": true,
    });
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
    let mut body = json!({ "model": "mock-model", "max_tokens": 99, "messages": user() });
    if stream {
        body["stream"] = true.into();
    }
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
