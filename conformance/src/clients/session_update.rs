//! A small client of the `session-update` protocol, as a testee in the harness's own process.
//!
//! [`Display`] is the client proper: it takes the lines of a server and holds what a person would see. The rest
//! takes steps (`docs/src/session-update.md` has them), keeps one connection, and reports the display.
//!
//! The rules of the protocol for a client are the comments of [`Display`].

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
};
use turnwire_spec::session_update::{Lifetime, event, events::TaskStatus};

use crate::drivers::{
    DriveError,
    target::Pending,
    testee::{About, LaunchTestee, Said, Testee},
};

/// Starts the client.
#[derive(Clone, Copy, Debug)]
pub struct OwnClient;

impl LaunchTestee for OwnClient {
    fn start(&self) -> Pending<'_, Result<Testee, DriveError>> {
        let about = About {
            name: "turnwire session-update client".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            said: json!({
                "ready": true,
                "name": "turnwire session-update client",
                "version": env!("CARGO_PKG_VERSION"),
            }),
        };
        Box::pin(async move { Ok(Testee::in_process(about, serve)) })
    }

    fn in_process(&self) -> bool {
        true
    }
}

/// What a person sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Display {
    turns: Vec<Turn>,
    /// The ends of tasks, each shown once.
    notices: Vec<Notice>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Turn {
    id: String,
    status: &'static str,
    /// Text that was completed.
    text: String,
    /// Text since the last completed message.
    draft: String,
    tools: Vec<Tool>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Tool {
    call: String,
    name: String,
    arguments: Value,
    status: String,
    progress: Value,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Notice {
    event: String,
    task: String,
    status: String,
}

impl Display {
    /// Takes one event. What it does is decided by the type of the event alone (SUP-049): the class and the number
    /// of the wrapper say nothing about a turn, tool or task, and the number is no position in the conversation
    /// (SUP-035). Where it belongs is told by the session and turn ids, never by the event's own (SUP-041).
    pub fn take(&mut self, envelope: &Value) {
        let text = |name: &str| envelope["event"][name].as_str().unwrap_or_default();
        let kind = text("type");
        let lifetime = event(kind).map_or(Lifetime::Goes, |meta| meta.lifetime);
        if lifetime == Lifetime::Task {
            // A task does not touch the turn that it comes from (SUP-023).
            return self.task(&envelope["event"]);
        }
        let turn = envelope["turn_id"].as_str().unwrap_or_default();
        if turn.is_empty() {
            return;
        }
        let turn = self.turn(turn);
        match kind {
            "turn_started" if turn.status.is_empty() => turn.status = "running",
            "assistant_delta" => turn.draft.push_str(text("text")),
            "turn_step_retry" => turn.draft.clear(),
            "assistant_message_completed" => {
                turn.draft.clear();
                turn.text = text("content").to_owned();
            }
            "tool_requested" => {
                let tool = turn.tool(text("tool_call_id"));
                text("tool_name").clone_into(&mut tool.name);
                tool.arguments = envelope["event"]["arguments"].clone();
                if tool.status.is_empty() {
                    "pending".clone_into(&mut tool.status);
                }
            }
            "tool_progress" => {
                let progress = envelope["event"]["payload"].clone();
                turn.tool(text("tool_call_id")).progress = progress;
            }
            // Only this completes a tool, however far it said it was (SUP-046).
            "tool_result" => {
                text("status").clone_into(&mut turn.tool(text("tool_call_id")).status);
            }
            "turn_completed" => turn.status = "completed",
            "turn_failed" => turn.status = "failed",
            "turn_cancelled" => turn.status = "cancelled",
            _ => {}
        }
    }

    /// The end of a task is shown once, however often it is delivered (SUP-039).
    fn task(&mut self, event: &Value) {
        let status = event["task"]["status"].as_str().unwrap_or_default();
        let id = event["event_id"].as_str().unwrap_or_default();
        let known = self.notices.iter().any(|notice| notice.event == id);
        if TaskStatus::text_is_terminal(status) && !known {
            self.notices.push(Notice {
                event: id.to_owned(),
                task: event["task"]["task_id"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                status: status.to_owned(),
            });
        }
    }

    fn turn(&mut self, id: &str) -> &mut Turn {
        let place = self.turns.iter().position(|turn| turn.id == id);
        let place = place.unwrap_or_else(|| {
            self.turns.push(Turn {
                id: id.to_owned(),
                ..Turn::default()
            });
            self.turns.len() - 1
        });
        &mut self.turns[place]
    }

    /// The display as it is reported.
    #[must_use]
    pub fn state(&self) -> Value {
        let tool = |tool: &Tool| {
            json!({
                "callId": tool.call,
                "name": tool.name,
                "arguments": tool.arguments,
                "status": tool.status,
                "progress": tool.progress,
            })
        };
        let turn = |turn: &Turn| {
            json!({
                "turnId": turn.id,
                "status": turn.status,
                "text": format!("{}{}", turn.text, turn.draft),
                "tools": turn.tools.iter().map(tool).collect::<Vec<_>>(),
            })
        };
        let notice = |notice: &Notice| json!({ "taskId": notice.task, "status": notice.status });
        json!({
            "turns": self.turns.iter().map(turn).collect::<Vec<_>>(),
            "notices": self.notices.iter().map(notice).collect::<Vec<_>>(),
        })
    }
}

impl Turn {
    fn tool(&mut self, call: &str) -> &mut Tool {
        let place = self.tools.iter().position(|tool| tool.call == call);
        let place = place.unwrap_or_else(|| {
            self.tools.push(Tool {
                call: call.to_owned(),
                ..Tool::default()
            });
            self.tools.len() - 1
        });
        &mut self.tools[place]
    }
}

/// The client while it runs.
#[derive(Default)]
struct Client {
    display: Display,
    connection: Option<Connection>,
    /// The number of the last request.
    number: u64,
}

struct Connection {
    lines: Lines<BufReader<OwnedReadHalf>>,
    output: OwnedWriteHalf,
}

/// Takes steps until there are no more.
async fn serve(mut steps: mpsc::Receiver<Bytes>, say: mpsc::Sender<Said>) {
    let mut client = Client::default();
    loop {
        let step = tokio::select! {
            step = steps.recv() => step,
            line = next(&mut client.connection) => {
                client.hear(line.as_deref());
                continue;
            }
        };
        let Some(step) = step else { return };
        let step: Value = serde_json::from_slice(&step).unwrap_or_default();
        let report = match client.take(&step).await {
            Ok(()) => json!({ "step": step["step"], "state": client.display.state() }),
            Err(error) => json!({ "step": step["step"], "error": error.to_string() }),
        };
        if say
            .send(Said::Line(report.to_string().into()))
            .await
            .is_err()
        {
            return;
        }
    }
}

/// The next line of the server; never, without a connection.
async fn next(connection: &mut Option<Connection>) -> Option<String> {
    match connection {
        Some(connection) => connection.lines.next_line().await.ok().flatten(),
        None => std::future::pending().await,
    }
}

impl Client {
    /// Takes a line of the server, or the end of the connection. What was shown stays.
    fn hear(&mut self, line: Option<&str>) {
        match line {
            None => self.connection = None,
            Some(line) => {
                let message: Value = serde_json::from_str(line).unwrap_or_default();
                if message["kind"] == "event" {
                    self.display.take(&message);
                }
            }
        }
    }

    async fn take(&mut self, step: &Value) -> std::io::Result<()> {
        let text = |name: &str| step[name].as_str().unwrap_or_default();
        match text("step") {
            "open" => self.open(text("url"), text("session")).await,
            "restart" => {
                *self = Self::default();
                Ok(())
            }
            "show" => {
                self.drain().await;
                Ok(())
            }
            other => Err(std::io::Error::other(format!("unknown step {other:?}"))),
        }
    }

    /// Connects and subscribes. Everything else comes by itself: nothing is read again and again (SUP-003), and
    /// nothing is asked for by the id of an event (SUP-043).
    async fn open(&mut self, url: &str, session: &str) -> std::io::Result<()> {
        let address = url.trim_start_matches("tcp://");
        let (input, output) = TcpStream::connect(address).await?.into_split();
        self.connection = Some(Connection {
            lines: BufReader::new(input).lines(),
            output,
        });
        self.ask("initialize", json!({})).await?;
        self.ask("session/subscribe", json!({ "session_id": session }))
            .await
    }

    /// Sends a request and takes what comes up to its answer.
    async fn ask(&mut self, method: &str, params: Value) -> std::io::Result<()> {
        self.number += 1;
        let id = self.number;
        let request =
            json!({ "kind": "request", "request_id": id, "method": method, "params": params });
        let gone = || std::io::Error::other("the connection is gone");
        let connection = self.connection.as_mut().ok_or_else(gone)?;
        let line = format!("{request}\n");
        connection.output.write_all(line.as_bytes()).await?;
        loop {
            let connection = self.connection.as_mut().ok_or_else(gone)?;
            let line = connection.lines.next_line().await?.ok_or_else(gone)?;
            self.hear(Some(&line));
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["kind"] == "response" && message["request_id"] == id {
                return Ok(());
            }
        }
    }

    /// Takes what the server has sent so far.
    async fn drain(&mut self) {
        const QUIET: std::time::Duration = std::time::Duration::from_millis(30);
        while let Ok(line) = tokio::time::timeout(QUIET, next(&mut self.connection)).await {
            self.hear(line.as_deref());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(turn: &str, event: Value) -> Value {
        json!({ "kind": "event", "turn_id": turn, "event": event })
    }

    #[test]
    fn a_tool_is_complete_only_with_its_result() {
        let mut display = Display::default();
        let of = |mut event: Value| {
            event["tool_call_id"] = "k".into();
            update("t", event)
        };
        display.take(&update("t", json!({ "type": "turn_started" })));
        display.take(&of(
            json!({ "type": "tool_requested", "tool_name": "bash", "arguments": { "a": 1 } }),
        ));
        display.take(&of(
            json!({ "type": "tool_progress", "payload": { "percent": 100 } }),
        ));
        assert_eq!(display.state()["turns"][0]["tools"][0]["status"], "pending");
        display.take(&of(json!({ "type": "tool_result", "status": "completed" })));
        assert_eq!(
            display.state()["turns"][0]["tools"][0]["status"],
            "completed"
        );
        assert_eq!(display.state()["turns"][0]["status"], "running");
    }

    #[test]
    fn the_end_of_a_task_is_shown_once_and_starts_no_turn() {
        let mut display = Display::default();
        display.take(&update("t", json!({ "type": "turn_started" })));
        display.take(&update("t", json!({ "type": "turn_completed" })));
        let end = |id: &str| {
            let task = json!({ "task_id": "k", "status": "completed" });
            update(
                "",
                json!({ "type": "task_updated", "event_id": id, "origin_turn_id": "t", "task": task }),
            )
        };
        display.take(&end("e-1"));
        display.take(&end("e-1"));
        display.take(&end("e-2"));

        assert_eq!(display.state()["notices"].as_array().unwrap().len(), 2);
        assert_eq!(display.state()["turns"][0]["status"], "completed");
    }
}
