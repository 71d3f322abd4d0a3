//! The load: connections that ask the same again and again, and read whole answers.
//!
//! Bare sockets and a blocking thread a connection, so that the generator costs little beside what it measures.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

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
        let workers: Vec<_> = (0..connections)
            .map(|_| {
                thread::spawn(move || {
                    let mut connection = Connection::open(self.address);
                    let request = kind.request();
                    let mut answers = 0u32;
                    while Instant::now() < until {
                        connection.ask(&request);
                        answers += 1;
                    }
                    answers
                })
            })
            .collect();
        let answers: u32 = workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum();
        f64::from(answers) / begun.elapsed().as_secs_f64()
    }

    /// The time to the first byte that 99 of 100 streamed answers keep, one at a time.
    pub(crate) fn first_byte(self, answers: usize) -> Duration {
        let mut connection = Connection::open(self.address);
        let request = Kind::Streamed.request();
        let mut times: Vec<Duration> = (0..answers).map(|_| connection.ask(&request)).collect();
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
    let mut connection = Connection::open(address);
    connection.ask(&Kind::Plain.request());
    connection.ask(&Kind::Streamed.request());
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

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

/// Longer answers are none that the benchmark asks for.
const MOST: usize = 1 << 20;

impl Connection {
    fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        Self {
            stream,
            buffer: vec![0; MOST],
            filled: 0,
        }
    }

    /// Asks, reads the whole answer, and says when its first byte came.
    fn ask(&mut self, request: &[u8]) -> Duration {
        let begun = Instant::now();
        self.stream.write_all(request).unwrap();
        self.filled = 0;
        let mut first = None;
        let mut end = End::Unknown;
        loop {
            let read = self.stream.read(&mut self.buffer[self.filled..]).unwrap();
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
