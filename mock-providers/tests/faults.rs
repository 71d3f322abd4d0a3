//! Broken connections, the control API, and time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::time::Duration;

use serde_json::json;
use support::{ask, chat, exchange, read_raw};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use turnwire_mock::script::Insert;
use turnwire_mock::{
    Faults, MockConfig, MockServer, Outcome, Position, RawReply, Reply, Rule, SocketEnd,
    SocketReply, Timing,
};

const PATH: &str = "/v1/chat/completions";

async fn mock(rule: Rule) -> MockServer {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    mock.push(rule);
    mock
}

/// Everything that a connection gives until it ends.
async fn bytes_of(mock: &MockServer, request: &str) -> (Vec<u8>, bool) {
    let mut stream = TcpStream::connect(mock.addr()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes).await;
    (bytes, ended.is_err())
}

fn post(body: &str) -> String {
    let headers = "authorization: Bearer k\r\ncontent-type: application/json";
    let length = body.len();
    format!(
        "POST {PATH} HTTP/1.1\r\nhost: m\r\n{headers}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn a_reply_may_be_no_http_at_all() {
    let mock = mock(
        Rule::new("r")
            .reply(SocketReply::new(
                "HTTP/1.1 200 OK\r\ncontent-ty",
                SocketEnd::Close,
            ))
            .reply(SocketReply::new("SSH-2.0-OpenSSH\r\n", SocketEnd::Reset))
            .reply("fine"),
    )
    .await;
    let body = chat("x", false).to_string();
    let half = bytes_of(&mock, &post(&body)).await;
    assert_eq!(half, (b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec(), false));
    let reset = bytes_of(&mock, &post(&body)).await;
    assert_eq!(reset, (b"SSH-2.0-OpenSSH\r\n".to_vec(), true));
    assert_eq!(ask(&mock, PATH, &chat("x", false)).await.status, 200);
    assert_eq!(mock.journal()[0].outcome, Outcome::Broken);
}

#[tokio::test]
async fn a_connection_can_end_after_a_reply_without_a_word() {
    let faults = Faults {
        close_after: true,
        ..Faults::default()
    };
    let mock = mock(Rule::new("r").reply(Reply::text("bye").faults(faults))).await;
    let (bytes, reset) = bytes_of(&mock, &post(&chat("x", false).to_string())).await;
    let text = String::from_utf8(bytes).unwrap();
    assert!(
        !reset && text.ends_with('}') && !text.contains("connection: close"),
        "{text}"
    );
}

#[tokio::test]
async fn a_length_may_be_a_lie() {
    let faults = Faults {
        content_length: Some(5000),
        ..Faults::default()
    };
    let mock = mock(Rule::new("r").reply(Reply::text("short").faults(faults))).await;
    let got = read_raw(&mock, PATH, &chat("x", true)).await;
    assert_eq!(got.header("content-length"), "5000");
    assert!(!got.complete && got.body.ends_with(b"data: [DONE]\n\n"));
}

#[tokio::test]
async fn a_gzip_stream_is_readable_piece_by_piece() {
    let faults = Faults {
        gzip: true,
        ..Faults::default()
    };
    let mock = mock(
        Rule::new("r")
            .reply(Reply::text("a b"))
            .reply(Reply::text("a b").faults(faults)),
    )
    .await;
    let plain = ask(&mock, PATH, &chat("x", true)).await;
    let packed = ask(&mock, PATH, &chat("x", true)).await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert_eq!(packed.chunks.len(), plain.chunks.len() + 1);
    // The first piece: the header of gzip and a stored block.
    let first = &packed.chunks[0];
    let length = usize::from(u16::from_le_bytes([first[11], first[12]]));
    assert_eq!(first[10], 0, "a stored block, not the last");
    assert_eq!(first.len(), 15 + length);
    assert!(first[15..].starts_with(b"data: {\"id\":\"chatcmpl-"));
    assert_eq!(
        packed.body[packed.body.len() - 13..][..5],
        [1, 0, 0, 0xff, 0xff]
    );
}

#[tokio::test]
async fn empty_lines_may_come_before_a_plain_answer() {
    let insert = vec![Insert {
        after: Position::Bytes(0),
        text: "\n\n\n".into(),
        hex: String::new(),
    }];
    let faults = Faults {
        insert,
        ..Faults::default()
    };
    let mock = mock(Rule::new("r").reply(Reply::text("late").faults(faults))).await;
    let got = ask(&mock, PATH, &chat("x", false)).await;
    assert!(got.body.starts_with(b"\n\n\n{"));
    assert_eq!(got.json()["choices"][0]["message"]["content"], "late");
}

#[tokio::test]
async fn raw_replies_are_sent_as_they_are() {
    let redirect = RawReply {
        status: 307,
        headers: [("location".to_owned(), "http://127.0.0.1:9/".to_owned())].into(),
        ..RawReply::default()
    };
    let html = RawReply::new(200, "text/html", ["<html>busy</html>"]);
    let stream = RawReply::stream(["data: 1\n", "\n"]);
    let mock = mock(Rule::new("r").reply(redirect).reply(html).reply(stream)).await;
    let got = ask(&mock, PATH, &chat("x", true)).await;
    assert_eq!(
        (got.status, got.header("location")),
        (307, "http://127.0.0.1:9/")
    );
    let got = ask(&mock, PATH, &chat("x", true)).await;
    assert_eq!(
        (got.header("content-type"), got.text().as_str()),
        ("text/html", "<html>busy</html>")
    );
    let got = ask(&mock, PATH, &chat("x", true)).await;
    assert_eq!(got.chunks, [b"data: 1\n".to_vec(), b"\n".to_vec()]);
}

#[tokio::test(start_paused = true)]
async fn all_time_is_tokios() {
    let timing = Timing {
        headers: Duration::from_secs(10),
        first_token: Duration::from_secs(60),
        per_token: Duration::from_secs(5),
        before_end: Duration::from_secs(7),
        ..Timing::default()
    };
    let mock = mock(Rule::new("r").reply(Reply::text("a b c").timing(timing))).await;
    let began = Instant::now();
    let got = ask(&mock, PATH, &chat("x", true)).await;
    assert!(got.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(began.elapsed().as_secs(), 10 + 60 + 2 * 5 + 7);
}

#[tokio::test]
async fn any_language_can_drive_the_mock() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    let call = async |method: &str, path: &str, body: &str| {
        exchange(
            mock.addr(),
            method,
            &format!("/_turnwire/{path}"),
            &[],
            body,
        )
        .await
    };
    assert_eq!(call("GET", "health", "").await.json(), json!({"ok": true}));
    let script = "name: s\nrules:\n- when: {last_user: hi}\n  reply: {text: Hello., parts: []}\n";
    let loaded = call("POST", "scripts", script).await;
    assert_eq!((loaded.status, loaded.json()), (201, json!({"id": 0})));
    let got = ask(&mock, PATH, &chat("hi", false)).await;
    assert_eq!(got.json()["choices"][0]["message"]["content"], "Hello.");
    let scripts = call("GET", "scripts", "").await.json();
    assert_eq!(
        scripts,
        json!([{"id": 0, "name": "s", "rules": [["#0", 1]]}])
    );
    let journal = call("GET", "journal", "").await.json();
    assert_eq!(
        journal.as_array().map(Vec::len),
        Some(1),
        "control requests are not in it"
    );
    assert_eq!(journal[0]["rule"]["rule"], "#0");
    assert_eq!(call("GET", "journal?since=1", "").await.json(), json!([]));
    assert_eq!(call("DELETE", "scripts/0", "").await.status, 200);
    assert_eq!(call("DELETE", "scripts/0", "").await.status, 404);
    assert_eq!(ask(&mock, PATH, &chat("hi", false)).await.status, 400);
    assert_eq!(call("POST", "reset", "").await.status, 200);
    assert!(mock.journal().is_empty());
    let bad = call("POST", "scripts", "rules:\n  - wen: 1\n").await;
    assert_eq!((bad.status, &bad.json()["line"]), (400, &json!(2)));
    assert_eq!(call("GET", "nothing", "").await.status, 404);
}

#[tokio::test]
async fn a_gate_is_opened_over_http() {
    let mock = mock(Rule::new("r").reply(Reply::new().gate("go").say("through"))).await;
    let open = async {
        mock.wait_for(|entries| entries.iter().any(|entry| entry.bytes_sent > 0))
            .await;
        exchange(mock.addr(), "POST", "/_turnwire/gates/go", &[], "").await
    };
    let request = chat("x", true);
    let (got, opened) = tokio::join!(ask(&mock, PATH, &request), open);
    assert_eq!(opened.status, 200);
    assert!(got.text().contains("through"));
}
