//! `chat-ws` as a target of envelopes: texts and frames over a WebSocket, and requests of the routes beside it.

use serde_json::{Value, json};
use turnwire_spec::chat_ws::kind;

use super::{
    Case, body,
    change::Change,
    draft::{Sent, UPGRADE},
    frames::{self, Received},
    http::HttpPeer,
    sample,
    wire::{Answer, How, Wire},
};
use crate::drivers::http::BaseUrl;

/// One worker's connections.
#[derive(Debug)]
pub struct ChatPeer {
    /// The routes, and the sessions behind the chats.
    pub(super) http: HttpPeer,
    socket: Option<Wire>,
}

impl ChatPeer {
    pub(super) async fn open(base: &BaseUrl) -> Result<Self, String> {
        Ok(Self {
            http: HttpPeer::open(base).await?,
            socket: None,
        })
    }

    pub(super) async fn put(&mut self, case: &Case) -> Result<(Sent, Answer), String> {
        if case.route().is_some() {
            return self.http.put(case).await;
        }
        let sent = self.draft(case);
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.opened().await?,
        };
        let ping = frames::text(br#"{"type":"ping"}"#);
        let bytes = if sent.is_last {
            sent.bytes.clone()
        } else {
            [sent.bytes.as_slice(), &ping].concat()
        };
        let wants_two = serde_json::from_slice::<Value>(&sent.body)
            .is_ok_and(|frame| frame.get("type") == Some(&json!("ping")));
        let answer = exchange(&mut socket, &bytes, 1 + usize::from(wants_two)).await;
        if answer.end == How::Complete {
            self.socket = Some(socket);
        }
        Ok((sent, answer))
    }

    fn draft(&self, case: &Case) -> Sent {
        let name = kind(&case.base).map(|kind| kind.schema_name());
        let mut message = name.map_or_else(
            || json!({ "type": case.base }),
            |name| sample::of(&name, &self.http.session),
        );
        message["type"] = case.base.as_str().into();
        let body = body::changed(message, &case.changes);
        let mut changes: Vec<_> = case.changes.iter().map(Change::name).collect();
        let fault = case.changes.iter().find_map(|change| match change {
            Change::Frame { how } => Some(frames::fault(*how, &body)),
            _ => None,
        });
        let is_text = std::str::from_utf8(&body).is_ok();
        // What is no UTF-8 cannot go as a text; as bytes it is read all the same.
        let whole = frames::frame(if is_text { 0x81 } else { 0x82 }, &body);
        let (is_last, bytes) = match fault {
            Some((name, bytes)) => {
                changes.push(name);
                (true, bytes)
            }
            None => (false, whole),
        };
        Sent {
            bytes,
            method: case.base.clone(),
            body,
            is_loose: is_last,
            is_last,
            changes,
            ..Sent::default()
        }
    }

    pub(super) async fn state(&mut self) -> Result<String, String> {
        let chats = self.http.expect("GET", "/api/chats", None).await?;
        let path = format!("/api/chats/{}/messages", self.http.session);
        let messages = self.http.expect("GET", &path, None).await?;
        Ok(format!("{chats}\n{messages}"))
    }

    async fn opened(&self) -> Result<Wire, String> {
        let mut wire = self.http.connect().await?;
        let upgrade = UPGRADE.map(|(name, value)| format!("{name}: {value}\r\n"));
        let asking = format!(
            "GET /ws HTTP/1.1\r\nhost: {}\r\n{}\r\n",
            self.http.authority(),
            upgrade.concat()
        );
        let answer = wire.ask(asking.as_bytes(), false, false).await;
        match answer.status {
            101 => Ok(wire),
            other => Err(format!("the socket does not open: {other}")),
        }
    }
}

/// Sends bytes, and reads frames until as many pongs have come, or the end.
async fn exchange(wire: &mut Wire, bytes: &[u8], pongs: usize) -> Answer {
    let mut seen = 0;
    let take = |buffer: &mut Vec<u8>, answer: &mut Answer| {
        let mut is_closing = false;
        while let Some(frame) = frames::take(buffer) {
            match frame {
                Received::Text(text) => {
                    let pong = serde_json::from_slice::<Value>(&text)
                        .is_ok_and(|frame| frame.get("type") == Some(&json!("pong")));
                    seen += usize::from(pong);
                    answer.messages.push(text);
                }
                Received::Close(code) => {
                    is_closing = true;
                    answer.end = How::Closed(code);
                }
                Received::Other => {}
            }
        }
        is_closing || seen >= pongs
    };
    wire.talk(bytes, take).await
}
