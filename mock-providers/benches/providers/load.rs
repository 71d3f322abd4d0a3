//! The load: connections that ask the same again and again, and read whole answers.
//!
//! One thread waits for all sockets at once, and asks again where an answer is whole: a system call to write, one to
//! read, and nothing else for each answer, so that the generator costs little beside what it measures.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
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
        let request = kind.request();
        let mut ring = Ring::open(self.address, connections);
        for connection in &mut ring.connections {
            connection.ask(&request);
        }
        let begun = Instant::now();
        let mut answers = 0u32;
        let mut last = begun;
        while last < begun + time {
            ring.wait();
            last = Instant::now();
            for event in &ring.events {
                let connection = &mut ring.connections[event.token().0];
                if connection.read() {
                    answers += 1;
                    connection.ask(&request);
                }
            }
        }
        f64::from(answers) / last.duration_since(begun).as_secs_f64()
    }

    /// The time to the first byte that 99 of 100 streamed answers keep, one at a time: of so many answers, or of
    /// those that come in the time.
    pub(crate) fn first_byte(self, answers: usize, time: Duration) -> Duration {
        let request = Kind::Streamed.request();
        let mut ring = Ring::open(self.address, 1);
        let until = Instant::now() + time;
        let mut times = Vec::with_capacity(answers);
        while times.is_empty() || (times.len() < answers && Instant::now() < until) {
            times.push(ring.ask_alone(&request));
        }
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
    let mut ring = Ring::open(address, 1);
    ring.ask_alone(&Kind::Plain.request());
    ring.ask_alone(&Kind::Streamed.request());
    let connection = &ring.connections[0];
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

/// Connections that are waited for together; a connection's token is its place.
struct Ring {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
}

impl Ring {
    fn open(address: SocketAddr, connections: usize) -> Self {
        let poll = Poll::new().unwrap();
        let connections = (0..connections)
            .map(|place| {
                let mut connection = Connection::open(address);
                poll.registry()
                    .register(&mut connection.stream, Token(place), Interest::READABLE)
                    .unwrap();
                connection
            })
            .collect();
        Self {
            poll,
            events: Events::with_capacity(256),
            connections,
        }
    }

    /// Waits until something can be read somewhere.
    fn wait(&mut self) {
        self.poll.poll(&mut self.events, Some(SILENCE)).unwrap();
        assert!(!self.events.is_empty(), "the server says nothing");
    }

    /// Asks on the only connection, reads the whole answer, and says when its first byte came.
    fn ask_alone(&mut self, request: &[u8]) -> Duration {
        let begun = Instant::now();
        self.connections[0].ask(request);
        self.wait();
        let first = begun.elapsed();
        while !self.connections[0].read() {
            self.wait();
        }
        first
    }
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
    end: End,
}

/// Longer answers are none that the benchmark asks for.
const MOST: usize = 128 << 10;

/// A server that says nothing for so long does not answer any more.
const SILENCE: Duration = Duration::from_secs(10);

impl Connection {
    fn open(address: SocketAddr) -> Self {
        let stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self {
            stream: TcpStream::from_std(stream),
            buffer: vec![0; MOST],
            filled: 0,
            end: End::Unknown,
        }
    }

    /// Asks; the request fits into the socket's buffer, which is empty between two answers.
    fn ask(&mut self, request: &[u8]) {
        let written = self.stream.write(request).unwrap();
        assert_eq!(written, request.len(), "the server reads nothing");
        self.filled = 0;
        self.end = End::Unknown;
    }

    /// Reads what is there, and says whether the answer is whole.
    ///
    /// What is there was read when less came than there is room for (epoll(7), question 9); a server that says more
    /// afterwards makes the socket readable anew.
    fn read(&mut self) -> bool {
        match self.stream.read(&mut self.buffer[self.filled..]) {
            Ok(0) => panic!("the server closed the connection"),
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => panic!("{error}"),
        }
        let answer = &self.buffer[..self.filled];
        if let End::Unknown = self.end {
            self.end = End::of(answer);
        }
        match self.end {
            End::Unknown => false,
            End::At(length) => self.filled >= length,
            End::Chunked => answer.ends_with(b"\r\n0\r\n\r\n"),
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
        assert!(
            answer.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&answer[..head])
        );
        answer[..head]
            .split(|byte| *byte == b'\n')
            .find_map(length)
            .map_or(Self::Chunked, |length| Self::At(head + 4 + length))
    }
}

/// The number of a `content-length` line.
fn length(line: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let (name, value) = line.split_at_checked(NAME.len())?;
    let value = name.eq_ignore_ascii_case(NAME).then_some(value)?;
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}
