//! The server side of a transcript, for a client to talk to.
//!
//! - [`ReplayServer`]: listens, and says what became of it;
//! - `state`: what was asked for and said so far, and what it is in the transcript;
//! - `body`: the bodies of answers; `channel`: WebSockets and channels of lines.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use hyper::{server::conn::http1 as http1_server, service::service_fn};
use hyper_util::rt::TokioIo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use self::{
    channel::{Speech, converse},
    state::State,
};
use super::{Timing, play::Script};
use crate::transcript::Transcript;

mod body;
mod channel;
mod state;

/// How it is played.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// How fast.
    pub timing: Timing,
    /// Whether a request has to be the recorded one: target and body, but for ids; and a message the one that came
    /// next. Else method and path are enough, and the kind of a message.
    pub strict: bool,
}

/// What became of it.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayReport {
    /// Exchanges of the transcript, and channels of lines.
    pub exchanges: usize,
    /// Those that the client asked for.
    pub served: usize,
    /// Messages and lines of the client in the transcript, without pings, pongs and closes.
    pub messages: usize,
    /// Those that it said.
    pub heard: usize,
    /// Request lines of those that it did not ask for, and messages that it did not say, in the order of the
    /// transcript.
    pub missing: Vec<String>,
    /// Requests and messages that the transcript does not have, each with what was nearest.
    pub unexpected: Vec<String>,
}

impl ReplayReport {
    /// Whether the client sent every recorded request and message and no other.
    pub fn complete(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty()
    }
}

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct ReplayServer {
    state: Arc<State>,
    urls: Vec<String>,
    accepting: Vec<AbortHandle>,
}

impl ReplayServer {
    /// Starts it. Where the transcript has channels of lines and requests, the former get a free port of their own.
    ///
    /// # Errors
    ///
    /// When the address cannot be listened on.
    pub async fn start(transcript: &Transcript, options: ReplayOptions) -> std::io::Result<Self> {
        let script = Script::of(transcript);
        let (has_lines, has_requests) = (script.has_lines(), script.has_requests());
        let mut server = Self::silent(script, options);
        if has_requests || !has_lines {
            let listener = TcpListener::bind(options.listen).await?;
            server
                .urls
                .push(format!("http://{}", listener.local_addr()?));
            let accepting = accept(listener, Arc::clone(&server.state), Speech::Frames);
            server
                .accepting
                .push(tokio::spawn(accepting).abort_handle());
        }
        if has_lines {
            let mut listen = options.listen;
            if has_requests {
                listen.set_port(0);
            }
            let listener = TcpListener::bind(listen).await?;
            server
                .urls
                .push(format!("tcp://{}", listener.local_addr()?));
            let accepting = accept(listener, Arc::clone(&server.state), Speech::Lines);
            server
                .accepting
                .push(tokio::spawn(accepting).abort_handle());
        }
        Ok(server)
    }

    /// One that does not listen, for [`ReplayServer::speak_lines`].
    pub fn unheard(transcript: &Transcript, options: ReplayOptions) -> Self {
        Self::silent(Script::of(transcript), options)
    }

    fn silent(script: Script, options: ReplayOptions) -> Self {
        Self {
            state: Arc::new(State::new(script, options.timing, options.strict)),
            urls: Vec::new(),
            accepting: Vec::new(),
        }
    }

    /// Where clients find it: `http://HOST:PORT`, or `tcp://HOST:PORT` where there are only lines.
    pub fn url(&self) -> String {
        self.urls.first().cloned().unwrap_or_default()
    }

    /// All addresses: for HTTP, and for channels of lines.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Plays the next channel of lines over these two, such as our own standard input and output, until it ends.
    /// Returns false when the transcript has no more of them.
    pub async fn speak_lines<R, W>(&self, from: R, to: W) -> bool
    where
        R: AsyncRead + Send + Unpin,
        W: AsyncWrite + Send + Unpin,
    {
        let Some(place) = self.state.connect() else {
            return false;
        };
        converse(Arc::clone(&self.state), place, Speech::Lines, from, to).await;
        true
    }

    /// Waits until every exchange was asked for and is over.
    pub async fn finished(&self) {
        self.state.finished().await;
    }

    /// What became of it so far.
    pub fn report(&self) -> ReplayReport {
        self.state.report()
    }
}

impl Drop for ReplayServer {
    fn drop(&mut self) {
        self.state.stopping.cancel();
        self.accepting.iter().for_each(AbortHandle::abort);
    }
}

async fn accept(listener: TcpListener, state: Arc<State>, speech: Speech) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        // Without it small pieces wait for each other; a socket that refuses works all the same.
        let _ = stream.set_nodelay(true);
        let state = Arc::clone(&state);
        match speech {
            Speech::Frames => connections.spawn(serve(stream, state)),
            Speech::Lines => connections.spawn(async move {
                if let Some(place) = state.connect() {
                    let (from, to) = stream.into_split();
                    converse(state, place, speech, from, to).await;
                }
            }),
        };
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { state.answer(request).await }
    });
    // How a connection ends is what the transcript says, or the client's affair.
    let _ = http1_server::Builder::new()
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
}
