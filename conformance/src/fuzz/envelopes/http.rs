//! `covel-sse` as a target of envelopes.

use serde_json::{Value, json};

use super::{
    Case,
    draft::{self, Sent},
    wire::{Answer, How, Wire},
};
use crate::drivers::http::BaseUrl;

/// Sessions that the harness makes begin so.
const PREFIX: &str = "envelopes";
/// How often a session that still works is asked to go.
const TRIES: usize = 40;
/// What tells of one session.
const QUERIES: &[&str] = &[
    "",
    "/view",
    "/messages",
    "/state",
    "/plugins",
    "/runtime-jobs",
    "/approvals",
    "/suspensions",
    "/plugin-data/turnwire-fixtures/fuzz",
];

/// One worker's connections.
#[derive(Debug)]
pub struct HttpPeer {
    base: BaseUrl,
    /// For valid requests.
    probe: Option<Wire>,
    /// For cases.
    line: Option<Wire>,
    pub(super) session: String,
    token: Option<String>,
    made: u64,
}

impl HttpPeer {
    pub(super) async fn open(base: &BaseUrl) -> Result<Self, String> {
        let mut peer = Self {
            base: base.clone(),
            probe: None,
            line: None,
            session: "none-such".to_owned(),
            token: None,
            made: 0,
        };
        peer.renew().await?;
        Ok(peer)
    }

    pub(super) async fn put(&mut self, case: &Case) -> Result<(Sent, Answer), String> {
        let sent = draft::http(
            case,
            self.base.authority(),
            &self.session,
            self.token.as_deref(),
        );
        let mut line = match self.line.take() {
            Some(line) => line,
            None => self.connect().await?,
        };
        let is_head = sent.method == "HEAD";
        let mut answer = line.ask(&sent.bytes, is_head, sent.is_last).await;
        if answer.status == 0 && answer.end == How::Closed(None) && !sent.is_last {
            // A connection that idled may be closed at any time: that is no answer to this request.
            line = self.connect().await?;
            answer = line.ask(&sent.bytes, is_head, sent.is_last).await;
        }
        let goes_on = answer.end == How::Complete && !answer.is_stream() && !sent.is_last;
        if goes_on && answer.status != 101 && line.buffer.is_empty() {
            self.line = Some(line);
        }
        Ok((sent, answer))
    }

    pub(super) async fn state(&mut self) -> Result<String, String> {
        let mut state = self.expect("GET", "/api/sessions", None).await?;
        for query in QUERIES {
            let path = format!("/api/sessions/{}{query}", self.session);
            state.push('\n');
            state.push_str(&self.expect("GET", &path, None).await?);
        }
        Ok(state)
    }

    pub(super) async fn renew(&mut self) -> Result<(), String> {
        for _ in 0..TRIES {
            let ids = self.listed().await?;
            if ids.is_empty() {
                break;
            }
            for id in ids {
                // One that still works refuses; the next round asks again.
                let _ = self
                    .ask("DELETE", &format!("/api/sessions/{id}"), None)
                    .await?;
            }
            if !self.listed().await?.is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
        self.made += 1;
        let id = format!("{PREFIX}-{}", self.made);
        (self.session, self.token) = self.make(&id).await?;
        Ok(())
    }

    /// Makes a session of this id; gives its id and its owner's token.
    pub(super) async fn make(&mut self, id: &str) -> Result<(String, Option<String>), String> {
        let wishes = json!({ "id": id, "plugins": ["story", "turnwire-fixtures"] });
        let made = self.expect("POST", "/api/sessions", Some(&wishes)).await?;
        let made: Value = serde_json::from_str(&made).map_err(|error| error.to_string())?;
        let text = |name: &str| made.get(name).and_then(Value::as_str).map(str::to_owned);
        let id = text("id").ok_or_else(|| format!("a session without an id: {made}"))?;
        Ok((id, text("ownerToken")))
    }

    pub(super) async fn store(&mut self) -> Result<(), String> {
        let path = format!(
            "/api/sessions/{}/plugin-data/turnwire-fixtures/fuzz/garbage",
            self.session
        );
        let value = json!({ "value": 1 });
        self.expect("PUT", &path, Some(&value)).await.map(drop)
    }

    async fn listed(&mut self) -> Result<Vec<String>, String> {
        let list = self.expect("GET", "/api/sessions", None).await?;
        let list: Value = serde_json::from_str(&list).map_err(|error| error.to_string())?;
        let items = list.get("items").and_then(Value::as_array);
        let id = |item: &Value| Some(item.get("id")?.as_str()?.to_owned());
        Ok(items.into_iter().flatten().filter_map(id).collect())
    }

    /// The body of an answer that has to be a success.
    pub(super) async fn expect(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<String, String> {
        let answer = self.ask(method, path, body).await?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if (200..300).contains(&answer.status) {
            return Ok(text);
        }
        let end = answer.end;
        Err(format!(
            "{method} {path} is answered with {} ({end:?}): {text}",
            answer.status
        ))
    }

    async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let token = self.token.iter();
        let token: String = token
            .map(|token| format!("authorization: Bearer {token}\r\n"))
            .collect();
        let bytes = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n{token}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.base.authority(),
            body.len()
        );
        let mut probe = match self.probe.take() {
            Some(probe) => probe,
            None => self.connect().await?,
        };
        let answer = probe.ask(bytes.as_bytes(), false, false).await;
        if answer.end == How::Complete {
            self.probe = Some(probe);
        }
        Ok(answer)
    }

    pub(super) async fn connect(&self) -> Result<Wire, String> {
        Wire::connect(&self.base.host, self.base.port).await
    }

    pub(super) fn authority(&self) -> &str {
        self.base.authority()
    }
}
