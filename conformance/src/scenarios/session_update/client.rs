//! Conversations with a client under test, which connects to a scripted server. After each part it is asked to
//! report what it shows; the report stands under the label of that part.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_spec::session_update::UPDATE;

use crate::{
    drivers::{DriveError, http::BaseUrl, lines::server::LineServer},
    scenarios::{Act, Isolation, Scenario},
    stage::TesteeStage,
};

/// The scenarios with a client under test.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "client-turn",
        about: "feeds a turn with a tool step by step, task updates across turns, and turns that end otherwise",
        needs: &[],
        variant: None,
        isolation: Isolation::Own,
        run: Act::Testee(|stage| Box::pin(turn(stage))),
    },
    Scenario {
        name: "client-reconnect",
        about: "ends the connection at a high sequence; the next one rebuilds from a low one; then a fresh start",
        needs: &[],
        variant: None,
        isolation: Isolation::Own,
        run: Act::Testee(|stage| Box::pin(reconnect(stage))),
    },
];

/// The session that the client is asked to open.
pub const SESSION: &str = "tw-session";
/// The first turn.
pub const A: &str = "tw-turn-a";
/// The second turn.
pub const B: &str = "tw-turn-b";
/// A turn that fails.
pub const FAILS: &str = "tw-turn-c";
/// A turn that is cancelled.
pub const CANCELLED: &str = "tw-turn-d";
/// The tool call of the first turn.
pub const CALL: &str = "tw-call-1";
/// The task of the first turn.
pub const TASK: &str = "tw-task-1";
/// The text of the second turn.
pub const TEXT_OF_B: &str = "The second answer.";

/// How long a client may take to report.
const REPORTS_WITHIN: Duration = Duration::from_secs(10);
/// How long events may take to the client.
const ARRIVES: Duration = Duration::from_millis(150);
/// How long the turn pauses, for a client that would rather read than listen.
const PAUSE: Duration = Duration::from_millis(600);

/// A scripted server, and the client in front of it.
struct Play<'s> {
    stage: &'s TesteeStage,
    server: LineServer,
    url: String,
    sequence: u64,
}

impl<'s> Play<'s> {
    async fn begin(stage: &'s TesteeStage) -> Result<Self, DriveError> {
        let server = LineServer::start(stage.recorder().clone(), answer).await?;
        let harness = |error: &dyn std::fmt::Display| DriveError::Harness(error.to_string());
        let url = BaseUrl::parse(&server.url()).map_err(|error| harness(&error))?;
        let url = stage.front(&url).await?.to_string();
        Ok(Self {
            stage,
            server,
            url,
            sequence: 0,
        })
    }

    /// Lets the client connect and subscribe.
    async fn open(&mut self) -> Result<(), DriveError> {
        let before = self.server.heard();
        let step = json!({ "step": "open", "url": self.url, "session": SESSION });
        self.stage.tell(&step).await?;
        let subscribes = |request: &Value| request["method"] == "session/subscribe";
        self.server
            .wait_after(before, REPORTS_WITHIN, subscribes)
            .await;
        self.stage.report(REPORTS_WITHIN).await;
        Ok(())
    }

    /// Names this part, says these events, and asks what the client shows then.
    async fn part(&mut self, label: &str, events: &[Value]) -> Result<(), DriveError> {
        self.stage.label(label);
        for event in events {
            self.feed(event).await;
        }
        self.show().await
    }

    async fn feed(&mut self, event: &Value) {
        self.sequence += 1;
        let line = envelope(self.sequence, event);
        self.server.say(&line).await;
    }

    async fn show(&self) -> Result<(), DriveError> {
        // The events are on another way than the step.
        tokio::time::sleep(ARRIVES).await;
        self.stage.tell(&json!({ "step": "show" })).await?;
        if let Some(report) = self.stage.report(REPORTS_WITHIN).await {
            self.stage.state(report["state"].clone());
        }
        Ok(())
    }
}

/// What the scripted server answers.
pub(crate) fn answer(request: &Value) -> Option<Value> {
    if request["kind"] != "request" {
        return None;
    }
    let result = match request["method"].as_str()? {
        "initialize" => json!({
            "protocol_version": turnwire_spec::session_update::PROTOCOL_VERSION,
            "version": "scripted",
            "capabilities": ["sessions", "subscriptions"],
            "methods": ["initialize", "ping", "session/subscribe", "session/replay"],
        }),
        "session/subscribe" => {
            json!({ "ok": true, "subscribed": [request["params"]["session_id"]] })
        }
        "session/replay" => json!({
            "session_id": SESSION, "messages": [], "tools": [], "turns": [], "tasks": [],
        }),
        "ping" => json!({ "ok": true }),
        other => {
            let error =
                json!({ "type": "MethodNotFound", "message": format!("no method {other}") });
            return Some(
                json!({ "kind": "response", "request_id": request["request_id"], "error": error }),
            );
        }
    };
    Some(json!({ "kind": "response", "request_id": request["request_id"], "result": result }))
}

/// The wrapper of an event, with its number on the connection.
pub(crate) fn envelope(sequence: u64, event: &Value) -> Value {
    let durable = !["assistant_delta", "tool_input_delta", "tool_progress"]
        .contains(&event["type"].as_str().unwrap_or_default());
    json!({
        "kind": "event",
        "method": UPDATE,
        "sequence": sequence,
        "durability": if durable { "durable" } else { "incremental" },
        "session_id": event["session_id"],
        "turn_id": event["turn_id"],
        "event": event,
    })
}

/// An event of a turn; its id is the turn's own, with a number behind a slash.
fn of(turn: &str, number: u32, kind: &str, members: Value) -> Value {
    with_id(turn, &format!("{number:032x}"), kind, members)
}

fn with_id(turn: &str, id: &str, kind: &str, members: Value) -> Value {
    let mut event = json!({
        "type": kind,
        "ts": "2026-01-02T03:04:05.000006Z",
        "event_id": id,
        "session_id": SESSION,
        "turn_id": turn,
    });
    if let (Some(event), Value::Object(members)) = (event.as_object_mut(), members) {
        event.extend(members);
    }
    event
}

fn tool(number: u32, kind: &str, members: Value) -> Value {
    let mut event = of(A, number, kind, members);
    event["tool_call_id"] = CALL.into();
    event["tool_name"] = "search".into();
    event
}

fn task(id: u32, status: &str) -> Value {
    let task = json!({
        "task_id": TASK, "owner_session_id": SESSION, "origin_turn_id": A, "status": status,
    });
    of(
        "",
        id,
        "task_updated",
        json!({ "origin_turn_id": A, "task": task }),
    )
}

/// The arguments of the tool call.
pub fn arguments() -> Value {
    json!({ "query": "rain" })
}

async fn turn(stage: &TesteeStage) -> Result<(), DriveError> {
    let mut play = Play::begin(stage).await?;
    stage.label("open");
    play.open().await?;
    let started = of(A, 1, "turn_started", json!({ "user_message_chars": 4 }));
    let requested = json!({ "args_preview": arguments().to_string(), "arguments": arguments() });
    play.part(
        "tool-requested",
        &[started, tool(2, "tool_requested", requested)],
    )
    .await?;
    let progress = json!({ "payload": { "message": "100 percent", "percent": 100 } });
    play.part("tool-progress", &[tool(3, "tool_progress", progress)])
        .await?;
    stage.label("in-the-turn");
    tokio::time::sleep(PAUSE).await;
    let result = json!({
        "status": "completed", "result": "{\"hits\":2}", "error_type": "", "error_source": "tool",
        "duration_ms": 700,
    });
    play.part("tool-result", &[tool(4, "tool_result", result)])
        .await?;
    let message = json!({ "content": "Two hits.", "content_chars": 9 });
    let ended = of(A, 6, "turn_completed", json!({ "duration_ms": 900 }));
    play.part(
        "turn-ended",
        &[of(A, 5, "assistant_message_completed", message), ended],
    )
    .await?;

    play.part("task-running", &[task(7, "running")]).await?;
    play.part(
        "task-ended-twice",
        &[task(8, "completed"), task(8, "completed")],
    )
    .await?;
    play.part("task-ended-again", &[task(9, "failed")]).await?;
    play.part(
        "odd-ids",
        &second_turn(&format!("{A}:7"), &format!("{A}:8")),
    )
    .await?;
    let failed = json!({
        "error": "the provider said no", "error_type": "BadRequestError", "status": "rejected", "error_source": "provider",
    });
    play.part("turn-failed", &begun_and(FAILS, 13, "turn_failed", failed))
        .await?;
    let cancelled = json!({ "reason": "User interrupted" });
    let events = begun_and(CANCELLED, 16, "turn_cancelled", cancelled);
    play.part("turn-cancelled", &events).await
}

/// A turn that begins, says a part of what it has to say, and ends so.
fn begun_and(turn: &str, number: u32, end: &str, members: Value) -> [Value; 3] {
    [
        of(
            turn,
            number,
            "turn_started",
            json!({ "user_message_chars": 4 }),
        ),
        of(
            turn,
            number + 1,
            "assistant_delta",
            json!({ "text": "Half of " }),
        ),
        of(turn, number + 2, end, members),
    ]
}

/// The second turn, with these ids of its first two events.
fn second_turn(first: &str, second: &str) -> [Value; 3] {
    let chars = TEXT_OF_B.chars().count();
    let message = json!({ "content": TEXT_OF_B, "content_chars": chars });
    [
        with_id(B, first, "turn_started", json!({ "user_message_chars": 4 })),
        with_id(B, second, "assistant_message_completed", message),
        of(B, 12, "turn_completed", json!({ "duration_ms": 5 })),
    ]
}

fn first_turn() -> [Value; 3] {
    let message = json!({ "content": "Two hits.", "content_chars": 9 });
    [
        of(A, 1, "turn_started", json!({ "user_message_chars": 4 })),
        of(A, 5, "assistant_message_completed", message),
        of(A, 6, "turn_completed", json!({ "duration_ms": 900 })),
    ]
}

async fn reconnect(stage: &TesteeStage) -> Result<(), DriveError> {
    let mut play = Play::begin(stage).await?;
    stage.label("open");
    play.open().await?;
    play.sequence = 900;
    play.part("before", &first_turn()).await?;
    play.server.hang_up().await;
    let second = second_turn(&format!("{:032x}", 10), &format!("{:032x}", 11));
    let rebuilt: Vec<Value> = first_turn().into_iter().chain(second).collect();

    stage.label("reopen");
    play.open().await?;
    play.sequence = 0;
    play.part("reconnected", &rebuilt).await?;
    play.server.hang_up().await;

    stage.label("restart");
    stage.tell(&json!({ "step": "restart" })).await?;
    stage.report(REPORTS_WITHIN).await;
    play.open().await?;
    play.sequence = 0;
    play.part("restarted", &rebuilt).await
}
