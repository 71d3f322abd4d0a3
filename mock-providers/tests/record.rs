//! Records one mock through the recorder and plays it back with another.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::json;
use support::{chat, exchange};
use turnwire_mock::record::{RecordOptions, Recorder};
use turnwire_mock::script::CutHow;
use turnwire_mock::{ErrorReply, MockConfig, MockServer, Position, Reply, Rule, Script};

const PATH: &str = "/v1/chat/completions";
const KEY: &str = "sk-live-0123456789abcdef";

async fn ask(addr: std::net::SocketAddr, body: &serde_json::Value) -> support::Reply {
    let bearer = format!("Bearer {KEY}");
    exchange(
        addr,
        "POST",
        PATH,
        &[("authorization", &bearer)],
        &body.to_string(),
    )
    .await
}

#[tokio::test]
async fn what_was_recorded_is_played_back_byte_by_byte() {
    let service = MockServer::start(MockConfig::default()).await.unwrap();
    service.push(Rule::on("stream").reply(Reply::text("Grüße an alle.")));
    service.push(Rule::on("twice").reply("first").reply("second"));
    service
        .push(Rule::on("cut").reply(Reply::text("gone").cut(Position::Bytes(50), CutHow::Close)));
    let message = format!("Incorrect API key provided: {KEY}");
    service.push(Rule::on("key").reply(ErrorReply::new(401).message(message)));
    let recorder = Recorder::start(RecordOptions::new(format!("http://{}", service.addr()))).await;
    let recorder = recorder.unwrap();

    let requests = [
        chat("stream", true),
        chat("twice", false),
        chat("twice", false),
        chat("key", false),
        chat("cut", true),
    ];
    let mut recorded = Vec::new();
    for request in &requests {
        recorded.push(ask(recorder.addr(), request).await);
    }
    let script = recorder.stop();

    let text = script.to_json().unwrap();
    assert!(!text.contains(KEY) && text.contains("[secret]"), "{text}");
    assert!(!text.contains("openai-organization"));
    assert_eq!(script.rules.len(), 4, "equal requests are one rule");

    let player = MockServer::start(MockConfig::default()).await.unwrap();
    player.load(Script::parse(&text).unwrap());
    for (request, recorded) in requests.iter().zip(&recorded) {
        let played = ask(player.addr(), request).await;
        assert_eq!(played.status, recorded.status);
        assert_eq!(played.complete, recorded.complete);
        assert_eq!(
            played.header("content-type"),
            recorded.header("content-type")
        );
        let said = String::from_utf8_lossy(&recorded.body).replace(KEY, "[secret]");
        assert_eq!(String::from_utf8_lossy(&played.body), said);
    }
    let other = ask(player.addr(), &chat("something else", false)).await;
    assert_eq!(other.status, 400);
}

#[tokio::test]
async fn a_service_that_cannot_be_reached_is_a_bad_gateway() {
    let recorder = Recorder::start(RecordOptions::new("http://127.0.0.1:1"))
        .await
        .unwrap();
    let got = ask(recorder.addr(), &json!({})).await;
    assert_eq!(got.status, 502);
    assert!(
        got.text().contains("cannot connect to 127.0.0.1:1"),
        "{}",
        got.text()
    );
    assert!(recorder.stop().rules.is_empty());
    assert!(
        Recorder::start(RecordOptions::new("nowhere"))
            .await
            .is_err()
    );
}
