//! Chat Completions over real sockets: what a client gets, byte by byte.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::time::Duration;

use serde_json::json;
use support::{ask, chat, read_raw};
use turnwire_mock::script::{Calls, CutHow, Part, Stall, Until};
use turnwire_mock::{
    Call, ErrorReply, Faults, MockConfig, MockServer, Outcome, Position, Reply, Rule, Script,
    Unmatched, Usage, When,
};

async fn mock(script: impl Into<Script>) -> MockServer {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    mock.load(script);
    mock
}

#[tokio::test]
async fn a_streamed_answer_is_chunks_and_a_done() {
    let mock = mock(Rule::on("hello").reply(Reply::text("Hello, world.")).once()).await;
    let mut request = chat("say hello", true);
    request["stream_options"] = json!({"include_usage": true});
    let reply = ask(&mock, "/v1/chat/completions", &request).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.header("content-type"),
        "text/event-stream; charset=utf-8"
    );
    assert_eq!(reply.header("transfer-encoding"), "chunked");
    assert_eq!(reply.chunks.len(), 6, "one HTTP chunk for each event");
    insta::assert_snapshot!("chat_stream", reply.text());
}

#[tokio::test]
async fn a_plain_answer_is_one_object() {
    let usage = Usage {
        input: 20,
        output: 9,
        cached: 4,
        reasoning: 3,
        ..Usage::default()
    };
    let mock = mock(
        Rule::on("weather").reply(
            Reply::text("Let me see.")
                .calls([
                    Call::new("get_weather", json!({"city": "Paris"})),
                    Call::new("now", "{"),
                ])
                .usage(usage),
        ),
    )
    .await;
    let reply = ask(&mock, "/chat/completions", &chat("the weather?", false)).await;
    assert_eq!(reply.header("content-type"), "application/json");
    insta::assert_json_snapshot!("chat_plain", reply.json());
}

#[tokio::test]
async fn parallel_calls_come_one_after_the_other_or_in_turns() {
    let calls = || {
        vec![
            Call::new("a", "").pieces(["{\"x\"", ":1}"]).id("call_a"),
            Call::new("b", "").pieces(["{}"]).id("call_b"),
        ]
    };
    let reply = |interleave| {
        Reply::new().part(Part::Calls(Calls {
            list: calls(),
            interleave,
        }))
    };
    let mock = mock(Rule::new("calls").reply(reply(false)).reply(reply(true))).await;
    for name in ["chat_calls", "chat_calls_interleaved"] {
        let reply = ask(&mock, "/v1/chat/completions", &chat("go", true)).await;
        insta::assert_snapshot!(name, reply.text());
    }
}

#[tokio::test]
async fn rules_tell_concurrent_scenarios_apart() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    for name in ["one", "two", "three"] {
        mock.load(
            Script::new(name).rule(
                Rule::on(format!("[{name}]"))
                    .reply(Reply::text("first"))
                    .reply(Reply::text(name)),
            ),
        );
    }
    let mut tasks = tokio::task::JoinSet::new();
    let mock = std::sync::Arc::new(mock);
    for name in ["one", "two", "three"] {
        let mock = mock.clone();
        tasks.spawn(async move {
            let request = chat(&format!("[{name}] go"), false);
            for expected in ["first", name, name] {
                let reply = ask(&mock, "/v1/chat/completions", &request).await;
                assert_eq!(reply.json()["choices"][0]["message"]["content"], expected);
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(mock.journal().len(), 9);
}

#[tokio::test]
async fn ids_do_not_depend_on_who_comes_first() {
    let script = || {
        Script::new("s")
            .rule(Rule::on("a").reply(Reply::text("x")))
            .rule(Rule::on("b").reply(Reply::text("x")))
    };
    let (first, second) = (mock(script()).await, mock(script()).await);
    let id = async |mock: &MockServer, text: &str| {
        let reply = ask(mock, "/v1/chat/completions", &chat(text, false)).await;
        reply.json()["id"].as_str().unwrap().to_owned()
    };
    let (a1, b1) = (id(&first, "a").await, id(&first, "b").await);
    let (b2, a2) = (id(&second, "b").await, id(&second, "a").await);
    assert_eq!((&a1, &b1), (&a2, &b2));
    assert_ne!(a1, b1);
}

#[tokio::test]
async fn a_request_that_no_rule_takes_is_told_the_nearest() {
    let mock = mock(
        Script::new("weather")
            .rule(
                Rule::new("ask")
                    .when(When::new().last_user("weather").step(0))
                    .reply("x"),
            )
            .rule(
                Rule::new("other")
                    .when(When::new().last_user("x").model("q*").turn(7))
                    .reply("x"),
            ),
    )
    .await;
    let reply = ask(&mock, "/v1/chat/completions", &chat("hello", false)).await;
    assert_eq!(reply.status, 400);
    insta::assert_snapshot!(
        reply.json()["error"]["message"].as_str().unwrap(),
        @r#"turnwire mock: no rule takes this request; the nearest is rule "ask" of script "weather"; last_user: wanted something with "weather", got "hello""#
    );
}

#[tokio::test]
async fn a_lenient_mock_answers_everything() {
    let config = MockConfig {
        unmatched: Unmatched::text("As you like."),
        ..MockConfig::default()
    };
    let mock = MockServer::start(config).await.unwrap();
    let reply = ask(&mock, "/v1/chat/completions", &chat("anything", false)).await;
    assert_eq!(
        reply.json()["choices"][0]["message"]["content"],
        "As you like."
    );
    assert_eq!(mock.journal()[0].rule, None);
}

#[tokio::test]
async fn errors_come_with_the_services_words_and_headers() {
    let mock = mock(
        Rule::new("down")
            .reply(ErrorReply::new(429).retry_after(2.0))
            .reply("up again")
            .once(),
    )
    .await;
    let reply = ask(&mock, "/v1/chat/completions", &chat("hi", true)).await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, "2"));
    insta::assert_snapshot!(
        reply.text(),
        @r#"{"error":{"message":"Rate limit reached.","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}"#
    );
    let reply = ask(&mock, "/v1/chat/completions", &chat("hi", true)).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        ask(&mock, "/v1/chat/completions", &chat("hi", true))
            .await
            .status,
        400
    );
    let entries = mock.journal();
    assert_eq!(entries[1].same_body_as, Some(0));
    assert_eq!(entries[1].rule.as_ref().unwrap().nth, 1);
}

#[tokio::test]
async fn every_cut_ends_at_its_byte_in_its_way() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    for how in [CutHow::End, CutHow::Close, CutHow::Reset] {
        for at in [0, 1, 40, 300] {
            let text = format!("cut {how:?} {at}");
            mock.push(
                Rule::on(&*text).reply(Reply::text("Hi there.").cut(Position::Bytes(at), how)),
            );
            let raw = read_raw(&mock, "/v1/chat/completions", &chat(&text, true)).await;
            assert_eq!(raw.body.len(), at, "{text}");
            assert_eq!(raw.complete, how == CutHow::End, "{text}");
            assert_eq!(raw.reset, how == CutHow::Reset, "{text}");
            let entry = mock.journal().pop().unwrap();
            let broken = if how == CutHow::End {
                Outcome::Complete
            } else {
                Outcome::Broken
            };
            assert_eq!(
                (entry.outcome, entry.bytes_sent),
                (broken, at as u64),
                "{text}"
            );
            assert!(entry.body_bytes > 300, "whole: {}", entry.body_bytes);
        }
    }
}

#[tokio::test]
async fn one_byte_a_write_gives_the_same_bytes() {
    let faults = Faults {
        write_size: Some(1),
        ..Faults::default()
    };
    let mock = mock(
        Rule::new("r")
            .reply(Reply::text("é 你 👩‍🚀"))
            .reply(Reply::text("é 你 👩‍🚀").faults(faults)),
    )
    .await;
    let whole = ask(&mock, "/v1/chat/completions", &chat("go", true)).await;
    let bytes = ask(&mock, "/v1/chat/completions", &chat("go", true)).await;
    assert_eq!(bytes.chunks.len(), bytes.text().len());
    let strip = |text: String| text.replace("chatcmpl-", "").lines().count();
    assert_eq!(strip(whole.text()), strip(bytes.text()));
}

#[tokio::test]
async fn a_gate_holds_a_reply_until_it_is_opened() {
    let mock = mock(Rule::new("r").reply(Reply::text("before").gate("go").say(" after"))).await;
    let request = chat("go", true);
    let reply = ask(&mock, "/v1/chat/completions", &request);
    tokio::pin!(reply);
    tokio::select! {
        _ = &mut reply => panic!("the gate is closed"),
        _ = mock.wait_for(|entries| entries.iter().any(|entry| entry.bytes_sent > 0)) => {}
    }
    assert_eq!(mock.journal()[0].outcome, Outcome::Running);
    mock.open("go");
    let reply = reply.await;
    assert!(reply.text().contains(" after") && reply.text().ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn a_client_that_goes_away_is_noticed() {
    let faults = Faults {
        stalls: vec![Stall {
            after: Position::Tokens(1),
            until: Until::Never,
        }],
        ..Faults::default()
    };
    let mock = mock(Rule::new("r").reply(Reply::text("a b c").faults(faults))).await;
    let request = chat("go", true);
    let reply = ask(&mock, "/v1/chat/completions", &request);
    assert!(
        tokio::time::timeout(Duration::from_millis(200), reply)
            .await
            .is_err()
    );
    let closed = mock.wait_for(|entries| entries[0].outcome == Outcome::ClientClosed);
    tokio::time::timeout(Duration::from_secs(1), closed)
        .await
        .unwrap();
}

#[tokio::test]
async fn shutdown_lets_a_running_reply_finish() {
    let mock =
        mock(Rule::new("r").reply(Reply::text("a").pause(Duration::from_millis(100)).say("b")))
            .await;
    let addr = mock.addr();
    let running = tokio::spawn(support::ask_at(
        addr,
        "/v1/chat/completions",
        chat("go", true),
    ));
    tokio::time::sleep(Duration::from_millis(50)).await;
    mock.shutdown().await;
    assert!(running.await.unwrap().text().ends_with("data: [DONE]\n\n"));
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
}

#[tokio::test]
async fn bad_requests_get_errors_and_never_a_panic() {
    let mock = MockServer::start(MockConfig {
        max_body: 1000,
        ..MockConfig::default()
    })
    .await
    .unwrap();
    let reply = support::ask_text(&mock, "POST", "/v1/chat/completions", "{no json").await;
    assert_eq!(reply.status, 400);
    let reply = support::ask_text(&mock, "POST", "/v1/chat/completions", "[1,2]").await;
    assert_eq!(reply.status, 400);
    let reply = support::ask_text(&mock, "POST", "/v1/chat/completions", &"x".repeat(2000)).await;
    assert_eq!(reply.status, 413);
    let reply = support::ask_text(&mock, "DELETE", "/v1/nothing", "").await;
    assert_eq!(reply.status, 404);
    let reply = support::ask_text(&mock, "GET", "/v1/models/gpt-5.2", "").await;
    assert_eq!(reply.json()["id"], "gpt-5.2");
    let reply = support::ask_text(&mock, "GET", "/v1/models/none", "").await;
    assert_eq!(reply.status, 404);
}
