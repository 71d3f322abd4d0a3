//! A server with a scripted model, and clients that send frames as they like.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use turnwire_mock::{Mock, MockConfig, MockServer, Unmatched};
use turnwire_reference::config::ChatConfig;
use turnwire_reference::{Config, LlmTarget, Server};

/// Longest time that anything here is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) struct Bench {
    pub(crate) server: Server,
    mock: MockServer,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A server whose configuration was changed.
    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mock = MockServer::start(MockConfig {
            unmatched: Unmatched::text("Rain falls."),
            ..MockConfig::default()
        })
        .await
        .unwrap();
        let mut config = Config {
            llm: LlmTarget {
                base_url: mock.base_url(),
                api_key: Some("key".to_owned()),
                model: "mock".to_owned(),
                ..Config::default().llm
            },
            session_update: Some(([127, 0, 0, 1], 0).into()),
            chat: ChatConfig::default(),
            ..Config::default()
        };
        change(&mut config);
        let server = Server::start(config).await.unwrap();
        Self { server, mock }
    }

    pub(crate) fn mock(&self) -> &Mock {
        self.mock.mock()
    }

    pub(crate) async fn socket(&self) -> Client {
        self.try_socket(&[]).await.unwrap()
    }

    /// Opens a socket with these headers of the upgrade.
    pub(crate) async fn try_socket(
        &self,
        headers: &[(&'static str, &str)],
    ) -> Result<Client, Error> {
        let address = self.server.addr();
        let mut request = format!("ws://{address}/ws").into_client_request()?;
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(address).await?;
        let (socket, _) = client_async(request, stream).await?;
        Ok(Client { socket })
    }
}

pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<TcpStream>,
}

impl Client {
    pub(crate) async fn send(&mut self, kind: &str, payload: Value) {
        let frame = json!({ "type": kind, "payload": payload });
        self.text(&frame.to_string()).await;
    }

    pub(crate) async fn text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    pub(crate) async fn frame(&mut self, frame: Frame) {
        self.socket.send(Message::Frame(frame)).await.unwrap();
    }

    /// The next frame of this kind.
    pub(crate) async fn next(&mut self, kind: &str) -> Value {
        let found = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Text(text))) => {
                        let frame: Value = serde_json::from_str(&text).unwrap();
                        if frame["type"] == kind {
                            return frame["payload"].clone();
                        }
                    }
                    Some(Ok(_)) => {}
                    other => panic!("no {kind}: {other:?}"),
                }
            }
        };
        timeout(PATIENCE, found)
            .await
            .unwrap_or_else(|_| panic!("no {kind} in time"))
    }

    /// The code with which the server closes; `None` when it just ends.
    pub(crate) async fn close_code(&mut self) -> Option<u16> {
        let found = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Close(frame))) => return frame.map(|frame| frame.code.into()),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return None,
                }
            }
        };
        timeout(PATIENCE, found)
            .await
            .expect("the socket stays open")
    }

    /// Says something and gives the session of the turn.
    pub(crate) async fn chat(&mut self, message: &str) -> String {
        let payload = json!({ "projectSlug": "scratch", "message": message });
        self.send("chat:send", payload).await;
        let complete = self.next("chat:complete").await;
        complete["sessionId"].as_str().unwrap().to_owned()
    }

    /// Whether the socket still answers.
    pub(crate) async fn is_alive(&mut self) -> bool {
        self.text(r#"{"type":"ping"}"#).await;
        self.next("pong").await.is_null()
    }
}
