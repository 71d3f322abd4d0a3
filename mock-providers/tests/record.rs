//! Records one mock through the recorder and plays it back with another.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use support::{chat, exchange};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use turnwire_mock::record::{Ending, Patience, RecordOptions, Recorder};
use turnwire_mock::script::{Body, CutHow};
use turnwire_mock::{
    ErrorReply, Faults, MockConfig, MockServer, Position, Reply, Rule, Script, SocketEnd,
    SocketReply, Until,
};

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
    let recording = recorder.stop();
    let replaced: Vec<_> = recording
        .replaced
        .iter()
        .map(|replaced| (replaced.place.as_str(), replaced.times))
        .collect();
    // In the headers of five requests, and in one answer.
    assert_eq!(replaced, [("header authorization", 6)]);
    let script = recording.script;

    let text = script.to_yaml().unwrap();
    assert!(!text.starts_with('{'), "{text}");
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
    assert!(recorder.stop().script.rules.is_empty());
    assert!(
        Recorder::start(RecordOptions::new("nowhere"))
            .await
            .is_err()
    );
}

fn to(service: &MockServer, idle: Duration) -> RecordOptions {
    RecordOptions {
        patience: Patience {
            idle,
            ..Patience::default()
        },
        ..RecordOptions::new(format!("http://{}", service.addr()))
    }
}

#[tokio::test]
async fn a_service_that_says_nothing_is_a_gateway_timeout() {
    let service = MockServer::start(MockConfig::default()).await.unwrap();
    service.push(Rule::on("hold").reply(SocketReply::new("", SocketEnd::Hold)));
    let mut recorder = Recorder::start(to(&service, Duration::from_millis(100)))
        .await
        .unwrap();
    let got = ask(recorder.addr(), &chat("hold", false)).await;
    assert_eq!(got.status, 504);
    assert!(
        got.text().contains("did not answer within 0.1 s"),
        "{}",
        got.text()
    );
    let heard = recorder.heard().await;
    assert!(matches!(heard.ending, Ending::Failed(_)), "{heard}");
    assert!(
        heard
            .to_string()
            .contains("POST /v1/chat/completions: not recorded")
    );
    assert!(recorder.stop().script.rules.is_empty());
}

#[tokio::test]
async fn a_service_that_stops_within_its_answer_is_kept_as_far_as_it_came() {
    let service = MockServer::start(MockConfig::default()).await.unwrap();
    let reply = Reply::text("one two").stall(Position::Events(2), Until::Never);
    service.push(Rule::on("stall").reply(reply));
    // Long enough for a busy machine to begin with the answer.
    let mut recorder = Recorder::start(to(&service, Duration::from_secs(2)))
        .await
        .unwrap();
    let got = ask(recorder.addr(), &chat("stall", true)).await;
    assert!(!got.complete && got.status == 200);
    assert!(matches!(
        recorder.heard().await.ending,
        Ending::Broken(200, _)
    ));
    let script = recorder.stop().script;
    assert!(script.rules[0].replies[0].faults.cut.is_some());
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_a_gateway_timeout() {
    // Accepts by the system's hand, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = RecordOptions::new(format!("https://{}", silent.local_addr().unwrap()));
    options.patience.connect = Duration::from_millis(100);
    let recorder = Recorder::start(options).await.unwrap();
    let got = ask(recorder.addr(), &json!({})).await;
    assert_eq!(got.status, 504);
    assert!(
        got.text().contains("cannot be reached within 0.1 s"),
        "{}",
        got.text()
    );
}

#[tokio::test]
async fn what_a_service_compresses_unasked_is_kept_plain_and_without_secrets() {
    let service = MockServer::start(MockConfig::default()).await.unwrap();
    let reply = Reply::text(format!("Your key is {KEY}.")).faults(Faults {
        gzip: true,
        ..Faults::default()
    });
    service.push(Rule::on("zip").reply(reply));
    let unknown = turnwire_mock::RawReply {
        headers: [("content-encoding".to_owned(), "br".to_owned())].into(),
        hex: "00ff10".into(),
        ..turnwire_mock::RawReply::default()
    };
    service.push(Rule::on("other").reply(unknown));
    let recorder = Recorder::start(to(&service, Duration::from_secs(60)))
        .await
        .unwrap();
    let passed = ask(recorder.addr(), &chat("zip", true)).await;
    assert_eq!(passed.header("content-encoding"), "gzip");
    ask(recorder.addr(), &chat("other", false)).await;
    let recording = recorder.stop();
    assert_eq!(recording.opaque, ["POST /v1/chat/completions: br"]);
    let raw = |place: usize| match &recording.script.rules[place].replies[0].body {
        Body::Raw(raw) => raw.clone(),
        other => panic!("{other:?}"),
    };
    let plain = raw(0);
    assert!(!plain.headers.contains_key("content-encoding"));
    assert!(plain.body.concat().contains("[secret]"), "{plain:?}");
    assert!(plain.body.len() > 3, "cut at its events: {plain:?}");
    let opaque = raw(1);
    assert_eq!(opaque.headers["content-encoding"], "br");
    assert_eq!((opaque.hex.as_str(), opaque.body.len()), ("00ff10", 0));
}

#[tokio::test]
async fn what_finds_no_room_is_passed_on_and_counted() {
    let service = MockServer::start(MockConfig::default()).await.unwrap();
    service.push(Rule::on("").reply("Hello."));
    let options = RecordOptions {
        max_total: 100,
        ..to(&service, Duration::from_secs(60))
    };
    let mut recorder = Recorder::start(options).await.unwrap();
    let got = ask(recorder.addr(), &chat("hi", false)).await;
    assert_eq!(got.status, 200);
    assert_eq!(recorder.heard().await.ending, Ending::NoRoom(200));
    let recording = recorder.stop();
    assert_eq!((recording.dropped, recording.script.rules.len()), (1, 0));
}

/// A service over TLS, with the certificate of the tests' own authority; it gives one answer to everybody.
async fn tls_service() -> std::net::SocketAddr {
    let chain = CertificateDer::pem_slice_iter(include_bytes!("tls/server.pem"));
    let chain: Vec<_> = chain.map(|one| one.unwrap()).collect();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    addr
}

#[tokio::test]
async fn a_service_of_an_authority_of_ones_own_is_recorded_when_it_is_trusted() {
    let service = tls_service().await;
    for (roots, status) in [
        (None, 502),
        (Some(include_bytes!("tls/ca.pem").to_vec()), 200),
    ] {
        let recorder = Recorder::start(RecordOptions {
            roots,
            ..RecordOptions::new(format!("https://{service}"))
        })
        .await
        .unwrap();
        let got = ask(recorder.addr(), &json!({})).await;
        assert_eq!(got.status, status, "{}", got.text());
    }
}
