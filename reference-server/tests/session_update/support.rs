//! A client of lines, and a scripted model service.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;
use turnwire_mock::{Call, MockConfig, MockServer, Reply, Rule, Script, Unmatched, When};
use turnwire_reference::{Config, LlmTarget, Server, StoreChoice};

/// Longest time that anything here is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) mock: MockServer,
}

/// A server with a mock model, on a file when one is named.
pub(crate) async fn rig(file: Option<&Path>) -> Rig {
    let config = MockConfig {
        unmatched: Unmatched::text("Rain falls."),
        ..MockConfig::default()
    };
    let mock = MockServer::start(config).await.unwrap();
    let server = Server::start(config_of(&mock, file)).await.unwrap();
    Rig { server, mock }
}

pub(crate) fn config_of(mock: &MockServer, file: Option<&Path>) -> Config {
    Config {
        session_update: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        store: file.map_or(StoreChoice::Memory, |file| {
            StoreChoice::Sqlite(file.to_owned())
        }),
        time_scale: 0.01,
        llm: LlmTarget {
            base_url: mock.base_url(),
            api_key: Some("key".into()),
            model: "m".into(),
            ..Config::default().llm
        },
        ..Config::default()
    }
}

impl Rig {
    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.server.session_update_addr().unwrap()).await
    }

    /// Answers what contains `word` with these tool calls, then with this text.
    pub(crate) fn calls_then_says(&self, word: &str, calls: &[(&str, Value)], text: &str) {
        let calls = calls
            .iter()
            .map(|(name, arguments)| Call::new(*name, arguments.clone()));
        let asked = When::new().last_user(word).step(0);
        let script = Script::new(word)
            .rule(
                Rule::new("calls")
                    .when(asked)
                    .reply(Reply::new().calls(calls)),
            )
            .rule(
                Rule::new("says")
                    .when(When::new().last_user(word))
                    .reply(Reply::text(text)),
            );
        self.mock.load(script);
    }

    /// Answers what contains `word` with the beginning of an answer that never goes on.
    pub(crate) fn hangs(&self, word: &str) {
        let reply = Reply::text("So it ").gate(word).say("goes.");
        self.mock.load(Script::from(Rule::on(word).reply(reply)));
    }
}

pub(crate) struct Client {
    lines: Lines<BufReader<OwnedReadHalf>>,
    output: OwnedWriteHalf,
    number: u64,
    /// The events so far.
    pub(crate) events: Vec<Value>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let (input, output) = TcpStream::connect(address).await.unwrap().into_split();
        Self {
            lines: BufReader::new(input).lines(),
            output,
            number: 0,
            events: Vec::new(),
        }
    }

    /// Connects and initializes.
    pub(crate) async fn ready(rig: &Rig) -> Self {
        let mut client = rig.connect().await;
        client.ask("initialize", json!({})).await;
        client
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.output.write_all(bytes).await.unwrap();
    }

    /// Sends a request without waiting for its answer; gives its id.
    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.number += 1;
        let request = json!({ "kind": "request", "request_id": self.number, "method": method, "params": params });
        self.send_bytes(format!("{request}\n").as_bytes()).await;
        self.number
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.expect("a message in time").ok()??;
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["kind"] == "event" {
            self.events.push(message.clone());
        }
        Some(message)
    }

    /// The response to a request; events on the way are kept.
    pub(crate) async fn response(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        loop {
            let message = self.next().await.expect("a response");
            if message["kind"] == "response" && message["request_id"] == id {
                return message;
            }
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        let response = self.response(id).await;
        assert!(response["error"].is_null(), "{method}: {response}");
        response["result"].clone()
    }

    pub(crate) async fn refused(&mut self, method: &str, params: Value) -> String {
        let id = self.begin(method, params).await;
        let response = self.response(id).await;
        response["error"]["type"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn session(&mut self) -> String {
        let made = self.ask("session/new", json!({})).await;
        made["session_id"].as_str().unwrap().to_owned()
    }

    /// Waits for an event of this type.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next().await.expect("an event");
            if message["event"]["type"] == kind {
                return message;
            }
        }
    }

    /// The types of the events so far.
    pub(crate) fn types(&self) -> Vec<&str> {
        self.events
            .iter()
            .map(|event| event["event"]["type"].as_str().unwrap())
            .collect()
    }

    /// The durable events so far, without what belongs to the connection.
    pub(crate) fn durable(&self) -> Vec<Value> {
        let durable = self
            .events
            .iter()
            .filter(|event| event["durability"] == "durable");
        durable.map(|event| event["event"].clone()).collect()
    }
}
