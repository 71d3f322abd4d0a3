//! What goes wrong on the way, on every wire.

use super::*;
use turnwire_mock::{
    Call, CutHow, ErrorForm, ErrorReply, Position, RawReply, Service, SocketEnd, SocketReply,
};

#[tokio::test]
async fn an_answer_that_ends_early_is_cut_wherever_it_ends() {
    let reply = || {
        Reply::new()
            .pieces(["Rain ", "falls."])
            .calls([Call::new("look", json!({ "a": 1 }))])
    };
    for wire in Wire::ALL {
        let whole = mock([reply()]).await;
        client(&whole, wire).ask(request()).await.result.unwrap();
        let length = usize::try_from(whole.journal()[0].bytes_sent).unwrap();
        for how in [CutHow::End, CutHow::Close, CutHow::Reset] {
            let mut at = 0;
            while at + 40 < length {
                let mock = mock([reply().cut(Position::Bytes(at), how)]).await;
                let outcome = client(&mock, wire).ask(request()).await;
                let kind = match outcome.result {
                    // What is missing then is nothing that the wire needs.
                    Ok(reply) => {
                        assert_eq!(
                            (reply.text.as_str(), reply.tool_calls.len()),
                            ("Rain falls.", 1)
                        );
                        ErrorKind::Interrupted
                    }
                    Err(error) => error.kind,
                };
                assert_eq!(
                    kind,
                    ErrorKind::Interrupted,
                    "{wire} {how:?} {at} of {length}"
                );
                at += 97;
            }
        }
    }
}

#[tokio::test]
async fn a_stream_without_the_wires_own_end_is_cut() {
    for wire in Wire::ALL {
        let mock = mock([Reply::text("Rain").finish(turnwire_mock::Finish::Absent)]).await;
        let outcome = client(&mock, wire).ask(request()).await;
        let kind = kind_of(&outcome);
        // Responses and Anthropic still send their last event; the reason to stop is missing there.
        let complete = wire == Wire::OpenaiResponses;
        assert!(
            kind == Some(ErrorKind::Interrupted) || complete,
            "{wire} {kind:?}"
        );
    }
}

#[tokio::test]
async fn statuses_are_told_by_kind_message_and_target_on_every_wire() {
    for wire in Wire::ALL {
        for (status, kind) in [
            (400, ErrorKind::BadRequest),
            (401, ErrorKind::Unauthorized),
            (404, ErrorKind::NotFound),
            (429, ErrorKind::RateLimited),
            (500, ErrorKind::Unavailable),
            (529, ErrorKind::Overloaded),
        ] {
            let mock = mock([ErrorReply::new(status).message("because sk-abcdefghijkl")]).await;
            let error = client(&mock, wire).ask(request()).await.result.unwrap_err();
            assert_eq!((error.kind, error.status), (kind, Some(status)), "{wire}");
            assert_eq!(error.message, "because [key]", "{wire}");
            assert_eq!(error.target.model.as_deref(), Some(model_of(wire)));
            let tries = if error.is_retryable() { 3 } else { 1 };
            assert_eq!(mock.journal().len(), tries, "{wire} {status}");
        }
    }
}

#[tokio::test]
async fn an_error_inside_a_stream_is_the_providers_error() {
    for wire in Wire::ALL {
        for text in ["", "Rain "] {
            let error = ErrorReply::new(503).message("too much to do");
            let mock = mock([Reply::text(text).then_error(error)]).await;
            let outcome = client(&mock, wire).ask(request()).await;
            let error = outcome.result.clone().unwrap_err();
            assert_eq!(error.message, "too much to do", "{wire}");
            assert!(error.is_retryable(), "{wire} {error:?}");
            assert_eq!(texts(&outcome).0, text, "{wire}");
            assert_eq!(mock.journal().len(), 1, "nothing is sent again by itself");
        }
    }
}

#[tokio::test]
async fn every_form_of_an_error_is_read_plain_and_streamed() {
    for form in [
        ErrorForm::Object,
        ErrorForm::String,
        ErrorForm::NumericCode,
        ErrorForm::Vllm,
        ErrorForm::OpenRouter,
        ErrorForm::Google,
        ErrorForm::GoogleArray,
        ErrorForm::Typed,
        ErrorForm::Flat,
        ErrorForm::Detail,
        ErrorForm::Message,
        ErrorForm::BaseResp,
    ] {
        let error = || ErrorReply::new(400).message("it is broken").form(form);
        let mock_status = mock([error()]).await;
        let refused = client(&mock_status, Wire::OpenaiChat).ask(request()).await;
        assert_eq!(
            refused.result.unwrap_err().message,
            "it is broken",
            "{form:?}"
        );

        if !matches!(form, ErrorForm::Message | ErrorForm::Detail) {
            let mock_stream = mock([Reply::text("Rain").then_error(error())]).await;
            let broken = client(&mock_stream, Wire::OpenaiChat).ask(request()).await;
            assert_eq!(
                broken.result.unwrap_err().message,
                "it is broken",
                "{form:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_no_answer_is_no_empty_success() {
    let html = || RawReply::new(200, "text/html", ["<html>busy</html>"]);
    let json = |text: &str| RawReply::new(200, "application/json", [text]);
    for wire in Wire::ALL {
        for raw in [
            html(),
            json("{\"error\":{\"message\":\"no\"}}"),
            json("{}"),
            json("{\"choices\":[]}"),
            json(""),
            RawReply::stream([""]),
            RawReply::stream(["data: {\"x\":"]),
            RawReply::stream(["data: what\n\n"]),
        ] {
            let mock = mock([raw.clone()]).await;
            let outcome = client(&mock, wire).ask(request()).await;
            assert!(outcome.result.is_err(), "{wire} {raw:?}");
        }
    }
}

#[tokio::test]
async fn a_bare_error_at_the_end_of_a_stream_is_found() {
    let chunk = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Rain\"}]}}]}\r\n\r\n";
    let bare = "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"gone\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n";
    let mock = mock([RawReply::stream([chunk, bare])]).await;
    let error = client(&mock, Wire::Gemini)
        .ask(request())
        .await
        .result
        .unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Overloaded, "gone")
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = mock([Reply::text("stolen")]).await;
    let redirect = RawReply {
        status: 307,
        headers: [(
            "location".to_owned(),
            format!("{}/chat/completions", elsewhere.base_url()),
        )]
        .into(),
        ..RawReply::default()
    };
    let mock = mock([redirect]).await;
    let error = client(&mock, Wire::OpenaiChat)
        .ask(request())
        .await
        .result
        .unwrap_err();
    assert_eq!(error.status, Some(307));
    assert!(elsewhere.journal().is_empty());
}

#[tokio::test]
async fn a_connection_that_breaks_before_an_answer_is_tried_again() {
    let broken = SocketReply::new("", SocketEnd::Reset);
    let mock = mock([Reply::from(broken), Reply::text("text")]).await;
    let outcome = client(&mock, Wire::OpenaiChat).ask(request()).await;
    assert_eq!(outcome.result.unwrap().text, "text");
    assert_eq!(
        outcome
            .sent
            .iter()
            .map(SentRequest::failed)
            .collect::<Vec<_>>(),
        [true, false]
    );
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_a_network_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let target = TargetConfig::new(Wire::OpenaiChat, &url, "m");
    let outcome = Client::new(config(target)).unwrap().ask(request()).await;
    assert_eq!(kind_of(&outcome), Some(ErrorKind::Network));
}

#[tokio::test]
async fn a_remote_provider_without_a_key_is_not_asked() {
    let target = TargetConfig::new(Wire::OpenaiChat, "https://api.example.invalid/v1", "m");
    let outcome = Client::new(config(target)).unwrap().ask(request()).await;
    assert_eq!(kind_of(&outcome), Some(ErrorKind::MissingKey));
    assert!(outcome.sent.is_empty());
}

#[tokio::test]
async fn a_failed_fallback_is_the_one_that_failed() {
    let mock = mock([ErrorReply::new(400), ErrorReply::new(404)]).await;
    let fallback = target(&mock, Wire::Gemini).called("google");
    let config = config(target(&mock, Wire::OpenaiChat)).fallback(fallback);
    let error = Client::new(config)
        .unwrap()
        .ask(request())
        .await
        .result
        .unwrap_err();
    assert_eq!(
        (error.kind, error.target.provider.as_str()),
        (ErrorKind::NotFound, "google")
    );
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cut_off_at_the_provider() {
    let endless = Reply::text("x".repeat(100)).per_token(Duration::from_millis(20));
    let mock = mock([endless.chunk(turnwire_mock::Chunking::Chars(1))]).await;
    let mut call = client(&mock, Wire::OpenaiChat).begin(request());
    assert!(matches!(call.next().await, Some(Ok(ModelEvent::Text(_)))));
    drop(call);
    for _ in 0..100 {
        if mock.journal()[0].outcome == turnwire_mock::Outcome::ClientClosed {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the mock never saw the end");
}

#[tokio::test]
async fn compatible_services_are_understood() {
    for service in [
        Service::Deepseek,
        Service::Dashscope,
        Service::Groq,
        Service::Openrouter,
        Service::Vllm,
        Service::Ollama,
        Service::Mistral,
        Service::Moonshot,
        Service::Minimax,
    ] {
        let reply = Reply::new()
            .reasoning("hm")
            .pieces(["Rain ", "falls."])
            .calls([
                Call::new("look", json!({ "a": 1 })),
                Call::new("take", json!({ "a": 2 })),
            ])
            .service(service);
        let mock = mock([reply]).await;
        let reply = client(&mock, Wire::OpenaiChat)
            .ask(request())
            .await
            .result
            .unwrap();
        // Ollama's mock has no place for thinking.
        let thinking = if service == Service::Ollama { "" } else { "hm" };
        let said = (reply.text.as_str(), reply.reasoning.as_str());
        assert_eq!(said, ("Rain falls.", thinking), "{service:?}");
        let calls: Vec<_> = reply
            .tool_calls
            .iter()
            .map(|call| (&*call.name, call.parsed()))
            .collect();
        let expected = [
            ("look", Some(json!({ "a": 1 }))),
            ("take", Some(json!({ "a": 2 }))),
        ];
        assert_eq!(calls, expected, "{service:?}");
        assert!(reply.usage.output_tokens.is_some(), "{service:?}");
    }
}

#[tokio::test]
async fn a_compressed_stream_is_read_as_it_comes() {
    let mut reply = Reply::new().pieces(["Rain ", "é", " falls."]);
    reply.faults.gzip = true;
    let mock = mock([reply]).await;
    let outcome = client(&mock, Wire::OpenaiChat).ask(request()).await;
    assert_eq!(outcome.result.unwrap().text, "Rain é falls.");
}

#[tokio::test]
async fn a_service_that_does_not_stream_is_read_all_the_same() {
    for wire in Wire::ALL {
        let plain = mock([Reply::text("Rain.")]).await;
        let request_plain = ModelRequest {
            streaming: false,
            ..request()
        };
        client(&plain, wire)
            .ask(request_plain)
            .await
            .result
            .unwrap();
        // The same bytes in answer to a request for a stream.
        let body = match wire {
            Wire::OpenaiChat | Wire::GeminiOpenai => {
                json!({ "choices": [{ "message": { "content": "Rain." }, "finish_reason": "stop" }] })
            }
            Wire::OpenaiResponses => json!({ "status": "completed", "output": [{ "type": "message",
                "role": "assistant", "content": [{ "type": "output_text", "text": "Rain." }] }] }),
            Wire::AnthropicMessages => {
                json!({ "content": [{ "type": "text", "text": "Rain." }], "stop_reason": "end_turn" })
            }
            Wire::Gemini => {
                json!([{ "candidates": [{ "content": { "parts": [{ "text": "Rain." }] },
                "finishReason": "STOP" }] }])
            }
        };
        let mock = mock([RawReply::new(
            200,
            "application/json",
            [format!("\n\n {body}")],
        )])
        .await;
        let outcome = client(&mock, wire).ask(request()).await;
        assert_eq!(outcome.result.unwrap().text, "Rain.", "{wire}");
    }
}
