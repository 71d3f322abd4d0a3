//! The proxy between raw sockets: what a do-nothing saboteur leaves as it is, and what the others do.

use std::sync::atomic::AtomicUsize;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    time::{Instant, timeout},
};
use turnwire_spec::sse::Frame;

use super::*;
use crate::saboteurs::{Conformant, FrameRewriter, Out, generic::Generic};

/// What a scripted peer does after it has read a request.
#[derive(Clone, Copy)]
enum Act {
    Write(&'static [u8]),
    Pause(u64),
    /// Keeps the connection until the other side closes it.
    Hold,
}

/// A peer that answers each connection by the script. Tells each request head, and then `closed`.
async fn peer(script: &'static [Act]) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (seen, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(play(stream, script, seen.clone()));
        }
    });
    (url, requests)
}

async fn play(mut stream: TcpStream, script: &[Act], seen: mpsc::UnboundedSender<String>) {
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        if stream.read_buf(&mut request).await.unwrap_or_default() == 0 {
            return;
        }
    }
    let _ = seen.send(String::from_utf8_lossy(&request).into_owned());
    for act in script {
        match act {
            Act::Write(bytes) => {
                let _ = stream.write_all(bytes).await;
            }
            Act::Pause(ms) => sleep(Duration::from_millis(*ms)).await,
            Act::Hold => {
                while stream.read_buf(&mut request).await.unwrap_or_default() > 0 {}
                let _ = seen.send("closed".into());
            }
        }
    }
}

/// Sends a request to the proxy and leaves the response to be read.
async fn ask(proxy: &Proxy, target: &str) -> TcpStream {
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: peer\r\nX-Case: Kept\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn read_all(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut bytes))
        .await
        .expect("the response never ends");
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut bytes = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&bytes).contains(text) {
            assert!(
                stream.read_buf(&mut bytes).await.unwrap() > 0,
                "ended before {text:?}: {bytes:?}"
            );
        }
    };
    timeout(Duration::from_secs(5), reading)
        .await
        .unwrap_or_else(|_| panic!("no {text:?}"));
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn proxied(url: &str, saboteur: impl Saboteur + 'static) -> Proxy {
    Proxy::start(url, Arc::new(saboteur), 0.01).await.unwrap()
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Mixed: Yes\r\nTransfer-Encoding: chunked\r\n\r\n";
const FIRST: &[u8] = b"d\r\ndata: one\r\n\r\n\r\n";
const SECOND: &[u8] = b"d\r\ndata: two\r\n\r\n\r\n";
const LAST: &[u8] = b"0\r\n\r\n";

#[tokio::test]
async fn a_conformant_proxy_keeps_head_chunks_and_the_clean_end() {
    let (url, mut requests) = peer(&[
        Act::Write(HEAD),
        Act::Write(FIRST),
        Act::Pause(20),
        Act::Write(SECOND),
        Act::Write(LAST),
    ])
    .await;
    let proxy = proxied(&url, Conformant).await;
    let response = read_all(ask(&proxy, "/x?a=%20b").await).await;
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    for line in [
        "HTTP/1.1 200 OK",
        "Content-Type: text/event-stream",
        "X-Mixed: Yes",
    ] {
        assert!(head.contains(line), "{head}");
    }
    assert!(!head.to_ascii_lowercase().contains("date:"), "{head}");
    assert_eq!(
        body.to_ascii_lowercase(),
        "d\r\ndata: one\r\n\r\n\r\nd\r\ndata: two\r\n\r\n\r\n0\r\n\r\n"
    );
    let request = requests.recv().await.unwrap();
    assert!(
        request.starts_with("GET /x?a=%20b HTTP/1.1\r\n") && request.contains("X-Case: Kept\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn a_frame_arrives_while_the_response_is_still_open() {
    let (url, mut requests) = peer(&[Act::Write(HEAD), Act::Write(FIRST), Act::Hold]).await;
    let proxy = proxied(&url, Conformant).await;
    let mut stream = ask(&proxy, "/").await;
    read_until(&mut stream, "data: one").await;
    drop(stream);
    requests.recv().await.unwrap();
    let closed = timeout(Duration::from_secs(5), requests.recv())
        .await
        .expect("the peer keeps its connection");
    assert_eq!(closed.as_deref(), Some("closed"));
}

#[tokio::test]
async fn a_response_head_arrives_before_its_body() {
    let (url, _requests) = peer(&[Act::Write(HEAD), Act::Hold]).await;
    let proxy = proxied(&url, Conformant).await;
    read_until(&mut ask(&proxy, "/").await, "\r\n\r\n").await;
}

#[tokio::test]
async fn a_broken_response_stays_broken_and_keeps_what_came_before() {
    let (url, _requests) = peer(&[Act::Write(HEAD), Act::Write(FIRST)]).await;
    for saboteur in [
        Arc::new(Conformant) as Arc<dyn Saboteur>,
        Arc::new(frames_pass()),
    ] {
        let proxy = Proxy::start(&url, saboteur, 1.0).await.unwrap();
        let response = read_all(ask(&proxy, "/api/events/stream").await).await;
        assert!(
            response.contains("data: one") && !response.ends_with("0\r\n\r\n"),
            "{response:?}"
        );
    }
}

fn rewriting(rewrite: serde_json::Value) -> Generic {
    Generic::new(&serde_json::from_value(rewrite).unwrap())
}

fn frames_pass() -> Generic {
    rewriting(json!({"frames": {"type": ["none"], "do": ["drop"]}}))
}

#[tokio::test]
async fn a_length_that_the_peer_declared_is_kept() {
    let (url, _requests) = peer(&[Act::Write(
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
    )])
    .await;
    let proxy = proxied(&url, Conformant).await;
    let response = read_all(ask(&proxy, "/").await).await;
    assert!(
        response.starts_with("HTTP/1.1 404 Not Found\r\n")
            && response.contains("Content-Length: 2\r\n"),
        "{response}"
    );
    assert!(response.ends_with("\r\n\r\n{}"), "{response}");
}

#[tokio::test]
async fn a_peer_that_is_down_closes_the_connection_without_an_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let proxy = proxied(&url, Conformant).await;
    assert_eq!(read_all(ask(&proxy, "/").await).await, "");
    let (again, _requests) =
        peer(&[Act::Write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]).await;
    proxy.set_upstream(&again).unwrap();
    assert!(
        read_all(ask(&proxy, "/").await)
            .await
            .starts_with("HTTP/1.1 200 OK")
    );
}

#[tokio::test]
async fn an_address_that_is_no_plain_http_is_refused() {
    for url in [
        "https://127.0.0.1:1",
        "127.0.0.1:1",
        "http://host",
        "http://127.0.0.1:1/path",
    ] {
        let error = Proxy::start(url, Arc::new(Conformant), 1.0)
            .await
            .unwrap_err();
        assert!(matches!(error, ProxyError::Upstream(_)), "{error}");
    }
}

#[tokio::test]
async fn a_dropped_proxy_closes_its_connections_and_its_port() {
    let (url, mut requests) = peer(&[Act::Write(HEAD), Act::Hold]).await;
    let proxy = proxied(&url, Conformant).await;
    let mut stream = ask(&proxy, "/").await;
    read_until(&mut stream, "\r\n\r\n").await;
    let address = proxy.address;
    drop(proxy);
    assert_eq!(read_all(stream).await, "");
    requests.recv().await.unwrap();
    assert_eq!(requests.recv().await.as_deref(), Some("closed"));
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_slow_reader_is_felt_by_the_peer() {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(&[b'x'; 1 << 16]).await.is_ok() {
            WRITTEN.fetch_add(1 << 16, Ordering::Relaxed);
        }
    });
    let proxy = proxied(&url, Conformant).await;
    let _stream = ask(&proxy, "/").await;
    let mut before = usize::MAX;
    while WRITTEN.load(Ordering::Relaxed) != before {
        before = WRITTEN.load(Ordering::Relaxed);
        sleep(Duration::from_millis(300)).await;
    }
    assert!(before < 32 << 20, "{before} bytes were taken from the peer");
}

#[tokio::test]
async fn frames_are_rewritten_as_they_come() {
    let (url, _requests) = peer(&[
        Act::Write(HEAD),
        Act::Write(b"6\r\ndata: \r\n"),
        Act::Pause(20),
        Act::Write(b"6\r\none\r\n\r\n\r\n"),
        Act::Hold,
    ])
    .await;
    let proxy = proxied(
        &url,
        rewriting(json!({"frames": {"do": [{"prepend_line": "event: x"}]}})),
    )
    .await;
    let text = read_until(&mut ask(&proxy, "/api/events/stream").await, "data: one").await;
    assert!(text.contains("event: x\r\ndata: one"), "{text}");
}

#[tokio::test]
async fn a_byte_order_mark_and_an_unfinished_frame_pass_through_a_rewriter() {
    let (url, _requests) = peer(&[
        Act::Write(HEAD),
        Act::Write(b"f\r\n\xef\xbb\xbfdata: a\n\ndat\r\n"),
        Act::Write(LAST),
    ])
    .await;
    let proxy = proxied(
        &url,
        rewriting(json!({"frames": {"do": [{"append_line": "id: 1"}]}})),
    )
    .await;
    let response = read_all(ask(&proxy, "/api/events/stream").await).await;
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(
        body.contains("\u{feff}\r\n") || body.contains("\u{feff}data"),
        "{body:?}"
    );
    assert!(
        body.contains("data: a\nid: 1\n\n") && body.ends_with("dat\r\n0\r\n\r\n"),
        "{body:?}"
    );
}

#[tokio::test]
async fn an_end_is_clean_and_a_cut_is_not_and_both_leave_the_peer() {
    for (edit, clean) in [("end", true), ("cut", false)] {
        let (url, mut requests) = peer(&[Act::Write(HEAD), Act::Write(FIRST), Act::Hold]).await;
        let proxy = proxied(&url, rewriting(json!({"frames": {"do": [edit]}}))).await;
        let response = read_all(ask(&proxy, "/api/events/stream").await).await;
        assert!(response.contains("data: one"), "{response:?}");
        assert_eq!(response.ends_with("0\r\n\r\n"), clean, "{response:?}");
        requests.recv().await.unwrap();
        assert_eq!(requests.recv().await.as_deref(), Some("closed"));
    }
}

#[tokio::test]
async fn a_delay_holds_back_the_frame_scaled() {
    let (url, _requests) = peer(&[Act::Write(HEAD), Act::Write(FIRST), Act::Write(LAST)]).await;
    let proxy = proxied(
        &url,
        rewriting(json!({"frames": {"do": [{"delay_ms": 20_000}]}})),
    )
    .await;
    let start = Instant::now();
    let response = read_all(ask(&proxy, "/api/events/stream").await).await;
    assert!(response.contains("data: one"), "{response}");
    assert!(
        (200..2000).contains(&start.elapsed().as_millis()),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_buffered_response_comes_in_one_piece_and_a_held_one_stays_open() {
    let (url, _requests) = peer(&[
        Act::Write(HEAD),
        Act::Write(FIRST),
        Act::Pause(50),
        Act::Write(SECOND),
        Act::Write(LAST),
    ])
    .await;
    let proxy = proxied(&url, rewriting(json!({"response": {"buffer": true}}))).await;
    let response = read_all(ask(&proxy, "/").await).await;
    assert!(
        response.contains("data: one\r\n\r\ndata: two"),
        "{response}"
    );
    let proxy = proxied(&url, rewriting(json!({"response": {"hold_open": true}}))).await;
    let mut stream = ask(&proxy, "/").await;
    read_until(&mut stream, "data: two").await;
    assert!(
        timeout(Duration::from_millis(300), stream.read_u8())
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_response_is_cut_after_some_bytes() {
    let (url, _requests) = peer(&[Act::Write(HEAD), Act::Write(FIRST), Act::Write(LAST)]).await;
    let proxy = proxied(&url, rewriting(json!({"response": {"cut_after": 7}}))).await;
    let response = read_all(ask(&proxy, "/").await).await;
    assert!(response.ends_with("7\r\ndata: o\r\n"), "{response:?}");
}

#[tokio::test]
async fn head_body_and_request_are_changed_on_the_wire() {
    let (url, mut requests) = peer(&[Act::Write(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{\"a\":1}",
    )])
    .await;
    let rewrite = json!({"all": [
        {"request": {"drop_query": ["a"], "set_header": {"x-case": "changed"}}},
        {"response": {"status": 202, "set_header": {"x-new": "1"}, "json": [{"set": ["/a", "longer"]}]}},
    ]});
    let proxy = proxied(&url, rewriting(rewrite)).await;
    let response = read_all(ask(&proxy, "/x?a=1&b=2").await).await;
    assert!(
        response.starts_with("HTTP/1.1 202 Accepted\r\n") && response.contains("x-new: 1\r\n"),
        "{response}"
    );
    assert!(response.contains("{\"a\":\"longer\"}"), "{response}");
    let request = requests.recv().await.unwrap().to_ascii_lowercase();
    assert!(
        request.starts_with("get /x?b=2 http/1.1\r\n") && request.contains("x-case: changed\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn an_answer_in_place_never_reaches_the_peer() {
    let (url, mut requests) = peer(&[]).await;
    let proxy = proxied(
        &url,
        rewriting(json!({"response": {"instead": true, "status": 418, "body": "tea"}})),
    )
    .await;
    let response = read_all(ask(&proxy, "/").await).await;
    assert!(
        response.starts_with("HTTP/1.1 418 ") && response.contains("tea"),
        "{response}"
    );
    assert!(requests.try_recv().is_err());
}

/// Opens with a comment, restarts its timer with each frame, and says good-bye.
struct Chatty {
    due: Duration,
}

const SILENCE: Duration = Duration::from_secs(10);

impl FrameRewriter for Chatty {
    fn open(&mut self, out: &mut Out) {
        self.due = out.elapsed() + SILENCE;
        out.send(": open\n\n");
    }

    fn frame(&mut self, frame: &Frame, out: &mut Out) {
        self.due = out.elapsed() + SILENCE;
        out.pass(frame);
    }

    fn wake(&self) -> Option<Duration> {
        Some(self.due)
    }

    fn tick(&mut self, out: &mut Out) {
        self.due = out.elapsed() + SILENCE;
        out.send(": tick\n\n");
    }

    fn end(&mut self, out: &mut Out) {
        out.send(": end\n\n");
    }
}

struct Timed;

impl Saboteur for Timed {
    fn response(&self, _: &RequestInfo, _: &mut ResponseHead) -> Treatment {
        Treatment::frames(Chatty {
            due: Duration::ZERO,
        })
    }
}

#[tokio::test]
async fn a_rewriter_has_timers_and_speaks_first_and_last() {
    let (url, _requests) = peer(&[
        Act::Write(HEAD),
        Act::Pause(20),
        Act::Write(FIRST),
        Act::Pause(150),
        Act::Write(LAST),
    ])
    .await;
    let proxy = proxied(&url, Timed).await;
    let response = read_all(ask(&proxy, "/").await).await;
    let lines: Vec<_> = response
        .split(['\r', '\n'])
        .filter(|line| line.starts_with([':', 'd']))
        .collect();
    assert_eq!(lines, [": open", "data: one", ": tick", ": end"]);
}

#[tokio::test]
async fn a_websocket_upgrade_is_tunnelled() {
    let (url, _requests) = peer(&[
        Act::Write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
        Act::Write(b"\x81\x02hi"),
        Act::Hold,
    ])
    .await;
    let proxy = proxied(&url, Conformant).await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    stream
        .write_all(
            b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        )
        .await
        .unwrap();
    let text = read_until(&mut stream, "hi").await;
    assert!(text.starts_with("HTTP/1.1 101 "), "{text}");
}
