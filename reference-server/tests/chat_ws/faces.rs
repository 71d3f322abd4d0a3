//! One engine, three faces: a session that is driven through one of them shows in all of them.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use turnwire_mock::{Reply, Rule, Script};

use crate::support::{Bench, PATIENCE};

/// A request over a connection of its own; the answer is read to its end.
async fn http(bench: &Bench, method: &str, path: &str, body: Option<&Value>) -> String {
    let mut stream = TcpStream::connect(bench.server.addr()).await.unwrap();
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer))
        .await
        .expect("the answer never ends")
        .unwrap();
    answer
}

/// A subscriber of the Covel face, who is read later.
async fn subscribe_covel(bench: &Bench, session: &str) -> TcpStream {
    let mut stream = TcpStream::connect(bench.server.addr()).await.unwrap();
    let request =
        format!("GET /api/events/stream?sessionId={session} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 64];
    assert!(stream.read(&mut head).await.unwrap() > 0);
    stream
}

/// Reads until all of these texts came.
async fn read_until(stream: &mut (impl AsyncReadExt + Unpin), texts: &[&str]) -> String {
    let mut all = String::new();
    let reading = async {
        let mut bytes = [0; 4096];
        while !texts.iter().all(|text| all.contains(text)) {
            let read = stream.read(&mut bytes).await.unwrap();
            assert!(read > 0, "ended before {texts:?}: {all}");
            all.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    };
    timeout(PATIENCE, reading).await.expect("not all came");
    all
}

struct Lines {
    stream: BufReader<TcpStream>,
}

impl Lines {
    async fn connect(bench: &Bench) -> Self {
        let address = bench.server.session_update_addr().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    async fn ask(&mut self, method: &str, params: Value) {
        let request =
            json!({ "kind": "request", "request_id": method, "method": method, "params": params });
        self.stream
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
    }

    /// The next event of this type.
    async fn event(&mut self, kind: &str) -> Value {
        let reading = async {
            loop {
                let mut line = String::new();
                assert!(
                    self.stream.read_line(&mut line).await.unwrap() > 0,
                    "no {kind}"
                );
                let message: Value = serde_json::from_str(&line).unwrap();
                if message["event"]["type"] == kind {
                    return message;
                }
            }
        };
        timeout(PATIENCE, reading).await.expect("no such event")
    }
}

#[tokio::test]
async fn a_turn_through_any_face_is_the_same_committed_fact_in_all_three() {
    let bench = Bench::with(|config| config.time_scale = 0.01).await;
    let mut chat = bench.socket().await;
    let session = chat.chat("hello").await;
    let place = json!({ "projectSlug": "scratch", "sessionId": session });
    chat.send("chat:subscribe", place).await;
    let mut covel = subscribe_covel(&bench, &session).await;
    let mut lines = Lines::connect(&bench).await;
    lines.ask("initialize", json!({})).await;
    lines
        .ask("session/subscribe", json!({ "session_id": session }))
        .await;

    for (on, text) in [
        ("one", "The oak."),
        ("two", "The birch."),
        ("three", "The lime."),
    ] {
        bench
            .mock()
            .load(Script::from(Rule::on(on).reply(Reply::text(text))));
        match on {
            "one" => {
                let said = json!({ "projectSlug": "scratch", "sessionId": session, "message": on });
                chat.send("chat:send", said).await;
            }
            "two" => {
                let action = json!({
                    "requestId": "r-2", "sessionId": session, "type": "submit_actions",
                    "payload": { "actions": [{ "type": "say", "text": on }] },
                });
                http(&bench, "POST", "/api/actions", Some(&action)).await;
            }
            _ => {
                let prompt = json!({ "session_id": session, "input": on });
                lines.ask("session/prompt", prompt).await;
            }
        }
        let mut shown = String::new();
        let turn = loop {
            let frame = chat.next("chat:response").await;
            shown.push_str(frame["chunk"].as_str().unwrap());
            if shown == text {
                break frame["jobId"].as_str().unwrap().to_owned();
            }
        };
        assert_eq!(chat.next("chat:complete").await["success"], true);
        let told = read_until(&mut covel, &["narrative.completed", text, turn.as_str()]).await;
        assert!(told.contains(&session));
        let event = loop {
            let event = lines.event("assistant_message_completed").await;
            if event["turn_id"] == turn.as_str() {
                break event;
            }
        };
        assert_eq!(event["event"]["content"], text);
    }

    let transcript = http(
        &bench,
        "GET",
        &format!("/api/chats/{session}/messages"),
        None,
    )
    .await;
    let messages = http(
        &bench,
        "GET",
        &format!("/api/sessions/{session}/messages"),
        None,
    )
    .await;
    for text in ["The oak.", "The birch.", "The lime."] {
        assert!(transcript.contains(text), "{transcript}");
        assert!(messages.contains(text), "{messages}");
    }
}
