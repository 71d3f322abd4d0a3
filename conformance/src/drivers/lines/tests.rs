//! Lines over real sockets: what is recorded of both sides, and what is said when nobody is there.

use serde_json::json;
use tokio::{io::AsyncBufReadExt, net::TcpListener};

use super::*;
use crate::transcript::{Header, Transcript};

/// A server that answers each line with the same line twice, and ends after `bye`.
async fn echo() -> BaseUrl {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("tcp://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (from, mut to) = socket.into_split();
            let mut lines = tokio::io::BufReader::new(from).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if line == "\"bye\"" {
                    break;
                }
                let _ = to.write_all(format!("{line}\r\n{line}\n").as_bytes()).await;
            }
        }
    });
    BaseUrl::parse(&url).unwrap()
}

fn lines(transcript: &Transcript) -> Vec<String> {
    let shown = transcript.entries.iter().map(|entry| match &entry.fact {
        Fact::Line { from, bytes, .. } => {
            format!("{from:?} {}", String::from_utf8_lossy(bytes))
        }
        other => format!("{other:?}"),
    });
    shown.collect()
}

#[tokio::test]
async fn lines_of_both_sides_and_the_end_are_recorded() {
    let recorder = Recorder::new(Header::default());
    let limits = HttpLimits::default();
    let mut channel = LineChannel::open(&echo().await, recorder.clone(), limits, Open::default())
        .await
        .unwrap();
    let second = Duration::from_secs(5);

    channel.send(&json!({ "n": 1 })).await.unwrap();
    assert!(channel.wait(second, |line| line["n"] == 1).await.is_some());
    assert!(channel.wait(second, |line| line["n"] == 1).await.is_some());
    channel.send(&json!("bye")).await.unwrap();

    assert!(channel.wait_end(second).await);
    assert!(channel.wait(second, |_| true).await.is_none());
    let transcript = recorder.transcript();
    assert_eq!(
        lines(&transcript)[..4],
        [
            "Client {\"n\":1}",
            "Server {\"n\":1}",
            "Server {\"n\":1}",
            "Client \"bye\""
        ]
    );
    assert!(lines(&transcript)[4].contains("Complete"));
}

#[tokio::test]
async fn nobody_there_is_told_as_such() {
    let url = BaseUrl::parse("tcp://127.0.0.1:1").unwrap();
    let recorder = Recorder::new(Header::default());
    let opened = LineChannel::open(&url, recorder, HttpLimits::default(), Open::default()).await;

    assert!(matches!(opened, Err(DriveError::NotConnected { .. })));
}

#[tokio::test]
async fn no_line_is_looked_at_twice() {
    let recorder = Recorder::new(Header::default());
    let limits = HttpLimits::default();
    let mut channel = LineChannel::open(&echo().await, recorder, limits, Open::default())
        .await
        .unwrap();
    // As between the moment when a line is there and the one when its arrival is told.
    channel.shared.seen().lines.push(json!({ "n": 1 }));
    let mut looks = 0;
    for _ in 0..2 {
        let look = |_: &serde_json::Value| {
            looks += 1;
            false
        };
        assert!(channel.wait(Duration::ZERO, look).await.is_none());
    }
    assert_eq!(looks, 1);
}

#[tokio::test]
async fn the_scripted_server_answers_a_number_with_all_its_digits() {
    let answers = |asked: &serde_json::Value| {
        Some(json!({ "kind": "response", "request_id": asked["request_id"], "result": {} }))
    };
    let recorder = Recorder::new(Header::default());
    let server = server::LineServer::start(recorder.clone(), answers)
        .await
        .unwrap();
    let url = BaseUrl::parse(&server.url()).unwrap();
    let limits = HttpLimits::default();
    let mut channel = LineChannel::open(
        &url,
        Recorder::new(Header::default()),
        limits,
        Open::default(),
    )
    .await
    .unwrap();
    for id in ["18446744073709551617", "18446744073709551618", "7"] {
        let line = format!(r#"{{"kind":"request","request_id":{id},"method":"ping"}}"#);
        channel.send_line(line.into()).await.unwrap();
        assert!(
            channel
                .wait(Duration::from_secs(5), |_| true)
                .await
                .is_some()
        );
        let told = recorder.transcript();
        let answer = lines(&told).pop().unwrap();
        let expected = format!(r#"Server {{"kind":"response","request_id":{id},"result":{{}}}}"#);
        assert_eq!(answer, expected);
    }
}
