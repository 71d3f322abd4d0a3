//! Clients and servers that do not notice that they are recorded.

use std::net::Ipv4Addr;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    net::{TcpListener, TcpStream},
};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{method, path},
};

use super::{RecordOptions, RecordingProxy, Tape, stdio, written};
use crate::{
    drivers::http::{BaseUrl, Call, HttpClient, HttpLimits},
    transcript::{Header, Transcript, record::Recorder, text},
};

async fn proxy(upstream: &str) -> RecordingProxy {
    let options = RecordOptions {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        upstream: BaseUrl::parse(upstream).unwrap(),
        header: Header::default(),
        limit: 1 << 20,
    };
    RecordingProxy::start(options).await.unwrap()
}

fn client(proxy: &RecordingProxy) -> HttpClient {
    let base = BaseUrl::parse(&proxy.url()).unwrap();
    HttpClient::new(
        base,
        Recorder::new(Header::default()),
        HttpLimits::default(),
    )
}

/// The text without its times and without headers that differ from run to run.
fn shown(transcript: Transcript) -> String {
    let noise = [
        "date:",
        "host:",
        "user-agent:",
        "accept:",
        "content-length:",
    ];
    let text = written(transcript, &[]).text;
    let quiet = |line: &&str| {
        let named = line.split_once(": ").map_or("", |(_, header)| header);
        !(line.starts_with("@+")
            || line.starts_with("started:")
            || noise.iter().any(|name| named.starts_with(name)))
    };
    text.lines().filter(quiet).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn an_exchange_is_recorded_and_its_secrets_are_replaced() {
    let server = MockServer::start().await;
    let body = json!({ "id": "s1", "ownerToken": "token-of-the-owner" });
    Mock::given(method("POST"))
        .and(path("/base/api/sessions"))
        .respond_with(ResponseTemplate::new(201).set_body_json(body))
        .mount(&server)
        .await;
    let proxy = proxy(&format!("{}/base", server.uri())).await;
    let call = Call::post("/api/sessions?session_token=topsecret-1")
        .bearer(Some("the-operator-s-token"))
        .json(&json!({ "note": "token-of-the-owner" }));
    let reply = client(&proxy).send(call).await.unwrap();
    assert_eq!(reply.status, 201);
    assert_eq!(
        reply.string("/ownerToken").as_deref(),
        Some("token-of-the-owner")
    );
    let transcript = proxy.stop();
    let replaced = written(transcript.clone(), &[]).replaced;
    let told: Vec<String> = replaced
        .iter()
        .map(|found| {
            format!(
                "{} x{}: {}",
                found.name,
                found.times,
                found.places.join(", ")
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    secret-1 x1: header authorization
    secret-2 x1: query session_token
    secret-3 x2: JSON member ownerToken
    ");
    insta::assert_snapshot!(shown(transcript), @r#"
    twire 1
    suite: covel-sse

    > POST /api/sessions?session_token={{secret-2}}
    >: authorization: Bearer {{secret-1}}
    >: content-type: application/json
    > {"note":"{{secret-3}}"}
    < 201
    <: content-type: application/json
    < {"id":"s1","ownerToken":"{{secret-3}}"}
    end complete
    "#);
}

/// A server that answers one request with these pieces, far apart, and then does `end`.
async fn pieces(pieces: &'static [&'static str], breaks: bool) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let _ = socket.read(&mut request).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        socket.write_all(head.as_bytes()).await.unwrap();
        for piece in pieces {
            let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
            socket.write_all(chunk.as_bytes()).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
        if !breaks {
            socket.write_all(b"0\r\n\r\n").await.unwrap();
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn pieces_of_a_stream_pass_as_they_come_and_keep_their_times() {
    let server = pieces(&["data: 1\n", "\ndata: 2\n\n"], false).await;
    let proxy = proxy(&server).await;
    let mut stream = client(&proxy).open(Call::get("/stream")).await.unwrap();
    stream.read_to_end(std::time::Duration::from_secs(5)).await;
    let transcript = proxy.stop();
    let chunks: Vec<_> = transcript
        .entries
        .iter()
        .filter(|entry| matches!(entry.fact, crate::transcript::Fact::Chunk { .. }))
        .map(|entry| entry.at)
        .collect();
    assert_eq!(chunks.len(), 2);
    assert!(
        chunks[1] - chunks[0] >= std::time::Duration::from_millis(20),
        "{chunks:?}"
    );
    insta::assert_snapshot!(shown(transcript), @r"
    twire 1

    > GET /stream
    < 200
    <: content-type: text/event-stream
    <: transfer-encoding: chunked
    < data: 1
    <
    < data: 2
    <
    end complete
    ");
}

#[tokio::test]
async fn a_connection_that_breaks_breaks_for_the_client_too() {
    let server = pieces(&["data: 1\n\n"], true).await;
    let proxy = proxy(&server).await;
    let mut stream = client(&proxy).open(Call::get("/stream")).await.unwrap();
    stream.read_to_end(std::time::Duration::from_secs(5)).await;
    assert!(
        matches!(stream.ended(), Some(crate::transcript::End::Broken(_))),
        "{:?}",
        stream.ended()
    );
    let text = written(proxy.stop(), &[]).text;
    assert!(text.contains("end broken"), "{text}");
}

#[tokio::test]
async fn a_client_that_leaves_is_recorded_as_the_side_that_closed() {
    let server = pieces(
        &["data: 1\n\n", "data: 2\n\n", "data: 3\n\n", "data: 4\n\n"],
        false,
    )
    .await;
    let proxy = proxy(&server).await;
    let mut stream = client(&proxy).open(Call::get("/stream")).await.unwrap();
    stream
        .next_frame(std::time::Duration::from_secs(5))
        .await
        .unwrap();
    stream.close();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let text = written(proxy.stop(), &[]).text;
    assert!(text.contains("end closed-by-harness"), "{text}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_502_and_is_recorded() {
    let proxy = proxy("http://127.0.0.1:9").await;
    let reply = client(&proxy).send(Call::get("/")).await.unwrap();
    assert_eq!(reply.status, 502);
    let text = written(proxy.stop(), &[]).text;
    assert!(text.contains("end not-connected"), "{text}");
}

#[tokio::test]
async fn messages_of_a_web_socket_pass_and_are_recorded() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let read = socket.read(&mut request).await.unwrap();
        let request = String::from_utf8_lossy(&request[..read]).to_lowercase();
        assert!(!request.contains("permessage-deflate"), "{request}");
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n";
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut frame = [0; 8];
        socket.read_exact(&mut frame).await.unwrap();
        socket.write_all(b"\x81\x03you").await.unwrap();
        socket.write_all(b"\x88\x02\x03\xe8").await.unwrap();
    });
    let proxy = proxy(&format!("http://{address}")).await;
    let mut socket = TcpStream::connect(&proxy.url()["http://".len()..])
        .await
        .unwrap();
    let upgrade = "GET /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-extensions: permessage-deflate\r\n\r\n";
    socket.write_all(upgrade.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    // "me", masked with zeros.
    socket.write_all(b"\x81\x82\0\0\0\0me").await.unwrap();
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"\x81\x03you\x88\x02\x03\xe8");
    drop(socket);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let text = written(proxy.stop(), &[]).text;
    for line in [">~ text me", "<~ text you", "<~ close 1000"] {
        assert!(text.contains(line), "{text}");
    }
}

#[tokio::test]
async fn a_program_between_standard_input_and_output_is_recorded_line_by_line() {
    let tape = Tape::new(Header::default(), 1 << 20);
    let (mut ours, input) = duplex(64);
    ours.write_all(b"{\"n\":1}\nsecond line\nno end")
        .await
        .unwrap();
    drop(ours);
    let mut output = Vec::new();
    let command = ["cat".to_owned()];
    let status = stdio::run(&command, input, &mut output, &tape)
        .await
        .unwrap();
    assert!(status.success());
    assert_eq!(output, b"{\"n\":1}\nsecond line\nno end");
    let transcript = tape.transcript();
    let text = text::write(&transcript);
    let said = |arrow: char| -> Vec<String> {
        let own = text.lines().filter(|line| line.starts_with(arrow));
        own.map(|line| line.split_once('$').unwrap_or_default().1.to_owned())
            .collect()
    };
    let lines = [" {\"n\":1}", " second line", " no end"];
    assert_eq!(said('>'), lines);
    assert_eq!(said('<'), lines);
    assert!(
        text.ends_with("end complete\n") || text.ends_with("end 1 complete\n"),
        "{text}"
    );
}

/// A server that reads one request head and answers with these bytes.
async fn answering(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let _ = socket.read(&mut request).await.unwrap();
        socket.write_all(&answer).await.unwrap();
        // Until the proxy has had enough.
        let _ = socket.read(&mut request).await;
    });
    format!("http://{address}")
}

/// What is recorded of one answer with these bytes, and what the client got of it.
async fn recorded(answer: &[u8]) -> (String, Vec<u8>) {
    let proxy = proxy(&answering(answer.to_vec()).await).await;
    let mut socket = TcpStream::connect(&proxy.url()["http://".len()..])
        .await
        .unwrap();
    let request = "GET /a HTTP/1.1\r\nhost: x\r\nte: trailers\r\nconnection: close\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut got = Vec::new();
    socket.read_to_end(&mut got).await.unwrap();
    (shown(proxy.stop()), got)
}

#[tokio::test]
async fn an_answer_with_trailers_is_complete_and_its_trailers_are_noted() {
    let (text, got) = recorded(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum, x-token\r\n\r\n\
          2\r\nok\r\n0\r\nx-sum: abc\r\nx-token: of-the-trailer-1\r\n\r\n",
    )
    .await;
    assert!(String::from_utf8_lossy(&got).contains("x-sum: abc"));
    assert!(text.contains("trailer of exchange 1: x-sum: abc"), "{text}");
    assert!(!text.contains("of-the-trailer-1"), "{text}");
    assert!(text.ends_with("end complete"), "{text}");
}

#[tokio::test]
async fn compressed_bytes_pass_and_are_not_kept_since_no_secret_shows_in_them() {
    let (text, got) = recorded(
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00",
    )
    .await;
    assert!(got.ends_with(b"\x1f\x8b\x08\x00"));
    assert!(!text.contains("x1f"), "{text}");
    assert!(
        text.contains("# the response body of exchange 1 is not kept: it is compressed (gzip)"),
        "{text}"
    );
    assert!(text.ends_with("end complete"), "{text}");
}

#[tokio::test]
async fn a_header_that_is_no_utf_8_keeps_its_bytes_as_characters() {
    let (text, got) =
        recorded(b"HTTP/1.1 200 OK\r\nx-l: caf\xe9\r\ncontent-length: 0\r\n\r\n").await;
    assert!(got.windows(4).any(|bytes| bytes == b"caf\xe9"));
    assert!(text.contains("<: x-l: caf\u{e9}"), "{text}");
}

#[tokio::test]
async fn a_client_that_leaves_within_its_request_is_noted() {
    let proxy = proxy("http://127.0.0.1:9").await;
    let mut socket = TcpStream::connect(&proxy.url()["http://".len()..])
        .await
        .unwrap();
    let half = "POST /a?session_token=of-the-query-1 HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf";
    socket.write_all(half.as_bytes()).await.unwrap();
    drop(socket);
    let left = "a client left within the body of POST /a?session_token={{secret-1}} after 4 bytes";
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let text = text::write(&proxy.tape().transcript());
        if text.contains(left) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{text}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_wrapped_program_that_is_left_running_has_an_end_and_its_last_words() {
    let tape = Tape::new(Header::default(), 1 << 20);
    let (_ours, input) = duplex(64);
    let command = ["sh", "-c", "printf 'no end'; exec sleep 600"].map(str::to_owned);
    let (output, mut heard) = duplex(64);
    let mut said = [0; 6];
    tokio::select! {
        _ = stdio::run(&command, input, output, &tape) => unreachable!("it sleeps"),
        read = heard.read_exact(&mut said) => { read.unwrap(); }
    }
    let text = text::write(&tape.transcript());
    assert!(text.contains("<1$ no end\n"), "{text}");
    assert!(text.ends_with("end closed-by-harness\n"), "{text}");
}
