//! A small HTTP client that keeps what a socket gave: chunk by chunk, and how it ended.

#![allow(dead_code, reason = "each test file uses its part of this")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use turnwire_mock::MockServer;

/// A chat request with one user message.
pub(crate) fn chat(text: &str, stream: bool) -> Value {
    json!({"model": "mock-model", "messages": [{"role": "user", "content": text}], "stream": stream})
}

/// A response as it came.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// The body, as HTTP chunks.
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) body: Vec<u8>,
    /// Whether the body's framing was complete.
    pub(crate) complete: bool,
    /// Whether the connection was reset.
    pub(crate) reset: bool,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map_or("", |(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The data of every event, as JSON where it is JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.text()
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data)))
            .collect()
    }
}

pub(crate) async fn ask(mock: &MockServer, path: &str, body: &Value) -> Reply {
    let reply = read_raw(mock, path, body).await;
    assert!(reply.complete, "the body is complete");
    reply
}

pub(crate) async fn ask_at(addr: SocketAddr, path: &'static str, body: Value) -> Reply {
    exchange(addr, "POST", path, &[], &body.to_string()).await
}

pub(crate) async fn ask_text(mock: &MockServer, method: &str, path: &str, body: &str) -> Reply {
    exchange(mock.addr(), method, path, &[], body).await
}

pub(crate) async fn read_raw(mock: &MockServer, path: &str, body: &Value) -> Reply {
    exchange(mock.addr(), "POST", path, &[], &body.to_string()).await
}

/// Sends one request on a connection of its own and reads until the response or the connection ends.
pub(crate) async fn exchange(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: mock\r\ncontent-length: {}\r\n",
        body.len()
    );
    if headers.is_empty() {
        head.push_str("authorization: Bearer k\r\n");
    }
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        head.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream
        .write_all(format!("{head}\r\n{body}").as_bytes())
        .await
        .unwrap();
    let mut reply = Reply::default();
    let mut bytes = Vec::new();
    let mut piece = vec![0; 16 << 10];
    loop {
        match stream.read(&mut piece).await {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) => {
                reply.reset = error.kind() == std::io::ErrorKind::ConnectionReset;
                break;
            }
        }
        if parse(&bytes, &mut reply) {
            return reply;
        }
    }
    parse(&bytes, &mut reply);
    reply
}

/// Parses what came so far; true when the response is complete.
fn parse(bytes: &[u8], reply: &mut Reply) -> bool {
    let Some(head_end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    reply.status = status.parse().unwrap();
    reply.headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let rest = &bytes[head_end + 4..];
    (reply.chunks, reply.complete) = if reply.header("transfer-encoding") == "chunked" {
        chunks(rest)
    } else {
        let length: usize = reply.header("content-length").parse().unwrap_or(usize::MAX);
        (vec![rest.to_vec()], rest.len() >= length)
    };
    reply.body = reply.chunks.concat();
    reply.complete
}

fn chunks(mut rest: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut chunks = Vec::new();
    while let Some(line_end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line_end]).unwrap(), 16);
        let size = size.unwrap();
        let from = line_end + 2;
        if size == 0 {
            return (chunks, rest.len() >= from + 2);
        }
        if rest.len() < from + size + 2 {
            chunks.push(rest[from..rest.len().min(from + size)].to_vec());
            return (chunks, false);
        }
        chunks.push(rest[from..from + size].to_vec());
        rest = &rest[from + size + 2..];
    }
    (chunks, false)
}
