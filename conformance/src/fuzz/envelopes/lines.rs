//! `session-update` as a target of envelopes: lines of JSON over a socket.

use serde_json::{Value, json};
use turnwire_spec::session_update::method;

use super::{
    Case, body,
    change::Change,
    draft::Sent,
    sample,
    wire::{Answer, How, Wire},
};
use crate::drivers::http::BaseUrl;

/// One worker's connections.
#[derive(Debug)]
pub struct LinePeer {
    base: BaseUrl,
    probe: Option<Wire>,
    line: Option<Wire>,
    session: String,
    asked: u64,
}

impl LinePeer {
    pub(super) async fn open(base: &BaseUrl) -> Result<Self, String> {
        let mut peer = Self {
            base: base.clone(),
            probe: None,
            line: None,
            session: "none-such".to_owned(),
            asked: 0,
        };
        peer.renew().await?;
        Ok(peer)
    }

    pub(super) async fn put(&mut self, case: &Case) -> Result<(Sent, Answer), String> {
        let sent = self.draft(case);
        let mut line = match self.line.take() {
            Some(line) => line,
            None => self.opened().await?,
        };
        self.asked += 1;
        let ping = format!("after-{}", self.asked);
        let last = json!({ "kind": "request", "request_id": ping, "method": "ping" });
        let bytes = [&sent.bytes, last.to_string().as_bytes(), b"\n"].concat();
        let lines = sent.body.split(|byte| *byte == b'\n');
        let wanted = lines.filter(|line| !line.is_empty()).count().max(1);
        let answer = exchange(&mut line, &bytes, &ping, wanted).await;
        if answer.end == How::Complete {
            self.line = Some(line);
        }
        Ok((sent, answer))
    }

    fn draft(&self, case: &Case) -> Sent {
        let mut message = json!({ "kind": "request", "request_id": "case", "method": case.base });
        if method(&case.base).is_some_and(|row| row.params.is_some()) {
            let name = format!("session-update.params.{}", case.base.replace('/', "."));
            message["params"] = sample::of(&name, &self.session);
        }
        let body = body::changed(message, &case.changes);
        Sent {
            bytes: [&body[..], b"\n"].concat(),
            method: case.base.clone(),
            body,
            changes: case.changes.iter().map(Change::name).collect(),
            ..Sent::default()
        }
    }

    pub(super) async fn state(&mut self) -> Result<String, String> {
        let list = self.ask("session/list", json!({ "limit": 100 })).await?;
        let stored = self
            .ask("session/replay", json!({ "session_id": self.session }))
            .await?;
        Ok(format!("{list}\n{stored}"))
    }

    pub(super) async fn renew(&mut self) -> Result<(), String> {
        // A connection that is subscribed hears what no case is about.
        self.line = None;
        for id in self.listed().await? {
            let _ = self
                .ask("session/delete", json!({ "session_id": id }))
                .await;
        }
        let made = self.ask("session/new", json!({})).await?;
        let id = made.get("session_id").and_then(Value::as_str);
        self.session = id
            .ok_or_else(|| format!("a session without an id: {made}"))?
            .to_owned();
        Ok(())
    }

    pub(super) async fn store(&mut self) -> Result<(), String> {
        self.ask("session/new", json!({})).await.map(drop)
    }

    async fn listed(&mut self) -> Result<Vec<String>, String> {
        let list = self.ask("session/list", json!({ "limit": 100 })).await?;
        let items = list.get("sessions").and_then(Value::as_array);
        let id = |item: &Value| Some(item.get("session_id")?.as_str()?.to_owned());
        Ok(items.into_iter().flatten().filter_map(id).collect())
    }

    /// The result of a request that has to be a success.
    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let mut probe = match self.probe.take() {
            Some(probe) => probe,
            None => self.opened().await?,
        };
        let result = request(&mut probe, &mut self.asked, method, params).await?;
        self.probe = Some(probe);
        Ok(result)
    }

    async fn opened(&mut self) -> Result<Wire, String> {
        let mut wire = Wire::connect(&self.base.host, self.base.port).await?;
        request(&mut wire, &mut self.asked, "initialize", json!({})).await?;
        Ok(wire)
    }
}

async fn request(
    wire: &mut Wire,
    asked: &mut u64,
    method: &str,
    params: Value,
) -> Result<Value, String> {
    *asked += 1;
    let id = format!("probe-{asked}");
    let line = json!({ "kind": "request", "request_id": id, "method": method, "params": params });
    let answer = exchange(wire, format!("{line}\n").as_bytes(), &id, 0).await;
    let own = answer.messages.iter().filter_map(|line| {
        let message: Value = serde_json::from_slice(line).ok()?;
        (message.get("request_id")?.as_str()? == id).then_some(message)
    });
    let message = own.reduce(|_, newer| newer);
    let result = message.as_ref().and_then(|message| message.get("result"));
    result.cloned().ok_or_else(|| match message {
        Some(message) => format!("{method} is answered with {message}"),
        None => format!("{method} is not answered ({:?})", answer.end),
    })
}

/// Sends bytes, and reads lines until the response to `last` has come and as many others as are wanted.
async fn exchange(wire: &mut Wire, bytes: &[u8], last: &str, wanted: usize) -> Answer {
    let (mut is_over, mut others) = (false, 0);
    let take = |buffer: &mut Vec<u8>, answer: &mut Answer| {
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let mut line: Vec<u8> = buffer.drain(..=end).collect();
            line.pop();
            let message: Value = serde_json::from_slice(&line).unwrap_or_default();
            let id = message.get("request_id").and_then(Value::as_str);
            if id == Some(last) {
                is_over = true;
            } else {
                others += usize::from(message.get("kind") != Some(&json!("event")));
            }
            answer.messages.push(line);
        }
        is_over && others >= wanted
    };
    wire.talk(bytes, take).await
}
