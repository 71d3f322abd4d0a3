//! The load: connections that ask the same again and again, and read whole answers.
//!
//! Bare sockets on one thread, so that the generator costs little beside what it measures.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use serde_json::{Value, json};

/// Which answer is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// One JSON document.
    Plain,
    /// An event stream.
    Streamed,
}

impl Kind {
    fn request(self) -> Vec<u8> {
        let mut body = json!({
            "model": "gpt-5.2",
            "messages": [{ "role": "user", "content": "benchmark, please" }],
        });
        if self == Self::Streamed {
            body["stream"] = json!(true);
        }
        let body = body.to_string();
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer key\r\n\
             content-type: application/json\r\naccept: */*\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

/// A server under load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    address: SocketAddr,
}

impl Load {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address }
    }

    /// Whole answers per second over so many connections.
    pub(crate) fn per_second(self, kind: Kind, connections: usize, time: Duration) -> f64 {
        let begun = Instant::now();
        let until = begun + time;
        let answers: u32 = runtime().block_on(async move {
            let mut workers = JoinSet::new();
            for _ in 0..connections {
                workers.spawn(async move {
                    let mut connection = Connection::open(self.address).await;
                    let request = kind.request();
                    let mut answers = 0u32;
                    while Instant::now() < until {
                        connection.ask(&request).await;
                        answers += 1;
                    }
                    answers
                });
            }
            workers.join_all().await.into_iter().sum()
        });
        f64::from(answers) / begun.elapsed().as_secs_f64()
    }

    /// The time to the first byte that 99 of 100 streamed answers keep, one at a time: of so many answers, or of
    /// those that come in the time.
    pub(crate) fn first_byte(self, answers: usize, time: Duration) -> Duration {
        let mut times = runtime().block_on(async move {
            let mut connection = Connection::open(self.address).await;
            let request = Kind::Streamed.request();
            let until = Instant::now() + time;
            let mut times = Vec::with_capacity(answers);
            while times.is_empty() || (times.len() < answers && Instant::now() < until) {
                times.push(connection.ask(&request).await);
            }
            times
        });
        times.sort();
        times[times.len() * 99 / 100]
    }
}

/// What a server says to a streamed request.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) text: String,
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

/// Asks once, streamed, and reads what was said.
pub(crate) fn look(address: SocketAddr) -> Look {
    let connection = runtime().block_on(async move {
        let mut connection = Connection::open(address).await;
        connection.ask(&Kind::Plain.request()).await;
        connection.ask(&Kind::Streamed.request()).await;
        connection
    });
    let body = String::from_utf8_lossy(&connection.buffer[..connection.filled]).into_owned();
    let datas: Vec<&str> = body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    let piece = |data: &&str| {
        let chunk: Value = serde_json::from_str(data).ok()?;
        Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned())
    };
    Look {
        text: datas.iter().filter_map(piece).collect(),
        events: datas.len(),
        bytes: connection.filled,
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

/// Longer answers are none that the benchmark asks for.
const MOST: usize = 128 << 10;

impl Connection {
    async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buffer: vec![0; MOST],
            filled: 0,
        }
    }

    /// Asks, reads the whole answer, and says when its first byte came.
    async fn ask(&mut self, request: &[u8]) -> Duration {
        let begun = Instant::now();
        self.stream.write_all(request).await.unwrap();
        self.filled = 0;
        let mut first = None;
        let mut end = End::Unknown;
        loop {
            let read = self
                .stream
                .read(&mut self.buffer[self.filled..])
                .await
                .unwrap();
            first.get_or_insert_with(|| begun.elapsed());
            assert!(read > 0, "the server closed the connection");
            self.filled += read;
            if let End::Unknown = end {
                end = End::of(&self.buffer[..self.filled]);
            }
            let whole = match end {
                End::Unknown => false,
                End::At(length) => self.filled >= length,
                End::Chunked => self.buffer[..self.filled].ends_with(b"\r\n0\r\n\r\n"),
            };
            if whole {
                return first.unwrap_or_default();
            }
        }
    }
}

/// How the end of an answer is known.
#[derive(Clone, Copy)]
enum End {
    Unknown,
    /// After so many bytes, head included.
    At(usize),
    /// After an empty chunk.
    Chunked,
}

impl End {
    fn of(answer: &[u8]) -> Self {
        let Some(head) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Self::Unknown;
        };
        let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
        assert!(text.starts_with("http/1.1 200"), "{text}");
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .and_then(|length| length.trim().parse::<usize>().ok());
        length.map_or(Self::Chunked, |length| Self::At(head + 4 + length))
    }
}
