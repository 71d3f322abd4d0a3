//! The wire against the scripted mock, over real sockets, and its translations alone.

use std::time::Duration;

use turnwire_mock::script::{CutHow, Until};
use turnwire_mock::{Call, ErrorReply, MockConfig, MockServer, Position, Reply, Rule, Script};

use super::*;
use crate::gateway::{ChatMessage, FinishReason, ModelReply, ToolChoice, ToolRequest, ToolSpec};
use http::StatusCode;
use serde_json::{Value, json};

const PATIENT: GatewayTimeouts = GatewayTimeouts {
    connect: Duration::from_secs(5),
    first: Duration::from_secs(5),
    idle: Duration::from_secs(5),
};

async fn mock(reply: Reply) -> MockServer {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    mock.load(Script::new("test").rule(Rule::on("hello").reply(reply)));
    mock
}

fn service(mock: &MockServer, timeouts: GatewayTimeouts) -> OpenAiChat {
    let key = Some("sk-test".to_owned());
    OpenAiChat::new("openai", &mock.base_url(), key, "mock-model", timeouts).unwrap()
}

fn request(service: &OpenAiChat) -> ModelRequest {
    let tool = ToolSpec {
        name: "emit-event".into(),
        description: "Emits.".into(),
        json_schema: json!({ "type": "object" }),
    };
    ModelRequest {
        target: service.target("story"),
        messages: vec![
            ChatMessage::System {
                content: "You tell a story.".into(),
            },
            ChatMessage::User {
                content: "hello there".into(),
            },
        ],
        tools: vec![tool],
        tool_choice: ToolChoice::Auto,
        streaming: true,
    }
}

/// The pieces of text, and how the answer ended.
async fn read(
    service: &OpenAiChat,
    request: ModelRequest,
) -> (Vec<String>, Result<ModelReply, GatewayError>) {
    let mut stream = match service.call(request).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let mut pieces = Vec::new();
    loop {
        match stream.next().await {
            Some(Ok(ModelEvent::Text(piece))) => pieces.push(piece),
            Some(Ok(ModelEvent::Reasoning(_) | ModelEvent::ToolInput { .. })) => {}
            Some(Ok(ModelEvent::Done(reply))) => {
                assert!(stream.next().await.is_none(), "nothing follows the end");
                return (pieces, Ok(reply));
            }
            Some(Err(error)) => {
                assert!(stream.next().await.is_none(), "nothing follows an error");
                return (pieces, Err(error));
            }
            None => panic!("the stream ended without an end"),
        }
    }
}

#[tokio::test]
async fn text_comes_in_pieces_and_then_whole() {
    let mock = mock(Reply::new().pieces(["Rain ", "falls", "."])).await;
    let service = service(&mock, PATIENT);

    let (pieces, reply) = read(&service, request(&service)).await;

    assert_eq!(pieces, ["Rain ", "falls", "."]);
    let reply = reply.unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.finish),
        ("Rain falls.", FinishReason::Stop)
    );
    assert!(
        reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0,
        "{:?}",
        reply.usage
    );
}

#[tokio::test]
async fn tool_calls_whose_pieces_interleave_are_put_together_by_index() {
    let calls = [
        Call::new("emit-event", json!({ "topic": "bell" })).id("call_a"),
        Call::new("plugin_data_set", json!({ "key": "k" })).id("call_b"),
    ];
    let mock = mock(Reply::new().interleaved_calls(calls)).await;
    let service = service(&mock, PATIENT);

    let (_, reply) = read(&service, request(&service)).await;

    let reply = reply.unwrap();
    assert_eq!(reply.finish, FinishReason::ToolCalls);
    let calls: Vec<_> = reply
        .tool_calls
        .iter()
        .map(|call| (call.id.as_str(), call.name.as_str()))
        .collect();
    assert_eq!(
        calls,
        [("call_a", "emit-event"), ("call_b", "plugin_data_set")]
    );
    let arguments: Value = serde_json::from_str(&reply.tool_calls[0].arguments).unwrap();
    assert_eq!(arguments, json!({ "topic": "bell" }));
}

#[tokio::test]
async fn an_error_body_tells_kind_message_and_how_long_to_wait() {
    let reply: Reply = ErrorReply::new(429)
        .message("slow down")
        .retry_after(2)
        .into();
    let mock = mock(reply).await;
    let service = service(&mock, PATIENT);

    let (_, reply) = read(&service, request(&service)).await;

    let error = reply.unwrap_err();
    assert_eq!(
        (error.kind, error.status),
        (ErrorKind::RateLimited, Some(429))
    );
    assert_eq!(error.message, "slow down");
    assert_eq!(error.retry_after, Some(Duration::from_secs(2)));
    assert!(error.is_retryable());
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_after_the_text_that_came() {
    let reply = Reply::new()
        .pieces(["Rain ", "falls", "."])
        .cut(Position::Events(2), CutHow::Close);
    let mock = mock(reply).await;
    let service = service(&mock, PATIENT);

    let (pieces, reply) = read(&service, request(&service)).await;

    assert!(pieces.len() < 3, "{pieces:?}");
    assert_eq!(reply.unwrap_err().kind, ErrorKind::Network);
}

#[tokio::test]
async fn a_provider_that_falls_silent_is_given_up_after_the_idle_time() {
    let reply = Reply::new()
        .pieces(["Rain ", "falls."])
        .stall(Position::Events(2), Until::Never);
    let mock = mock(reply).await;
    let idle = Duration::from_millis(100);
    let service = service(&mock, GatewayTimeouts { idle, ..PATIENT });

    let (_, reply) = read(&service, request(&service)).await;

    assert_eq!(reply.unwrap_err().kind, ErrorKind::Timeout);
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_a_network_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let service = OpenAiChat::new("openai", &url, None, "m", PATIENT).unwrap();

    let (_, reply) = read(&service, request(&service)).await;

    assert_eq!(reply.unwrap_err().kind, ErrorKind::Network);
}

#[tokio::test]
async fn a_remote_provider_without_a_key_is_not_asked() {
    let service = OpenAiChat::new(
        "openai",
        "https://api.example.invalid/v1",
        None,
        "m",
        PATIENT,
    )
    .unwrap();

    let (_, reply) = read(&service, request(&service)).await;

    assert_eq!(reply.unwrap_err().kind, ErrorKind::MissingKey);
}

#[tokio::test]
async fn a_request_that_is_not_streamed_gets_its_text_at_once() {
    let mock = mock(Reply::text("Rain falls.")).await;
    let service = service(&mock, PATIENT);

    let (pieces, reply) = read(
        &service,
        ModelRequest {
            streaming: false,
            ..request(&service)
        },
    )
    .await;

    assert_eq!(pieces, ["Rain falls."]);
    assert_eq!(reply.unwrap().text, "Rain falls.");
}

#[tokio::test]
async fn history_with_tool_results_is_accepted_by_the_provider() {
    let mock = mock(Reply::text("Done.")).await;
    let service = service(&mock, PATIENT);
    let mut with_history = request(&service);
    let call = ToolRequest {
        id: "call_1".into(),
        name: "emit-event".into(),
        arguments: "{oops".into(),
    };
    with_history.messages.extend([
        ChatMessage::Assistant {
            content: String::new(),
            tool_calls: vec![call],
        },
        ChatMessage::Tool {
            tool_call_id: "call_1".into(),
            content: "{}".into(),
        },
    ]);

    let (_, reply) = read(&service, with_history).await;

    assert_eq!(reply.unwrap().text, "Done.");
    let body = mock.journal().remove(0);
    assert!(body.violations.is_empty(), "{:?}", body.violations);
}

#[test]
fn what_compatible_services_do_otherwise_is_put_together_all_the_same() {
    let mut assembler = Assembler::default();
    for data in [
        r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{\"y\""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":":2}"}}]},"finish_reason":"stop"}]}"#,
    ] {
        assembler.push(data).unwrap();
    }

    let reply = assembler.finish().unwrap();

    assert_eq!(reply.reasoning, "hm");
    let calls: Vec<_> = reply
        .tool_calls
        .iter()
        .map(|call| (&*call.name, &*call.arguments))
        .collect();
    assert_eq!(calls, [("f", r#"{"x":1}"#), ("g", r#"{"y":2}"#)]);
}

#[test]
fn an_error_inside_the_stream_ends_it() {
    let fault = Assembler::default()
        .push(r#"{"error":{"message":"overloaded"}}"#)
        .unwrap_err();

    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (ErrorKind::Unavailable, "overloaded")
    );
}

#[test]
fn an_answer_without_a_reason_to_finish_is_not_complete() {
    let mut assembler = Assembler::default();
    assembler
        .push(r#"{"choices":[{"delta":{"content":"Rain"}}]}"#)
        .unwrap();

    assert_eq!(assembler.finish().unwrap_err().kind, ErrorKind::Network);
}

#[test]
fn error_bodies_are_read_in_all_their_shapes() {
    let message = |body: &str| error_of(body.as_bytes()).0;

    assert_eq!(
        message(r#"{"error":{"message":"a"}}"#).as_deref(),
        Some("a")
    );
    assert_eq!(
        message(r#"[{"error":{"message":"b","code":400}}]"#).as_deref(),
        Some("b")
    );
    assert_eq!(message(r#"{"error":"c"}"#).as_deref(), Some("c"));
    assert_eq!(
        message("upstream gone\nmore").as_deref(),
        Some("upstream gone")
    );
    assert_eq!(message("<html>502</html>"), None);
    assert_eq!(message(""), None);
}

#[test]
fn an_exhausted_quota_is_not_tried_again() {
    let status = StatusCode::TOO_MANY_REQUESTS;

    assert_eq!(
        kind_of(status, Some("insufficient_quota")),
        ErrorKind::Unauthorized
    );
    assert_eq!(
        kind_of(status, Some("rate_limit_exceeded")),
        ErrorKind::RateLimited
    );
}
