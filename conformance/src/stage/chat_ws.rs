//! The steps of the `chat-ws` protocol: sockets, and the frames of a client.

use serde_json::{Value, json};
use turnwire_spec::chat_ws::PATH;

use super::Stage;
use crate::drivers::{
    DriveError,
    websocket::{self, Open, Opened, WebSocket},
};

impl Stage {
    /// Opens a socket and gives what became of it.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn open_socket(&self, how: Open) -> Result<Opened, DriveError> {
        websocket::open(self.http(), how).await
    }

    /// A socket at `/ws` with the profile's token, which the scenario stands on.
    ///
    /// # Errors
    ///
    /// When the target does not switch protocols.
    pub async fn chat(&self) -> Result<WebSocket, DriveError> {
        self.open_socket(self.chat_open()).await?.socket()
    }

    /// How a socket at `/ws` is opened.
    pub fn chat_open(&self) -> Open {
        Open::at(PATH).bearer(self.profile().operator_token.as_deref())
    }
}

/// A frame of a client.
pub fn frame(kind: &str, payload: Value) -> Value {
    json!({ "type": kind, "payload": payload })
}

impl WebSocket {
    /// Sends a frame.
    ///
    /// # Errors
    ///
    /// As [`WebSocket::send_message`].
    pub async fn say(&self, kind: &str, payload: Value) -> Result<(), DriveError> {
        self.send(&frame(kind, payload)).await
    }

    /// `chat:send` in a project, to a session or a new one.
    ///
    /// # Errors
    ///
    /// As [`WebSocket::send_message`].
    pub async fn chat_send(
        &self,
        slug: &str,
        session: Option<&str>,
        message: &str,
    ) -> Result<(), DriveError> {
        let payload = json!({
            "projectSlug": slug, "target": slug, "sessionId": session, "message": message,
        });
        self.say("chat:send", payload).await
    }
}
