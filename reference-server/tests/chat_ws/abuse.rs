//! What a socket is spared nothing of: bounded, clear, and nobody else notices.

use std::time::Duration;

use futures_util::SinkExt;
use serde_json::json;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use turnwire_mock::{Reply, Rule, Script};
use turnwire_spec::chat_ws::{close, limits};

use crate::support::Bench;

fn status(error: Error) -> u16 {
    match error {
        Error::Http(response) => response.status().as_u16(),
        other => panic!("no answer: {other}"),
    }
}

#[tokio::test]
async fn a_message_of_one_megabyte_is_taken_and_a_longer_one_closes_with_1009() {
    let bench = Bench::new().await;
    let mut client = bench.socket().await;
    let frame = |fill: usize| json!({ "type": "ping", "fill": "x".repeat(fill) }).to_string();
    let most = limits::MAX_MESSAGE_BYTES - frame(0).len();

    client.text(&frame(most)).await;
    client.next("pong").await;
    let longer = client.socket.send(Message::text(frame(most + 1))).await;

    // Who is closed while it still writes may not hear the code.
    if longer.is_ok() {
        assert!(matches!(
            client.close_code().await,
            Some(close::TOO_LARGE) | None
        ));
    }
    assert!(bench.socket().await.is_alive().await);
}

#[tokio::test]
async fn a_frame_in_many_fragments_is_one_frame() {
    let bench = Bench::new().await;
    let mut client = bench.socket().await;
    let text = br#"{"type":"ping"}"#;
    for (index, byte) in text.iter().enumerate() {
        let opcode = if index == 0 {
            Data::Text
        } else {
            Data::Continue
        };
        let last = index + 1 == text.len();
        let piece = Bytes::copy_from_slice(&[*byte]);
        client
            .frame(Frame::message(piece, OpCode::Data(opcode), last))
            .await;
        if index == 3 {
            client
                .socket
                .send(Message::Ping(Bytes::from_static(b"between")))
                .await
                .unwrap();
        }
    }
    client.next("pong").await;
}

#[tokio::test]
async fn a_text_that_is_no_utf8_closes_with_1007() {
    let bench = Bench::new().await;
    let mut client = bench.socket().await;
    let text = Frame::message(
        Bytes::from_static(b"\xff\xfe"),
        OpCode::Data(Data::Text),
        true,
    );
    client.frame(text).await;
    assert_eq!(client.close_code().await, Some(close::INVALID_UTF8));
}

#[tokio::test]
async fn a_reserved_bit_closes_with_1002() {
    let bench = Bench::new().await;
    let mut client = bench.socket().await;
    let mut frame = Frame::message(Bytes::from_static(b"{}"), OpCode::Data(Data::Text), true);
    frame.header_mut().rsv1 = true;
    client.frame(frame).await;
    assert_eq!(client.close_code().await, Some(close::PROTOCOL_ERROR));
}

#[tokio::test]
async fn a_binary_message_with_json_is_a_frame_and_any_other_is_told() {
    let bench = Bench::new().await;
    let mut client = bench.socket().await;
    let ping = Bytes::from_static(br#"{"type":"ping"}"#);
    client.socket.send(Message::Binary(ping)).await.unwrap();
    client.next("pong").await;
    client
        .socket
        .send(Message::Binary(Bytes::from_static(b"\x00\xff")))
        .await
        .unwrap();
    assert_eq!(client.next("chat:error").await["error"], "Invalid JSON");
    assert!(client.is_alive().await);
}

#[tokio::test]
async fn a_flood_of_pings_is_answered_and_nothing_is_lost() {
    let bench = Bench::new().await;
    let mut client = bench.socket().await;
    for _ in 0..20 {
        for _ in 0..500 {
            let ping = Message::Ping(Bytes::from_static(b"flood"));
            client.socket.feed(ping).await.unwrap();
        }
        client.socket.flush().await.unwrap();
    }
    assert!(client.is_alive().await);
    assert!(!client.chat("still there?").await.is_empty());
}

#[tokio::test]
async fn a_thousand_sockets_hear_of_a_turn_and_one_more_is_refused() {
    let bench = Bench::with(|config| config.max_connections = 1_001).await;
    let mut clients = Vec::new();
    for _ in 0..1_000 {
        clients.push(bench.socket().await);
    }
    let mut origin = bench.socket().await;
    let refused = bench.try_socket(&[]).await.err().map(status);
    assert_eq!(refused, Some(503));
    origin.chat("hello, all").await;
    for client in &mut clients {
        assert_eq!(client.next("chat:active").await["running"], true);
    }
    drop(clients);
    assert!(origin.is_alive().await);
}

#[tokio::test]
async fn a_socket_that_does_not_read_is_cut_and_replays_what_it_missed() {
    let bench = Bench::with(|config| config.chat.kept_frames = 10_000).await;
    let pieces = (0..3_000).map(|n| format!("{n:04}{}", "x".repeat(4_000)));
    let reply = Reply::new().pieces(pieces);
    bench
        .mock()
        .load(Script::from(Rule::on("a lot").reply(reply)));
    let mut slow = bench.socket().await;
    let mut watcher = bench.socket().await;
    let payload = json!({ "projectSlug": "scratch", "message": "a lot, please" });
    slow.send("chat:send", payload).await;
    let session = watcher.next("chat:active").await["sessionId"].clone();
    // The slow one reads nothing; the turn ends all the same.
    while watcher.next("chat:active").await["running"] == true {}
    assert_eq!(slow.close_code().await, None, "it was cut");
    let mut back = bench.socket().await;
    back.send(
        "chat:subscribe",
        json!({ "sessionId": session, "wantReplay": true }),
    )
    .await;
    // The buffer holds 8 MiB of the 12: what is gone is said to be gone.
    assert_eq!(back.next("chat:resync").await["sessionId"], session);
}

#[tokio::test]
async fn a_socket_that_answers_no_ping_is_cut() {
    let bench = Bench::with(|config| config.time_scale = 0.01).await;
    let mut client = bench.socket().await;
    // Nobody reads `client`, so nothing answers its pings. Three times as long as the server waits at least.
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(client.close_code().await, None);
}

#[tokio::test]
async fn the_page_of_a_stranger_gets_no_socket_and_the_own_page_does() {
    let bench = Bench::new().await;
    let own = bench.server.url();
    let foreign = bench.try_socket(&[("origin", "https://evil.test")]).await;
    assert_eq!(foreign.err().map(status), Some(403));
    assert!(
        bench
            .try_socket(&[("origin", &own)])
            .await
            .unwrap()
            .is_alive()
            .await
    );
}

#[tokio::test]
async fn a_stranger_whose_name_leads_here_gets_no_socket_although_the_page_has_that_name() {
    let rebound = [
        ("host", "evil.test:7000"),
        ("origin", "http://evil.test:7000"),
    ];
    let bench = Bench::new().await;
    let refused = bench.try_socket(&rebound).await;
    assert_eq!(refused.err().map(status), Some(403));
    let bench = Bench::with(|config| config.hosts = vec!["evil.test".to_owned()]).await;
    let listed = bench.try_socket(&rebound).await;
    assert!(listed.unwrap().is_alive().await);
}

#[tokio::test]
async fn a_wrong_token_gets_no_socket() {
    let bench = Bench::with(|config| config.chat.token = Some("right".to_owned())).await;
    for headers in [&[][..], &[("authorization", "Bearer wrong")]] {
        assert_eq!(bench.try_socket(headers).await.err().map(status), Some(401));
    }
    let right = [("authorization", "Bearer right")];
    assert!(bench.try_socket(&right).await.unwrap().is_alive().await);
}

#[tokio::test]
async fn a_shutdown_closes_sockets_with_1001() {
    let bench = Bench::new().await;
    let mut client = bench.socket().await;
    assert!(client.is_alive().await);
    let (code, ()) = tokio::join!(client.close_code(), bench.server.shutdown());
    assert_eq!(code, Some(close::GOING_AWAY));
}
