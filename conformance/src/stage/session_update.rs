//! The steps of the `session-update` protocol: connections, sessions, prompts, and what is waited for.
//!
//! A step gives the answer, whatever it is. Only what a scenario stands on (a connection, a session) insists.

use std::time::Duration;

use serde_json::{Value, json};

use super::Stage;
use crate::{
    drivers::{
        DriveError,
        lines::{LineChannel, Open},
    },
    transcript::Fact,
};

/// How long an answer may take before a scenario goes on without it.
const SOON: Duration = Duration::from_secs(10);

/// Scripted turns take up to a second, however impatient the run is.
const AT_LEAST: Duration = Duration::from_secs(4);

/// A connection to the target.
#[derive(Debug)]
pub struct Lines {
    channel: LineChannel,
    /// The number of the last request.
    number: u32,
    patience: Duration,
    /// Whether every turn so far was told to have ended.
    tells_ends: bool,
}

impl Stage {
    /// Opens a connection, and the protocol on it.
    ///
    /// # Errors
    ///
    /// When the target takes no connection, or does not answer `initialize` with a result.
    pub async fn lines(&self) -> Result<Lines, DriveError> {
        let mut lines = self.raw_lines(Open::default()).await?;
        lines.need("initialize", json!({})).await?;
        Ok(lines)
    }

    /// Opens a connection with a small receive buffer, and the protocol on it.
    ///
    /// # Errors
    ///
    /// As [`Stage::lines`].
    pub async fn slow_lines(&self, receive_buffer: u32) -> Result<Lines, DriveError> {
        let how = Open {
            receive_buffer: Some(receive_buffer),
            ..Open::default()
        };
        let mut lines = self.raw_lines(how).await?;
        lines.need("initialize", json!({})).await?;
        Ok(lines)
    }

    /// Opens a connection and nothing more.
    ///
    /// # Errors
    ///
    /// When the target takes no connection.
    pub async fn raw_lines(&self, how: Open) -> Result<Lines, DriveError> {
        let url = self.target_url().await?;
        let limits = self.profile().limits.http;
        let channel = LineChannel::open(&url, self.recorder().clone(), limits, how).await?;
        Ok(Lines {
            channel,
            number: 0,
            tells_ends: true,
            patience: self.patience(SOON).max(AT_LEAST),
        })
    }

    /// Tells the transcript what the model was told to do when it reads `input`, for the checks to compare.
    pub fn scripted(&self, input: &str, what: Value) {
        let mut told = json!({ "scripted": input });
        if let (Some(told), Value::Object(what)) = (told.as_object_mut(), what) {
            told.extend(what);
        }
        self.recorder().tell(Fact::State(told));
    }
}

impl Lines {
    /// The channel itself.
    pub fn channel(&mut self) -> &mut LineChannel {
        &mut self.channel
    }

    /// Sends a request; gives its id.
    ///
    /// # Errors
    ///
    /// When the connection does not take it.
    pub async fn begin(&mut self, method: &str, params: Value) -> Result<String, DriveError> {
        self.number += 1;
        let id = format!("r-{}", self.number);
        let mut request = json!({ "kind": "request", "request_id": id, "method": method });
        if params.as_object().is_some_and(|params| !params.is_empty()) {
            request["params"] = params;
        }
        self.channel.send(&request).await?;
        Ok(id)
    }

    /// The response to a request; `None` when it does not come.
    pub async fn response(&mut self, id: &str) -> Option<Value> {
        // It may have come before an event that was waited for.
        let is_it = |line: &Value| line["kind"] == "response" && line["request_id"] == id;
        let earlier = self.channel.lines().into_iter().find(is_it);
        match earlier {
            Some(found) => Some(found),
            None => self.channel.wait(self.patience, is_it).await,
        }
    }

    /// Sends a request and waits for its response.
    ///
    /// # Errors
    ///
    /// When the connection does not take it.
    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Option<Value>, DriveError> {
        let id = self.begin(method, params).await?;
        Ok(self.response(&id).await)
    }

    /// As [`Lines::ask`]; gives the result.
    ///
    /// # Errors
    ///
    /// When there is no result.
    pub async fn need(&mut self, method: &str, params: Value) -> Result<Value, DriveError> {
        let answer = self.ask(method, params).await?;
        let result = answer.as_ref().and_then(|answer| answer.get("result"));
        result.cloned().ok_or_else(|| DriveError::Unexpected {
            request: method.to_owned(),
            expected: "a result".to_owned(),
            got: answer.map_or_else(|| "nothing".to_owned(), |answer| answer.to_string()),
        })
    }

    /// Makes a session and subscribes to it.
    ///
    /// # Errors
    ///
    /// When the target makes none.
    pub async fn session(&mut self) -> Result<String, DriveError> {
        let session = self.session_unheard().await?;
        self.subscribe(&session).await?;
        Ok(session)
    }

    /// Makes a session and does not ask to hear of it. A target may subscribe the connection all the same.
    ///
    /// # Errors
    ///
    /// When the target makes none.
    pub async fn session_unheard(&mut self) -> Result<String, DriveError> {
        let made = self.need("session/new", json!({})).await?;
        let id = made["session_id"].as_str().map(str::to_owned);
        id.ok_or_else(|| DriveError::Unexpected {
            request: "session/new".to_owned(),
            expected: "a session_id".to_owned(),
            got: made.to_string(),
        })
    }

    /// `session/subscribe`, to its answer.
    ///
    /// # Errors
    ///
    /// When the connection does not take it.
    pub async fn subscribe(&mut self, session: &str) -> Result<Option<Value>, DriveError> {
        self.ask("session/subscribe", json!({ "session_id": session }))
            .await
    }

    /// Begins a turn; gives the id of the request.
    ///
    /// # Errors
    ///
    /// When the connection does not take it.
    pub async fn prompt(&mut self, session: &str, input: &str) -> Result<String, DriveError> {
        let params = json!({ "session_id": session, "input": input });
        self.begin("session/prompt", params).await
    }

    /// Plays a turn to the answer of its prompt, and to its end where that comes after the answer.
    ///
    /// # Errors
    ///
    /// When the connection does not take it.
    pub async fn turn(&mut self, session: &str, input: &str) -> Result<Option<Value>, DriveError> {
        let id = self.prompt(session, input).await?;
        Ok(self.over(&id).await)
    }

    /// The response to a prompt, once its turn has ended too; `None` when no response comes.
    pub async fn over(&mut self, prompt: &str) -> Option<Value> {
        let answer = self.response(prompt).await?;
        if let Some(turn) = answer["result"]["turn_id"].as_str() {
            self.turn_end(turn).await;
        }
        Some(answer)
    }

    /// Waits for the end of a turn whose prompt is answered. The order of the two is open, but a target that has let
    /// us wait in vain once tells no ends.
    async fn turn_end(&mut self, turn: &str) {
        if !self.tells_ends {
            return;
        }
        let ends = |line: &Value| line["turn_id"] == turn && ends_turn(line);
        let enough = |lines: &[Value]| lines.iter().any(ends);
        self.tells_ends = self.channel.wait_until(self.patience, enough).await;
    }

    /// `session/replay`, to its answer: what is stored.
    ///
    /// # Errors
    ///
    /// When the connection does not take it.
    pub async fn stored(&mut self, session: &str) -> Result<Option<Value>, DriveError> {
        self.ask("session/replay", json!({ "session_id": session }))
            .await
    }

    /// Waits for an event of this type.
    pub async fn event(&mut self, kind: &str) -> Option<Value> {
        let of_kind = |line: &Value| line["kind"] == "event" && line["event"]["type"] == kind;
        self.channel.wait(self.patience, of_kind).await
    }

    /// Waits for a terminal event of a task.
    pub async fn task_end(&mut self) -> Option<Value> {
        let ends = |line: &Value| {
            let status = line["event"]["task"]["status"].as_str().unwrap_or_default();
            line["event"]["type"] == "task_updated"
                && turnwire_spec::session_update::events::TaskStatus::text_is_terminal(status)
        };
        self.channel.wait(self.patience, ends).await
    }

    /// Closes the connection.
    pub async fn close(self) {
        self.channel.close().await;
    }
}

/// Whether a line tells that a turn has ended.
fn ends_turn(line: &Value) -> bool {
    let kind = line["event"]["type"].as_str().unwrap_or_default();
    matches!(kind, "turn_completed" | "turn_failed" | "turn_cancelled")
}
