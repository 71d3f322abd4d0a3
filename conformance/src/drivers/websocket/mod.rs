//! A recording WebSocket client.
//!
//! - [`frames`]: the bytes of frames;
//! - [`socket`]: an open socket, which is read in the background;
//! - [`server`]: the other end, for clients under test.
//!
//! Every message and control frame of both sides is told with its time, and how the connection ended. Pings are
//! answered, and closes, as RFC 6455 asks; [`Open`] can ask for less, for scenarios about dead or slow peers.

use std::sync::atomic::{AtomicU32, Ordering};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    DriveError,
    http::{Call, HttpClient, Reply, Upgrade},
};
use crate::transcript::{Side, cut::CutAt};

pub mod frames;
pub mod server;
pub mod socket;

pub use socket::{Habits, Seen, WebSocket};

/// How a socket is opened.
#[derive(Clone, Debug)]
pub struct Open {
    path: String,
    headers: Vec<(String, String)>,
    receive_buffer: Option<u32>,
    wrong: Option<String>,
    answers_pings: bool,
    reads: bool,
    cut: Option<CutAt>,
}

impl Open {
    /// A socket at this path; it may have a query.
    pub fn at(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            headers: Vec::new(),
            receive_buffer: None,
            wrong: None,
            answers_pings: true,
            reads: true,
            cut: None,
        }
    }

    /// With a header of the upgrade; one of the handshake's own is replaced.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// With `authorization: Bearer TOKEN`, when there is a token.
    #[must_use]
    pub fn bearer(self, token: Option<&str>) -> Self {
        match token {
            Some(token) => self.header("authorization", format!("Bearer {token}")),
            None => self,
        }
    }

    /// Leaves the target's pings without an answer.
    #[must_use]
    pub fn without_pongs(mut self) -> Self {
        self.answers_pings = false;
        self
    }

    /// Reads nothing until [`WebSocket::read_on`], over a connection with a small receive buffer.
    #[must_use]
    pub fn slow(mut self) -> Self {
        self.reads = false;
        self.receive_buffer = Some(2048);
        self
    }

    /// Breaks off after so many frames of the target, and bytes of the next one.
    #[must_use]
    pub fn cut(mut self, at: Option<CutAt>) -> Self {
        self.cut = at;
        self
    }

    /// Says that the upgrade breaks the protocol on purpose, and how.
    #[must_use]
    pub fn wrong_on_purpose(mut self, why: &str) -> Self {
        self.wrong = Some(why.to_owned());
        self
    }

    fn call(&self) -> Call {
        let mut call = Call::get(self.path.clone());
        let own = [
            ("connection", "Upgrade".to_owned()),
            ("upgrade", "websocket".to_owned()),
            ("sec-websocket-version", "13".to_owned()),
            ("sec-websocket-key", key()),
        ];
        for (name, value) in own {
            if !self.headers.iter().any(|(key, _)| key == name) {
                call = call.header(name, value);
            }
        }
        for (name, value) in &self.headers {
            call = call.header(name, value.clone());
        }
        if let Some(bytes) = self.receive_buffer {
            call = call.receive_buffer(bytes);
        }
        match &self.wrong {
            Some(why) => call.wrong_on_purpose(why),
            None => call,
        }
    }
}

/// A key that differs from handshake to handshake.
fn key() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let mut key = [0x5a; 16];
    let number = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    key.iter_mut()
        .zip(number)
        .for_each(|(byte, number)| *byte ^= number);
    STANDARD.encode(key)
}

/// What became of the opening of a socket.
#[derive(Debug)]
pub enum Opened {
    /// It is open.
    Socket(WebSocket),
    /// The target answered with another status than 101.
    Refused(Reply),
}

impl Opened {
    /// The socket.
    ///
    /// # Errors
    ///
    /// [`DriveError::Unexpected`] when the target refused it.
    pub fn socket(self) -> Result<WebSocket, DriveError> {
        match self {
            Self::Socket(socket) => Ok(socket),
            Self::Refused(reply) => Err(DriveError::Unexpected {
                request: reply.request.clone(),
                expected: "101 Switching Protocols".to_owned(),
                got: reply.status.to_string(),
            }),
        }
    }
}

/// Opens a socket.
///
/// # Errors
///
/// When there is no response head; see [`HttpClient::send`].
pub async fn open(http: &HttpClient, how: Open) -> Result<Opened, DriveError> {
    let call = how.call();
    Ok(match http.upgrade(call).await? {
        Upgrade::Refused(reply) => Opened::Refused(reply),
        Upgrade::Switched(switched) => {
            let write_within = http.limits().total;
            Opened::Socket(WebSocket::start(
                Side::Client,
                switched,
                Habits {
                    answers_pings: how.answers_pings,
                    reads: how.reads,
                    cut: how.cut,
                },
                write_within,
            ))
        }
    })
}
